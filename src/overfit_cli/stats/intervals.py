"""Intervals over seeds: of means, of shares, and of medians of values that may be infinite; bands.

A value that is not known, of a cell that failed or has not come to its end, lies between two ends.
Its estimate's interval then contains those of all values in between.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overfit_cli.core.arrays import LARGEST, Floats
from overfit_cli.core.errors import BadValue
from overfit_cli.core.options import Band, Mean
from overfit_cli.core.text import set_inside

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


def set_level(level: float) -> AbstractContextManager[None]:
    """Give intervals another default level than `LEVEL` inside."""
    return set_inside(_level, level)


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


FEW = 30
"""Fewer equal numbers bound a mean by the limits of what they can be, if they have any."""


class Samples:
    """Samples of numbers that lie between two ends, (..., seeds), with intervals at any level.

    An interval runs from that of the lowest numbers to that of the highest.

    Args:
        statistic: `median`, `mean`, `geometric mean`, or the `share` of the larger of two values,
            as a mean; of a single number the ends may be `given`.
        low, high: one object where all are known.
        within: the least and the largest mean that there can be, of a `share` by default 0 and 1.
            None: equal numbers are a mean.
    """

    def __init__(
        self, statistic: str, low: Floats, high: Floats, within: tuple[float, float] | None = None
    ) -> None:
        self.statistic, self.count, self.within = statistic, low.shape[-1], within
        if statistic == "median":
            self.low, self.high = _both(lambda end: np.sort(end, axis=-1), low, high)
            below, above = _both(medians, self.low, self.high)
        elif statistic == "share":
            least, most = within if within and np.isfinite(within).all() else (0.0, 1.0)
            self.within = least, most
            below, above = _both(lambda end: end.mean(axis=-1), low, high)
            self.low, self.high = _both(lambda end: (end > least).sum(axis=-1), low, high)
        elif statistic == "given":
            below, above = self.low, self.high = low[..., 0], high[..., 0]
        else:
            if statistic == "geometric mean":
                low, high = _both(lambda end: np.log(np.maximum(end, 0.0)), low, high)
            below, above = self.low, self.high = _both(lambda end: end.mean(axis=-1), low, high)
            centre = (below + above)[..., None] / 2
            squares = _both(lambda end: (end - centre) ** 2, low, high)
            self.deviation = np.sqrt(np.maximum(*squares).sum(axis=-1) / max(self.count - 1, 1))
            # Whether all are one number, up to round-off: their spread is that of no interval.
            equal = self.deviation <= 4 * np.finfo(float).eps * np.abs(centre[..., 0])
            self.equal = equal & (self.count < FEW and within is not None)
        self.value: Floats = np.where(below == above, below, (below + above) / 2)
        self.value = np.exp(self.value) if statistic == "geometric mean" else self.value

    def ends(self, alpha: float) -> tuple[Floats, Floats]:
        """The ends of intervals that miss their number with this probability."""
        if self.statistic == "given":
            return self.low, self.high
        if self.statistic == "median":
            excluded = order_tail(self.count, alpha)  # so few seldom lie on one side of the median
            if excluded:
                return self.low[..., excluded - 1], self.high[..., -excluded]
            unbounded = np.full(self.value.shape, np.inf)
            return -unbounded, unbounded
        if self.statistic == "share":
            low, high = exact_ends(self.count, alpha)
            least, most = self.within or (0.0, 1.0)
            return tuple(least + (most - least) * end for end in (low[self.low], high[self.high]))
        in_logs = self.statistic == "geometric mean"
        least, most = (-np.inf, np.inf) if in_logs or self.within is None else self.within
        freedom = self.count - 1 if self.count > 1 else np.nan
        half = t_quantile(freedom, 1 - alpha) * self.deviation / np.sqrt(self.count)
        # Of n equal numbers, others may have so large a share that they are not seen.
        others = 1 - (alpha / 2) ** (1 / self.count)
        low = np.where(self.equal, self.low - others * (self.low - least), self.low - half)
        high = np.where(self.equal, self.high + others * (most - self.high), self.high + half)
        low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
        ends = np.exp((low, high)) if in_logs else np.clip((low, high), least, most)
        return ends[0], ends[1]


def _both(function: Callable[[Floats], Any], low: Floats, high: Floats) -> tuple[Any, Any]:
    """A function of both ends, computed once where all numbers are known."""
    of_low = function(low)
    return of_low, of_low if low is high else function(high)


def count_distinct(values: ArrayLike) -> int:
    """Count the values that are no near copies of another; see `NEAR_COPY`."""
    sample = np.sort(np.asarray(values, dtype=np.float64))
    with np.errstate(invalid="ignore"):  # between infinities
        is_copy = np.diff(sample) <= NEAR_COPY * np.abs(sample[1:])
    return len(sample) - int((is_copy & ~is_short_decimal(sample[1:])).sum())


def is_short_decimal(values: ArrayLike) -> NDArray[np.bool_]:
    """Return which numbers are multiples of `SHORT_DECIMAL`; those that are not finite are."""
    numbers = np.asarray(values, dtype=np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        multiples = numbers / SHORT_DECIMAL
        return ~np.isfinite(numbers) | (np.abs(multiples - np.round(multiples)) < 1e-9)


def mean_estimate(values: ArrayLike) -> Estimate:
    """Return the mean of independent values, (seeds,), with its t interval."""
    known = np.asarray(values, dtype=np.float64)
    if len(known) < 2:
        mean = float(known[0]) if len(known) else np.nan
        return Estimate(mean, np.nan, np.nan, kind_of("t", len(known)), len(known))
    with np.errstate(invalid="ignore"):  # between infinities
        return _estimate(Samples("mean", known, known), "t")


def _estimate(sample: Samples, by: str) -> Estimate:
    error = error_of_each(1)
    (low, high), (below, above) = sample.ends(error), sample.ends(2 * error)
    inner, kind = (float(below), float(above)), kind_of(by, sample.count)
    return Estimate(float(sample.value), float(low), float(high), kind, sample.count, inner)


def kind_of(by: str, seeds: object, level: float | None = None) -> str:
    """Return the kind of an interval, such as `95 % t over 10 seeds`; by default at the level."""
    return f"{100 * (level or level_of_each(1)):.4g} % {by} over {seeds} seeds"


def t_quantile(freedom: ArrayLike, level: float) -> NDArray[np.float64]:
    """Return the half-width of Student's t intervals, in standard errors.

    Args:
        freedom: the number of values less one; nan where there is no interval.
    """
    from scipy.special import stdtrit

    return np.asarray(stdtrit(np.asarray(freedom, np.float64), (1 + level) / 2), np.float64)


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
    level, difference, both = level_of_each(1), first.value - second.value, (first, second)
    seeds = [str(each.seeds) if each.seeds else "unknown" for each in both]
    kind = kind_of("Welch's t", " and ".join(seeds))
    fewest = min([each.seeds for each in both if each.seeds], default=0)
    error = float(np.hypot(first.error, second.error))
    if np.isnan(error):
        return Estimate(difference, np.nan, np.nan, kind, fewest)
    # In shares of the variance, so that no square of a tiny error underflows.
    shares = [(each.error / error) ** 2 if error else 0.0 for each in both]
    inverse = sum(share**2 / each.freedom for share, each in zip(shares, both, strict=True))
    levels, freedom = (level, 1 - 2 * (1 - level)), 1 / inverse if inverse > 0 else np.inf
    half, inner = (float(t_quantile(freedom, each)) * error for each in levels)
    ends = (difference - inner, difference + inner)
    return Estimate(difference, difference - half, difference + half, kind, fewest, ends)


@cache
def exact_ends(tries: int, alpha: float) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of 0 to all successes (Clopper and Pearson 1934)."""
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
    sample = np.asarray(values, dtype=np.float64)
    return _estimate(Samples("median", sample, sample), "by order")


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


