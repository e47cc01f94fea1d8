"""Made-up worlds for the claims on figure 1's boundary along other parameters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.rates import Worlds
from calibration.worlds import number_worlds
from overfit_cli.studies.benign_vit.claims.boundaries import PROPORTIONAL, SAME
from overfit_cli.studies.benign_vit.claims.figure_1 import EXPONENT
from overfit_cli.studies.benign_vit.claims.worlds.figure_1 import MIDDLE_N, shifts, test_loss
from overfit_cli.studies.benign_vit.theory.predictions import (
    FIGURE_1_CONSTANT,
    FIGURE_1_STRONG_NOISE,
    learning_balance,
)


def _curves(
    design: pd.DataFrame,
    random: np.random.Generator,
    *,
    factors: NDArray[np.float64] | float = 1.0,
    power: float = 2.0,
    stretch: NDArray[np.float64] | float = 1.0,
) -> pd.DataFrame:
    """Cells whose curves cross at N·SNR^p = C.

    Args:
        design: parameters and seeds.
        random: the source of its noise, the same seeds' shifts at each value of the axis.
        factors: C over figure 1's, at the middle N, for each cell.
        power: p.
        stretch: how much wider than figure 1's transition each cell's is, in log(SNR).
    """
    at = np.log(np.sqrt(FIGURE_1_CONSTANT * factors / MIDDLE_N))
    at = at - np.log(design["n"].to_numpy() / MIDDLE_N) / power
    at = at + shifts(design, random)
    away = (np.log(design["snr"].to_numpy()) - at) / stretch
    return design.assign(train_loss=0.009, test_loss=test_loss(away))


def _beyond_first(design: pd.DataFrame, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values where d is largest, and 1 elsewhere."""
    return np.where(design["d"] == design["d"].max(), values, 1.0)


def _constants(
    design: pd.DataFrame, factors: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    return _curves(design, random, factors=_beyond_first(design, factors))


def _exponent(
    design: pd.DataFrame, powers: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    return _curves(design, random, power=powers[0])


def _widths(
    design: pd.DataFrame, factors: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    """The width in N·SNR² is the square of that in SNR, and factors are of the former."""
    logs = np.log(_beyond_first(design, factors))
    stretch = 1 + logs / (2 * np.where(logs > 0, *WIDTH))
    return _curves(design, random, stretch=stretch)


WIDTH = (0.306, 0.277)
"""By how much log(SNR) grows from a test loss of 0.5 to one of 0.2, as read off the preset's grid:
where curves are stretched, and where they are squeezed."""


def _balance(
    design: pd.DataFrame, powers: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    """Both the onset and the crossing scale with a power of the balance of learning."""
    strong = design["sigma_p_tilde"] / design["sigma_p"]
    own = learning_balance(strong, design["tokens"])
    figure_1 = learning_balance(FIGURE_1_STRONG_NOISE, design["tokens"])
    return _curves(design, random, factors=(own / figure_1) ** powers)


BOUNDARIES: Mapping[str, Worlds] = {
    "dimension-constant": number_worlds(_constants, SAME, 0.05, logs=True),
    "dimension-exponent": number_worlds(_exponent, EXPONENT, 0.0),
    "dimension-sharpness": number_worlds(_widths, SAME, 0.05, logs=True),
    "transition-balance": number_worlds(_balance, PROPORTIONAL, 0.03),
    "constant-balance": number_worlds(_balance, PROPORTIONAL, 0.03),
}
