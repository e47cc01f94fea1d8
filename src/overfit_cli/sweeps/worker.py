"""The work of one worker: it trains a task, writes its own part, and returns a small record."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from overfit_cli.display import make_streams_patient
from overfit_cli.files import reason_of
from overfit_cli.plain_text import visible
from overfit_cli.study import AnyStudy, Cell, CellResult
from overfit_cli.sweeps.interrupts import Interrupted
from overfit_cli.sweeps.schema import CELLS, cell_table, trajectory_table
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.tasks import Batch, Task
from overfit_cli.training import Execution, Training, training_conditions

LONGEST_REASON = 200
FOUND_HERE = ("error: ", "diverged: ")
"""How reasons begin that a study hasn't given itself."""


@dataclass(frozen=True)
class TaskRecord:
    """What the parent needs to know of a finished task.

    Attributes:
        batches: the numbers of its batches.
        headlines: for each cell, its key and its headline measurement; None where it failed.
        reasons: why cells failed, counted.
        seconds: how long the training took.
        parts: names of the part files that were written.
        problem: a sentence, if the part couldn't be written; empty otherwise.
    """

    batches: tuple[int, ...]
    headlines: tuple[tuple[str, float | None], ...]
    reasons: Counter[str]
    seconds: float = 0.0
    parts: tuple[str, ...] = ()
    problem: str = ""

    @property
    def trained(self) -> int:
        """The number of cells that are done."""
        return len(self.headlines) - self.reasons.total()


def run_task(study: AnyStudy, task: Task, directory: Path, execution: Execution) -> TaskRecord:
    """Train a task and write its part. Errors in training become failed cells.

    Args:
        study: whose cells they are.
        task: its batches.
        directory: the run directory.
        execution: device, logging, and whether a failed cell ends the task.
    """
    began = time.perf_counter()
    results: list[CellResult] = []
    numbers = [number for number, _ in task]
    try:
        with training_conditions():
            for result in chain.from_iterable(
                train_all(study, batch, execution) for _, batch in task
            ):
                results.append(result)
                if execution.fail_fast and result.reason:
                    break
    except Interrupted:
        # In the parent itself (one job): keep what is finished.
        write_results(study, numbers, results, directory)
        raise
    seconds = time.perf_counter() - began
    return replace(write_results(study, numbers, results, directory), seconds=seconds)


def write_results(
    study: AnyStudy, batches: Sequence[int], results: Sequence[CellResult], directory: Path
) -> TaskRecord:
    """Write results as a part file and return their record; say so where it can't be written."""
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
    return TaskRecord(
        batches=tuple(batches),
        headlines=tuple((result.cell.key, _headline(study, result)) for result in results),
        reasons=Counter(result.reason for result in results if result.reason),
        parts=tuple(parts),
        problem=problem,
    )


@functools.cache
def _store(directory: Path) -> RunDirectory:
    return RunDirectory(directory)


def train_all(study: AnyStudy, batch: Batch, execution: Execution) -> Iterator[CellResult]:
    """Give one result for each cell, whatever the study does.

    Cells are trained together; if that fails, what is left is trained one by one, to find the
    culprit. A cell that raises, exits, or has no result that could be stored is a failed one.
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
            checked = _checked(study, cell, result)
        except StopIteration:
            break
        except Interrupted:
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
        raise TypeError(f"the study gave {result!r}, which is no CellResult")
    if result.cell.key not in left:
        raise LookupError("the study gave a result of another cell, or a second one of this")
    return left[result.cell.key]


def _checked(study: AnyStudy, cell: Cell, result: CellResult) -> CellResult:
    """The result, if its numbers are numbers and belong somewhere; a failed one otherwise.

    One that has nan for a measurement has diverged, whatever its study says; of a function, one
    that has infinity too.
    """
    if result.reason:
        result = replace(result, reason=visible(str(result.reason))[:LONGEST_REASON])
    declared = {column.name for column in study.columns}
    for name, value in result.measurements.items():
        if name not in declared and (why := _no_column(study, name)):
            return _refused(cell, why)
        if result.reason or value is None:
            continue
        if isinstance(value, str) or not _is_number(value):
            return _refused(cell, f"{name} is {value!r}")
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
        return f"{name!r} is no name of a column"
    taken = name in CELLS.columns or name in study.parameters.model_fields
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
        return _refused(result.cell, _in_one_line(error))
    return result


def _refused(cell: Cell, reason: str) -> CellResult:
    return CellResult(cell, reason=f"error: {visible(reason)[:LONGEST_REASON]}")


def _in_one_line(error: BaseException) -> str:
    try:
        words = visible(" ".join(str(error).split()))
    except Exception:  # an exception of somebody else's may not even have words
        words = ""
    return f"{type(error).__name__}: {words[:LONGEST_REASON]}" if words else type(error).__name__


def _headline(study: AnyStudy, result: CellResult) -> float | None:
    if result.reason:
        return None
    first = next(iter(result.measurements), "")
    return result.measurements.get(study.headline or first)


_SAFE_PATH, _OURS = "PYTHONSAFEPATH", "overfit"


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """Have processes that start inside not import what lies in the working folder.

    Somebody's `json.py` there would take the place of Python's own while a worker starts.
    """
    if _SAFE_PATH in os.environ:
        yield
        return
    os.environ[_SAFE_PATH] = _OURS
    try:
        yield
    finally:
        del os.environ[_SAFE_PATH]


def start_worker(parent: int) -> None:
    """Start a worker process: it doesn't answer Ctrl-C, and ends soon after its parent is gone.

    It must come before the first batch: a worker whose parent is killed while it waits for one
    would wait for good.
    """
    if os.environ.get(_SAFE_PATH) == _OURS:  # what a cell starts is the cell's business
        del os.environ[_SAFE_PATH]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    make_streams_patient()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
