"""The run directories of a figure, found where they lie now."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from overfit_cli.cli.common import RESULTS
from overfit_cli.drawing import figure_and_data
from overfit_cli.errors import UserError
from overfit_cli.figure import Figure, FigureData
from overfit_cli.recording import run_record

if TYPE_CHECKING:
    from overfit_cli.figures.provenance import Provenance, RunRecord
    from overfit_cli.sweeps.store import RunDirectory

SAME, SAME_CELLS, OTHER, UNUSABLE = 3, 2, 1, 0
"""How well what lies somewhere fits a run, best first."""


@dataclass(frozen=True, eq=False)
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


def find_runs(record: Provenance, file: Path, named: Sequence[Path]) -> list[Found | str]:
    """Return the run directories of a figure, in the record's order, each or why there is none.

    Each run is the named directory that has its cells, or else one that has none of the others'. A
    run that none is left for is looked for where the record says, and in `results/`.

    Args:
        record: the figure's.
        file: the figure.
        named: directories that the user named.
    """
    spare, found = [_tried(record, path) for path in named], dict[int, Found | str]()
    for least in (SAME, SAME_CELLS, UNUSABLE):
        for place, run in enumerate(record.sources):
            fitting = [one for one in spare if _fit(run, one) >= least]
            if place not in found and fitting:
                found[place] = fitting[0]
                spare.remove(fitting[0])
    return [
        found[place] if place in found else _search(record, run, file)
        for place, run in enumerate(record.sources)
    ]


def _fit(run: RunRecord, one: Found | str) -> int:
    if isinstance(one, str):
        return UNUSABLE
    if one.now.key != run.key:
        return OTHER
    return SAME if one.now.data == run.data else SAME_CELLS


def _search(record: Provenance, run: RunRecord, file: Path) -> Found | str:
    """The directory that fits a run best: where the record says, or else in `results/`."""
    best: Found | str = (
        f"No run directory here holds these cells: {run.path} isn't one, and none in {RESULTS}/ "
        "has them; name it with --from DIR."
    )
    beside = [_shown(file.resolve().parent / run.beside)] if run.beside else []
    for path in filter(_holds_cells, [Path(run.path), *beside]):
        found = _tried(record, path)
        if _fit(run, found) == SAME:
            return found
        best = found if isinstance(best, str) or _fit(run, found) > _fit(run, best) else best
    for path in filter(_holds_cells, sorted(RESULTS.glob("*"))):
        found = _copy(record, run, path)
        best = found if _fit(run, found) > max(_fit(run, best), OTHER) else best
    return best


def _holds_cells(path: Path) -> bool:
    try:
        return (path / "cells").is_dir()
    except OSError:  # such as that of a name that is too long
        return False


def _shown(path: Path) -> Path:
    """The path from here where it lies below, else in full."""
    whole, here = path.resolve(), Path.cwd()
    return whole.relative_to(here) if whole.is_relative_to(here) else whole


def _tried(record: Provenance, path: Path) -> Found | str:
    """What lies at `path`, or why it can't be used."""
    from overfit_cli.sweeps.store import RunDirectory

    directory = RunDirectory(path)
    try:
        figure, data = figure_and_data(record.figure, directory, record.where)
    except UserError as error:
        return f"{path} can't be used: {str(error).removeprefix(f'--from {path}: ')}"
    return Found(directory, figure, data, run_record(directory, data, figure, record.options))


def _copy(record: Provenance, run: RunRecord, path: Path) -> Found | str:
    """The same of a directory that nobody named, if it is of the run's study, without a word."""
    from overfit_cli.sweeps.store import RunDirectory

    with warnings.catch_warnings(), contextlib.suppress(UserError):
        warnings.simplefilter("ignore")
        if RunDirectory(path).study_name() == run.study:
            return _tried(record, path)
    return ""
