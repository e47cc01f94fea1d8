"""Curves that cross a threshold, and the uncertainty of their median crossing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from overfit_cli.analysis.crossings import crossing
from overfit_cli.analysis.intervals import middle

Floats = NDArray[np.float64]
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
