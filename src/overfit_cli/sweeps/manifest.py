"""`manifest.json`, and the provenance of cells: what was run, with which code, what it covers.

A user may have edited the file. A damaged one is an error, never "no manifest". An installed study
comes with this package, so that the package's commit is its commit. A plain function has files of
its own: theirs counts, and the run directory keeps a copy of them.
"""

from __future__ import annotations

import contextlib
import math
import os
import platform
import subprocess
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from overfit_cli.claims import stated as statements
from overfit_cli.core import files, registry, training
from overfit_cli.core.arrays import varying
from overfit_cli.core.cell import parameter_columns
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import Claim
from overfit_cli.core.errors import UserError, first_problem
from overfit_cli.core.expressions import Expression
from overfit_cli.core.parameters import build, describe
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import brief, typed_command
from overfit_cli.functions.experiment import FunctionRecord
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.presets import Preset, Whole

MOST_PLANNED, MOST_GRIDS = 200_000, 1000
"""Points, and grids, of which a figure shows the missing ones; to make more takes minutes."""

_PACKAGES = ("overfit-cli", "torch", "numpy", "pandas", "pyarrow", "joblib", "scipy", "matplotlib")

_Real = Annotated[float, Field(allow_inf_nan=False)]
_Value = bool | Whole | _Real | str


Differing = Mapping[str, Mapping[str, tuple[_Real | None, _Real | None]]]
"""Two numbers of cells that were trained twice, by key and column; None where there is none."""


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

    def meets(self, other: Run) -> bool:
        """Return whether the two may have a setting in common: no parameter's values are apart.

        Of one that was an expression in either that isn't known.
        """
        told = (self.values.keys() & other.values.keys()) - {*self.derived, *other.derived}
        return all({*self.values[name]} & {*other.values[name]} for name in told)

    @property
    def size(self) -> int:
        """The number of cells that it was to cover, before conditions left out some."""
        following = {name for group in self.together for name in group[1:]}
        lengths = [len(taken) for name, taken in self.values.items() if name not in following]
        return math.prod(lengths) * len(self.seeds)

    def grid(self, study: AnyStudy) -> Grid:
        """Return its grid, as a sweep of its study reads it."""
        # A number as a text is read to its last digit; one from Python is rounded.
        recorded = {
            name: [repr(item) if isinstance(item, float) else item for item in items]
            for name, items in self.values.items()
        }
        return Grid.read(study, recorded, self.seeds, map(",".join, self.together), self.only)


