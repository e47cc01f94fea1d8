"""Cells of each kept run, trained again: their rows are the kept ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from overfit_cli import UserError
from overfit_cli.core.cell import Cell
from overfit_cli.core.parameters import parameters_from_row
from overfit_cli.core.study import AnyStudy
from overfit_cli.sweeps.load import load_run
from overfit_cli.sweeps.store import RunDirectory
from tests.kept import RUNS
from tests.training import train_in_batches

TOLERANCE = {"float32": 1e-3, "float64": 1e-6}
"""By the precision of a cell: the kept rows are of processors that round differently."""

LOOSE = {
    "fig2-quick": 0.1,
    "kernel-tangent-quick": 1e-3,
    "theorem-regime-quick": 0.1,
}
"""Runs whose numbers depend more on last bits: many steps of float32, differences near 1e-18."""

CHAOTIC = {
    "heads-fig6-quick",
    "kernel-fig3-quick",
    "kernel-fig4-quick",
    "kernel-tangent-steps-quick",
    "kernel-theorem2-near-quick",
    "kernel-theorem3-near-quick",
}
"""Runs with numbers that last bits decide: the cells end alike, with a number in each column."""

SMALLEST = 1e-6
"""Numbers below this are compared absolutely."""

QUICK, LONGEST = 0.01, 30.0
"""Seconds that the cells of a run took: of a quick test, and of any."""


def measured_columns(study: AnyStudy, cells: pd.DataFrame) -> list[str]:
    return [
        one.name for one in study.columns if one.name in cells and cells[one.name].notna().any()
    ]


def cheapest(study: AnyStudy, cells: pd.DataFrame) -> pd.DataFrame:
    """The cheapest cells that between them have a number in each column."""
    ordered = cells.sort_values("seconds", kind="stable")
    known = ordered[measured_columns(study, cells)].notna().to_numpy()
    covered, chosen = np.zeros(known.shape[1], dtype=bool), list[int]()
    while not covered.all():
        first = int(np.argmax((known & ~covered).any(axis=1)))
        chosen.append(first)
        covered |= known[first]
    return ordered.iloc[chosen]


def cases() -> Iterator[Any]:
    for run in RUNS:
        data = load_run(RunDirectory(run))
        study, cells = data.study, data.trained
        rows = cheapest(study, cells)
        seconds = rows["seconds"].sum()
        if seconds <= LONGEST:
            marks = [pytest.mark.slow] if seconds > QUICK else []
            yield pytest.param(run.name, study, rows, id=run.name, marks=marks)


@pytest.mark.parametrize(("name", "study", "rows"), list(cases()))
def test_cells_of_a_kept_run_have_their_numbers(
    name: str, study: AnyStudy, rows: pd.DataFrame
) -> None:
    cells = [
        Cell(
            study.name, study.version, parameters_from_row(study.parameters, row), int(row["seed"])
        )
        for _, row in rows.iterrows()
    ]
    assert [cell.key for cell in cells] == list(rows["key"])
    try:
        study.prepare(cells)
    except UserError as error:
        pytest.skip(f"needs data: {error}")
    for result, (_, row) in zip(train_in_batches(study, *cells), rows.iterrows(), strict=True):
        assert (result.status, result.reason) == (row["status"], row["reason"])
        numbers = {column: row[column] for column in ("steps", *measured_columns(study, rows))}
        again = {"steps": result.steps, **result.measurements}
        kept = {column: float(number) for column, number in numbers.items() if not pd.isna(number)}
        assert [column for column in kept if pd.isna(again.get(column, np.nan))] == []
        tolerance = LOOSE.get(name, TOLERANCE[row.get("dtype", "float64")])
        for column, number in kept.items() if name not in CHAOTIC else ():
            close = tolerance * max(abs(number), SMALLEST)
            assert again[column] == pytest.approx(number, rel=0, abs=close), column
