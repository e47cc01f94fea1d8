"""Claims on the order of margins, the H of Proposition 2's margin, and concavity against H."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.bounds import OUT_OF_REACH
from overfit_cli.claims.cells import Selection, Values
from overfit_cli.claims.parts import Margin, Part
from overfit_cli.claims.rules import THEOREM_RULE, judge, judge_theorem
from overfit_cli.claims.stated import stated_claim
from overfit_cli.core.claim import Measurement
from overfit_cli.studies.multihead.claims import PAPER_NAME, claim_on, numbers
from overfit_cli.studies.multihead.mixture.least_heads_claims import least_heads
from overfit_cli.studies.multihead.mixture.parameters import MultiheadMixtureParameters

SPARSITY, LEAST, CONCAVITY = "heads-sparsity", "heads-least-margin", "heads-concavity"

DECADES = Margin(least=OUT_OF_REACH, because="as far as a bound out of reach", fewest_seeds=10)

_SETTINGS: dict[str, Values] = {
    SPARSITY: {"first_phase": "signs", "first_samples": 10_000, "training_steps": 1},
    LEAST: {
        "first_phase": "uniform",
        "first_samples": 100_000,
        "tokens": 2,
        "strength": 8.0,
        "sigma": 0.0,
        "training_steps": 1,
    },
    CONCAVITY: {
        "initialisation": "gaussian",
        "certify": True,
        "training_steps": 1,
        "tokens": 4,
        "n": 50,
    },
}


def _select(cells: pd.DataFrame, preset: str) -> pd.DataFrame:
    vary = {"relevant", "strength", "sigma"} if preset == SPARSITY else {"heads"}
    alike = {"test_samples", "learning_rate"} | ({"sigma_init"} if preset == CONCAVITY else set())
    return Selection(
        MultiheadMixtureParameters,
        at=_SETTINGS[preset],
        vary=vary,
        alike=alike,
        fewest={"relevant": 3} if preset == SPARSITY else {"heads": 4},
        preset=preset,
    ).of(cells)


def _ordered(cells: pd.DataFrame) -> Measurement:
    """Judge γ_attn ≥ γ⋆ ≥ γ_lin without noise, with the measured margin of section 5.2's θ⋆."""
    chosen = _select(cells, SPARSITY)
    chosen = chosen[chosen["sigma"] == 0]
    tangent = numbers(chosen, "ntk_margin_constructed")
    attention, linear = numbers(chosen, "gamma_attention"), numbers(chosen, "gamma_linear")
    above = tangent > attention
    return judge_theorem(
        above | (tangent < linear),
        chosen["seed"],
        unknown=tangent.isna() | attention.isna() | linear.isna(),
        note=_where_above(chosen[above]),
        details={
            "γ⋆ over γ_attn, most": float((tangent / attention).max()),
            "γ⋆ over γ_lin, least": float((tangent / linear).min()),
            **{
                f"{words} over {margin}, most": float((numbers(chosen, column) / bound).max())
                for words, column in (
                    ("(7) with P = 0", "gamma_tangent_without"),
                    ("(7) with P that was drawn", "gamma_tangent"),
                )
                for margin, bound in (("γ_attn", attention), ("γ_lin", linear))
            },
        },
    )


def _where_above(cells: pd.DataFrame) -> str:
    shares = cells["relevant"] / cells["tokens"]
    settings = [
        f"S = {strength:g} for ζ from {some.min():g} to {some.max():g}"
        for strength, some in shares.groupby(cells["strength"])
    ]
    return f"γ⋆ is above γ_attn at {' and at '.join(settings)}." if settings else ""


def _margin(cells: pd.DataFrame) -> Measurement:
    chosen = _select(cells, LEAST)
    achieved, stated = numbers(chosen, "ntk_margin"), numbers(chosen, "gamma_tangent")
    unknown = achieved.isna() | stated.isna()
    needed = numbers(chosen, "tangent_heads").mask((stated <= 0) & ~unknown, np.inf)
    required = needed.groupby(chosen["seed"]).median()
    low, high = (
        least_heads((achieved >= stated / 2) | (unknown & flag), chosen) for flag in (True, False)
    )
    with np.errstate(invalid="ignore"):
        least, most = required.fillna(0.0) - high, required.fillna(np.inf) - low
    least, most = least.fillna(-np.inf), most.fillna(np.inf)
    return judge(
        [Part.of(least, DECADES, "median", up_to=most)],
        details={
            "log₁₀ of the least H of the margin, median": float(high.median()),
            "log₁₀ of the least H of the margin, most": float(high.max()),
            "log₁₀ of the H of Lemma 15, median": float(required.median()),
            "margin over γ⋆/2 with one head, least": float(
                (2 * achieved / stated)[(chosen["heads"] == 1) & (stated > 0)].min()
            ),
        },
        note="Decades between both.",
    )


_claim = partial(claim_on, "mixture")

MARGIN_CLAIMS = (
    stated_claim(
        partial(_select, preset=CONCAVITY),
        MultiheadMixtureParameters,
        "power of heads in concavity < 0 with at least 10 seeds",
        number="the power of H in −λ_min",
        because="0 is no change",
        name="mixture-concavity-falls",
        kind="paper",
        source=f"{PAPER_NAME}, section 3, after Corollary 1",
        statement="As the number of heads H increases, the least eigenvalue of ∇²L̂ becomes less "
        "negative.",
        hypotheses="heads of one size: U_h and W_h are N(0, 1/4)",
        figure="concavity",
        preset=CONCAVITY,
    ),
    _claim(
        "ours",
        "least-heads-margin",
        "Proposition 2 on P3, with ζ/4 for ζ/2",
        f"Lemma 15 asks for at least {OUT_OF_REACH:g} decades more heads than the margin γ⋆/2 "
        "takes.",
        "no noise; α_h uniform on [−1, 1], as with signs nothing depends on H",
        DECADES.in_words("the median number of decades"),
        _margin,
        LEAST,
        "least-margin",
    ),
    _claim(
        "paper",
        "margins-ordered",
        "sections 5.3 and 7",
        "γ_attn ≥ γ⋆ ≥ γ_lin.",
        "no noise; γ⋆ is the measured margin of section 5.2's θ⋆, which (7) with P = 0 would be; S "
        "of 2 and 4, ζ from 0.1 to 0.9",
        f"{THEOREM_RULE}, at each S and ζ",
        _ordered,
        SPARSITY,
        "sparsity",
    ),
)
