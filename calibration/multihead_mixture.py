"""Made-up worlds for the study's claims, with noise as it was measured on ten seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from calibration.multihead import (
    loss_curves,
    margin_cells,
    rate_curves,
    speed_curves,
    step_cells,
)
from calibration.rates import Worlds
from calibration.worlds import (
    Bools,
    Numbers,
    Random,
    exception_worlds,
    few_seed_world,
    number_worlds,
    number_worlds_of,
)
from overfit_cli.studies.multihead.mixture.bound_claims import BOUNDS
from overfit_cli.studies.multihead.mixture.claims import CLAIMS, LONG, LOST
from overfit_cli.studies.multihead.mixture.least_heads_claims import DECADES
from overfit_cli.studies.multihead.mixture.margin_claims import DECADES as OF_MARGIN

_numbers = number_worlds_of(CLAIMS)

Columns = Mapping[str, tuple[float, float]]
"""What each column is where a claim is broken, and where it isn't."""


def _at_bound(
    design: pd.DataFrame, broken: Bools, random: Random, *, columns: Sequence[str]
) -> pd.DataFrame:
    """Cells of which one is a little above its bound on each seed that breaks it."""
    first = ~design.duplicated("seed").to_numpy() & broken
    return design.assign(steps=1000, **dict.fromkeys(columns, np.where(first, 1.01, 0.5)))


def _margins(design: pd.DataFrame, random: Random, *, slope: float = 0.0) -> pd.DataFrame:
    """Cells whose margins fall with H by `slope`, on a seed more and on another less."""
    seeds = int(design["seed"].max()) + 1
    slopes = 0.1 * random.standard_normal(seeds)[design["seed"].to_numpy()] - slope
    noise = 0.02 * random.standard_normal(len(design))
    shares = 0.6 + slopes * np.log(design["heads"].to_numpy(float)) / 4 + noise
    return design.assign(steps=1000, margin_share=shares)


AT_THE_END = 4 * LOST / math.log(50)
"""The slope with which as much of γ_attn is lost from 1 head to 50 as decides."""


def _closer(design: pd.DataFrame, ratios: Numbers, random: Random) -> pd.DataFrame:
    """Cells that lack so much of the margin after many steps, over what they lack after few."""
    long = design["training_steps"].to_numpy() == LONG
    return design.assign(steps=1000, margin_share=1 - 0.1 * np.where(long, ratios, 1.0))


def _first_phase(
    design: pd.DataFrame, powers: Numbers, random: Random, *, share: float
) -> pd.DataFrame:
    """Cells with so much of the oracle classifier, and a rest that falls with n₁ by a power."""
    size = math.sqrt(2) * design["strength"] * design["relevant"] / design["tokens"]  # ζ ‖u⋆‖
    rest = 0.01 * (design["first_samples"].to_numpy(float) / 1000) ** powers
    from_quarter = np.sqrt(rest**2 + ((share - 0.25) * size) ** 2)
    return design.assign(steps=1, first_coefficient=share, first_deviation=from_quarter)


def _side_cells(
    design: pd.DataFrame, broken: Bools, random: Random, *, columns: Columns
) -> pd.DataFrame:
    """Cells with numbers on one side of their bounds, or on the other where broken."""
    measured = {name: np.where(broken, *sides) for name, sides in columns.items()}
    return design.assign(steps=300, **measured)


def _margin_ratios(design: pd.DataFrame, ratios: Numbers, random: Random) -> pd.DataFrame:
    """Cells with so many times another start's margin."""
    return design.assign(steps=1, ntk_margin=ratios, ntk_margin_first=1.0)


def _least_heads(design: pd.DataFrame, decades: Numbers, random: Random) -> pd.DataFrame:
    """Cells below the bound at any H, of which it asks for so many decades of heads."""
    required = decades - 2 * np.log10(design["d"].to_numpy(float))
    return design.assign(
        steps=1000, mean_train_loss=0.5, theorem1_bound=1.0, theorem1_heads=required
    )


