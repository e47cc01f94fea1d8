"""Made-up worlds for the study's claims, with noise as it was measured.

The best step size of each number of heads is chosen from the same noisy cells that are then
compared: so the choice is a part of every world.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from calibration.rates import Worlds
from calibration.worlds import Numbers, Random, worlds_from
from overfit_cli.studies.multihead.sst2.claims import LOWER

RATES = (0.0003, 0.0006, 0.001, 0.002)
TRAIN_LOSSES = (0.496, 0.470, 0.473, 0.623)

TEST_LOSSES = (0.538, 0.516, 0.523, 0.655)
"""One head's mean losses at each step size."""

TRAIN_NOISE, TEST_NOISE = (0.012, 0.003), (0.013, 0.004)
"""Deviations of losses: of what a seed's cells share, and of a cell."""


def trained_cells(
    design: pd.DataFrame,
    random: Random,
    *,
    gain: float = 0.0,
    flat: bool = False,
) -> pd.DataFrame:
    """Return cells whose losses change with the heads by what is said.

    Args:
        gain: how much lower the losses are with each doubling of the heads.
        flat: whether losses of several heads are the same at both step sizes inside the sweep, so
            that the choice among them gains the most by chance; else they follow one head's.
    """
    inside = design["learning_rate"].isin(RATES[1:3]).to_numpy() & (design["heads"] > 1).to_numpy()
    doublings = np.log2(design["heads"].to_numpy(float))

    def loss(levels: tuple[float, ...], noise: tuple[float, float]) -> Numbers:
        curve = np.interp(np.log(design["learning_rate"]), np.log(RATES), levels)
        level = np.where(inside & flat, curve.min(), curve)
        losses: Numbers = level - gain * doublings + _noise(design, random, *noise)
        return losses

    return design.assign(
        steps=600,
        mean_train_loss=loss(TRAIN_LOSSES, TRAIN_NOISE),
        mean_test_loss=loss(TEST_LOSSES, TEST_NOISE),
    )


def _noise(design: pd.DataFrame, random: Random, of_seed: float, of_cell: float) -> Numbers:
    seeds = int(design["seed"].max()) + 1
    shared: Numbers = random.normal(0, of_seed, seeds)[design["seed"].to_numpy()]
    return shared + random.normal(0, of_cell, len(design))


_FASTER = worlds_from(
    partial(trained_cells, gain=0.01), partial(trained_cells, flat=True), LOWER.fewest_seeds
)

WORLDS: Mapping[str, Worlds] = {"sst2-faster": _FASTER, "sst2-generalises-faster": _FASTER}
