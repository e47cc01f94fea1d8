"""The search for a boundary finds that of a full grid, on made-up worlds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from overfit_cli.stats.boundaries import crossings, medians_by_row
from overfit_cli.stats.boundary_search import CrossingEstimate, Point, Search

NS = [float(n) for n in range(2, 21)]
COARSE = np.linspace(0.16, 15.6, 8).tolist()
FINE = np.linspace(0.16, 15.6, 100)
TOLERANCE = 0.156
Value = Callable[[float, int, float], float]
Found = tuple[pd.DataFrame, list[CrossingEstimate]]


def search(seeds: int = 5, tolerance: float = TOLERANCE, rows: int = len(NS)) -> Search:
    return Search(NS[:rows], COARSE, list(range(seeds)), 0.2, tolerance)


def world(repetition: int, *, spread: float = 0.1, noise: float = 0.0) -> Value:
    """A test loss that falls through 0.2 near n · x² = 1000, elsewhere for each seed and n."""
    draws = np.random.default_rng(repetition)
    by_seed = draws.normal(0, spread, 40)
    by_both = draws.normal(0, spread, (40, 30))

    def value(n: float, seed: int, x: float) -> float:
        at = 0.5 * math.log(1000 / n) + by_seed[seed] + by_both[seed, int(n)]
        wobble = noise * math.sin(97 * x + seed + n)
        return 0.69 / (1 + 2.45 * math.exp(2.5 * (math.log(x) - at) + wobble))

    return value


def cells(points: Sequence[Point], value: Value) -> pd.DataFrame:
    """The cells of points, with their values."""
    return pd.DataFrame(points, columns=Point._fields).assign(value=[value(*at) for at in points])


def explore(what: Search, value: Value, rounds: int = 12) -> Found:
    """Run the search to its end on a known world."""
    known = cells(what.first_points(), value)
    for _ in range(rounds):
        if not (points := what.next_points(known)):
            break
        known = pd.concat([known, cells(points, value)], ignore_index=True)
    return known, what.estimates(known)


def full_grid(value: Value, seeds: int = 5) -> pd.DataFrame:
    frame = cells([Point(n, s, x) for n in NS for s in range(seeds) for x in FINE], value)
    found = crossings(frame.assign(status="done"), "x", "y", "value", 0.2)
    return medians_by_row(found, "y").set_index("y")


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_crossings_agree_with_the_full_grids_within_the_tolerance(noise: float) -> None:
    """Over four repetitions at 92 % of n at least, with a fifth of the runs at most."""
    agree = list[bool]()
    for repetition in range(4):
        value = world(repetition, noise=noise)
        known, found = explore(search(), value)
        assert len(known) <= 0.2 * len(NS) * 5 * len(FINE)
        full, told = full_grid(value)["crossing"], [one.crossing for one in found]
        agree.extend((np.abs(full - told) <= TOLERANCE) | (np.isinf(full) & np.isnan(told)))
    assert np.mean(agree) >= 0.92


def test_what_is_called_settled_is_known_to_the_tolerance() -> None:
    _, found = explore(search(tolerance=0.4, rows=6), world(3))
    assert all(one.converged for one in found)
    assert all(math.isnan(one.crossing) or one.half_width <= 0.4 for one in found)
    known, unfinished = explore(search(rows=6), world(3), rounds=1)
    assert not all(one.converged for one in unfinished)
    assert len(known) < 200


@pytest.mark.slow
def test_where_seeds_agree_not_all_of_them_are_run() -> None:
    """With forty seeds that hardly differ, a few tell; with ones that do, many are needed."""
    few, _ = explore(search(seeds=40), world(0, spread=0.004))
    many, _ = explore(search(seeds=40), world(0, spread=0.1))
    assert few.groupby("y")["seed"].nunique()[6.0:].max() < 10
    assert many.groupby("y")["seed"].nunique().median() > 20


@pytest.mark.parametrize("spread", [0.01, 0.1])
def test_a_search_goes_on_until_all_is_settled(spread: float) -> None:
    """A curve at n = 3 crosses far out, where no median is and none is looked for."""

    plain = world(4, spread=spread)

    def value(n: float, seed: int, x: float) -> float:
        return 0.1 if n == 3 and seed == 0 and x < 1 else plain(n, seed, x)

    _, found = explore(search(seeds=12, rows=3), value, rounds=24)
    assert all(one.converged for one in found)


@pytest.mark.slow
def test_curves_that_never_cross_are_said_so_and_one_that_rises_is_searched_as_well() -> None:
    first, second = world(0), world(1)
    _, found = explore(search(), lambda n, seed, x: 0.6 if n < 5 else first(n, seed, x))
    assert all(math.isnan(one.crossing) for one in found[:3])
    assert {(one.side, one.converged) for one in found[:3]} == {("above", True)}
    assert {one.side for one in explore(search(), lambda n, seed, x: 0.1)[1]} == {"below"}
    mirrored = replace(search(), threshold=0.8)
    known, rising = explore(mirrored, lambda n, seed, x: 1 - second(n, seed, x))
    falling_known, falling = explore(search(), second)
    assert len(known) == len(falling_known)
    assert [one.converged for one in rising] == [one.converged for one in falling]
    found_there, found_here = ([one.crossing for one in found] for found in (rising, falling))
    assert found_there == pytest.approx(found_here, nan_ok=True)


def test_no_cell_is_asked_for_again_whether_it_failed_or_in_another_order() -> None:
    few, value = search(rows=5), world(2)
    known, _ = explore(few, lambda n, s, x: math.nan if 8 < x < 9 else value(n, s, x))
    assert not known.duplicated(["y", "seed", "x"]).any()
    everything, found = explore(few, lambda n, seed, x: math.nan, rounds=30)
    assert len(everything) < 500
    assert not any(one.converged for one in found)
    first = few.first_points()
    known = cells(first, world(4))
    asked = few.next_points(known)
    assert asked == few.next_points(known.sample(frac=1, random_state=1))
    assert len({*asked, *first}) == len(asked) + len(first)
