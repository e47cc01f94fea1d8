"""The plan of a sweep: which cells are there, which will run, in which batches.

What it will take is estimated from timed probes, which a time limit can cut.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path

import cloudpickle

from overfit_cli.core.cell import Cell
from overfit_cli.core.files import temporary_cache
from overfit_cli.core.parameters import Value, describe
from overfit_cli.core.processes import start_worker
from overfit_cli.core.registry import blaming
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import UserError
from overfit_cli.core.training import Device, Execution, training_conditions
from overfit_cli.functions.experiment import FunctionRecord
from overfit_cli.sweeps.grid import Grid, Shard
from overfit_cli.sweeps.manifest import Run, read_manifest
from overfit_cli.sweeps.part_file import cell_table, change_of
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import SECONDS, train_all

MOST_CELLS_OUTLINED = 50_000
MOST_PARTS_OUTLINED = 4_000


@dataclass(frozen=True)
class Plan:
    """A sweep before it runs.

    Attributes:
        grid: what it covers.
        cells: all of the grid's cells; of an outline, those that were looked at.
        batches: the cells that will run, as they are trained together.
        done: how many cells are there already.
        failed: how many are there as failed and are left so.
        again: keys that are there and will run again.
        stale: how many cells of an earlier numerical version lie in the directory.
        of_other_source: how many of the cells that are kept were trained by other code.
        parameters_changed: how a function's parameters have changed since it was last run there.
        share: how many of all cells were looked at, from 0 to 1; below 1 in an outline only.
        shard: which part of the grid its cells are; None where they are all of it.
    """

    grid: Grid
    cells: list[Cell]
    batches: list[list[Cell]]
    done: int
    failed: int
    again: frozenset[str]
    stale: int
    of_other_source: int = 0
    parameters_changed: str = ""
    share: float = 1.0
    shard: Shard | None = None

    @property
    def to_run(self) -> int:
        """The number of cells that will run."""
        return sum(len(batch) for batch in self.batches)

    def of_all(self, count: float) -> int:
        """Return about how many of all cells a number of those looked at stands for."""
        return round(count / self.share)


def make_plan(
    grid: Grid,
    directory: RunDirectory,
    device: Device,
    *,
    cells: list[Cell] | None = None,
    fresh: bool = False,
    retry_failed: bool = False,
    trajectories: bool = False,
    outlined: bool = False,
    shard: Shard | None = None,
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
        outlined: of a large grid and a large directory look at a part only, chosen at random; the
            plan's numbers are then of that part, and about what is there and what is to run.
        shard: plan this part of the cells only.

    Raises:
        UserError: if the directory holds another study, or a cell can't fit this machine.
    """
    grid.check()
    trajectories = trajectories and grid.study.has_steps
    most = MOST_PARTS_OUTLINED if outlined else None
    _check_study(grid, directory, most)
    parameters_changed = _compare_function(grid.study, directory)
    whole = grid.size if cells is None else len(cells)
    if cells is None:
        cells = (grid.thinned(MOST_CELLS_OUTLINED) if outlined else grid).cells()
    share = len(cells) / whole
    if shard is not None:
        with blaming(grid.study, "the cost of a cell"):
            cells = shard.cells_of(cells, grid.study.cost)
    if device == "cpu":
        with blaming(grid.study, "the memory of a cell"):
            _check_memory(grid, cells)
    there = directory.contents(trajectories=trajectories, most=most)
    stays = [there.stays(cell.key, fresh, retry_failed, trajectories) for cell in cells]
    chosen = [cell for cell, kept in zip(cells, stays, strict=True) if not kept]
    left = [there.cells[cell.key] for cell, kept in zip(cells, stays, strict=True) if kept]
    statuses = Counter(known.status for known in left)
    stale = sum(known.version != grid.study.version for known in there.cells.values())
    done, failed = (round(statuses[status] / there.share) for status in ("done", "failed"))
    if there.share < 1:  # most of what wasn't found lies in the parts that weren't looked at
        to_run = max(0, len(cells) - done - failed)
        chosen = random.Random(0).sample(chosen, min(to_run, len(chosen)))
    return Plan(
        grid=grid,
        cells=cells,
        batches=_batches(grid.study, chosen, device),
        done=min(done, len(cells)),
        failed=failed,
        again=frozenset(cell.key for cell in chosen if cell.key in there.cells),
        stale=round(stale / there.share),
        parameters_changed=parameters_changed,
        of_other_source=sum(known.is_of_other_source(grid.study.identity.source) for known in left),
        share=share,
        shard=shard,
    )


def _compare_function(study: AnyStudy, directory: RunDirectory) -> str:
    """How a function's parameters aren't those that it had in a directory; empty if they are.

    Raises:
        UserError: if the directory has cells of another file of its name.
    """
    manifest = read_manifest(directory.path)
    if manifest is None or manifest.function is None or study.identity.function is None:
        return ""
    _check_file(study, manifest.function, manifest.runs, directory)
    return change_of(manifest.function, study.identity.function)


def _batches(study: AnyStudy, cells: list[Cell], device: Device) -> list[list[Cell]]:
    """The study's batches, if each cell is in one of them."""
    with blaming(study, "making batches"):
        batches = [list(batch) for batch in study.batches(cells, device)]
    batched = sorted(cell.key for batch in batches for cell in batch)
    if batched != sorted(cell.key for cell in cells):
        raise UserError(f"The study {study.name!r} puts a cell into no batch, or into several.")
    return [batch for batch in batches if batch]


def _check_study(grid: Grid, directory: RunDirectory, most_parts: int | None) -> None:
    other = directory.study_name(most_parts)
    if other not in (None, grid.study.name):
        raise directory.error(
            f"it holds cells of {other}, not of {grid.study.name}; name another directory."
        )


def _check_file(
    study: AnyStudy, before: FunctionRecord, runs: Sequence[Run], directory: RunDirectory
) -> None:
    """Refuse cells of another file of the same name."""
    records = (before, study.identity.function)
    earlier, present = (Path(record.reference.rpartition(":")[0]) for record in records)
    changed = bool(runs) and runs[-1].source != study.identity.source
    if changed and earlier.is_file() and present.is_file() and not earlier.samefile(present):
        raise directory.error(
            f"it holds cells of {earlier}, which is another file than {present}; name another "
            "directory."
        )


def _check_memory(grid: Grid, cells: list[Cell]) -> None:
    if not cells:  # of a shard that has none
        return
    largest = max(cells, key=lambda cell: grid.study.memory(cell) or 0.0)
    needed, present = grid.study.memory(largest), _physical_memory()
    if needed is not None and present is not None and needed > present:
        raise UserError(
            f"{_as_set(grid, largest)}: a cell needs about {needed / 1e9:.3g} GB and this machine "
            f"has {present / 1e9:.3g}; smaller values are accepted."
        )


def _as_set(grid: Grid, cell: Cell) -> str:
    """What was asked for of a cell, as it was written."""
    values = cell.parameters.model_dump()
    return ", ".join(f"{name} {values[name]}" for name in grid.values) or "The defaults"


def _physical_memory() -> float | None:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None


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
