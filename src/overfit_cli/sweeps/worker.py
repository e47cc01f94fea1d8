"""Tasks of a sweep: batches that a worker trains, the record of their results, and its summary.

A study may raise, exit or return anything: each cell still gives one result, or the reason why it
failed. A task's rows return as tables, which the process that the user started writes.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow as pa

from overfit_cli.core import errors, files, processes, text, training
from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.training import Execution
from overfit_cli.sweeps.part import cell_table, trajectory_table

VERSIONS = f"overfit {text.VERSION} on Python {sys.version_info.major}.{sys.version_info.minor}"
"""The versions that the processes of a sweep must share."""

FAILURE_PREFIXES = ("error: ", "diverged: ")
"""Beginnings of the reasons that the machine gives, not the study."""


def train_all(study: AnyStudy, batch: Batch, execution: Execution) -> Iterator[CellResult]:
    """Give one result for each cell, whatever the study does.

    Cells are trained together. If that fails, what is left is trained in halves, and halves of
    halves: so a batch that does not fit the memory is split until it does, and a culprit ends
    alone. A cell that raises, exits, or has no result that could be stored is a failed one. A batch
    may take as long as one cell; so may each part of it that is trained then, or each cell of a
    batch that took longer.
    """
    left = {cell.key: cell for cell in batch}
    reason, lines = "error: the study gave no result for it", ""
    again = 0  # how many cells at a time are trained again
    log, began = training.Training(execution), time.perf_counter()
    results: Iterator[CellResult] | None = None
    while True:
        try:
            with log.limited():
                results = iter(study.train(batch, log)) if results is None else results
                result = next(results)
                log.check_time()
            processes.check_interrupts()
            if not isinstance(result, CellResult):
                raise TypeError(f"the study gave {result!r}, which is not a CellResult")
            if (cell := left.get(result.cell.key)) is None:
                raise LookupError("the study gave a result of another cell, or two of this one")
            share = (time.perf_counter() - began) / len(batch)
            result = replace(result, seconds=share, trajectory=log.trajectory(cell))
            checked = _check_result(study, result)
        except StopIteration:
            processes.check_interrupts()
            break
        except (processes.Interrupted, errors.MissingError):
            raise
        except training.TimeLimitReached:
            reason, again = training.TIME_LIMIT, 1
            break
        except BaseException as error:  # a study may raise anything
            processes.check_interrupts()
            reason = f"error: {errors.error_in_words(error)}"
            lines = errors.kept_traceback(error)
            again = -(-len(batch) // 2)
            if execution.on_error is not None:
                execution.on_error(error)
            break
        del left[cell.key]
        yield checked
    cells = list(left.values())
    if again and len(batch) > 1:
        for first in range(0, len(cells), again):
            yield from train_all(study, cells[first : first + again], execution)
        return
    for cell in cells:
        seconds = (time.perf_counter() - began) / len(batch)
        logged, steps = log.trajectory(cell), log.steps_logged(cell)
        yield CellResult(cell, {}, steps, reason, seconds, logged, lines)


def _check_result(study: AnyStudy, result: CellResult) -> CellResult:
    """The result, if its numbers are numbers and belong somewhere; a failed one otherwise.

    A result that has nan for a measurement has diverged, whatever its study says.
    """
    if result.reason:
        result = replace(result, reason=text.visible(str(result.reason))[: errors.LONGEST_REASON])
    for name in result.trajectory:
        if name != "step" and (why := study.column_problem(name, logged=True)):
            return _failed_result(replace(result, trajectory={}), why)
    for name, value in result.measurements.items():
        if why := study.column_problem(name):
            return _failed_result(result, why)
        if result.reason or value is None:
            continue
        if isinstance(value, str) or not text.is_number(value):
            return _failed_result(result, f"{name} is {value!r}")
        if math.isnan(value):
            finite: Any = {  # a column that a function doesn't declare stays
                key: number if number is not None and math.isfinite(number) else None
                for key, number in result.measurements.items()
            }
            return replace(result, measurements=finite, reason=f"diverged: {name} isn't finite")
    return result


def storable(study: AnyStudy, result: CellResult) -> CellResult:
    """Return the result, if it fits the study's columns; a failed one otherwise."""
    try:
        cell_table(study, [result])
        trajectory_table(study, [result])
    except Exception as error:  # a result may hold anything
        return _failed_result(replace(result, trajectory={}, steps=0), errors.error_in_words(error))
    return result


