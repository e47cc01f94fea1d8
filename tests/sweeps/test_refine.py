"""`--refine`: it samples where a boundary is uncertain, and finds the full grid's."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import overfit_cli
from overfit_cli.stats.boundaries import crossings, medians_by_row
from overfit_cli.stats.boundary_search import (
    FIRST_SEEDS,
    CrossingEstimate,
    Point,
    Search,
)
from tests.command import run

NS = [float(n) for n in range(2, 21)]
COARSE = np.linspace(0.16, 15.6, 8).tolist()
FINE = np.linspace(0.16, 15.6, 100)
TOLERANCE = 0.156
Value = Callable[[float, int, float], float]


def search(seeds: int = 5, tolerance: float = TOLERANCE) -> Search:
    return Search(NS, COARSE, list(range(seeds)), 0.2, tolerance)


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


def explore(
    what: Search, value: Value, rounds: int = 12
) -> tuple[pd.DataFrame, list[CrossingEstimate]]:
    """Run the search to its end on a known world."""
    rows: list[tuple[float, int, float, float]] = []
    points = what.first_points()
    for _ in range(rounds + 1):
        rows += [(*point, value(*point)) for point in points]
        known = pd.DataFrame(rows, columns=["y", "seed", "x", "value"])
        points = what.next_points(known)
        if not points:
            break
    return known, what.estimates(known)


def full_grid(value: Value, seeds: int = 5) -> pd.DataFrame:
    rows = [(n, s, x, value(n, s, x), "done") for n in NS for s in range(seeds) for x in FINE]
    frame = pd.DataFrame(rows, columns=["n", "seed", "x", "value", "status"])
    return medians_by_row(crossings(frame, "x", "n", "value", 0.2), "n").set_index("n")


def test_the_coarse_grid_comes_first_for_two_seeds() -> None:
    points = search().first_points()
    assert len(points) == FIRST_SEEDS * len(NS) * len(COARSE)
    assert {point.seed for point in points} == {0, 1}


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_crossings_agree_with_the_full_grids_within_the_tolerance(noise: float) -> None:
    """Over eight repetitions at 95 % of n at least, with a fifth of the runs at most."""
    agree = []
    for repetition in range(8):
        value = world(repetition, noise=noise)
        known, found = explore(search(), value)
        full = full_grid(value)
        assert len(known) <= 0.2 * len(NS) * 5 * len(FINE)
        for one in found:
            expected = float(full["crossing"][one.y])
            beyond = math.isinf(expected) and math.isnan(one.crossing)
            same = beyond or abs(one.crossing - expected) <= TOLERANCE
            agree.append(same)
    assert np.mean(agree) >= 0.95


def test_what_is_called_settled_is_known_to_the_tolerance() -> None:
    _, found = explore(search(tolerance=0.4), world(3))
    for one in found:
        assert one.converged
        assert math.isnan(one.crossing) or one.half_width <= 0.4
    known, unfinished = explore(search(), world(3), rounds=1)
    assert not all(one.converged for one in unfinished)
    assert len(known) < 600


@pytest.mark.slow
def test_where_seeds_agree_not_all_of_them_are_run() -> None:
    """With forty seeds that hardly differ, a few tell; with ones that do, many are needed."""
    few, _ = explore(search(seeds=40), world(0, spread=0.004))
    many, _ = explore(search(seeds=40), world(0, spread=0.1))
    assert few.groupby("y")["seed"].nunique()[6.0:].max() < 10
    assert many.groupby("y")["seed"].nunique().median() > 20


@pytest.mark.parametrize(
    "spread", [0.01, *(pytest.param(one, marks=pytest.mark.slow) for one in (0.03, 0.1))]
)
def test_a_search_goes_on_until_all_is_settled(spread: float) -> None:
    """A curve at n = 3 crosses far out, where no median is and none is looked for."""

    def value(n: float, seed: int, x: float) -> float:
        far_out = n == 3 and seed == 0 and x < 1
        return 0.1 if far_out else world(4, spread=spread)(n, seed, x)

    _, found = explore(search(seeds=40), value, rounds=24)
    assert all(one.converged for one in found)


@pytest.mark.slow
def test_curves_that_never_cross_are_said_so() -> None:
    _, found = explore(search(), lambda n, seed, x: 0.6 if n < 5 else world(0)(n, seed, x))
    for one in found[:3]:
        assert math.isnan(one.crossing)
        assert one.side == "above"
        assert one.converged
    _, below = explore(search(), lambda n, seed, x: 0.1)
    assert {one.side for one in below} == {"below"}


@pytest.mark.slow
def test_a_column_that_rises_is_searched_as_well() -> None:
    def rising(n: float, seed: int, x: float) -> float:
        return 1 - world(1)(n, seed, x)

    mirrored = replace(search(), threshold=0.8)
    known, rising_estimates = explore(mirrored, rising)
    falling_known, falling_estimates = explore(search(), world(1))
    assert len(known) == len(falling_known)
    for rising_one, falling_one in zip(rising_estimates, falling_estimates, strict=True):
        assert rising_one.crossing == pytest.approx(falling_one.crossing, nan_ok=True)
        assert rising_one.converged == falling_one.converged


def test_failed_cells_are_passed_over_and_never_asked_for_again() -> None:
    def value(n: float, seed: int, x: float) -> float:
        return math.nan if 8 < x < 9 else world(2)(n, seed, x)

    known, _ = explore(search(), value)
    assert not known.duplicated(["y", "seed", "x"]).any()
    everything, found = explore(search(), lambda n, seed, x: math.nan, rounds=30)
    assert len(everything) < 2000
    assert not any(one.converged for one in found)


def test_the_same_results_ask_for_the_same_points_in_any_order() -> None:
    rows = [(*point, world(4)(*point)) for point in search().first_points()]
    known = pd.DataFrame(rows, columns=["y", "seed", "x", "value"])
    asked = search().next_points(known)
    assert asked == search().next_points(known.sample(frac=1, random_state=1))
    assert len(set(asked)) == len(asked)
    assert not set(asked) & {Point(*row[:3]) for row in rows}


# The command, on the toy study and on the real one

ASKED: tuple[str, ...] = (
    "--n=3,12",
    "--snr=2:30:5",
    "--seeds=3",
    "--set=tokens=3",
    "--set=d=60",
    "--set=d_h=20",
)
ASKED += ("--set=d_v=8", "--set=test_samples=20", "--jobs=1", "--refine=3")


def test_a_refined_sweep_says_what_it_knows_and_is_drawn_where_it_sampled(tmp_path: Path) -> None:
    done = run("sweep", *ASKED, "--out=runs", cwd=tmp_path).stdout
    assert "The coarse grid: 20 cells, 20 to run." in done
    assert "Round 1: " in done
    assert (
        "The crossing of test_loss = 0.2 along snr, the median of 3 seeds, is known to ±0.283"
        in done
    )
    cells = overfit_cli.load(tmp_path / "runs")
    assert len(cells) > 20
    assert set(cells["seed"]) == {0, 1, 2}
    run("plot", "cutoff", "--from=runs", "--out=a.svg", cwd=tmp_path)
    assert ">sampled<" in (tmp_path / "a.svg").read_text()
    told = " ".join((tmp_path / "a.txt").read_text().split())
    assert "each seed's curve fitted to be monotone" in told
    manifest = json.loads((tmp_path / "runs" / "manifest.json").read_text())
    settings = manifest["runs"][0]["settings"]
    assert (settings["refine"], settings["threshold"], settings["value"]) == (3, 0.2, "test_loss")


@pytest.mark.slow
def test_a_refined_run_is_drawn_at_its_own_threshold(tmp_path: Path) -> None:
    asked = ["--refine=2", "--threshold=0.3", "--out=runs"]
    run("sweep", *ASKED[:-1], *asked, cwd=tmp_path)
    for figure in ("cutoff", "boundary"):
        run("plot", figure, "--from=runs", "--out=own.png", cwd=tmp_path)
        assert "0.3" in (tmp_path / "own.txt").read_text().split("\n\n")[0]
    elsewhere = run(
        "plot", "boundary", "--from=runs", "--threshold=0.4", "--out=other.png", cwd=tmp_path
    )
    note = "the sweep placed its cells near 0.3; few may be near 0.4."
    assert note in " ".join(elsewhere.stderr.split())


@pytest.mark.slow
def test_it_goes_on_after_a_kill_and_asks_for_the_same_cells(tmp_path: Path) -> None:
    run("sweep", *ASKED, "--out=whole", cwd=tmp_path)
    run("sweep", *ASKED[:-1], "--refine=1", "--out=parts", cwd=tmp_path)
    some = sorted((tmp_path / "parts" / "cells").glob("*.parquet"))[-1]
    some.unlink()
    again = run("sweep", *ASKED, "--out=parts", cwd=tmp_path).stdout
    assert "reused" in again
    whole, parts = (overfit_cli.load(tmp_path / name) for name in ("whole", "parts"))
    assert sorted(whole["key"]) == sorted(parts["key"])
    more = run("sweep", *ASKED, "--out=parts", cwd=tmp_path).stdout
    assert "Done: 0 trained" in more


BAD = [
    (("--refine=x",), ["--refine x", "a whole number"]),
    (("--refine=-1",), ["--refine -1", "at least 0"]),
    (("--refine=1.5",), ["--refine 1.5", "a whole number"]),
    (("--refine=2", "--snr=1,2"), ["--snr", "at least 3 values of snr", "there are 2"]),
    (("--refine=2", "--set=label_flip=0,0.1"), ["--refine", "label_flip varies too"]),
]


@pytest.mark.parametrize(("flags", "words"), BAD)
def test_bad_input_is_one_sentence(
    tmp_path: Path, flags: tuple[str, ...], words: list[str]
) -> None:
    given = flags if any("--snr" in flag for flag in flags) else (*flags, "--snr=1:9:4")
    said = run("sweep", *given, cwd=tmp_path, expect=2).stderr
    for word in words:
        assert word in said, said
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_it_needs_no_second_axis_and_says_what_a_dry_run_leaves_out(tmp_path: Path) -> None:
    one = [flag for flag in ASKED if not flag.startswith("--n=")]
    done = run("sweep", *one, "--set=n=12", cwd=tmp_path).stdout
    assert "at 1 of 1 value of n" in done or "at 0 of 1 value of n" in done
    assert re.search(r"Next: overfit plot cutoff --from results/benign-vit-n12-\S*-refined", done)
    default = run("sweep", *one, "--dry-run", cwd=tmp_path).stdout
    assert "That is the coarse grid, with 2 of 3 seeds; up to 3 rounds" in default


def test_a_failed_cell_ends_it_where_asked_with_its_reason(tmp_path: Path) -> None:
    failing = (*ASKED, "--set=max_steps=2", "--fail-fast", "--out=runs")
    done = run("sweep", *failing, cwd=tmp_path, expect=1).stdout
    assert "step limit)" in done
    assert "Round 1" not in done


def test_a_study_without_a_boundary_cannot_be_refined(tmp_path: Path) -> None:
    said = run("sweep", "kernel-text", "--refine=2", cwd=tmp_path, expect=2).stderr
    assert "--refine: kernel-text has no figure of a boundary to refine." in said
