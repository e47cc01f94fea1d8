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
from typing import NamedTuple

import numpy as np
import pandas as pd

from overfit_cli.core.arrays import Floats
from overfit_cli.core.text import round_digits
from overfit_cli.stats.boundaries import crossing
from overfit_cli.stats.intervals import LEVEL, middle, t_quantile

FIRST_SEEDS = 2
"""The number of seeds of the coarse grid; further seeds begin where these cross."""

MEDIAN_OVER_MEAN = math.sqrt(math.pi / 2)
"""The standard error of the median of normal numbers over that of their mean."""

_SHARE = 0.7
"""The share of the tolerance that each of the two reasons may use: both together then keep it."""

_DIGITS = 6
"""Significant digits of a sampled x."""

_LEAST_SPAN = 0.05
"""The least distance, in log x, of what is sampled outside of what is known."""


class Point(NamedTuple):
    """A cell to run."""

    y: float
    seed: int
    x: float


@dataclass(frozen=True)
class CrossingEstimate:
    """The estimated crossing at one y.

    Attributes:
        crossing: the median over the seeds; nan where it lies beyond the grid.
        half_width: of its 95 % interval, in the unit of x; nan without a crossing, infinite with
            one seed of several.
        side: the side of the seeds that do not cross: `above`, `below` or `above or below`; empty
            where all cross.
        converged: whether the interval is within the tolerance, or no seed crosses.
    """

    y: float
    crossing: float
    half_width: float
    side: str
    converged: bool


@dataclass(frozen=True)
class Search:
    """A search for the median crossing at each of several y.

    Cells that were run are a frame with a row for each: `y`, `seed`, `x`, and `value`, nan if it
    failed.

    Attributes:
        coarse: the x of the coarse grid, ascending and positive, at least two of them.
        tolerance: the accepted half-width of the interval, in the unit of x.
    """

    y: Sequence[float]
    coarse: Sequence[float]
    seeds: Sequence[int]
    threshold: float
    tolerance: float

    def first_points(self) -> list[Point]:
        """Return the coarse grid: every y and x, with the first seeds."""
        seeds = self.seeds[:FIRST_SEEDS]
        return [Point(y, seed, x) for seed in seeds for y in self.y for x in self.coarse]

    def next_points(self, cells: pd.DataFrame) -> list[Point]:
        """Return the cells to run next, without those that were run.

        There are none where every y has converged, or where the cells that would help have failed.
        """
        open_rows = [row for row in self._rows(cells) if not row.estimate().converged]
        points = {Point(row.y, *point) for row in open_rows for point in row.next_points()}
        sampled = cells[["y", "seed", "x"]].itertuples(index=False)
        return sorted(points - {Point(*row) for row in sampled})

    def estimates(self, cells: pd.DataFrame) -> list[CrossingEstimate]:
        """Return the estimate at each y."""
        return [row.estimate() for row in self._rows(cells)]

    def sample_at(self, position: float) -> float:
        """Return the x to sample near a logarithm: one inside of the grid."""
        return min(max(round_digits(math.exp(position), _DIGITS), self.coarse[0]), self.coarse[-1])

    def _rows(self, cells: pd.DataFrame) -> list[_Row]:
        """The curves of each y, with the variance that is pooled over all of them."""
        groups, falls = dict(iter(cells.sort_values("x").groupby(["y", "seed"]))), _fall(cells)
        curves = dict[float, list[_Curve]]()
        for y in self.y:
            known = [(seed, groups[y, seed]) for seed in self.seeds if (y, seed) in groups]
            curves[y] = [_make_curve(*each, self.threshold, falls=falls) for each in known]
        spread = _Spread.pooled(curves.values())
        return [_Row(self, y, of_y, spread) for y, of_y in curves.items()]


def _fall(cells: pd.DataFrame) -> bool:
    """Whether more of the curves fall along x than rise."""
    measured = cells[np.isfinite(cells["value"].to_numpy(dtype=np.float64))].sort_values("x")
    ends = measured.groupby(["y", "seed"])["value"].agg(["first", "last"])
    return bool((ends["last"] < ends["first"]).sum() >= (ends["last"] > ends["first"]).sum())


