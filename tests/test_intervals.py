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


def test_a_ratio_of_variances_has_the_f_tables_interval() -> None:
    """F at 0.975 with 4 and 4 degrees of freedom is 9.6045; with 4 and 9, 4.7181."""
    five = np.arange(5.0)
    low, high = variance_ratio_interval(2 * five, five)
    assert (low, high) == pytest.approx((4 / 9.6045, 4 * 9.6045), rel=1e-4)
    low, _ = variance_ratio_interval(five, np.arange(10.0))
    assert low == pytest.approx(five.var(ddof=1) / np.arange(10.0).var(ddof=1) / 4.7181, rel=1e-4)
    low, high = variance_ratio_interval(five, 2 * five)
    assert (low, high) == pytest.approx((1 / 4 / 9.6045, 9.6045 / 4), rel=1e-4)


def test_a_ratio_of_variances_is_covered_19_times_in_20() -> None:
    draws = np.random.default_rng(0)
    pairs = zip(draws.normal(0, 3, (1000, 5)), draws.normal(7, 1, (1000, 8)), strict=True)
    ends = np.array([variance_ratio_interval(one, other) for one, other in pairs])
    assert ((ends[:, 0] < 9) & (ends[:, 1] > 9)).mean() == pytest.approx(0.95, abs=0.02)
