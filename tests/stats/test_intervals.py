"""Intervals and bands agree with known ones, and hold what they are of as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from numpy import inf, nan
from scipy import stats

from overfit_cli.core.options import Band, Mean
from overfit_cli.stats import intervals
from overfit_cli.stats.intervals import Summary, mean_estimate, median_estimate, summarise

FREE = (-inf, inf)


@pytest.mark.parametrize("count", [2, 3, 10, 100])
def test_a_means_interval_is_students(count: int) -> None:
    values = np.random.default_rng(count).normal(3, 2, count)
    known = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    found = mean_estimate(values)
    assert found[:3] == pytest.approx((values.mean(), known.low, known.high))
    assert (found.kind, found.seeds) == (f"95 % t over {count} seeds", count)
    assert mean_estimate(values.tolist()) == found
    with intervals.set_level(0.975):
        wide = mean_estimate(values)
    assert wide.low < found.low < found.high < wide.high
    assert wide.kind == f"97.5 % t over {count} seeds"
    assert wide.inner == (found.low, found.high), "which misses twice as often"


def test_one_value_has_no_interval_and_equal_values_have_a_point() -> None:
    alone, equal = mean_estimate([0.5]), mean_estimate([0.5, 0.5, 0.5])
    assert (alone.value, alone.bounded, np.isnan(alone.low)) == (0.5, False, True)
    less_one = intervals.difference_of_means(summarise([2.0]), summarise([0.5, 1.5]))
    assert (less_one.value, less_one.bounded) == (1.0, False)
    points = intervals.difference_of_means(summarise([2.0, 2.0]), summarise([0.5, 0.5]))
    assert (equal[:3], points[:3]) == ((0.5, 0.5, 0.5), (1.5, 1.5, 1.5))


def test_a_medians_interval_is_that_of_the_table_of_order_statistics() -> None:
    """It stands values beyond the grid; too few values bound no median."""
    assert median_estimate(np.arange(1, 21))[:3] == (10.5, 6, 15)
    assert median_estimate(np.arange(1, 41))[:3] == (20.5, 14, 27)
    assert median_estimate([1, 2, 3, 4, 5, inf, inf, -inf, 6])[:3] == (4, 1, inf)
    assert median_estimate(range(intervals.FEWEST_FOR_MEDIAN)).bounded
    few = median_estimate(range(intervals.FEWEST_FOR_MEDIAN - 1))
    assert (few[:3], few.bounded) == ((2, -inf, inf), False)


def test_the_middle_of_an_even_number_is_between_two() -> None:
    samples: list[list[float]] = [[1, 9, 4, 2], [1, inf, inf], [1, 2, inf, inf], [inf, inf]]
    assert [intervals.middle(sample) for sample in samples] == [3, inf, inf, inf]


def test_a_mean_without_an_error_has_no_interval_and_exact_errors_a_normal_one() -> None:
    unknown = intervals.difference_of_means(Summary(2.0, nan, 3, 4), summarise([1.0, 2.0, 4.0]))
    assert not unknown.bounded
    exact = intervals.difference_of_means(Summary(2.0, 0.3, inf, 0), Summary(1.0, 0.4, inf, 0))
    assert exact.high == pytest.approx(1 + stats.norm.ppf(0.975) * 0.5)
    assert exact.kind == "95 % Welch's t over unknown and unknown seeds"
    tiny = intervals.difference_of_means(Summary(2e-90, 1e-95, 5, 6), Summary(1e-90, 1e-95, 5, 6))
    assert tiny.high == pytest.approx(1e-90 + stats.t.ppf(0.975, 10) * 2**0.5 * 1e-95)


# Values that are not known


def test_an_interval_contains_those_of_all_values_between_their_ends() -> None:
    """A value without an end leaves a mean unbounded and a median bounded below."""
    random = np.random.default_rng(3)
    least = random.normal(0, 1, 12)
    most = least + np.where(np.arange(12) < 3, random.random(12), 0.0)
    means, medians = (intervals.Samples(name, least, most) for name in ("mean", "median"))
    whole, inner, ends = means.ends(0.05), means.ends(0.1), medians.ends(0.05)
    for _ in range(300):
        values = random.uniform(least, most)
        mean, median = mean_estimate(values), median_estimate(values)
        assert whole[0] <= mean.low <= mean.high <= whole[1]
        assert ends[0] <= median.low <= median.high <= ends[1]
        assert mean.inner
        assert inner[0] <= mean.inner[0] <= mean.inner[1] <= inner[1]
    least = np.arange(1.0, 13.0)
    most = np.where(least > 9, inf, least)
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(intervals.Samples("mean", least, most).ends(0.05)).any()
    assert np.array(intervals.Samples("median", least, most).ends(0.05)).tolist() == [3.0, inf]


def test_near_copies_are_counted_once_and_short_decimals_always() -> None:
    assert intervals.count_distinct([0.123456, 0.123456 * (1 + 1e-9), 0.2345678]) == 2
    assert intervals.count_distinct([0.5, 0.5, 17.0, 17.0, inf, inf]) == 6
    assert intervals.count_distinct([1e-9, 2e-9, -3e-9]) == 3


# Bands of figures: those of many positions at once are those of each


def plain(values: np.ndarray, mean: Mean, band: Band) -> list[float]:
    """The statistic of one position and its band, with numpy and scipy alone."""
    sample = values[~np.isnan(values)] if mean == "median" else values[np.isfinite(values)]
    if not len(sample):
        return [nan] * 3
    centre = np.median(sample) if mean == "median" else sample.mean()
    if band == "quartiles":
        return [centre, *np.quantile(sample, [0.25, 0.75])]
    if mean == "median":
        estimate = median_estimate(sample)
        return [centre, *(estimate[1:3] if estimate.bounded else (sample.min(), sample.max()))]
    if len(sample) < 2:
        return [centre, nan, nan]
    half = stats.t.ppf(0.975, len(sample) - 1) * stats.sem(sample)
    half = sample.std(ddof=1) if band == "sd" else half
    return [centre, centre - half, centre + half]


@pytest.mark.parametrize(
    ("mean", "band"),
    [
        *(("arithmetic", band) for band in ("interval", "sd", "quartiles")),
        *(("median", band) for band in ("interval", "quartiles")),
    ],
)
def test_many_positions_have_the_statistics_of_each(mean: Mean, band: Band) -> None:
    """From none to nine seeds have a number, and some miss."""
    draws = np.random.default_rng(0)
    values = draws.normal(size=(60, 9))
    values[draws.random((60, 9)) < np.linspace(0, 1, 60)[:, None]] = nan
    if band != "quartiles":  # beside an infinite number numpy has none between two
        values[draws.random((60, 9)) < 0.1] = inf
    expected = np.array([plain(row, mean, band) for row in values])
    assert 30 < np.isfinite(expected[:, 0]).sum() < 60
    found = np.column_stack(intervals.Averaging(mean, band).summarise(values, FREE))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_quartile_beside_a_seed_that_misses_is_infinite() -> None:
    values = np.array([[1.0, 2.0, 3.0, 4.0, inf], [1.0, 2.0, 3.0, inf, inf]])
    found = np.stack(intervals.Averaging("median", "quartiles").summarise(values, FREE))
    np.testing.assert_array_equal(found, [[3, 3], [2, 2], [4, inf]])
