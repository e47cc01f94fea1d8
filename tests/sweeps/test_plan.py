"""Plans of any size answer soon, tasks take about a second, and rounds refine a boundary."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import overfit_cli
from overfit_cli.core.parameters import describe
from overfit_cli.core.training import Execution
from overfit_cli.functions.function_study import study_of_reference
from overfit_cli.studies.benign_vit.study import study as benign_vit
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.plan import estimate, make_plan
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import MOST_BATCHES, MOST_GROWTH, Speed
from tests.command import call, run
from tests.toy_runs import TOY, parts_in


def test_a_key_is_the_hash_of_the_cell_as_json() -> None:
    """The plain way beside the quick one, over every kind of value."""
    cells = [
        *Grid.read(benign_vit, {"n": "2:9", "snr": "1e-5:1e8:7:log"}, (0, 7)).cells(),
        *Grid.read(benign_vit, {"noise": "isotropic,orthogonal", "d": "64"}, (1,)).cells(),
        *Grid.read(TOY, {"mood": "well,nan", "pause": "0,-0,1e-7"}, (2**40,)).cells(),
    ]
    for cell in cells:
        content = {"study": cell.study, "version": cell.version, "seed": cell.seed}
        content["parameters"] = cell.parameters.model_dump()
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        assert cell.key == hashlib.sha256(text.encode()).hexdigest()[:20]
    assert len({cell.key for cell in cells}) == len(cells)
    assert str(describe(TOY.parameters)["pause"].parse("-0")) == "0.0", "it has one name"


@pytest.mark.slow
def test_a_batch_that_takes_long_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overfit_cli.sweeps.run.LONGEST_DRY_RUN", 1.0)
    began = time.monotonic()
    slow = ("--set=pause=60", "--n=2", "--seeds=1")
    done = call("sweep", "toy", *slow, "--dry-run", cwd=tmp_path)
    assert time.monotonic() - began < 30
    assert re.search(r"No batch ended within [\d.]+ s: how long it takes isn't known", done.stdout)


@pytest.mark.slow
def test_many_jobs_take_no_less_than_the_longest_batch(tmp_path: Path) -> None:
    grid = Grid.read(TOY, {"n": "1:8", "pause": "0.1"}, (0,))
    plan = make_plan(grid, RunDirectory(tmp_path), "cpu")
    for jobs, batches in ((1, 8), (4, 2), (200, 1)):
        likely = estimate(plan, jobs, Execution(), within=20)
        assert likely.seconds == pytest.approx(0.1 * batches, rel=0.3)
    assert estimate(plan, 1, Execution(), within=0.0).seconds is None, "nothing is made up"


@pytest.mark.slow
def test_where_costs_are_not_known_a_cell_of_the_middle_is_timed(tmp_path: Path) -> None:
    """The mean cell takes 0.5 s, and the last 1 s: more than a busy machine adds."""
    text = "import time\n\ndef train(n: int):\n    time.sleep(n / 40)\n    return {'loss': n}\n"
    (tmp_path / "mine.py").write_text(text)
    grid = Grid.read(study_of_reference(str(tmp_path / "mine.py")), {"n": "1:40"}, (0,))
    plan = make_plan(grid, RunDirectory(tmp_path), "cpu")
    likely = estimate(plan, 1, Execution(), within=20.0)
    assert likely.seconds == pytest.approx(40 * 0.51, rel=0.2)


# Tasks

EQUAL = [1.0] * (2 * MOST_BATCHES)


def sizes(seconds_per_batch: float, batches: int, jobs: int = 2) -> list[int]:
    """The sizes of tasks of equal batches, each timed before the next is chosen."""
    speed, finished, chosen = Speed(), 0, list[int]()
    while left := batches - finished:
        size = speed.task_size(EQUAL[:left], float(left), jobs, finished)
        speed.add(size, size * seconds_per_batch)
        chosen.append(size)
        finished += size
    return chosen


def test_tasks_grow_from_one_batch_to_a_second_and_the_last_are_small() -> None:
    """So that jobs end together."""
    chosen = sizes(1 / 128, 10_000)
    assert chosen[0] == 1
    finished = itertools.accumulate(chosen)
    growth = [later / before for before, later in zip(finished, chosen[1:], strict=False)]
    assert max(growth) <= MOST_GROWTH
    assert chosen[10] == 128, "128 batches of 1/128 s"
    assert set(sizes(5.0, 50)) == {1}, "a batch of seconds is a task"
    assert max(sizes(1e-9, 100_000)) == MOST_BATCHES, "tiny ones are bounded in number"
    chosen = sizes(1 / 128, 3000, jobs=4)
    assert max(chosen) == 128, "a second's work"
    assert chosen[-4:-1] == [32, 32, 32], "a quarter of a second's work, and what is left"
    assert chosen[-1] <= 32
    assert set(sizes(0.5, 30)[-4:]) == {1}


def test_all_that_was_timed_tells_how_long_the_rest_takes() -> None:
    """The first task of a process imports libraries: it counts only if it took minutes."""
    speed = Speed()
    speed.add(1.0, 18.0, is_cold=True)
    assert speed.time(4.0) is None
    speed.add(1.0, 3.0)
    speed.add(3.0, 5.0)
    assert speed.time(4.0) == 8.0
    assert speed.time(4.0, jobs=2) == 4.0
    speed.add(1.0, 60.0, is_cold=True)
    assert speed.time(5.0) == 68.0


def test_costs_tell_how_many_batches_make_a_second() -> None:
    speed = Speed(10.0, 1.0)  # 0.1 s for a unit of cost
    assert speed.task_size([9.0, 9.0, 9.0], 1000.0, 1, 10) == 1
    assert speed.task_size([2.0, 3.0, 4.0, 5.0], 1000.0, 1, 10) == 3
    assert Speed(1.0, 0.0).task_size(EQUAL, 100.0, 2, 1) == MOST_GROWTH, "no time divides nothing"
    assert Speed(0.0, 1.0).task_size(EQUAL, 100.0, 2, 1) == 1


def test_quick_cells_share_parts(tmp_path: Path) -> None:
    grid: Any = {"n": "1:150", "snr": "1:2:2", "seeds": 1, "jobs": 1}
    with mock.patch.object(RunDirectory, "compact"):
        assert len(overfit_cli.sweep("toy", **grid, out=tmp_path, quiet=True)) == 300
    assert len(parts_in(tmp_path / "cells")) < 50


@pytest.mark.slow
def test_a_batch_that_kills_among_many_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its task is halved until it is alone; the others of it are done."""
    monkeypatch.setattr("overfit_cli.sweeps.worker.MOST_GROWTH", 1000)
    moods = [*["well"] * 3, "kills", "well", "well"]
    grid: Any = {"n": "1:6", "mood": moods, "together": "n,mood", "seeds": 1, "jobs": 2}
    cells = overfit_cli.sweep("toy", **grid, out=tmp_path)
    assert cells.sort_values("n")["reason"].tolist() == ["", "", "", "worker killed", "", ""]
    assert re.search(r"killed and started again [3-9] times", capsys.readouterr().out)


