from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from overfit_cli.stats.boundaries import fit_power_law
from overfit_cli.stats.crossings import crossing, crossings, medians_by_row, share_above
from tests.fake_study import fail, fake_cells

X = np.geomspace(0.1, 10, 21)


def test_a_power_law_crosses_where_algebra_says() -> None:
    assert crossing(X, 3 * X**-1.5, 0.7) == pytest.approx((3 / 0.7) ** (1 / 1.5))


def test_a_rising_curve_crosses_too() -> None:
    assert crossing(X, 3 * X**1.5, 0.7) == pytest.approx((0.7 / 3) ** (1 / 1.5))


def test_values_that_are_not_positive_are_interpolated_as_they_are() -> None:
    assert crossing(X, -np.log(X), -1.0) == pytest.approx(math.e)


def test_an_x_that_is_not_positive_is_interpolated_linearly() -> None:
    x = np.array([0.0, 1.0, 2.0])
    assert crossing(x, np.array([1.0, 1.0, -1.0]), 0.0) == pytest.approx(1.5)


def test_noise_gives_one_crossing_close_to_the_true_one() -> None:
    draws = np.random.default_rng(0)
    value = 3 * X**-1.5 * np.exp(0.3 * draws.standard_normal(X.size))
    assert crossing(X, value, 0.7) == pytest.approx((3 / 0.7) ** (1 / 1.5), rel=0.25)


def test_a_single_outlier_is_no_crossing_of_its_own() -> None:
    value = 1 / X
    value[3] = 0.5  # below the threshold, far before the true crossing
    assert crossing(X, value, 0.7) == pytest.approx(1 / 0.7)


@pytest.mark.parametrize("threshold", [100.0, 0.001, -5.0])
def test_a_curve_on_one_side_never_crosses(threshold: float) -> None:
    assert math.isnan(crossing(X, 1 / X, threshold))


@pytest.mark.parametrize("value", [[], [1.0], [1.0, np.nan], [2.0, 2.0, 2.0]])
def test_too_little_to_see_a_crossing_is_none(value: list[float]) -> None:
    assert math.isnan(crossing(X[: len(value)], np.array(value), 2.0))


def test_one_scale_serves_all_curves() -> None:
    """A share that reaches 1 on some seed crosses where it would if it came near 1."""
    rows = [
        (x, 1, seed, v) for seed, end in enumerate((0.999, 1.0)) for x, v in ((1, 0.001), (10, end))
    ]
    cells = pd.DataFrame(rows, columns=["x", "y", "seed", "share"]).assign(status="done")
    found = crossings(cells, "x", "y", "share", 0.1)["crossing"]
    assert found[0] == pytest.approx(found[1], rel=1e-2)


def test_a_curve_that_stays_at_the_threshold_crosses_in_the_middle() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0])
    for value in (np.array([1.0, 0.5, 0.5, 0.0]), np.array([0.0, 0.5, 0.5, 1.0])):
        assert crossing(x, value, 0.5) == pytest.approx(1.5)
    rows = [(float(at), 1, 0, v) for at, v in zip(x, (1.0, 0.5, 0.5, 0.0), strict=True)]
    cells = pd.DataFrame(rows, columns=["x", "y", "seed", "v"]).assign(status="done")
    shares = share_above(cells, "x", "y", "v", 0.5, np.array([0.9, 1.5, 2.1]))
    assert shares[1.0].tolist() == [1.0, 0.5, 0.0]


def test_points_that_are_not_finite_are_left_out() -> None:
    value = 1 / X
    value[[2, 15]] = np.nan, np.inf
    assert crossing(X, value, 0.7) == pytest.approx(1 / 0.7)


def test_every_y_and_seed_has_a_crossing_or_a_side() -> None:
    cells = fake_cells([1, 10, 40], np.geomspace(4, 20, 30).tolist(), seeds=2)
    found = crossings(cells.sample(frac=1, random_state=0), "snr", "n", "test_loss", 0.2)
    assert found.columns.tolist() == ["n", "seed", "crossing", "side"]
    assert found["n"].tolist() == [1, 1, 10, 10, 40, 40]
    assert found["side"].tolist() == ["above"] * 2 + ["crosses"] * 4
    assert found["crossing"].tolist()[2:] == pytest.approx([10, 10, 5, 5], rel=1e-3)


def test_failed_cells_are_not_used_and_few_points_are_unknown() -> None:
    cells = fake_cells([10, 20], [1.0, 2.0, 4.0, 8.0, 16.0], seeds=1)
    cells = fail(cells, (cells["n"] == 20) & (cells["snr"] > 1))
    found = crossings(cells, "snr", "n", "test_loss", 0.2)
    assert found["side"].tolist() == ["crosses", "unknown"]


def test_a_curve_that_stays_below_is_said_to() -> None:
    found = crossings(fake_cells([20], [50.0, 90.0], seeds=1), "snr", "n", "test_loss", 0.2)
    assert found["side"].tolist() == ["below"]


