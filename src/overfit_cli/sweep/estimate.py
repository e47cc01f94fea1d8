"""Estimates of what a plan will take, from timed probes that the clock can cut."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Literal

from overfit_cli.cache import temporary_cache
from overfit_cli.parameters import Value
from overfit_cli.study import Cell, Execution, Study, find_study
from overfit_cli.sweep.grid import Grid
from overfit_cli.sweep.plan import Plan
from overfit_cli.sweep.schema import cell_table
from overfit_cli.sweep.worker import start_worker, train_all

SHORT = 1.0
"""Seconds of a probe beside which its draws count; it is then timed a second time."""

NEIGHBOURS = 200
_BYTES_PER_PART = 12_000


@dataclass(frozen=True)
class Probe:
    """A few cells that were trained to see how long it takes.

    Attributes:
        work: their cost, in the study's unit.
        seconds: what they took.
        bytes_per_cell: what a cell's row takes, uncompressed.
    """

    work: float
    seconds: float
    bytes_per_cell: float


@dataclass(frozen=True)
class Estimate:
    """What a plan will take.

    Attributes:
        seconds: wall time for all that is left to run; None where no probe ended in time.
        memory: bytes, with as many cells at a time as there are jobs.
        disk: bytes of part files; None as for `seconds`.
        cut: whether the clock cut the probe of a typical batch, so that a smaller one was taken.
    """

    seconds: float | None
    memory: float
    disk: float | None
    cut: bool


def estimate(plan: Plan, jobs: int, device: Literal["cpu", "cuda"], within: float) -> Estimate:
    """Train the plan's middle batch, as its study shortens it, and scale up by all batches' cost.

    Nothing of it is kept. Smaller probes come first, for the case that the clock cuts it.

    Args:
        plan: something to run.
        jobs: how many batches run at a time.
        device: what they run on.
        within: seconds after which a probe is cut.
    """
    study = plan.grid.study
    costs = [_work(study, batch) for batch in plan.batches]
    batched = [cell for batch in plan.batches for cell in batch]
    probes = _probes(plan, costs, device)
    timed = _timed_within(study, probes, device, within)
    busy = min(jobs, plan.of_all(len(plan.batches)))
    seconds = disk = None
    if timed:
        seconds = timed[-1].seconds / timed[-1].work * plan.of_all(sum(costs)) / busy
        # Of an outline the cells lie far apart, and its batches are no measure of the sweep's.
        parts = len(plan.batches) if plan.share == 1 else 0
        disk = plan.of_all(len(batched)) * timed[-1].bytes_per_cell + _BYTES_PER_PART * parts
    memory = busy * max(study.memory(cell) for cell in batched)
    return Estimate(seconds, memory, disk, cut=len(timed) < len(probes))


def _probes(plan: Plan, costs: Sequence[float], device: Literal["cpu", "cuda"]) -> list[list[Cell]]:
    """What to time, the cheapest first: the study's default cell, a cheap batch, the middle one."""
    study = plan.grid.study
    order = sorted(range(len(costs)), key=costs.__getitem__)
    typical = plan.batches[order[len(order) // 2]]
    if plan.share < 1:
        typical = _batch_of(typical[0], plan.grid, device)
    middle = [study.probe(cell) for cell in typical]
    default = Cell(study.name, study.version, study.parameters(), seed=0)
    smaller = [[study.probe(default)], [study.probe(cell) for cell in plan.batches[order[0]]]]
    limit = _work(study, middle) / 2
    cheaper = [probe for probe in smaller if _work(study, probe) < limit]
    return [*sorted(cheaper, key=lambda probe: _work(study, probe)), middle]


def _batch_of(cell: Cell, grid: Grid, device: Literal["cpu", "cuda"]) -> list[Cell]:
    """The batch that a cell would be in, from its neighbours along the longest axis.

    An outline's own batches are of cells that lie far apart, and share less.
    """
    name = max(grid.axes, key=lambda axis: len(grid.axes[axis]), default="")
    own: dict[str, tuple[Value, ...]] = {
        axis: (getattr(cell.parameters, axis),) for axis in grid.values
    }
    if name:
        at = grid.values[name].index(own[name][0])
        own[name] = grid.values[name][max(0, at - NEIGHBOURS) : at + NEIGHBOURS]
    row = replace(grid, values=own, seeds=(cell.seed,)).cells()
    return next(batch for batch in grid.study.batches(row, device) if cell in batch)


def _work(study: Study, cells: Sequence[Cell]) -> float:
    return sum(study.cost(cell) for cell in cells)


def _timed_within(
    study: Study, probes: Sequence[list[Cell]], device: str, within: float
) -> list[Probe]:
    """The probes that end in time, each after the one before, in a process that can be ended."""
    deadline = time.monotonic() + within
    processes = multiprocessing.get_context("spawn")
    mine, theirs = processes.Pipe(duplex=False)
    arguments = (os.getpid(), theirs, study.name, probes, device)
    timed = list[Probe]()
    with temporary_cache(), mine, theirs:
        worker = processes.Process(target=_send_probes, args=arguments, daemon=True)
        worker.start()
        theirs.close()  # so that its end shows here
        try:
            # At the end of the pipe: a worker that died.
            with contextlib.suppress(EOFError):
                while len(timed) < len(probes) and mine.poll(max(0.0, deadline - time.monotonic())):
                    timed.append(mine.recv())
        finally:
            worker.kill()
            worker.join()
    return timed


def _send_probes(
    parent: int, out: Connection, study_name: str, probes: Sequence[list[Cell]], device: str
) -> None:
    """Train the probes in a process of their own, and send what is found as it is found."""
    start_worker(parent)
    _timed(study_name, probes[0], device)  # it pays for imports
    for probe in probes:
        out.send(_timed(study_name, probe, device))


def _timed(study_name: str, cells: list[Cell], device: str) -> Probe:
    """Train a probe in this process; a short one twice, because the first pays for draws."""
    study = find_study(study_name)
    execution = Execution(device=device)
    seconds = 0.0
    for _ in range(2):
        began = time.perf_counter()
        results = list(train_all(study, cells, execution))
        seconds = time.perf_counter() - began
        if seconds > SHORT:
            break
    return Probe(
        work=_work(study, cells),
        seconds=seconds,
        bytes_per_cell=cell_table(study, results).nbytes / len(cells),
    )
