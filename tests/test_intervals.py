"""Intervals agree with known ones, and cover what they are of about as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from overfit_cli.analysis.intervals import (
    bootstrap_mean,
    mean_interval,
    variance_ratio_interval,
)


def test_it_agrees_with_the_normal_interval_on_many_independent_lines() -> None:
    values = np.random.default_rng(0).normal(3, 2, size=(400, 1))
    half = 1.96 * values.std(ddof=1) / np.sqrt(400)
    low, high = bootstrap_mean(values)
    assert low == pytest.approx(values.mean() - half, abs=0.02)
    assert high == pytest.approx(values.mean() + half, abs=0.02)


def test_it_counts_what_a_seed_shares_once_a_seed() -> None:
    """Many lines that all repeat their seeds' values say no more than one line."""
    by_seed = np.random.default_rng(1).normal(size=(1, 8))
    once, often = bootstrap_mean(by_seed), bootstrap_mean(np.repeat(by_seed, 50, axis=0))
    assert once == pytest.approx(often, abs=0.05)


def test_it_stays_within_the_values() -> None:
    low, high = bootstrap_mean(np.array([[-1, -1], [-1, -0.9]]))
    assert -1 <= low <= high <= -0.9
    assert bootstrap_mean([[0.5]]) == (0.5, 0.5)


@pytest.mark.parametrize("count", [2, 3, 10, 100])
def test_a_means_interval_is_students(count: int) -> None:
    values = np.random.default_rng(count).normal(3, 2, count)
    known = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert mean_interval(values) == pytest.approx((known.low, known.high))
    assert mean_interval(values.tolist()) == mean_interval(values)


def test_a_means_interval_of_equal_values_is_a_point() -> None:
    assert mean_interval([0.5, 0.5, 0.5]) == (0.5, 0.5)


def test_a_means_interval_covers_it_19_times_in_20() -> None:
    draws = np.random.default_rng(0).normal(1, 5, (1000, 4))
    ends = np.array([mean_interval(sample) for sample in draws])
    assert ((ends[:, 0] < 1) & (ends[:, 1] > 1)).mean() == pytest.approx(0.95, abs=0.02)


def test_a_ratio_of_variances_excludes_one_where_sums_and_differences_correlate() -> None:
    """Pitman and Morgan: at the ends of the interval that correlation's t is the 97.5 % point."""
    draws = np.random.default_rng(3)
    one, other = draws.normal(0, 2, 12), draws.normal(0, 1, 12)
    for end in variance_ratio_interval(one, other):
        scaled = other * np.sqrt(end)
        correlation = np.corrcoef(one + scaled, one - scaled)[0, 1]
        t = correlation * np.sqrt(10 / (1 - correlation**2))
        assert abs(t) == pytest.approx(2.2281, rel=1e-4)  # the table's, for 10 degrees of freedom
    low, high = variance_ratio_interval(other, one)
    assert (1 / high, 1 / low) == pytest.approx(variance_ratio_interval(one, other))


@pytest.mark.parametrize("shared", [0.0, 2.0])
def test_a_ratio_of_variances_is_covered_19_times_in_20(shared: float) -> None:
    draws = np.random.default_rng(0)
    ends = []
    for _ in range(1000):
        common = shared * draws.normal(size=6)
        pair = common + draws.normal(size=6), 7 + common + draws.normal(size=6)
        ends.append(variance_ratio_interval(3 * pair[0], pair[1]))
    low, high = np.array(ends).T
    assert ((low < 9) & (high > 9)).mean() == pytest.approx(0.95, abs=0.02)
