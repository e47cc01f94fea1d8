"""Claims of section 5 of Deora et al. 2024: the first phase, good initialisation, expressivity.

Statements that have a probability of 1 − δ are judged by the share of seeds on which they are so.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection
from overfit_cli.claims.python import below, mean
from overfit_cli.claims.rules import (
    OUT_OF_REACH,
    THEOREM_RULE,
    Margin,
    Requirements,
    judge_estimate,
    judge_theorem,
    mark_vacuous,
    share_of_seeds,
)
from overfit_cli.claims.stated import stated_claim
from overfit_cli.core.claim import Claim, Kind, Measurement, add_remark
from overfit_cli.stats.intervals import level_of_each, share_estimate
from overfit_cli.studies.multihead.claims import PAPER_NAME, numbers, settings_of
from overfit_cli.studies.multihead.mixture.parameters import (
    CHANCE,
    MISSED,
    MultiheadMixtureParameters,
)

PRESET, CERTIFIED = "heads-first-phase", "heads-certificates"

WITH_CHANCE = Margin(
    least=1 - CHANCE, because=f"1 − δ with δ = {CHANCE:g}, as in the bound", fewest_seeds=72
)


def after_first_phase(cells: pd.DataFrame, preset: str, **values: object) -> pd.DataFrame:
    """Return the cells after a first phase, with those that a seed lacks.

    Args:
        cells: one row per cell.
        **values: of parameters; by default those of a phase with α_h of ±1, without noise.
    """
    chosen = values or {"first_phase": "signs", "sigma": 0.0}
    free = set(MultiheadMixtureParameters.model_fields) - set(chosen)
    return Selection(MultiheadMixtureParameters, at=chosen, vary=free, preset=preset).of(cells)


def _deviation(cells: pd.DataFrame, share: float) -> pd.Series[float]:
    """The length of p in U_h = α_h 1 (share · ζ u⋆ + p)ᵀ.

    The columns have the coefficient of u⋆ over ζ, and the length of p for a share of 1/4.
    """
    sparsity = cells["relevant"].astype(float) / cells["tokens"]
    oracle = math.sqrt(2) * cells["strength"].astype(float)  # ‖u⋆‖
    coefficient = numbers(cells, "first_coefficient")
    moved = (coefficient - share) ** 2 - (coefficient - 0.25) ** 2
    square = numbers(cells, "first_deviation") ** 2 + moved * (sparsity * oracle) ** 2
    return pd.Series(np.sqrt(square.clip(lower=0)), square.index)


def _with_rest(cells: pd.DataFrame, share: float, preset: str) -> pd.DataFrame:
    chosen = after_first_phase(cells, preset)
    lengths = _deviation(chosen, share)
    constants = (lengths / _lemma2_bound(chosen)).groupby(chosen["first_samples"]).median()
    least = ", ".join(f"{c:.3g} with n₁ = {n}" for n, c in constants.items())
    add_remark(f"The least C of Lemma 2, median: {least}.")
    return chosen.assign(rest=lengths)


def _lemma2_bound(cells: pd.DataFrame) -> pd.Series[float]:
    """Lemma 2's bound on ‖p‖ over its constant C without noise, with δ = `CHANCE` (equation 6)."""
    d, samples = (cells[name].astype(float) for name in ("d", "first_samples"))
    sizes = np.sqrt(d) + math.sqrt(math.log(1 / CHANCE))
    return 2 * cells["strength"].astype(float) * sizes / np.sqrt(samples)


def _initial_norm(cells: pd.DataFrame, preset: str) -> Measurement:
    """Measure P1 with Proposition 2's B₂, where P is the length of p itself."""
    chosen = after_first_phase(cells, preset)
    ratio = numbers(chosen, "good_norm")
    return judge_theorem(
        ratio > 1,
        chosen["seed"],
        unknown=ratio.isna(),
        details={"norm of a head over its bound, most": float(ratio.max())},
    )


def _with_chance(
    correct: pd.Series[bool], unknown: pd.Series[bool], cells: pd.DataFrame
) -> Measurement:
    """Judge a statement with probability 1 − δ in each setting.

    It holds by the share of seeds on which it is so in all settings, and fails by the share in one
    of them: that it is so in all of them may be rarer.
    """
    pooled = judge_estimate(
        share_of_seeds(correct, cells["seed"], unknown),
        WITH_CHANCE,
        note="The share of seeds on which it is so in every setting.",
    )
    groups = list(settings_of(cells, MultiheadMixtureParameters.model_fields))
    level = level_of_each(len(groups))
    verdicts = set()
    for _, group in groups:
        certain = int((correct & ~unknown)[group.index].sum())
        open_seeds = int(unknown[group.index].sum())
        verdicts.add(
            WITH_CHANCE.verdict(share_estimate(certain, len(group), level, unknown=open_seeds))
        )
    if pooled.verdict != "fails" or "fails" in verdicts:
        return pooled
    note = f"{pooled.note} In no setting is it rarer by itself."
    return replace(pooled, verdict="inconclusive", note=note)


