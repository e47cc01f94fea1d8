"""Crossings of a threshold by a measured column, for each value of y and each seed."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.special import stdtrit

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
    x, levels = x[finite], _levels(value[finite], threshold)
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
    rows = []
    for (row, seed), curve in cells.groupby([y, "seed"], sort=True):
        done = curve[curve["status"] == "done"].sort_values(x)
        values = done[value].to_numpy(dtype=np.float64, na_value=np.nan)
        finite = np.isfinite(values)
        points = done[x].to_numpy(dtype=np.float64)[finite]
        found = crossing(points, values[finite], threshold)
        rows.append((row, seed, found, _side(points, values[finite], found, threshold)))
    return pd.DataFrame(rows, columns=[y, "seed", "crossing", "side"])


def interval_by_row(crossings: pd.DataFrame, y: str) -> pd.DataFrame:
    """Summarise the crossings of each value of `y` over its seeds.

    Args:
        crossings: as `crossings` returns them, each positive or nan.
        y: the name of the column to summarise by.

    Returns:
        Columns `y`; `crossing`, the geometric mean over the seeds that cross (nan without any);
        `low` and `high`, the 95 % Student-t interval of the mean of log(crossing) (nan with fewer
        than two seeds); `seeds`, how many cross; `never`, how many stay above or below.
    """
    rows = [
        (row, *_interval(group["crossing"].dropna().to_numpy(dtype=np.float64)), _never(group))
        for row, group in crossings.groupby(y, sort=True)
    ]
    return pd.DataFrame(rows, columns=[y, "crossing", "low", "high", "seeds", "never"])


def _levels(value: Floats, threshold: float) -> Floats:
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
    return "above" if _levels(value, threshold).mean() > 0 else "below"


def _interval(crossing: Floats) -> tuple[float, float, float, int]:
    count = crossing.size
    if count == 0:
        return np.nan, np.nan, np.nan, 0
    logs = np.log(crossing)
    mean = float(logs.mean())
    if count == 1:
        return float(np.exp(mean)), np.nan, np.nan, 1
    half = float(stdtrit(count - 1, 0.975) * logs.std(ddof=1) / np.sqrt(count))
    return float(np.exp(mean)), float(np.exp(mean - half)), float(np.exp(mean + half)), count


def _never(group: pd.DataFrame) -> int:
    return int(group["side"].isin(["above", "below"]).sum())
