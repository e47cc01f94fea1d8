"""Boundaries in grids: crossings of a threshold, and the power laws through them.

From rows of cells to the crossings of each y and seed; from crossings to their median with its
interval, to the contour x ∝ y^p of each seed, and to the law y · x^p = C over seeds. Also the
powers of several parameters that a measured number scales with.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from overfit_cli.stats.intervals import (
    Estimate,
    level_of_each,
    mean_estimate,
    median_estimate,
    middle,
)

if TYPE_CHECKING:
    import pandas as pd


Floats = NDArray[np.float64]


def share_above(
    cells: pd.DataFrame, x: str, y: str, value: str, threshold: float, at: Floats
) -> dict[float, Floats]:
    """Return, for each y, the share of seeds whose curve along x lies above the threshold.

    A curve is smoothed to be monotone, as for its crossing, and taken as straight between its
    points (in log(x) where every x is positive). Beyond them one that crosses stays on its side; of
    one that doesn't, nothing is known there. So the share is a half where the median crossing is.

    Args:
        cells: one row per cell, with a finite `value`; each seed of a y is a curve.
        x, y: the columns along which a curve runs, and that tells curves apart beside `seed`.
        value: the measured column.
        threshold: in the unit of `value`.
        at: places along x, of shape (places,).

    Returns:
        A share for each place, by y; nan where no curve is known.
    """
    by_ratio = bool((cells[x] > 0).all() and (at > 0).all())
    scaled = cells.assign(**{x: np.log(cells[x])}) if by_ratio else cells
    places = np.log(at) if by_ratio else at
    found: dict[float, Floats] = {}
    for of_y, row in scaled.groupby(y, sort=True):
        curves = [curve for _, curve in row.sort_values(x).groupby("seed")]
        sides = np.array([_sides(curve, x, value, threshold, places) for curve in curves])
        known = np.isfinite(sides).sum(axis=0)
        with np.errstate(invalid="ignore"):
            found[cast("float", of_y)] = np.nansum(sides, axis=0) / known
    return found


def _sides(curve: pd.DataFrame, x: str, value: str, threshold: float, places: Floats) -> Floats:
    """Where a curve lies above, 1, and below, 0; nan where it isn't known."""
    known = curve[x].to_numpy(dtype=np.float64)
    levels = monotone_levels(curve[value].to_numpy(dtype=np.float64), threshold)
    above = np.where(np.interp(places, known, levels) > 0, 1.0, 0.0)
    if levels.min() <= 0 < levels.max():
        return above
    return np.where((places >= known[0]) & (places <= known[-1]), above, np.nan)


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
    import pandas as pd

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
    import pandas as pd

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
    from scipy.optimize import isotonic_regression

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


@dataclass(frozen=True)
class Contour:
    """Where a column passes a threshold along x, for each value of y.

    Attributes:
        middle: the median of log x over seeds, indexed by y.
        powers: p of each seed, the slope of log x in log y.
        left_out: how many seeds don't pass it for every y, and have no p.
    """

    middle: pd.Series[float]
    powers: pd.Series[float]
    left_out: int

    def local_powers(self) -> dict[tuple[float, float], float]:
        """Return the power from each y to the next, of the medians."""
        at = self.middle.index.to_numpy(float)
        slopes = np.diff(self.middle) / np.diff(np.log(at))
        return dict(zip(pairwise(at.tolist()), slopes.tolist(), strict=True))


def contour(cells: pd.DataFrame, x: str, y: str, value: str, threshold: float) -> Contour | None:
    """Fit the contour on which `value` is `threshold`.

    Args:
        cells: one row per cell, failed ones too.
        x, y: parameters that are positive; no other one may vary.
        value: the measured column.
        threshold: its value on the contour.

    Returns:
        The contour; None where no seed passes the threshold for every y, or there is one y.
    """
    import pandas as pd

    logs = crossing_table(crossings(cells, x, y, value, threshold), y)  # (y, seeds)
    whole = logs.replace([np.inf, -np.inf], np.nan).dropna(axis=1)
    if whole.empty or len(whole) < 2:
        return None
    slopes = np.polyfit(np.log(whole.index.to_numpy(float)), whole.to_numpy(), 1)[0]
    return Contour(
        middle=pd.Series(np.median(whole.to_numpy(), axis=1), whole.index),
        powers=pd.Series(slopes, whole.columns),
        left_out=logs.shape[1] - whole.shape[1],
    )


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


