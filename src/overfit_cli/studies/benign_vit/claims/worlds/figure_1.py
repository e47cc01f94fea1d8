"""Made-up worlds for the claims of figure 1, with noise as it was measured on forty seeds."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from scipy.special import ndtr
from scipy.stats import binom

from calibration.rates import Worlds
from calibration.worlds import worlds_from
from overfit_cli.claims.rules import FALLING
from overfit_cli.studies.benign_vit.claims.figure_1 import CONTOUR, EXPONENT, FITTED, SHARE
from overfit_cli.studies.benign_vit.theory.predictions import FIGURE_1_CONSTANT, FIGURE_1_EXPONENT

GUESS = 0.69
"""The test loss of a guess, which curves come down from."""

SHAPE = (
    (-1.45, -0.95, -0.65, -0.45, -0.35, -0.25, -0.15, -0.05, 0.0, 0.05, 0.15, 0.25, 0.45, 0.75),
    (-3.60, -2.70, -2.10, -1.50, -1.10, -0.60, 0.0, 0.57, 0.896, 1.29, 1.60, 1.72, 1.93, 2.20),
)
"""How curves come down, as measured: log(SNR) beyond the crossing, and log(0.69/loss − 1) there."""

LATE = 0.42
"""The power of N / (2 min(N₊, N₋)) in the SNR at the crossing, as fitted over 40 seeds."""

OF_SEEDS, OF_ROWS = 0.02, 0.04
"""Standard deviations of log(SNR) at the crossing with balanced labels: of seeds, and of curves."""

MIDDLE_N = 10.0
"""Where the boundaries of worlds with other powers meet figure 1's."""


def figure_1(
    design: pd.DataFrame,
    random: np.random.Generator,
    *,
    power: float = FIGURE_1_EXPONENT,
    factor: float = 1.0,
    noise: float = 1.0,
) -> pd.DataFrame:
    """Return cells whose median boundary is N · SNR^p = C.

    Args:
        design: parameters and seeds.
        random: the source of its noise.
        power: p.
        factor: C over figure 1's, at the middle N.
        noise: how many times as strong as measured.
    """
    middle = np.sqrt(factor * FIGURE_1_CONSTANT / MIDDLE_N)
    median = np.log(middle) - np.log(design["n"] / MIDDLE_N) / power
    at = median + noise * shifts(design, random)
    away = np.log(design["snr"]) - at
    return design.assign(steps=10, train_loss=0.009, test_loss=test_loss(away.to_numpy()))


def test_loss(away: np.ndarray) -> np.ndarray:
    """Return the test loss where log(SNR) is so far beyond the crossing."""
    odds = np.exp(np.interp(away, *SHAPE) + 1.8 * np.minimum(away - SHAPE[0][0], 0))
    return np.asarray(GUESS / (1 + odds))


def shifts(design: pd.DataFrame, random: np.random.Generator) -> np.ndarray:
    """Draw by how much each cell's curve crosses beyond the median one, in log(SNR).

    Labels are fair coins, and a seed's samples come in one order: the rarer label's count decides.
    """
    ns, row = np.unique(design["n"], return_inverse=True)
    seeds, column = np.unique(design["seed"], return_inverse=True)
    ones = np.cumsum(random.random((ns[-1], len(seeds))) < 0.5, axis=0)[ns - 1]  # (n, seeds)
    late = _late(np.minimum(ones, ns[:, None] - ones), ns[:, None])
    late -= np.array([_median_late(n) for n in ns])[:, None]
    noise = OF_SEEDS * random.standard_normal(len(seeds)) + _of_rows(random, len(ns), len(seeds))
    return np.asarray((late + noise)[row, column])


def _late(rarer: np.ndarray, n: np.ndarray | int) -> np.ndarray:
    """By how much log(SNR) at the crossing grows with lopsided labels; infinite with one label."""
    with np.errstate(divide="ignore"):
        return np.asarray(LATE * np.log(n / (2 * rarer)))


