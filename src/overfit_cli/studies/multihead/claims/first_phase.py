"""Claims of section 5 of Deora et al. 2024: first phase, good initialisation, Proposition 3.

And a claim on directions: whether W converges in direction to the solution of the attention support
vector machine.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, finite_numbers, require_done, require_trained
from overfit_cli.claims.rules import (
    THEOREM_RULE,
    Margin,
    judge_estimate,
    judge_theorem,
    mark_vacuous,
    tolerance_margin,
)
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.stats.intervals import mean_estimate
from overfit_cli.studies.multihead.mixture.parameters import MultiheadMixtureParameters

STATED = tolerance_margin(0.5, 0.1, "up to a fifth", fewest_seeds=10)
EXPECTED = tolerance_margin(0.25, 0.05, "up to a fifth", fewest_seeds=10)
NEAR = Margin(least=0.99, because="an angle of 8°", fewest_seeds=10)
_PAPER = "Deora et al. 2024"
_LATER_WORK = "Tarzanagh et al. 2023 and Vasudeva et al. 2024"
_PRESET = "heads-certificates"
_DIRECTIONS_PRESET = "heads-machine"


def _cells(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells that were held to what is said of the first phase."""
    with_phase = cells["certify"].astype(bool) & (cells["first_phase"] != "none")
    ended = require_done(require_trained(cells[with_phase]), 1.0)
    if ended.empty:
        raise not_run(f"It needs cells after a first phase, as in `overfit sweep {_PRESET}`.")
    return ended


def _coefficient(cells: pd.DataFrame, margin: Margin) -> Measurement:
    """Measure what the first phase puts on the oracle classifier, over ζ."""
    chosen = _cells(cells)
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
    chosen = _cells(cells)
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
    chosen = _cells(cells)
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
    chosen = _cells(cells)
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
            preset=_DIRECTIONS_PRESET,
        ).of(cells)
    )
    without = (finite_numbers(chosen, "machine_margin") <= 0).groupby(chosen["seed"]).any()
    solvable = chosen[~chosen["seed"].map(without)]
    if solvable.empty:
        raise inconclusive("On no seed does some W separate the best tokens from the others.")
    cosines = finite_numbers(solvable, "machine_cosine")
    by_heads = cosines.groupby(solvable["heads"])
    return judge_estimate(
        mean_estimate(cosines.groupby(solvable["seed"]).min()),
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


def _claim(
    name: str,
    source: str,
    statement: str,
    holds_where: str,
    measure: partial[Measurement],
    figure: str = "certificates",
    preset: str = _PRESET,
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
    _claim(
        "lemma2",
        f"{_PAPER}, Lemma 2",
        "The first phase makes each head's U α 1 (ζ/2 u⋆ + p)ᵀ.",
        STATED.in_words(_NUMBER),
        partial(_coefficient, margin=STATED),
    ),
    _claim(
        "lemma2-quarter",
        f"{_PAPER}, equation 120; ours",
        "The first phase makes each head's U α 1 (ζ/4 u⋆ + p)ᵀ.",
        EXPECTED.in_words(_NUMBER),
        partial(_coefficient, margin=EXPECTED),
    ),
    _claim(
        "good-initialisation",
        f"{_PAPER}, Definition 1 and Proposition 2",
        "After the first phase norms of heads (P1) and outputs (P2) are as small as stated.",
        THEOREM_RULE,
        partial(_good),
    ),
    _claim(
        "tangent-margin",
        f"{_PAPER}, Definition 1, Proposition 2 and equation 7",
        "After the first phase the tangent kernel separates the data with the margin γ⋆/2 (P3).",
        f"γ⋆ is positive, H as large as stated (its constant taken for 1), and {THEOREM_RULE}",
        partial(_tangent),
    ),
    _claim(
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
    _claim(
        f"machine-{name}",
        source,
        _DIRECTION.format(on=on),
        NEAR.in_words("their cosine, at the worst H,"),
        partial(_direction, trained=trained_weights),
        figure="heads",
        preset=_DIRECTIONS_PRESET,
    )
    for name, trained_weights, source, on in (
        ("fixed", "attention", _LATER_WORK, "on W, with U as the first phase leaves it"),
        ("both", "all", f"beyond {_LATER_WORK}; ours", "on both U and W"),
    )
)
