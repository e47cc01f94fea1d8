"""One side of a comparison: chosen cells of a run directory, or published points."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from overfit_cli.core.arrays import finite_column
from overfit_cli.core.parameters import Value, describe
from overfit_cli.core.study import AnyStudy
from overfit_cli.report.published import read_published
from overfit_cli.stats.pairs import setting_key
from overfit_cli.sweeps.load import (
    chosen_cells,
    load_study_and_cells,
    parameters_in,
    read_selections,
)
from overfit_cli.sweeps.store import RunDirectory


@dataclass(frozen=True)
class Side:
    """One side of a comparison: chosen cells of a run directory, or published points.

    Attributes:
        where: the conditions that choose cells of this side alone.
        cells: one row per cell, done and failed; published points may lack `seed`.
        version: the cells' numerical version; None of published points.
    """

    letter: str
    path: Path
    where: tuple[str, ...]
    study: AnyStudy
    cells: pd.DataFrame
    parameters: tuple[str, ...]
    version: int | None
    is_chosen: bool

    @property
    def is_published(self) -> bool:
        """Whether it is a file of published points, and no run."""
        return self.version is None

    @property
    def is_of_another_version(self) -> bool:
        """Whether the installed study has another numerical version than the cells."""
        return self.version not in (None, self.study.version)

    @property
    def failed(self) -> int:
        """The number of its failed cells."""
        return int((self.cells["status"] == "failed").sum())

    def values(self, name: str) -> list[Value]:
        """Return the distinct values of a parameter, in order; none where it has no column."""
        values = self.cells[name].dropna().unique().tolist() if name in self.cells else []
        return sorted({setting_key(value): value for value in values}.values())

    def columns(self) -> list[str]:
        """Return the measured columns with numbers, the headline first; without `seconds`."""
        names = [self.study.headline, *(column.name for column in self.study.columns), "steps"]
        present = [name for name in dict.fromkeys(names) if name in self.cells]
        return [name for name in present if finite_column(self.cells, name).notna().any()]


def load_side(
    path: Path,
    letter: str,
    where: Sequence[str],
    where_here: Sequence[str],
    other: Side | None = None,
) -> Side:
    """Load a run directory, whatever version its cells have, or a file of published points.

    Args:
        path: the run directory, or the CSV file; a name that is no file here may be that of one
            beside the study's code.
        where: conditions on both sides; those on columns that a CSV file lacks don't apply to it.
        other: the run that published points are compared with; None for a run.
    """
    version = None
    if other is None:
        study, cells = load_study_and_cells(RunDirectory(path, letter.lower()), any_version=True)
        parameters, version = parameters_in(cells), int(cells["version"].iloc[0])
        shared = read_selections(where, study)
    else:
        grid = {name: other.values(name) for name in other.parameters}
        path = _resolve(path, other.study)
        study, cells = other.study, read_published(path, other.study, grid)
        parameters = [name for name in describe(study.parameters) if name in cells]
        shared = [choice for choice in read_selections(where, study) if choice.name in cells]
    chosen = [*shared, *read_selections(where_here, study, f"where_{letter.lower()}")]
    cells = chosen_cells(cells, chosen).reset_index(drop=True)
    names = tuple(parameters)
    return Side(letter, path, tuple(where_here), study, cells, names, version, bool(chosen))


def _resolve(path: Path, study: AnyStudy) -> Path:
    module = sys.modules[type(study).__module__].__file__
    beside = Path(module).with_name(str(path)) if module and path.name == str(path) else path
    return beside if beside.is_file() and not path.exists() else path
