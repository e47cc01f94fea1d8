"""Workers take about a second's work at a time, whatever a study's batches are."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from overfit_cli.core.training import Execution
from overfit_cli.sweeps.executors import CHANCES, Local, Run
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.plan import make_plan
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import MOST_BATCHES, MOST_GROWTH, Speed, Work
from tests.toy_runs import TOY, parts_in

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


def test_the_first_task_is_one_batch_and_the_next_grow_to_a_second() -> None:
    chosen = sizes(1 / 128, 10_000)
    assert chosen[0] == 1
    finished = itertools.accumulate(chosen)
    growth = [later / before for before, later in zip(finished, chosen[1:], strict=False)]
    assert max(growth) <= MOST_GROWTH
    assert chosen[10] == 128, "128 batches of 1/128 s"
    assert set(sizes(5.0, 50)) == {1}, "a batch of seconds is a task"
    assert max(sizes(1e-9, 100_000)) == MOST_BATCHES, "tiny ones are bounded in number"


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


def test_the_last_tasks_are_small_so_that_jobs_end_together() -> None:
    chosen = sizes(1 / 128, 3000, jobs=4)
    assert max(chosen) == 128, "a second's work"
    assert chosen[-4:-1] == [32, 32, 32], "a quarter of a second's work, and what is left"
    assert chosen[-1] <= 32
    assert set(sizes(0.5, 30)[-4:]) == {1}


def test_costs_tell_how_many_batches_make_a_second() -> None:
    speed = Speed(10.0, 1.0)  # 0.1 s for a unit of cost
    assert speed.task_size([9.0, 9.0, 9.0], 1000.0, 1, 10) == 1
    assert speed.task_size([2.0, 3.0, 4.0, 5.0], 1000.0, 1, 10) == 3
    assert Speed(1.0, 0.0).task_size(EQUAL, 100.0, 2, 1) == MOST_GROWTH, "no time divides nothing"
    assert Speed(0.0, 1.0).task_size(EQUAL, 100.0, 2, 1) == 1


def test_quick_cells_share_parts(tmp_path: Path) -> None:
    grid = Grid.read(TOY, {"n": "1:300", "snr": "1:2:2"}, (0,))
    directory = RunDirectory(tmp_path, "out")
    plan = make_plan(grid, directory, "cpu")
    assert len(plan.batches) == 300
    directory.prepare()
    Run(plan, directory, Work(TOY, Execution()), Local(1)).execute()
    assert len(directory.load_cells()) == 600
    assert len(parts_in(tmp_path / "cells")) < 100


@pytest.mark.slow
def test_a_batch_that_kills_among_many_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its task is halved until it is alone; the others of it are done."""
    monkeypatch.setattr("overfit_cli.sweeps.worker.MOST_GROWTH", 1000)
    grid = Grid.read(TOY, {"n": "1:6", "mood": "kills,well"}, (0,))
    settings = [(cell, cell.parameters.model_dump()) for cell in grid.cells()]
    cells = [cell for cell, one in settings if (one["mood"] == "kills") == (one["n"] == 4)]
    directory = RunDirectory(tmp_path / "out", "out")
    plan = make_plan(grid, directory, "cpu", cells=cells)
    directory.prepare()
    summary = Run(plan, directory, Work(TOY, Execution()), Local(2)).execute()
    assert summary.trained == 5
    assert summary.failed == {"worker killed": 1}
    assert summary.restarts >= CHANCES
