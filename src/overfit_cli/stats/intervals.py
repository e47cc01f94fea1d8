"""Intervals over seeds: of means, of shares, and of medians of values that may be infinite.

A value that is not known, of a cell that failed or has not come to its end, lies between two ends.
Its estimate's interval then contains those of all values in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overfit_cli.core.arrays import Floats

LEVEL = 0.95
"""The confidence level of a single claim's interval."""

_level = ContextVar("level", default=LEVEL)
FEWEST_FOR_MEDIAN = 6
"""With fewer seeds the interval of a median has no ends."""

NEAR_COPY = 1e-6
"""Numbers of two seeds that agree to this share are copies: they are no draws of their own."""

SHORT_DECIMAL = 1e-4
"""Multiples of it, such as counts and accuracies, agree by chance: they are never copies."""


def level_of_each(numbers: float) -> float:
    """Return the level of each of several intervals that together have the level of one."""
    return 1 - error_of_each(numbers)


def error_of_each(numbers: float) -> float:
    """Return the error of each of several intervals that together have the error of one."""
    return (1 - _level.get()) / numbers


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
        low, high: the ends of the interval; nan where there are too few seeds for one.
        kind: the kind of the interval, such as `95 % t over 10 seeds`.
        seeds: the number of values.
        inner: the ends of the interval that misses the number twice as often, 90 % for 95 %: two
            one-sided tests of equivalence compare it with a margin (Schuirmann 1987). None where
            it is not known.
    """

    value: float
    low: float
    high: float
    kind: str
    seeds: int
    inner: tuple[float, float] | None = None

    @property
    def bounded(self) -> bool:
        """Whether the interval has an end."""
        return not (np.isnan(self.low) or (self.low == -np.inf and self.high == np.inf))


def count_distinct(values: ArrayLike) -> int:
    """Count the values that are no near copies of another; see `NEAR_COPY`."""
    sample = np.sort(np.asarray(values, dtype=np.float64))
    with np.errstate(invalid="ignore"):  # between infinities
        is_copy = np.diff(sample) <= NEAR_COPY * np.abs(sample[1:])
    return len(sample) - int((is_copy & ~is_short_decimal(sample[1:])).sum())


def is_short_decimal(values: ArrayLike) -> NDArray[np.bool_]:
    """Return which numbers are multiples of `SHORT_DECIMAL`; those that are not finite are."""
    numbers = np.asarray(values, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        multiples = numbers / SHORT_DECIMAL
        return ~np.isfinite(numbers) | (np.abs(multiples - np.round(multiples)) < 1e-9)


def mean_estimate(values: ArrayLike, *, up_to: ArrayLike | None = None) -> Estimate:
    """Return the mean of independent values with its t interval.

    Args:
        values: shape (seeds,); with `up_to` the least that each may be.
        up_to: the most that each value may be, of the same shape. The interval contains the t
            intervals of all values in between: it is unbounded where one of them is.
    """
    least = np.asarray(values, dtype=np.float64)
    most = least if up_to is None else np.asarray(up_to, dtype=np.float64)
    level, count = level_of_each(1), len(least)
    kind = f"{100 * level:.4g} % t over {count} seeds"
    with np.errstate(invalid="ignore"):  # between infinities
        mean = float((least.mean() + most.mean()) / 2) if count else np.nan
    if count < 2:
        return Estimate(mean, np.nan, np.nan, kind, count)
    if not np.isfinite([least, most]).all():
        return Estimate(mean, -np.inf, np.inf, kind, count)
    squares = np.maximum((least - mean) ** 2, (most - mean) ** 2)
    deviation = np.sqrt(squares.sum() / (count - 1))
    (low, high), inner = (
        (float(least.mean() - half), float(most.mean() + half))
        for half in (t_half_width(deviation, count, each) for each in (level, inner_level(level)))
    )
    return Estimate(mean, low, high, kind, count, inner)


def inner_level(level: float) -> float:
    """Return the level of the interval that misses its number twice as often."""
    return 1 - 2 * (1 - level)


def t_half_width(
    deviation: ArrayLike, count: ArrayLike, level: float | None = None
) -> NDArray[np.float64]:
    """Return half the length of the t intervals of means.

    Args:
        deviation: the standard deviation of each sample, with one degree of freedom taken off.
        count: how many values each sample has, of the same shape: at least two, or nan where
            there are fewer.
    """
    count = np.asarray(count)
    quantile = t_quantile(count - 1, level or level_of_each(1))
    return np.asarray(quantile * np.asarray(deviation) / np.sqrt(count))


def t_quantile(freedom: ArrayLike, level: float) -> NDArray[np.float64]:
    """Return the half-width of Student's t intervals, in standard errors."""
    from scipy.special import stdtrit

    freedom = np.asarray(freedom, dtype=np.float64)
    return np.asarray(stdtrit(freedom, (1 + level) / 2), dtype=np.float64)