def test_whole_number_columns_cross_as_well() -> None:
    cells = fake_cells([4], [1.0, 2.0, 3.0], seeds=1).assign(steps=[30, 20, 10])
    found = crossings(cells, "snr", "n", "steps", 20.0)
    assert found["crossing"].tolist() == pytest.approx([2.0])


def test_no_cells_give_an_empty_table() -> None:
    found = crossings(fake_cells([4], [1.0]).iloc[:0], "snr", "n", "test_loss", 0.2)
    assert found.empty
    assert medians_by_row(found, "n").empty


def test_a_row_has_the_median_of_its_curves_and_its_interval_by_order() -> None:
    values = [9.0, 10.0, 12.0, 11.0, 8.0, 7.0, np.inf]
    sides = ["crosses"] * 6 + ["above"]
    table = pd.DataFrame({"n": 5, "seed": range(7), "crossing": values, "side": sides})
    row = medians_by_row(table, "n").iloc[0]
    assert row["crossing"] == pytest.approx(10)
    assert (row["low"], row["high"]) == pytest.approx((7, np.inf))
    assert (row["seeds"], row["never"]) == (7, 1)


def test_a_row_of_few_seeds_has_the_least_and_the_greatest() -> None:
    table = pd.DataFrame({"n": 5, "seed": range(3), "crossing": [9.0, 16.0, 4.0]})
    row = medians_by_row(table.assign(side="crosses"), "n").iloc[0]
    assert (row["crossing"], row["low"], row["high"]) == pytest.approx((9, 4, 16))


def test_a_row_may_lie_beyond_the_grid_or_be_unknown() -> None:
    sides = ["crosses", "below", "above", "unknown"]
    table = pd.DataFrame({"n": [1, 2, 3, 4], "seed": 0, "crossing": [7.0, -np.inf, np.inf, np.nan]})
    rows = medians_by_row(table.assign(side=sides), "n")
    assert rows["crossing"].tolist()[:3] == pytest.approx([7, 0, np.inf])
    assert np.isnan(rows["crossing"].tolist()[3])
    assert rows["seeds"].tolist() == [1, 1, 1, 0]
    assert rows["never"].tolist() == [0, 1, 1, 0]


def mirrored_shares() -> pd.DataFrame:
    """The error 1 / (1 + (x / c)⁴), where c is near 10 / √y, and the accuracy."""
    draws, grid = np.random.default_rng(3), np.geomspace(0.5, 4, 15)
    curves = []
    for y in (5, 10, 15, 20, 30, 40):
        for seed, noise in enumerate(np.exp(0.2 * draws.standard_normal(10))):
            error = 1 / (1 + (grid * noise * np.sqrt(y) / 10) ** 4)
            row = {"y": y, "seed": seed, "x": grid, "error": error, "accuracy": 1 - error}
            curves.append(pd.DataFrame(row))
    return pd.concat(curves, ignore_index=True).assign(status="done")


@pytest.mark.parametrize("threshold", [0.5, 0.3, 0.8])
def test_a_share_and_its_complement_have_the_same_crossings_and_ends(threshold: float) -> None:
    shares = mirrored_shares()
    error = crossings(shares, "x", "y", "error", threshold)
    accuracy = crossings(shares, "x", "y", "accuracy", 1 - threshold)
    np.testing.assert_allclose(accuracy["crossing"], error["crossing"])
    assert np.isinf(error["crossing"]).any()
    mirrored = error["side"].replace({"above": "below", "below": "above"})
    assert accuracy["side"].tolist() == mirrored.tolist()
    laws = [fit_power_law(table, "y") for table in (error, accuracy)]
    assert laws[0] is not None
    assert laws[1] is not None
    assert laws[1].exponent[:3] == pytest.approx(laws[0].exponent[:3])
    assert laws[1].constant[:3] == pytest.approx(laws[0].constant[:3])


def test_a_rising_curve_that_stays_below_crosses_beyond_the_grid() -> None:
    cells = pd.DataFrame({"y": np.repeat([1, 2, 3], 21), "x": np.tile(X, 3), "seed": 0})
    cells["value"] = cells["x"] * 10.0 ** (2 * cells["y"] - 4)
    table = crossings(cells.assign(status="done"), "x", "y", "value", 5.0)
    assert table["side"].tolist() == ["below", "crosses", "above"]
    assert table["crossing"].tolist() == pytest.approx([np.inf, 5.0, -np.inf])


def test_without_a_crossing_the_trend_of_all_curves_tells_the_direction() -> None:
    cells = pd.DataFrame({"y": 1, "x": X, "seed": 0, "status": "done", "value": X})
    assert crossings(cells, "x", "y", "value", 50.0)["crossing"].tolist() == [np.inf]
    falling = cells.assign(value=1 / X)
    assert crossings(falling, "x", "y", "value", 50.0)["crossing"].tolist() == [-np.inf]
