"""Crossings of a threshold along the curves of a grid, and their medians over seeds.

A curve is a measured column along x, at one y and one seed, smoothed to be monotone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from overfit_cli.core.arrays import Floats, finite_column
from overfit_cli.stats.intervals import MEDIAN

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
    import pandas as pd

    rows = []
    for y_value, seed, points, levels in _curves(cells, x, y, value, threshold):
        root = _root(points, levels)
        change = levels[-1] - levels[0] if levels.size else 0.0
        rows.append((y_value, seed, root, _side(points, levels, root), change))
    table = pd.DataFrame(rows, columns=[y, "seed", "crossing", "side", "change"])
    changes, side = table.pop("change"), table["side"]
    of_crossing = np.sign(changes[side == "crosses"])
    rises = (of_crossing if len(of_crossing) else changes).sum() > 0
    after, before = ("below", "above") if rises else ("above", "below")
    crossing = np.select([side == after, side == before], [np.inf, -np.inf], table["crossing"])
    return table.assign(crossing=crossing)


def _side(x: Floats, levels: Floats, root: float) -> str:
    if x.size < 2 or x[0] == x[-1]:  # x is ascending
        return "unknown"
    if np.isfinite(root):
        return "crosses"
    return "above" if levels.mean() > 0 else "below"


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
    medians = table.assign(crossing=middle, low=low, high=high, seeds=table.notna().sum(axis=1))
    medians = medians.assign(never=never.reindex(table.index)).reset_index()
    return medians[[y, "crossing", "low", "high", "seeds", "never"]]


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
