"""Made-up worlds for the study's claims, with noise as it was measured on ten seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from calibration.multihead import (
    bound_worlds,
    contour_cells,
    margin_cells,
    second_head_cells,
    step_cells,
    theorem1_cells,
    theorem2_cells,
)
from calibration.rates import Worlds
from calibration.worlds import (
    Bools,
    Numbers,
    Random,
    exception_worlds,
    few_seed_world,
    number_worlds,
    share_worlds,
)
from overfit_cli.studies.multihead.claims import FASTER, REACHED, SLOWER, WITHIN_BOUND
from overfit_cli.studies.multihead.mixture.claims import (
    ALIKE_UP_TO,
    CLOSER,
    LONG,
    LOST,
    NEAR,
)
from overfit_cli.studies.multihead.mixture.first_phase_claims import FALLS_AS_ROOT, WITH_CHANCE
from overfit_cli.studies.multihead.step_size_claims import QUICKER, ROOT

Columns = Mapping[str, tuple[float, float]]
"""What each column is where a claim is broken, and where it isn't."""


def _spread(design: pd.DataFrame, broken: Bools, random: Random) -> pd.DataFrame:
    """Cells whose heads drift apart by a little more than is taken for none, where broken."""
    return design.assign(
        steps=300, head_spread=np.where(broken, 2 * ALIKE_UP_TO, 0.001 * ALIKE_UP_TO)
    )


def _margins(design: pd.DataFrame, random: Random, *, slope: float = 0.0) -> pd.DataFrame:
    """Cells whose margins fall with H by `slope`, on a seed more and on another less."""
    seeds = int(design["seed"].max()) + 1
    slopes = 0.1 * random.standard_normal(seeds)[design["seed"].to_numpy()] - slope
    noise = 0.02 * random.standard_normal(len(design))
    shares = 0.6 + slopes * np.log(design["heads"].to_numpy(float)) / 4 + noise
    return design.assign(steps=1000, margin_share=shares)


AT_THE_END = 4 * LOST.least / math.log(50)
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


def _outputs(design: pd.DataFrame, right: Bools, random: Random) -> pd.DataFrame:
    """Cells on one side of P2's bound, or on the other, with p as short as Lemma 2 has it."""
    return design.assign(steps=1, good_output=np.where(right, 0.5, 1.01), **PRINTED)


PRINTED = {
    "first_coefficient": 0.5,
    "first_deviation": 0.25 * math.sqrt(2) / 2,  # (1/2 − 1/4) ζ ‖u⋆‖: nothing besides ζ/2 u⋆
    "gamma_tangent": 1000 - 8 * math.sqrt(2),  # less 2 P T^(5/2) (S + Z)³, with P about ζ/4 u⋆
    "gamma_tangent_without": 1000.0,
}
"""Columns of `heads-first-phase` with Lemma 2's coefficient of u⋆: γ⋆ is 1000; one head will do."""


def _tangent(design: pd.DataFrame, right: Bools, random: Random) -> pd.DataFrame:
    """Cells that all meet Proposition 2's requirements."""
    margins = np.where(right, 600.0, 400.0)
    return design.assign(steps=1, ntk_margin=margins, **PRINTED)


def _side_cells(
    design: pd.DataFrame, broken: Bools, random: Random, *, columns: Columns
) -> pd.DataFrame:
    """Cells with numbers on one side of their bounds, or on the other where broken."""
    measured = {name: np.where(broken, *sides) for name, sides in columns.items()}
    return design.assign(steps=300, **measured)


def _directions(design: pd.DataFrame, cosines: Numbers, random: Random) -> pd.DataFrame:
    return design.assign(steps=10**5, machine_margin=1.0, machine_cosine=np.minimum(cosines, 1.0))


_GOOD: Columns = {"good_norm": (1.01, 0.5)}
_OPTIMAL: Columns = {
    "optimal_noise": (0.9, 0.9),
    "optimal_missed": (1.01, 0.5),
    "optimal_margin": (0.9, 0.9),
}

WORLDS: Mapping[str, Worlds] = {
    "mixture-constant-slower": number_worlds(step_cells, SLOWER, 0.04),
    "mixture-sqrt-faster": number_worlds(step_cells, FASTER, 0.06),
    "mixture-adam-faster": number_worlds(step_cells, FASTER, 0.012),
    "mixture-margin-approached": number_worlds(_closer, CLOSER, 0.03, logs=True),
    "mixture-margin-10000": number_worlds(margin_cells, REACHED, 0.01),
    "mixture-normalised-margin": number_worlds(margin_cells, REACHED, 0.01),
    "mixture-sqrt-margin-falls": Worlds(
        partial(_margins, slope=0.5),
        partial(_margins, slope=AT_THE_END),
        few_seed_world(partial(_margins, slope=AT_THE_END), LOST.fewest_seeds),
    ),
    "mixture-identical-heads": exception_worlds(_spread),
    **bound_worlds("mixture"),
    "mixture-lemma2": number_worlds(partial(_first_phase, share=0.5), FALLS_AS_ROOT, 0.05),
    "mixture-lemma2-quarter": number_worlds(partial(_first_phase, share=0.25), FALLS_AS_ROOT, 0.05),
    "mixture-initial-norm": exception_worlds(partial(_side_cells, columns=_GOOD)),
    "mixture-initial-output": share_worlds(_outputs, WITH_CHANCE),
    "mixture-tangent-margin": share_worlds(_tangent, WITH_CHANCE),
    "mixture-proposition3": exception_worlds(partial(_side_cells, columns=_OPTIMAL)),
    "mixture-contour-sqrt": number_worlds(contour_cells, ROOT, 0.003),
    "mixture-second-head": number_worlds(second_head_cells, QUICKER, 0.36, logs=True),
    "mixture-machine-fixed": number_worlds(_directions, NEAR, 0.001),
    "mixture-machine-both": number_worlds(_directions, NEAR, 0.001),
    "mixture-theorem1": exception_worlds(theorem1_cells),
    "mixture-theorem2": number_worlds(theorem2_cells, WITHIN_BOUND, 0.1),
}
