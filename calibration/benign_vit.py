"""Made-up worlds for the claims of `benign-vit` on boundaries, in which the truth is known.

Figure 1's noise is as it was measured on forty seeds; its boundary is moved along other parameters
too, and is that of the theorems' regime with half of the noise. Worlds of other claims are made
from their sentences.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom

from calibration.rates import Worlds
from calibration.worlds import margins_of, number_worlds, worlds_from
from overfit_cli.studies.benign_vit.claims import CLAIMS
from overfit_cli.studies.benign_vit.claims.figures import EXPONENT
from overfit_cli.studies.benign_vit.claims.limits import TRANSITION
from overfit_cli.studies.benign_vit.theory import (
    FIGURE_1_CONSTANT,
    FIGURE_1_EXPONENT,
    FIGURE_1_STRONG_NOISE,
    learning_balance,
)

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
    crossing = median + noise * shifts(design, random)
    away = np.log(design["snr"]) - crossing
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
    noise = OF_SEEDS * random.standard_normal(len(seeds)) + _curve_shifts(
        random, len(ns), len(seeds)
    )
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
    shift = np.linspace(-0.2, 2.0, 2201)[:, None]
    below = ndtr((shift - late) / np.hypot(OF_SEEDS, OF_ROWS)) @ binom.pmf(ones, n, 0.5)
    return float(np.interp(0.5, below, shift[:, 0]))


def _curve_shifts(random: np.random.Generator, rows: int, seeds: int) -> np.ndarray:
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


def falling(
    design: pd.DataFrame, random: np.random.Generator, *, n: float, snr: float
) -> pd.DataFrame:
    """Return cells whose losses fall along both axes by these slopes, for the average seed."""
    seeds = design["seed"].to_numpy()
    logs = random.normal(size=seeds.max() + 1)[seeds] + random.normal(size=len(design))
    for axis, slope in (("n", n), ("snr", snr)):
        slopes = 0.1 * random.normal(size=seeds.max() + 1) * np.log(design[axis].max()) - slope
        logs = logs + slopes[seeds] * np.log(design[axis].to_numpy())
    return figure_1(design, random).assign(test_loss=np.exp(logs))


STEEP = 3.0
"""The slope of losses whose rank correlation along either axis is about −0.85."""


def falling_along_one(
    design: pd.DataFrame, random: np.random.Generator, *, n: float, snr: float
) -> pd.DataFrame:
    """Return cells whose losses hardly fall along one of the axes, either as often.

    The slopes are those with a rank correlation of −0.5, the margin's end.
    """
    if random.random() < 1 / 2:
        return falling(design, random, n=n, snr=STEEP)
    return falling(design, random, n=STEEP, snr=snr)


AS_WELL = ({"power": 1.7}, {"power": 2.3})
"""Worlds of which a ratio to the power 1.5 or 2.5 tells the side as well as 2."""


def mixed_worlds(
    design: pd.DataFrame, random: np.random.Generator, *, worlds: Sequence[Mapping[str, float]]
) -> pd.DataFrame:
    """Return cells of one of several worlds, each as likely: see `figure_1` for what they set."""
    return figure_1(design, random, **worlds[int(random.integers(len(worlds)))])


_POWERS_AT_THE_ENDS = [{"power": end} for end in (EXPONENT.least, EXPONENT.most)]
_FACTORS_AT_THE_ENDS = [{"factor": 1 / 1.25}, {"factor": 1.25}]


def _curves(
    design: pd.DataFrame,
    random: np.random.Generator,
    *,
    factors: NDArray[np.float64] | float = 1.0,
) -> pd.DataFrame:
    """Cells whose curves cross at N·SNR² = C.

    Args:
        design: parameters and seeds.
        random: the source of its noise, the same seeds' shifts at each value of the axis.
        factors: C over figure 1's, at the middle N, for each cell.
    """
    crossing = np.log(np.sqrt(FIGURE_1_CONSTANT * factors / MIDDLE_N))
    crossing = crossing - np.log(design["n"].to_numpy() / MIDDLE_N) / FIGURE_1_EXPONENT
    crossing = crossing + shifts(design, random)
    away = np.log(design["snr"].to_numpy()) - crossing
    return design.assign(train_loss=0.009, test_loss=test_loss(away))


def _at_largest_dimension(design: pd.DataFrame, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values where d is largest, and 1 elsewhere."""
    return np.where(design["d"] == design["d"].max(), values, 1.0)


def _constants(
    design: pd.DataFrame, factors: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    return _curves(design, random, factors=_at_largest_dimension(design, factors))


def _balance(
    design: pd.DataFrame, powers: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    """Both the onset and the crossing scale with a power of the balance of learning."""
    strong = design["sigma_p_tilde"] / design["sigma_p"]
    balance = learning_balance(strong, design["tokens"])
    figure_1 = learning_balance(FIGURE_1_STRONG_NOISE, design["tokens"])
    return _curves(design, random, factors=(balance / figure_1) ** powers)


def _transition(
    design: pd.DataFrame, powers: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    """Cells whose boundary is N·SNR^p = C, with half of figure 1's noise."""
    crossing = np.log(1.8) - np.log(design["n"] / 64) / powers[0]
    away = np.log(design["snr"]) - crossing - shifts(design, random) / 2
    loss = test_loss(away.to_numpy())
    return design.assign(train_loss=design["epsilon"], steps=1e6, test_loss=loss)


MARGINS = margins_of(CLAIMS)

WORLDS: Mapping[str, Worlds] = {
    "fig1-fitted": worlds_from(
        partial(unfitted, share=0.0), partial(unfitted, share=1 - MARGINS["fig1-fitted"].least), 17
    ),
    "fig1-contour": worlds_from(figure_1, partial(mixed_worlds, worlds=_FACTORS_AT_THE_ENDS), 6),
    "fig1-exponent": worlds_from(
        figure_1, partial(mixed_worlds, worlds=_POWERS_AT_THE_ENDS), EXPONENT.fewest_seeds
    ),
    "fig1-balanced-exponent": worlds_from(
        partial(figure_1, power=2.25, noise=0.5), partial(figure_1, noise=0.5), 10
    ),
    "fig1-sides": worlds_from(figure_1, partial(figure_1, noise=2.28), 6),
    "fig1-sides-power": worlds_from(figure_1, partial(mixed_worlds, worlds=AS_WELL), 5),
    "fig1-falls-with-n": worlds_from(
        partial(falling, n=STEEP, snr=STEEP), partial(falling_along_one, n=0.97, snr=0.76), 5
    ),
    "fig2-falls-with-n": worlds_from(
        partial(falling, n=2.0, snr=2.0), partial(falling_along_one, n=0.85, snr=0.55), 5
    ),
    "dimension-constant": number_worlds(_constants, MARGINS["dimension-constant"], 0.05, logs=True),
    "transition-balance": number_worlds(_balance, MARGINS["transition-balance"], 0.03),
    "constant-balance": number_worlds(_balance, MARGINS["constant-balance"], 0.03),
    "theorem-transition": number_worlds(_transition, TRANSITION, 0.0),
}
