"""Cells that say nothing decide no claim: those of killed workers, and those without numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import overfit_cli
from calibration.rates import design, worlds_of
from overfit_cli.core.registry import claims_of, find_study, installed_studies
from overfit_cli.core.training import named_rng
from overfit_cli.report.judge import judge_cells

UNDECIDED = {"inconclusive", "vacuous", "not run"}


QUICK = ("fig1-sides", "theorem3-rate")
CLAIMS = {
    claim.name: (study, claim)
    for study in installed_studies()
    if worlds_of(study)
    for claim in claims_of(study)
}


@pytest.mark.parametrize(
    "name",
    [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in CLAIMS],
)
def test_a_claim_is_open_where_numbers_that_decide_it_are_missing(name: str) -> None:
    """On half of the seeds of its made-up worlds, or on all; and where workers were killed."""
    study, claim = CLAIMS[name]
    worlds, planned = worlds_of(study)[name], design(claim.preset)
    for world in (worlds.true, worlds.false):
        cells = world(planned, named_rng(1, "doctored", name)).reset_index(drop=True)
        half = cells["seed"] % 2 == 0
        measured = [str(name) for name in cells if name not in {*planned, "key", "number", "step"}]
        verdict = claim.judge(cells).verdict
        for column in measured:
            numbers = cells[column].astype(float)
            without = claim.judge(cells.assign(**{column: np.nan})).verdict
            partly = claim.judge(cells.assign(**{column: numbers.mask(half)}))
            some = partly.verdict
            assert {without, some} <= {*UNDECIDED, verdict}, column
            # A case refutes whatever else is lost; cells that meet a hypothesis are judged alone.
            decided = partly.decided == "case" or without in (verdict, "vacuous")
            assert some in UNDECIDED or decided, column
        lost = cells.assign(
            status=np.where(half, "failed", "done"),
            reason=np.where(half, "worker killed", ""),
            **{column: cells[column].astype(float).mask(half) for column in measured},
        )
        measured_rest = claim.judge(lost)  # one exception among the rest refutes a theorem
        assert measured_rest.verdict in UNDECIDED or measured_rest.decided == "case"


NEVER_FAR_ENOUGH = (
    *(
        "fig1-exponent",
        "fig1-fitted",
        "fig2-fitted",
        "theorem-benign-steps",
        "theorem-benign-powers",
    ),
    *("theorem-harmful-", "lemma52-lead", "lemma-e3-lead", "stage3-lead-", "dynamics-", "zero-"),
    *("landscape-real-minima", "landscape-minima", "pathfinder-lra-gaussian-steadier-epochs"),
    *("trapped-softmax", "tangent-slower", "sizes-lambda-b", "softmax-width-lambda-power"),
    *("softmax-theorem42", "softmax-steps-lambda-power", "softmax-steps-condition-power"),
    *("diffusion-falls", "diffusion-theorem66"),
)
"""How claims begin that the cells of `further_off` leave open; the studies' tests break them."""


def further_off(true: pd.DataFrame, false: pd.DataFrame, times: int, by: str) -> pd.DataFrame:
    """Cells that lie beyond the false ones, as seen from the true ones: so many times as far."""
    made = false.copy()
    for name in {*false.select_dtypes("number")} - {"seed", "number", "step", "steps"}:
        start, end = true[name].to_numpy(float), false[name].to_numpy(float)
        with np.errstate(all="ignore"):
            further = end * (end / start) ** times if by == "ratio" else end + times * (end - start)
        known = np.isfinite(further) & ((start > 0) & (end > 0) | (by == "difference"))
        made[name] = np.where(known, further, end)
    return made


LARGE = ("fig1-", "dimension-", "softmax-width", "text-", "lemma53-")
"""Claims on many cells, or on many bootstraps of them."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name.startswith(LARGE) or index % 3 else [])
        for index, name in enumerate(CLAIMS)
    ],
)
def test_a_claim_holds_where_it_is_true_and_fails_beyond_where_it_is_false(name: str) -> None:
    """And is open where no cell has a number."""
    study, claim = CLAIMS[name]
    worlds, planned = worlds_of(study)[name], design(claim.preset)
    verdicts, is_exempt = set[str](), name.startswith(NEVER_FAR_ENOUGH)
    for draw in range(8):
        true, false = (
            world(planned, named_rng(draw, "beyond", name)).reset_index(drop=True)
            for world in (worlds.true, worlds.false)
        )
        blank = true.assign(**dict.fromkeys({*true} - {*planned, "key", "number", "step"}, np.nan))
        killed = blank.assign(status="failed", reason="worker killed")
        assert {claim.judge(each).verdict for each in (blank, killed)} <= UNDECIDED
        verdicts.add(claim.judge(true).verdict)
        for times, by in itertools.product((0, 1, 5, 50), ("difference", "ratio")):
            if not is_exempt and "fails" not in verdicts:
                verdicts.add(claim.judge(further_off(true, false, times, by)).verdict)
        if "holds" in verdicts and (is_exempt or "fails" in verdicts):
            return
    raise AssertionError(verdicts)


@pytest.mark.slow
def test_a_single_logged_step_tells_no_growth() -> None:
    steps = overfit_cli.load("results/dynamics-quick", trajectories=True).drop(columns="key")
    first = steps[steps["step"] == 0].drop(columns="steps", errors="ignore")
    growing = {
        one.name: one.measurement.verdict
        for one in judge_cells(first, find_study("benign-vit"))
        if "growth" in one.name or "products" in one.name
    }
    assert len(growing) >= 6
    assert {*growing.values()} <= UNDECIDED
