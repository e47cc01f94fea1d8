"""Claims on the generalisation gap of heads that learn a planted one, against samples.

Theorem 2 and Corollary 2 of Deora et al. 2024 bound the expected gap, test loss less training loss,
by Õ(1/n). Their conditions ask for more heads than any cell has: `theorem2_heads`. The claims on
powers therefore ask whether the rate is found where the theorem does not reach.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection
from overfit_cli.claims.rules import Margin, exponentiate, judge_estimate, judge_estimates
from overfit_cli.core.arrays import Floats
from overfit_cli.core.claim import Claim, Measurement
from overfit_cli.stats.crossings import crossing
from overfit_cli.stats.intervals import level_of_each, median_estimate
from overfit_cli.studies.multihead.claims import (
    PAPER_NAME,
    independent_seeds,
    numbers,
    theorem_claims,
)
from overfit_cli.studies.multihead.planted.parameters import MultiheadPlantedParameters

PRESET = "heads-gap"
HEADS = (1, 5, 50)
SAMPLES = (62, 125, 250, 500, 1000, 2000)
LEARNED_AT = 0.1
"""The test error below which samples suffice: in pilot runs 0.3 with few, and 0 with many."""

AT_LEAST_ONE_OVER_N = Margin(most=-1.0, because="the bound is Õ(1/n)", fewest_seeds=10)
ONE_OVER_N = Margin(
    least=-1.25, most=-0.75, because="a quarter on both sides of 1/n", fewest_seeds=10
)
TRANSITION = Margin(
    least=250, most=500, because="where five runs of 5 heads turned in a pilot", fewest_seeds=10
)
MORE_SAMPLES = Margin(least=1.0, because="1 is as many", fewest_seeds=10)


def _select(cells: pd.DataFrame) -> pd.DataFrame:
    return Selection(
        MultiheadPlantedParameters,
        at={"optimiser": "gd", "step_rule": "sqrt-heads", "learning_rate": 1.0},
        vary={"heads", "n"},
        alike={"certify", "test_samples"},
        includes={"heads": HEADS, "n": SAMPLES},
        preset=PRESET,
    ).of(cells)


def _logs(cells: pd.DataFrame, n: int, unknown: float) -> pd.DataFrame:
    """The logarithm of the gap with n samples, (seeds, heads); −∞ where it is not positive."""
    gap = numbers(cells, "test_loss") - numbers(cells, "train_loss")
    logs = pd.Series(np.log(gap.where(gap > 0)), gap.index).where(gap.isna() | (gap > 0), -math.inf)
    logs = logs.where(gap.notna(), unknown)
    chosen = cells["n"] == n
    by_heads: pd.DataFrame = logs[chosen].groupby([cells["seed"], cells["heads"]]).mean().unstack()
    return by_heads


def _power(cells: pd.DataFrame, first: int, margin: Margin) -> Measurement:
    """Measure the power of n in the gap from `first` samples to the most, for each H."""
    chosen = _select(cells)
    last = max(SAMPLES)
    span = math.log(last / first)
    level = level_of_each(len(HEADS))
    with np.errstate(invalid="ignore"):
        least = (_logs(chosen, last, -math.inf) - _logs(chosen, first, math.inf)) / span
        most = (_logs(chosen, last, math.inf) - _logs(chosen, first, -math.inf)) / span
    least, most = least.fillna(-math.inf), most.fillna(math.inf)
    return judge_estimates(
        {
            f"power of n, H = {heads}": (
                independent_seeds(
                    median_estimate(least[heads], level, up_to=most[heads]),
                    chosen,
                    MultiheadPlantedParameters,
                ),
                margin,
            )
            for heads in HEADS
        },
        details=_medians(chosen),
        note=f"Of test loss less training loss after 1000 steps, from {first} to {last} samples.",
    )


def _medians(cells: pd.DataFrame) -> dict[str, float]:
    gap = numbers(cells, "test_loss") - numbers(cells, "train_loss")
    medians = gap.groupby([cells["heads"], cells["n"]]).median()
    return {
        f"median gap, H = {heads}, n = {n}": float(medians[heads, n])
        for heads in HEADS
        for n in SAMPLES
    }


def samples_needed(cells: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the least and the most log n at which the test error falls below a tenth.

    Each is (seeds, heads). Between two numbers of samples the log-odds of the error are
    interpolated, with no error counted as half of one; it is ∞ where none suffices, and anything
    where a cell failed.
    """
    half = 0.5 / cells["test_samples"].astype(float)
    errors = numbers(cells, "test_error").clip(lower=half, upper=1 - half)
    by_n = errors.groupby([cells["seed"], cells["heads"], cells["n"]]).mean().unstack()
    samples = by_n.columns.to_numpy(float)

    def needed(row: pd.Series[float]) -> float:
        values: Floats = np.asarray(row, np.float64)
        if np.isnan(values).any():
            return math.nan
        if (values > LEARNED_AT).all():
            return math.inf
        if (values < LEARNED_AT).all():
            return -math.inf
        return math.log(crossing(samples, values, LEARNED_AT))

    at = by_n.apply(needed, axis=1).unstack()
    return at.fillna(-math.inf), at.fillna(math.inf)


