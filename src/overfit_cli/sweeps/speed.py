"""The speed of training: seconds per unit of `Study.cost`, and what is read off it.

A dry run measures it by probes, a sweep by its finished tasks. It gives the time that a plan takes,
the number of batches in a task, and the time left.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeAlias

import cloudpickle
from joblib.externals.loky.backend import get_context

from overfit_cli.core.cell import Cell
from overfit_cli.core.files import temporary_cache
from overfit_cli.core.parameters import describe
from overfit_cli.core.processes import start_worker
from overfit_cli.core.study import AnyStudy, Study
from overfit_cli.core.training import Execution, training_conditions
from overfit_cli.sweeps.part_file import cell_table, trajectory_table
from overfit_cli.sweeps.plan import Plan
from overfit_cli.sweeps.worker import train_all

START_SECONDS = 30.0
"""A first task that takes longer tells how long others take, whatever it imports."""


@dataclass
class Speed:
    """The time of a unit of cost in one job, from everything that was timed.

    Attributes:
        cost: of what was timed, in the unit of `Study.cost`.
        is_cold: whether only first tasks of processes count so far, which import libraries too.
    """

    cost: float = 0.0
    seconds: float = 0.0
    is_cold: bool = False

    def add(self, cost: float, seconds: float, *, is_cold: bool = False) -> None:
        """Take in what a cost took.

        First tasks of processes count until another one has ended, and only if they took so long
        that imports are little of it.
        """
        if is_cold and (seconds < START_SECONDS or (self.cost and not self.is_cold)):
            return
        if self.is_cold and not is_cold:
            self.cost = self.seconds = 0.0
        self.is_cold = is_cold
        self.cost += cost
        self.seconds += seconds

    def time(self, cost: float, jobs: int = 1, longest: float = 0.0) -> float | None:
        """Return how many seconds a cost takes; None before anything was timed.

        Args:
            longest: the cost of the longest batch, whose time more jobs don't shorten.
        """
        if self.cost <= 0:
            return None
        return max(cost / jobs, longest) * self.seconds / self.cost


TASK_SECONDS = 1.0
"""The time of a task: much more than handing it out takes, and little to lose by a kill."""

LEAST_SECONDS = 0.25
"""The least time of a task near the end: a part per cell costs more than the jobs gain."""

MOST_BATCHES = 1000
MOST_GROWTH = 4
"""A task has at most so many times the batches that are finished: a time may be off."""


def task_size(costs: Sequence[float], left: float, jobs: int, speed: Speed, finished: int) -> int:
    """Return how many of the next batches make a task: about a second's work.

    Near the end tasks are smaller, so that all jobs end together.

    Args:
        costs: of the next batches, at least one; more than `MOST_BATCHES` aren't looked at.
    """
    time_left = speed.time(left, jobs)
    if time_left is None:
        return 1
    wanted = min(TASK_SECONDS, max(LEAST_SECONDS, time_left / 2))
    limit = min(len(costs), MOST_BATCHES, MOST_GROWTH * finished)
    cost = costs[0]
    for count in range(1, limit):
        cost += costs[count]
        if (speed.time(cost) or 0.0) > wanted:
            return count
    return max(1, limit)


SHORT = 3.0
"""Seconds of a probe beside which its draws may count; it is then timed a second time."""

WHOLE = 6.0
"""Seconds in which a typical batch should end to be timed whole, and not with shortened cells only.

Shortened cells take more for what a batch does once, such as drawing its data.
"""

_BYTES_PER_PART = 12_000


@dataclass(frozen=True)
class Probe:
    """The time and memory of a few cells that were trained to measure them.

    Attributes:
        bytes_per_cell: of a cell's row, and of its logged steps, uncompressed.
        memory: the most bytes that their process has held so far; 0 where the system doesn't say.
        draws: seconds that the first training of their seed took longer than the second.
    """

    speed: Speed
    bytes_per_cell: float
    memory: float
    draws: float = 0.0


@dataclass(frozen=True)
class Estimate:
    """The estimated time, memory and disk space of a plan.

    Attributes:
        seconds: wall time for all that is left to run, and for processes to start and import what
            trains; None where no probe ended in time, and nothing else says it.
        memory: bytes, with as many cells at a time as there are jobs; None as for `disk`, of a
            study that leaves it to the probe.
        disk: bytes of part files; None where no probe ended in time.
        cut: whether the clock cut the probe of a typical batch, so that a smaller one was taken.
        longest: how long the longest batch takes, which no number of jobs can undercut; None where
            no probe ended in time.
        start: the part of `seconds` until processes train.
    """

    seconds: float | None
    memory: float | None
    disk: float | None
    cut: bool
    within: float
    longest: float | None = None
    probes: int = 1
    start: float = 0.0


MOST_BUSY = 4.0

LEAST_OF_TYPICAL = 1e-3
"""The least cost of a probe, as a part of the middle one's: less says nothing of its speed."""


