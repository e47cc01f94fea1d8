"""Intervals over seeds: of means, of shares, and of medians of values that may be infinite.

A value that is not known, of a cell that failed or has not come to its end, lies between two ends.
Its estimate's interval then contains those of all values in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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
        low, high: the ends of the interval; nan where there are too few seeds for one.
        kind: the kind of the interval, such as `95 % t over 10 seeds`.
        seeds: the number of independent values: near copies of another value do not count.
        inner: the ends of the interval that misses the number twice as often, 90 % for 95 %: two
            one-sided tests of equivalence compare it with a margin (Schuirmann 1987). None where
            it is not known.
        copies: the number of values that are near copies, and do not count.
    """

    value: float
    low: float
    high: float
    kind: str
    seeds: int
    inner: tuple[float, float] | None = None
    copies: int = 0

    @property
    def bounded(self) -> bool:
        """Whether the interval has an end."""
        return not (np.isnan(self.low) or (self.low == -np.inf and self.high == np.inf))

    def transformed(self, function: Callable[[float], float]) -> Estimate:
        """Return the estimate of an increasing function of the number."""
        value, low, high = (function(number) for number in self[:3])
        inner = self.inner and (function(self.inner[0]), function(self.inner[1]))
        return self._replace(value=value, low=low, high=high, inner=inner)


def inner_level(level: float) -> float:
    """Return the level of the interval that misses its number twice as often."""
    return 1 - 2 * (1 - level)


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


def mean_estimate(
    values: ArrayLike,
    level: float | None = None,
    *,
    within: tuple[float, float] = (-np.inf, np.inf),
    up_to: ArrayLike | None = None,
) -> Estimate:
    """Return the mean of independent values with its t interval.

    Args:
        values: shape (seeds,), finite; with `up_to` the least that each may be.
        within: the least and the largest value that there can be, such as 0 and 1 of a share; the
            interval ends there.
        up_to: the most that each value may be, of the same shape. The interval contains the t
            intervals of all values in between: it is unbounded where one of them is.
    """
    level = level or level_of_each(1)
    least = np.asarray(values, dtype=np.float64)
    most = least if up_to is None else np.asarray(up_to, dtype=np.float64)
    count = len(least)
    kind = f"{100 * level:.4g} % t over {count} seeds"
    if count == 0:
        return Estimate(np.nan, np.nan, np.nan, kind, count)
    with np.errstate(invalid="ignore"):  # between infinities
        mean = float((least.mean() + most.mean()) / 2)
    if count < 2:
        return Estimate(mean, np.nan, np.nan, kind, count)
    if not np.isfinite([least, most]).all():
        return Estimate(mean, *within, kind, count)
    deviation = _largest_deviation(least, most)
    ends = [
        np.clip([least.mean() - half, most.mean() + half], *within).tolist()
        for half in (
            float(t_half_width(deviation, count, each)) for each in (level, inner_level(level))
        )
    ]
    (low, high), inner = ends
    seeds = count_distinct(least)
    return Estimate(mean, low, high, kind, seeds, (inner[0], inner[1]), count - seeds)


def _largest_deviation(least: Floats, most: Floats) -> float:
    centre = (least.mean() + most.mean()) / 2
    squares = np.maximum((least - centre) ** 2, (most - centre) ** 2)
    return float(np.sqrt(squares.sum() / (len(least) - 1)))


def t_half_width(
    deviation: ArrayLike, count: ArrayLike, level: float | None = None
) -> NDArray[np.float64]:
    """Return half the length of the t intervals of means.

    Args:
        deviation: the standard deviation of each sample, with one degree of freedom taken off.
        count: how many values each sample has, of the same shape: at least two, or nan where
            there are fewer.
    """
    from scipy.special import stdtrit

    count = np.asarray(count)
    quantile = stdtrit(count - 1, (1 + (level or level_of_each(1))) / 2)
    half: NDArray[np.float64] = quantile * np.asarray(deviation) / np.sqrt(count)
    return half


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


