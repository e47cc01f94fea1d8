"""Each kept run: its cells, trained again, have their numbers, and its claims their verdicts."""

from __future__ import annotations

import contextlib
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

LEFT_OUT = """
    fig2 heads-fig6 kernel-example-condition kernel-fig2 kernel-fig3 kernel-fig4
    kernel-tangent-steps kernel-theorem2-balanced kernel-theorem2-near kernel-theorem3-near
"""
"""Profiles with numbers that last bits decide, or of long training: `make same-rows` has them."""

SLOW = """
    attention-deficit heads-certificates heads-fig2 heads-fig3 heads-gap heads-normalised
    heads-planted heads-theorem1 kernel-example kernel-fig4-pathfinder kernel-linear-layers
    kernel-theorem1 kernel-theorem2 kernel-theorem3 positional-phase positional-published
    positional-sizes softmax-scores softmax-scores-digits softmax-scores-gd theorem-dynamics
    theorem-first-stage theorem-harmful theorem-small-values
"""
"""Profiles whose cheapest cells are no quick test."""

SMALLEST = 1e-6
"""Numbers below this are compared absolutely."""

SMALL, MANY_LEVELS = 100_000, "theorem-small-values"
"""Bytes of cells and steps up to which a run directory is judged quickly, but for this one."""


def case(run: Path, *, quick: bool) -> Any:
    return pytest.param(run, id=run.name, marks=[] if quick else [pytest.mark.slow])


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


def profile(run: Path) -> str:
    """The preset's name, of a run directory `NAME-quick` or `NAME-paper`."""
    return run.name.removesuffix("-quick").removesuffix("-paper")


@pytest.mark.parametrize(
    "run",
    [
        case(run, quick=profile(run) not in SLOW.split())
        for run in RUNS
        if profile(run) not in LEFT_OUT.split()
    ],
)
def test_cells_of_a_kept_run_have_their_numbers(run: Path) -> None:
    data = load_run(RunDirectory(run))
    study, rows = data.study, cheapest(data.study, data.trained)
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
            quick=profile(run) != MANY_LEVELS
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
