"""Section 5, and a question of section 7: the first phase, margins, and random attention."""

from __future__ import annotations

import numpy as np
import pandas as pd

from overfit_cli.claims.papers import Claims, on
from overfit_cli.studies.multihead.parameters import MISSED, MultiheadMixtureParameters
from overfit_cli.studies.multihead.study import mixture as dm1

FREE = ("certify", "test_samples")
A_TENTH = "a tenth is left to noise: chosen after cells of earlier seeds were seen"
FIRST = on("heads-first-phase", free=FREE)
NO_NOISE = (
    "Assumption 3 without noise: orthogonal patterns of length S, equally probable labels, ζT "
    "relevant tokens; n₁ new samples"
)

mixture = Claims(
    "mixture", "Deora et al. 2024", MultiheadMixtureParameters, dm1.columns, figure="bounds"
)


def about_half(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with ‖p‖ of U_h = α_h 1 (ζ/2 u⋆ + p)ᵀ; P is the length about ζ/4 u⋆."""
    square = (cells["relevant"] / cells["tokens"] * cells["strength"]) ** 2 * 2  # ζ² ‖u⋆‖²
    coefficient = cells["first_coefficient"]
    moved = (coefficient - 1 / 2) ** 2 - (coefficient - 1 / 4) ** 2
    rest = (cells["first_deviation"] ** 2 + moved * square).clip(lower=0)
    return cells.assign(rest=np.sqrt(rest.astype(float)))


def falls_as_root(column: str) -> str:
    """Return that a column falls with n₁ as the power −1/2, of which a tenth is left to noise."""
    ratio = f"{column}[first_samples=100000] / {column}[first_samples=1000]"
    return f"mean of log({ratio}) / log(100) <= -0.4 with at least 10 seeds"


mixture.paper(
    "lemma2",
    "Lemma 2",
    "After the first phase U_h = α_h 1 (ζ/2 u⋆ + p)ᵀ, where with high probability ‖p‖ falls with "
    "n₁ as C (2S + Z) (√d + √log(1/δ)) / √n₁ does, with one constant C for all n₁.",
    falls_as_root("rest"),
    on=FIRST,
    cells=about_half,
    target=-0.5,
    because=A_TENTH,
    hypotheses=f"{NO_NOISE}; one C is enough for few n₁, and none for all if ‖p‖ tends to "
    "ζ ‖u⋆‖/4, as it does where the mean of y μ_y is u⋆/2",
)
mixture.ours(
    "lemma2-quarter",
    "Lemma 2 with ζ/4 in place of ζ/2",
    "After the first phase U_h = α_h 1 (ζ/4 u⋆ + p)ᵀ, where ‖p‖ falls as 1/√n₁.",
    falls_as_root("first_deviation"),
    on=FIRST,
    target=-0.5,
    because=A_TENTH,
    hypotheses=NO_NOISE,
)


def decades_more(cells: pd.DataFrame) -> pd.DataFrame:
    """Return by how many decades Lemma 15's H is above the least from which on γ ≥ γ⋆/2.

    It is not known of a seed that lacks a margin, or whose largest H has a smaller one.
    """
    known = (cells["ntk_margin"] + cells["gamma_tangent"]).notna().groupby(cells["seed"])
    short = cells["heads"].where(2 * cells["ntk_margin"] < cells["gamma_tangent"], 0)
    last = short.groupby(cells["seed"]).transform("max")  # the largest H whose margin is smaller
    least = cells["heads"].where(cells["heads"] > last).groupby(cells["seed"]).transform("min")
    decades = cells["tangent_heads"] - np.log10(least.astype(float))
    return cells.assign(decades=decades.where(known.transform("all")))


mixture.ours(
    "least-heads-margin",
    "Proposition 2 on P3, with ζ/4 for ζ/2",
    "Lemma 15 requires at least three decades more heads than the margin γ⋆/2 takes.",
    "decades[heads is largest] >= 3 with at least 10 seeds",
    on=on("heads-least-margin", alike=("test_samples", "learning_rate")),
    cells=decades_more,
    figure="least-margin",
    hypotheses="no noise; α_h uniform on [−1, 1], as with signs nothing depends on H",
)
mixture.paper(
    "proposition3",
    "Proposition 3",
    "Γ_ε W_opt puts all but ε of the softmax on relevant tokens, and θ_opt has at least the margin "
    f"γ_attn(ε) of equation 11, for ε = {MISSED:g}.",
    {
        "(10)": "optimal_missed <= 1 on all seeds if optimal_noise <= 1",
        "(11)": "1 / optimal_margin >= 1 on all seeds if optimal_noise <= 1",
    },
    on=on("heads-certificates", free=("first_phase", "test_samples")),
    hypotheses="Z_μ and Z_ν, the largest that were drawn, are at most S²/8; of all ε and Γ_ε, "
    f"{MISSED:g} and the least Γ_ε",
)


ROUND_OFF = "1.000001"

mixture.paper(
    "margins-ordered",
    "sections 5.3 and 7",
    "γ_attn ≥ γ⋆ ≥ γ_lin.",
    {
        "γ_attn ≥ γ⋆": f"ntk_margin_constructed <= {ROUND_OFF} * gamma_attention on all seeds",
        "γ⋆ ≥ γ_lin": f"gamma_linear <= {ROUND_OFF} * ntk_margin_constructed on all seeds",
    },
    on=on("heads-sparsity", alike=("test_samples", "learning_rate"), sigma=0.0),
    figure="sparsity",
    hypotheses="no noise; γ⋆ is the measured margin of section 5.2's θ⋆, which (7) with P = 0 "
    "would be; S of 2 and 4, ζ from 0.1 to 0.9, appendix G's S = 2 and ζ = 0.1 among them; a "
    "millionth is left to round-off",
)
mixture.ours(
    "random-attention-over-first-phase",
    "the first question of section 7",
    "At U = 0 and W ~ N(0, 1), with 10, 100 and 500 heads and 100 samples, the tangent kernel's "
    "margin is at least twice that after the first phase of section 5.1.",
    "ntk_margin / ntk_margin_first >= 2 with at least 10 seeds",
    on=on("heads-random-attention", alike=FREE, sigma_init=1.0, heads=(10, 100, 500)),
    figure="random-attention",
    hypotheses="that it separates 100 samples is no claim: from 10 heads on gradients have 400 "
    "dimensions or more, so that any labels are separated",
)
