"""Claims on sparsity, realizability, the H of Proposition 2's margin, and concavity against H."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, Values
from overfit_cli.claims.python import below, near, power
from overfit_cli.claims.rules import (
    OUT_OF_REACH,
    THEOREM_RULE,
    Margin,
    Requirements,
    judge_estimate,
    judge_theorem,
)
from overfit_cli.claims.sentences import Sentence
from overfit_cli.claims.stated import stated_claim
from overfit_cli.core.claim import Claim, Kind, Measurement
from overfit_cli.stats.intervals import median_estimate
from overfit_cli.studies.multihead.claims import (
    claim_on,
    independent_seeds,
    numbers,
    place_in_paper,
)
from overfit_cli.studies.multihead.mixture.least_heads_claims import least_heads
from overfit_cli.studies.multihead.mixture.parameters import (
    MISSED,
    REALIZED,
    MultiheadMixtureParameters,
)

SPARSITY, LEAST, CONCAVITY = "heads-sparsity", "heads-least-margin", "heads-concavity"

NEAR = 2 * MISSED
"""How far θ_opt's margin may lie from S √(T/2): twice the softmax that it may miss."""

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


def _attention(cells: pd.DataFrame) -> Measurement:
    """Judge whether θ_opt's margin is S √(T/2) at each ζ, up to `NEAR`."""
    chosen = _select(cells, SPARSITY)
    allowed = chosen[~(numbers(chosen, "optimal_noise") > 1)]
    share = numbers(allowed, "margin_attention") / numbers(allowed, "gamma_attention")
    return judge_theorem(
        (share - 1).abs() > NEAR,
        allowed["seed"],
        unknown=share.isna(),
        details={
            "margin of θ_opt over S √(T/2), least": float(share.min()),
            "margin of θ_opt over S √(T/2), most": float(share.max()),
        },
    )


def _gap(cells: pd.DataFrame) -> Measurement:
    """Judge whether γ_attn − γ_lin falls from each ζ to the next."""
    chosen = _select(cells, SPARSITY)
    gap = numbers(chosen, "margin_attention") - numbers(chosen, "margin_linear")
    table = chosen.assign(gap=gap).pivot_table(
        index=["seed", "strength", "sigma"], columns="relevant", values="gap", dropna=False
    )  # (settings, ζ T)
    changes = table.diff(axis=1).iloc[:, 1:]
    seeds = pd.Series(table.index.get_level_values("seed"), table.index)
    return judge_theorem(
        (changes >= 0).any(axis=1),
        seeds,
        unknown=changes.isna().any(axis=1),
        details={
            f"median gap, ζ T = {relevant}": float(median)
            for relevant, median in table.median().items()
        },
    )


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
    """The sentence on the settings in which γ⋆ is above γ_attn; empty where none is."""
    shares = cells["relevant"] / cells["tokens"]
    settings = [
        f"S = {strength:g} for ζ from {some.min():g} to {some.max():g}"
        for strength, some in shares.groupby(cells["strength"])
    ]
    return f"γ⋆ is above γ_attn at {' and at '.join(settings)}." if settings else ""


def _realized(cells: pd.DataFrame) -> Measurement:
    """Judge θ(ε)'s loss where (98) allows H; vacuous where outputs are linear in θ there.

    With outputs linear in θ all margins are 2 B_Φ + log(1/ε) or more, by the definition of γ, and
    so the loss is at most about e^(−2 B_Φ) ε. (98) is to keep what the second order takes from
    them below B_Φ, which is 1: the claim is vacuous where it takes a thousandth of that or less.
    """
    chosen = _select(cells, SPARSITY)
    margin = numbers(chosen, "ntk_margin")
    loss = numbers(chosen, "proposition7_loss")
    with np.errstate(over="ignore"):
        reached = -np.log(np.expm1(loss * REALIZED))  # the margin that has this loss
    lost = 2 + math.log(1 / REALIZED) - pd.Series(reached, loss.index)  # by the second order
    return judge_theorem(
        loss > 1,
        chosen["seed"],
        unknown=loss.isna(),
        requirements=Requirements({"margin of the tangent kernel, below 0 by": -margin}, "no γ"),
        decades_over=pd.Series(np.log10(lost.clip(lower=1e-300)), loss.index),
        details={
            "loss over ε, most": float(loss.max()),
            "margin lost to the second order over B_Φ, most": float(lost.max()),
        },
    )


def _realizable_sooner(cells: pd.DataFrame) -> Measurement:
    chosen = _select(cells, SPARSITY)
    decades = numbers(chosen, "proposition7_heads") - numbers(chosen, "realizable_heads")
    low, high = (decades.fillna(end).groupby(chosen["seed"]).median() for end in (-np.inf, np.inf))
    return judge_estimate(
        independent_seeds(median_estimate(low, up_to=high), chosen, MultiheadMixtureParameters),
        DECADES,
        details={
            "log₁₀ of the H of (98), median": float(numbers(chosen, "proposition7_heads").median()),
            "log₁₀ of the least H of θ(ε), most": float(numbers(chosen, "realizable_heads").max()),
        },
        note="The median over settings, seed by seed.",
    )


