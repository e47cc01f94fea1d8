"""Inputs of a figure, checked before it is drawn: axes, columns, thresholds, options.

An option is the user's where one is given, else the study's as far as it fits these cells.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pandas as pd

from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.core.parameters import describe, parameter_named
from overfit_cli.core.study import AnyStudy, FigureData
from overfit_cli.core.text import BadValue, UserError, nearest
from overfit_cli.figures.axes import Axis, parameter_axis
from overfit_cli.figures.labels import RUN, axis_label, literal, parameter_values
from overfit_cli.stats.equations import parse_equation


def resolved_options(figure: Figure, asked: FigureOptions, data: FigureData) -> FigureOptions:
    """Return the user's options, with the figure's own where they fit.

    An axis of the figure's own that doesn't vary in the data gives way to one that does; of
    the parameters that it would have panels by, the first that varies and is no axis is taken. Its
    equation is about its own axes, column and threshold: where the user names others, it is
    left out.
    """
    given = {
        field.name: getattr(asked, field.name)
        for field in fields(asked)
        if getattr(asked, field.name) is not None
    }
    own = figure.options
    if figure.equation_of is not None:
        law = figure.equation_of(data)
        own = replace(own, law=None if law is None else (law,))
    options = _with_axes_that_vary(figure.axes, replace(own, **given), asked, data)
    if "by" not in given and options.by is not None:
        values = parameter_values(data)
        free = [name for name in options.by.split(",") if name not in (options.x, options.y)]
        wanted = [name for name in free if len(values[name]) > 1]
        options = replace(options, by=wanted[0] if wanted else None)
    if "law" not in given and not _equation_is_about(own, options):
        options = replace(options, law=None)
    return options


def spelled_out(asked: FigureOptions, study: AnyStudy) -> FigureOptions:
    """Return the options with the names of parameters that the user calls by their symbols."""

    def spelled(name: str | None) -> str | None:
        return None if name is None else parameter_named(study.parameters, name)

    return replace(asked, x=spelled(asked.x), y=spelled(asked.y), by=spelled(asked.by))


def _with_axes_that_vary(
    axes: int, options: FigureOptions, asked: FigureOptions, data: FigureData
) -> FigureOptions:
    """Replace what doesn't vary: of two axes, the parameter declared first goes up."""
    values = parameter_values(data)
    varying = [
        name for name, taken in values.items() if len(taken) > 1 and name not in (asked.by, RUN)
    ]
    x, y = options.x, options.y
    if axes == 2 and asked.y is None and y not in varying:
        y = next((name for name in varying if name != x), y)
    if axes == 1:  # lines are joined along numbers, if there are any
        kinds = describe(data.study.parameters)
        varying.sort(key=lambda name: kinds[name].kind not in ("int", "float"))
    if axes >= 1 and asked.x is None and (x not in varying or x == y):
        x = next((name for name in varying if name != y), x)
    return replace(options, x=x, y=y)


def _equation_is_about(own: FigureOptions, options: FigureOptions) -> bool:
    """Whether the figure's own equation still speaks of what is drawn."""
    if own.law is None or options.x is None or options.y is None:
        return False
    same = (own.value, own.threshold) == (options.value, options.threshold)
    try:
        for law in own.law:
            parse_equation(law, (options.x, options.y))
    except UserError:
        return False
    return same


def two_axes(
    data: FigureData, options: FigureOptions, *, panels: bool = False
) -> tuple[Axis, Axis]:
    """Return the axes x and y of a figure in which no other parameter may vary.

    With `panels` the parameter `by` may.

    Raises:
        UserError: if x or y can't be an axis, are the same, or if another parameter varies.
    """
    x = parameter_axis(data, "x", options.x, log=is_log(options, "x"))
    y = parameter_axis(data, "y", options.y, log=is_log(options, "y"))
    if x.name == y.name:
        raise BadValue("x", x.name, f"y is {y.name} too; the two axes take different parameters.")
    if options.by in (x.name, y.name):
        raise BadValue("by", options.by, "it is an axis already; panels take another parameter.")
    for name, values in parameter_values(data).items():
        if len(values) > 1 and name not in (x.name, y.name, options.by, RUN):
            aside = f" or panels (by {name})," if panels else ""
            taken = f"{', '.join(map(str, values[:4]))}{', ...' if len(values) > 4 else ''}"
            raise BadValue(
                "x",
                x.name,
                f"y is {y.name}, {name} varies too ({taken}), and its values would be mixed; make "
                f"it an axis,{aside} or choose one value (where {name}=VALUE).",
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
        raise BadValue(
            "value", name, f"{data.study.name} measures no {name!r}; {nearest(name, known)}"
        )
    if name not in data.cells:
        raise BadValue("value", name, f"these cells don't hold {name}; sweep them again.")
    label = axis_label(data.study, name)
    return name, f"{label}, less that of {literal(data.less)}" if data.less else label


def checked_threshold(threshold: float | None) -> float | None:
    """Return `threshold`.

    Raises:
        UserError: if it is nan or infinite.
    """
    if threshold is not None and not math.isfinite(threshold):
        raise BadValue("threshold", threshold, "a threshold is a finite number.")
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
        raise BadValue(
            "log", "value", f"the least number drawn is {low:g}, which has no logarithm."
        )
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
        raise BadValue("value", value, f"none of the {len(data.cells)} cells has a number there.")
    return usable
