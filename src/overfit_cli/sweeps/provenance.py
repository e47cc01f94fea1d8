"""Entries of the manifest: what a run was made with, and what it covers."""

from __future__ import annotations

import contextlib
import importlib.metadata
import itertools
import math
import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from overfit_cli.errors import UserError
from overfit_cli.files import locked, write_whole
from overfit_cli.functions.study import FunctionStudy
from overfit_cli.parameters import Value, describe
from overfit_cli.study import AnyStudy
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.manifest import MANIFEST, Manifest, Run, is_unreadable, read_manifest
from overfit_cli.sweeps.parts import set_aside
from overfit_cli.sweeps.store import SET_ASIDE

if TYPE_CHECKING:
    import pandas as pd

MOST_PLANNED = 200_000
"""Points of which a figure shows the missing ones; to make millions takes minutes."""

_PACKAGES = ("overfit-cli", "torch", "numpy", "pandas", "pyarrow", "joblib", "scipy", "matplotlib")


def check_data(directory: Path, data: Mapping[str, str]) -> None:
    """Hold a run to the data that the directory's other cells were trained on.

    Args:
        directory: the run directory, whether there or not.
        data: what the run reads: fingerprints of collections, by name.

    Raises:
        UserError: if a collection of one name held something else then.
    """
    manifest = read_manifest(directory)
    before = manifest.data if manifest is not None else {}
    for name, fingerprint in data.items():
        if before.get(name, fingerprint) != fingerprint:
            raise UserError(
                f"--out {directory}: its cells were trained on other data ({name} held something "
                "else then); name another directory, or the data of before with --data."
            )


def record_run(
    directory: Path,
    grid: Grid,
    settings: Mapping[str, str | int | float],
    data: Mapping[str, str] | None = None,
    command: Sequence[str] | None = None,
) -> None:
    """Add a run that trains something to the directory's manifest; what stands there stays.

    A manifest that can't be read is set aside first.

    Args:
        directory: the run directory; it exists.
        grid: what the run covers.
        settings: how it is run (jobs, backend, device, preset, ...).
        data: fingerprints of the collections that it reads, by name.
        command: what runs the same cells again; None for what was typed.

    Raises:
        OSError: if it can't be written; the old manifest stays then.
        UserError: if another study has been run into the directory meanwhile.
    """
    study = grid.study
    with locked(directory):
        if is_unreadable(directory):
            set_aside(directory / MANIFEST, directory / SET_ASIDE)
        before = read_manifest(directory)
        if before is not None and before.study != study.name:
            raise UserError(
                f"{directory}: it holds cells of {before.study}, not of {study.name}; name "
                "another directory."
            )
        manifest = Manifest(
            schema=1,
            study=study.name,
            version=study.version,
            data={**(before.data if before else {}), **(data or {})},
            runs=(*(before.runs if before else ()), _entry(grid, settings, command)),
            function=study.record if isinstance(study, FunctionStudy) else None,
        )
        text = manifest.model_dump_json(indent=2, by_alias=True) + "\n"
        write_whole(directory / MANIFEST, text.encode())


def is_described(directory: Path, study: AnyStudy) -> bool:
    """Whether the manifest says of a function what is known of it now; so for any other study."""
    if not isinstance(study, FunctionStudy):
        return True
    manifest = read_manifest(directory)
    return manifest is not None and manifest.function == study.record


def planned_cells(directory: Path, study: AnyStudy) -> pd.DataFrame:
    """Return the points that the runs into `directory` were meant to cover.

    One row per point: `seed` and a column for each parameter, with defaults where a run set none.
    """
    import pandas as pd

    manifest = read_manifest(directory)
    frames = [pd.DataFrame(columns=["seed", *describe(study.parameters)])]
    # A sweep that was resumed twenty times has twenty entries of the same cells.
    works = {repr((run.values, run.seeds)): run for run in (manifest.runs if manifest else ())}
    points = sum(math.prod(map(len, run.values.values())) for run in works.values())
    if points > MOST_PLANNED:
        warnings.warn(
            f"{directory / MANIFEST} plans {points} points, over {MOST_PLANNED}: what is missing "
            "of them isn't shown.",
            UserWarning,
            stacklevel=2,
        )
        return frames[0]
    for run in works.values():
        planned = pd.DataFrame(list(_points(study, run.values)))
        seeds = pd.DataFrame({"seed": list(run.seeds)})
        if len(planned) and len(seeds):
            frames.append(seeds.merge(planned, how="cross"))
    known = [frame for frame in frames if len(frame)] or frames
    return pd.concat(known).drop_duplicates(ignore_index=True)


def _points(study: AnyStudy, values: Mapping[str, Sequence[Value]]) -> Iterator[dict[str, Any]]:
    """Every combination of the values, with the defaults that hold for it."""
    for point in itertools.product(*values.values()):
        # What the model refuses is no point: somebody may have edited the file.
        with contextlib.suppress(ValidationError):
            yield study.parameters(**dict(zip(values, point, strict=True))).model_dump()


def _entry(
    grid: Grid, settings: Mapping[str, str | int | float], command: Sequence[str] | None
) -> Run:
    study = grid.study
    return Run(
        source=study.source_digest,
        values=dict(grid.values),
        axes=tuple(grid.axes),
        seeds=grid.seeds,
        settings=dict(settings),
        command=_typed() if command is None else tuple(command),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        packages={name: _version(name) for name in _PACKAGES},
        python=platform.python_version(),
        platform=platform.platform(),
        processor=platform.processor() or platform.machine(),
        cores=os.cpu_count(),
        git_commit=git_commit(),
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


def git_commit() -> str | None:
    """Return the commit of the code that runs; None where it runs from no checkout."""
    here = Path(__file__).resolve()
    if not any((folder / ".git").exists() for folder in here.parents[:4]):
        return None
    command = ["git", "-C", str(here.parent), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None