def _transition(cells: pd.DataFrame) -> Measurement:
    """Measure the n at which the test error of five heads falls below a tenth."""
    chosen = _select(cells)
    least, most = samples_needed(chosen)
    estimate = median_estimate(least[5], up_to=most[5])
    return judge_estimate(
        independent_seeds(exponentiate(estimate), chosen, MultiheadPlantedParameters),
        TRANSITION,
        details={f"median n, H = {heads}": float(np.exp(least[heads].median())) for heads in HEADS},
        note="The n at which the test error falls below a tenth, five heads.",
    )


def _more_samples(cells: pd.DataFrame) -> Measurement:
    """Measure the samples that 50 heads need over those that one head needs."""
    chosen = _select(cells)
    least, most = samples_needed(chosen)
    with np.errstate(invalid="ignore"):
        low, high = least[50] - most[1], most[50] - least[1]
    estimate = median_estimate(low.fillna(-math.inf), up_to=high.fillna(math.inf))
    return judge_estimate(
        independent_seeds(exponentiate(estimate), chosen, MultiheadPlantedParameters),
        MORE_SAMPLES,
        details={f"median n, H = {heads}": float(np.exp(least[heads].median())) for heads in HEADS},
        note="The n at which the test error falls below a tenth, with 50 heads over one.",
    )


_OURS = f"{PAPER_NAME}, Theorem 2 and Corollary 2, at numbers of heads that these do not cover"
_POWER = "for each H the median power of n"

CLAIMS = (
    *(claim for claim in theorem_claims("planted", PRESET) if claim.name.endswith("2")),
    Claim(
        name="planted-gap-rate",
        kind="ours",
        source=_OURS,
        statement="With 1, 5 and 50 heads the test loss less the training loss falls at least as "
        "fast as 1/n, from 500 to 2000 samples, 1000 steps of √H.",
        holds_where=AT_LEAST_ONE_OVER_N.in_words(_POWER),
        measure=partial(_power, first=500, margin=AT_LEAST_ONE_OVER_N),
        figure="gap",
        preset=PRESET,
    ),
    Claim(
        name="planted-gap-power",
        kind="sharp",
        source=f"{PAPER_NAME}, Theorem 2 and Corollary 2, the bound read as an equality",
        statement="With 1, 5 and 50 heads the test loss less the training loss falls as 1/n from "
        "1000 to 2000 samples, 1000 steps of √H.",
        holds_where=ONE_OVER_N.in_words(_POWER),
        measure=partial(_power, first=1000, margin=ONE_OVER_N),
        figure="gap",
        preset=PRESET,
    ),
    Claim(
        name="planted-gap-transition",
        kind="ours",
        source="ours",
        statement="Five heads learn the planted head from 250 to 500 samples on: there their test "
        "error falls below a tenth.",
        holds_where=TRANSITION.in_words("the median n at which the test error is a tenth"),
        measure=_transition,
        figure="gap",
        preset=PRESET,
    ),
    Claim(
        name="planted-gap-more-heads",
        kind="ours",
        source="ours",
        statement="Fifty heads need more samples than one for a test error of a tenth, 1000 steps "
        "of √H.",
        holds_where=MORE_SAMPLES.in_words("the median ratio of the samples that they need"),
        measure=_more_samples,
        figure="gap",
        preset=PRESET,
    ),
)
