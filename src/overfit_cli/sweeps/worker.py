"""The work of one worker: it trains a task, writes its own part, and returns a small record."""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from overfit_cli.errors import MissingError
from overfit_cli.files import reason_of
from overfit_cli.study import AnyStudy, CellResult
from overfit_cli.sweeps.interrupts import Interrupted
from overfit_cli.sweeps.results import storable, train_all
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.tasks import Task
from overfit_cli.training import Execution, training_conditions


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
