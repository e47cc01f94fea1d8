"""The search for a boundary: where to sample next, to know at which x a column crosses.

A curve is the column along x at one y and one seed. What is wanted at each y is the median crossing
over all seeds of the search, to a tolerance; a curve that never crosses does so beyond the grid. It
is uncertain for two reasons: each curve's crossing lies somewhere between two sampled points, and
not all seeds need to have been run. Both are narrowed where they are largest. Nothing here trains,
and nothing is random: the same results give the same points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from overfit_cli.stats.boundaries import (
    MEDIAN_OVER_MEAN,
    Curve,
    Spread,
    between_points,
    curve_of,
    falls,
    median_position,
    middle_curves,
    positions,
    spread_of,
)

FIRST_SEEDS = 2
"""Seeds that the coarse grid is run with; others begin where these cross."""

_SHARE = 0.7
"""Of the tolerance, what each of the two reasons may use: both together then keep it."""

_DIGITS = 6
"""Significant digits of a sampled x."""


class Point(NamedTuple):
    """A cell to run."""

    y: float
    seed: int
    x: float


@dataclass(frozen=True)
class Search:
    """What is looked for.

    Attributes:
        y: the values of y.
        coarse: the x of the coarse grid, ascending and positive, at least two of them.
        seeds: over which the median crossing is wanted.
        threshold: in the unit of the column.
        tolerance: half the width of the interval that is good enough, in the unit of x.
    """

    y: Sequence[float]
    coarse: Sequence[float]
    seeds: Sequence[int]
    threshold: float
    tolerance: float


@dataclass(frozen=True)
class Found:
    """What is known at one y.

    Attributes:
        y: which.
        crossing: the median over the seeds; nan where it lies beyond the grid.
        half_width: of its 95 % interval, in the unit of x; nan without a crossing, infinite with
            one seed of several.
        crossing_seeds, never_seeds: how many of the seeds run cross, and stay on one side.
        side: on which side those stay: `above` or `below`; empty where all cross.
        converged: whether the interval is within the tolerance, or no seed crosses.
    """

    y: float
    crossing: float
    half_width: float
    crossing_seeds: int
    never_seeds: int
    side: str
    converged: bool


def first_points(search: Search) -> list[Point]:
    """Return the coarse grid: every y and x, with the first seeds."""
    seeds = search.seeds[:FIRST_SEEDS]
    return [Point(y, seed, x) for seed in seeds for y in search.y for x in search.coarse]


def next_points(search: Search, known: pd.DataFrame) -> list[Point]:
    """Return the cells that tell most, none that is known.

    There are none where everything has converged, or where what would tell more has failed.

    Args:
        search: what is looked for.
        known: one row per cell that was run, with `y`, `seed`, `x` and `value`, nan if it failed.
    """
    is_decreasing = falls(known)
    by_y = _curves(search, known)
    spread = spread_of(by_y.values())
    asked: list[Point] = []
    for y, curves in by_y.items():
        if not _found(search, y, curves, spread).converged:
            asked += _narrowed(search, y, curves, spread, is_decreasing)
    sampled = {Point(*row) for row in known[["y", "seed", "x"]].itertuples(index=False)}
    return sorted(set(asked) - sampled)


def findings(search: Search, known: pd.DataFrame) -> list[Found]:
    """Return what is known at each y; see `next_points` for the arguments."""
    by_y = _curves(search, known)
    spread = spread_of(by_y.values())
    return [_found(search, y, curves, spread) for y, curves in by_y.items()]


def _curves(search: Search, known: pd.DataFrame) -> dict[float, list[Curve]]:
    groups = dict(iter(known.groupby(["y", "seed"])))
    return {
        y: [
            curve_of(seed, groups[y, seed].sort_values("x"), search.threshold)
            for seed in search.seeds
            if (y, seed) in groups
        ]
        for y in search.y
    }


def _found(search: Search, y: float, curves: list[Curve], spread: Spread) -> Found:
    crossing_ones = [curve for curve in curves if curve.state == "crosses"]
    others: list[str] = [curve.state for curve in curves if curve.state in ("above", "below")]
    side = max(sorted(set(others)), key=others.count) if others else ""
    all_run = len(curves) == len(search.seeds)
    counts = len(crossing_ones), len(others), side
    open_ended = any(_is_open(search, curve) for curve in curves)
    at = median_position(curves)
    if not math.isfinite(at):
        return Found(y, math.nan, math.nan, *counts, all_run and bool(others) and not open_ended)
    between_seeds = MEDIAN_OVER_MEAN * spread.error(
        positions(crossing_ones),
        len(curves),
        len(search.seeds),
        crossing=len(crossing_ones),
        sampled=True,
    )
    half = math.exp(at) * math.hypot(between_points(curves), between_seeds)
    return Found(y, math.exp(at), half, *counts, half <= search.tolerance and not open_ended)


def _is_open(search: Search, curve: Curve) -> bool:
    """Whether a curve that is on one side so far has not been followed to both ends."""
    followed = curve.x[0] <= search.coarse[0] and curve.x[-1] >= search.coarse[-1]
    return curve.state in ("above", "below") and not followed


def _narrowed(
    search: Search, y: float, curves: list[Curve], spread: Spread, is_decreasing: bool
) -> list[Point]:
    """The points that make what is known at y less uncertain."""
    asked = [
        Point(y, curve.seed, x)
        for curve in curves
        if curve.state != "crosses" and _is_open(search, curve)
        for x in _further(search, curve, is_decreasing)
    ]
    crossing_ones = [curve for curve in curves if curve.state == "crosses"]
    at = median_position(curves)
    if math.exp(at) * between_points(curves) > _SHARE * search.tolerance:
        of_median = {curve.seed for curve in middle_curves(curves)}
        near = [
            curve
            for curve in crossing_ones
            if curve.seed in of_median or abs(curve.at - at) <= curve.width
        ]
        widest = max((curve.width for curve in near), default=math.inf)
        asked += [
            Point(y, curve.seed, _rounded(curve.middle))
            for curve in near
            if curve.width >= widest / 2
        ]
    run = {curve.seed for curve in curves}
    left = [seed for seed in search.seeds if seed not in run]
    wanted = _seeds_wanted(search, curves, spread)
    if not asked:  # nothing but further seeds tells more
        wanted = max(wanted, len(curves) + math.ceil(len(curves) / 4))
    started = left[: wanted - len(curves)]
    return asked + [
        Point(y, seed, x) for seed in started for x in _beginnings(search, crossing_ones)
    ]


def _seeds_wanted(search: Search, curves: list[Curve], spread: Spread) -> int:
    """How many seeds would do, should the others spread as those that were run do."""
    every, run = len(search.seeds), len(curves)
    if not math.isfinite(median_position(curves)):
        return every
    at = positions([curve for curve in curves if curve.state == "crosses"])
    enough = _SHARE * search.tolerance / math.exp(at.mean()) / MEDIAN_OVER_MEAN
    for count in range(run, every):
        if spread.error(at, count, every, crossing=count * len(at) // run, sampled=False) <= enough:
            return count
    return every


def _further(search: Search, curve: Curve, is_decreasing: bool) -> list[float]:
    """Where a curve that lies on one side may cross: twice as far out, or at the other end."""
    ends = [search.coarse[0], search.coarse[-1]]
    low, high = math.log(curve.x[0]), math.log(curve.x[-1])
    span = max(high - low, 0.05)
    outward = (curve.state == "above") == is_decreasing
    if curve.x[-1] >= ends[1] if outward else curve.x[0] <= ends[0]:
        return ends
    x = _rounded(high + span if outward else low - span)
    return [min(max(x, ends[0]), ends[1])]


def _beginnings(search: Search, others: list[Curve]) -> list[float]:
    """Where to sample a new seed first: around where the others cross, or at both ends."""
    ends = [search.coarse[0], search.coarse[-1]]
    if not others:
        return ends
    at = np.array([curve.at for curve in others])
    spread = float(at.std(ddof=1)) if len(at) > 1 else 0.0
    half = max(2 * spread, 0.05, *(curve.width for curve in others))
    around = [_rounded(float(at.mean()) + side * half) for side in (-1, 1)]
    return [min(max(x, ends[0]), ends[1]) for x in around]


def _rounded(logarithm: float) -> float:
    return float(f"{math.exp(logarithm):.{_DIGITS}g}")
