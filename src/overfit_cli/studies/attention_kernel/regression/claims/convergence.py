"""Theorem 3, with W_Q alone trained: which kernel reaches zero loss, and which stops above it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Values, finite_numbers, require_done, require_trained
from overfit_cli.claims.rules import (
    THEOREM_RULE,
    Margin,
    judge_estimates,
    judge_theorem,
    mark_vacuous,
)
from overfit_cli.core.claim import Claim, Measurement, inconclusive
from overfit_cli.stats.intervals import level_of_each, median_estimate, share_estimate
from overfit_cli.studies.attention_kernel.regression.claims.rates import (
    AT_BEST,
    ON_FEW_DRAWS,
    SOURCE,
    cells_meeting,
    condition_claim,
    reached_zero,
    selection,
    unless_condition,
    zero_loss,
)

AT_FLOOR = Margin(most=1.05, because="a loss within a twentieth of its floor", fewest_seeds=7)

LEAST_DESCENT = 0.5
"""η' over η where η is below 1/(2G): the last step of the proof of Theorem 3 (2), appendix 1.5."""

SMALLEST_DECADE = float(np.log10(np.finfo(np.float64).tiny))
_LABELS = {
    "below": "below the hull of the token values",
    "inside": "inside the hull of the token values",
    "mixed-sign": "of random sign",
}
_GAUSSIAN: Values = {"kernel": "gaussian", "trained": "query"}
_SOFTMAX: Values = {"kernel": "softmax", "trained": "query"}
_PRESET = "kernel-theorem3"


def _stops_at_floor(cells: pd.DataFrame, values: Values) -> Measurement:
    """Measure whether softmax stays above zero at every step size, and comes down to its floor."""
    chosen = selection(values, _PRESET).of(cells)
    reached = reached_zero(chosen).groupby(chosen["seed"]).any()
    share = share_estimate(int(reached.sum()), len(reached), level_of_each(2))
    shares = {"share of seeds at zero, at any step size": (share, ON_FEW_DRAWS)}
    fitted = require_done(chosen, 1.0)
    above = fitted[finite_numbers(fitted, "floor") > 0]
    nearest = finite_numbers(above, "floor_ratio").groupby(above["seed"]).min()
    if len(nearest) < len(reached):
        if ON_FEW_DRAWS.verdict(share) == "holds":
            raise inconclusive(
                f"{len(reached) - len(nearest)} of {len(reached)} seeds have a floor of 0: no "
                "finite run tells whether they stop or are slow."
            )
        return judge_estimates(shares)
    # The median: one seed in twenty stops far above its floor, and no t interval knows of it.
    ratio = median_estimate(nearest, level_of_each(2))
    measured = judge_estimates(
        {**shares, "loss over its floor, at each seed's best": (ratio, AT_FLOOR)}
    )
    if measured.verdict != "fails" or ON_FEW_DRAWS.verdict(share) == "fails":
        return measured
    note = f"{measured.note} A loss above its floor has not come down to it yet."
    return replace(measured, verdict="inconclusive", note=note)


def _gradient_above_gamma(cells: pd.DataFrame) -> Measurement:
    """Measure whether the squared gradient is as large as Theorem 3 needs."""
    chosen = selection({**_GAUSSIAN, "target": "below"}, _PRESET).of(cells)
    zero = reached_zero(chosen).groupby(chosen["learning_rate"]).mean()
    if zero.max() == 0:
        raise inconclusive("At no step size did a seed reach zero loss: all may be too large.")
    at_best = chosen[chosen["learning_rate"].isin(zero.index[zero == zero.max()])]
    fitted = cells_meeting("12", require_done(at_best, 1.0))
    least = finite_numbers(fitted, "pl_ratio_min")
    with np.errstate(divide="ignore"):  # a gradient of zero is infinitely many decades below γ
        ratio = least.map(np.log10)
    gamma = finite_numbers(fitted, "log10_gamma")
    details = {
        "decades of γ, median": float(gamma.median()),
        "decades between the gradient and γ, least": float((ratio - gamma).min()),
        "decades between the gradient and γ, most": float((ratio - gamma).max()),
    }
    measured = judge_theorem(ratio < gamma, fitted["seed"], details=details)
    if gamma.max() < SMALLEST_DECADE:
        return mark_vacuous(
            measured,
            f"γ is below 10^{SMALLEST_DECADE:.0f}, the smallest number of double precision: no "
            "gradient that isn't exactly zero could break it.",
            {},
        )
    return unless_condition("12", fitted, measured)