# Refinement samples where a boundary is uncertain, and goes on after a kill where it was

SMALL = ("--set=tokens=3", "--set=d=60", "--set=d_h=20", "--set=d_v=8", "--set=test_samples=20")
ASKED = ("--n=3,12", "--snr=2:30:5", "--seeds=3", *SMALL, "--jobs=1", "--refine=3")


@pytest.mark.slow
def test_a_refined_sweep_says_what_it_knows_and_is_drawn_where_it_sampled(tmp_path: Path) -> None:
    """At its own threshold."""
    asked = [*ASKED, "--threshold=0.3", "--out=runs"]
    done = run("sweep", *asked, cwd=tmp_path).stdout
    assert re.search("The coarse grid: 20 cells, 20 to run.\n(.|\n)*Round 1: ", done)
    known = r"The crossing of test_loss = 0.3 along snr, the median of 3 seeds, is known to ±0\.\d"
    assert re.search(known, done)
    cells = overfit_cli.load(tmp_path / "runs")
    assert len(cells) > 20
    assert set(cells["seed"]) == {0, 1, 2}
    for figure in ("cutoff", "boundary"):
        run("plot", figure, "--from=runs", f"--out={figure}.svg", cwd=tmp_path)
        assert "0.3" in (tmp_path / f"{figure}.txt").read_text().split("\n\n")[0]
    assert ">sampled<" in (tmp_path / "cutoff.svg").read_text()
    told = " ".join((tmp_path / "cutoff.txt").read_text().split())
    assert "each seed's curve fitted to be monotone" in told
    other = ("--threshold=0.4", "--out=other.png")
    elsewhere = run("plot", "boundary", "--from=runs", *other, cwd=tmp_path)
    note = "the sweep placed its cells near 0.3; few may be near 0.4."
    assert note in " ".join(elsewhere.stderr.split())
    manifest = json.loads((tmp_path / "runs" / "manifest.json").read_text())
    settings = manifest["runs"][0]["settings"]
    assert (settings["refine"], settings["threshold"], settings["value"]) == (3, 0.3, "test_loss")


@pytest.mark.slow
def test_it_goes_on_after_a_kill_and_asks_for_the_same_cells(tmp_path: Path) -> None:
    run("sweep", *ASKED, "--out=whole", cwd=tmp_path)
    run("sweep", *ASKED[:-1], "--refine=1", "--out=parts", cwd=tmp_path)
    parts_in(tmp_path / "parts" / "cells")[-1].unlink()
    again = run("sweep", *ASKED, "--out=parts", cwd=tmp_path).stdout
    assert "reused" in again
    whole, parts = (overfit_cli.load(tmp_path / name) for name in ("whole", "parts"))
    assert sorted(whole["key"]) == sorted(parts["key"])
    more = run("sweep", *ASKED, "--out=parts", cwd=tmp_path).stdout
    assert "Done: 0 trained" in more


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
    assert "step limit)" in done and "(--fail-fast)" in done
    assert "Round 1" not in done