def _concave(design: pd.DataFrame, powers: Numbers, random: Random) -> pd.DataFrame:
    """Cells whose concavity is a power of H of each seed."""
    return design.assign(steps=1, concavity=design["heads"].to_numpy(float) ** powers)


def _least_margins(design: pd.DataFrame, decades: Numbers, random: Random) -> pd.DataFrame:
    """Cells with the margin from one head on, for which Lemma 15 asks for so many decades."""
    return design.assign(steps=1, ntk_margin=1.0, gamma_tangent=1.0, tangent_heads=decades)


def _ordered(design: pd.DataFrame, broken: Bools, random: Random) -> pd.DataFrame:
    """Cells whose γ⋆ lies between both others, or above γ_attn at the largest S where broken."""
    last = design["strength"].to_numpy() == design["strength"].max()
    return design.assign(
        steps=1,
        ntk_margin_constructed=np.where(last & broken, 1.01, 0.7),
        gamma_tangent_without=0.7,
        gamma_attention=1.0,
        gamma_linear=0.5,
    )


_OPTIMAL: Columns = {
    "optimal_noise": (0.9, 0.9),
    "optimal_missed": (1.01, 0.5),
    "optimal_margin": (0.9, 0.9),
}

WORLDS: Mapping[str, Worlds] = {
    "mixture-constant-slower": _numbers("mixture-constant-slower", step_cells, 0.04),
    "mixture-sqrt-faster": _numbers("mixture-sqrt-faster", step_cells, 0.06),
    "mixture-adam-faster": _numbers("mixture-adam-faster", step_cells, 0.012),
    "mixture-margin-approached": _numbers("mixture-margin-approached", _closer, 0.03, logs=True),
    "mixture-margin-10000": _numbers("mixture-margin-10000", margin_cells, 0.01),
    "mixture-normalised-margin": _numbers("mixture-normalised-margin", margin_cells, 0.01),
    "mixture-sqrt-margin-falls": Worlds(
        partial(_margins, slope=0.5),
        partial(_margins, slope=AT_THE_END),
        few_seed_world(partial(_margins, slope=AT_THE_END), 10),
    ),
    "mixture-constant-rate": _numbers("mixture-constant-rate", rate_curves, 0.02),
    "mixture-loss-below-one": exception_worlds(loss_curves),
    "mixture-sqrt-test-faster": _numbers("mixture-sqrt-test-faster", speed_curves, 0.06),
    "mixture-adam-test-faster": _numbers("mixture-adam-test-faster", speed_curves, 0.02),
    **{
        name: exception_worlds(partial(_at_bound, columns=BOUNDS[of]))
        for name, of in (
            ("mixture-proposition1-random", "proposition1"),
            ("mixture-corollary1-gradient-random", "corollary1-gradient"),
            ("mixture-corollary1-hessian-random", "corollary1-hessian"),
            ("mixture-corollary1-concavity", "corollary1-concavity"),
        )
    },
    "mixture-lemma2": _numbers("mixture-lemma2", partial(_first_phase, share=0.5), 0.05),
    "mixture-lemma2-quarter": _numbers(
        "mixture-lemma2-quarter", partial(_first_phase, share=0.25), 0.05
    ),
    "mixture-proposition3": exception_worlds(partial(_side_cells, columns=_OPTIMAL)),
    "mixture-random-attention-over-first-phase": _numbers(
        "mixture-random-attention-over-first-phase", _margin_ratios, 0.1, logs=True
    ),
    "mixture-least-heads-condition": number_worlds(_least_heads, DECADES, 0.3),
    "mixture-concavity-falls": _numbers("mixture-concavity-falls", _concave, 0.22),
    "mixture-least-heads-margin": number_worlds(_least_margins, OF_MARGIN, 0.3),
    "mixture-margins-ordered": exception_worlds(_ordered),
}
