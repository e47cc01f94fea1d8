"""Intervals for means: by the bootstrap where no formula fits, such as for rank correlations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


class Estimate(NamedTuple):
    """A number, and the ends of its interval."""

    value: float
    low: float
    high: float


def bootstrap_mean(values: ArrayLike, *, repeats: int = 2000, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of the mean of a table of values.

    Rows and columns are resampled each for themselves, as whole clusters: the values of one seed
    share its draws, and those of one line share the line. It stays within the range of the values,
    so that a mean correlation's interval stays in ±1.

    Args:
        values: shape (lines, seeds), finite, at least one of each.
        repeats: how many bootstrap draws.
        seed: of the bootstrap.
    """
    table = np.asarray(values, dtype=np.float64)
    draws = np.random.default_rng(seed)
    lines, seeds = (
        draws.multinomial(count, np.full(count, 1 / count), size=repeats) / count
        for count in table.shape
    )
    low, high = np.percentile(np.einsum("rl,ls,rs->r", lines, table, seeds), [2.5, 97.5])
    return float(low), float(high)


def mean_interval(values: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Return the t interval of the mean of independent values.

    Args:
        values: shape (values,), finite, at least two of them.
        level: how often such intervals hold the mean.
    """
    sample = np.asarray(values, dtype=np.float64)
    widths = stats.t.ppf((1 + level) / 2, len(sample) - 1)
    half = float(widths * sample.std(ddof=1) / np.sqrt(len(sample)))
    mean = float(sample.mean())
    return mean - half, mean + half


def mean_estimate(values: ArrayLike, level: float = 0.95) -> Estimate:
    """Return the mean of independent values, with its t interval; see `mean_interval`."""
    return Estimate(
        float(np.mean(np.asarray(values, dtype=np.float64))), *mean_interval(values, level)
    )


def variance_ratio_interval(one: ArrayLike, other: ArrayLike) -> tuple[float, float]:
    """Return the 95 % interval of the variance of `one` over that of `other`, for pairs.

    Pitman's and Morgan's (1939), for pairs taken as normal: two variances are equal where sums
    and differences are uncorrelated, so what pairs have in common doesn't widen it.

    Args:
        one, other: shapes (pairs,), finite, at least three, and not all equal.
    """
    first, second = (np.asarray(values, dtype=np.float64) for values in (one, other))
    ratio = float(first.var(ddof=1) / second.var(ddof=1))
    freedom = len(first) - 2
    apart = 1 - float(np.corrcoef(first, second)[0, 1]) ** 2
    spread = 1 + 2 * apart * float(stats.t.ppf(0.975, freedom)) ** 2 / freedom
    root = float(np.sqrt(spread**2 - 1))
    return ratio * (spread - root), ratio * (spread + root)
