"""Numbers that functions return and yield."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from typing import Any

from overfit_cli.study import Cell, taken_columns
from overfit_cli.training import Training

MOST_STEPS = 2**63


def run_generator(
    cell: Cell,
    rows: Generator[Any, None, Any],
    training: Training,
) -> tuple[Any, int]:
    """Log what a generator yields; return its result, and how many steps it took.

    Without a result of its own, its last row is that. Rows are numbered from 0, unless they have a
    `step`.

    Raises:
        TypeError, ValueError: if it yields no dict of numbers, or steps that don't rise.
    """
    row: dict[str, Any] = {}
    columns = taken_columns(type(cell.parameters))
    step, steps = -1, 0
    while True:
        try:
            yielded = next(rows)
        except StopIteration as ended:
            return (row if ended.value is None else ended.value), steps
        row = numbers_in(yielded, "yielded")
        if taken := columns & row.keys():
            raise ValueError(f"it yielded {min(taken)!r}, a column that every row has already")
        step, steps = _next_step(row.pop("step", None), step)
        training.log(cell, step, row)


def _next_step(named: float | None, last: int) -> tuple[int, int]:
    """The number of a logged row, and how many steps were taken until then.

    Raises:
        ValueError: if it is no whole number above the last.
    """
    if named is None:
        return last + 1, last + 2
    if not last < named < MOST_STEPS or named != int(named):
        said = f"it yielded step = {named:g} after {last}"
        raise ValueError(f"{said}; steps are whole numbers that rise")
    return int(named), int(named)


def numbers_in(given: Any, how: str) -> dict[str, Any]:
    """What a function returned or yielded, as Python's numbers.

    Raises:
        TypeError: if it is no dict of numbers.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"it {how} {given!r}, and not a dict of numbers")
    return {name: _number(value, f"it {how} {name} = {value!r}") for name, value in given.items()}


def _number(value: Any, said: str) -> float | None:
    """A number of any library as Python's; None is a missing one."""
    if value is None:
        return None
    try:
        plain = value.item() if hasattr(value, "item") else value  # an array of one element too
        number = math.nan if isinstance(plain, str | bytes) else float(plain)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        plain, number = value, math.nan
    if math.isnan(number) and not isinstance(plain, float):
        raise TypeError(f"{said}, which is not a number")
    return number
