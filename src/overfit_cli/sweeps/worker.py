"""Work in a worker process: tasks, their training, one result for each cell.

Results of cells, whatever their study does: one for each, or the reason why it failed.

Tasks: how many batches a worker takes at a time, so that each is about a second's work.

The work of one worker: it trains a task, writes its own part, and returns a small record.
"""

from __future__ import annotations

import functools
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from overfit_cli.core.cell import Cell, CellResult, taken_columns
from overfit_cli.core.files import reason_of
from overfit_cli.core.processes import Interrupted
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import MissingError, visible
from overfit_cli.core.training import Execution, Training, training_conditions
from overfit_cli.sweeps.part_file import cell_table, trajectory_table
from overfit_cli.sweeps.store import RunDirectory

LONGEST_REASON = 200
FOUND_HERE = ("error: ", "diverged: ")
"""How reasons begin that a study hasn't given itself."""


def train_all(study: AnyStudy, batch: Batch, execution: Execution) -> Iterator[CellResult]:
    """Give one result for each cell, whatever the study does.

    Cells are trained together; if that fails, what is left is trained one by one, to find the
    culprit. A cell that raises, exits, or has no result that could be stored is a failed one.

    Raises:
        MissingError: if this machine lacks what the study needs.
    """
    left = {cell.key: cell for cell in batch}
    reason, raised = "the study gave no result for it", False
    training, began = Training(execution), time.perf_counter()
    results: Iterator[CellResult] | None = None
    while True:
        try:
            results = iter(study.train(batch, training)) if results is None else results
            result = next(results)
            cell = _asked_for(left, result)
            share = (time.perf_counter() - began) / len(batch)
            result = replace(result, seconds=share, trajectory=training.trajectory(cell))
            checked = _checked(study, result)
        except StopIteration:
            break
        except (Interrupted, MissingError):
            raise
        except BaseException as error:  # whatever a study of somebody else's raises
            reason, raised = _in_one_line(error), True
            break
        del left[cell.key]
        yield checked
    for cell in left.values():
        if raised and len(batch) > 1:
            yield from train_all(study, [cell], execution)
        else:
            seconds = (time.perf_counter() - began) / len(batch)
            logged, steps = training.trajectory(cell), training.steps_logged(cell)
            yield CellResult(cell, {}, steps, f"error: {reason}", seconds, logged)


def _asked_for(left: dict[str, Cell], result: object) -> Cell:
    """The cell that a result is of, among those that are left.

    Raises:
        TypeError: if it is no result.
        LookupError: if it is of no cell that is left.
    """
    if not isinstance(result, CellResult):
        raise TypeError(f"the study gave {result!r}, which is not a CellResult")
    if result.cell.key not in left:
        raise LookupError("the study gave a result of another cell, or a second one of this")
    return left[result.cell.key]


def _checked(study: AnyStudy, result: CellResult) -> CellResult:
    """The result, if its numbers are numbers and belong somewhere; a failed one otherwise.

    One that has nan for a measurement has diverged, whatever its study says; of a function, one
    that has infinity too.
    """
    if result.reason:
        result = replace(result, reason=visible(str(result.reason))[:LONGEST_REASON])
    declared = {column.name for column in study.columns}
    logged = {"step", *(column.name for column in study.trajectory_columns)}
    for name in result.trajectory:
        if name not in logged and not study.open_columns:
            return _refused(replace(result, trajectory={}), f"the study logs no column {name!r}")
    for name, value in result.measurements.items():
        if name not in declared and (why := _no_column(study, name)):
            return _refused(result, why)
        if result.reason or value is None:
            continue
        if isinstance(value, str) or not _is_number(value):
            return _refused(result, f"{name} is {value!r}")
        if math.isnan(value) or (study.open_columns and math.isinf(value)):
            others: Any = {
                key: one if _is_finite(one) else None for key, one in result.measurements.items()
            }
            return replace(result, measurements=others, reason=f"diverged: {name} isn't finite")
    return result


def _no_column(study: AnyStudy, name: object) -> str:
    """Why a result can't have a column of that name; empty where it can."""
    if not study.open_columns:
        return f"the study has no column {name!r}"
    if not isinstance(name, str) or not name:
        return f"{name!r} is not a column name"
    taken = name in taken_columns(study.parameters)
    return f"a column can't be called {name!r}, which every row has already" if taken else ""


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _is_finite(value: Any) -> bool:
    return value is not None and math.isfinite(value)


def storable(study: AnyStudy, result: CellResult) -> CellResult:
    """Return the result, if it fits the study's columns; a failed one otherwise."""
    try:
        cell_table(study, [result])
        trajectory_table(study, [result])
    except Exception as error:  # a result may hold anything
        return _refused(replace(result, trajectory={}, steps=0), _in_one_line(error))
    return result


def _refused(result: CellResult, reason: str) -> CellResult:
    """A failed result, without the numbers, with the steps that were logged."""
    reason = f"error: {visible(reason)[:LONGEST_REASON]}"
    return replace(result, measurements={}, reason=reason)


def _in_one_line(error: BaseException) -> str:
    try:
        words = visible(" ".join(str(error).split()))
    except Exception:  # an exception of somebody else's may not even have words
        words = ""
    return f"{type(error).__name__}: {words[:LONGEST_REASON]}" if words else type(error).__name__


Batch = Sequence[Cell]
Task = Sequence[tuple[int, Batch]]
"""Batches with their numbers; a worker trains them one after another and writes one part."""

SECONDS = 1.0
"""What a task should take: much more than handing it out, and little to lose by a kill."""

