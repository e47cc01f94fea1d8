"""Reproduction of the kept reference results: every cell is trained again and compared row by row.

`python -m benchmarks.reproduce [DIR ...]`; without directories, all in `results/`. Keys may differ:
cells are matched by their parameters and seed. A number has changed if it differs by more than the
tolerance of its precision, relative to the larger of 1e-6 and itself. On another kind of machine
last bits differ, and a long training can make much of them.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from overfit_cli.core.cell import Cell
from overfit_cli.core.cells import Cells
from overfit_cli.core.options import SweepOptions
from overfit_cli.core.parameters import describe, parameters_from_row
from overfit_cli.core.training import Execution
from overfit_cli.sweeps.executors import Local, Run
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.load import load_run
from overfit_cli.sweeps.plan import make_plan
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import Work

TOLERANCE = {"float32": 1e-3, "float64": 1e-9}
"""The engines' stated tolerances, by the precision of a cell."""

SMALLEST = 1e-6
"""Numbers below this are compared absolutely."""


@dataclass(frozen=True)
class Comparison:
    """How two tables of the same rows differ.

    Attributes:
        rows: how many there are.
        identical: how many have the same numbers, bit for bit.
        changed: how many have a number that differs by more than the tolerance.
        largest: the largest relative difference.
        where: its column.
    """

    rows: int
    identical: int
    changed: int
    largest: float
    where: str

    def __str__(self) -> str:
        """Say it in a line."""
        words = f"{self.identical} of {self.rows} rows identical, {self.changed} changed"
        if self.identical == self.rows:
            return words
        return f"{words}; the largest relative difference is {self.largest:.1e}, in {self.where}"


def compare(kept: pd.DataFrame, again: pd.DataFrame, columns: list[str]) -> Comparison:
    """Compare numbers in tables that have the same index, and a column `tolerance`."""
    again = again.loc[kept.index]
    differences = pd.DataFrame(index=kept.index)
    for name in columns:
        one, other = (
            table[name].to_numpy(dtype=np.float64, na_value=np.nan) for table in (kept, again)
        )
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        with np.errstate(invalid="ignore"):
            scale = np.maximum(np.abs(one), SMALLEST)
            differences[name] = np.where(same, 0.0, np.abs(one - other) / scale)
    differences = differences.fillna(np.inf)
    largest = differences.max(axis=1)
    return Comparison(
        rows=len(kept),
        identical=int((largest == 0).sum()),
        changed=int((largest > kept["tolerance"]).sum()),
        largest=float(largest.max()),
        where=str(differences.max().idxmax()),
    )


def train_again(data: Cells, directory: RunDirectory) -> Cells:
    """Train the cells of a run into another directory."""
    study = data.study
    cells = [
        Cell(
            study.name, study.version, parameters_from_row(study.parameters, row), int(row["seed"])
        )
        for _, row in data.trained.iterrows()
    ]
    study.prepare(cells)
    logged = not data.steps.empty
    plan = make_plan(
        Grid(study, {}, (0,)), directory, "cpu", SweepOptions(trajectories=logged), cells
    )
    directory.prepare()
    Run(plan, directory, Work(study, Execution(trajectories=logged)), Local(2)).execute()
    return load_run(directory)


def reproduce(path: Path) -> bool:
    """Train a run's cells again, say how the rows compare, and whether none has changed."""
    data = load_run(RunDirectory(path))
    with tempfile.TemporaryDirectory() as folder:
        again = train_again(data, RunDirectory(Path(folder)))
    names = ["seed", *describe(data.study.parameters)]
    measured = [one.name for one in data.study.columns if one.name in data.trained]
    kept, new = (_cells(part, names) for part in (data, again))
    of_cells = compare(kept, new, ["steps", *measured])
    other_ends = int((kept["status"] != new.loc[kept.index, "status"]).sum())
    print(f"{path}: cells: {of_cells}; {other_ends} end otherwise", flush=True)
    ok = of_cells.changed == 0 and other_ends == 0
    if not data.steps.empty:
        logged = [one.name for one in data.study.trajectory_columns if one.name in data.steps]
        of_steps = compare(_steps(data, names), _steps(again, names), logged)
        print(f"{path}: logged steps: {of_steps}", flush=True)
        ok = ok and of_steps.changed == 0
    return ok


def _cells(data: Cells, names: list[str]) -> pd.DataFrame:
    """The cells by what they are, with the tolerance of each."""
    cells = data.trained.assign(tolerance=data.trained["dtype"].map(TOLERANCE))
    return cells.set_index(names).sort_index()


def _steps(data: Cells, names: list[str]) -> pd.DataFrame:
    """The logged steps by cell and step, with the tolerance of each."""
    cells = data.trained.assign(tolerance=data.trained["dtype"].map(TOLERANCE))
    steps = data.steps.merge(cells[["key", "tolerance", *names]], on="key")
    return steps.set_index([*names, "step"]).sort_index()


def main() -> None:
    """Reproduce the directories that are named, or all; exit with 1 where a row has changed."""
    named = [Path(word) for word in sys.argv[1:]]
    kept = sorted(path.parent for path in Path("results").glob("*/cells"))
    unchanged = [reproduce(path) for path in named or kept]
    sys.exit(0 if all(unchanged) else 1)


if __name__ == "__main__":
    main()