def processes_per_core() -> float:
    """Return how many processes share a core with a new one: from 1 to `MOST_BUSY`."""
    try:
        load = os.getloadavg()[0] / (os.cpu_count() or 1)
    except (AttributeError, OSError):  # Windows
        return 1.0
    return min(1.0 + load, MOST_BUSY)


def estimate(
    plan: Plan, jobs: int, execution: Execution, within: float, usual: float | None = None
) -> Estimate:
    """Train a few of the plan's batches, as its study shortens them, and scale up by all's cost.

    Nothing of it is kept. Cheap batches come first, for the case that the clock cuts the others.
    Where the study doesn't know its costs, the mean of batches all over the grid counts.

    Args:
        within: seconds after which the probes are cut, on a machine that does nothing else.
        usual: seconds that the plan takes on such a machine, if that is known: these count where
            the clock cuts the probe of the middle batch.
    """
    shared = processes_per_core()
    within *= shared
    study = plan.grid.study
    costs = [cost_of(study, batch) for batch in plan.batches]
    batches, cells = len(plan.batches), [*chain.from_iterable(plan.batches)]
    busy = min(jobs, batches)
    declared = [needed for cell in cells if (needed := study.memory(cell)) is not None]
    memory = busy * max(declared) if declared else None
    spread = type(study).cost is Study.cost
    probes, needed, whole = _spread(plan) if spread else _probes(plan, costs)
    if usual is not None and not spread:  # it is a better guess than what a cheap batch tells
        probes, needed = probes[needed - 1 :], 1
    # A function may know some seeds only, and has nothing that is kept for the next cell.
    seeds = [] if spread else sorted({cell.seed for cell in cells})
    start, timed = _timed_within(study, probes, whole, seeds, execution, within)
    if usual is not None and len(timed) < needed:
        return Estimate(usual * shared, memory, None, cut=True, within=within)
    if not timed:
        return Estimate(None, memory, None, cut=True, within=within)
    last, total = timed[-1], sum(costs)
    own = [probe.speed for probe in (timed if spread else timed[needed - 1 :] or [last])]
    once, rate = once_and_rate(own)
    longest = max(speed.seconds for speed in own) if spread else once + rate * max(costs)
    seconds = once * batches + rate * total
    draws = last.draws * len(seeds) / busy if len(seeds) > 1 else 0.0
    parts = min(batches, seconds / TASK_SECONDS + 1)
    return Estimate(
        seconds=start + max(seconds / busy + draws, longest),
        memory=memory or busy * last.memory or None,
        disk=len(cells) * last.bytes_per_cell + _BYTES_PER_PART * parts,
        cut=len(timed) < needed,
        within=within,
        longest=longest,
        probes=len(timed) if spread else 1,
        start=start,
    )


def once_and_rate(timed: Sequence[Speed]) -> tuple[float, float]:
    """Return the seconds that a batch takes whatever it costs, and those of a unit of cost.

    The cheapest and the dearest of what was timed tell both, if the dearer took longer.
    """
    cheap, dear = (choose(timed, key=lambda speed: speed.cost) for choose in (min, max))
    if dear.cost > cheap.cost:
        rate = (dear.seconds - cheap.seconds) / (dear.cost - cheap.cost)
        once = dear.seconds - rate * dear.cost
        if rate > 0 and once > 0:
            return once, rate
    return 0.0, sum(speed.seconds for speed in timed) / sum(speed.cost for speed in timed)


def cost_of(study: AnyStudy, cells: Sequence[Cell]) -> float:
    """Return the cost of some cells, in the study's unit."""
    return sum(study.cost(cell) for cell in cells)


Probes: TypeAlias = tuple[list[list[Cell]], int, list[Cell]]
"""Cells to time, the least number of them, and a whole batch to time last if it takes little."""