@dataclass(frozen=True, eq=False)
class _Curve:
    """A sampled curve; positions are logarithms of x.

    Attributes:
        x: the sampled x, ascending, not as logarithms.
        position: that of the crossing; infinite where it lies outside the grid, and nan where no
            cell has a number.
        side: the side on which a curve is that does not cross, `above` or `below`.
        width: the uncertainty of the crossing: the length of the stretch in which samples of both
            sides are mixed, or of the gap between the sides, over the root of the number of
            samples.
        gap: the middle of the widest gap in that stretch.
    """

    seed: int
    x: Floats
    position: float = math.nan
    side: str = ""
    width: float = math.nan
    gap: float = math.nan


def _make_curve(seed: int, cells: pd.DataFrame, threshold: float, *, falls: bool) -> _Curve:
    x, values = (cells[name].to_numpy(dtype=np.float64) for name in ("x", "value"))
    finite = np.isfinite(values)
    sampled, values = x[finite], values[finite]
    if sampled.size == 0:
        return _Curve(seed, x)
    crossing_x = crossing(sampled, values, threshold)
    if not math.isfinite(crossing_x):
        stays_above = bool(np.median(values) > threshold)
        outside = math.inf if stays_above == falls else -math.inf
        return _Curve(seed, x, outside, "above" if stays_above else "below")
    is_above = values > threshold
    first, last = is_above[0], is_above[-1]
    # From the last sample before any has changed sides, to the first after which all have.
    begin = max(int(np.argmax(is_above != first)) - 1, 0)
    after = int(np.argmax(is_above[::-1] != last)) - 1 if first != last else 0
    stretch = np.log(sampled[begin : len(sampled) - after])
    gap = int(np.argmax(np.diff(stretch)))
    width = float(stretch[-1] - stretch[0]) / math.sqrt(len(stretch) - 1)
    return _Curve(seed, x, math.log(crossing_x), "", width, float(stretch[gap : gap + 2].mean()))


class _Spread(NamedTuple):
    """The variance of log x between seeds, pooled over all y, and its degrees of freedom.

    It is pooled because two or three seeds of one y may agree by chance. `sampling` is the part of
    it that is due to the gaps between samples, of the median curve: curves far beyond the median
    are not sampled closely.
    """

    variance: float
    freedom: int
    sampling: float

    @classmethod
    def pooled(cls, rows: Iterable[Sequence[_Curve]]) -> _Spread:
        """Return the spread of the curves of each y that cross."""
        crossing = ([each for each in row if math.isfinite(each.position)] for row in rows)
        several = [row for row in crossing if len(row) > 1]
        squares = sum(float(np.var([each.position for each in row])) * len(row) for row in several)
        freedom = sum(len(row) - 1 for row in several)
        sampling = [curve.width**2 / 12 for row in several for curve in row] or [0.0]
        return cls(squares / max(freedom, 1), freedom, float(np.median(sampling)))