class Summary(NamedTuple):
    """The mean of independent values with its standard error, as a paper prints it.

    Attributes:
        error: its standard error; nan where it is not known.
        freedom: the error's degrees of freedom; infinite where the error counts as exact.
        seeds: the number of values; 0 where it is not known.
    """

    value: float
    error: float
    freedom: float
    seeds: int

    def scaled(self, factor: float, shift: float = 0.0) -> Summary:
        """Return the summary of the values times a factor, plus a shift."""
        return self._replace(value=factor * self.value + shift, error=abs(factor) * self.error)


def summarise(values: ArrayLike) -> Summary:
    """Return the mean of values of shape (seeds,) with its standard error."""
    sample = np.asarray(values, dtype=np.float64)
    count = len(sample)
    error = float(sample.std(ddof=1) / np.sqrt(count)) if count > 1 else np.nan
    return Summary(float(sample.mean()), error, count - 1, count)


def difference_of_means(first: Summary, second: Summary) -> Estimate:
    """Return the difference of two independent means with its t interval (Welch 1947).

    Returns:
        The difference, whose `seeds` are those of the smaller sample; its ends are nan where an
        error is not known.
    """
    level, difference = level_of_each(1), first.value - second.value
    seeds = [str(each.seeds) if each.seeds else "unknown" for each in (first, second)]
    kind = f"{100 * level:.4g} % Welch's t over {' and '.join(seeds)} seeds"
    fewest = min([each.seeds for each in (first, second) if each.seeds], default=0)
    error = float(np.hypot(first.error, second.error))
    if np.isnan(error):
        return Estimate(difference, np.nan, np.nan, kind, fewest)
    # In shares of the variance, so that no square of a tiny error underflows.
    shares = [(each.error / error) ** 2 if error else 0.0 for each in (first, second)]
    inverse = sum(
        share**2 / each.freedom for share, each in zip(shares, (first, second), strict=True)
    )
    freedom = 1 / inverse if inverse > 0 else np.inf
    half, inner = (float(t_quantile(freedom, each)) * error for each in (level, inner_level(level)))
    ends = (difference - inner, difference + inner)
    return Estimate(difference, difference - half, difference + half, kind, fewest, ends)


def exact_ends(least: Floats, most: Floats, tries: int, alpha: float) -> tuple[Floats, Floats]:
    """Return the ends of exact intervals of shares, of whole numbers of successes.

    They are those of Clopper and Pearson 1934.
    """
    low, high = _exact_table(tries, alpha)
    return low[np.asarray(least, int)], high[np.asarray(most, int)]


@cache
def _exact_table(tries: int, alpha: float) -> tuple[Floats, Floats]:
    """The ends of the intervals of 0 to all successes."""
    from scipy.special import betaincinv

    count = np.arange(tries + 1)
    with np.errstate(invalid="ignore"):
        low = np.where(count > 0, betaincinv(count, tries - count + 1, alpha / 2), 0.0)
        high = np.where(count < tries, betaincinv(count + 1, tries - count, 1 - alpha / 2), 1.0)
    return low, high


def median_estimate(values: ArrayLike) -> Estimate:
    """Return the median of independent values with its interval by order statistics.

    It is valid for any distribution, and for infinite values, which lie beyond a grid.

    Args:
        values: shape (seeds,), without nan.

    Returns:
        The median; its interval is infinite on both sides with fewer than `FEWEST_FOR_MEDIAN`.
    """
    level, ordered = level_of_each(1), np.sort(np.asarray(values, dtype=np.float64))
    low, high = order_ends(ordered, ordered, 1 - level)
    kind = f"{100 * level:.4g} % by order over {len(ordered)} seeds"
    return Estimate(float(medians(ordered)), float(low), float(high), kind, len(ordered))


def order_ends(least: Floats, most: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return the ends of medians' intervals, of values sorted along the last axis.

    They are sorted by the least and by the most that they may be. So few values as are left out on
    each side seldom lie on one side of the median.
    """
    excluded = order_tail(least.shape[-1], alpha)
    if not excluded:
        unbounded = np.full(least.shape[:-1], np.inf)
        return -unbounded, unbounded
    return least[..., excluded - 1], most[..., -excluded]


@cache
def order_tail(count: int, alpha: float) -> int:
    """Return which value from each side ends the interval of a median: 0 where none does."""
    from scipy.special import bdtr

    return int(np.sum(bdtr(np.arange(count), count, 0.5) <= alpha / 2))


def middle(values: ArrayLike) -> float:
    """Return the median; of an even number of values, the mean of the middle two."""
    return float(medians(np.sort(np.asarray(values, dtype=np.float64))))


def medians(ordered: Floats) -> Floats:
    """Return medians of values sorted along the last axis; those of one infinity are that."""
    count = ordered.shape[-1]
    lower, upper = ordered[..., (count - 1) // 2], ordered[..., count // 2]
    with np.errstate(invalid="ignore"):
        return np.where(lower == upper, lower, (lower + upper) / 2)
