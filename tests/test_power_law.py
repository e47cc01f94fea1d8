from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest

from overfit_cli.analysis.power_law import fit_power_law


def crossings_of(
    ns: range, seeds: int, *, noise: float = 0.0, seed_noise: float = 0.0, draw: int = 0
) -> pd.DataFrame:
    """Make crossings of n · x² = 1000, log-normal noise on each and on each seed."""
    draws = np.random.default_rng(draw)
    shifts = seed_noise * draws.standard_normal(seeds)
    rows = [
        (n, s, np.sqrt(1000 / n) * np.exp(shifts[s] + noise * draws.standard_normal()), "crosses")
        for n in ns
        for s in range(seeds)
    ]
    return pd.DataFrame(rows, columns=["n", "seed", "crossing", "side"])


def test_an_exact_law_is_found_exactly() -> None:
    fit = fit_power_law(crossings_of(range(2, 21), 3), "n")
    assert fit is not None
    assert (fit.exponent, fit.exponent_low, fit.exponent_high) == pytest.approx((2, 2, 2))
    assert (fit.constant, fit.constant_low, fit.constant_high) == pytest.approx((1000,) * 3)
    assert (fit.rows, fit.seeds) == (19, 3)


def test_the_fit_is_least_squares_of_log_x_on_log_y() -> None:
    table = crossings_of(range(2, 21), 10, noise=0.2).drop(index=[3, 50, 77])
    slope, intercept = np.polyfit(np.log(table["n"]), np.log(table["crossing"]), 1)
    fit = fit_power_law(table, "n", repeats=10)
    assert fit is not None
    assert fit.exponent == pytest.approx(-1 / slope)
    assert fit.constant == pytest.approx(np.exp(-intercept / slope))


def test_the_bootstrap_resamples_seeds_and_rows_as_clusters() -> None:
    table = crossings_of(range(2, 12), 4, noise=0.1)
    fit = fit_power_law(table, "n", repeats=400, seed=1)
    assert fit is not None
    draws, slow = np.random.default_rng(5), []
    for _ in range(400):
        rows = pd.DataFrame({"n": draws.choice(range(2, 12), 10)})
        seeds = pd.DataFrame({"seed": draws.choice(4, 4)})
        drawn = rows.merge(seeds, how="cross").merge(table, on=["n", "seed"])
        slow.append(-1 / np.polyfit(np.log(drawn["n"]), np.log(drawn["crossing"]), 1)[0])
    low, high = np.percentile(slow, [2.5, 97.5])
    assert fit.exponent_low == pytest.approx(low, abs=0.15 * (high - low))
    assert fit.exponent_high == pytest.approx(high, abs=0.15 * (high - low))


@pytest.mark.parametrize(("noise", "seed_noise"), [(0.05, 0.0), (0.02, 0.05)])
def test_the_intervals_cover_the_truth_about_as_often_as_they_say(
    noise: float, seed_noise: float
) -> None:
    inside = {"p": 0, "c": 0}
    for draw in range(120):
        table = crossings_of(range(2, 21), 10, noise=noise, seed_noise=seed_noise, draw=draw)
        fit = fit_power_law(table, "n", repeats=200)
        assert fit is not None
        inside["p"] += fit.exponent_low <= 2 <= fit.exponent_high
        inside["c"] += fit.constant_low <= 1000 <= fit.constant_high
    assert all(count >= 0.85 * 120 for count in inside.values()), inside


def test_the_same_seed_gives_the_same_interval_and_it_is_quick() -> None:
    table = crossings_of(range(2, 21), 10, noise=0.1)
    start = time.perf_counter()
    assert fit_power_law(table, "n") == fit_power_law(table, "n")
    assert time.perf_counter() - start < 1
    assert fit_power_law(table, "n") != fit_power_law(table, "n", seed=1)


def test_values_of_y_at_which_a_seed_never_crosses_are_left_out() -> None:
    table = crossings_of(range(2, 21), 3)
    table.loc[table["n"] < 5, "crossing"] = 15.0  # what a grid that ends at 16 would show
    table.loc[(table["n"] < 5) & (table["seed"] == 0), ["crossing", "side"]] = np.nan, "above"
    fit = fit_power_law(table, "n", repeats=10)
    assert fit is not None
    assert fit.exponent == pytest.approx(2)
    assert fit.rows == 16


def test_a_seed_without_points_leaves_the_others_in() -> None:
    table = crossings_of(range(2, 21), 3)
    table.loc[table["seed"] == 0, ["crossing", "side"]] = np.nan, "unknown"
    fit = fit_power_law(table, "n", repeats=10)
    assert fit is not None
    assert (fit.rows, fit.seeds) == (19, 2)


@pytest.mark.parametrize("ns", [range(2, 2), range(2, 3), range(2, 4)])
def test_fewer_than_three_values_of_y_are_no_law(ns: range) -> None:
    assert fit_power_law(crossings_of(ns, 5), "n") is None


def test_a_crossing_that_does_not_move_is_no_law() -> None:
    assert fit_power_law(crossings_of(range(2, 9), 2).assign(crossing=3.0), "n") is None


def test_a_bootstrap_of_three_rows_and_one_seed_still_ends() -> None:
    fit = fit_power_law(crossings_of(range(2, 5), 1, noise=0.3), "n")
    assert fit is not None
    assert fit.exponent_low <= fit.exponent_high
