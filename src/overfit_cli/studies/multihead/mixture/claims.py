"""Claims of figures 2 and 3 and of section 5 of Deora et al. 2024.

Speed and margins for each H; the first phase, good initialisation and Proposition 3; and whether W
converges in direction to the solution of the attention support vector machine.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import (
    Selection,
    Values,
    finite_numbers,
    require_done,
    require_trained,
)
from overfit_cli.claims.rules import (
    FALLING,
    THEOREM_RULE,
    Margin,
    judge_estimate,
    judge_theorem,
    mark_vacuous,
    rank_correlation,
    tolerance_margin,
)
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.stats.intervals import mean_estimate
from overfit_cli.studies.multihead.claims import (
    FASTER,
    REACHED,
    SLOWER,
    bound_claims,
    contour_claims,
    power_of_heads,
    second_head_claims,
    theorem_claims,
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


STATED = tolerance_margin(0.5, 0.1, "up to a fifth", fewest_seeds=10)
EXPECTED = tolerance_margin(0.25, 0.05, "up to a fifth", fewest_seeds=10)
NEAR = Margin(least=0.99, because="an angle of 8°", fewest_seeds=10)
_PAPER = "Deora et al. 2024"
_LATER_WORK = "Tarzanagh et al. 2023 and Vasudeva et al. 2024"
_CERTIFIED = "heads-certificates"
_DIRECTIONS_CERTIFIED = "heads-machine"


def _after_first_phase(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells that were held to what is said of the first phase."""
    with_phase = cells["certify"].astype(bool) & (cells["first_phase"] != "none")
    ended = require_done(require_trained(cells[with_phase]), 1.0)
    if ended.empty:
        raise not_run(f"It needs cells after a first phase, as in `overfit sweep {_CERTIFIED}`.")
    return ended


def _coefficient(cells: pd.DataFrame, margin: Margin) -> Measurement:
    """Measure what the first phase puts on the oracle classifier, over ζ."""
    chosen = _after_first_phase(cells)
    coefficients = finite_numbers(chosen, "first_coefficient")
    return judge_estimate(
        mean_estimate(coefficients.groupby(chosen["seed"]).mean()),
        margin,
        details={
            f"with n₁ = {samples}": float(mean)
            for samples, mean in coefficients.groupby(chosen["first_samples"]).mean().items()
        },
        note="The coefficient of u⋆ in a head's U, over ζ α.",
    )


def _good(cells: pd.DataFrame) -> Measurement:
    """Measure P1 and P2 of Definition 1 with the bounds that Proposition 2 states for them."""
    chosen = _after_first_phase(cells)
    ratios = pd.DataFrame(
        {name: finite_numbers(chosen, name) for name in ("good_norm", "good_output")}
    )
    return judge_theorem(
        (ratios > 1).any(axis=1),
        chosen["seed"],
        details={
            "norm of a head over its bound, most": float(ratios["good_norm"].max()),
            "output over its bound, most": float(ratios["good_output"].max()),
        },
        note="The second is stated with a chance of 95 %; here no cell may break it.",
    )


def _tangent(cells: pd.DataFrame) -> Measurement:
    """Measure the tangent kernel's margin beside γ⋆/2, which Proposition 2 gives it.

    It says something where γ⋆ is positive, and there are as many heads as that takes.
    """
    chosen = _after_first_phase(cells)
    achieved, stated = finite_numbers(chosen, "ntk_margin"), finite_numbers(chosen, "gamma_tangent")
    needed = chosen.get("tangent_heads", pd.Series(np.nan, chosen.index)).astype(float)
    met = (stated > 0) & (np.log10(chosen["heads"].astype(float)) >= needed)
    without = finite_numbers(chosen, "gamma_tangent_without")
    measured = judge_theorem(
        met & (achieved < stated / 2),
        chosen["seed"],
        details={
            "largest margin, median": float(achieved.median()),
            "its dual bound, median": float(finite_numbers(chosen, "ntk_margin_bound").median()),
            "margin of section 5.2's θ⋆, median": float(
                finite_numbers(chosen, "ntk_margin_constructed").median()
            ),
            "γ⋆, median": float(stated.median()),
            "γ_lin, median": float(finite_numbers(chosen, "gamma_linear").median()),
            "γ_attn": float(finite_numbers(chosen, "gamma_attention").median()),
        },
    )
    if met.all():
        return measured
    negative = stated <= 0
    hopeless = without <= 0
    samples = _samples_needed(chosen)
    return mark_vacuous(
        measured,
        f"γ⋆ is negative in {int(negative.sum())} of {len(chosen)} cells, and elsewhere it takes "
        "more heads: it says nothing there.",
        {
            "cells with so much noise that it is so for every n₁": float(hopeless.sum()),
            **({"n₁ needed elsewhere, least": float(samples.min())} if len(samples) else {}),
        },
    )


def _samples_needed(chosen: pd.DataFrame) -> pd.Series[float]:
    """The n₁ for which γ⋆ would be positive, where one is: P falls as the root of n₁."""
    without, stated = (
        finite_numbers(chosen, "gamma_tangent_without"),
        finite_numbers(chosen, "gamma_tangent"),
    )
    possible = without > 0
    ratio = ((without - stated) / without)[possible]
    needed: pd.Series[float] = chosen["first_samples"][possible] * ratio**2
    return needed


