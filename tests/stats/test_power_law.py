"""Power laws through crossings, whose truth is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from overfit_cli.stats.boundaries import PowerLaw, fit_power_law


def crossings_of(
    ns: range, seeds: int, *, noise: float = 0.0, seed_noise: float = 0.0, draw: int = 0
) -> pd.DataFrame:
    """Make crossings of n · x² = 1000, log-normal noise on each and on each seed."""
    draws = np.random.default_rng(draw)
    shifts = seed_noise * draws.standard_normal(seeds)
    rows = [
        (n, s, np.sqrt(1000 / n) * np.exp(shifts[s] + noise * draws.standard_normal()))
        for n in ns
        for s in range(seeds)
    ]
    return pd.DataFrame(rows, columns=["n", "seed", "crossing"])


def law(table: pd.DataFrame, **options: int) -> PowerLaw:
    fit = fit_power_law(table, "n", **options)
    assert fit is not None
    return fit


def test_an_exact_law_is_found_exactly() -> None:
    fit = law(crossings_of(range(2, 21), 3))
    assert fit.exponent[:3] == pytest.approx((2, 2, 2))
    assert fit.constant[:3] == pytest.approx((1000,) * 3)
    assert fit.exponent.kind == "95 % bootstrap over 3 seeds"
    assert (fit.rows, fit.left_out, fit.exponent.seeds) == (19, 0, 3)


def test_the_fit_is_least_squares_of_the_medians_of_log_x_on_log_y() -> None:
    table = crossings_of(range(2, 21), 9, noise=0.2).drop(index=[3, 50, 77])
    medians = table.groupby("n")["crossing"].agg(lambda each: np.median(np.log(each)))
    slope, intercept = np.polyfit(np.log(medians.index), medians, 1)
    fit = law(table, repeats=10)
    assert fit.exponent.value == pytest.approx(-1 / slope)
    assert fit.constant.value == pytest.approx(np.exp(-intercept / slope))


def test_the_bootstrap_resamples_seeds_and_nothing_else() -> None:
    table = crossings_of(range(2, 12), 7, noise=0.1, seed_noise=0.1)
    fit = law(table, repeats=400, seed=1)
    draws, slow = np.random.default_rng(5), []
    by_seed = table.pivot(index="n", columns="seed", values="crossing")
    for _ in range(400):
        medians = by_seed[draws.choice(7, 7)].apply(np.log).median(axis=1)
        slow.append(-1 / np.polyfit(np.log(medians.index), medians, 1)[0])
    low, high = np.percentile(slow, [2.5, 97.5])
    assert fit == law(table, repeats=400, seed=1) != law(table, repeats=400, seed=2)
    assert fit.exponent.low == pytest.approx(low, abs=0.15 * (high - low))
    assert fit.exponent.high == pytest.approx(high, abs=0.15 * (high - low))


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "seed_noise"), [(0.05, 0.0), (0.02, 0.05), (0.06, 0.2)])
def test_the_intervals_cover_the_truth_at_least_as_often_as_they_say(
    noise: float, seed_noise: float
) -> None:
    outside = {"p": 0, "c": 0}
    for draw in range(200):
        table = crossings_of(range(2, 21), 10, noise=noise, seed_noise=seed_noise, draw=draw)
        fit = law(table, repeats=200)
        outside["p"] += not fit.exponent.low <= 2 <= fit.exponent.high
        outside["c"] += not fit.constant.low <= 1000 <= fit.constant.high
    assert all(count <= 0.1 * 200 for count in outside.values()), outside


def test_a_curve_that_crosses_beyond_the_grid_counts_as_that() -> None:
    """Left out, such curves would bend the law towards the grid; their rows would be lost."""
    table = crossings_of(range(2, 21), 41, noise=0.2)
    cut = table.assign(crossing=table["crossing"].where(table["crossing"] <= 12, np.inf))
    fit = law(cut, repeats=10)
    medians = table.groupby("n")["crossing"].median()
    assert fit.left_out == (medians > 12).sum() >= 3
    assert fit.rows == 19 - fit.left_out
    assert fit.exponent.value == pytest.approx(2, abs=0.15)
    crossed = np.isfinite(cut["crossing"]).groupby(cut["n"]).all().sum()
    assert fit.rows > crossed, "rows in which some seeds never cross are used"


def test_curves_that_are_below_throughout_cross_before_the_grid() -> None:
    """A seed without points leaves the others in."""
    table = crossings_of(range(2, 21), 6)
    table.loc[(table["n"] == 20) & (table["seed"] < 2), "crossing"] = -np.inf
    table.loc[(table["n"] == 2) & (table["seed"] < 2), "crossing"] = np.inf
    table.loc[table["seed"] == 5, "crossing"] = np.nan
    fit = law(table, repeats=10)
    assert fit.exponent.value == pytest.approx(2)
    assert (fit.rows, fit.left_out, fit.exponent.seeds) == (19, 0, 5)


def test_fewer_than_three_values_of_y_or_a_crossing_that_does_not_move_are_no_law() -> None:
    few = [crossings_of(range(2, end), 5) for end in (2, 3, 4)]
    for table in (*few, crossings_of(range(2, 9), 2).assign(crossing=3.0)):
        assert fit_power_law(table, "n") is None


def test_a_boundary_that_hardly_moves_has_an_exponent_without_upper_end() -> None:
    """Slopes of both signs fit it: p runs through infinity. It is far from 2 all the same."""
    table = crossings_of(range(2, 21), 9, noise=0.02)
    flat = table.assign(crossing=table["crossing"] * np.sqrt(table["n"]))
    fit = law(flat)
    assert fit.exponent.low > 10
    assert fit.exponent.low <= fit.exponent.value <= fit.exponent.high == np.inf
    rising = law(flat.assign(crossing=flat["crossing"] * flat["n"]))
    assert -1.1 < rising.exponent.low < -1 < rising.exponent.high < -0.9