def _descent(cells: pd.DataFrame) -> Measurement:
    """Measure whether softmax's loss falls by η/2 times the squared gradients so far, or more."""
    chosen = selection(_SOFTMAX, _PRESET, any_target=True).of(cells)
    rates = chosen["learning_rate"].astype(float)
    at_least = chosen[rates == rates.groupby(chosen["target"]).transform("min")]
    ended = at_least[require_trained(at_least)["status"] == "done"]
    broken = pd.Series(True, index=at_least.index)  # one that diverged has not descended
    moved = ended[finite_numbers(ended, "gradient_query_start") != 0]  # else nothing must fall
    broken[ended.index] = False
    broken[moved.index] = finite_numbers(moved, "descent") < LEAST_DESCENT
    bound = ended["learning_rate"] * finite_numbers(ended, "lipschitz_gradients")
    if bound.max() > LEAST_DESCENT:
        raise inconclusive(
            f"The smallest step size is {bound.max():.3g} over the measured Lipschitz constant of "
            f"the gradient, and the proof takes less than {LEAST_DESCENT:g}."
        )
    by_rate = chosen["descent"].astype(float).groupby(rates).min()
    return judge_theorem(
        broken,
        at_least["seed"],
        note="The fall of the loss over η times the squared gradients so far, at every step; the "
        "smallest step size of each target decides.",
        details={
            "step size times the gradient's Lipschitz constant, most": float(bound.max()),
            **{f"least fall, step size {rate:g}": float(fall) for rate, fall in by_rate.items()},
        },
    )


def _about_zero(target: str) -> list[Claim]:
    """The claims on which kernel reaches zero, for one kind of labels."""
    gaussian, softmax = {**_GAUSSIAN, "target": target}, {**_SOFTMAX, "target": target}
    labels = f"labels {_LABELS[target]}"
    return [
        Claim(
            name=f"theorem3-gaussian-{target}",
            source=f"{SOURCE}, Theorem 3 (1)",
            statement="Where condition (12) is met and W_Q alone is trained, Gaussian attention "
            f"reaches zero loss: {labels}.",
            holds_where=AT_BEST,
            measure=partial(zero_loss, values=gaussian, preset=_PRESET, condition="12"),
            figure="curves",
            preset=_PRESET,
        ),
        Claim(
            name=f"zero-gaussian-{target}",
            source=f"{SOURCE}, section 4.2.2; without condition (12), ours",
            statement=f"Trained in W_Q alone, Gaussian attention reaches zero loss: {labels}.",
            holds_where=AT_BEST,
            measure=partial(zero_loss, values=gaussian, preset=_PRESET),
            figure="curves",
            preset=_PRESET,
        ),
        Claim(
            name=f"floor-softmax-{target}",
            source=f"{SOURCE}, section 4.2.2, its reading of Theorem 3 (2), which states descent",
            statement=f"Trained in W_Q alone, softmax attention stops above zero loss: {labels}.",
            holds_where=f"{ON_FEW_DRAWS.in_words('the share of seeds at zero, at any step size,')}"
            f"; and {AT_FLOOR.in_words('the median loss over its closed-form floor')}",
            measure=partial(_stops_at_floor, values=softmax),
            figure="curves",
            preset=_PRESET,
        ),
    ]


CLAIMS = (
    *(claim for target in _LABELS for claim in _about_zero(target)),
    Claim(
        name="theorem3-rate",
        source=f"{SOURCE}, Theorem 3 (1), appendix 1.5",
        statement="Gaussian attention's squared gradient is at least γ times twice the loss.",
        holds_where=f"{THEOREM_RULE} (at the step sizes with most seeds at zero loss)",
        measure=_gradient_above_gamma,
        preset=_PRESET,
    ),
    Claim(
        name="theorem3-descent",
        source=f"{SOURCE}, Theorem 3 (2), equation (14); η' from the end of appendix 1.5",
        statement="Trained in W_Q alone, softmax attention's loss falls from its start by η/2 "
        "times the squared gradients so far, or more, whatever the labels. This is what Theorem "
        "3 (2) states; that softmax stops above zero is the paper's reading of it.",
        holds_where=f"{THEOREM_RULE} (at the smallest step size, at every step)",
        measure=_descent,
        figure="curves",
        preset=_PRESET,
    ),
    condition_claim("12", 3, _GAUSSIAN, _PRESET),
)
