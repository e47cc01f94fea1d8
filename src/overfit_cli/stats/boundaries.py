"""Boundaries in grids: crossings of a threshold along curves, and power laws fitted to them.

A curve is a measured column along x, at one y and one seed, smoothed to be monotone. A power law of
the median crossings is y · x^p = C.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from overfit_cli.core.arrays import Floats, finite_column
from overfit_cli.stats.intervals import MEDIAN, Estimate, kind_of, level_of_each

SIDES = ("above", "below")
"""The sides of a threshold on which a curve may stay."""


def share_above(
    cells: pd.DataFrame, x: str, y: str, value: str, threshold: float, positions: Floats
) -> dict[float, Floats]:
    """Return, for each y, the share of seeds whose curve along x lies above the threshold.

    A curve is smoothed to be monotone, as for its crossing, and linear between its points (in
    log(x) where every x is positive). Outside its points a curve that crosses stays on its side; a
    curve that does not cross has no known side. So the share is a half at the median crossing.

    Args:
        cells: one row per cell that is done, with a finite `value`; a seed of a y is a curve.
        x, y: the columns along which a curve runs, and that tells curves apart beside `seed`.
        positions: values of x, of shape (positions,).

    Returns:
        A share for each position, by y; nan where no curve is known.
    """
    logarithmic = bool((cells[x] > 0).all() and (positions > 0).all())
    sampled = np.log(positions) if logarithmic else positions
    sides = dict[float, list[Floats]]()
    for y_value, _, points, levels in _curves(cells, x, y, value, threshold):
        at = np.log(points) if logarithmic else points
        side = (np.sign(np.interp(sampled, at, levels)) + 1) / 2  # a half at the threshold
        if not levels.min() <= 0 < levels.max():
            side = np.where((sampled >= at[0]) & (sampled <= at[-1]), side, np.nan)
        sides.setdefault(y_value, []).append(side)
    with np.errstate(invalid="ignore"):
        return {
            y_value: np.nansum(each, axis=0) / np.isfinite(each).sum(axis=0)
            for y_value, each in sides.items()
        }


def _curves(
    cells: pd.DataFrame, x: str, y: str, value: str, threshold: float
) -> Iterator[tuple[Any, Any, Floats, Floats]]:
    """Yield y, the seed, x and the monotone levels of each curve, of cells done."""
    curves = cells.groupby([y, "seed"], sort=True).ngroup().to_numpy()
    points = cells[x].to_numpy(dtype=np.float64)
    values = np.asarray(finite_column(cells, value), dtype=np.float64)
    usable = np.isfinite(values)
    order = np.lexsort((points, curves))  # plain arrays: there may be many short curves
    ends = np.flatnonzero(np.diff(curves[order])) + 1
    names, seeds = cells[y].to_numpy(), cells["seed"].to_numpy()
    scale = scale_of(values[usable], threshold)
    for curve in np.split(order, ends) if len(order) else []:
        done = curve[usable[curve]]
        levels = monotone_excess(values[done], threshold, scale)
        yield names[curve[0]], seeds[curve[0]], points[done], levels


def crossing(x: Floats, value: Floats, threshold: float) -> float:
    """Return the x at which `value`, smoothed to be monotone, passes `threshold`.

    The smoothing is an isotonic regression, falling or rising, whichever lies closer to the whole
    curve (least squares), on the scale of `scale_of`. Between two points the crossing is
    interpolated, in log(x) where every x is positive.

    Args:
        x: ascending, of shape (points,).
        value: of shape (points,); points that are not finite are left out.

    Returns:
        The crossing, in the unit of x; nan if the smoothed curve never passes the threshold.
    """
    valid = np.isfinite(value)
    scale = scale_of(value[valid], threshold)
    return _root(x[valid], monotone_excess(value[valid], threshold, scale))


def _root(x: Floats, levels: Floats) -> float:
    """The x at which monotone levels pass zero; nan where they don't."""
    if x.size < 2 or levels.min() > 0 or levels.max() < 0 or levels[0] == levels[-1]:
        return float("nan")
    rising = levels if levels[0] < levels[-1] else -levels
    logarithmic = bool(x[0] > 0)
    points = np.log(x) if logarithmic else x
    # A curve may stay at the threshold: the crossing is in the middle of that.
    ends = [np.interp(0.0, rising, points), -np.interp(0.0, -rising[::-1], -points[::-1])]
    root = float(np.mean(ends))
    return float(np.exp(root)) if logarithmic else root


