"""Statistics over seeds and their bands: those of many positions at once are those of each."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from overfit_cli.core.values import Band, Mean
from overfit_cli.stats.bands import Averaging
from overfit_cli.stats.intervals import median_estimate

FREE = (-np.inf, np.inf)


def plain(values: np.ndarray, mean: Mean, band: Band) -> list[float]:
    """The statistic of one position and its band, with numpy and scipy alone."""
    sample = values[~np.isnan(values)] if mean == "median" else values[np.isfinite(values)]
    if not len(sample):
        return [np.nan] * 3
    middle = np.median(sample) if mean == "median" else sample.mean()
    if band == "quartiles":
        return [middle, *np.quantile(sample, [0.25, 0.75])]
    if mean == "median":
        estimate = median_estimate(sample)
        ends = estimate[1:3] if estimate.bounded else (sample.min(), sample.max())
        return [middle, *ends]
    if len(sample) < 2:
        return [middle, np.nan, np.nan]
    error = scipy.stats.sem(sample)
    half = scipy.stats.t.ppf(0.975, len(sample) - 1) * error
    half = sample.std(ddof=1) if band == "sd" else half
    return [middle, middle - half, middle + half]


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
    values[draws.random((60, 9)) < np.linspace(0, 1, 60)[:, None]] = np.nan
    if band != "quartiles":  # beside an infinite number numpy has none between two
        values[draws.random((60, 9)) < 0.1] = np.inf
    expected = np.array([plain(row, mean, band) for row in values])
    with_number = np.isfinite(expected[:, 0]).sum()
    assert 30 < with_number < 60
    np.testing.assert_allclose(
        np.column_stack(Averaging(mean, band).summarise(values, FREE)), expected, rtol=1e-12
    )


def test_a_quartile_beside_a_seed_that_misses_is_infinite() -> None:
    values = np.array([[1.0, 2.0, 3.0, 4.0, np.inf], [1.0, 2.0, 3.0, np.inf, np.inf]])
    middle, low, high = Averaging("median", "quartiles").summarise(values, FREE)
    np.testing.assert_array_equal(middle, [3, 3])
    np.testing.assert_array_equal(low, [2, 2])
    np.testing.assert_array_equal(high, [4, np.inf])
