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
from overfit_cli.sweeps.load import load_study_and_cells
from overfit_cli.sweeps.store import RunDirectory
from tests.kept import RUNS
from tests.training import train_in_batches

TOLERANCE = {"float32": 1e-3, "float64": 1e-9}
"""Tolerances of the engines, as in `benchmarks.reproduce`: processors round differently."""

SMALLEST = 1e-6
"""Numbers below this are compared absolutely."""

QUICK, LONGEST = 0.02, 30.0
"""Kept seconds of a run's cells: at most the first in a quick test, the last in any."""


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
        study, cells = load_study_and_cells(RunDirectory(run))
        rows = cheapest(study, cells)
        seconds = rows["seconds"].sum()
        if seconds <= LONGEST:
            marks = [pytest.mark.slow] if seconds > QUICK else []
            yield pytest.param(study, rows, id=run.name, marks=marks)


@pytest.mark.parametrize(("study", "rows"), cases())
def test_cells_of_a_kept_run_have_their_numbers(study: AnyStudy, rows: pd.DataFrame) -> None:
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
        tolerance = TOLERANCE[row.get("dtype", "float64")]
        numbers = {name: row[name] for name in measured_columns(study, rows)}
        again = {name: result.measurements.get(name, np.nan) for name in numbers}
        assert (result.status, result.reason) == (row["status"], row["reason"])
        assert result.steps == pytest.approx(row["steps"], rel=tolerance)
        for name, number in numbers.items():
            kept = np.nan if pd.isna(number) else float(number)
            close = tolerance * max(abs(kept), SMALLEST)
            assert again[name] == pytest.approx(kept, rel=0, abs=close, nan_ok=True), name