def crossings(cells: pd.DataFrame, x: str, y: str, value: str, threshold: float) -> pd.DataFrame:
    """Find the crossing of every curve of `value` along `x`: one curve per value of `y` and seed.

    A curve on one side of the threshold crosses it outside the grid, at the end that the direction
    of the curves tells. They rise along x if more of the crossing curves rise than fall; where
    none crosses, if the sum of their changes is positive.

    Args:
        cells: one row per cell; only those whose `status` is `done` are used. No parameter but `x`
            and `y` may vary in it: a curve would mix its values.

    Returns:
        Columns `y`, `seed`, `crossing` (infinite beyond the grid, minus infinity before it, nan
        where it isn't known), and `side`: `crosses`, or the side of the threshold on which the
        curve stays, `above` or `below`, or `unknown` with fewer than two points done.
    """
    rows = []
    for y_value, seed, points, levels in _curves(cells, x, y, value, threshold):
        root, where = _root(points, levels), "unknown"
        if points.size > 1 and points[0] < points[-1]:
            where = "crosses" if np.isfinite(root) else SIDES[int(levels.mean() <= 0)]
        rows.append((y_value, seed, root, where, levels[-1] - levels[0] if levels.size else 0.0))
    table = pd.DataFrame(rows, columns=[y, "seed", "crossing", "side", "change"])
    changes, side = table.pop("change"), table["side"]
    of_crossing = np.sign(changes[side == "crosses"])
    rises = (of_crossing if len(of_crossing) else changes).sum() > 0
    after, before = ("below", "above") if rises else ("above", "below")
    crossing = np.select([side == after, side == before], [np.inf, -np.inf], table["crossing"])
    return table.assign(crossing=crossing)


def medians_by_row(crossings: pd.DataFrame, y: str) -> pd.DataFrame:
    """Summarise the crossings of each value of `y` over its seeds.

    Args:
        crossings: as `crossings` returns them, of a positive x.

    Returns:
        Columns `y`; `crossing`, the median, where a curve that crosses beyond the grid counts as
        infinity and before it as 0 (nan without any curve); `low` and `high`, its 95 % interval by
        order statistics, and with fewer than six seeds the least and the greatest; `seeds`, how
        many curves are known; `never`, how many of them stay above or below.
    """
    table = crossing_table(crossings, y)
    with np.errstate(invalid="ignore"):  # between minus infinity and infinity
        ends = MEDIAN.summarise(table.to_numpy(np.float64), (-np.inf, np.inf))
    middle, low, high = map(np.exp, ends)
    never = crossings["side"].isin(SIDES).groupby(crossings[y]).sum()
    seeds = table.notna().sum(axis=1)
    medians = table.assign(crossing=middle, low=low, high=high, seeds=seeds, never=never)
    return medians.reset_index()[[y, "crossing", "low", "high", "seeds", "never"]]


def crossing_table(crossings: pd.DataFrame, y: str) -> pd.DataFrame:
    """Return the logarithm of x at the crossings, one row per value of y and one column per seed.

    It is infinite where a curve crosses beyond the grid, and minus infinity where before it.

    Args:
        crossings: as `crossings` returns them, of a positive x.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(crossings["crossing"].clip(lower=0).to_numpy(dtype=np.float64))
    return crossings.assign(log=logs).pivot(index=y, columns="seed", values="log")


Scale = Callable[[Floats], Floats]


def scale_of(values: Floats, threshold: float) -> Scale:
    """Return the scale on which curves are smoothed and crossings interpolated.

    It is log(v / (1 − v)) of numbers between 0 and 1, on which a share and its complement have the
    same crossing; log(v) of positive numbers of which some are above 1; else v itself. It is one
    for all curves of a figure, so that their crossings can be compared.

    Args:
        values: of all curves; those that are not finite are left out.
    """
    numbers = np.append(values[np.isfinite(values)], threshold)
    least, largest = numbers.min(), numbers.max()
    if least > 0 and largest < 1:
        return lambda share: np.asarray(np.log(share) - np.log1p(-share))
    return np.log if least > 0 and largest > 1 else np.positive


def monotone_excess(value: Floats, threshold: float, scale: Scale) -> Floats:
    """Return the monotone fit minus the threshold: positive above it, on a scale; see `scale_of`.

    Args:
        value: of shape (points,), finite.
    """
    from scipy.optimize import isotonic_regression

    if value.size == 0:
        return value
    value, level = scale(value), float(scale(np.asarray(threshold, dtype=np.float64)))
    fits = [isotonic_regression(value, increasing=rising).x for rising in (False, True)]
    residuals = [float(np.sum((fit - value) ** 2)) for fit in fits]
    return np.asarray(fits[int(np.argmin(residuals))] - level, dtype=np.float64)


# Power laws

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
    kind = kind_of("bootstrap", seeds)
    exponent, constant = (
        Estimate(float(value), float(least), float(most), kind, seeds)
        for value, least, most in (exponents, constants)
    )
    lack = medians[has_median] - fitted[0] * (log_y - fitted[1])
    residual = float(np.expm1(np.abs(lack).max()))
    return PowerLaw(exponent, constant, residual, len(log_y), int((~has_median).sum()))


def row_medians(values: Floats) -> Floats:
    """Return medians over the last axis, of numbers that may be infinite, without nan."""
    # Of rows of nan, and between minus infinity and infinity.
    with warnings.catch_warnings(action="ignore"):
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
