"""The power law y · x^p = C through the medians of crossings, with intervals over seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.analysis.crossings import crossing_table
from overfit_cli.analysis.intervals import Estimate, level_of_each

Floats = NDArray[np.float64]

BEYOND_AN_END = 50
"""How many bootstrap draws should lie outside an interval, or its ends are chance."""


@dataclass(frozen=True)
class PowerLaw:
    """The fit y · x^p = C.

    Attributes:
        exponent: p.
        constant: C, in the unit of y · x^p.
        rows: how many values of y it is fitted to.
        left_out: how many values of y have a median that lies beyond the grid.
    """

    exponent: Estimate
    constant: Estimate
    rows: int
    left_out: int


def fit_power_law(
    crossings: pd.DataFrame, y: str, *, repeats: int = 1000, seed: int = 0
) -> PowerLaw | None:
    """Fit y · x^p = C to the median crossing of each y: least squares of log(x) on log(y).

    It is x that is regressed, because y is set by the grid and x carries the noise. A curve that
    never crosses is one whose crossing lies beyond the grid, and counts as that: the median is
    known all the same, while fewer than half of a row's seeds do so. A value of y whose median lies
    beyond the grid is left out.

    The intervals are percentiles of the bootstrap over seeds: a seed's crossings share its draws,
    so whole seeds are resampled, and nothing else is. Those of p are the slopes', turned into p.

    Args:
        crossings: columns `y`, `seed`, `crossing` and `side`, as `crossings` returns them; rows
            where y isn't positive are left out.
        y: the name of the column of y.
        repeats: how many bootstrap draws, at least: a higher level takes more of them.
        seed: of the bootstrap.

    Returns:
        The fit; None with fewer than three values of y to fit it to, or if the crossing doesn't
        change with y, which no finite p describes.
    """
    table = crossing_table(crossings[crossings[y] > 0], y).dropna(axis=1, how="all")
    seeds = table.shape[1]
    if seeds == 0:
        return None
    log_y, log_x = np.log(table.index.to_numpy(dtype=np.float64)), table.to_numpy()
    medians = row_medians(log_x)
    used = np.isfinite(medians)
    if used.sum() < 3:
        return None
    log_y, log_x = log_y[used], log_x[used]
    fitted = _fits(log_y, medians[used][None])[0]
    if not np.isfinite(fitted).all():
        return None
    level = level_of_each(1)
    repeats = max(repeats, round(BEYOND_AN_END / (1 - level)))
    drawn = np.random.default_rng(seed).integers(seeds, size=(repeats, seeds))
    fits = _fits(log_y, row_medians(log_x[:, drawn]).T)
    tails = [50 * (1 - level), 50 * (1 + level)]
    slopes, logarithms = np.percentile(fits[np.isfinite(fits).all(axis=1)], tails, axis=0).T
    exponents = [-1 / fitted[0], *_exponents(*slopes)]
    with np.errstate(over="ignore"):
        constants = np.exp([fitted[1], *logarithms])
    kind = f"{100 * level:.4g} % bootstrap over {seeds} seeds"
    exponent, constant = (
        Estimate(float(three[0]), float(three[1]), float(three[2]), kind, seeds)
        for three in (exponents, constants)
    )
    return PowerLaw(exponent, constant, int(used.sum()), int((~used).sum()))


def _exponents(lowest: float, highest: float) -> tuple[float, float]:
    """Return the least and the largest p = −1/slope of an interval of slopes.

    Where slopes of both signs lie in it, p runs through infinity to negative numbers: such an
    interval has no upper end.
    """
    least = -1 / lowest if lowest else -np.inf
    return least, -1 / highest if highest * lowest > 0 else np.inf


def row_medians(values: Floats) -> Floats:
    """Return medians over the last axis, of numbers that may be infinite; nan is left out."""
    ordered = np.sort(values, axis=-1)  # nan comes last
    known = np.isfinite(values).sum(axis=-1) + np.isinf(values).sum(axis=-1)
    places = np.stack([np.maximum(known - 1, 0) // 2, known // 2], axis=-1)
    places = np.minimum(places, values.shape[-1] - 1)
    below, above = np.moveaxis(np.take_along_axis(ordered, places, axis=-1), -1, 0)
    with np.errstate(invalid="ignore"):  # between minus infinity and infinity
        return np.asarray(np.where(below == above, below, (below + above) / 2))


def _fits(log_y: Floats, medians: Floats) -> Floats:
    """Fit the law to every draw of medians.

    Args:
        log_y: of shape (rows,).
        medians: logarithms of x, of shape (draws, rows); a row that isn't finite is left out.

    Returns:
        The slope −1/p and log(C), of shape (draws, 2); nan with fewer than three rows, or where x
        stays.
    """
    known = np.isfinite(medians)
    centre = log_y.mean()  # keeps the sums of squares well away from cancellation
    u, v = np.where(known, log_y - centre, 0.0), np.where(known, medians, 0.0)
    count, sum_u, sum_v = known.sum(axis=1), u.sum(axis=1), v.sum(axis=1)
    with np.errstate(all="ignore"):
        spread = (u * u).sum(axis=1) - sum_u**2 / count
        slope = ((u * v).sum(axis=1) - sum_u * sum_v / count) / spread
        slope[(count < 3) | (spread < 1e-12) | (np.abs(slope) < 1e-12)] = np.nan
        intercept = (sum_v - slope * sum_u) / count
        return np.stack([slope, centre - intercept / slope], axis=1)
