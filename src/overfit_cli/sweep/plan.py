"""What a sweep will do before it does it: which cells are there, which run, in which batches."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Literal

from overfit_cli.cache import temporary_cache
from overfit_cli.errors import UserError
from overfit_cli.study import Cell, CellResult, Execution, Study
from overfit_cli.sweep.grid import Grid
from overfit_cli.sweep.schema import cell_table
from overfit_cli.sweep.store import RunDirectory


@dataclass(frozen=True)
class Plan:
    """A sweep before it runs.

    Attributes:
        grid: what it covers.
        cells: all of the grid's cells.
        batches: the cells that will run, as they are trained together.
        done: how many cells are there already.
        failed: how many are there as failed and are left so.
        again: keys that are there and will run again.
        stale: how many cells of an earlier numerical version lie in the directory.
    """

    grid: Grid
    cells: list[Cell]
    batches: list[list[Cell]]
    done: int
    failed: int
    again: frozenset[str]
    stale: int

    @property
    def to_run(self) -> int:
        """The number of cells that will run."""
        return sum(len(batch) for batch in self.batches)


def make_plan(
    grid: Grid,
    directory: RunDirectory,
    device: Literal["cpu", "cuda"],
    *,
    cells: list[Cell] | None = None,
    fresh: bool = False,
    retry_failed: bool = False,
    trajectories: bool = False,
) -> Plan:
    """Compare a grid with what the directory holds.

    Args:
        grid: the grid.
        directory: where its cells are or will be.
        device: what it will be trained on.
        cells: which cells, where they aren't the grid's.
        fresh: run every cell again.
        retry_failed: run the failed ones again.
        trajectories: run those again that have no trajectory.

    Raises:
        UserError: if the directory holds another study, or a cell can't fit this machine.
    """
    other = directory.study_name()
    if other not in (None, grid.study.name):
        raise UserError(
            f"{directory.flag} {directory.path}: it holds cells of {other}, not of "
            f"{grid.study.name}; name another directory."
        )
    cells = grid.cells() if cells is None else cells
    if device == "cpu":
        _check_memory(grid, cells)
    there = directory.statuses()
    logged = directory.logged_keys() if trajectories else set()

    def runs(cell: Cell) -> bool:
        status = there.get(cell.key, ("missing", 0))[0]
        unlogged = trajectories and status == "done" and cell.key not in logged
        return status == "missing" or fresh or unlogged or (retry_failed and status == "failed")

    chosen = [cell for cell in cells if runs(cell)]
    kept = [there[cell.key][0] for cell in cells if not runs(cell)]
    return Plan(
        grid=grid,
        cells=cells,
        batches=grid.study.batches(chosen, device),
        done=kept.count("done"),
        failed=kept.count("failed"),
        again=frozenset(cell.key for cell in chosen if cell.key in there),
        stale=sum(version != grid.study.version for _, version in there.values()),
    )


LONG = 20.0
"""Seconds of a probe beside which imports and draws don't count."""


@dataclass(frozen=True)
class Estimate:
    """What a plan will take, from one timed probe.

    Attributes:
        seconds: wall time for all that is left to run.
        memory: bytes, with as many cells at a time as there are jobs.
        disk: bytes of part files.
    """

    seconds: float
    memory: float
    disk: float


def estimate(plan: Plan, jobs: int, device: Literal["cpu", "cuda"]) -> Estimate:
    """Train the plan's middle batch, as its study shortens it, and scale up by all batches' cost.

    Nothing of it is kept. A short batch is trained twice, because the first run pays for imports
    and draws.
    """
    study = plan.grid.study
    cells = [cell for batch in plan.batches for cell in batch]
    costs = [sum(study.cost(cell) for cell in batch) for batch in plan.batches]
    middle = sorted(range(len(costs)), key=costs.__getitem__)[len(costs) // 2]
    probe = [study.probe(cell) for cell in plan.batches[middle]]
    execution = Execution(device=device)
    with temporary_cache():
        seconds, results = _timed(study, probe, execution)
    if seconds < LONG:
        with temporary_cache():
            seconds, results = _timed(study, probe, execution)
    work = sum(costs) / sum(study.cost(cell) for cell in probe)
    busy = min(jobs, len(plan.batches))
    return Estimate(
        seconds=seconds * work / busy,
        memory=busy * max(study.memory(cell) for cell in cells),
        disk=len(cells) * cell_table(study, results).nbytes / len(probe)
        + 12_000 * len(plan.batches),
    )


def _timed(study: Study, probe: list[Cell], execution: Execution) -> tuple[float, list[CellResult]]:
    began = time.perf_counter()
    results = list(study.train(probe, execution))
    return time.perf_counter() - began, results


def _check_memory(grid: Grid, cells: list[Cell]) -> None:
    largest = max(cells, key=grid.study.memory)
    needed, present = grid.study.memory(largest), _physical_memory()
    if present is not None and needed > present:
        raise UserError(
            f"{_as_set(grid, largest)}: a cell needs about {needed / 1e9:.3g} GB and this machine "
            f"has {present / 1e9:.3g}; smaller values are accepted."
        )


def _as_set(grid: Grid, cell: Cell) -> str:
    """What was asked for of a cell, as it was written."""
    values = cell.parameters.model_dump()
    flags = {name: grid.flags.get(name, f"--set {name}") for name in grid.values}
    return ", ".join(f"{flag} {values[name]}" for name, flag in flags.items()) or "The defaults"


def _physical_memory() -> float | None:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None