@functools.cache
def _median_late(n: int) -> float:
    """The median of that and the noise, over draws of N labels."""
    ones = np.arange(n + 1)
    late = _late(np.minimum(ones, n - ones), n)
    at = np.linspace(-0.2, 2.0, 2201)[:, None]
    below = ndtr((at - late) / np.hypot(OF_SEEDS, OF_ROWS)) @ binom.pmf(ones, n, 0.5)
    return float(np.interp(0.5, below, at[:, 0]))


def _of_rows(random: np.random.Generator, rows: int, seeds: int) -> np.ndarray:
    """Curves' own shifts, (rows, seeds): neighbouring N share samples, and correlate by a half."""
    steps = OF_ROWS * random.standard_normal((rows, seeds))
    for row in range(1, rows):
        steps[row] = 0.5 * steps[row - 1] + np.sqrt(0.75) * steps[row]
    return steps


def unfitted(design: pd.DataFrame, random: np.random.Generator, *, share: float) -> pd.DataFrame:
    """Return cells of which one is not fitted on that share of the seeds."""
    cells = figure_1(design, random)
    seeds = np.sort(cells["seed"].unique())
    missed = seeds[random.random(len(seeds)) < share]
    first = ~cells.duplicated("seed") & cells["seed"].isin(missed)
    return cells.assign(train_loss=np.where(first, 0.5, cells["train_loss"]))


def without_trend(
    design: pd.DataFrame, random: np.random.Generator, *, slope: float = 0.0, axis: str = "n"
) -> pd.DataFrame:
    """Return cells whose losses differ by seed and by chance, and fall along an axis by `slope`."""
    by_seed = pd.Series(random.normal(size=design["seed"].max() + 1))
    along = pd.Series(random.normal(size=design["seed"].max() + 1)) * np.log(design[axis].max())
    logs = by_seed[design["seed"]].to_numpy() + random.normal(size=len(design))
    tilt = 0.1 * along[design["seed"]].to_numpy() - slope
    return figure_1(design, random).assign(
        test_loss=np.exp(logs + tilt * np.log(design[axis].to_numpy()))
    )


ONLY_JUST_FALSE = ({"power": 1.45}, {"power": 2.38}, {"noise": 1.95})
"""Worlds of which a ratio to the power 1 or 3 tells the side as well as 2, or 2 tells 90 %."""


def one_of(
    design: pd.DataFrame, random: np.random.Generator, *, worlds: Sequence[Mapping[str, float]]
) -> pd.DataFrame:
    """Return cells of one of several worlds, each as likely: see `figure_1` for what they set."""
    return figure_1(design, random, **worlds[int(random.integers(len(worlds)))])


_POWERS_AT_THE_ENDS = [{"power": end} for end in (EXPONENT.least, EXPONENT.most)]
_FACTORS_AT_THE_ENDS = [
    {"factor": end / FIGURE_1_CONSTANT} for end in (CONTOUR.least, CONTOUR.most)
]


FIGURE_1: Mapping[str, Worlds] = {
    "fig1-fitted": worlds_from(
        partial(unfitted, share=0.0),
        partial(unfitted, share=1 - FITTED.least),
        FITTED.fewest_seeds,
    ),
    "fig1-contour": worlds_from(
        figure_1, partial(one_of, worlds=_FACTORS_AT_THE_ENDS), CONTOUR.fewest_seeds
    ),
    "fig1-exponent": worlds_from(
        figure_1, partial(one_of, worlds=_POWERS_AT_THE_ENDS), EXPONENT.fewest_seeds
    ),
    "fig1-sides": worlds_from(
        figure_1, partial(one_of, worlds=ONLY_JUST_FALSE), SHARE.fewest_seeds
    ),
    "fig1-falls-with-n": worlds_from(
        partial(without_trend, slope=1.0), without_trend, FALLING.fewest_seeds
    ),
    "fig1-falls-with-snr": worlds_from(
        partial(without_trend, slope=1.0, axis="snr"),
        partial(without_trend, axis="snr"),
        FALLING.fewest_seeds,
    ),
}
