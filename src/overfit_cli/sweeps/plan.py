"""The plan of a sweep: which cells are there, which will run, in which batches and how long.

A shard is the part of a sweep that one machine runs.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import hashlib
import itertools
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from overfit_cli.core.cell import Cell
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.parameters import Value
from overfit_cli.core.processes import Interrupted, alarm
from overfit_cli.core.registry import blaming
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import plural
from overfit_cli.core.training import Device, Execution, training_conditions
from overfit_cli.functions.source import is_earlier
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.part import cell_table, change_of, parameter_types, trajectory_table
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import train_all


@dataclass(frozen=True)
class Plan:
    """A sweep before it runs.

    Attributes:
        cells: all of the grid's cells.
        batches: the cells that will run, as they are trained together.
        failed: how many are there as failed and are left so.
        again: how many are there and will run again.
        stale: how many cells of an earlier numerical version lie in the directory.
        of_other_source: how many of the cells that are kept were trained by other code.
        before_digest: how many of them were trained before the digest of code changed.
        parameters_changed: how a function's parameters have changed since it was last run there.
    """

    grid: Grid
    cells: list[Cell]
    batches: list[list[Cell]]
    done: int
    failed: int
    again: int
    stale: int
    of_other_source: int = 0
    before_digest: int = 0
    parameters_changed: str = ""
    shard: Shard | None = None

    def __repr__(self) -> str:
        """Write it in a line: how many cells of what, and how many will run."""
        cells = f"{plural(len(self.cells), 'cell')} of {self.grid.study.name}"
        return f"<Plan of {cells}: {self.to_run} to run>"

    @functools.cached_property
    def costs(self) -> list[float]:
        """The cost of each batch, in the study's unit."""
        return [sum(map(self.grid.study.cost, batch)) for batch in self.batches]

    @property
    def to_run(self) -> int:
        """The number of cells that will run."""
        return sum(len(batch) for batch in self.batches)


def make_plan(
    grid: Grid,
    directory: RunDirectory,
    device: Device,
    *,
    cells: list[Cell] | None = None,
    fresh: bool = False,
    retry_failed: bool = False,
    trajectories: bool = False,
    shard: Shard | None = None,
) -> Plan:
    """Compare a grid with what the directory holds.

    Args:
        trajectories: run those again that have no trajectory.
    """
    trajectories = trajectories and grid.study.has_steps
    directory.check_study(grid.study)
    parameters_changed = _compare_function(grid.study, directory)
    if cells is None:
        cells = grid.cells()
    if shard is not None:
        with blaming(grid.study, "the cost of a cell"):
            cells = shard.cells_of(cells, grid.study.cost)
    if device == "cpu" and cells:  # a shard may have none
        with blaming(grid.study, "the memory of a cell"):
            _check_memory(grid, cells)
    contents = directory.contents(trajectories=trajectories)
    stored = contents.reindex([cell.key for cell in cells])  # nothing but gaps for one that lacks
    is_there, is_failed = stored["status"].notna(), stored["status"].eq("failed")
    redone = is_failed & retry_failed | ~is_failed & stored["logged"].ne(True) & trajectories
    stays = is_there & ~redone & (not fresh)
    chosen = [cell for cell, kept in zip(cells, stays, strict=True) if not kept]
    statuses, sources = Counter(stored["status"][stays]), stored["source"][stays]
    before, own = sources.map(is_earlier).astype(bool), grid.study.identity.source
    return Plan(
        grid=grid,
        cells=cells,
        batches=_batches(grid.study, chosen, device),
        done=statuses["done"],
        failed=statuses["failed"],
        again=int((is_there & ~stays).sum()),
        stale=int((contents["version"] != grid.study.version).sum()),
        parameters_changed=parameters_changed,
        of_other_source=int((sources.ne("") & sources.ne(own) & ~before).sum()) if own else 0,
        before_digest=int(before.sum()),
        shard=shard,
    )


def _compare_function(study: AnyStudy, directory: RunDirectory) -> str:
    """How a function's parameters have changed; another file of the same name is refused."""
    manifest, present = directory.manifest, study.identity.function
    if manifest.function is None or present is None:
        return ""
    references = (manifest.function.reference, present.reference)
    earlier, now = (Path(reference.rpartition(":")[0]) for reference in references)
    changed = bool(manifest.runs) and manifest.runs[-1].source != study.identity.source
    if changed and earlier.is_file() and now.is_file() and not earlier.samefile(now):
        raise directory.error(
            f"it holds cells of {earlier}, which is another file than {now}; name another "
            "directory."
        )
    return change_of(*(parameter_types(one.parameters) for one in (manifest.function, present)))


