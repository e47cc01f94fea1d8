"""Intervals over seeds: of means, of shares, and of medians of what may be infinite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95
"""How often a single claim's interval holds its number."""

_level = ContextVar("level", default=LEVEL)
FEWEST_FOR_MEDIAN = 6
"""With fewer seeds the median's interval has no ends."""


def level_of_each(numbers: int) -> float:
    """Return the level of each of several intervals that hold together as often as one does."""
    return 1 - (1 - _level.get()) / numbers


@contextmanager
def at_level(level: float) -> Iterator[None]:
    """Give intervals another level than `LEVEL`, where none is asked for."""
    token = _level.set(level)
    try:
        yield
    finally:
        _level.reset(token)


class Estimate(NamedTuple):
    """A number with its interval.

    Attributes:
        value: the number.
        low, high: the ends of the interval; nan where there are too few seeds for one.
        kind: what interval it is.
        seeds: how many independent values it is of.
    """

    value: float
    low: float
    high: float
    kind: str
    seeds: int

    @property
    def bounded(self) -> bool:
        """Whether the interval has an end at all."""
        return not (np.isnan(self.low) or (self.low == -np.inf and self.high == np.inf))


def mean_estimate(values: ArrayLike, level: float | None = None) -> Estimate:
    """Return the mean of independent values with its t interval.

    Args:
        values: shape (seeds,), finite.
        level: how often such intervals hold the mean; by default that of one interval.
    """
    level = level or level_of_each(1)
    sample = np.asarray(values, dtype=np.float64)
    count, mean = len(sample), float(sample.mean())
    kind = f"{100 * level:.4g} % t over {count} seeds"
    if count < 2:
        return Estimate(mean, np.nan, np.nan, kind, count)
    half = float(t_half_width(float(sample.std(ddof=1)), count, level))
    return Estimate(mean, float(mean - half), float(mean + half), kind, count)


def t_half_width(
    deviation: ArrayLike, count: ArrayLike, level: float | None = None
) -> NDArray[np.float64]:
    """Return half the length of the t intervals of means.

    Args:
        deviation: the standard deviation of each sample, with one degree of freedom taken off.
        count: how many values each sample has, of the same shape: at least two, or nan where
            there are fewer.
        level: how often such intervals hold the mean; by default that of one interval.
    """
    from scipy.special import stdtrit

    count = np.asarray(count)
    quantile = stdtrit(count - 1, (1 + (level or level_of_each(1))) / 2)
    half: NDArray[np.float64] = quantile * np.asarray(deviation) / np.sqrt(count)
    return half


def difference_estimate(values: ArrayLike, less: ArrayLike, level: float | None = None) -> Estimate:
    """Return the mean of independent values less that of others, with its t interval (Welch 1947).

    Args:
        values: shape (seeds,), finite.
        less: shape (other seeds,), finite.
        level: how often such intervals hold the difference; by default that of one interval.
    """
    from scipy.special import stdtrit

    level = level or level_of_each(1)
    samples = [np.asarray(one, dtype=np.float64) for one in (values, less)]
    counts = [len(one) for one in samples]
    difference = float(samples[0].mean() - samples[1].mean())
    kind = f"{100 * level:.4g} % Welch's t over {counts[0]} and {counts[1]} seeds"
    if min(counts) < 2:
        return Estimate(difference, np.nan, np.nan, kind, min(counts))
    parts = [float(one.var(ddof=1)) / len(one) for one in samples]
    error = sum(parts)
    inside = sum(part**2 / (count - 1) for part, count in zip(parts, counts, strict=True))
    freedom = error**2 / inside if inside > 0 else np.inf
    half = float(stdtrit(freedom, (1 + level) / 2)) * np.sqrt(error)
    return Estimate(
        difference, float(difference - half), float(difference + half), kind, min(counts)
    )


def share_estimate(successes: int, tries: int, level: float | None = None) -> Estimate:
    """Return the share of successes with its exact interval (Clopper and Pearson 1934).

    Args:
        successes: of independent tries.
        tries: at least one.
        level: how often such intervals hold the probability, at least; by default that of one.
    """
    from scipy.special import betaincinv

    tail = (1 - (level or level_of_each(1))) / 2
    failures = tries - successes
    low = float(betaincinv(successes, failures + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, failures, 1 - tail)) if failures else 1.0
    kind = f"{100 * (1 - 2 * tail):.4g} % exact over {tries} seeds"
    return Estimate(successes / tries, low, high, kind, tries)


def median_estimate(values: ArrayLike, level: float | None = None) -> Estimate:
    """Return the median of independent values with its interval by order statistics.

    It holds for any distribution, and for values that are infinite: what is beyond a grid.

    Args:
        values: shape (seeds,), without nan.
        level: how often such intervals hold the median, at least; by default that of one.

    Returns:
        The median; its interval is infinite on both sides with fewer than `FEWEST_FOR_MEDIAN`.
    """
    from scipy.special import bdtr

    level = level or level_of_each(1)
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    count = len(ordered)
    # So many are left out on each side: seldom are that few, or fewer, on one side of the median.
    outside = int(np.sum(bdtr(np.arange(count), count, 0.5) <= (1 - level) / 2))
    low, high = (ordered[outside - 1], ordered[-outside]) if outside else (-np.inf, np.inf)
    kind = f"{100 * level:.4g} % by order over {count} seeds"
    return Estimate(middle(ordered), float(low), float(high), kind, count)


def middle(values: ArrayLike) -> float:
    """Return the median; of an even number, the mean of the middle two, if both are finite."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    below, above = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return float(below if below == above else (below + above) / 2)
