"""Fitted powers beside curves: the mean of the seeds' own slopes, and how far medians are off."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from overfit_cli.core.arrays import Floats
from overfit_cli.figures.boundary import share_in_words
from overfit_cli.stats.boundaries import seeds_exponents
from overfit_cli.stats.intervals import Estimate, mean_estimate


@dataclass(frozen=True)
class Power:
    """A fitted power of x: the mean of the seeds' own slopes, and its lack of fit.

    Attributes:
        residual: the largest share by which a median is off the line of that power; nan of two x.
    """

    estimate: Estimate
    residual: float

    @property
    def number(self) -> str:
        """The power."""
        return f"{self.estimate.value:.2f}".replace("-", "−")

    @property
    def interval(self) -> str:
        """Its interval; empty without one."""
        low, high = self.estimate.low, self.estimate.high
        if not np.isfinite(high - low):
            return ""
        return f"[{low:.2f}, {high:.2f}]".replace("-", "−")

    @property
    def fit(self) -> str:
        """The lack of fit; empty of two x, which a line always fits."""
        return "" if np.isnan(self.residual) else share_in_words(self.residual)

    def __str__(self) -> str:
        """Write all three."""
        numbers = " ".join(filter(None, [self.number, self.interval]))
        return ", ".join(filter(None, [numbers, self.fit]))


def largest_residual(x: Floats, medians: Floats, power: float, *, fewest: int = 3) -> float:
    """Return the largest share by which medians are off a line of this power through their middle.

    Args:
        x: shape (points,).
        medians: shape (points,).
        fewest: the number of points from which there is one; 3 where the power is fitted to them.
    """
    if len(x) < fewest:
        return np.nan
    logs = np.log(medians) - power * np.log(x)
    return float(np.expm1(np.abs(logs - logs.mean()).max()))


def fitted_power(cells: pd.DataFrame, x: str, value: str) -> Power | None:
    """Return the power of x in a column, of cells with positive numbers; None without two x."""
    usable = cells[(cells[value] > 0) & (cells[value] < np.inf)]
    powers = seeds_exponents(usable, [x], value)
    if powers is None:
        return None
    power = mean_estimate(powers[x])
    logs = pd.Series(np.log(usable[value].to_numpy(float)), usable.index)
    medians = logs.groupby(usable[x]).median()
    places = medians.index.to_numpy(float)
    residual = largest_residual(places, np.exp(medians.to_numpy()), power.value)
    return Power(power, residual)