def _batches(study: AnyStudy, cells: list[Cell], device: Device) -> list[list[Cell]]:
    with blaming(study, "making batches"):
        batches = [list(batch) for batch in study.batches(cells, device)]
    batched = sorted(cell.key for batch in batches for cell in batch)
    if batched != sorted(cell.key for cell in cells):
        raise UserError(
            f"The study {study.name!r} puts a cell into no batch, or into more than one."
        )
    return [batch for batch in batches if batch]


def _check_memory(grid: Grid, cells: list[Cell]) -> None:
    """Refuse a cell that needs more memory than this machine has, where both are known."""
    try:
        present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return
    largest = max(cells, key=lambda cell: grid.study.memory(cell) or 0.0)
    if (needed := grid.study.memory(largest) or 0.0) > present:
        values = largest.parameters.model_dump()
        at = ", ".join(f"{name} {values[name]}" for name in grid.values) or "The defaults"
        raise UserError(
            f"{at}: a cell needs about {needed / 1e9:.3g} GB and this machine has "
            f"{present / 1e9:.3g}; smaller values are accepted."
        )


# Shards

MOST_SHARDS = 100_000


@dataclass(frozen=True)
class Shard:
    """One part of several.

    Attributes:
        number: which, from 1.
    """

    number: int
    of: int

    @classmethod
    def read(cls, text: str) -> Shard:
        """Return the shard that a text names, such as `2/8`."""
        # No longer numbers: `int` would take thousands of digits.
        found = re.fullmatch(r"(\d{1,8})/(\d{1,8})", text, re.ASCII)
        number, count = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= count <= MOST_SHARDS:
            raise BadValue("shard", text, "it takes I/N, such as 2/8: the second of eight parts.")
        return cls(number, count)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def cells_of(self, cells: Sequence[Cell], cost: Callable[[Cell], float]) -> list[Cell]:
        """Return this shard's cells, in their order.

        Cells are dealt out by falling cost, one to each shard and then back again, whether they are
        finished or not: so each machine finds the same parts whenever it looks. Of the same cost,
        neighbours in the grid go to different shards; who is first is drawn anew each time. So what
        is missing falls to all alike, and so do costs that nobody knows, such as a function's.

        Args:
            cells: of the whole sweep, in the same order for all shards.
        """
        costs = [cost(cell) for cell in cells]
        falling = sorted(range(len(cells)), key=lambda index: -costs[index])
        ranks = list[int]()
        for start in range(0, len(falling), 2 * self.of):
            index = self._place(start)
            ranks += [start + index, start + 2 * self.of - 1 - index]
        chosen = sorted(falling[rank] for rank in ranks if rank < len(falling))
        return [cells[rank] for rank in chosen]

    def _place(self, turn: int) -> int:
        """Its place from 0 in a turn, drawn by a hash: the same with every version of Python."""
        drawn = {
            number: hashlib.sha256(f"{number}/{self.of} {turn}".encode()).digest()
            for number in range(1, self.of + 1)
        }
        return sorted(drawn, key=drawn.__getitem__).index(self.number)


# The order of batches


EARLY = 0.5
"""The share of all cost that goes coarse to fine."""

LONG = 0.25
"""The share of a job's cost from which a batch is long: started late, it would end alone."""


def diagram_axes(grid: Grid) -> tuple[str, str] | None:
    """Return the two axes with the most numbers, as (up, across); of equally long ones the first.

    None where there are no two.
    """
    axes = {name: grid.axes[name] for name in grid.free_axes}
    numeric = [name for name in axes if not any(isinstance(v, str | bool) for v in axes[name])]
    longest = sorted(numeric, key=lambda name: -len(axes[name]))[:2]
    if len(longest) < 2:
        return None
    up, across = (name for name in numeric if name in longest)
    return up, across


def coarse_to_fine(plan: Plan, jobs: int) -> list[list[Cell]]:
    """Return a plan's batches in the order to start them.

    Long batches come first. Seed by seed follow the corners of the grid, then the places halfway
    between those that are there, pass by pass, up to a half of all cost; from there it is the
    study's order, in which cheap batches are last, so that all jobs end together. Without two axes
    of numbers, or with cells between the points of the grid, all go in the study's order.
    """
    axes = diagram_axes(plan.grid)
    if axes is None:
        return plan.batches
    depths = [(name, _depths(plan.grid.axes[name])) for name in axes]
    ranks = {seed: rank for rank, seed in enumerate(plan.grid.seeds)}
    costs, total = plan.costs, sum(plan.costs)

    def pass_of(cell: Cell) -> tuple[int, int]:
        up, across = (depth[getattr(cell.parameters, name)] for name, depth in depths)
        # Between four places their centre comes first, then the middles of their edges.
        return ranks[cell.seed], 2 * max(up, across) + (up != across)

    def place(index: int) -> tuple[bool, tuple[int, int]]:
        return costs[index] * jobs <= LONG * total, min(map(pass_of, plan.batches[index]))

    try:
        order = sorted(range(len(costs)), key=place)
    except KeyError:  # a cell between the points of the grid
        return plan.batches
    spent = itertools.accumulate(costs[index] for index in order)
    early = sum(cost <= EARLY * total for cost in spent)
    return [plan.batches[index] for index in (*order[:early], *sorted(order[early:]))]