class _Row:
    """The curves at one y, and what is known of their median.

    Attributes:
        crossing: the curves that cross, and their positions.
        central: the one or two curves in the middle, which the median is made of.
        median: the position of the median crossing; infinite where it lies beyond the grid, and nan
            without any curve.
    """

    def __init__(self, search: Search, y: float, curves: Sequence[_Curve], spread: _Spread) -> None:
        self.search, self.y, self.curves, self.spread = search, y, curves, spread
        self.crossing = [curve for curve in curves if math.isfinite(curve.position)]
        self.positions = np.array([curve.position for curve in self.crossing])
        known = [curve for curve in curves if not math.isnan(curve.position)]
        known.sort(key=lambda curve: curve.position)
        self.central = known[max(len(known) - 1, 0) // 2 : len(known) // 2 + 1]
        self.median = middle([curve.position for curve in self.central]) if known else math.nan

    def estimate(self) -> CrossingEstimate:
        """Return the estimated crossing."""
        sides = {curve.side for curve in self.curves if curve.side}
        is_open, crosses = any(map(self._is_open, self.curves)), math.isfinite(self.median)
        at = half = math.nan
        converged = len(self.curves) == len(self.search.seeds) and bool(sides)
        if crosses:
            at, error = math.exp(self.median), self._seed_error(len(self.curves), sampling=0.0)
            half = at * math.hypot(self._sampling_error(), MEDIAN_OVER_MEAN * error)
            converged = half <= self.search.tolerance
        side = " or ".join(sorted(sides))
        return CrossingEstimate(self.y, at, half, side, converged and not is_open)

    def next_points(self) -> list[tuple[int, float]]:
        """Return the seeds and x that would help most, some of which may have been run."""
        search, curves = self.search, self.curves
        points = [(one.seed, x) for one in curves if self._is_open(one) for x in self._outer(one)]
        if math.exp(self.median) * self._sampling_error() > _SHARE * search.tolerance:
            close = [
                curve
                for curve in self.crossing
                if curve in self.central or abs(curve.position - self.median) <= curve.width
            ]
            widest = max((curve.width for curve in close), default=math.inf)
            wide = (curve for curve in close if curve.width >= widest / 2)
            points += [(curve.seed, search.sample_at(curve.gap)) for curve in wide]
        count = self._sufficient_seeds()
        if not points:  # only further seeds help
            count = max(count, len(curves) + math.ceil(len(curves) / 4))
        started = {curve.seed for curve in curves}
        unused = [seed for seed in search.seeds if seed not in started]
        samples = self._first_samples()
        return points + [(seed, x) for seed in unused[: count - len(curves)] for x in samples]

    def _is_open(self, curve: _Curve) -> bool:
        """Whether a curve that does not cross was not followed to both ends of the grid."""
        low, high = self.search.coarse[0], self.search.coarse[-1]
        return bool(curve.side) and not (curve.x[0] <= low and curve.x[-1] >= high)

    def _sampling_error(self) -> float:
        """The half-width, in log x, of the median that is due to the gaps of the middle curves.

        It is 0 where the median lies beyond the grid.
        """
        widths = np.array([curve.width for curve in self.central])
        if not len(widths) or np.isnan(widths).any():  # one of them does not cross
            return 0.0
        deviation = math.sqrt(float((widths**2).sum()) / 12) / len(widths)
        return float(t_quantile(math.inf, LEVEL)) * deviation

    def _seed_error(self, count: int, sampling: float) -> float:
        """The half-width, in log x, of a mean over those of so many seeds run that cross.

        Args:
            sampling: what is taken off the variance, as it is due to the gaps between samples.
        """
        spread, total, crossing = self.spread, len(self.search.seeds), len(self.crossing)
        if count >= total:
            return 0.0
        if spread.freedom == 0:
            return math.inf
        own = float(self.positions.var(ddof=1)) if crossing > 1 else 0.0
        variance = max(max(spread.variance, own) - sampling, 0.0)
        mean_of = max(count * crossing // len(self.curves), 1)
        quantile = float(t_quantile(spread.freedom, LEVEL))
        return quantile * math.sqrt(variance * (1 - count / total) / mean_of)

    def _sufficient_seeds(self) -> int:
        total = len(self.search.seeds)
        if not math.isfinite(self.median):
            return total
        mean = float(math.exp(self.positions.mean()))
        target = _SHARE * self.search.tolerance / mean / MEDIAN_OVER_MEAN
        counts = range(len(self.curves), total)
        errors = ((count, self._seed_error(count, self.spread.sampling)) for count in counts)
        return next((count for count, error in errors if error <= target), total)

    def _outer(self, curve: _Curve) -> list[float]:
        """Where a curve on one side may cross: twice as far out, or at the other end."""
        ends = [self.search.coarse[0], self.search.coarse[-1]]
        low, high = math.log(curve.x[0]), math.log(curve.x[-1])
        span, upward = max(high - low, _LEAST_SPAN), curve.position > 0
        if curve.x[-1] >= ends[1] if upward else curve.x[0] <= ends[0]:
            return ends
        return [self.search.sample_at(high + span if upward else low - span)]

    def _first_samples(self) -> list[float]:
        """Where a further seed is run first: on both sides of where others cross."""
        if not self.crossing:
            return [self.search.coarse[0], self.search.coarse[-1]]
        deviation = float(self.positions.std(ddof=1)) if len(self.positions) > 1 else 0.0
        half = max(2 * deviation, _LEAST_SPAN, *(curve.width for curve in self.crossing))
        centre = float(self.positions.mean())
        return [self.search.sample_at(centre + sign * half) for sign in (-1, 1)]
