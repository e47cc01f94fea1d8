"""Grids and the language of ranges: derived values, lists that go together, and conditions."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import overfit_cli
from overfit_cli import UserError
from overfit_cli.core.parameters import Value, describe
from overfit_cli.studies.benign_vit.study import study as benign_vit
from overfit_cli.sweeps.grid import Grid, parse_range, parse_seeds, seeds_text
from overfit_cli.sweeps.store import RunDirectory
from tests.command import call
from tests.toy_runs import TOY

KNOWN = describe(benign_vit.parameters)
WHOLE = st.integers(1, 1000)
few = settings(max_examples=25, deadline=None)


@few
@given(WHOLE, WHOLE, st.integers(1, 30))
def test_whole_numbers_are_those_of_pythons_range(start: int, more: int, step: int) -> None:
    assume(step <= more)
    ends = f"{start}:{start + more}"
    assert parse_range(KNOWN["n"], ends) == tuple(range(start, start + more + 1))
    assert parse_range(KNOWN["n"], f"{ends}:{step}") == tuple(range(start, start + more + 1, step))
    assert parse_seeds(ends) == tuple(range(start, start + more + 1))
    assert parse_seeds(str(more)) == tuple(range(more))


@few
@given(st.floats(0.001, 1000), st.floats(1, 1000), st.integers(2, 50))
def test_real_numbers_are_spaced_by_difference_or_ratio(
    start: float, more: float, points: int
) -> None:
    stop = start + more
    for spelled, space in (
        (f":{points}", np.linspace(start, stop, points)),
        (f":{points}:linear", np.linspace(start, stop, points)),
        (f":{points}:log", np.geomspace(start, stop, points)),
        ("", np.linspace(start, stop, 40)),
    ):
        values = parse_range(KNOWN["snr"], f"{start!r}:{stop!r}{spelled}")
        np.testing.assert_allclose(np.array(values, float), space, rtol=1e-11)
    coarse, fine = (parse_range(KNOWN["snr"], f"0.1:16:{count}") for count in (12, 34))
    assert {*coarse} <= {*fine}, "a grid that is refined reuses its cells"


@few
@given(st.lists(WHOLE, min_size=2))
def test_a_list_names_each_value_once_in_its_order(values: list[int]) -> None:
    text, once = ", ".join(map(str, values)), tuple(dict.fromkeys(values))
    assert parse_range(KNOWN["n"], text) == tuple(values)
    assert Grid.read(benign_vit, {"n": text}, text).given["n"] == parse_seeds(text) == once


@few
@given(st.lists(st.integers(0, 30), min_size=1, unique=True))
def test_seeds_are_told_as_they_are_read_and_those_that_follow_as_a_range(seeds: list[int]) -> None:
    assert parse_seeds(seeds_text(seeds)) == tuple(seeds)
    assert seeds_text([*range(5), *range(1000, 1500)]) == "0:4,1000:1499"


def test_a_range_names_its_values() -> None:
    ranges: dict[str, tuple[Value, ...]] = {
        "n=1e3": (1000,),
        "n=5:5": (5,),
        "snr=3,1": (3.0, 1.0),
        "noise=orthogonal,isotropic": ("orthogonal", "isotropic"),
        "n=50:400:4:log": (50, 100, 200, 400),
        "n=1:9999999999999:2:log": (1, 9_999_999_999_999),
    }
    for spelled, values in ranges.items():
        name, _, text = spelled.partition("=")
        assert repr(parse_range(KNOWN[name], text)) == repr(values)


def test_log_spaced_whole_numbers_that_are_the_same_are_one() -> None:
    with pytest.warns(UserWarning, match="n 1:4:8:log: 8 log-spaced points round to 4 distinct"):
        assert parse_range(KNOWN["n"], "1:4:8:log") == (1, 2, 3, 4)
    first, last = 123456789012345, 123456789012347
    with pytest.warns(UserWarning, match="3 log-spaced points round to 2 distinct"):
        assert parse_range(KNOWN["n"], f"{first}:{last}:3:log") == (first, last)


# Grids


def points(texts: str) -> list[tuple[int, float]]:
    """The values of n and snr at the points of a grid; lists go together after an ampersand."""
    axes, *only = texts.split("; ")
    given = dict(text.split("=") for text in axes.removesuffix(" &").split())
    together = ["n,snr"] * axes.endswith("&")
    cells = Grid.read(TOY, given, (0,), together, only).cells()
    values = [cell.parameters.model_dump() for cell in cells]
    return [(point["n"], point["snr"]) for point in values]


GRIDS: dict[str, list[tuple[int, float]]] = {
    # An expression gives a value at each point.
    "n=2:4 snr=2*n": [(2, 4), (3, 6), (4, 8)],
    "n=floor(sqrt(snr))+1 snr=1,4,10": [(2, 1), (3, 4), (4, 10)],
    "n=10**2 snr=n/3": [(100, 33.3333333333)],
    "snr=n**2": [(4, 16)],  # of the default of n
    "n=snr/3 snr=6": [(2, 6)],  # whole but for round-off
    # A list of expressions and numbers is an axis, and a point that repeats counts once.
    "n=2,3 snr=n,2*n,7": [(2, 2), (2, 4), (2, 7), (3, 3), (3, 6), (3, 7)],
    "n=2,2,3 snr=1,1": [(2, 1), (3, 1)],
    "n=2,4 snr=n,4": [(2, 2), (2, 4), (4, 4)],
    # Of lists that go together a value that one repeats has another partner.
    "n=2,3 snr=0.5,4 &": [(2, 0.5), (3, 4)],
    "n=2,2,3,2 snr=0.5,4,4,4 &": [(2, 0.5), (2, 4), (3, 4)],
    # Conditions leave out points.
    "n=1:3 snr=1,2,3; n >= snr": [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)],
    "n=1:3 snr=1,2,3; 1 < n/snr <= 2; n != 3": [(2, 1)],
    "n=1:30 snr=0.1:3:30; snr = 0.1*n": [(n, round(n / 10, 1)) for n in range(1, 31)],
}


@pytest.mark.parametrize("texts", GRIDS)
def test_a_grid_is_all_points_of_its_axes_that_meet_its_conditions(texts: str) -> None:
    assert points(texts) == GRIDS[texts]


def test_lists_go_together() -> None:
    tied = Grid.read(TOY, {"n": "2,3", "snr": "0.5,4", "mood": "well,nan"}, (0, 1), ("n,snr",))
    assert tied.size == len(tied.cells()) == 8
    assert list(tied.axes) == ["n", "snr", "mood"]
    assert tied.free_axes == ["n", "mood"]
    numbers = ",".join(map(str, range(1, 1001)))
    assert Grid.read(TOY, {"n": numbers, "snr": numbers}, (0,), ("n,snr",)).size == 1000


def test_only_round_off_makes_a_number_whole() -> None:
    with pytest.raises(UserError, match="it is 2e"):
        points("n=snr/2 snr=4000000001")


def test_a_sweep_keeps_what_its_grid_covers(tmp_path: Path) -> None:
    given: Any = {"n": [3, 1, 2], "snr": ["n", "2*n"], "only": "snr < 5", "seeds": 2}
    cells = overfit_cli.sweep("toy", **given, jobs=1, out=tmp_path / "a", quiet=True)
    shown = list(zip(cells["n"], cells["snr"], cells["seed"], strict=True))
    pairs = [(3, 3.0), (1, 1.0), (1, 2.0), (2, 2.0), (2, 4.0)]
    assert shown == [(*pair, seed) for pair in pairs for seed in (0, 1)]
    planned = RunDirectory(tmp_path / "a").manifest.planned(TOY)
    assert set(zip(planned["n"], planned["snr"], planned["seed"], strict=True)) == set(shown)
    grid = ("--n=1:3", "--snr=n,2*n", "--only=snr < 5", "--seeds=2")
    again = call("sweep", "toy", *grid, "--jobs=1", "--out=a", cwd=tmp_path)
    expected = "toy: 10 cells (n 3 × snr 2 × seeds 2; snr = n, 2*n; snr < 5), a"
    assert expected in " ".join(again.stdout.split())
    assert "10 there already; 0 to run" in again.stdout


def test_points_that_a_condition_leaves_out_are_not_missing(tmp_path: Path) -> None:
    grid = ("--n=1:3", "--snr=1:3:3", "--only=n >= snr", "--seeds=1", "--jobs=1")
    for number in (1, 2):
        call("sweep", "toy", *grid, f"--shard={number}/2", f"--out=part-{number}", cwd=tmp_path)
    call("merge", "part-1", "part-2", "--out=all", cwd=tmp_path)
    assert overfit_cli.runs(tmp_path)["missing"].tolist() == [0, 3, 3], "all and each part"
    done = call("sweep", "toy", *grid, "--out=all", cwd=tmp_path)
    assert "6 there already; 0 to run" in done.stdout


FUNCTION = """
def train(n: int = 4, d: int = 2, seed: int = 0):
    return {"loss": n / d + seed}
