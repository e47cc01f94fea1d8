"""Made-up worlds for the study's claims, with noise as it was measured on ten seeds."""

from __future__ import annotations

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
    theorem_cells,
)
from calibration.rates import Worlds
from calibration.worlds import (
    Bools,
    Numbers,
    Random,
    exception_worlds,
    few_seed_world,
    number_worlds,
)
from overfit_cli.claims.rules import FALLING
from overfit_cli.studies.multihead.claims import (
    FASTER,
    LINEAR,
    QUICKER,
    REACHED,
    ROOT,
    SLOWER,
)
from overfit_cli.studies.multihead.mixture.claims import ALIKE_UP_TO, EXPECTED, NEAR, STATED

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


def _first_phase(design: pd.DataFrame, coefficients: Numbers, random: Random) -> pd.DataFrame:
    return design.assign(steps=300, first_coefficient=coefficients)


def _side_cells(
    design: pd.DataFrame, broken: Bools, random: Random, *, columns: Columns
) -> pd.DataFrame:
    """Cells with numbers on one side of their bounds, or on the other where broken."""
    measured = {name: np.where(broken, *sides) for name, sides in columns.items()}
    return design.assign(steps=300, **measured)


def _directions(design: pd.DataFrame, cosines: Numbers, random: Random) -> pd.DataFrame:
    return design.assign(steps=10**5, machine_margin=1.0, machine_cosine=np.minimum(cosines, 1.0))


_GOOD: Columns = {"good_norm": (1.01, 0.5), "good_output": (0.5, 0.5)}
_TANGENT: Columns = {
    **dict.fromkeys(("ntk_margin", "ntk_margin_bound", "ntk_margin_constructed"), (0.4, 1.5)),
    **dict.fromkeys(("gamma_tangent", "gamma_tangent_without"), (1.0, 1.0)),
    **dict.fromkeys(("gamma_linear", "gamma_attention"), (1.0, 1.0)),
    "tangent_heads": (-1.0, -1.0),
}
_OPTIMAL: Columns = {
    "optimal_noise": (0.9, 0.9),
    "optimal_missed": (1.01, 0.5),
    "optimal_margin": (0.9, 0.9),
}

WORLDS: Mapping[str, Worlds] = {
    "mixture-constant-slower": number_worlds(step_cells, SLOWER, 0.04),
    "mixture-sqrt-faster": number_worlds(step_cells, FASTER, 0.06),
    "mixture-adam-faster": number_worlds(step_cells, FASTER, 0.012),
    "mixture-margin-1000": number_worlds(margin_cells, REACHED, 0.014),
    "mixture-margin-10000": number_worlds(margin_cells, REACHED, 0.01),
    "mixture-normalised-margin": number_worlds(margin_cells, REACHED, 0.01),
    "mixture-sqrt-margin-falls": Worlds(
        partial(_margins, slope=0.5), _margins, few_seed_world(_margins, FALLING.fewest_seeds)
    ),
    "mixture-identical-heads": exception_worlds(_spread),
    **bound_worlds("mixture"),
    "mixture-lemma2": number_worlds(_first_phase, STATED, 0.002),
    "mixture-lemma2-quarter": number_worlds(_first_phase, EXPECTED, 0.002),
    "mixture-good-initialisation": exception_worlds(partial(_side_cells, columns=_GOOD)),
    "mixture-tangent-margin": exception_worlds(partial(_side_cells, columns=_TANGENT)),
    "mixture-proposition3": exception_worlds(partial(_side_cells, columns=_OPTIMAL)),
    "mixture-contour-sqrt": number_worlds(contour_cells, ROOT, 0.003),
    "mixture-contour-linear": number_worlds(contour_cells, LINEAR, 0.003),
    "mixture-second-head": number_worlds(second_head_cells, QUICKER, 0.36, logs=True),
    "mixture-machine-fixed": number_worlds(_directions, NEAR, 0.001),
    "mixture-machine-both": number_worlds(_directions, NEAR, 0.001),
    **{
        f"mixture-theorem{number}": exception_worlds(partial(theorem_cells, number=number))
        for number in ("1", "2")
    },
}
