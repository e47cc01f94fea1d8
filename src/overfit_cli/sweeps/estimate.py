"""Estimates of what a plan will take, from timed probes that the clock can cut."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

import cloudpickle

from overfit_cli.cache import temporary_cache
from overfit_cli.parameters import Value, describe
from overfit_cli.study import AnyStudy, Cell
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.plan import Plan
from overfit_cli.sweeps.processes import start_worker
from overfit_cli.sweeps.results import train_all
from overfit_cli.sweeps.rows import cell_table
from overfit_cli.sweeps.tasks import SECONDS
from overfit_cli.training import Device, Execution, training_conditions

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
        memory: the most bytes that their process has held so far; 0 where the system doesn't say.
    """

    work: float
    seconds: float
    bytes_per_cell: float
    memory: float


@dataclass(frozen=True)
class Estimate:
    """What a plan will take.

    Attributes:
        seconds: wall time for all that is left to run; None where no probe ended in time.
        memory: bytes, with as many cells at a time as there are jobs; None as for `seconds`, of a
            study that leaves it to the probe.
        disk: bytes of part files; None as for `seconds`.
        cut: whether the clock cut the probe of a typical batch, so that a smaller one was taken.
        longest: how long the longest batch takes, which no number of jobs can undercut; None as for
            `seconds`.
    """

    seconds: float | None
    memory: float | None
    disk: float | None
    cut: bool
    longest: float | None = None


def estimate(plan: Plan, jobs: int, device: Device, within: float) -> Estimate:
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
    known = [needed for cell in batched if (needed := study.memory(cell)) is not None]
    memory = busy * max(known) if known else None
    seconds = disk = longest = None
    if timed:
        last = timed[-1]
        per_work = last.seconds / last.work
        alone, longest = per_work * sum(costs) / plan.share, per_work * max(costs)
        parts = min(plan.of_all(len(plan.batches)), alone / SECONDS + 1)
        disk = plan.of_all(len(batched)) * last.bytes_per_cell + _BYTES_PER_PART * parts
        seconds = max(alone / busy, longest)
        memory = memory or busy * last.memory or None
    return Estimate(seconds, memory, disk, cut=len(timed) < len(probes), longest=longest)


def _probes(plan: Plan, costs: Sequence[float], device: Device) -> list[list[Cell]]:
    """What to time, the cheapest first: the study's default cell, a cheap batch, the middle one."""
    study = plan.grid.study
    order = sorted(range(len(costs)), key=costs.__getitem__)
    typical = plan.batches[order[len(order) // 2]]
    if plan.share < 1:
        typical = _batch_of(typical[0], plan.grid, device)
    middle = [study.probe(cell) for cell in typical]
    smaller = [[study.probe(cell) for cell in plan.batches[order[0]]]]
    if all(info.default is not None for info in describe(study.parameters).values()):
        default = Cell(study.name, study.version, study.parameters(), seed=0)
        smaller.append([study.probe(default)])
    limit = _work(study, middle) / 2
    cheaper = [probe for probe in smaller if _work(study, probe) < limit]
    return [*sorted(cheaper, key=lambda probe: _work(study, probe)), middle]


def _batch_of(cell: Cell, grid: Grid, device: Device) -> list[Cell]:
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


def _work(study: AnyStudy, cells: Sequence[Cell]) -> float:
    return sum(study.cost(cell) for cell in cells)


def _timed_within(
    study: AnyStudy, probes: Sequence[list[Cell]], device: Device, within: float
) -> list[Probe]:
    """The probes that end in time, each after the one before, in a process that can be ended."""
    deadline = time.monotonic() + within
    processes = multiprocessing.get_context("spawn")
    mine, theirs = processes.Pipe(duplex=False)
    arguments = (os.getpid(), theirs, cloudpickle.dumps((study, probes)), device)
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


def _send_probes(parent: int, out: Connection, pickled: bytes, device: Device) -> None:
    """Train the probes in a process of their own, and send what is found as it is found."""
    start_worker(parent)
    study, probes = cloudpickle.loads(pickled)
    with training_conditions():
        _timed(study, probes[0], device)  # it pays for imports
        for probe in probes:
            out.send(_timed(study, probe, device))


def _timed(study: AnyStudy, cells: list[Cell], device: Device) -> Probe:
    """Train a probe in this process; a short one twice, because the first pays for draws."""
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
        memory=_most_memory(),
    )


def _most_memory() -> float:
    """The most bytes that this process has held; 0 where the system doesn't say."""
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
