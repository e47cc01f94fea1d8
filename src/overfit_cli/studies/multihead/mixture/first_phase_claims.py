"""Claims of section 5 of Deora et al. 2024: the first phase, and expressivity."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.bounds import OUT_OF_REACH
from overfit_cli.claims.cells import Selection
from overfit_cli.claims.rules import THEOREM_RULE, Requirements, judge_theorem
from overfit_cli.claims.sentences import read
from overfit_cli.claims.stated import stated_claim
from overfit_cli.core.claim import Claim, Kind, Measurement, add_remark
from overfit_cli.studies.multihead.claims import PAPER_NAME, numbers
from overfit_cli.studies.multihead.mixture.parameters import (
    CHANCE,
    MISSED,
    MultiheadMixtureParameters,
)

PRESET, CERTIFIED = "heads-first-phase", "heads-certificates"


def after_first_phase(cells: pd.DataFrame, preset: str, **values: object) -> pd.DataFrame:
    """Return the cells of these values; by default those with α_h of ±1, without noise."""
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


def _optimal(cells: pd.DataFrame, preset: str) -> Measurement:
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
    claim = stated_claim(
        partial(_with_rest, share=share, preset=PRESET),
        MultiheadMixtureParameters,
        read(f"mean of {_POWER} <= -0.25 on average with at least 10 seeds").with_target(-0.5),
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
    Claim(
        name="mixture-proposition3",
        kind="paper",
        source=f"{PAPER_NAME}, Proposition 3",
        statement="Γ_ε W_opt puts all but ε of the softmax on relevant tokens, and θ_opt has at "
        f"least the margin γ_attn(ε) of equation 11, for ε = {MISSED:g}.",
        hypotheses="Z_μ and Z_ν, the largest that were drawn, are at most S²/8; of all ε and Γ_ε, "
        f"{MISSED:g} and the least Γ_ε",
        holds_where=f"{THEOREM_RULE}, on cells with as little noise",
        measure=partial(_optimal, preset=CERTIFIED),
        figure="certificates",
        preset=CERTIFIED,
    ),
)