def _failed_result(result: CellResult, reason: str) -> CellResult:
    reason = f"error: {text.visible(reason)[: errors.LONGEST_REASON]}"
    return replace(result, measurements={}, reason=reason)


Batch = Sequence[Cell]
Task = Mapping[int, Batch]
"""Batches by their numbers; a worker trains them one after another, and they are one part."""


# The sizes of tasks

TASK_SECONDS = 1.0
"""The time of a task: much more than handing it out takes, and little to lose by a kill."""

LEAST_SECONDS = 0.25
"""The least time of a task near the end: a part per cell costs more than the jobs gain."""

MOST_BATCHES = 1000
MOST_GROWTH = 4
"""A task has at most so many times the batches that are finished: a time may be off."""

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

    def task_size(self, costs: Sequence[float], left: float, jobs: int, finished: int) -> int:
        """Return how many of the next batches make a task: about a second's work.

        Near the end tasks are smaller, so that all jobs end together.

        Args:
            costs: of the next batches, at least one; more than `MOST_BATCHES` aren't looked at.
        """
        time_left = self.time(left, jobs)
        if time_left is None:
            return 1
        wanted = min(TASK_SECONDS, max(LEAST_SECONDS, time_left / 2))
        limit = min(len(costs), MOST_BATCHES, MOST_GROWTH * finished)
        sums = itertools.accumulate(costs[:limit])
        fitting = itertools.takewhile(lambda cost: (self.time(cost) or 0.0) <= wanted, sums)
        return max(1, sum(1 for _ in fitting))


# What a worker takes and gives


@dataclass(frozen=True)
class Work:
    """The settings that all tasks of a sweep share.

    Attributes:
        data: fingerprints of the data that the sweep has read, by name; see `Study.prepare`.
        folder: the data folder of the process that makes it.
        place: its working folder, for workers of this machine; empty where it is gone.
    """

    study: AnyStudy
    execution: Execution
    data: Mapping[str, str] = field(default_factory=dict)
    folder: str = field(default_factory=lambda: os.environ.get(files.DATA_VARIABLE, ""))
    place: str = field(default_factory=processes.working_folder)


@dataclass(frozen=True)
class TaskRecord:
    """The outcome of a task.

    Attributes:
        cells: the rows, one per cell, and `count` of them; None where there is none.
        steps: the rows of the trajectories, one per cell and logged step.
        failed: the reasons of the cells that failed, by key.
        tracebacks: one of each kind of failure.
        is_cold: whether it was the first task of its process, which imports libraries too.
        kills: how many workers were killed with it, one after another; it has no result then.
    """

    batches: tuple[int, ...]
    cells: pa.Table | None = None
    steps: pa.Table | None = None
    count: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    tracebacks: Mapping[errors.FailureKind, str] = field(default_factory=dict)
    seconds: float = 0.0
    is_cold: bool = False
    kills: int = 0


@dataclass
class Summary:
    """The outcome of a sweep.

    Attributes:
        reused: how many cells were there already.
        left: how many cells weren't trained because others had failed.
        earlier: how many cells failed in earlier runs, and weren't run again.
        example: a cell that raised; None where none did.
        stopped: why the sweep stopped by itself, not as it was asked to; empty where it didn't.
    """

    trained: int = 0
    reused: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    tracebacks: Mapping[errors.FailureKind, str] = field(default_factory=dict)
    restarts: int = 0
    seconds: float = 0.0
    left: int = 0
    earlier: int = 0
    example: Cell | None = None
    stopped: str = ""