def _initial_output(cells: pd.DataFrame, preset: str) -> Measurement:
    """Measure on which share of seeds P2 holds with Proposition 2's B_Φ, and P about ζ/2 u⋆.

    The columns have P about ζ/4 u⋆; P is in S + P alone. The chance is that of the signs of α, so
    it is vacuous where no signs could break it.
    """
    chosen = after_first_phase(cells, preset)
    strength = chosen["strength"].astype(float)
    smaller, printed = (strength + _deviation(chosen, share) for share in (0.25, 0.5))
    ratio, worst = (
        numbers(chosen, column) * smaller / printed
        for column in ("good_output", "good_output_signs")
    )
    details = {
        "output over its bound, most": float(ratio.max()),
        "output over its bound with the worst signs, most": float(worst.max()),
    }
    unknown = ratio.isna() | worst.isna()
    measured = _add_details(_with_chance(ratio <= 1, unknown, chosen), details)
    if worst.max() <= 1:
        return mark_vacuous(measured, "No signs of α_h break it at these H.", {})
    return measured


def _tangent(cells: pd.DataFrame, preset: str) -> Measurement:
    """Measure on which share of seeds the tangent kernel's margin is at least γ⋆/2, as printed."""
    chosen = after_first_phase(cells, preset)
    achieved, (stated, log_heads) = numbers(chosen, "ntk_margin"), _printed_margin(chosen)
    requirements = Requirements(
        {
            "γ⋆, below 0 by": -stated,
            "decades of heads missing": log_heads - np.log10(chosen["heads"].astype(float)),
        },
        "γ⋆ is not positive, or there are too few heads",
    )
    details = {"γ⋆ as printed, median": float(stated.median()), **_margins(chosen)}
    met = int(requirements.met().sum())
    if not met:
        return judge_theorem(
            achieved < stated / 2, chosen["seed"], requirements=requirements, details=details
        )
    unknown = achieved.isna() | stated.isna()
    judged = requirements.judged(unknown)
    measured = _with_chance((achieved >= stated / 2)[judged], unknown[judged], chosen[judged])
    return _add_details(measured, {**details, "cells that meet its hypotheses": met})


def _printed_margin(cells: pd.DataFrame) -> tuple[pd.Series[float], pd.Series[float]]:
    """Return γ⋆ of equation (7) as printed, and log₁₀ of the H that Lemma 15 requires for it.

    P is ‖p‖ about ζ/2 u⋆, and R is S + Z, or 1 if that is more. Lemma 15 requires √H ≥ 4 (2 R³ T
    (S + P) + √T R) √(2 log(n/δ)) / γ⋆; nan where γ⋆ ≤ 0. With α_h of ±1 the columns differ by 2 P
    T^(5/2) (S + Z)³, where P is ‖p‖ about ζ/4 u⋆.
    """
    without = numbers(cells, "gamma_tangent_without")
    deviation = _deviation(cells, 0.5)
    lost = (without - numbers(cells, "gamma_tangent")) / (2 * _deviation(cells, 0.25))
    stated = without - lost * deviation
    tokens, samples = (cells[name].astype(float) for name in ("tokens", "n"))
    longest = ((lost / tokens**2.5) ** (1 / 3)).clip(lower=1.0)  # R
    size = 2 * longest**3 * tokens * (cells["strength"].astype(float) + deviation)
    root_log = np.sqrt(2 * np.log(samples / CHANCE))
    root = 4 * (size + np.sqrt(tokens) * longest) * root_log / stated.where(stated > 0)  # √H
    return stated, 2 * np.log10(root)


def _margins(cells: pd.DataFrame) -> dict[str, float]:
    columns = {
        "largest margin": "ntk_margin",
        "its dual bound": "ntk_margin_bound",
        "margin of section 5.2's θ⋆": "ntk_margin_constructed",
        "γ⋆ with ζ/4 for ζ/2": "gamma_tangent",
        "γ⋆ if P were 0": "gamma_tangent_without",
        "γ_lin": "gamma_linear",
        "γ_attn": "gamma_attention",
    }
    return {f"{words}, median": float(numbers(cells, c).median()) for words, c in columns.items()}


def _optimal(cells: pd.DataFrame, preset: str) -> Measurement:
    """Measure attention and margin of θ_opt where the noise is as small as required."""
    phases = ("signs", "uniform")
    chosen = after_first_phase(cells, preset, first_phase=phases, certify=True)
    missed, margin = numbers(chosen, "optimal_missed"), numbers(chosen, "optimal_margin")
    requirements = Requirements(
        {"noise over what is allowed, less 1": numbers(chosen, "optimal_noise") - 1},
        "Z_μ or Z_ν is above S²/8; a smaller sigma has less",
    )
    met = requirements.met()
    below = -float(np.log10(missed[met].max()))
    return judge_theorem(
        (missed > 1) | (margin > 1) | (margin <= 0),  # below 0 where the measured margin is
        chosen["seed"],
        unknown=missed.isna() | margin.isna(),
        requirements=requirements,
        details={
            f"softmax missed over ε = {MISSED:g}, most": float(missed[met].max()),
            "stated margin over the measured one, most": float(margin[met].max()),
        },
        note=f"(10) is out of reach by {below:.0f} decades, so that (11) alone could fail."
        if below >= OUT_OF_REACH
        else "",
    )


