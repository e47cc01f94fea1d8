"""The run directories of a figure, found where they lie now."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from overfit_cli.cli.common import RESULTS
from overfit_cli.cli.drawing import figure_and_data
from overfit_cli.cli.recording import run_record
from overfit_cli.errors import UserError
from overfit_cli.figure import Figure, FigureData

if TYPE_CHECKING:
    from overfit_cli.figures.provenance import Provenance, RunRecord
    from overfit_cli.sweeps.store import RunDirectory


@dataclass(frozen=True)
class Found:
    """A run directory that a figure was drawn from, where it lies now.

    Attributes:
        directory: it.
        figure: the figure, as its study has it.
        data: what it holds, of the chosen cells.
        now: what a record would say of it.
    """

    directory: RunDirectory
    figure: Figure
    data: FigureData
    now: RunRecord


def find_run(record: Provenance, place: int, file: Path, named: Sequence[Path]) -> Found | str:
    """Return a run directory of a figure, or why there is none.

    The first one with the run's cells is taken; where there is none, the first one that lies where
    the run should.

    Args:
        record: the figure's.
        place: which of its sources.
        file: the figure.
        named: directories to look at, and no others; empty for those that the record names, and
            all in `results/`.
    """
    run = record.sources[place]
    other: Found | None = None
    trouble = f"No run directory here holds these cells: {run.path} isn't there, and none in "
    trouble += f"{RESULTS}/ has them; name it with --from DIR."
    for path in _places(run, place, file, named):
        try:
            found = _load(record, path)
        except UserError as error:
            why = str(error).removeprefix(f"--from {path}: ")
            trouble = f"{path} can't be used: {why}"
            continue
        if found.now.key == run.key:
            return found
        other = other or found
    for path in [] if named else sorted(RESULTS.glob("*")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            copy = _copy(record, run, path)
        if copy is not None:
            return copy
    return other or trouble


def _places(run: RunRecord, place: int, file: Path, named: Sequence[Path]) -> Iterator[Path]:
    """Where the run should lie: what the user names, in this order, or what the record says."""
    if named:
        yield from [*named[place : place + 1], *named]
        return
    yield from filter(_is_folder, [Path(run.path)])
    yield from filter(_is_folder, [file.parent / run.beside] if run.beside else [])


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # such as that of a name that is too long
        return False


def _load(record: Provenance, path: Path) -> Found:
    from overfit_cli.sweeps.store import RunDirectory

    directory = RunDirectory(path)
    figure, data = figure_and_data(record.figure, directory, record.where)
    return Found(directory, figure, data, run_record(directory, data, figure, record.options))


def _copy(record: Provenance, run: RunRecord, path: Path) -> Found | None:
    """What lies at `path`, if it has the run's cells."""
    from overfit_cli.sweeps.store import RunDirectory

    try:
        if RunDirectory(path).study_name() != run.study:
            return None
        found = _load(record, path)
    except UserError:
        return None
    return found if found.now.key == run.key else None