def run_task(work: Work, task: Task) -> TaskRecord:
    """Train a task. Errors in training become failed cells."""
    began, is_cold = time.perf_counter(), next(_TASKS) == 0
    results: list[CellResult] = []
    try:
        with training.training_conditions():
            batches = (train_all(work.study, batch, work.execution) for batch in task.values())
            for result in itertools.chain.from_iterable(batches):
                results.append(result)
                if work.execution.on_result is not None:
                    work.execution.on_result(result)
                if work.execution.fail_fast and result.reason:
                    break
    except errors.MissingError as error:  # on another machine than the sweep was prepared on
        raise _lacking(work.study, error) from error
    record = record_of(work.study, task, results)
    return replace(record, seconds=time.perf_counter() - began, is_cold=is_cold)


_TASKS = itertools.count()
"""Counts the tasks of this process."""

KEPT = "What is finished is kept, and the same command goes on from there."


def _lacking(study: AnyStudy, error: errors.UserError) -> errors.UserError:
    return errors.UserError(f"A worker lacks what {study.name} needs: {error}", exit_code=1)


def record_of(study: AnyStudy, batches: Iterable[int], results: Sequence[CellResult]) -> TaskRecord:
    """Return the record of a task; a result that fits no row is a failed cell."""
    try:
        cells, steps = cell_table(study, results), trajectory_table(study, results)
    except Exception:  # a result may hold anything; the others are kept
        results = [storable(study, result) for result in results]
        cells, steps = cell_table(study, results), trajectory_table(study, results)
    failed = {result.cell.key: result.reason for result in results if result.reason}
    tracebacks = errors.tracebacks_by_kind((one.reason, one.traceback) for one in results)
    counted = len(results), failed, tracebacks
    return TaskRecord(tuple(batches), cells if results else None, steps, *counted)


def run_remotely(versions: str, pickled: bytes, pickled_task: bytes) -> TaskRecord:
    """Train a task in this process of a cluster; see `run_sent`.

    Args:
        versions: of overfit and Python in the process that sent it.
    """
    if versions != VERSIONS:
        raise errors.UserError(f"a worker has {VERSIONS}, and this is {versions}")
    with processes.answering_interrupts(passing_on=True):
        return run_sent(pickled, pickled_task, elsewhere=True)


def run_sent(pickled: bytes, pickled_task: bytes, *, elsewhere: bool = False) -> TaskRecord:
    """Train a task that another process has sent.

    Args:
        pickled: the work, with its function's files.
        elsewhere: whether this may be another machine, without the sender's device and data.
    """
    task: Task = cloudpickle.loads(pickled_task)
    work: Work = _unpickle_work(pickled)
    with files.keeping_variables(files.DATA_VARIABLE):
        if not elsewhere or (work.folder and Path(work.folder).exists()):
            os.environ[files.DATA_VARIABLE] = work.folder
        if elsewhere:
            _check_machine(work, task)
        elif work.place:  # a worker that waits was started elsewhere, or in a folder that is gone
            os.chdir(work.place)
        return run_task(work, task)


_unpickle_work = functools.lru_cache(maxsize=4)(cloudpickle.loads)


def _check_machine(work: Work, task: Task) -> None:
    """Refuse a task where this machine lacks something, or has other data than the sweep has read.

    A worker keeps what it has read, so it notices too that a file has changed since.
    """
    try:
        training.resolve_device(work.execution.device)
        read = work.study.prepare([*itertools.chain(*task.values())]) if work.data else {}
    except errors.UserError as error:
        raise _lacking(work.study, error) from error
    for name, fingerprint in read.items():
        if work.data.get(name) != fingerprint:
            other = "A worker has other data than this process"
            raise errors.UserError(f"{other}: its {name} had other content when it was read.")
