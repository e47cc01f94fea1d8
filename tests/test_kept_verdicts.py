"""The kept cells, judged again: the verdicts of the report that comes with them."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import Any

import pytest

import overfit_cli
from overfit_cli import Measurement
from overfit_cli.core.registry import claims_of
from overfit_cli.report.runs import load_runs
from overfit_cli.sweeps.store import RunDirectory
from tests.kept import RESULTS, RUNS, kept_claims

pytestmark = pytest.mark.filterwarnings("ignore")  # as in a command, which counts no warning
CLAIMS = kept_claims()
SMALL = 100_000
"""Bytes of cells and steps up to which a run directory is judged quickly."""


def as_kept(measurement: Measurement) -> dict[str, Any]:
    interval = measurement.interval
    ends = {} if interval is None else {"low": interval.low, "high": interval.high}
    numbers = {"value": measurement.value, "low": ends.get("low"), "high": ends.get("high")}
    finite = {
        name: one if one is not None and math.isfinite(one) else None
        for name, one in numbers.items()
    }
    return {"verdict": measurement.verdict, **finite}


def kept(claim: dict[str, Any]) -> dict[str, Any]:
    ends = claim["interval"] or {"low": None, "high": None}
    numbers = {"value": claim["value"], "low": ends["low"], "high": ends["high"]}
    close = {
        name: one if one is None else pytest.approx(one, rel=1e-9, abs=0)
        for name, one in numbers.items()
    }
    return {"verdict": claim.get("by_itself", claim["verdict"]), **close}


def of_size(run: Path) -> Any:
    size = sum(path.stat().st_size for path in run.rglob("*.parquet"))
    large = size > SMALL or len(CLAIMS[run.name]) > 10
    return pytest.param(run, id=run.name, marks=[pytest.mark.slow] if large else [])


@pytest.mark.parametrize("run", [of_size(run) for run in RUNS if CLAIMS[run.name]])
def test_the_claims_of_a_kept_run_have_their_verdicts_and_numbers(run: Path) -> None:
    [loaded] = load_runs([RunDirectory(run)], RESULTS)
    claims = {claim.name: claim for claim in claims_of(loaded.study)}
    for claim in (claim for claim in CLAIMS[run.name] if claim["claim"] in claims):
        measured = loaded.judge(claims[claim["claim"]])
        assert as_kept(measured) == kept(claim), claim["claim"]


@pytest.mark.slow
def test_the_claims_of_all_kept_runs_have_their_verdicts_together() -> None:
    with contextlib.chdir(RESULTS.parent):
        judged = {one.claim.name: one.joint_verdict for one in overfit_cli.judge() if one.family}
    every = [claim for of_run in CLAIMS.values() for claim in of_run if claim["family"]]
    assert judged == {claim["claim"]: claim["family"]["verdict"] for claim in every}
