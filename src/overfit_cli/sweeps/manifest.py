"""`manifest.json`: what was run into a directory, what it was made with, what it covers.

A user may have edited the file.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import math
import os
import platform
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from overfit_cli.claims.seals import Seals, count_further_looks, digests, wording
from overfit_cli.core.claim import Claim
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import (
    MANIFEST,
    SET_ASIDE,
    error_text,
    lock_folder,
    read_bounded,
    set_aside,
    write_whole,
)
from overfit_cli.core.parameters import describe
from overfit_cli.core.registry import claims_of
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.training import processor_name, product_library
from overfit_cli.functions.experiment import FunctionRecord
from overfit_cli.stats.equations import Expression
from overfit_cli.sweeps.grid import MOST_CELLS, Grid, recorded_grid
from overfit_cli.sweeps.provenance import DIRTY, commit_of, keep_source

if TYPE_CHECKING:
    import pandas as pd


MOST_PLANNED = 200_000
"""Points of which a figure shows the missing ones; to make millions takes minutes."""

_PACKAGES = ("overfit-cli", "torch", "numpy", "pandas", "pyarrow", "joblib", "scipy", "matplotlib")


def check_data(directory: Path, data: Mapping[str, str]) -> None:
    """Hold a run to the data that the directory's other cells were trained on."""
    manifest = read_manifest(directory)
    before = manifest.data if manifest is not None else {}
    for name, fingerprint in data.items():
        if before.get(name, fingerprint) != fingerprint:
            raise BadValue(
                "out",
                str(directory),
                f"its cells were trained on other data ({name} had other content then); name "
                "another directory, or the earlier data.",
            )


def check_stated(directory: Path, stated: Mapping[str, str]) -> None:
    """Refuse a claim that comes after the first cell of a run directory."""
    manifest = read_manifest(directory) if stated else None
    for name, text in stated.items():
        if manifest is not None and manifest.stated.get(name) != text:
            raise BadValue(
                "claim",
                text,
                f"{directory} was begun without it; name another directory, or judge it there, "
                "where the verdict says that it was added after the first cell.",
            )


def record_run(
    directory: Path,
    grid: Grid,
    settings: Mapping[str, str | int | float],
    data: Mapping[str, str] | None = None,
    command: Sequence[str] | None = None,
    sentences: Mapping[str, str] | None = None,
    preset: Path | None = None,
    stated: Mapping[str, str] | None = None,
) -> None:
    """Add a run that trains something to the directory's manifest; what stands there stays.

    A manifest that can't be read is set aside first.

    Args:
        command: what runs the same cells again; None for what was typed.
        sentences: claims that the sweep's preset states, by name.
        stated: claims that the user states with the sweep, by name.
    """
    study = grid.study
    with lock_folder(directory):
        if is_unreadable(directory):
            set_aside(directory / MANIFEST, directory / SET_ASIDE)
        before = read_manifest(directory)
        if before is not None and before.study != study.name:
            raise UserError(
                f"{directory}: it holds cells of {before.study}, not of {study.name}; name "
                "another directory."
            )
        every = {**(sentences or {}), **(stated or {})}
        claims = [*claims_of(study), *stated_claims(study, every)]
        is_own = study.identity.function is not None
        presets = [str(preset.resolve())] if preset is not None and sentences else []
        manifest = Manifest(
            schema=1,
            study=study.name,
            version=study.version,
            data={**(before.data if before else {}), **(data or {})},
            runs=(*(before.runs if before else ()), _entry(grid, settings, command)),
            function=study.identity.function,
            claims=before.claims if before else digests(claims, with_code=is_own),
            wordings=before.wordings if before else _wordings(claims if is_own else ()),
            sentences=before.sentences if before else sentences or {},
            stated=before.stated if before else stated or {},
            presets=tuple(dict.fromkeys([*(before.presets if before else ()), *presets])),
            merging=before.merging if before else (),
        )
        write_manifest(directory, manifest)
        keep_source(directory, study)


def stated_claims(study: AnyStudy, sentences: Mapping[str, str]) -> list[Claim]:
    """Return the claims of sentences by name, on a study's cells."""
    if not sentences:
        return []
    from overfit_cli.claims.stated import claim

    return [claim(text, study, name=name) for name, text in sentences.items()]


def _wordings(claims: Sequence[Claim]) -> dict[str, str]:
    return {claim.name: wording(claim) for claim in claims}


def is_described(directory: Path, study: AnyStudy) -> bool:
    """Whether the manifest has a function's present record; True for an installed study."""
    if study.identity.function is None:
        return True
    manifest = read_manifest(directory)
    return manifest is not None and manifest.function == study.identity.function


