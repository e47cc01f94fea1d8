"""Made-up worlds for the claims of figure 2, with noise as it was measured on the digits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from calibration.rates import Worlds
from calibration.worlds import Bools, Random, margins_of, share_worlds, worlds_from
from overfit_cli.studies.benign_vit.images.claims import CLAIMS

SLOPES, NOISE = 0.5, 0.5
"""Deviations of the change of a seed's log test loss along an axis, and of a cell."""


def falling(design: pd.DataFrame, random: Random, *, n: float, snr: float) -> pd.DataFrame:
    """Return cells whose log test loss falls by so much along each axis, for the average seed."""
    seeds = design["seed"].to_numpy()
    logs = random.normal(0, NOISE, len(design))
    for axis, fall in (("n", n), ("snr", snr)):
        logs = logs + random.normal(-fall, SLOPES, seeds.max() + 1)[seeds] * _position(design, axis)
    return _cells(design, np.exp(logs))


def falling_along_one(design: pd.DataFrame, random: Random) -> pd.DataFrame:
    """Return cells whose test loss does not fall along one of the axes, either as often."""
    flat = random.random() < 1 / 2
    return falling(design, random, n=2.0 * flat, snr=2.0 * (not flat))


def unfitted(design: pd.DataFrame, fitted: Bools, random: Random) -> pd.DataFrame:
    """Return cells of which one isn't fitted on each seed that isn't."""
    cells = _cells(design, np.ones(len(design)))
    missed = ~cells.duplicated("seed").to_numpy() & ~fitted
    return cells.assign(
        train_loss=np.where(missed, 2.3, cells["train_loss"]),
        status=np.where(missed, "failed", cells["status"]),
    )


def _cells(design: pd.DataFrame, test_loss: np.ndarray) -> pd.DataFrame:
    return design.assign(test_loss=test_loss, train_loss=0.009, epochs=60.0)


def _position(design: pd.DataFrame, axis: str) -> np.ndarray:
    """How far along an axis cells lie, from 0 to 1, in steps of its logarithm."""
    logs = np.log(design[axis].to_numpy(float))
    position: np.ndarray = (logs - logs.min()) / np.ptp(logs)
    return position


WORLDS: Mapping[str, Worlds] = {
    "fig2-fitted": share_worlds(unfitted, margins_of(CLAIMS)["fig2-fitted"]),
    "fig2-falls-with-n": worlds_from(partial(falling, n=2.0, snr=2.0), falling_along_one, 5),
}