def _outputs(cells: pd.DataFrame) -> Measurement:
    chosen = _select(cells, LEAST)
    ratio = numbers(chosen, "good_output")
    return judge_theorem(
        ratio > 1,
        chosen["seed"],
        unknown=ratio.isna(),
        decades_over=pd.Series(np.log10(ratio.clip(lower=1e-300)), ratio.index),
        details={"output over P2's bound, most": float(ratio.max())},
    )


def _margin(cells: pd.DataFrame) -> Measurement:
    """Measure the decades from the least H of the margin γ⋆/2 to that of Lemma 15."""
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
    estimate = median_estimate(least.fillna(-np.inf), up_to=most.fillna(np.inf))
    return judge_estimate(
        independent_seeds(estimate, chosen, MultiheadMixtureParameters),
        DECADES,
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


def _sentence(
    stated: Sentence,
    number: str,
    because: str,
    name: str,
    source: str,
    statement: str,
    hypotheses: str,
    *,
    kind: Kind,
) -> Claim:
    """Return a claim on concavity that is a sentence; see `stated_claim`."""
    return stated_claim(
        partial(_select, preset=CONCAVITY),
        MultiheadMixtureParameters,
        stated,
        number=number,
        because=because,
        name=f"mixture-{name}",
        kind=kind,
        source=place_in_paper(kind, source),
        statement=statement,
        hypotheses=hypotheses,
        figure="concavity",
        preset=CONCAVITY,
    )


_claim = partial(claim_on, "mixture")

_GOOD = "after the first phase, with as many signs α_h of 1 as of −1 and the widest margin's θ⋆"
_RANDOM = "heads of one size: U_h and W_h are N(0, 1/4)"

MARGIN_CLAIMS = (
    _sentence(
        below(power("concavity", "heads"), 0, seeds=10),
        "the power of H in −λ_min",
        "0 is no change",
        "concavity-falls",
        "section 3, after Corollary 1",
        "As the number of heads H increases, the least eigenvalue of ∇²L̂ becomes less negative.",
        _RANDOM,
        kind="paper",
    ),
    _sentence(
        near(power("loss_concavity", "heads"), 0, within=0.1, seeds=10),
        "the power of H in −λ_min over its bound",
        "a fifth of the power 1/2 of 1/√H",
        "concavity-power",
        "Corollary 1 (3)",
        "The least eigenvalue of ∇²L̂ falls in size as its bound β₃ L̂/√H does on the same heads.",
        f"{_RANDOM}; β₃ has the largest ‖U_h‖, which grows with H, so that the bound falls by less "
        "than 1/√H",
        kind="sharp",
    ),
    _claim(
        "paper",
        "proposition7",
        "Proposition 7",
        f"θ(ε) = θ₀ + (2 B_Φ + log(1/ε))/γ θ⋆ has a training loss of at most ε, here {REALIZED:g}, "
        "at each H that (98) allows.",
        f"{_GOOD}; √H of (98) is taken d times as large, as the corrected β₃ is; H up to 10²⁰",
        f"{THEOREM_RULE}; vacuous where the second order of the outputs takes a thousandth or less "
        "of the B_Φ that (98) allows it: the loss is then e^(−2 B_Φ) ε by the definition of γ",
        _realized,
        SPARSITY,
        "sparsity",
    ),
    _claim(
        "ours",
        "proposition7-heads",
        "Proposition 7",
        f"Proposition 7 asks for at least {OUT_OF_REACH:g} decades more heads than its conclusion "
        "takes.",
        _GOOD,
        DECADES.in_words("the median number of decades"),
        _realizable_sooner,
        SPARSITY,
        "sparsity",
    ),
    _claim(
        "ours",
        "least-heads-outputs",
        "Proposition 2 on P2",
        "Outputs after the first phase are within P2's bound at each H from 1 to 10¹⁰.",
        "no noise; α_h uniform on [−1, 1], above 100,000 heads on 1000 sizes",
        f"{THEOREM_RULE}; vacuous where all are {OUT_OF_REACH:g} decades below the bound",
        _outputs,
        LEAST,
        "least-margin",
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
        "identity",
        "sparsity-attention",
        "section 5.3 and (11), in which there is no ζ",
        "The margin of θ_opt is S √(T/2) up to 2 ε at each sparsity level ζ.",
        f"θ_opt with Γ_ε for ε = {MISSED:g}; ζ from 0.1 to 0.9; noise as Proposition 3 allows",
        THEOREM_RULE,
        _attention,
        SPARSITY,
        "sparsity",
    ),
    _claim(
        "identity",
        "sparsity-gap",
        "section 5.3: without noise the gap is S √(T/2) (1 − ζ), by (11) and (132)",
        "The gap between γ_attn and γ_lin increases as ζ decreases.",
        "measured margins of θ_opt and of the oracle linear classifier; from each ζ to the next",
        THEOREM_RULE,
        _gap,
        SPARSITY,
        "sparsity",
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