class Manifest(BaseModel):
    """The content of `manifest.json`; false where there is none, and nothing is known.

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
        differing: what cells had, and what else they had when they were trained a second time.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    schema_version: Literal[1] = Field(alias="schema")
    study: Annotated[str, Field(min_length=1)]
    version: Whole
    data: Mapping[str, str] = Field(default_factory=dict)
    runs: tuple[Run, ...] = ()
    function: FunctionRecord | None = None
    claims: Mapping[str, str] | None = None
    wordings: Mapping[str, str] = Field(default_factory=dict)
    sentences: Mapping[str, str] = Field(default_factory=dict)
    stated: Mapping[str, str] = Field(default_factory=dict)
    presets: tuple[str, ...] = ()
    merging: tuple[str, ...] = ()
    differing: Differing = Field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.study)

    @property
    def sealed(self) -> dict[str, str]:
        """The texts of claims from before the first cell, by name."""
        return {**self.wordings, **self.sentences, **self.stated}

    def state_of(self, claim: Claim) -> Literal["sealed", "changed", "added", "unknown"]:
        """Return what became of a claim since the first cell: by its digest, which is its seal.

        One of another name with a sealed sentence is sealed.
        """
        if self.claims is None:
            return "unknown"
        if claim.name in self.claims:
            digest = claim.digest(with_code=self.function is not None)
            kept = self.sealed.get(claim.name) == claim.sentence != ""
            return "sealed" if kept or self.claims[claim.name] == digest else "changed"
        return "sealed" if claim.sentence in self.sealed.values() else "added"

    def removed(self, claims: Iterable[Claim]) -> dict[str, str]:
        """Return the texts of sealed claims that are not among these, by name."""
        known = {text for claim in claims for text in (claim.name, claim.sentence)}
        return {name: text for name, text in self.sealed.items() if known.isdisjoint((name, text))}

    @property
    def further_looks(self) -> int:
        """How often runs added seeds to earlier ones with settings in common, one after another."""
        looks = list[int]()
        for run in self.runs:
            before = zip(self.runs, looks, strict=False)
            met = [(one, count) for one, count in before if one.meets(run)]
            known = {seed for one, _ in met for seed in one.seeds}
            most = max((count for _, count in met), default=0)
            looks.append(most + (bool(known) and not known.issuperset(run.seeds)))
        return max(looks, default=0)

    @property
    def sources(self) -> set[str]:
        """The digests of the code of its runs; of an installed study's an empty one."""
        return {run.source for run in self.runs}

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
            if isinstance(threshold := run.settings.get("threshold"), float)
        }
        return refined.pop() if len(refined) == 1 else None

    @property
    def identity(self) -> dict[str, object]:
        """What run directories that are merged have in common, in words."""
        function = self.function
        return {
            **{f"data {name}": mark for name, mark in self.data.items()},
            "study": self.study,
            "study's version": self.version,
            "function's description": function
            and function.model_copy(update={"reference": "", "command": ""}),
            "code": self.sources,
        }

    def planned(self, study: AnyStudy) -> pd.DataFrame:
        """Return the points that the runs were meant to cover; none where they are too many.

        One row per point: `seed` and a column for each parameter.
        """
        # A sweep that was resumed twenty times has twenty entries of the same cells.
        runs = {repr((one.values, one.seeds, one.together, one.only)): one for one in self.runs}
        frames = [pd.DataFrame(columns=["seed", *describe(study.parameters)])]
        points = sum(run.size // max(1, len(run.seeds)) for run in runs.values())
        if points > MOST_PLANNED or len(runs) > MOST_GRIDS:
            words = f"{self.study}: over {MOST_PLANNED} points, or {MOST_GRIDS} grids, are planned"
            warnings.warn(f"{words}: missing points aren't shown.", UserWarning, stacklevel=3)
            return frames[0]
        for run in runs.values():
            rows = list[dict[str, Any]]()
            with contextlib.suppress(UserError):  # the study refuses what it once accepted
                for row in run.grid(study).rows():
                    with contextlib.suppress(UserError):  # a point that it refuses is none
                        rows.append(build(study.parameters, row).model_dump())
            if rows:  # without any, whole numbers beside it would become real ones
                seeds = pd.DataFrame({"seed": run.seeds})
                frames.append(seeds.merge(pd.DataFrame(rows), how="cross"))
        return pd.concat(frames[1:] or frames).drop_duplicates(ignore_index=True)


NO_MANIFEST = Manifest.model_construct(schema_version=1, study="", version=0)


def read_manifest(directory: Path) -> Manifest:
    """Return the manifest of a run directory; `NO_MANIFEST` where there is none."""
    path = directory / files.MANIFEST
    try:
        return Manifest.model_validate_json(files.read_bounded(path), strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return NO_MANIFEST
    except OSError as error:
        reason = files.error_text(error)
    except ValidationError as error:
        reason = first_problem(error)
    raise UserError(f"{path} is damaged ({reason}); restore it, or move it away.")


def with_run(
    before: Manifest,
    grid: Grid,
    settings: Mapping[str, str | int | float | None],
    data: Mapping[str, str] = {},
    preset: Preset | None = None,
    stated: Mapping[str, str] = {},
) -> Manifest:
    """Return a manifest with one more run that trains something; what stands there stays.

    Args:
        settings: how it is run, by name; None where that is as usual.
        stated: claims that the user states with the sweep, by name.
    """
    study, sentences = grid.study, preset.claims if preset is not None else {}
    is_own = study.identity.function is not None
    if not before:
        claims = [*registry.claims_of(study), *stated_claims(study, {**sentences, **stated})]
        before = Manifest(
            schema=1,
            study=study.name,
            version=study.version,
            claims={claim.name: claim.digest(with_code=is_own) for claim in claims},
            wordings={claim.name: claim.wording for claim in claims} if is_own else {},
            sentences=sentences,
            stated=stated,
        )
    presets = [str(preset.path.resolve())] if preset is not None and sentences else []
    update = {
        "version": study.version,
        "data": {**before.data, **data},
        "runs": (*before.runs, _run_of(grid, settings)),
        "function": study.identity.function,
        "presets": tuple(dict.fromkeys([*before.presets, *presets])),
    }
    return before.model_copy(update=update)


def joined_manifest(manifests: Sequence[Manifest], merging: Sequence[str]) -> Manifest:
    """Return one manifest of all: each run once, in the order in which they began.

    Args:
        merging: the directories that are merged.
    """

    def in_all(texts: Sequence[Mapping[str, str]]) -> dict[str, str]:
        return {n: text for n, text in texts[0].items() if all(one.get(n) == text for one in texts)}

    first, runs = manifests[0], list[Run]()
    for manifest in manifests:
        runs += [run for run in manifest.runs if run not in runs]
    sealed = [manifest.claims for manifest in manifests if manifest.claims is not None]
    update = {
        "data": {name: mark for one in manifests for name, mark in one.data.items()},
        "runs": tuple(sorted(runs, key=lambda run: run.started)),
        "claims": None if first.claims is None else in_all(sealed),
        "stated": in_all([manifest.stated for manifest in manifests]),
        "differing": {k: told for one in manifests for k, told in one.differing.items()},
        "merging": tuple(merging),
    }
    return first.model_copy(update=update)


def stated_claims(study: AnyStudy, sentences: Mapping[str, str]) -> list[Claim]:
    """Return the claims of sentences by name, on a study's cells."""
    return [statements.claim(text, study, name=name) for name, text in sentences.items()]


def _run_of(grid: Grid, settings: Mapping[str, str | int | float | None]) -> Run:
    study = grid.study
    commit, dirty = commit_of(study)
    return Run(
        source=study.identity.source,
        values={
            name: tuple(item.text if isinstance(item, Expression) else item for item in items)
            for name, items in grid.given.items()
        },
        together=grid.together,
        only=grid.only,
        derived=tuple(grid.derived),
        axes=tuple(grid.axes),
        seeds=grid.seeds,
        settings={name: value for name, value in settings.items() if value is not None},
        command=typed_command(),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        packages={name: registry.package_version(name) for name in _PACKAGES},
        python=platform.python_version(),
        platform=platform.platform(),
        processor=training.processor_name(),
        products=training.product_library(),
        cores=os.cpu_count(),
        git_commit=commit,
        git_dirty=dirty,
    )


# Provenance

SOURCES = "source"
"""The folder of a run directory with the functions' files, in a folder for each digest."""

DIRTY = "-dirty"
"""Ends a commit whose files had changes that weren't committed."""

SHORT = 8
"""Digits of a source's digest that are shown."""


def commit_of(study: AnyStudy) -> tuple[str | None, bool | None]:
    """Return the commit of the code that trains, and whether a function's files differ from it.

    Both are None where the code lies in no repository; an installed study's code isn't compared.
    """
    if not study.identity.source:
        return package_commit(), None
    paths = [file.path for file in study.identity.files if file.path is not None]
    commit = _git(paths[0].parent, "rev-parse HEAD") if paths else None
    if commit is None:
        return None, None
    # A file elsewhere is in no commit: then git fails.
    return commit, _git(paths[0].parent, "status --porcelain --ignored --", *paths) != ""


def package_commit() -> str | None:
    """Return the commit of this package's code; None where it runs from no checkout."""
    here = Path(__file__).resolve()
    if not any((folder / ".git").exists() for folder in here.parents[:4]):
        return None
    return _git(here.parent, "rev-parse HEAD")


def _git(folder: Path, command: str, *paths: Path) -> str | None:
    words = ["git", "-C", str(folder), *command.split(), *map(str, paths)]
    try:
        done = subprocess.run(words, capture_output=True, check=False)
    except OSError:
        return None
    return None if done.returncode else done.stdout.decode(errors="replace").strip()


def short_commit(commit: str, digits: int) -> str:
    """Return a commit's first digits, with its mark of changes."""
    return commit.removesuffix(DIRTY)[:digits] + (DIRTY if commit.endswith(DIRTY) else "")


def count_sources(sources: Mapping[str, str], keys: Iterable[str]) -> dict[str, int]:
    """Return how many cells each source trained, the most first.

    Args:
        keys: the cells; those of which no digest is known don't count.
    """
    counts = Counter(filter(None, map(sources.get, keys)))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def sources_in_words(runs: Mapping[str, Mapping[str, int]]) -> str:
    """Say of how many sources cells are; empty where they are of one.

    Args:
        runs: the cells of each source, by the name of their run directory; a single one has none.
    """
    texts = [
        f"{count} of {digest[:SHORT]}…{f' ({name})' if name else ''}"
        for name, counts in runs.items()
        for digest, count in counts.items()
    ]
    number = len({digest for counts in runs.values() for digest in counts})
    return f"Cells of {number} sources: {', '.join(texts)}." if number > 1 else ""


def warn_of_sources(path: Path, sources: Mapping[str, str], cells: pd.DataFrame) -> None:
    """Warn where cells of a run directory are of several sources."""
    if words := sources_in_words({"": count_sources(sources, cells["key"])}):
        warnings.warn(f"{path}: {words}", UserWarning, stacklevel=3)


def differing_in_words(
    differing: Differing, cells: pd.DataFrame, names: Collection[str] | None = None
) -> str:
    """Say what cells had and have, an example for each column: `loss 0.31, then 0.42 at n=5`.

    What was trained again since, and has another number now, is left out.

    Args:
        names: the columns that count; None for all.
    """
    found = dict[str, str]()
    rows = cells[cells["key"].isin([*differing])] if differing else cells[:0]  # some have no keys
    varied = [*varying(cells, parameter_columns(cells)), "seed"]
    for row in rows.to_dict("records"):
        place = ", ".join(f"{name}={brief(row[name])}" for name in varied)
        for name, pair in differing[row["key"]].items():
            now = None if pd.isna(row.get(name)) else row[name]
            if now == pair[0] and (names is None or name in names):
                first, again = ("none" if one is None else f"{one:.8g}" for one in pair)
                found.setdefault(name, f"{name} {first}, then {again} at {place}")
    return "; ".join(found.values())


def provenance_in_words(parts: Mapping[str, Cells]) -> list[str]:
    """Write of which sources cells are, and which data and thresholds of runs differ.

    Nothing is written of what is one for all cells.
    """
    counts, marks = dict[str, dict[str, dict[str, int]]](), dict[str, dict[str, str]]()
    for name, part in parts.items():
        of_study = counts.setdefault(part.study.name, {})
        of_study[name] = count_sources(part.run.sources, part.trained["key"])
        for data, mark in part.run.collections.items():
            marks.setdefault(f"Data that differs: {data}, ", {})[name] = f"{mark[:SHORT]}…"
        if part.run.boundary is not None:
            column, level = part.run.boundary
            text = f"{column} {level:g}".strip()
            marks.setdefault("Refined at different thresholds: ", {})[name] = text
    sentences = [*map(sources_in_words, counts.values())]
    for begin, texts in sorted(marks.items()):
        listed = ", ".join(f"{text} ({name})" for name, text in texts.items())
        sentences.append(f"{begin}{listed}." if len({*texts.values()}) > 1 else "")
    return [sentence for sentence in sentences if sentence]
