"""Intervals over seeds: of means, of shares, and of medians of values that may be infinite."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

LEVEL = 0.95
"""The confidence level of a single claim's interval."""

_level = ContextVar("level", default=LEVEL)
FEWEST_FOR_MEDIAN = 6
"""With fewer seeds the interval of a median has no ends."""


def level_of_each(numbers: int) -> float:
    """Return the level of each of several intervals that together have the level of one."""
    return 1 - (1 - _level.get()) / numbers


@contextmanager
def set_level(level: float) -> Iterator[None]:
    """Give intervals another default level than `LEVEL`."""
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
        kind: the kind of the interval, such as `95 % t over 10 seeds`.
        seeds: the number of independent values.
    """

    value: float
    low: float
    high: float
    kind: str
    seeds: int

    @property
    def bounded(self) -> bool:
        """Whether the interval has an end."""
        return not (np.isnan(self.low) or (self.low == -np.inf and self.high == np.inf))


def mean_estimate(
    values: ArrayLike,
    level: float | None = None,
    *,
    within: tuple[float, float] = (-np.inf, np.inf),
) -> Estimate:
    """Return the mean of independent values with its t interval.

    Args:
        values: shape (seeds,), finite.
        level: the confidence level; by default that of one interval.
        within: the least and the largest value that there can be, such as 0 and 1 of a share; the
            interval ends there.
    """
    level = level or level_of_each(1)
    sample = np.asarray(values, dtype=np.float64)
    count, mean = len(sample), float(sample.mean())
    kind = f"{100 * level:.4g} % t over {count} seeds"
    if count < 2:
        return Estimate(mean, np.nan, np.nan, kind, count)
    half = float(t_half_width(float(sample.std(ddof=1)), count, level))
    low, high = np.clip([mean - half, mean + half], *within)
    return Estimate(mean, float(low), float(high), kind, count)


def t_half_width(
    deviation: ArrayLike, count: ArrayLike, level: float | None = None
) -> NDArray[np.float64]:
    """Return half the length of the t intervals of means.

    Args:
        deviation: the standard deviation of each sample, with one degree of freedom taken off.
        count: how many values each sample has, of the same shape: at least two, or nan where
            there are fewer.
        level: the confidence level; by default that of one interval.
    """
    from scipy.special import stdtrit

    count = np.asarray(count)
    quantile = stdtrit(count - 1, (1 + (level or level_of_each(1))) / 2)
    half: NDArray[np.float64] = quantile * np.asarray(deviation) / np.sqrt(count)
    return half


def difference_estimate(
    values: ArrayLike, subtracted: ArrayLike, level: float | None = None
) -> Estimate:
    """Return the difference of the means of two samples with its t interval (Welch 1947).

    Args:
        values: shape (seeds,), finite.
        subtracted: shape (other seeds,), finite.
        level: the confidence level; by default that of one interval.
    """
    from scipy.special import stdtrit

    level = level or level_of_each(1)
    samples = [np.asarray(sample, dtype=np.float64) for sample in (values, subtracted)]
    counts = [len(sample) for sample in samples]
    difference = float(samples[0].mean() - samples[1].mean())
    kind = f"{100 * level:.4g} % Welch's t over {counts[0]} and {counts[1]} seeds"
    if min(counts) < 2:
        return Estimate(difference, np.nan, np.nan, kind, min(counts))
    parts = [float(sample.var(ddof=1)) / len(sample) for sample in samples]
    error = sum(parts)
    denominator = sum(part**2 / (count - 1) for part, count in zip(parts, counts, strict=True))
    freedom = error**2 / denominator if denominator > 0 else np.inf
    half = float(stdtrit(freedom, (1 + level) / 2)) * np.sqrt(error)
    return Estimate(
        difference, float(difference - half), float(difference + half), kind, min(counts)
    )


def share_estimate(successes: int, tries: int, level: float | None = None) -> Estimate:
    """Return the share of successes with its exact interval (Clopper and Pearson 1934).

    Args:
        successes: of independent tries.
        tries: at least one.
        level: the least confidence level; by default that of one interval.
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

    It is valid for any distribution, and for infinite values, which lie beyond a grid.

    Args:
        values: shape (seeds,), without nan.
        level: the least confidence level; by default that of one interval.

    Returns:
        The median; its interval is infinite on both sides with fewer than `FEWEST_FOR_MEDIAN`.
    """
    from scipy.special import bdtr

    level = level or level_of_each(1)
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    count = len(ordered)
    # The number of values outside on each side: so few seldom lie on one side of the median.
    excluded = int(np.sum(bdtr(np.arange(count), count, 0.5) <= (1 - level) / 2))
    low, high = (ordered[excluded - 1], ordered[-excluded]) if excluded else (-np.inf, np.inf)
    kind = f"{100 * level:.4g} % by order over {count} seeds"
    return Estimate(middle(ordered), float(low), float(high), kind, count)


def middle(values: ArrayLike) -> float:
    """Return the median; of an even number of values, the mean of the middle two."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    lower, upper = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return float(lower if lower == upper else (lower + upper) / 2)