def _add_details(measured: Measurement, details: dict[str, float]) -> Measurement:
    return replace(measured, details={**measured.details, **details})


def _claim(
    kind: Kind,
    name: str,
    source: str,
    statement: str,
    hypotheses: str,
    holds_where: str,
    measure: partial[Measurement],
    preset: str = PRESET,
) -> Claim:
    return Claim(
        name=f"mixture-{name}",
        kind=kind,
        source=f"{PAPER_NAME}, {source}",
        statement=statement,
        hypotheses=hypotheses,
        holds_where=holds_where,
        measure=partial(measure, preset=preset),
        figure="certificates",
        preset=preset,
    )


_NO_NOISE = (
    "Assumption 3 without noise: orthogonal patterns of length S, equally probable labels, ζT "
    "relevant tokens; n₁ new samples"
)

FEW, MANY = 1000, 100_000
"""The numbers n₁ of the preset."""

_POWER = f"log(rest[first_samples={MANY}] / rest[first_samples={FEW}]) / log({MANY / FEW:g})"


def _rest_claim(
    kind: Kind, name: str, source: str, statement: str, share: float, further: str = ""
) -> Claim:
    """Return a claim on the power of n₁ in the length of p beside a share of ζ u⋆."""
    claim = stated_claim(
        partial(_with_rest, share=share, preset=PRESET),
        MultiheadMixtureParameters,
        below(mean(_POWER), -0.25, strictly=False, over="average", seeds=10).with_target(-0.5),
        number="the power of n₁ in ‖p‖",
        because="half the way from the power −1/2 of 1/√n₁ to none",
        name=f"mixture-{name}",
        kind=kind,
        source=f"{PAPER_NAME}, {source}",
        statement=statement,
        hypotheses=_NO_NOISE,
        figure="certificates",
        preset=PRESET,
    )
    return replace(claim, holds_where=claim.holds_where + further)


FIRST_PHASE_CLAIMS = (
    _rest_claim(
        "paper",
        "lemma2",
        "Lemma 2",
        "After the first phase U_h = α_h 1 (ζ/2 u⋆ + p)ᵀ, where with high probability ‖p‖ is at "
        "most C (2S + Z) (√d + √log(1/δ)) / √n₁, with one constant C for all n₁.",
        0.5,
        "; one C is enough for few n₁ (1 for 1000), and none for all if ‖p‖ tends to ζ ‖u⋆‖/4, as "
        "it does where the mean of y μ_y is u⋆/2",
    ),
    _rest_claim(
        "ours",
        "lemma2-quarter",
        "Lemma 2 with ζ/4 in place of ζ/2",
        "After the first phase U_h = α_h 1 (ζ/4 u⋆ + p)ᵀ, where ‖p‖ falls as 1/√n₁.",
        0.25,
    ),
    _claim(
        "identity",
        "initial-norm",
        "Proposition 2 on P1 of Definition 1",
        "After the first phase every head has a norm of at most √T (S + P), P being ‖p‖.",
        "",
        THEOREM_RULE,
        partial(_initial_norm),
    ),
    _claim(
        "paper",
        "initial-output",
        "Proposition 2 on P2 of Definition 1",
        f"After the first phase, with probability 1 − δ, here {1 - CHANCE:g}, outputs are at most "
        "T R (S + P) √(2 log(n/δ)).",
        f"{_NO_NOISE}; α_h is 1 or −1; P is ‖p‖ of Lemma 2, about ζ/2 u⋆; R is the length of "
        "the longest token that was drawn, and at least 1",
        WITH_CHANCE.in_words("the share of seeds on which all outputs are"),
        partial(_initial_output),
    ),
    _claim(
        "paper",
        "tangent-margin",
        "Proposition 2 and equation 7 on P3 of Definition 1, with Lemma 15's condition on H",
        f"After the first phase, with probability 1 − δ, here {1 - CHANCE:g}, the tangent kernel "
        "separates the data with the margin γ⋆/2 if √H ≥ 4 (2 R³ T (S + P) + √T R) √(2 log(n/δ)) / "
        "γ⋆.",
        f"{_NO_NOISE}; α_h is 1 or −1; P is ‖p‖ of Lemma 2, about ζ/2 u⋆; γ⋆ is positive; R is S + "
        "Z and at least 1",
        WITH_CHANCE.in_words(
            "the share of seeds on which it does, where its requirements are met,"
        ),
        partial(_tangent),
    ),
    _claim(
        "paper",
        "proposition3",
        "Proposition 3",
        "Γ_ε W_opt puts all but ε of the softmax on relevant tokens, and θ_opt has at least the "
        f"margin γ_attn(ε) of equation 11, for ε = {MISSED:g}.",
        f"Z_μ and Z_ν, the largest that were drawn, are at most S²/8; of all ε and Γ_ε, {MISSED:g} "
        "and the least Γ_ε",
        f"{THEOREM_RULE}, on cells with as little noise",
        partial(_optimal),
        CERTIFIED,
    ),
)