@dataclass(frozen=True)
class Curves:
    """Which curves cross: a measured column along x, one curve for each y and seed.

    Attributes:
        x, y: the parameters of the plane.
        value: the measured column.
        power: the power p of x in y · x^p, by which crossings are compared.
        threshold: the value at the boundary.
        onset: the value where the transition begins.
    """

    x: str
    y: str
    value: str
    power: float
    threshold: float
    onset: float


@dataclass(frozen=True)
class Boundary:
    """The boundary at one value of another parameter.

    A curve that never comes down to the threshold crosses it at infinity, one that is always below
    it at 0. The transition begins where a curve comes down to the onset.

    Attributes:
        at: that value.
        cells: the cells that have it.
        median, low, high: of y · x^p at the crossings of all curves, with their quartiles.
        constants: y · x^p at the crossing, the median over y, by seed.
        onsets: y · x^p where the transition begins, likewise.
        widths: by which factor y · x^p grows from there to the crossing, the median over y, by
            seed; infinite where one of the two lies beyond the grid.
        fit: p and C fitted over y; None where they can't be.
        curves, never: how many curves there are, and how many never cross.
        reach: the least and the greatest x of the grid.
    """

    at: float
    cells: pd.DataFrame
    median: float
    low: float
    high: float
    constants: pd.Series[float]
    onsets: pd.Series[float]
    widths: pd.Series[float]
    fit: PowerLaw | None
    curves: int
    never: int
    reach: tuple[float, float]


def why_no_boundary(
    cells: pd.DataFrame, fixed: Iterable[str], curves: Curves, least_values: int
) -> str | None:
    """Say why boundaries can't be found; None where they can.

    Args:
        cells: one row per cell.
        fixed: the columns that must take one value: the curves would mix theirs.
        curves: what crosses what.
        least_values: of x and of y.
    """
    varied = [name for name in fixed if cells[name].nunique() > 1]
    if varied:
        return f"{', '.join(varied)} {'varies' if len(varied) == 1 else 'vary'} too"
    for name in (curves.y, curves.x):
        if (values := cells[name].nunique()) < least_values:
            return f"it takes {least_values} values of {name}, and there are {values}"
    if not (cells["status"] == "done").any():
        return f"none of the {len(cells)} cells is done"
    return None


def boundaries(cells: pd.DataFrame, axis: str, curves: Curves) -> list[Boundary]:
    """Find the boundary at each value of `axis`, ascending.

    Args:
        cells: one row per cell. No parameter but x, y and `axis` may vary in it, and some must be
            done at each value of `axis`.
        axis: the name of another parameter.
        curves: what crosses what.
    """
    groups = cells.groupby(cells[axis].astype(float))
    return [_boundary(at, group, curves) for at, group in groups]


def _boundary(at: float, cells: pd.DataFrame, curves: Curves) -> Boundary:
    x, y = curves.x, curves.y
    found, begun = (
        crossings(cells, x, y, curves.value, level) for level in (curves.threshold, curves.onset)
    )
    known = found["side"] != "unknown"
    found, begun = found[known], begun[known]
    products, onsets = (crossing_products(one, y, curves.power) for one in (found, begun))
    seen = np.isfinite(products) & np.isfinite(onsets) & (onsets > 0) & (products > 0)
    widths = (products / onsets).where(seen, np.inf)
    median, low, high = products.quantile([0.5, 0.25, 0.75], interpolation="nearest").tolist()
    return Boundary(
        at=at,
        cells=cells,
        median=median,
        low=low,
        high=high,
        constants=products.groupby(found["seed"]).agg(_middle),
        onsets=onsets.groupby(begun["seed"]).agg(_middle),
        widths=widths.groupby(found["seed"]).agg(_middle),
        fit=fit_power_law(found, y),
        curves=len(found),
        never=int((found["side"] != "crosses").sum()),
        reach=(float(cells[x].min()), float(cells[x].max())),
    )


