"""Claims of figures 2 and 3 of Deora et al. 2024, and of the bounds on the way."""

from __future__ import annotations

from functools import partial

import pandas as pd

from overfit_cli.claims.cells import Selection, Values, finite_numbers, require_done
from overfit_cli.claims.rules import (
    FALLING,
    THEOREM_RULE,
    Margin,
    judge_estimate,
    judge_theorem,
    rank_correlation,
)
from overfit_cli.core.claim import Claim, Measurement
from overfit_cli.stats.intervals import mean_estimate
from overfit_cli.studies.multihead.claims.bounds import bound_claims, theorem_claims
from overfit_cli.studies.multihead.claims.first_phase import DIRECTION_CLAIMS, FIRST_PHASE_CLAIMS
from overfit_cli.studies.multihead.claims.step_sizes import (
    FASTER,
    REACHED,
    SLOWER,
    contour_claims,
    power_of_heads,
    second_head_claims,
)
from overfit_cli.studies.multihead.mixture.parameters import MultiheadMixtureParameters

ALIKE_UP_TO = 1e-9
"""The distance of heads from their mean, over its length, that is taken for none."""

CONSTANT: Values = {"optimiser": "gd", "step_rule": "constant"}
ROOT: Values = {"optimiser": "gd", "step_rule": "sqrt-heads"}
ADAM: Values = {"optimiser": "adam"}
NORMALISED: Values = {"optimiser": "loss-normalised"}

_FREE = frozenset({"learning_rate", "certify", "test_samples", "n", "training_steps"})


def _select(cells: pd.DataFrame, settings: Values, preset: str) -> pd.DataFrame:
    return Selection(
        MultiheadMixtureParameters, at=settings, vary={"heads"}, alike=_FREE, preset=preset
    ).of(cells)


def _speed(cells: pd.DataFrame, settings: Values, margin: Margin, preset: str) -> Measurement:
    return power_of_heads(_select(cells, settings, preset), margin)


def _margin_of_one(cells: pd.DataFrame, steps: int, preset: str) -> Measurement:
    """Measure which share of γ_attn one head has after some steps."""
    settings = {**CONSTANT, "heads": 1, "training_steps": steps}
    chosen = require_done(
        Selection(MultiheadMixtureParameters, at=settings, alike=_FREE, preset=preset).of(cells)
    )
    return judge_estimate(
        mean_estimate(finite_numbers(chosen, "margin_share").groupby(chosen["seed"]).mean()),
        REACHED,
        note=f"The least margin over γ_attn, after {steps} steps.",
    )


def _margin_of_every(cells: pd.DataFrame, preset: str) -> Measurement:
    """Measure the least share of γ_attn over numbers of heads, seed by seed."""
    chosen = require_done(_select(cells, NORMALISED, preset))
    shares = finite_numbers(chosen, "margin_share")
    by_heads = shares.groupby(chosen["heads"]).mean()
    return judge_estimate(
        mean_estimate(shares.groupby(chosen["seed"]).min()),
        REACHED,
        details={f"mean share, H = {heads}": float(share) for heads, share in by_heads.items()},
        note="The least margin over γ_attn, at each seed's worst H.",
    )


def _margin_falls(cells: pd.DataFrame, preset: str) -> Measurement:
    """Measure whether the margin falls as H grows, where steps grow as √H."""
    chosen = require_done(_select(cells, ROOT, preset))
    by_heads = finite_numbers(chosen, "margin_share").groupby(chosen["heads"]).mean()
    return judge_estimate(
        rank_correlation(chosen, "margin_share", "heads", "optimiser"),
        FALLING,
        details={f"mean share, H = {heads}": float(share) for heads, share in by_heads.items()},
        note="The rank correlation of the margin with H, seed by seed.",
    )


def _identical(cells: pd.DataFrame, preset: str) -> Measurement:
    """Measure whether heads that begin at zero, each trained by itself, stay alike."""
    settings = {"separate_heads": True, "heads": (2, 5, 10, 20, 50)}
    free = {*_FREE, "optimiser", "step_rule"}
    chosen = require_done(
        Selection(MultiheadMixtureParameters, at=settings, vary=free, preset=preset).of(cells)
    )
    spread = finite_numbers(chosen, "head_spread")
    return judge_theorem(
        spread > ALIKE_UP_TO,
        chosen["seed"],
        details={"distance of heads from their mean over its length, most": float(spread.max())},
    )


def _claim(
    name: str,
    source: str,
    statement: str,
    holds_where: str,
    measure: partial[Measurement],
    preset: str,
) -> Claim:
    return Claim(
        name=f"mixture-{name}",
        source=f"Deora et al. 2024, {source}",
        statement=statement,
        holds_where=holds_where,
        measure=partial(measure, preset=preset),
        figure="heads",
        preset=preset,
    )


_POWER = "the power of H in the steps to the target loss"
_SHARE = "the least margin over γ_attn"


def _margin_claim(steps: int, preset: str) -> Claim:
    return _claim(
        f"margin-{steps}",
        "appendix G",
        f"For small H gradient descent with constant steps achieves the margin γ_attn: with one "
        f"head, after {steps} steps.",
        REACHED.in_words(_SHARE),
        partial(_margin_of_one, steps=steps),
        preset,
    )


CLAIMS = (
    _claim(
        "constant-slower",
        "figure 2",
        "Gradient descent with constant steps takes longer the more heads there are.",
        SLOWER.in_words(_POWER),
        partial(_speed, settings={**CONSTANT, "training_steps": 1000}, margin=SLOWER),
        "heads-fig2",
    ),
    _claim(
        "sqrt-faster",
        "figure 3, left",
        "With steps that grow as √H gradient descent is faster the more heads there are.",
        FASTER.in_words(_POWER),
        partial(_speed, settings=ROOT, margin=FASTER),
        "heads-fig3-sqrt",
    ),
    _claim(
        "adam-faster",
        "figure 3, right",
        "Adam with constant steps is faster the more heads there are.",
        FASTER.in_words(_POWER),
        partial(_speed, settings=ADAM, margin=FASTER),
        "heads-fig3-adam",
    ),
    _margin_claim(1000, "heads-fig2"),
    _margin_claim(10_000, "heads-margin"),
    _claim(
        "normalised-margin",
        "section 7, a question; ours",
        "Gradient descent on the logarithm of the loss comes to the margin γ_attn for every H.",
        REACHED.in_words(f"{_SHARE}, at the worst H,"),
        partial(_margin_of_every),
        "heads-normalised",
    ),
    _claim(
        "sqrt-margin-falls",
        "appendix G",
        "With steps that grow as √H the margin falls away from γ_attn as H grows.",
        FALLING.in_words("its rank correlation with H"),
        partial(_margin_falls),
        "heads-fig3-sqrt",
    ),
    _claim(
        "identical-heads",
        "appendix G, zero initialisation; ours",
        "From zero all heads stay alike, each trained by itself.",
        f"{THEOREM_RULE}: the distance of heads from their mean is at most {ALIKE_UP_TO:g} of "
        "its length",
        partial(_identical),
        "heads-identical",
    ),
    *bound_claims("mixture", "heads-fig2", "heads-random"),
    *theorem_claims("mixture", "heads-fig2"),
    *FIRST_PHASE_CLAIMS,
    *contour_claims(MultiheadMixtureParameters, "mixture", "heads-steps"),
    *second_head_claims(MultiheadMixtureParameters, "mixture", "heads-second", errors=False),
    *DIRECTION_CLAIMS,
)
