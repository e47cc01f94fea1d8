"""Crossings of a threshold along the curves of a grid, and their medians over seeds.

A curve is a measured column along x, at one y and one seed, smoothed to be monotone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from overfit_cli.core.arrays import Floats, finite_column
from overfit_cli.stats.intervals import median_estimate

if TYPE_CHECKING:
    import pandas as pd


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
        cells: one row per cell, with a finite `value`; each seed of a y is a curve.
        x, y: the columns along which a curve runs, and that tells curves apart beside `seed`.
        positions: values of x, of shape (positions,).

    Returns:
        A share for each position, by y; nan where no curve is known.
    """
    logarithmic = bool((cells[x] > 0).all() and (positions > 0).all())
    scaled = cells.assign(**{x: np.log(cells[x])}) if logarithmic else cells
    sampled = np.log(positions) if logarithmic else positions
    scale = scale_of(cells[value].to_numpy(dtype=np.float64), threshold)
    shares: dict[float, Floats] = {}
    for y_value, row in scaled.groupby(y, sort=True):
        curves = [curve for _, curve in row.sort_values(x).groupby("seed")]
        sides = np.array([_sides(curve, x, value, threshold, sampled, scale) for curve in curves])
        curves_known = np.isfinite(sides).sum(axis=0)
        with np.errstate(invalid="ignore"):
            shares[cast("float", y_value)] = np.nansum(sides, axis=0) / curves_known
    return shares


def _sides(
    curve: pd.DataFrame, x: str, value: str, threshold: float, positions: Floats, scale: Scale
) -> Floats:
    """The side of a curve at each position: 1 above, 0 below, a half on it; nan if not known."""
    x_values = curve[x].to_numpy(dtype=np.float64)
    levels = monotone_excess(curve[value].to_numpy(dtype=np.float64), threshold, scale)
    sides = (np.sign(np.interp(positions, x_values, levels)) + 1) / 2  # a half at the threshold
    if levels.min() <= 0 < levels.max():
        return sides
    return np.where((positions >= x_values[0]) & (positions <= x_values[-1]), sides, np.nan)


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
        where it isn't known), `side`: `crosses`, or the side of the threshold on which the curve
        stays, `above` or `below`, or `unknown` with fewer than two points done; `passes`: how
        often the curve itself, before it is smoothed, changes sides; and `rises`: whether the
        smoothed curve rises.
    """
    import pandas as pd

    curves = cells.groupby([y, "seed"], sort=True).ngroup().to_numpy()
    points = cells[x].to_numpy(dtype=np.float64)
    values = np.asarray(finite_column(cells, value), dtype=np.float64)
    usable = np.isfinite(values)
    order = np.lexsort((points, curves))  # plain arrays: there may be many short curves
    ends = np.flatnonzero(np.diff(curves[order])) + 1
    names, seeds = cells[y].to_numpy(), cells["seed"].to_numpy()
    rows, changes, scale = [], [], scale_of(values[usable], threshold)
    for curve in np.split(order, ends) if len(order) else []:
        done = curve[usable[curve]]
        levels = monotone_excess(values[done], threshold, scale)
        root = _root(points[done], levels)
        passes = int(np.count_nonzero(np.diff(values[done] > threshold)))
        change = levels[-1] - levels[0] if levels.size else 0.0
        side = _side(points[done], levels, root)
        rows.append((names[curve[0]], seeds[curve[0]], root, side, passes, change > 0))
        changes.append(change)
    table = pd.DataFrame(rows, columns=[y, "seed", "crossing", "side", "passes", "rises"])
    after, before = ("below", "above") if _rises(table["side"], changes) else ("above", "below")
    ends_of_grid = [table["side"] == after, table["side"] == before]
    return table.assign(crossing=np.select(ends_of_grid, [np.inf, -np.inf], table["crossing"]))


def _side(x: Floats, levels: Floats, root: float) -> str:
    if x.size < 2 or x[0] == x[-1]:  # x is ascending
        return "unknown"
    if np.isfinite(root):
        return "crosses"
    return "above" if levels.mean() > 0 else "below"


def _rises(sides: pd.Series[str], changes: list[float]) -> bool:
    crossing_changes = np.array(changes)[(sides == "crosses").to_numpy()]
    if crossing_changes.size:
        return bool(np.sign(crossing_changes).sum() > 0)
    return float(np.sum(changes)) > 0


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
    import pandas as pd

    table = crossing_table(crossings, y)
    rows = [(y_value, *_summary(logs.dropna().to_numpy())) for y_value, logs in table.iterrows()]
    never = crossings["side"].isin(SIDES).groupby(crossings[y]).sum()
    medians = pd.DataFrame(rows, columns=[y, "crossing", "low", "high", "seeds"])
    return medians.assign(never=never.reindex(medians[y]).to_numpy())


def crossing_table(crossings: pd.DataFrame, y: str) -> pd.DataFrame:
    """Return the logarithm of x at the crossings, one row per value of y and one column per seed.

    It is infinite where a curve crosses beyond the grid, and minus infinity where before it.

    Args:
        crossings: as `crossings` returns them, of a positive x.
    """
    positions = crossings["crossing"].clip(lower=0).to_numpy(dtype=np.float64)
    with np.errstate(divide="ignore"):
        logs = np.log(positions)
    return crossings.assign(log=logs).pivot(index=y, columns="seed", values="log")


Scale = Literal["log-odds", "log", "linear"]


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
        return "log-odds"
    return "log" if least > 0 and largest > 1 else "linear"


def monotone_excess(value: Floats, threshold: float, scale: Scale) -> Floats:
    """Return the monotone fit minus the threshold: positive above it, on a scale; see `scale_of`.

    Args:
        value: of shape (points,), finite.
    """
    if value.size == 0:
        return value
    if scale == "log-odds":
        value, threshold = _log_odds(value), float(_log_odds(np.asarray(threshold)))
    elif scale == "log":
        value, threshold = np.log(value), float(np.log(threshold))
    from scipy.optimize import isotonic_regression

    fits = [isotonic_regression(value, increasing=rising).x for rising in (False, True)]
    residuals = [float(np.sum((fit - value) ** 2)) for fit in fits]
    return np.asarray(fits[int(np.argmin(residuals))] - threshold, dtype=np.float64)


def _log_odds(share: Floats) -> Floats:
    return np.asarray(np.log(share) - np.log1p(-share))


def _summary(logs: Floats) -> tuple[float, float, float, int]:
    if logs.size == 0:
        return np.nan, np.nan, np.nan, 0
    estimate = median_estimate(logs)
    ends = (estimate.low, estimate.high) if estimate.bounded else (logs.min(), logs.max())
    median, low, high = np.exp([estimate.value, *ends]).tolist()
    return median, low, high, logs.size
