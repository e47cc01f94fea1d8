"""Boundaries in grids, and power laws: y · x^p = C, and scaling exponents.

A boundary runs through the crossings of a threshold, which `stats.crossings` computes.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from overfit_cli.core.arrays import Floats
from overfit_cli.stats.crossings import crossing_table
from overfit_cli.stats.intervals import Estimate, level_of_each

if TYPE_CHECKING:
    import pandas as pd


FEWEST_FOR_LAW = 3
"""The least number of values of y that a power law is fitted to."""

TAIL_DRAWS = 50
"""The least number of bootstrap draws outside an interval: with fewer its ends are random."""


@dataclass(frozen=True)
class PowerLaw:
    """The fit y · x^p = C.

    Attributes:
        constant: C, in the unit of y · x^p.
        residual: the largest share by which a median x is off the fit.
        rows: the number of values of y that it is fitted to.
        left_out: the number of values of y whose median lies beyond the grid.
    """

    exponent: Estimate
    constant: Estimate
    residual: float
    rows: int
    left_out: int


def fit_power_law(
    crossings: pd.DataFrame, y: str, *, repeats: int = 1000, seed: int = 0
) -> PowerLaw | None:
    """Fit y · x^p = C to the median crossing of each y: least squares of log(x) on log(y).

    x is regressed on y, because y is set by the grid and x has the noise. A curve that does not
    cross has its crossing beyond the grid: the median is still known where fewer than half of a
    row's seeds do so. A value of y whose median lies beyond the grid is left out.

    The intervals are percentiles of the bootstrap over seeds. The crossings of a seed share its
    draws, so whole seeds are resampled. The interval of p follows from that of the slope.

    Args:
        crossings: columns `y`, `seed` and `crossing`, as `crossings` returns them; rows where y is
            not positive are left out.
        repeats: the least number of bootstrap draws: a higher level takes more of them.

    Returns:
        The fit; None with fewer than three values of y, or where the crossing does not change
        with y, so that no finite p describes it. C may be infinite, or 0, where it hardly does.
    """
    table = crossing_table(crossings[crossings[y] > 0], y).dropna(axis=1, how="all")
    seeds = table.shape[1]
    if seeds == 0:
        return None
    log_y, log_x = np.log(table.index.to_numpy(dtype=np.float64)), table.to_numpy()
    medians = row_medians(log_x)
    has_median = np.isfinite(medians)
    if has_median.sum() < FEWEST_FOR_LAW:
        return None
    log_y, log_x = log_y[has_median], log_x[has_median]
    fitted = _fits(log_y, medians[has_median][None])[0]
    if not np.isfinite(fitted).all():
        return None
    level = level_of_each(1)
    repeats = max(repeats, round(TAIL_DRAWS / (1 - level)))
    resampled = np.random.default_rng(seed).integers(seeds, size=(repeats, seeds))
    fits = _fits(log_y, row_medians(log_x[:, resampled]).T)
    tails = [50 * (1 - level), 50 * (1 + level)]
    slopes, logarithms = np.percentile(fits[np.isfinite(fits).all(axis=1)], tails, axis=0).T
    # p = −1/slope. With slopes of both signs it passes through infinity, to negative numbers: then
    # its interval has no upper end.
    low = -1 / slopes[0] if slopes[0] else -np.inf
    high = -1 / slopes[1] if slopes[0] * slopes[1] > 0 else np.inf
    exponents = [-1 / fitted[0] if -1 / fitted[0] >= low else np.inf, low, high]
    with np.errstate(over="ignore"):
        constants = np.exp([fitted[1], *logarithms])
    kind = f"{100 * level:.4g} % bootstrap over {seeds} seeds"
    exponent, constant = (
        Estimate(float(value), float(least), float(most), kind, seeds)
        for value, least, most in (exponents, constants)
    )
    lack = medians[has_median] - fitted[0] * (log_y - fitted[1])
    residual = float(np.expm1(np.abs(lack).max()))
    rows = int(has_median.sum())
    return PowerLaw(exponent, constant, residual, rows, int((~has_median).sum()))


def row_medians(values: Floats) -> Floats:
    """Return medians over the last axis, of numbers that may be infinite, without nan."""
    with warnings.catch_warnings():  # of rows of nan, and between minus infinity and infinity
        warnings.simplefilter("ignore")
        return np.asarray(np.nanmedian(values, axis=-1))


def _fits(log_y: Floats, medians: Floats) -> Floats:
    """Fit the law to every draw of medians.

    Args:
        log_y: of shape (rows,).
        medians: logarithms of x, of shape (draws, rows); a row that is not finite is left out.

    Returns:
        The slope −1/p and log(C), of shape (draws, 2); nan with fewer than three rows, or where
        x is constant.
    """
    finite = np.isfinite(medians)
    centre = log_y.mean()  # keeps the sums of squares well away from cancellation
    u, v = np.where(finite, log_y - centre, 0.0), np.where(finite, medians, 0.0)
    count, sum_u, sum_v = finite.sum(axis=1), u.sum(axis=1), v.sum(axis=1)
    with np.errstate(all="ignore"):
        spread = (u * u).sum(axis=1) - sum_u**2 / count
        slope = ((u * v).sum(axis=1) - sum_u * sum_v / count) / spread
        slope[(count < FEWEST_FOR_LAW) | (spread < 1e-12) | (np.abs(slope) < 1e-12)] = np.nan
        intercept = (sum_v - slope * sum_u) / count
        return np.stack([slope, centre - intercept / slope], axis=1)


def seeds_exponents(
    cells: pd.DataFrame, axes: Sequence[str], value: str
) -> dict[str, Floats] | None:
    """Fit log(value) = c + Σ p_axis log(axis) by least squares, for each seed by itself.

    Seeds are independent and the cells of a seed are not: the spread of a power is that of its
    seeds.

    Args:
        cells: one row per cell that is done; axes and value are positive.

    Returns:
        The powers p of value ∝ axis^p for each axis, shape (seeds,), of the seeds whose cells
        separate the axes; None without any.
    """
    logs = np.log(cells[[*axes, value]].to_numpy(dtype=np.float64))  # (cells, axes + 1)
    slopes = []
    for rows in cells.groupby("seed").indices.values():
        design = np.column_stack([np.ones(len(rows)), logs[rows, :-1]])
        solution, _, rank, _ = np.linalg.lstsq(design, logs[rows, -1], rcond=None)
        slopes += [solution[1:]] if rank == design.shape[1] else []
    return dict(zip(axes, np.transpose(slopes), strict=True)) if slopes else None
