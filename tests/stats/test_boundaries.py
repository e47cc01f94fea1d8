"""Crossings of a threshold, shares of seeds above it, power laws, and the search for crossings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy import inf, nan
from numpy.typing import ArrayLike

from overfit_cli.core.arrays import Floats
from overfit_cli.stats import boundaries
from overfit_cli.stats.boundaries import crossings, medians_by_row
from overfit_cli.stats.boundary_search import CrossingEstimate, Point, Search
from tests.fake_study import fail, fake_cells

near = pytest.approx
X = np.geomspace(0.1, 10, 21)
FALLING, CROSSED = 3 * X**-1.5, (3 / 0.7) ** (1 / 1.5)
NOISE = np.exp(0.3 * np.random.default_rng(0).standard_normal(X.size))
OUTLIER = np.where(np.arange(21) == 3, 0.5, 1 / X)  # below the threshold, far before the crossing
HOLES = np.select([np.arange(21) == 2, np.arange(21) == 15], [nan, inf], 1 / X)


@pytest.mark.parametrize(
    ("x", "value", "threshold", "at"),
    [
        pytest.param(X, FALLING, 0.7, CROSSED, id="a power law, where algebra says"),
        pytest.param(X, 3 * X**1.5, 0.7, 1 / CROSSED, id="and one that rises"),
        pytest.param(X, -np.log(X), -1.0, math.e, id="values that aren't positive, as they are"),
        pytest.param([0, 1, 2], [1, 1, -1], 0.0, 1.5, id="an x that isn't positive, linearly"),
        pytest.param(X, FALLING * NOISE, 0.7, near(CROSSED, rel=0.25), id="one, despite noise"),
        pytest.param(X, OUTLIER, 0.7, 1 / 0.7, id="an outlier has none of its own"),
        pytest.param(X, HOLES, 0.7, 1 / 0.7, id="what isn't finite is left out"),
        pytest.param([0, 1], [0, 1], 0.25, 0.25, id="between two points that rise"),
        pytest.param([0, 1], [1, 0], 0.25, 0.75, id="between two points that fall"),
        pytest.param([0, 1, 2, 3], [1, 0.5, 0.5, 0], 0.5, 1.5, id="in the middle of a stay"),
        pytest.param([0, 1, 2, 3], [0, 0.5, 0.5, 1], 0.5, 1.5, id="also of one that rises"),
        *(pytest.param(X, 1 / X, end, nan, id=f"one side of {end}") for end in (100, 0.001, -5)),
        *((X[: len(few)], few, 2.0, nan) for few in ([], [1.0], [1.0, nan], [2.0, 2.0, 2.0])),
    ],
)
def test_a_curve_crosses(x: ArrayLike, value: ArrayLike, threshold: float, at: object) -> None:
    found = boundaries.crossing(np.asarray(x, float), np.asarray(value, float), threshold)
    assert found == (near(at, nan_ok=True) if isinstance(at, float) else at)


# Tables of crossings

BELOW, ON, ABOVE = (["below"], ["crosses"], ["above"])


def cells_of(*curves: tuple[Any, Any]) -> pd.DataFrame:
    """Cells of one seed whose curves lie at y = 1, 2, ...: x and values."""
    parts = [pd.DataFrame({"y": y, "x": x, "value": v}) for y, (x, v) in enumerate(curves, 1)]
    return pd.concat(parts, ignore_index=True).assign(seed=0, status="done")


ON_ALL_SIDES = cells_of(*((X, X * times) for times in (0.01, 1, 100)))


@pytest.mark.parametrize(
    ("cells", "threshold", "sides", "at"),
    [
        (cells_of(([50, 90], [0.02, 0.01])), 0.2, BELOW, [-inf]),
        (cells_of(([1, 2, 3], [30, 20, 10])), 20, ON, [2.0]),  # whole numbers
        (ON_ALL_SIDES, 5.0, [*BELOW, *ON, *ABOVE], [inf, 5.0, -inf]),
        (cells_of((X, X)), 50.0, BELOW, [inf]),  # none crosses: the trend of all tells
        (cells_of((X, 1 / X)), 50.0, BELOW, [-inf]),
        (cells_of((X, X))[:0], 50.0, [], []),
    ],
)
def test_a_curve_on_one_side_crosses_beyond_the_grid_where_the_others_tell(
    cells: pd.DataFrame, threshold: float, sides: list[str], at: list[float]
) -> None:
    found = crossings(cells, "x", "y", "value", threshold)
    assert found["side"].tolist() == sides
    assert found["crossing"].tolist() == near(at)
    assert len(medians_by_row(found, "y")) == len(sides)


def test_every_y_and_seed_has_a_crossing_or_a_side() -> None:
    """Failed cells are not used, and few points are unknown."""
    cells = fake_cells([1, 10, 40, 50], np.geomspace(4, 20, 30).tolist(), seeds=2)
    cells = fail(cells, "n == 50 and snr > 4.1")
    found = crossings(cells.sample(frac=1, random_state=0), "snr", "n", "test_loss", 0.2)
    assert found.columns.tolist() == ["n", "seed", "crossing", "side"]
    assert found["n"].tolist() == [1, 1, 10, 10, 40, 40, 50, 50]
    assert found["side"].tolist() == 2 * ABOVE + 4 * ON + 2 * ["unknown"]
    assert found["crossing"].tolist()[2:6] == near([10, 10, 5, 5], rel=1e-3)


def test_one_scale_serves_all_curves() -> None:
    """A share that reaches 1 on some seed crosses where it would if it came near 1."""
    cells = pd.concat([cells_of(([1, 10], [0.001, end])) for end in (0.999, 1.0)])
    found = crossings(cells.assign(seed=[0, 0, 1, 1]), "x", "y", "value", 0.1)["crossing"]
    assert found[0] == near(found[1], rel=1e-2)


def test_a_row_has_the_median_of_its_curves_and_its_interval_by_order() -> None:
    """Of few seeds from the least to the greatest; it may lie beyond the grid, or be unknown."""
    rows: dict[tuple[float, ...], tuple[float, ...]] = {  # crossing, low, high, seeds, never
        (9, 10, 12, 11, 8, 7, inf): (10, 7, inf, 7, 1),
        (9, 16, 4): (9, 4, 16, 3, 0),
        (-inf,): (0, 0, 0, 1, 1),
        (inf,): (inf, inf, inf, 1, 1),
        (nan,): (nan, nan, nan, 0, 0),
    }
    curves = [(y, seed, at) for y, row in enumerate(rows) for seed, at in enumerate(row)]
    table = pd.DataFrame(curves, columns=["y", "seed", "crossing"])
    sides = table["crossing"].map({inf: "above", -inf: "below"}).fillna("crosses")
    found = medians_by_row(table.assign(side=sides.mask(table["crossing"].isna(), "unknown")), "y")
    np.testing.assert_allclose(found.drop(columns="y").to_numpy(float), [*rows.values()])


def mirrored_shares() -> pd.DataFrame:
    """The error 1 / (1 + (x / c)⁴), where c is near 10 / √y, and the accuracy."""
    grid = itertools.product((5, 10, 15, 20, 30, 40), range(10), np.geomspace(0.5, 4, 15))
    cells = pd.DataFrame(grid, columns=["y", "seed", "x"])
    noise = np.exp(0.2 * np.random.default_rng(3).standard_normal(60).repeat(15))
    error = 1 / (1 + (cells["x"] * noise * np.sqrt(cells["y"]) / 10) ** 4)
    return cells.assign(error=error, accuracy=1 - error, status="done")


@pytest.mark.parametrize("threshold", [0.5, 0.3, 0.8])
def test_a_share_and_its_complement_have_the_same_crossings_and_ends(threshold: float) -> None:
    cells = mirrored_shares()
    error = crossings(cells, "x", "y", "error", threshold)
    accuracy = crossings(cells, "x", "y", "accuracy", 1 - threshold)
    np.testing.assert_allclose(accuracy["crossing"], error["crossing"])
    assert np.isinf(error["crossing"]).any()
    mirrored = error["side"].replace({"above": "below", "below": "above"})
    assert accuracy["side"].tolist() == mirrored.tolist()


# The share of seeds above a threshold

Places = dict[int, list[float]]
SEEDS = 40
CROSSES = np.exp(np.random.default_rng(0).normal(0.0, 0.3, SEEDS))
COARSE, AT = np.geomspace(0.1, 10, 9).tolist(), np.geomspace(0.12, 8, 50)
ALL = dict.fromkeys(range(SEEDS), COARSE)
NEAR = {seed: [0.8 * CROSSES[seed], 1.3 * CROSSES[seed]] for seed in range(2, SEEDS)}


def shares(cells: pd.DataFrame, threshold: float, *at: float) -> Floats:
    """The share of seeds above a threshold in the only row of cells."""
    [found] = boundaries.share_above(cells, "x", "y", "value", threshold, np.array(at)).values()
    return found


def world(places: Places, power: int = -2) -> pd.DataFrame:
    """Cells of curves that cross 1 at places of their own, one a seed."""
    points = ((np.array(x), CROSSES[seed]) for seed, x in places.items())
    cells = cells_of(*((x, (x / at) ** power) for x, at in points))
    return cells.assign(seed=cells["y"] - 1, y=8.0)


@pytest.mark.parametrize(("places", "power"), [(ALL, -2), (ALL, 2), (ALL | NEAR, -2)])
def test_it_is_the_share_of_seeds_that_cross_further_on(places: Places, power: int) -> None:
    """Also as a refining sweep has them: two seeds on the grid, the others where they cross."""
    beyond = CROSSES[:, None] > AT if power < 0 else CROSSES[:, None] < AT
    found = shares(world(places, power), 1.0, *AT)
    np.testing.assert_allclose(found, beyond.mean(axis=0), atol=1.5 / SEEDS)


def test_a_half_lies_where_the_median_crossing_is() -> None:
    [median] = medians_by_row(crossings(world(ALL), "x", "y", "value", 1.0), "y")["crossing"]
    before, after = shares(world(ALL), 1.0, 0.98 * median, 1.02 * median)
    assert before >= 0.5 >= after
    stays = cells_of(([0, 1, 2, 3], [1, 0.5, 0.5, 0]))
    assert shares(stays, 0.5, 0.9, 1.5, 2.1).tolist() == [1.0, 0.5, 0.0]


def test_a_seed_that_crosses_nowhere_counts_where_it_was_sampled() -> None:
    cells = cells_of(([1, 9, 4, 5], [3, 0.5, 3, 2])).assign(seed=[0, 0, 1, 1])
    assert shares(cells, 1.0, 2.0, 4.5, 8.5).tolist() == [1.0, 0.5, 0.0]
    np.testing.assert_equal(shares(cells[2:], 1.0, 2.0, 4.5, 8.5), [nan, 1.0, nan])


# Power laws through crossings, whose truth is known


def crossings_of(
    ns: range, seeds: int, *, noise: float = 0.0, seed_noise: float = 0.0, draw: int = 0
) -> pd.DataFrame:
    """Make crossings of n · x² = 1000, log-normal noise on each and on each seed."""
    draws = np.random.default_rng(draw)
    shifts = seed_noise * draws.standard_normal(seeds)
    table = pd.DataFrame(itertools.product(ns, range(seeds)), columns=["n", "seed"])
    logs = shifts[table["seed"]] + noise * draws.standard_normal(len(table))
    return table.assign(crossing=np.sqrt(1000 / table["n"]) * np.exp(logs))


def law(table: pd.DataFrame, **options: int) -> boundaries.PowerLaw:
    fit = boundaries.fit_power_law(table, "n", **options)
    assert fit is not None
    return fit


def test_an_exact_law_is_found_exactly() -> None:
    fit = law(crossings_of(range(2, 21), 3))
    assert [*fit.exponent[:3], *fit.constant[:3]] == near([2] * 3 + [1000] * 3)
    assert fit.exponent.kind == "95 % bootstrap over 3 seeds"
    assert (fit.rows, fit.left_out, fit.exponent.seeds) == (19, 0, 3)


def test_the_fit_is_least_squares_of_the_medians_of_log_x_on_log_y() -> None:
    table = crossings_of(range(2, 21), 9, noise=0.2).drop(index=[3, 50, 77])
    medians = table.groupby("n")["crossing"].agg(lambda each: np.median(np.log(each)))
    slope, intercept = np.polyfit(np.log(medians.index), medians, 1)
    fit = law(table, repeats=10)
    assert (fit.exponent[0], fit.constant[0]) == near((-1 / slope, np.exp(-intercept / slope)))


def test_the_bootstrap_resamples_seeds_and_nothing_else() -> None:
    table = crossings_of(range(2, 12), 7, noise=0.1, seed_noise=0.1)
    fit = law(table, repeats=400, seed=1)
    draws, slow = np.random.default_rng(5), []
    logs = np.log(table.pivot(index="n", columns="seed", values="crossing").to_numpy())
    for _ in range(400):
        medians = np.median(logs[:, draws.choice(7, 7)], axis=1)
        slow.append(-1 / np.polyfit(np.log(range(2, 12)), medians, 1)[0])
    low, high = np.percentile(slow, [2.5, 97.5])
    assert fit == law(table, repeats=400, seed=1) != law(table, repeats=400, seed=2)
    assert fit.exponent[1:3] == near((low, high), abs=0.15 * (high - low))


def test_a_curve_that_crosses_beyond_the_grid_counts_as_that() -> None:
    """Left out, such curves would bend the law towards the grid; their rows would be lost."""
    table = crossings_of(range(2, 21), 41, noise=0.2)
    cut = table.assign(crossing=table["crossing"].where(table["crossing"] <= 12, np.inf))
    fit = law(cut, repeats=10)
    medians = table.groupby("n")["crossing"].median()
    assert fit.left_out == (medians > 12).sum() == 19 - fit.rows >= 3
    assert fit.exponent.value == near(2, abs=0.15)
    crossed = np.isfinite(cut["crossing"]).groupby(cut["n"]).all().sum()
    assert fit.rows > crossed, "rows in which some seeds never cross are used"


def test_curves_that_are_below_throughout_cross_before_the_grid() -> None:
    """A seed without points leaves the others in."""
    table = crossings_of(range(2, 21), 6)
    table.loc[(table["n"] == 20) & (table["seed"] < 2), "crossing"] = -inf
    table.loc[(table["n"] == 2) & (table["seed"] < 2), "crossing"] = inf
    table.loc[table["seed"] == 5, "crossing"] = nan
    fit = law(table, repeats=10)
    assert fit.exponent.value == near(2)
    assert (fit.rows, fit.left_out, fit.exponent.seeds) == (19, 0, 5)


def test_fewer_than_three_values_of_y_or_a_crossing_that_does_not_move_are_no_law() -> None:
    few = [crossings_of(range(2, end), 5) for end in (2, 3, 4)]
    for table in (*few, crossings_of(range(2, 9), 2).assign(crossing=3.0)):
        assert boundaries.fit_power_law(table, "n") is None


def test_a_boundary_that_hardly_moves_has_an_exponent_without_upper_end() -> None:
    """Slopes of both signs fit it: p runs through infinity. It is far from 2 all the same."""
    table = crossings_of(range(2, 21), 9, noise=0.02)
    flat = table.assign(crossing=table["crossing"] * np.sqrt(table["n"]))
    fit = law(flat)
    assert 10 < fit.exponent.low <= fit.exponent.value <= fit.exponent.high == np.inf
    rising = law(flat.assign(crossing=flat["crossing"] * flat["n"]))
    assert -1.1 < rising.exponent.low < -1 < rising.exponent.high < -0.9


# The search for a boundary finds that of a full grid, on made-up worlds

NS = [float(n) for n in range(2, 21)]
SPARSE = np.linspace(0.16, 15.6, 8).tolist()
FINE = np.linspace(0.16, 15.6, 100)
TOLERANCE = 0.156
Value = Callable[[float, int, float], float]
Found = tuple[pd.DataFrame, list[CrossingEstimate]]


def search(seeds: int = 5, tolerance: float = TOLERANCE, rows: int = len(NS)) -> Search:
    return Search(NS[:rows], SPARSE, list(range(seeds)), 0.2, tolerance)


def losses(repetition: int, *, spread: float = 0.1, noise: float = 0.0) -> Value:
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
        value = losses(repetition, noise=noise)
        known, found = explore(search(), value)
        assert len(known) <= 0.2 * len(NS) * 5 * len(FINE)
        full, told = full_grid(value)["crossing"], [one.crossing for one in found]
        agree.extend((np.abs(full - told) <= TOLERANCE) | (np.isinf(full) & np.isnan(told)))
    assert np.mean(agree) >= 0.92


def test_what_is_called_settled_is_known_to_the_tolerance() -> None:
    _, found = explore(search(tolerance=0.4, rows=6), losses(3))
    assert all(one.converged for one in found)
    assert all(math.isnan(one.crossing) or one.half_width <= 0.4 for one in found)
    known, unfinished = explore(search(rows=6), losses(3), rounds=1)
    assert not all(one.converged for one in unfinished)
    assert len(known) < 200


@pytest.mark.slow
def test_where_seeds_agree_not_all_of_them_are_run() -> None:
    """With forty seeds that hardly differ, a few tell; with ones that do, many are needed."""
    few, _ = explore(search(seeds=40), losses(0, spread=0.004))
    many, _ = explore(search(seeds=40), losses(0, spread=0.1))
    assert few.groupby("y")["seed"].nunique()[6.0:].max() < 10
    assert many.groupby("y")["seed"].nunique().median() > 20


@pytest.mark.parametrize("spread", [0.01, 0.1])
def test_a_search_goes_on_until_all_is_settled(spread: float) -> None:
    """A curve at n = 3 crosses far out, where no median is and none is looked for."""

    plain = losses(4, spread=spread)

    def value(n: float, seed: int, x: float) -> float:
        return 0.1 if n == 3 and seed == 0 and x < 1 else plain(n, seed, x)

    _, found = explore(search(seeds=12, rows=3), value, rounds=24)
    assert all(one.converged for one in found)


@pytest.mark.slow
def test_curves_that_never_cross_are_said_so_and_one_that_rises_is_searched_as_well() -> None:
    first, second = losses(0), losses(1)
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


def test_a_search_asks_for_as_many_cells_and_seeds_as_it_needs() -> None:
    """As counted once: another rule of what is enough asks for others."""
    counts = ((0.02, 0.4, 118, 11, 11), (0.05, 0.4, 207, 30, 20), (0.02, 1.0, 39, 3, 2))
    for spread, tolerance, *count in counts:
        asked = Search([5.0, 6.0], SPARSE, list(range(40)), 0.2, tolerance)
        known, _ = explore(asked, losses(1, spread=spread))
        assert [len(known), *known.groupby("y")["seed"].nunique()] == count


def test_no_cell_is_asked_for_again_whether_it_failed_or_in_another_order() -> None:
    few, value = search(rows=5), losses(2)
    known, _ = explore(few, lambda n, s, x: math.nan if 8 < x < 9 else value(n, s, x))
    assert not known.duplicated(["y", "seed", "x"]).any()
    everything, found = explore(few, lambda n, seed, x: math.nan, rounds=30)
    assert len(everything) < 500
    assert not any(one.converged for one in found)
    first = few.first_points()
    known = cells(first, losses(4))
    asked = few.next_points(known)
    assert asked == few.next_points(known.sample(frac=1, random_state=1))
    assert len({*asked, *first}) == len(asked) + len(first)
