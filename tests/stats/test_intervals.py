"""Intervals agree with known ones, and hold what they are of as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from overfit_cli.stats.intervals import (
    FEWEST_FOR_MEDIAN,
    Summary,
    count_distinct,
    difference_of_means,
    exact_ends,
    mean_estimate,
    median_estimate,
    middle,
    order_ends,
    set_level,
    summarise,
)


@pytest.mark.parametrize("count", [2, 3, 10, 100])
def test_a_means_interval_is_students(count: int) -> None:
    values = np.random.default_rng(count).normal(3, 2, count)
    known = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = mean_estimate(values)
    assert found[:3] == pytest.approx((values.mean(), known.low, known.high))
    assert (found.kind, found.seeds) == (f"95 % t over {count} seeds", count)
    assert mean_estimate(values.tolist()) == found


def test_one_value_has_a_mean_and_no_interval() -> None:
    found = mean_estimate([0.5])
    assert found.value == 0.5
    assert math.isnan(found.low)
    assert not found.bounded


def test_a_means_interval_of_equal_values_is_a_point() -> None:
    assert mean_estimate([0.5, 0.5, 0.5])[:3] == (0.5, 0.5, 0.5)


def test_a_means_interval_covers_it_19_times_in_20() -> None:
    draws = np.random.default_rng(0).normal(1, 5, (1000, 4))
    ends = np.array([mean_estimate(sample)[1:3] for sample in draws])
    assert ((ends[:, 0] < 1) & (ends[:, 1] > 1)).mean() == pytest.approx(0.95, abs=0.02)


def test_a_higher_level_gives_a_wider_interval() -> None:
    narrow = mean_estimate([1, 2, 4])
    with set_level(0.99):
        wide = mean_estimate([1, 2, 4])
    assert wide.low < narrow.low < narrow.high < wide.high
    assert wide.kind == "99 % t over 3 seeds"


@pytest.mark.parametrize(("successes", "tries"), [(0, 5), (3, 7), (10, 10), (1, 1)])
def test_a_shares_interval_is_clopper_and_pearsons(successes: int, tries: int) -> None:
    known = stats.binomtest(successes, tries).proportion_ci(0.95, method="exact")
    count = np.array(successes)
    assert exact_ends(count, count, tries, 0.05) == pytest.approx((known.low, known.high))


@pytest.mark.parametrize("count", [6, 9, 20, 41])
def test_a_medians_interval_covers_it_at_least_19_times_in_20(count: int) -> None:
    draws = np.random.default_rng(count).standard_cauchy((2000, count))
    ends = np.array([median_estimate(sample)[1:3] for sample in draws])
    covered = ((ends[:, 0] <= 0) & (ends[:, 1] >= 0)).mean()
    assert 0.94 <= covered <= 0.99


def test_a_medians_interval_is_that_of_the_table_of_order_statistics() -> None:
    assert median_estimate(np.arange(1, 21))[:3] == (10.5, 6, 15)
    assert median_estimate(np.arange(1, 41))[:3] == (20.5, 14, 27)


def test_a_median_stands_values_beyond_the_grid() -> None:
    found = median_estimate([1, 2, 3, 4, 5, math.inf, math.inf, -math.inf, 6])
    assert found[:3] == (4, 1, math.inf)
    assert found.bounded


def test_too_few_values_bound_no_median() -> None:
    found = median_estimate(range(FEWEST_FOR_MEDIAN - 1))
    assert found[:3] == (2, -math.inf, math.inf)
    assert not found.bounded
    assert median_estimate(range(FEWEST_FOR_MEDIAN)).bounded


def test_the_middle_of_an_even_number_is_between_two() -> None:
    assert middle([1, 9, 4, 2]) == 3
    assert middle([1, math.inf, math.inf]) == math.inf
    assert middle([1, 2, math.inf, math.inf]) == math.inf
    assert middle([math.inf, math.inf]) == math.inf


@pytest.mark.parametrize("counts", [(2, 2), (3, 8), (40, 5)])
def test_the_interval_of_a_difference_is_welchs(counts: tuple[int, int]) -> None:
    draws = np.random.default_rng(sum(counts))
    values, less = draws.normal(3, 2, counts[0]), draws.normal(1, 0.5, counts[1])
    test = stats.ttest_ind(values, less, equal_var=False)
    known, (first, second) = test.confidence_interval(0.95), map(summarise, (values, less))
    found = difference_of_means(first, second)
    assert found[:3] == pytest.approx((values.mean() - less.mean(), known.low, known.high))
    assert found.kind == f"95 % Welch's t over {counts[0]} and {counts[1]} seeds"
    assert found.value / np.hypot(first.error, second.error) == pytest.approx(test.statistic)


def test_a_mean_without_an_error_has_no_interval_and_exact_errors_a_normal_one() -> None:
    unknown = difference_of_means(Summary(2.0, np.nan, 3, 4), summarise([1.0, 2.0, 4.0]))
    assert not unknown.bounded
    exact = difference_of_means(Summary(2.0, 0.3, np.inf, 0), Summary(1.0, 0.4, np.inf, 0))
    assert exact.high == pytest.approx(1 + stats.norm.ppf(0.975) * 0.5)
    assert exact.kind == "95 % Welch's t over unknown and unknown seeds"
    tiny = difference_of_means(Summary(2e-90, 1e-95, 5, 6), Summary(1e-90, 1e-95, 5, 6))
    assert tiny.high == pytest.approx(1e-90 + stats.t.ppf(0.975, 10) * 2**0.5 * 1e-95)


def test_a_difference_from_one_value_has_no_interval_and_of_equal_values_a_point() -> None:
    of_one = difference_of_means(summarise([2.0]), summarise([0.5, 1.5]))
    assert of_one.value == 1.0
    assert not of_one.bounded
    equal = difference_of_means(summarise([2.0, 2.0]), summarise([0.5, 0.5]))
    assert equal[:3] == (1.5, 1.5, 1.5)


# Values that are not known


def test_an_interval_contains_those_of_all_values_between_their_ends() -> None:
    random = np.random.default_rng(3)
    least = random.normal(0, 1, 12)
    most = least + np.where(np.arange(12) < 3, random.random(12), 0.0)
    whole, ends = mean_estimate(least, up_to=most), order_ends(np.sort(least), np.sort(most), 0.05)
    for _ in range(300):
        values = random.uniform(least, most)
        mean, median = mean_estimate(values), median_estimate(values)
        assert whole.low <= mean.low <= mean.high <= whole.high
        assert ends[0] <= median.low <= median.high <= ends[1]
        assert whole.inner is not None
        assert mean.inner is not None
        assert whole.inner[0] <= mean.inner[0] <= mean.inner[1] <= whole.inner[1]
    assert mean_estimate(least, up_to=least) == mean_estimate(least)


def test_a_value_without_an_end_leaves_a_mean_unbounded_and_a_median_bounded_below() -> None:
    least = np.arange(1.0, 13.0)
    most = np.where(least > 9, math.inf, least)
    assert not mean_estimate(least, up_to=most).bounded
    assert tuple(map(float, order_ends(least, most, 0.05))) == (3.0, math.inf)


def test_near_copies_are_counted_once_and_short_decimals_always() -> None:
    assert count_distinct([0.123456, 0.123456 * (1 + 1e-9), 0.2345678]) == 2
    assert count_distinct([0.5, 0.5, 17.0, 17.0, math.inf, math.inf]) == 6
    assert count_distinct([1e-9, 2e-9, -3e-9]) == 3


def test_the_inner_interval_misses_twice_as_often() -> None:
    values = np.random.default_rng(1).normal(size=40)
    wide = mean_estimate(values)
    with set_level(0.975):
        assert mean_estimate(values).inner == (wide.low, wide.high)
