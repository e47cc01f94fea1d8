"""Results of cells, whatever their study does: one for each, or the reason why it failed."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from overfit_cli.errors import MissingError
from overfit_cli.plain_text import visible
from overfit_cli.study import AnyStudy, Cell, CellResult, taken_columns
from overfit_cli.sweeps.interrupts import Interrupted
from overfit_cli.sweeps.rows import cell_table, trajectory_table
from overfit_cli.sweeps.tasks import Batch
from overfit_cli.training import Execution, Training

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