def _depths(values: Sequence[Value]) -> dict[Value, int]:
    """Return how often a range is halved until it comes to each number; its ends have 0."""
    depths, depth = {0: 0, len(values) - 1: 0}, 0
    while len(depths) < len(values):
        depth += 1
        gaps = itertools.pairwise(sorted(depths))
        depths |= {(low + high) // 2: depth for low, high in gaps if high - low > 1}
    return {value: depths[place] for place, value in enumerate(sorted(values))}


# Time


START_SECONDS = 30.0
"""A first task that takes longer tells how long others take, whatever it imports."""


@dataclass
class Speed:
    """The time of a unit of cost in one job, from everything that was timed.

    Attributes:
        cost: of what was timed, in the unit of `Study.cost`.
    """

    cost: float = 0.0
    seconds: float = 0.0

    def add(self, cost: float, seconds: float, *, is_cold: bool = False) -> None:
        """Take in what a cost took.

        The first task of a process counts only if it took so long that imports are little of it.
        """
        if not is_cold or seconds >= START_SECONDS:
            self.cost += cost
            self.seconds += seconds

    def time(self, cost: float, jobs: int = 1) -> float | None:
        """Return how many seconds a cost takes; None before anything was timed."""
        return cost / jobs * self.seconds / self.cost if self.cost > 0 else None


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


_BYTES_PER_PART = 12_000
"""A part holds about a second's cells."""


@dataclass(frozen=True)
class Estimate:
    """The estimated time, memory and disk space of a plan; None for what isn't known.

    Attributes:
        seconds: wall time of all that is left to run, with the imports of what trains.
        memory: bytes, with as many cells at a time as there are jobs, as the study says.
        disk: bytes of part files.
        is_longest: whether it is the time of the longest batch, which no number of jobs undercuts.
    """

    seconds: float | None
    memory: float | None
    disk: float | None = None
    is_longest: bool = False


class _TimeOver(Interrupted):
    """The end of a timed batch: like an interrupt, it is no result of a cell."""


def estimate(plan: Plan, jobs: int, execution: Execution, within: float) -> Estimate:
    """Train one of the plan's batches here, as its study shortens it, and scale by the costs.

    It is the batch that has a half of all cost in cheaper ones. Nothing of it is kept.

    Args:
        within: seconds after which it is cut; time and disk space aren't known then.
    """
    study, costs = plan.grid.study, plan.costs
    order = sorted(range(len(costs)), key=costs.__getitem__)
    spent = [*itertools.accumulate(costs[index] for index in order)]
    middle = plan.batches[order[bisect.bisect_left(spent, spent[-1] / 2)]]
    probe, took = [study.probe(cell) for cell in middle], list[float]()
    execution = replace(execution, fail_fast=False, time_limit=None)  # one clock at a time
    deadline = time.monotonic() + within
    with contextlib.suppress(_TimeOver), training_conditions(), alarm(deadline, _TimeOver):
        for _ in range(2):  # the first time it imports what trains, and fills the cache
            began = time.perf_counter()
            results = list(train_all(study, probe, execution))
            took.append(time.perf_counter() - began)
    busy, cells = min(jobs, len(costs)), list(itertools.chain(*plan.batches))
    memory = busy * max(study.memory(cell) or 0.0 for cell in cells) or None
    if not took:
        return Estimate(None, memory)
    rate = took[-1] / (sum(map(study.cost, probe)) or 1.0)
    work, longest = rate * sum(costs) / busy, rate * max(costs)
    bytes_of_probe = cell_table(study, results).nbytes + trajectory_table(study, results).nbytes
    parts = min(len(costs), work * busy + 1)
    return Estimate(
        max(0.0, took[0] - took[-1]) + max(work, longest),
        memory,
        len(cells) / len(probe) * bytes_of_probe + _BYTES_PER_PART * parts,
        is_longest=longest >= 0.999 * work and len(costs) > 1,
    )
