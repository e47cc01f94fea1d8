"""Axes, columns and thresholds that a figure is asked for, checked before it is drawn."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from overfit_cli.errors import UserError, nearest
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.axis import Axis, parameter_axis, parameter_values
from overfit_cli.figures.labels import RUN, axis_label
from overfit_cli.figures.style import literal


def two_axes(
    data: FigureData, options: FigureOptions, *, panels: bool = False
) -> tuple[Axis, Axis]:
    """Return the axes x and y of a figure in which no other parameter may vary.

    With `panels` the parameter `by` may.

    Raises:
        UserError: if x or y can't be an axis, are the same, or if another parameter varies.
    """
    x = parameter_axis(data, "--x", options.x, log=is_log(options, "x"))
    y = parameter_axis(data, "--y", options.y, log=is_log(options, "y"))
    if x.name == y.name:
        raise UserError(f"--x {x.name} --y {y.name}: the two axes must be different parameters.")
    if options.by in (x.name, y.name):
        raise UserError(f"--by {options.by}: it is an axis already; panels take another parameter.")
    for name, values in parameter_values(data).items():
        if len(values) > 1 and name not in (x.name, y.name, options.by, RUN):
            aside = f" or panels with --by {name}," if panels else ""
            raise UserError(
                f"--x {x.name} --y {y.name}: {name} varies too"
                f" ({', '.join(map(str, values[:4]))}{', ...' if len(values) > 4 else ''}), and its"
                f" values would be mixed; make it an axis,{aside} or choose one value with --where "
                f"{name}=VALUE."
            )
    return x, y


def is_log(options: FigureOptions, axis: str) -> bool | None:
    """Return whether the user wants `x`, `y` or `value` logarithmic; None where nothing is said."""
    return None if options.log is None else axis in options.log


def value_is_log(options: FigureOptions) -> bool | None:
    """Return the same of the column of a figure whose y axis is that."""
    return None if options.log is None else bool({"y", "value"} & options.log)


def measured(data: FigureData, name: str | None) -> tuple[str, str]:
    """Return the name and the label of the column to draw, the study's headline if `name` is None.

    Raises:
        UserError: if the study measures no such column, or these cells don't hold it.
    """
    name = data.study.headline if name is None else name
    if not name:
        raise UserError(f"{data.study.name} has measured nothing here: no cell is done.")
    known = [*(column.name for column in data.study.columns), "steps", "seconds"]
    if name not in known:
        raise UserError(
            f"--value {name}: {data.study.name} measures no {name!r}; {nearest(name, known)}"
        )
    if name not in data.cells:
        raise UserError(f"--value {name}: these cells don't hold {name}; sweep them again.")
    label = axis_label(data.study, name)
    return name, f"{label}, less that of {literal(data.less)}" if data.less else label


def checked_threshold(threshold: float | None) -> float | None:
    """Return `threshold`.

    Raises:
        UserError: if it is nan or infinite.
    """
    if threshold is not None and not math.isfinite(threshold):
        raise UserError(f"--threshold {threshold}: a threshold is a finite number.")
    return threshold


def middle_of(numbers: pd.Series[float]) -> float:
    """Return a threshold where none is named: the middle of what was measured, in three digits.

    By ratio where all numbers are positive and span more than a factor of 10.
    """
    low, high = float(numbers.min()), float(numbers.max())
    by_ratio = low > 0 and high / low > 10
    return float(f"{math.sqrt(low * high) if by_ratio else (low + high) / 2:.3g}")


def checked_scale(log: bool | None, numbers: pd.Series[float], *, factor: float) -> bool:
    """Return whether a measured column is drawn on a logarithmic scale.

    Args:
        log: what the user wants; None where nothing is said.
        numbers: what is drawn.
        factor: how far positive numbers must span to be so by themselves.

    Raises:
        UserError: if it is wanted of numbers that aren't positive.
    """
    low, high = float(numbers.min()), float(numbers.max())
    if log and low <= 0:
        raise UserError(f"--log value: the least number drawn is {low:g}, which has no logarithm.")
    return (low > 0 and high / low > factor) if log is None else log


def usable_cells(data: FigureData, value: str) -> pd.DataFrame:
    """Return the cells that are done and have a finite `value`, as a float column."""
    numbers = data.cells[value].to_numpy(dtype=np.float64, na_value=np.nan)
    cells = data.cells.assign(**{value: numbers})
    usable: pd.DataFrame = cells[(cells["status"] == "done") & np.isfinite(numbers)]
    return usable


def with_numbers(data: FigureData, value: str) -> pd.DataFrame:
    """Return the cells that are done and have a finite `value`, as a float column.

    Raises:
        UserError: if there is none.
    """
    usable = usable_cells(data, value)
    if usable.empty:
        raise UserError(f"--value {value}: none of the {len(data.cells)} cells has a number there.")
    return usable