def crossing_products(crossings: pd.DataFrame, y: str, power: float) -> pd.Series[float]:
    """Return y · x^p at crossings; infinity and 0 for curves that stay above or below.

    A curve that never comes down to the threshold crosses it beyond the grid, and counts as that.

    Args:
        crossings: as `crossings` returns them, without unknown ones.
        y: the name of the column of y.
        power: p.
    """
    import pandas as pd

    beyond = np.where(crossings["side"] == "above", np.inf, 0.0)
    x = np.where(crossings["side"] == "crosses", crossings["crossing"], beyond)
    return pd.Series(crossings[y] * x**power, index=crossings.index)


def _middle(values: pd.Series[float]) -> float:
    """The median; of an even number, the geometric mean of the middle two."""
    ordered = np.sort(values.to_numpy())
    return float(np.sqrt(ordered[(len(ordered) - 1) // 2] * ordered[len(ordered) // 2]))


CONFIDENCE = 0.95

MEDIAN_OVER_MEAN = math.sqrt(math.pi / 2)
"""By how much a median of normal numbers is less certain than their mean."""


@dataclass(frozen=True)
class Curve:
    """What is known of a curve; positions are logarithms of x.

    Attributes:
        seed: which.
        x: where it was sampled, ascending, not as a logarithm.
        state: whether it crosses, or the side on which it is.
        at: where it crosses.
        width: how uncertain that is: the stretch in which its sides are mixed, or the gap between
            them, over the root of how many samples tell.
        middle: the middle of the widest gap in that stretch.
    """

    seed: int
    x: Floats
    state: Literal["crosses", "above", "below", "unknown"]
    at: float = math.nan
    width: float = math.nan
    middle: float = math.nan


def curve_of(seed: int, cells: pd.DataFrame, threshold: float) -> Curve:
    """Return what is known of a curve.

    Args:
        seed: its seed.
        cells: its cells by ascending `x`, with `value`, nan where a cell failed.
        threshold: in the unit of value.
    """
    x, values = (cells[name].to_numpy(dtype=np.float64) for name in ("x", "value"))
    finite = np.isfinite(values)
    inside, values = x[finite], values[finite]
    found = crossing(inside, values, threshold)
    if not math.isfinite(found):
        if inside.size == 0:
            return Curve(seed, x, "unknown")
        return Curve(seed, x, "above" if np.median(values) > threshold else "below")
    above = values > threshold
    first, last = above[0], above[-1]
    # From the last sample before any has changed sides, to the first after which all have.
    begin = max(int(np.argmax(above != first)) - 1, 0)
    end = len(above) - int(np.argmax(above[::-1] != last)) if first != last else len(above) - 1
    stretch = np.log(inside[begin : end + 1])
    gap = int(np.argmax(np.diff(stretch)))
    width = float(stretch[-1] - stretch[0]) / math.sqrt(len(stretch) - 1)
    return Curve(seed, x, "crosses", math.log(found), width, float(stretch[gap : gap + 2].mean()))


def falls(known: pd.DataFrame) -> bool:
    """Whether the column falls along x on more curves than it rises."""
    done = known[np.isfinite(known["value"].to_numpy(dtype=np.float64))].sort_values("x")
    ends = done.groupby(["y", "seed"])["value"].agg(["first", "last"])
    return bool((ends["last"] < ends["first"]).sum() >= (ends["last"] > ends["first"]).sum())


def median_position(curves: list[Curve]) -> float:
    """Return the median of where curves cross, as a logarithm of x.

    It is infinite where it lies beyond the grid, and nan without any curve.
    """
    known = [_position(curve) for curve in curves if curve.state != "unknown"]
    return middle(known) if known else math.nan


def middle_curves(curves: list[Curve]) -> list[Curve]:
    """Return the curve whose crossing is the median, or the two that it lies between."""
    ordered = sorted((one for one in curves if one.state != "unknown"), key=_position)
    return ordered[max(len(ordered) - 1, 0) // 2 : len(ordered) // 2 + 1]


def between_points(curves: list[Curve]) -> float:
    """The half-width, in log x, of the median that is due to where the middle curves cross.

    Returns:
        0 where the median lies beyond the grid.
    """
    of_median = middle_curves(curves)
    widths = np.array([one.width for one in of_median if one.state == "crosses"])
    if len(widths) < len(of_median) or not of_median:
        return 0.0
    deviation = math.sqrt(float((widths**2).sum()) / 12) / len(widths)
    from scipy import stats

    return float(stats.norm.ppf((1 + CONFIDENCE) / 2)) * deviation


def _position(curve: Curve) -> float:
    beyond = {"above": math.inf, "below": -math.inf}
    return beyond.get(curve.state, curve.at)


def positions(curves: list[Curve]) -> Floats:
    """Return where curves cross, as logarithms of x."""
    return np.array([curve.at for curve in curves])


class Spread(NamedTuple):
    """How crossings of one y differ between seeds, over all y: variance of log x, and its freedom.

    It is pooled because two or three seeds of one y may agree by chance. Of it, `sampling` is what
    is due to where a curve was sampled, the median curve: those far beyond the median are not
    sampled closely.
    """

    variance: float
    freedom: int
    sampling: float

    def error(self, own: Floats, count: int, every: int, *, crossing: int, sampled: bool) -> float:
        """Return the half-width, in log x, of a mean over those seeds run that cross.

        Args:
            own: the crossings known at one y, as logarithms of x.
            count: how many seeds are run, of `every`.
            every: how many there are.
            crossing: how many of those run cross, which the mean is over.
            sampled: whether what is only due to where curves were sampled counts too.
        """
        if count >= every:
            return 0.0
        if self.freedom == 0:
            return math.inf
        largest = max(self.variance, float(own.var(ddof=1)) if len(own) > 1 else 0.0)
        variance = largest if sampled else max(largest - self.sampling, 0.0)
        from scipy import stats

        quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, self.freedom))
        return quantile * math.sqrt(variance * (1 - count / every) / max(crossing, 1))


def spread_of(by_y: Iterable[list[Curve]]) -> Spread:
    """Pool the variance between seeds over the curves of each y."""
    squares, freedom, sampling = 0.0, 0, list[float]()
    for curves in by_y:
        at = [curve.at for curve in curves if curve.state == "crosses"]
        if len(at) > 1:
            squares += float(np.var(at)) * len(at)
            freedom += len(at) - 1
            sampling += [curve.width**2 / 12 for curve in curves if curve.state == "crosses"]
    of_median = float(np.median(sampling)) if sampling else 0.0
    return Spread(squares / max(freedom, 1), freedom, of_median)


def scaling_exponents(
    cells: pd.DataFrame, axes: Sequence[str], value: str, level: float | None = None
) -> dict[str, Estimate] | None:
    """Fit log(value) = c + Σ p_axis log(axis) by least squares, for each seed by itself.

    Seeds are independent and the cells of one aren't, so the spread is that between seeds.

    Args:
        cells: one row per cell, those that are done; axes and value are positive.
        axes: the columns that value depends on, each with several values.
        value: the measured column.
        level: of the intervals.

    Returns:
        The power p of value ∝ axis^p for each axis, the mean of the seeds' own fits; None if no
        seed has cells enough to tell the axes apart.
    """
    fits = [_fit(of_seed, axes, value) for _, of_seed in cells.groupby("seed")]
    slopes = np.array([fit for fit in fits if fit is not None])
    if len(slopes) == 0:
        return None
    return {
        axis: mean_estimate(of_axis, level) for axis, of_axis in zip(axes, slopes.T, strict=True)
    }


def _fit(cells: pd.DataFrame, axes: Sequence[str], value: str) -> np.ndarray | None:
    """One seed's exponents; None where its cells don't tell the axes apart."""
    logs = np.log(cells[list(axes)].to_numpy(dtype=np.float64))
    design = np.column_stack([np.ones(len(logs)), logs])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    solution = np.linalg.lstsq(design, np.log(cells[value].to_numpy(dtype=np.float64)), rcond=None)
    return np.asarray(solution[0][1:], dtype=np.float64)