# Bands

MEANS = {"arithmetic": "mean", "geometric": "geometric mean", "median": "median"}
BANDS = {
    "interval": "95 % interval",
    "sd": "one standard deviation",
    "quartiles": "the middle half",
    "seeds": "a thin line for each seed",
}


def mean_of_seeds(seeds: ArrayLike, mean: Mean) -> str:
    """Write the number of seeds of means: `one seed`, `mean of 3 seeds`, `mean of 1 to 4 seeds`."""
    least, greatest = int(np.min(seeds)), int(np.max(seeds))
    if greatest == 1:
        return "one seed"
    return f"{MEANS[mean]} of {'' if least == greatest else f'{least} to '}{greatest} seeds"


@dataclass(frozen=True)
class Averaging:
    """The statistic over seeds that a figure shows, and its band.

    Attributes:
        band: the band around it; `seeds` is a line for each seed in its place.
    """

    mean: Mean = "arithmetic"
    band: Band = "interval"

    def __post_init__(self) -> None:
        """Check that the band is one of the mean."""
        if (self.mean, self.band) == ("median", "sd"):
            raise BadValue("band", "sd", "a median takes interval, quartiles or seeds.")

    def summarise(
        self, values: Floats, bounds: tuple[float, float]
    ) -> tuple[Floats, Floats, Floats]:
        """Return the statistic over seeds, and both ends of its band.

        Ends stay within bounds. An interval of a mean is
        Student's t interval, of the logarithms for a geometric mean; of a median, by order
        statistics, and with fewer than six seeds from the least to the greatest.

        Args:
            values: of shape (positions, seeds); nan where there is none, and infinite where a seed
                misses, which medians count as beyond every number and means leave out.
            bounds: the least and the largest that the numbers can be; see `natural_bounds`.

        Returns:
            Three arrays of shape (positions,); nan where there is no number, and where an
            interval of one seed has no ends. A median is infinite where half of the seeds miss.
        """
        if self.mean == "geometric":
            if count := int((values <= 0).sum()):
                accepts = f"{count} of the numbers are not positive; take arithmetic or median."
                raise BadValue("mean", "geometric", accepts)
            values = np.log(values)
        missing = np.isnan(values) if self.mean == "median" else ~np.isfinite(values)
        counts = (~missing).sum(axis=1)
        summary = np.full((len(values), 3), np.nan)
        for count in np.unique(counts[counts > 0]).tolist():
            rows = counts == count
            samples = values[rows][~missing[rows]].reshape(-1, count)
            summary[rows] = np.column_stack(self._summarise_samples(samples))
        if self.mean == "geometric":
            summary = np.exp(np.clip(summary, -np.log(LARGEST), np.log(LARGEST)))
        middle, low, high = summary.T
        clipped = np.clip([low, high], *bounds)
        if self.mean == "median":  # an end among seeds that miss lies beyond every bound
            clipped = np.where(np.isinf([low, high]), [low, high], clipped)
        return middle, clipped[0], clipped[1]

    def _summarise_samples(self, samples: Floats) -> tuple[Floats, Floats, Floats]:
        """The statistic of each sample, and both ends of its band; shape (samples, seeds)."""
        seeds, is_median = samples.shape[1], self.mean == "median"
        found = Samples("median" if is_median else "mean", samples, samples)
        if self.band == "quartiles":
            return found.value, *_quartiles(samples)
        if is_median and seeds < FEWEST_FOR_MEDIAN:
            return found.value, found.low[:, 0], found.high[:, -1]
        if is_median or (self.band != "sd" and seeds > 1):
            return found.value, *found.ends(1 - 0.95)
        half = found.deviation if seeds > 1 else np.nan
        return found.value, found.value - half, found.value + half

    def label(self, largest: int) -> str:
        """Return the statistic and its band, for an axis: `mean, 95 % interval`."""
        band = "" if self.band == "seeds" else f", {self.band_in_words(largest)}"
        return f"{MEANS[self.mean]}{band}".replace("95 %", "95\N{NO-BREAK SPACE}%")

    def band_in_words(self, largest: int) -> str:
        """Return what the band is, of at most so many seeds."""
        if (self.mean, self.band) == ("median", "interval") and largest < FEWEST_FOR_MEDIAN:
            return "least to greatest"
        return BANDS[self.band]


def _quartiles(samples: Floats) -> tuple[Floats, Floats]:
    """The quartiles of samples; infinite where one lies among infinite values, or beside one."""
    shares = [0.25, 0.75]
    ends = np.quantile(np.minimum(samples, LARGEST), shares, axis=1)
    beyond = np.quantile(np.isinf(samples).astype(np.float64), shares, axis=1) > 0
    low, high = np.where(beyond, np.inf, ends)
    return low, high


def natural_bounds(values: Floats) -> tuple[float, float]:
    """Return the bounds of what the numbers of a column can be, as far as they show it.

    Numbers of which none is negative stay above 0; if none is above 1 either, as in a share, up to
    1. Others have no bounds.
    """
    finite = values[np.isfinite(values)]
    if finite.size == 0 or finite.min() < 0:
        return -np.inf, np.inf
    return 0.0, 1.0 if finite.max() <= 1 else np.inf


MEAN = Averaging()
"""The arithmetic mean with its 95 % interval."""


MEDIAN = Averaging("median")
"""The median with its 95 % interval."""