LEAST_SECONDS = 0.25
"""What a task near the end should still take: a part per cell costs more than the jobs gain."""

MOST_BATCHES = 1000
MOST_GROWTH = 4
"""A task has at most so many times the batches of the one before: a time may be off."""


@dataclass
class TaskSize:
    """How many batches the next task has, from how long finished ones took.

    It starts with one batch. Near the end tasks are small, so that all jobs end together.

    Args:
        jobs: how many tasks run at a time.
    """

    jobs: int
    _seconds_per_work: float | None = None
    _last: int = 1

    def learn(self, work: float, seconds: float) -> None:
        """Take in what a task took: its cost, in the study's unit, and its time."""
        if work > 0:
            self._seconds_per_work = seconds / work

    def choose(self, costs: Sequence[float], left: float) -> int:
        """Return how many batches the next task has.

        Args:
            costs: of the batches that come next; more than `MOST_BATCHES` aren't looked at.
            left: the cost of all that are left.
        """
        if self._seconds_per_work is None:
            return 1
        wanted = left
        if self._seconds_per_work > 0:
            least, most = (time / self._seconds_per_work for time in (LEAST_SECONDS, SECONDS))
            wanted = min(most, max(least, left / (2 * self.jobs)))
        total, count = 0.0, 0
        for cost in costs[: min(MOST_BATCHES, MOST_GROWTH * self._last)]:
            total += cost
            if count and total > wanted:
                break
            count += 1
        self._last = count
        return count


@dataclass(frozen=True)
class Work:
    """What all tasks of a sweep share.

    Attributes:
        study: whose cells they are.
        directory: the run directory, as an absolute path: a cell may change the folder.
        execution: device, logging, and whether a failed cell ends the task that it is in.
        data: fingerprints of the data that the sweep has read, by name; see `Study.prepare`.
    """

    study: AnyStudy
    directory: Path
    execution: Execution
    data: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskRecord:
    """What the parent needs to know of a finished task.

    Attributes:
        batches: the numbers of its batches.
        headlines: for each cell, its key and its headline measurement; None where it failed.
        headline: the column that these are of; empty where nothing was measured.
        reasons: why cells failed, counted.
        seconds: how long the training took.
        parts: names of the part files that were written.
        problem: a sentence, if the part couldn't be written; empty otherwise.
        results: the rows, where the worker can't write them itself; empty otherwise.
    """

    batches: tuple[int, ...]
    headlines: tuple[tuple[str, float | None], ...]
    reasons: Counter[str]
    seconds: float = 0.0
    parts: tuple[str, ...] = ()
    problem: str = ""
    headline: str = ""
    results: tuple[CellResult, ...] = ()

    @property
    def trained(self) -> int:
        """The number of cells that are done."""
        return len(self.headlines) - self.reasons.total()


def run_task(work: Work, task: Task, *, writes: bool = True) -> TaskRecord:
    """Train a task and write its part. Errors in training become failed cells.

    Args:
        work: what it is a task of.
        task: its batches.
        writes: whether to write the part; else the record carries the rows.
    """
    numbers = tuple(number for number, _ in task)
    study, execution = work.study, work.execution
    if study.problem:
        return unable(task, study.problem)
    began = time.perf_counter()
    results: list[CellResult] = []
    try:
        with training_conditions():
            for result in chain.from_iterable(
                train_all(study, batch, execution) for _, batch in task
            ):
                results.append(result)
                if execution.fail_fast and result.reason:
                    break
    except MissingError as error:  # another machine than the one where the sweep was prepared
        return unable(task, f"A worker lacks what {study.name} needs: {error}")
    except Interrupted:
        # In the parent itself (one job): keep what is finished.
        write_results(work, numbers, results)
        raise
    seconds = time.perf_counter() - began
    if not writes:
        return TaskRecord(numbers, (), Counter(), seconds, results=tuple(results))
    return replace(write_results(work, numbers, results), seconds=seconds)


def unable(task: Task, why: str) -> TaskRecord:
    """Return the record of a task that this process can't train at all, for a reason."""
    kept = "What is finished is kept, and the same command goes on from there."
    numbers = tuple(number for number, _ in task)
    return TaskRecord(numbers, (), Counter(), problem=f"{why} {kept}")


def write_results(work: Work, batches: Sequence[int], results: Sequence[CellResult]) -> TaskRecord:
    """Write results as a part file and return their record; say so where it can't be written."""
    study, directory = work.study, work.directory
    store = _store(directory)
    problem, parts = "", list[str]()
    try:
        try:
            parts = store.write(study, results)
        except OSError:
            raise
        except Exception:  # a result that is no row: the others are kept
            results = [storable(study, result) for result in results]
            parts = store.write(study, results)
    except OSError as error:
        problem = (
            f"{directory} can't be written to ({reason_of(error)}); "
            "what was written is kept, and the same command goes on from there."
        )
    headline = study.headline or _first_measurement(results)
    return TaskRecord(
        batches=tuple(batches),
        headlines=tuple(
            (one.cell.key, None if one.reason else one.measurements.get(headline))
            for one in results
        ),
        reasons=Counter(one.reason for one in results if one.reason),
        parts=tuple(parts),
        problem=problem,
        headline=headline,
    )


def _first_measurement(results: Sequence[CellResult]) -> str:
    """The first column of the first cell that is done; empty where none is."""
    done = (one.measurements for one in results if not one.reason)
    return next((name for measurements in done for name in measurements), "")


@functools.cache
def _store(directory: Path) -> RunDirectory:
    return RunDirectory(directory)
