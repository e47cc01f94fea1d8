"""Workers take about a second's work at a time, whatever a study's batches are."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from overfit_cli.core.cell import Cell
from overfit_cli.core.training import Execution
from overfit_cli.sweeps.executors import Local
from overfit_cli.sweeps.grid import make_grid
from overfit_cli.sweeps.plan import make_plan
from overfit_cli.sweeps.run import CHANCES, execute
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import MOST_BATCHES, MOST_GROWTH, TaskSize
from tests.toy_runs import TOY, parts_in

EQUAL = [1.0] * (2 * MOST_BATCHES)


def sizes(seconds_per_work: float, batches: int, jobs: int = 2) -> list[int]:
    """The sizes of tasks of equal batches, each learnt from before the next is chosen."""
    size, left, found = TaskSize(jobs), batches, list[int]()
    while left:
        found.append(size.choose(EQUAL[:left], float(left)))
        size.learn(found[-1], found[-1] * seconds_per_work)
        left -= found[-1]
    return found


def test_the_first_task_is_one_batch_and_the_next_grow_to_a_second() -> None:
    found = sizes(0.01, 10_000)
    assert found[0] == 1
    growth = [later / earlier for earlier, later in itertools.pairwise(found)]
    assert max(growth) <= MOST_GROWTH
    assert found[10] == 100, "a hundred batches of 10 ms"


def test_a_batch_of_seconds_is_a_task() -> None:
    assert set(sizes(5.0, 50)) == {1}


def test_tiny_batches_are_bounded_in_number() -> None:
    assert max(sizes(1e-9, 100_000)) == MOST_BATCHES


def test_the_last_tasks_are_small_so_that_jobs_end_together() -> None:
    found = sizes(0.01, 3000, jobs=4)
    assert max(found) == 100, "a second's work"
    assert found[-4:-1] == [25, 25, 25], "a quarter of a second's work, and what is left"
    assert found[-1] <= 25


def test_batches_of_half_a_second_come_one_at_a_time_at_the_end() -> None:
    assert set(sizes(0.5, 30)[-4:]) == {1}


def test_costs_tell_how_many_batches_make_a_second() -> None:
    size = TaskSize(1)
    size.learn(10.0, 1.0)  # 0.1 s for a unit of cost
    assert size.choose([9.0, 9.0, 9.0], 1000.0) == 1
    size = TaskSize(1, _last=10)
    size.learn(10.0, 1.0)
    assert size.choose([2.0, 3.0, 4.0, 5.0], 1000.0) == 3


def test_a_task_of_no_time_is_no_reason_to_divide_by_it() -> None:
    size = TaskSize(2)
    size.learn(1.0, 0.0)
    size.learn(0.0, 1.0)
    assert size.choose(EQUAL, 100.0) == MOST_GROWTH


def test_quick_cells_share_parts(tmp_path: Path) -> None:
    grid = make_grid(TOY, {"n": "1:300", "snr": "1:2:2"}, (0,))
    directory = RunDirectory(tmp_path, "--out")
    plan = make_plan(grid, directory, "cpu")
    assert len(plan.batches) == 300
    directory.prepare()
    execute(plan, directory, Execution(), Local(1))
    assert len(directory.load_cells()) == 600
    assert len(parts_in(tmp_path / "cells")) < 100


@pytest.mark.slow
def test_a_batch_that_kills_among_many_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its task is halved until it is alone; the others of it are done."""
    monkeypatch.setattr("overfit_cli.sweeps.worker.MOST_GROWTH", 1000)
    grid = make_grid(TOY, {"n": "1:6", "mood": "kills,well"}, (0,))
    cells: list[Cell] = [
        cell
        for cell in grid.cells()
        if (cell.parameters.model_dump()["mood"] == "kills")
        == (cell.parameters.model_dump()["n"] == 4)
    ]
    directory = RunDirectory(tmp_path / "out", "--out")
    plan = make_plan(grid, directory, "cpu", cells=cells)
    directory.prepare()
    summary = execute(plan, directory, Execution(), Local(2))
    assert summary.trained == 5
    assert summary.failed == {"worker killed": 1}
    assert summary.restarts >= CHANCES