def planned_cells(directory: Path, study: AnyStudy) -> pd.DataFrame:
    """Return the points that the runs into `directory` were meant to cover.

    One row per point: `seed` and a column for each parameter, with defaults where a run set none.
    """
    import pandas as pd

    frames = [pd.DataFrame(columns=["seed", *describe(study.parameters)])]
    for run in _planned_runs(directory):
        planned = pd.DataFrame(list(_points(study, run)))
        seeds = pd.DataFrame({"seed": list(run.seeds)})
        if len(planned) and len(seeds):
            frames.append(seeds.merge(planned, how="cross"))
    filled = [frame for frame in frames if len(frame)] or frames
    return pd.concat(filled).drop_duplicates(ignore_index=True)


def count_planned(directory: Path, study: AnyStudy) -> int:
    """Return the number of points that `planned_cells` has; no frame of them is made."""
    seeds = dict[tuple[Any, ...], set[int]]()
    for run in _planned_runs(directory):
        for point in _points(study, run):
            seeds.setdefault(tuple(point.values()), set()).update(run.seeds)
    return sum(map(len, seeds.values()))


def _planned_runs(directory: Path) -> list[Run]:
    """The runs into a directory that differ; none, with a warning, where they plan too much."""
    manifest = read_manifest(directory)
    # A sweep that was resumed twenty times has twenty entries of the same cells.
    runs = {
        repr((run.values, run.seeds, run.together, run.only)): run
        for run in (manifest.runs if manifest else ())
    }
    points = sum(run.size // max(1, len(run.seeds)) for run in runs.values())
    if points > MOST_PLANNED:
        warnings.warn(
            f"{directory / MANIFEST} plans {points} points, more than {MOST_PLANNED}: missing "
            "points aren't shown.",
            UserWarning,
            stacklevel=3,
        )
        return []
    return list(runs.values())


def _points(study: AnyStudy, run: Run) -> Iterator[dict[str, Any]]:
    # What the study refuses is no point: somebody may have edited the file.
    with contextlib.suppress(UserError):
        grid = recorded_grid(study, run.values, run.together, run.only)
        for point in grid.rows():
            with contextlib.suppress(ValidationError):
                values = dict(zip(grid.given, point, strict=True))
                yield study.parameters(**values).model_dump()


def _entry(
    grid: Grid, settings: Mapping[str, str | int | float], command: Sequence[str] | None
) -> Run:
    study = grid.study
    commit, dirty = commit_of(study)
    return Run(
        source=study.identity.source,
        values={
            name: tuple(item.text if isinstance(item, Expression) else item for item in items)
            for name, items in grid.given.items()
        },
        together=grid.together,
        only=tuple(condition.text for condition in grid.only),
        derived=tuple(grid.derived),
        axes=tuple(grid.axes),
        seeds=grid.seeds,
        settings=dict(settings),
        command=_typed() if command is None else tuple(command),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        packages={name: _version(name) for name in _PACKAGES},
        python=platform.python_version(),
        platform=platform.platform(),
        processor=processor_name(),
        products=product_library(),
        cores=os.cpu_count(),
        git_commit=commit,
        git_dirty=dirty,
    )


def _typed() -> tuple[str, ...]:
    """The command line; empty in a script or a notebook, where what is typed is no command."""
    program = Path(sys.argv[0])
    if program.stem != "overfit" and program.parent.name != "overfit_cli":
        return ()
    return ("overfit", *(_as_text(word) for word in sys.argv[1:]))


def _as_text(word: str) -> str:
    """A word of the command; what of it is no text is written as an escape."""
    return word.encode(errors="backslashreplace").decode()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


MOST_BYTES = 1 << 26

_Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_Real = Annotated[float, Field(allow_inf_nan=False)]
_Value = bool | _Whole | _Real | str


class Run(BaseModel):
    """One sweep or training into the directory that trained something.

    Attributes:
        values: for each parameter that was set, its values; an expression in others as a text.
        derived: the parameters that had expressions among their values.
        started: when, in UTC, as ISO 8601.
        packages: the versions of what computes, stores and draws.
        products: the library of large matrix products, which the processor decides.
        git_commit: the commit of the code that trained, where it lies in a repository. Of a
            function it once was this package's: then `git_dirty` is None.
        git_dirty: whether a function's files differed from the commit; None where that isn't known.
        source: a digest of the code that trained, where that was a function's.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    values: Mapping[str, tuple[_Value, ...]]
    seeds: tuple[Annotated[int, Field(ge=0, lt=2**63)], ...]
    together: tuple[tuple[str, ...], ...] = ()
    only: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    settings: Mapping[str, _Value | None] = Field(default_factory=dict)
    command: tuple[str, ...] = ()
    started: str = ""
    packages: Mapping[str, str | None] = Field(default_factory=dict)
    python: str = ""
    platform: str = ""
    processor: str = ""
    products: str = ""
    cores: int | None = None
    git_commit: str | None = None
    git_dirty: bool | None = None
    source: str = ""

    @property
    def commit(self) -> str:
        """The commit of the code that trained, marked where files differed; empty without one."""
        if not self.git_commit or (self.source and self.git_dirty is None):
            return ""
        return self.git_commit + (DIRTY if self.git_dirty else "")

    @property
    def size(self) -> int:
        """The number of cells that it was to cover, before conditions left out some."""
        following = {name for group in self.together for name in group[1:]}
        lengths = [len(taken) for name, taken in self.values.items() if name not in following]
        return math.prod(lengths) * len(self.seeds)

    @model_validator(mode="after")
    def _can_be_gone_through(self) -> Run:
        if self.size > MOST_CELLS:
            raise ValueError(f"it covers {self.size} cells, and a sweep takes up to {MOST_CELLS}")
        return self


class Manifest(BaseModel):
    """The content of `manifest.json`.

    Attributes:
        study, version: whose cells these are, and the numerical version that ran last.
        data: fingerprints of the collections that the cells were trained on, by name.
        runs: every run that trained something, the first one first.
        claims: digests of the study's claims from before the first cell, by name; None where a run
            kept none.
        wordings: the texts of a function's claims from before the first cell, by name.
        sentences: the claims that a preset stated before the first cell, by name.
        stated: the claims that a user stated with the sweep, before the first cell, by name.
        presets: the files of presets that state claims.
        merging: the directories of a merge into this one that hasn't ended: cells may be missing.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    schema_version: Literal[1] = Field(alias="schema")
    study: Annotated[str, Field(min_length=1)]
    version: _Whole
    data: Mapping[str, str] = Field(default_factory=dict)
    runs: tuple[Run, ...] = ()
    function: FunctionRecord | None = None
    claims: Mapping[str, str] | None = None
    wordings: Mapping[str, str] = Field(default_factory=dict)
    sentences: Mapping[str, str] = Field(default_factory=dict)
    stated: Mapping[str, str] = Field(default_factory=dict)
    presets: tuple[str, ...] = ()
    merging: tuple[str, ...] = ()

    @property
    def seals(self) -> Seals:
        """The digests of claims from before the first cell."""
        is_own = self.function is not None
        texts = {**self.wordings, **self.sentences, **self.stated}
        return Seals(self.claims, texts, with_code=is_own)

    @property
    def further_looks(self) -> int:
        """The number of runs that added seeds to earlier runs."""
        return count_further_looks([run.seeds for run in self.runs])

    @property
    def refined(self) -> bool:
        """Whether a sweep chose cells one by one, where the boundary was uncertain."""
        return any("refine" in run.settings for run in self.runs)

    @property
    def sparse(self) -> bool:
        """Whether the points of a run are no full product of the values."""
        return any(run.only or run.together or run.derived for run in self.runs)

    @property
    def boundary(self) -> tuple[str, float] | None:
        """The column and the threshold of the sweeps that refined; None without one of all."""
        refined = {
            (str(run.settings.get("value")), threshold)
            for run in self.runs
            if "refine" in run.settings
            and isinstance(threshold := run.settings.get("threshold"), float)
        }
        return refined.pop() if len(refined) == 1 else None


def read_manifest(directory: Path) -> Manifest | None:
    """Return the manifest; None where there is none, or, with a warning, none that can be read."""
    path = directory / MANIFEST
    try:
        return Manifest.model_validate_json(read_bounded(path, MOST_BYTES), strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        reason = error_text(error)
    except ValidationError as error:
        reason = _in_words(error)
    warnings.warn(
        f"{path} can't be read ({reason}); the directory counts as one without a manifest.",
        UserWarning,
        stacklevel=2,
    )
    return None


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write a directory's manifest, whole or not at all."""
    text = manifest.model_dump_json(indent=2, by_alias=True) + "\n"
    write_whole(directory / MANIFEST, text.encode())


def is_unreadable(directory: Path) -> bool:
    """Whether there is a manifest that can't be read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (directory / MANIFEST).exists() and read_manifest(directory) is None


def _in_words(error: ValidationError) -> str:
    first: Any = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"][:4])
    message = str(first["msg"]).removeprefix("Value error, ")
    return f"{field}: {message}" if field else message