def _optimal(cells: pd.DataFrame) -> Measurement:
    """Measure attention and margin of θ_opt where the noise is as small as Proposition 3 asks."""
    chosen = _after_first_phase(cells)
    small = chosen[finite_numbers(chosen, "optimal_noise") <= 1]
    if small.empty:
        least = float(finite_numbers(chosen, "optimal_noise").min())
        raise inconclusive(
            f"In no cell is the noise as small as required: it is {least:.2g} times that or more. "
            "A smaller sigma has less."
        )
    missed, margin = (
        finite_numbers(small, "optimal_missed"),
        finite_numbers(small, "optimal_margin"),
    )
    return judge_theorem(
        (missed > 1) | (margin > 1) | (margin <= 0),  # below 0 where the measured margin is
        small["seed"],
        details={
            "softmax missed over ε = 0.01, most": float(missed.max()),
            "stated margin over the measured one, most": float(margin.max()),
            "cells with more noise than required": len(chosen) - len(small),
        },
    )


def _direction(cells: pd.DataFrame, trained: str) -> Measurement:
    """Measure the cosine at the last step, at each seed's worst H."""
    settings = {"optimiser": "gradient-normalised", "trained": trained, "machine": True}
    alike = set(MultiheadMixtureParameters.model_fields) - {"heads"} - set(settings)
    chosen = require_done(
        Selection(
            MultiheadMixtureParameters,
            at={**settings, "first_phase": "positive"},
            vary={"heads"},
            alike=alike - {"first_phase"},
            preset=_DIRECTIONS_CERTIFIED,
        ).of(cells)
    )
    without = (finite_numbers(chosen, "machine_margin") <= 0).groupby(chosen["seed"]).any()
    solvable = chosen[~chosen["seed"].map(without)]
    if solvable.empty:
        raise inconclusive("On no seed does some W separate the best tokens from the others.")
    cosines = finite_numbers(solvable, "machine_cosine")
    by_heads = cosines.groupby(solvable["heads"])
    return judge_estimate(
        mean_estimate(cosines.groupby(solvable["seed"]).min(), within=(-1.0, 1.0)),
        NEAR,
        details={
            **{
                f"mean cosine, H = {heads}": float(cosine)
                for heads, cosine in by_heads.mean().items()
            },
            **{
                f"least cosine, H = {heads}": float(cosine)
                for heads, cosine in by_heads.min().items()
            },
            "steps": float(solvable["steps"].max()),
            "seeds on which no W separates the best tokens": float(np.sum(without)),
        },
        note="The cosine of W with the solution for U as it stands, at each seed's worst H.",
    )


def _first_phase_claim(
    name: str,
    source: str,
    statement: str,
    holds_where: str,
    measure: partial[Measurement],
    figure: str = "certificates",
    preset: str = _CERTIFIED,
) -> Claim:
    return Claim(
        name=f"mixture-{name}",
        source=source,
        statement=statement,
        holds_where=holds_where,
        measure=measure,
        figure=figure,
        preset=preset,
    )


_NUMBER = "the coefficient of u⋆ over ζ"
FIRST_PHASE_CLAIMS = (
    _first_phase_claim(
        "lemma2",
        f"{_PAPER}, Lemma 2",
        "The first phase makes each head's U α 1 (ζ/2 u⋆ + p)ᵀ.",
        STATED.in_words(_NUMBER),
        partial(_coefficient, margin=STATED),
    ),
    _first_phase_claim(
        "lemma2-quarter",
        f"{_PAPER}, equation 120; ours",
        "The first phase makes each head's U α 1 (ζ/4 u⋆ + p)ᵀ.",
        EXPECTED.in_words(_NUMBER),
        partial(_coefficient, margin=EXPECTED),
    ),
    _first_phase_claim(
        "good-initialisation",
        f"{_PAPER}, Definition 1 and Proposition 2",
        "After the first phase norms of heads (P1) and outputs (P2) are as small as stated.",
        THEOREM_RULE,
        partial(_good),
    ),
    _first_phase_claim(
        "tangent-margin",
        f"{_PAPER}, Definition 1, Proposition 2 and equation 7",
        "After the first phase the tangent kernel separates the data with the margin γ⋆/2 (P3).",
        f"γ⋆ is positive, H as large as stated (its constant taken for 1), and {THEOREM_RULE}",
        partial(_tangent),
    ),
    _first_phase_claim(
        "proposition3",
        f"{_PAPER}, Proposition 3",
        "Γ_ε W_opt puts all but ε of softmax on relevant tokens; θ_opt has the margin γ_attn(ε).",
        f"{THEOREM_RULE}, where Z_μ and Z_ν are at most S²/8",
        partial(_optimal),
    ),
)
_DIRECTION = (
    "Under gradient-normalised descent {on}, W comes to point where the attention support vector "
    "machine's solution does."
)
DIRECTION_CLAIMS = tuple(
    _first_phase_claim(
        f"machine-{name}",
        source,
        _DIRECTION.format(on=on),
        NEAR.in_words("their cosine, at the worst H,"),
        partial(_direction, trained=trained_weights),
        figure="heads",
        preset=_DIRECTIONS_CERTIFIED,
    )
    for name, trained_weights, source, on in (
        ("fixed", "attention", _LATER_WORK, "on W, with U as the first phase leaves it"),
        ("both", "all", f"beyond {_LATER_WORK}; ours", "on both U and W"),
    )
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