def difference_estimate(
    values: ArrayLike, subtracted: ArrayLike, level: float | None = None
) -> Estimate:
    """Return the difference of the means of two samples with its t interval (Welch 1947).

    Args:
        values: shape (seeds,), finite.
        subtracted: shape (other seeds,), finite.
    """
    estimate = difference_of_means(summarise(values), summarise(subtracted), level)
    distinct = min(count_distinct(values), count_distinct(subtracted))
    return estimate._replace(seeds=distinct, copies=estimate.seeds - distinct)


def difference_of_means(first: Summary, second: Summary, level: float | None = None) -> Estimate:
    """Return the difference of two independent means with its t interval (Welch 1947).

    Returns:
        The difference, whose `seeds` are those of the smaller sample; its ends are nan where an
        error is not known.
    """
    from scipy.special import stdtrit

    level = level or level_of_each(1)
    difference = first.value - second.value
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
    half, inner = (
        float(stdtrit(freedom, (1 + each) / 2)) * error for each in (level, inner_level(level))
    )
    ends = (difference - inner, difference + inner)
    return Estimate(difference, difference - half, difference + half, kind, fewest, ends)


def share_estimate(
    successes: int, tries: int, level: float | None = None, *, unknown: int = 0
) -> Estimate:
    """Return the share of successes with its exact interval (Clopper and Pearson 1934).

    Args:
        level: the least confidence level; by default that of one interval.
        unknown: further tries of these that may be successes: the interval allows for none and for
            all of them.
    """
    level = level or level_of_each(1)
    low, high = _exact_ends(successes, successes + unknown, tries, level)
    kind = f"{100 * level:.4g} % exact over {tries} seeds"
    inner = _exact_ends(successes, successes + unknown, tries, inner_level(level))
    return Estimate((successes + unknown / 2) / tries, low, high, kind, tries, inner)


def _exact_ends(least: int, most: int, tries: int, level: float) -> tuple[float, float]:
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = float(betaincinv(least, tries - least + 1, tail)) if least else 0.0
    high = float(betaincinv(most + 1, tries - most, 1 - tail)) if most < tries else 1.0
    return low, high


def median_estimate(
    values: ArrayLike, level: float | None = None, *, up_to: ArrayLike | None = None
) -> Estimate:
    """Return the median of independent values with its interval by order statistics.

    It is valid for any distribution, and for infinite values, which lie beyond a grid.

    Args:
        values: shape (seeds,), without nan; with `up_to` the least that each may be.
        level: the least confidence level; by default that of one interval.
        up_to: the most that each value may be, of the same shape. The interval contains those of
            all values in between.

    Returns:
        The median; its interval is infinite on both sides with fewer than `FEWEST_FOR_MEDIAN`.
    """
    level = level or level_of_each(1)
    least = np.sort(np.asarray(values, dtype=np.float64))
    most = least if up_to is None else np.sort(np.asarray(up_to, dtype=np.float64))
    count, lower, upper = len(least), middle(least), middle(most)
    value = lower if lower == upper else (lower + upper) / 2
    low, high = _ordered_ends(least, most, level)
    kind = f"{100 * level:.4g} % by order over {count} seeds"
    inner = _ordered_ends(least, most, inner_level(level))
    seeds = count_distinct(least)
    return Estimate(value, low, high, kind, seeds, inner, count - seeds)


def _ordered_ends(least: Floats, most: Floats, level: float) -> tuple[float, float]:
    """The ends of a median's interval, of values sorted by the least and by the most they may be.

    So few values as are left out on each side seldom lie on one side of the median.
    """
    excluded = ordered_tail(len(least), level)
    return (float(least[excluded - 1]), float(most[-excluded])) if excluded else (-np.inf, np.inf)


def ordered_tail(count: int, level: float) -> int:
    """Return which value from each side ends the interval of a median: 0 where none does."""
    from scipy.special import bdtr

    return int(np.sum(bdtr(np.arange(count), count, 0.5) <= (1 - level) / 2))


def middle(values: ArrayLike) -> float:
    """Return the median; of an even number of values, the mean of the middle two."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    lower, upper = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return float(lower if lower == upper else (lower + upper) / 2)