def _probes(plan: Plan, costs: Sequence[float]) -> Probes:
    """Return the cells to time, the cheapest first, where the study knows its costs.

    These are the study's default cell, a cheap batch and the middle one. A dearer one follows, if
    the half of all cost is in batches that cost more than it: its speed is nearer to theirs.
    """
    study = plan.grid.study
    order = sorted(range(len(costs)), key=costs.__getitem__)
    halves = [*accumulate(costs[index] for index in order)]
    dear = bisect.bisect_left(halves, halves[-1] / 2)
    batches = [plan.batches[order[rank]] for rank in (len(order) // 2, dear)]
    middle, dearer = ([study.probe(cell) for cell in batch] for batch in batches)
    smaller = [[study.probe(cell) for cell in plan.batches[order[0]]]]
    if all(info.default is not None for info in describe(study.parameters).values()):
        default = Cell(study.name, study.version, study.parameters(), seed=0)
        smaller.append([study.probe(default)])
    limit = cost_of(study, middle) / 2
    least_cost = LEAST_OF_TYPICAL * limit
    cheaper = [probe for probe in smaller if least_cost <= cost_of(study, probe) < limit]
    least = [*sorted(cheaper, key=lambda probe: cost_of(study, probe)), middle]
    has_dearer = cost_of(study, dearer) > 2 * limit
    probes = [*least, dearer] if has_dearer else least
    whole = batches[has_dearer]
    return probes, len(least), whole if whole != probes[-1] else []


SPREAD = 3
"""Batches that are timed of a study that doesn't know its costs."""


def _spread(plan: Plan) -> Probes:
    """Return the cells to time if costs aren't known: the middles of parts of the grid.

    These are of one seed: batches are in the order of seeds, and then of the grid.
    """
    seed = plan.batches[0][0].seed
    of_seed = [number for number, batch in enumerate(plan.batches) if batch[0].seed == seed]
    middles = {(2 * part + 1) * len(of_seed) // (2 * SPREAD) for part in range(SPREAD)}
    numbers = [of_seed[index] for index in sorted(middles)]
    study = plan.grid.study
    probes = [[study.probe(cell) for cell in plan.batches[each]] for each in numbers]
    return probes, len(probes), []


def _timed_within(
    study: AnyStudy,
    probes: Sequence[list[Cell]],
    whole: list[Cell],
    seeds: Sequence[int],
    execution: Execution,
    within: float,
) -> tuple[float, list[Probe]]:
    """The time that a process needs to start, and the probes that end in time, one by one.

    They are timed in a process that can be ended.
    """
    began = time.monotonic()
    processes = get_context("loky")  # unlike `spawn`, it doesn't run the user's script again
    mine, theirs = processes.Pipe(duplex=False)
    execution = replace(execution, fail_fast=False)  # what a failed cell takes counts too
    arguments = (os.getpid(), theirs, cloudpickle.dumps((study, probes, whole, seeds)), execution)
    timed, first = list[Probe](), 0.0
    with temporary_cache(), mine, theirs:
        worker = processes.Process(target=_send_probes, args=arguments, daemon=True)
        worker.start()
        theirs.close()  # so that its end shows here
        try:
            # At the end of the pipe: a worker that ended, or died.
            with contextlib.suppress(EOFError):
                while mine.poll(max(0.0, began + within - time.monotonic())):
                    if (probe := mine.recv()) is None:
                        first = time.monotonic() - began
                    else:
                        timed.append(probe)
        finally:
            worker.terminate()
            worker.join()
    return max(0.0, first - timed[0].speed.seconds) if timed else 0.0, timed


def _send_probes(parent: int, out: Connection, pickled: bytes, execution: Execution) -> None:
    """Train the probes in a process of their own, and send what is found as it is found.

    None is sent first, when the first one has been trained once: that pays for imports.
    """
    start_worker(parent)
    study, probes, whole, seeds = cloudpickle.loads(pickled)
    with training_conditions():
        list(train_all(study, probes[0], execution))
        out.send(None)
        for number, probe in enumerate(probes, start=1):
            out.send(timed := _timed(study, _of_seed(probe, seeds, number), execution))
        if whole and (timed.speed.time(cost_of(study, whole)) or 0.0) <= WHOLE:
            out.send(_timed(study, _of_seed(whole, seeds, len(probes) + 1), execution))


def _of_seed(cells: list[Cell], seeds: Sequence[int], number: int) -> list[Cell]:
    """Cells of one seed with another one of the plan's, whose draws aren't made yet, if it can."""
    if len({cell.seed for cell in cells}) > 1 or len(seeds) < 2:
        return cells
    return [replace(cell, seed=seeds[number % len(seeds)]) for cell in cells]


def _timed(study: AnyStudy, cells: list[Cell], execution: Execution) -> Probe:
    """Train a probe in this process; a short one twice, because the first pays for draws."""
    seconds = first = 0.0
    for _ in range(2):
        first = seconds
        began, computed, waited = time.perf_counter(), time.thread_time(), _seconds_waited()
        results = list(train_all(study, cells, execution))
        seconds = time.perf_counter() - began
        if waited is not None:
            # How long it waited just now is chance: others' share of the core on average counts.
            seconds -= (_seconds_waited() or waited) - waited
            seconds += (time.thread_time() - computed) * (processes_per_core() - 1)
        if seconds > SHORT:
            break
    written = cell_table(study, results).nbytes + trajectory_table(study, results).nbytes
    return Probe(
        speed=Speed(cost_of(study, cells), seconds),
        bytes_per_cell=written / len(cells),
        memory=_most_memory(),
        draws=max(0.0, first - seconds),
    )


def _seconds_waited() -> float | None:
    """Return how long this thread has waited for a core; None if the system doesn't say."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/thread-self/schedstat").read_bytes().split()[1]) / 1e9
    return None


def _most_memory() -> float:
    """The most bytes that this process has held; 0 where the system doesn't say."""
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
