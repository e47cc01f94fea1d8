"""Each kept run: its cells, trained again, have their numbers, and its claims their verdicts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import overfit_cli
from overfit_cli import UserError
from overfit_cli.core.cell import Cell
from overfit_cli.core.parameters import parameters_from_row
from overfit_cli.core.registry import claims_of
from overfit_cli.core.study import AnyStudy
from overfit_cli.report.runs import load_runs
from overfit_cli.sweeps.load import load_run
from overfit_cli.sweeps.store import RunDirectory
from tests.kept import RESULTS, RUNS, kept_claims
from tests.training import train_in_batches

CLAIMS = kept_claims()

TOLERANCE = {"float32": 1e-3, "float64": 1e-6}
"""By the precision of a cell: the kept rows are of processors that round differently."""

LOOSE = {"fig2-quick": 0.1, "kernel-tangent-quick": 1e-3, "theorem-regime-quick": 0.1}
"""Runs whose numbers depend more on last bits: many steps of float32, differences near 1e-18."""

CHAOTIC = {
    *("heads-fig6-quick", "kernel-fig3-quick", "kernel-fig4-quick", "kernel-tangent-steps-quick"),
    *("kernel-theorem2-near-quick", "kernel-theorem3-near-quick"),
}
"""Runs with numbers that last bits decide: `make same-rows` has them."""

SMALLEST = 1e-6
"""Numbers below this are compared absolutely."""

QUICK, LONGEST = 0.01, 5.0
"""Seconds that the cells of a run took: of a quick test, and of any; `make same-rows` has all."""

SMALL = 100_000
"""Bytes of cells and steps up to which a run directory is judged quickly."""


def case(run: Path, *values: object, quick: bool) -> Any:
    return pytest.param(run, *values, id=run.name, marks=[] if quick else [pytest.mark.slow])


# Cells


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


def cases_of_cells() -> Iterator[Any]:
    for run in RUNS:
        data = load_run(RunDirectory(run))
        rows = cheapest(data.study, data.trained)
        seconds = rows["seconds"].sum()
        if seconds <= LONGEST and run.name not in CHAOTIC:
            yield case(run, data.study, rows, quick=seconds <= QUICK)


@pytest.mark.parametrize(("run", "study", "rows"), list(cases_of_cells()))
def test_cells_of_a_kept_run_have_their_numbers(
    run: Path, study: AnyStudy, rows: pd.DataFrame
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
        kept = row[["steps", *measured_columns(study, rows)]].dropna().astype(float)
        again = pd.Series({"steps": result.steps, **result.measurements}, dtype=float)[kept.index]
        assert again.notna().all()
        tolerance = LOOSE.get(run.name, TOLERANCE[row.get("dtype", "float64")])
        far = (again - kept).abs() > tolerance * kept.abs().clip(lower=SMALLEST)
        assert not far.any(), (again[far], kept[far])


# Verdicts


@pytest.mark.filterwarnings("ignore")  # as in a command, which counts no warning
@pytest.mark.parametrize(
    "run",
    [
        case(
            run,
            quick=len(CLAIMS[run.name]) <= 10
            and sum(path.stat().st_size for path in run.rglob("*.parquet")) <= SMALL,
        )
        for run in RUNS
        if CLAIMS[run.name]
    ],
)
def test_the_claims_of_a_kept_run_have_their_verdicts_and_numbers(run: Path) -> None:
    [loaded] = load_runs([RunDirectory(run)])
    claims = {claim.name: claim for claim in claims_of(loaded.study)}
    for kept in CLAIMS[run.name]:
        if kept["claim"] in claims:
            again = loaded.judge(claims[kept["claim"]])
            ends = (again.interval.low, again.interval.high) if again.interval else (None, None)
            told = np.array([again.value, *ends], dtype=float)
            interval = kept["interval"] or {}
            numbers = [kept["value"], interval.get("low"), interval.get("high")]
            assert again.verdict == kept.get("by_itself", kept["verdict"]), kept["claim"]
            told[np.isinf(told)] = np.nan  # a report has no infinite numbers
            np.testing.assert_allclose(told, np.array(numbers, dtype=float), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_claims_of_all_kept_runs_have_their_verdicts_together() -> None:
    with contextlib.chdir(RESULTS.parent):
        judged = {one.claim.name: one.joint_verdict for one in overfit_cli.judge() if one.family}
    every = [claim for of_run in CLAIMS.values() for claim in of_run if claim["family"]]
    assert judged == {claim["claim"]: claim["family"]["verdict"] for claim in every}
