"""The search for a boundary: where to sample next, to know at which x a column crosses.

A curve is the column along x at one y and one seed. The search estimates at each y the median
crossing over all its seeds, to a tolerance; a curve without a crossing has it beyond the grid. The
estimate is uncertain for two reasons: each curve's crossing lies somewhere between two sampled
points, and not every seed has to be run. Both are reduced where they are largest. Nothing here
trains, and nothing is random: the same results give the same points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from overfit_cli.core.arrays import Floats
from overfit_cli.core.text import round_digits
from overfit_cli.stats.crossings import crossing
from overfit_cli.stats.intervals import middle, t_quantile

if TYPE_CHECKING:
    import pandas as pd


FIRST_SEEDS = 2
"""The number of seeds of the coarse grid; further seeds begin where these cross."""

CONFIDENCE = 0.95

MEDIAN_OVER_MEAN = math.sqrt(math.pi / 2)
"""The standard error of the median of normal numbers over that of their mean."""

_SHARE = 0.7
"""The share of the tolerance that each of the two reasons may use: both together then keep it."""

_DIGITS = 6
"""Significant digits of a sampled x."""


class Point(NamedTuple):
    """A cell to run."""

    y: float
    seed: int
    x: float


@dataclass(frozen=True)
class Search:
    """A search for the median crossing at each of several y.

    Attributes:
        coarse: the x of the coarse grid, ascending and positive, at least two of them.
        tolerance: the accepted half-width of the interval, in the unit of x.
    """

    y: Sequence[float]
    coarse: Sequence[float]
    seeds: Sequence[int]
    threshold: float
    tolerance: float


@dataclass(frozen=True)
class CrossingEstimate:
    """The estimated crossing at one y.

    Attributes:
        crossing: the median over the seeds; nan where it lies beyond the grid.
        half_width: of its 95 % interval, in the unit of x; nan without a crossing, infinite with
            one seed of several.
        crossing_seeds, never_seeds: the numbers of seeds run that cross, and that do not.
        open_seeds: the number of those that do not cross on their samples, and were not followed to
            both ends of the grid.
        side: the side of the seeds that do not cross: `above`, `below` or `above or below`; empty
            where all cross.
        converged: whether the interval is within the tolerance, or no seed crosses.
    """

    y: float
    crossing: float
    half_width: float
    crossing_seeds: int
    never_seeds: int
    open_seeds: int
    side: str
    converged: bool


def first_points(search: Search) -> list[Point]:
    """Return the coarse grid: every y and x, with the first seeds."""
    seeds = search.seeds[:FIRST_SEEDS]
    return [Point(y, seed, x) for seed in seeds for y in search.y for x in search.coarse]


def next_points(search: Search, cells: pd.DataFrame) -> list[Point]:
    """Return the cells to run next, without those that were run.

    There are none where every y has converged, or where the cells that would help have failed.

    Args:
        cells: one row per cell that was run, with `y`, `seed`, `x` and `value`, nan if it failed.
    """
    curves_by_y = _curves(search, cells)
    spread = _pooled_spread(curves_by_y.values())
    points: list[Point] = []
    for y, curves in curves_by_y.items():
        if not _estimate(search, y, curves, spread).converged:
            points += _refining_points(search, y, curves, spread)
    sampled = {Point(*row) for row in cells[["y", "seed", "x"]].itertuples(index=False)}
    return sorted(set(points) - sampled)


def crossing_estimates(search: Search, cells: pd.DataFrame) -> list[CrossingEstimate]:
    """Return the estimate at each y; see `next_points` for the arguments."""
    curves_by_y = _curves(search, cells)
    spread = _pooled_spread(curves_by_y.values())
    return [_estimate(search, y, curves, spread) for y, curves in curves_by_y.items()]


@dataclass(frozen=True)
class _Curve:
    """A sampled curve; positions are logarithms of x.

    Attributes:
        x: the sampled x, ascending, not as logarithms.
        state: whether it crosses, or the side on which it is.
        falls: whether the curves of the search fall along x.
        width: the uncertainty of that: the length of the stretch in which samples of both sides
            are mixed, or of the gap between the sides, over the root of the number of samples.
        middle: the middle of the widest gap in that stretch.
    """

    seed: int
    x: Floats
    state: Literal["crosses", "above", "below", "unknown"]
    falls: bool
    crossing: float = math.nan
    width: float = math.nan
    middle: float = math.nan

    @property
    def position(self) -> float:
        """The position of the crossing; infinite where it lies outside the grid."""
        if self.state not in ("above", "below"):
            return self.crossing
        return math.inf if self.is_before_crossing else -math.inf

    @property
    def is_before_crossing(self) -> bool:
        return (self.state == "above") == self.falls


def _curves(search: Search, cells: pd.DataFrame) -> dict[float, list[_Curve]]:
    groups, falls = dict(iter(cells.groupby(["y", "seed"]))), _fall(cells)
    return {
        y: [
            _make_curve(seed, groups[y, seed].sort_values("x"), search.threshold, falls=falls)
            for seed in search.seeds
            if (y, seed) in groups
        ]
        for y in search.y
    }


def _make_curve(seed: int, cells: pd.DataFrame, threshold: float, *, falls: bool) -> _Curve:
    x, values = (cells[name].to_numpy(dtype=np.float64) for name in ("x", "value"))
    finite = np.isfinite(values)
    sampled, values = x[finite], values[finite]
    crossing_x = crossing(sampled, values, threshold)
    if not math.isfinite(crossing_x):
        if sampled.size == 0:
            return _Curve(seed, x, "unknown", falls)
        return _Curve(seed, x, "above" if np.median(values) > threshold else "below", falls)
    is_above = values > threshold
    first, last = is_above[0], is_above[-1]
    # From the last sample before any has changed sides, to the first after which all have.
    begin = max(int(np.argmax(is_above != first)) - 1, 0)
    end = len(is_above) - 1
    if first != last:
        end = len(is_above) - int(np.argmax(is_above[::-1] != last))
    stretch = np.log(sampled[begin : end + 1])
    gap = int(np.argmax(np.diff(stretch)))
    width = float(stretch[-1] - stretch[0]) / math.sqrt(len(stretch) - 1)
    gap_middle = float(stretch[gap : gap + 2].mean())
    return _Curve(seed, x, "crosses", falls, math.log(crossing_x), width, gap_middle)


def _crossing_curves(curves: list[_Curve]) -> list[_Curve]:
    return [curve for curve in curves if curve.state == "crosses"]


def _positions(curves: list[_Curve]) -> Floats:
    return np.array([curve.crossing for curve in curves])


def _fall(cells: pd.DataFrame) -> bool:
    measured = cells[np.isfinite(cells["value"].to_numpy(dtype=np.float64))].sort_values("x")
    ends = measured.groupby(["y", "seed"])["value"].agg(["first", "last"])
    return bool((ends["last"] < ends["first"]).sum() >= (ends["last"] > ends["first"]).sum())


def _estimate(search: Search, y: float, curves: list[_Curve], spread: _Spread) -> CrossingEstimate:
    crossing_curves = _crossing_curves(curves)
    sides: list[str] = [curve.state for curve in curves if curve.state in ("above", "below")]
    open_seeds = sum(_is_open(search, curve) for curve in curves)
    counts = len(crossing_curves), len(sides), open_seeds, " or ".join(sorted(set(sides)))
    open_ended = open_seeds > 0
    median = _median_position(curves)
    if not math.isfinite(median):
        all_run = len(curves) == len(search.seeds)
        converged = all_run and bool(sides) and not open_ended
        return CrossingEstimate(y, math.nan, math.nan, *counts, converged)
    seed_error = MEDIAN_OVER_MEAN * spread.error(
        _positions(crossing_curves),
        len(curves),
        len(search.seeds),
        crossing=len(crossing_curves),
        include_sampling=True,
    )
    half = math.exp(median) * math.hypot(_sampling_error(curves), seed_error)
    converged = half <= search.tolerance and not open_ended
    return CrossingEstimate(y, math.exp(median), half, *counts, converged)


def _is_open(search: Search, curve: _Curve) -> bool:
    followed = curve.x[0] <= search.coarse[0] and curve.x[-1] >= search.coarse[-1]
    return curve.state in ("above", "below") and not followed


def _median_position(curves: list[_Curve]) -> float:
    """The median position; infinite where it lies beyond the grid, and nan without any curve."""
    positions = [curve.position for curve in curves if curve.state != "unknown"]
    return middle(positions) if positions else math.nan


def _middle_curves(curves: list[_Curve]) -> list[_Curve]:
    ordered = sorted(
        (curve for curve in curves if curve.state != "unknown"), key=lambda curve: curve.position
    )
    return ordered[max(len(ordered) - 1, 0) // 2 : len(ordered) // 2 + 1]


def _sampling_error(curves: list[_Curve]) -> float:
    """The half-width, in log x, of the median that is due to the gaps of the middle curves.

    It is 0 where the median lies beyond the grid.
    """
    central = _middle_curves(curves)
    widths = np.array([curve.width for curve in _crossing_curves(central)])
    if len(widths) < len(central) or not central:
        return 0.0
    deviation = math.sqrt(float((widths**2).sum()) / 12) / len(widths)
    from scipy import stats

    return float(stats.norm.ppf((1 + CONFIDENCE) / 2)) * deviation


class _Spread(NamedTuple):
    """The variance of log x between seeds, pooled over all y, and its degrees of freedom.

    It is pooled because two or three seeds of one y may agree by chance. `sampling` is the part of
    it that is due to the gaps between samples, of the median curve: curves far beyond the median
    are not sampled closely.
    """

    variance: float
    freedom: int
    sampling: float

    def error(
        self, positions: Floats, count: int, total: int, *, crossing: int, include_sampling: bool
    ) -> float:
        """Return the half-width, in log x, of a mean over those seeds run that cross.

        Args:
            count: how many seeds are run, of `total`.
            crossing: how many of those run cross: the mean is over these.
            include_sampling: whether the part that is due to the gaps between samples counts too.
        """
        if count >= total:
            return 0.0
        if self.freedom == 0:
            return math.inf
        largest = max(self.variance, float(positions.var(ddof=1)) if len(positions) > 1 else 0.0)
        variance = largest if include_sampling else max(largest - self.sampling, 0.0)
        quantile = float(t_quantile(self.freedom, CONFIDENCE))
        return quantile * math.sqrt(variance * (1 - count / total) / max(crossing, 1))


def _pooled_spread(groups: Iterable[list[_Curve]]) -> _Spread:
    squares, freedom, sampling = 0.0, 0, list[float]()
    for curves in groups:
        crossing_curves = _crossing_curves(curves)
        if len(crossing_curves) > 1:
            squares += float(np.var(_positions(crossing_curves))) * len(crossing_curves)
            freedom += len(crossing_curves) - 1
            sampling += [curve.width**2 / 12 for curve in crossing_curves]
    typical = float(np.median(sampling)) if sampling else 0.0
    return _Spread(squares / max(freedom, 1), freedom, typical)


def _refining_points(
    search: Search, y: float, curves: list[_Curve], spread: _Spread
) -> list[Point]:
    points = [
        Point(y, curve.seed, x)
        for curve in curves
        if _is_open(search, curve)
        for x in _outer_samples(search, curve)
    ]
    crossing_curves = _crossing_curves(curves)
    median = _median_position(curves)
    if math.exp(median) * _sampling_error(curves) > _SHARE * search.tolerance:
        middle_seeds = {curve.seed for curve in _middle_curves(curves)}
        close = [
            curve
            for curve in crossing_curves
            if curve.seed in middle_seeds or abs(curve.crossing - median) <= curve.width
        ]
        widest = max((curve.width for curve in close), default=math.inf)
        points += [
            Point(y, curve.seed, _sample_at(curve.middle))
            for curve in close
            if curve.width >= widest / 2
        ]
    started = {curve.seed for curve in curves}
    unused = [seed for seed in search.seeds if seed not in started]
    count = _sufficient_seeds(search, curves, spread)
    if not points:  # only further seeds help
        count = max(count, len(curves) + math.ceil(len(curves) / 4))
    return points + [
        Point(y, seed, x)
        for seed in unused[: count - len(curves)]
        for x in _first_samples(search, crossing_curves)
    ]


def _sufficient_seeds(search: Search, curves: list[_Curve], spread: _Spread) -> int:
    total, started = len(search.seeds), len(curves)
    if not math.isfinite(_median_position(curves)):
        return total
    positions = _positions(_crossing_curves(curves))
    target = _SHARE * search.tolerance / math.exp(positions.mean()) / MEDIAN_OVER_MEAN
    for count in range(started, total):
        crossing = count * len(positions) // started
        error = spread.error(positions, count, total, crossing=crossing, include_sampling=False)
        if error <= target:
            return count
    return total


def _outer_samples(search: Search, curve: _Curve) -> list[float]:
    """Return where a curve on one side may cross: twice as far out, or at the other end."""
    ends = [search.coarse[0], search.coarse[-1]]
    low, high = math.log(curve.x[0]), math.log(curve.x[-1])
    span = max(high - low, 0.05)
    upward = curve.is_before_crossing
    if curve.x[-1] >= ends[1] if upward else curve.x[0] <= ends[0]:
        return ends
    x = _sample_at(high + span if upward else low - span)
    return [min(max(x, ends[0]), ends[1])]


def _first_samples(search: Search, curves: list[_Curve]) -> list[float]:
    ends = [search.coarse[0], search.coarse[-1]]
    if not curves:
        return ends
    positions = _positions(curves)
    deviation = float(positions.std(ddof=1)) if len(positions) > 1 else 0.0
    half = max(2 * deviation, 0.05, *(curve.width for curve in curves))
    samples = [_sample_at(float(positions.mean()) + sign * half) for sign in (-1, 1)]
    return [min(max(x, ends[0]), ends[1]) for x in samples]


def _sample_at(position: float) -> float:
    return round_digits(math.exp(position), _DIGITS)
