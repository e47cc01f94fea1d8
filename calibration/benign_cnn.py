"""Made-up worlds for the claims of `benign-cnn`: boundaries of both models on one grid."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.benign_vit import GUESS
from calibration.rates import Worlds
from calibration.worlds import number_worlds
from overfit_cli.studies.benign_vit.claims.cnn import FEWER, WHOLE
from overfit_cli.studies.benign_vit.theory import FIGURE_1_THRESHOLD

MIDDLE_N = 11.0
"""Where boundaries of other powers meet."""

MIDDLE_RATIO = 0.33
"""The transformer's signal-to-noise ratio there."""

STEEP = 4.4
"""The power by which the odds of the test loss, of ln 2, fall with the signal-to-noise ratio."""

OF_SEEDS, OF_CURVES = 0.02, 0.05
"""Deviations of log(SNR) at the boundary, of seeds and of their curves."""


def boundary_cells(
    design: pd.DataFrame,
    random: np.random.Generator,
    powers: Mapping[str, float],
    ratio: NDArray[np.float64] | float,
) -> pd.DataFrame:
    """Return cells with a boundary N · SNR^p = C for each model.

    Args:
        design: parameters and seeds.
        random: the source of the noise.
        powers: p by model.
        ratio: the CNN's signal-to-noise ratio over the transformer's at the middle N; of each cell.
    """
    crossing = np.log(MIDDLE_RATIO) + np.where(design["model"] == "cnn", np.log(ratio), 0.0)
    power = design["model"].map(powers).to_numpy(dtype=np.float64)
    crossing = crossing - np.log(design["n"].to_numpy() / MIDDLE_N) / power
    for names, deviation in ((["seed"], OF_SEEDS), (["seed", "model", "n"], OF_CURVES)):
        group = design.groupby(names).ngroup().to_numpy()
        crossing = crossing + deviation * random.standard_normal(group.max() + 1)[group]
    away = np.exp(STEEP * (np.log(design["snr"].to_numpy()) - crossing))
    odds = (GUESS / FIGURE_1_THRESHOLD - 1) * away
    return design.assign(steps=10, train_loss=0.009, test_loss=GUESS / (1 + odds))


def _ratios(
    design: pd.DataFrame, ratios: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    return boundary_cells(design, random, {"cnn": 2.0, "vit": 2.0}, ratios)


def _powers(
    design: pd.DataFrame, off: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    """Cells of which one model's power is off, either's as often."""
    powers = {"cnn": 3.0, "vit": 2.0}
    powers["cnn" if random.random() < 1 / 2 else "vit"] += off[0]
    return boundary_cells(design, random, powers, 1.5)


_FEWER_SAMPLES = number_worlds(_ratios, FEWER, 0.05, logs=True)

WORLDS: Mapping[str, Worlds] = {
    "cnn-fewer-samples": _FEWER_SAMPLES,
    "cnn-fewer-samples-any-loss": _FEWER_SAMPLES,
    "cnn-power": number_worlds(_powers, WHOLE, 0.0),
}
