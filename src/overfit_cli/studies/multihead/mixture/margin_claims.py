"""Claims on sparsity, realizability, the H of Proposition 2's margin, and concavity against H."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, Values
from overfit_cli.claims.rules import (
    OUT_OF_REACH,
    THEOREM_RULE,
    Margin,
    Requirements,
    exponentiate,
    judge_estimate,
    judge_theorem,
)
from overfit_cli.core.claim import Claim, Kind, Measurement
from overfit_cli.stats.intervals import median_estimate
from overfit_cli.studies.multihead.claims import (
    PAPER_NAME,
    independent_seeds,
    median_of_seeds,
    numbers,
)
from overfit_cli.studies.multihead.mixture.least_heads_claims import least_heads
from overfit_cli.studies.multihead.mixture.parameters import (
    MISSED,
    REALIZED,
    MultiheadMixtureParameters,
)

SPARSITY, LEAST, CONCAVITY = "heads-sparsity", "heads-least-margin", "heads-concavity"

ALIKE = Margin(
    most=1.02, because=f"twice the softmax of {MISSED:g} that θ_opt may miss", fewest_seeds=10
)
DECADES = Margin(least=OUT_OF_REACH, because="as far as a bound out of reach", fewest_seeds=10)
FALLS = Margin(most=0.0, because="0 is no change", fewest_seeds=10)
AS_ROOT = Margin(least=-0.6, most=-0.4, because="a fifth around −1/2", fewest_seeds=10)

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
    """Measure θ_opt's largest margin over its least one as ζ varies, at each seed's worst S."""
    chosen = _select(cells, SPARSITY)
    allowed = chosen[~(numbers(chosen, "optimal_noise") > 1)]
    logs = pd.Series(np.log(numbers(allowed, "margin_attention")), allowed.index)
    by = [allowed[name] for name in ("seed", "strength", "sigma")]
    spread = logs.groupby(by).max() - logs.groupby(by).min()
    whole = logs.notna().groupby(by).all()
    worst = spread.where(whole).groupby("seed").max()
    known = whole.groupby("seed").all()
    estimate = exponentiate(median_of_seeds(worst.where(known)))
    return judge_estimate(
        independent_seeds(estimate, allowed, MultiheadMixtureParameters),
        ALIKE,
        details={
            f"median margin, S = {strength}": float(numbers(group, "margin_attention").median())
            for strength, group in allowed.groupby("strength")
        },
        note="The largest margin of θ_opt over the least one as ζ varies.",
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
    without = numbers(chosen, "gamma_tangent_without")
    return judge_theorem(
        (tangent > attention) | (tangent < linear),
        chosen["seed"],
        unknown=tangent.isna() | attention.isna() | linear.isna(),
        details={
            "γ⋆ over γ_attn, most": float((tangent / attention).max()),
            "γ⋆ over γ_lin, least": float((tangent / linear).min()),
            "(7) with P = 0 over γ_attn, most": float((without / attention).max()),
        },
    )


def _realized(cells: pd.DataFrame) -> Measurement:
    chosen = _select(cells, SPARSITY)
    margin = numbers(chosen, "ntk_margin")
    loss = numbers(chosen, "proposition7_loss")
    return judge_theorem(
        loss > 1,
        chosen["seed"],
        unknown=loss.isna(),
        requirements=Requirements({"margin of the tangent kernel, below 0 by": -margin}, "no γ"),
        decades_over=pd.Series(np.log10(loss.clip(lower=1e-300)), loss.index),
        details={"loss over ε, most": float(loss.max())},
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


def _concavity(cells: pd.DataFrame, margin: Margin) -> Measurement:
    """Measure the power of H in −λ_min(∇²L̂), seed by seed."""
    chosen = _select(cells, CONCAVITY)
    concavity = numbers(chosen, "concavity")
    table = (
        pd.Series(np.log(concavity.where(concavity > 0)), concavity.index)
        .groupby([chosen["seed"], chosen["heads"]])
        .mean()
        .unstack()
    )  # (seeds, heads)
    weights = np.log(table.columns.to_numpy(float))
    weights -= weights.mean()
    powers = pd.Series(table.to_numpy() @ weights / (weights @ weights), table.index)
    return judge_estimate(
        independent_seeds(median_of_seeds(powers), chosen, MultiheadMixtureParameters),
        margin,
        details={
            f"median −λ_min, H = {heads}": float(median)
            for heads, median in concavity.groupby(chosen["heads"]).median().items()
        },
        note="The power of H in −λ_min(∇²L̂).",
    )


def _claim(
    kind: Kind,
    name: str,
    source: str,
    statement: str,
    hypotheses: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
    preset: str,
    figure: str,
) -> Claim:
    return Claim(
        name=f"mixture-{name}",
        kind=kind,
        source=f"{'ours, on ' if kind == 'ours' else ''}{PAPER_NAME}, {source}",
        statement=statement,
        hypotheses=hypotheses,
        holds_where=holds_where,
        measure=measure,
        figure=figure,
        preset=preset,
    )


_GOOD = "after the first phase, with as many signs α_h of 1 as of −1 and the widest margin's θ⋆"
_POWER = "the power of H in −λ_min"

MARGIN_CLAIMS = (
    _claim(
        "paper",
        "concavity-falls",
        "section 3, after Corollary 1",
        "As the number of heads H increases, the least eigenvalue of ∇²L̂ becomes less negative.",
        "heads of one size: U_h and W_h are N(0, 1/4)",
        FALLS.in_words(_POWER),
        partial(_concavity, margin=FALLS),
        CONCAVITY,
        "concavity",
    ),
    _claim(
        "sharp",
        "concavity-power",
        "Corollary 1 (3)",
        "The least eigenvalue of ∇²L̂ falls in size as 1/√H, as its bound does.",
        "heads of one size: U_h and W_h are N(0, 1/4)",
        AS_ROOT.in_words(_POWER),
        partial(_concavity, margin=AS_ROOT),
        CONCAVITY,
        "concavity",
    ),
    _claim(
        "paper",
        "proposition7",
        "Proposition 7",
        f"θ(ε) = θ₀ + (2 B_Φ + log(1/ε))/γ θ⋆ has a training loss of at most ε, here {REALIZED:g}, "
        "at each H that (98) allows.",
        f"{_GOOD}; √H of (98) is taken d times as large, as the corrected β₃ is; H up to 10²⁰",
        f"{THEOREM_RULE}; vacuous where all are {OUT_OF_REACH:g} decades below the bound",
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
        "Outputs after the first phase are within P2's bound at each H from 1 to 1000.",
        "no noise; α_h uniform on [−1, 1]",
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
        "paper",
        "sparsity-attention",
        "section 5.3",
        "The margin that attention achieves is independent of the sparsity level ζ.",
        f"θ_opt with Γ_ε for ε = {MISSED:g}; ζ from 0.1 to 0.9; noise as Proposition 3 allows",
        ALIKE.in_words("the largest margin over the least one as ζ varies"),
        _attention,
        SPARSITY,
        "sparsity",
    ),
    _claim(
        "paper",
        "sparsity-gap",
        "section 5.3",
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
        "no noise; γ⋆ is the measured margin of section 5.2's θ⋆; S of 2 and 4, ζ from 0.1 to 0.9",
        THEOREM_RULE,
        _ordered,
        SPARSITY,
        "sparsity",
    ),
)
