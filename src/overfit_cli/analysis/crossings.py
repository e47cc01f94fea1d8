"""Crossings of a threshold by a measured column, for each value of y and each seed."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from overfit_cli.analysis.intervals import median_estimate

Floats = NDArray[np.float64]


def crossing(x: Floats, value: Floats, threshold: float) -> float:
    """Return the x at which `value`, smoothed to be monotone, passes `threshold`.

    The smoothing is an isotonic regression, falling or rising, whichever lies closer to the whole
    curve (least squares). It is done in log(value) where values and threshold are all positive.
    Between two points the crossing is interpolated, in log(x) where every x is positive.

    Args:
        x: ascending, of shape (points,).
        value: of shape (points,); points that aren't finite are left out.
        threshold: in the unit of `value`.

    Returns:
        The crossing, in the unit of x; nan if the smoothed curve never passes the threshold.
    """
    finite = np.isfinite(value)
    x, levels = x[finite], monotone_levels(value[finite], threshold)
    if x.size < 2 or levels.min() > 0 or levels.max() < 0 or levels[0] == levels[-1]:
        return float("nan")
    rising = levels if levels[0] < levels[-1] else -levels
    if x[0] > 0:
        return float(np.exp(np.interp(0.0, rising, np.log(x))))
    return float(np.interp(0.0, rising, x))


def crossings(cells: pd.DataFrame, x: str, y: str, value: str, threshold: float) -> pd.DataFrame:
    """Find the crossing of every curve of `value` along `x`: one curve per value of `y` and seed.

    Args:
        cells: one row per cell; only those whose `status` is `done` are used. No parameter but `x`
            and `y` may vary in it: a curve would mix its values.
        x: the column along which a curve runs.
        y: the column that tells curves apart, beside `seed`.
        value: the measured column.
        threshold: in the unit of `value`.

    Returns:
        Columns `y`, `seed`, `crossing` (nan if there is none) and `side`: `crosses`, or the side
        of the threshold on which the curve stays, `above` or `below`, or `unknown` with fewer
        than two points done.
    """
    curves = cells.groupby([y, "seed"], sort=True).ngroup().to_numpy()
    points = cells[x].to_numpy(dtype=np.float64)
    values = cells[value].to_numpy(dtype=np.float64, na_value=np.nan)
    usable = np.isfinite(values) & (cells["status"] == "done").to_numpy()
    order = np.lexsort((points, curves))  # plain arrays: there may be many short curves
    ends = np.flatnonzero(np.diff(curves[order])) + 1
    names, seeds = cells[y].to_numpy(), cells["seed"].to_numpy()
    rows = []
    for curve in np.split(order, ends) if len(order) else []:
        known = curve[usable[curve]]
        found = crossing(points[known], values[known], threshold)
        side = _side(points[known], values[known], found, threshold)
        rows.append((names[curve[0]], seeds[curve[0]], found, side))
    return pd.DataFrame(rows, columns=[y, "seed", "crossing", "side"])


def medians_by_row(crossings: pd.DataFrame, y: str) -> pd.DataFrame:
    """Summarise the crossings of each value of `y` over its seeds.

    Args:
        crossings: as `crossings` returns them, each positive or nan.
        y: the name of the column to summarise by.

    Returns:
        Columns `y`; `crossing`, the median, where a curve that stays above counts as infinity and
        one that stays below as 0 (nan without any curve); `low` and `high`, its 95 % interval by
        order statistics, and with fewer than six seeds the least and the greatest; `seeds`, how
        many curves are known; `never`, how many of them stay above or below.
    """
    table = crossing_table(crossings, y)
    rows = [(at, *_summary(logs.dropna().to_numpy())) for at, logs in table.iterrows()]
    never = crossings["side"].isin(["above", "below"]).groupby(crossings[y]).sum()
    found = pd.DataFrame(rows, columns=[y, "crossing", "low", "high", "seeds"])
    return found.assign(never=never.reindex(found[y]).to_numpy())


def crossing_table(crossings: pd.DataFrame, y: str) -> pd.DataFrame:
    """Return the logarithm of x at the crossings, one row per value of y and one column per seed.

    A curve that stays above the threshold crosses it beyond the grid, which is infinity; one that
    stays below, before it: minus infinity. What isn't known is nan.

    Args:
        crossings: as `crossings` returns them, each positive or nan.
        y: the name of the column that tells curves apart, beside `seed`.
    """
    side = crossings["side"]
    logs = np.log(crossings["crossing"].to_numpy(dtype=np.float64))
    logs = np.select([side == "above", side == "below"], [np.inf, -np.inf], logs)
    return crossings.assign(log=logs).pivot(index=y, columns="seed", values="log")


def monotone_levels(value: Floats, threshold: float) -> Floats:
    """Return the monotone fit minus the threshold: positive above it."""
    if value.size == 0:
        return value
    if threshold > 0 and value.min() > 0:
        value, threshold = np.log(value), float(np.log(threshold))
    fits = [isotonic_regression(value, increasing=rising).x for rising in (False, True)]
    residuals = [float(np.sum((fit - value) ** 2)) for fit in fits]
    return np.asarray(fits[int(np.argmin(residuals))] - threshold, dtype=np.float64)


def _side(x: Floats, value: Floats, found: float, threshold: float) -> str:
    if np.unique(x).size < 2:
        return "unknown"
    if np.isfinite(found):
        return "crosses"
    return "above" if monotone_levels(value, threshold).mean() > 0 else "below"


def _summary(logs: Floats) -> tuple[float, float, float, int]:
    """The median, the ends of its interval, and of how many curves."""
    if logs.size == 0:
        return np.nan, np.nan, np.nan, 0
    found = median_estimate(logs)
    ends = (found.low, found.high) if found.bounded else (logs.min(), logs.max())
    median, low, high = np.exp([found.value, *ends]).tolist()
    return median, low, high, logs.size
