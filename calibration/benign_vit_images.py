"""Made-up worlds for the claims of figure 2, with noise as it was measured on the digits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from calibration.rates import Worlds
from calibration.worlds import Bools, Random, margins_of, share_worlds, worlds_from
from overfit_cli.studies.benign_vit.images.claims import BENIGN, CLAIMS, HARMFUL

MEASURED_HARMFUL, MEASURED_BENIGN = 16.9, 0.1
"""Test losses at the corners of a grid with a transition."""

CORNER_NOISE, SLOPES, NOISE = 0.25, 0.5, 0.5
"""Deviations of a seed's log test loss: at a corner; of its change along an axis where nothing
changes on average; and of a cell."""


def corners(
    design: pd.DataFrame,
    random: Random,
    *,
    least: float = MEASURED_HARMFUL,
    largest: float = MEASURED_BENIGN,
) -> pd.DataFrame:
    """Return cells whose test loss goes from one corner's to the other's, seed by seed.

    Args:
        design: parameters and seeds.
        random: the source of the noise.
        least, largest: the losses at the least and the largest N and ratio.
    """
    way = (_position(design, "n") + _position(design, "snr")) / 2
    logs = (1 - way) * math.log(least) + way * math.log(largest)
    return _cells(design, np.exp(logs + random.normal(0, CORNER_NOISE, len(design))))


def corner_at_margin(design: pd.DataFrame, random: Random) -> pd.DataFrame:
    """Return cells of which one corner, either as often, has the loss that decides."""
    if random.random() < 1 / 2:
        return corners(design, random, least=HARMFUL)
    return corners(design, random, largest=BENIGN)


def sloped(design: pd.DataFrame, random: Random, *, axis: str, fall: float = 0.0) -> pd.DataFrame:
    """Return cells whose log test loss falls by `fall` along an axis, for the average seed."""
    seeds = design["seed"].to_numpy()
    slopes = random.normal(-fall, SLOPES, seeds.max() + 1)[seeds]
    logs = slopes * _position(design, axis) + random.normal(0, NOISE, len(design))
    return _cells(design, np.exp(logs))


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


def _trend(axis: str) -> Worlds:
    none = partial(sloped, axis=axis)
    return worlds_from(partial(none, fall=2.0), none, 5)


WORLDS: Mapping[str, Worlds] = {
    "fig2-fitted": share_worlds(unfitted, margins_of(CLAIMS)["fig2-fitted"]),
    "fig2-transition": worlds_from(corners, corner_at_margin, 5),
    "fig2-falls-with-n": _trend("n"),
    "fig2-falls-with-snr": _trend("snr"),
}