"""
PRESET = """
title = "Ratios"
study = "ratio.py"
figures = ["lines"]
only = "n >= d"
set = { n = "2*d", d = "1,2" }
quick = { seeds = 2 }
paper = { set = { n = "4,8" }, together = ["n,d"] }
"""


def test_a_preset_names_a_function_in_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "ratio.py").write_text(FUNCTION)
    (tmp_path / "own" / "ratio.toml").write_text(PRESET)
    done = call("sweep", "own/ratio.toml", "--jobs=1", cwd=tmp_path)
    assert "ratio:train: 4 cells (d 2 × seeds 2; n = 2*d; n >= d)" in done.stdout
    assert "Next: overfit plot lines --from results/ratio-quick" in done.stdout
    given = call("sweep", "own/ratio.toml", "--d=3", "--jobs=1", cwd=tmp_path)
    assert "2 cells (seeds 2; n = 2*d; n >= d), results/ratio-quick-d3" in given.stdout
    tied = call("sweep", "own/ratio.toml", "--profile=paper", "--jobs=1", cwd=tmp_path)
    assert "ratio:train: 6 cells (n with d 2 × seeds 3; n >= d)" in tied.stdout
    cells = overfit_cli.load(tmp_path / "results" / "ratio-paper")
    assert {*zip(cells["n"], cells["d"], strict=True)} == {(4, 1), (8, 2)}


def sleep(n: int = 1) -> dict[str, float]:
    end = time.monotonic() + (20 if n == 2 else 0)
    while time.monotonic() < end:
        time.sleep(0.01)
    return {"loss": n}


def sleep_in_steps(n: int = 1) -> Iterator[dict[str, float]]:
    for _ in range(2000 if n == 2 else 1):
        time.sleep(0.01)
        yield {"loss": n}


def sweep(function: Any, n: list[int], out: Path, **how: Any) -> list[str]:
    """Sweep a function in this process, and return why each cell failed."""
    given = {"n": n, "jobs": 1, "out": out, "quiet": True, **how}
    cells = overfit_cli.sweep(function, **given)
    return [str(reason or "") for reason in cells.sort_values("n")["reason"].fillna("")]


def test_a_cell_that_takes_too_long_fails(tmp_path: Path) -> None:
    assert sweep(sleep, [1, 2, 3], tmp_path / "a", time_limit=0.1) == ["", "time limit", ""]
    assert sweep(sleep, [1, 3], tmp_path / "a") == ["", ""]
    with pytest.raises(UserError, match=r"time_limit=0: it takes a number above 0"):
        sweep(sleep, [1], tmp_path / "b", time_limit=0)


def test_in_a_thread_a_cell_ends_at_its_next_step(tmp_path: Path) -> None:
    how = {"jobs": 2, "backend": "threading", "time_limit": 0.1}
    assert sweep(sleep_in_steps, [1, 2], tmp_path / "a", **how) == ["", "time limit"]
    assert threading.active_count() < 20


@pytest.mark.slow
def test_a_batch_that_takes_too_long_is_trained_cell_by_cell(tmp_path: Path) -> None:
    how: Any = {"parameters": {"pause": 0.08}, "seeds": 2, "time_limit": 0.25}
    assert set(sweep("toy", [1, 2, 3, 4], tmp_path / "a", **how)) == {""}
