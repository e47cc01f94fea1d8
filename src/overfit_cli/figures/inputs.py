"""Inputs of a figure, checked before it is drawn: axes, columns, thresholds, options.

An option is the user's where one is given, else the study's as far as it fits these cells.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import cast

import pandas as pd

from overfit_cli.core.arrays import finite_column, varying
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.core.parameters import describe, parameter_named
from overfit_cli.core.study import AnyStudy, FigureData
from overfit_cli.core.text import round_digits, suggestion
from overfit_cli.core.values import Band, Mean
from overfit_cli.figures.axes import Axis, parameter_axis
from overfit_cli.figures.labels import (
    RUN,
    axis_label,
    free_parameters,
    independent_parameters,
    literal,
    number_parameters,
    parameter_values,
    varying_parameters,
)
from overfit_cli.stats.bands import Averaging
from overfit_cli.stats.equations import parse_equation


def resolve_options(figure: Figure, user_options: FigureOptions, data: FigureData) -> FigureOptions:
    """Return the user's options, with the figure's own where they fit.

    Where an axis of the figure does not vary in the data, a parameter that varies replaces it. Of
    the figure's parameters for panels, the first that varies and is no axis is taken. The figure's
    equation is for its own axes, column and threshold, its theory for its own column: where the
    user names others, they are left out.
    """
    chosen = {
        field.name: getattr(user_options, field.name)
        for field in fields(user_options)
        if getattr(user_options, field.name) is not None
    }
    study_options = figure.options
    if figure.equation_of is not None:
        law = figure.equation_of(data)
        study_options = replace(study_options, law=None if law is None else (law,))
    if "threshold" in figure.accepts and data.boundary is not None:
        column, threshold = data.boundary
        if chosen.get("value") in (None, column or data.study.headline):
            study_options = replace(study_options, threshold=threshold)
            _warn_of_other_threshold(user_options.threshold, threshold)
    options = _choose_axes(figure.axes, replace(study_options, **chosen), user_options, data)
    if "by" not in chosen and options.by is not None:
        values = parameter_values(data)
        free = [name for name in options.by.split(",") if name not in (options.x, options.y)]
        varied = [name for name in free if len(values.get(name, ())) > 1]
        options = replace(options, by=varied[0] if varied else None)
    if "theory" not in chosen and options.value != study_options.value:
        options = replace(options, theory=None)
    if "law" not in chosen and not _equation_is_about(study_options, options, data):
        options = replace(options, law=None)
    return options


def _warn_of_other_threshold(given: float | None, threshold: float) -> None:
    if given is not None and given != threshold:
        warnings.warn(
            f"the sweep placed its cells near {threshold:g}; few may be near {given:g}.",
            UserWarning,
            stacklevel=2,
        )


def resolve_symbols(options: FigureOptions, study: AnyStudy) -> FigureOptions:
    """Return the options with the names of parameters in place of their symbols, stripped.

    A parameter in the place of a column is an expression: `(n)`.
    """
    columns = {column.name for column in (*study.columns, *study.trajectory_columns)}
    columns |= {"step", "steps", "seconds"}
    numbers = {
        name for name, info in describe(study.parameters).items() if info.kind in ("int", "float")
    }

    def resolve(name: str | None) -> str | None:
        return None if name is None else parameter_named(study.parameters, name.strip())

    def column(text: str) -> str:
        name = parameter_named(study.parameters, text.strip())
        is_parameter = text.strip() not in columns and name in numbers
        return f"({name})" if is_parameter else text.strip()

    def resolve_columns(text: str | None) -> str | None:
        if text is None or text.strip() in columns:
            return text and text.strip()
        return ",".join(map(column, text.split(",")))

    return replace(
        options,
        x=resolve(options.x),
        y=resolve(options.y),
        by=resolve(options.by),
        value=resolve_columns(options.value),
        theory=resolve_columns(options.theory),
    )


def _choose_axes(
    axes: int, options: FigureOptions, user_options: FigureOptions, data: FigureData
) -> FigureOptions:
    taken = (user_options.by, RUN)
    varying = [name for name in independent_parameters(data) if name not in taken]
    if len(varying) < axes:
        varying = [name for name in varying_parameters(data) if name not in taken]
    x, y = options.x, options.y
    if axes == 2 and user_options.y is None and y not in varying:
        y = next((name for name in varying if name != x), y)
    if axes == 1:  # lines are joined along numbers, if there are any
        kinds = describe(data.study.parameters)
        varying.sort(key=lambda name: kinds[name].kind not in ("int", "float"))
    if axes >= 1 and user_options.x is None and (x not in varying or x == y):
        x = next((name for name in varying if name != y), x)
    return replace(options, x=x, y=y)


def _equation_is_about(
    study_options: FigureOptions, options: FigureOptions, data: FigureData
) -> bool:
    """Whether the figure's equation is for these axes, this column and this threshold.

    What is upward, where it is no parameter, is the column; other parameters are constants.
    """
    upward = options.y or options.value
    if study_options.law is None or options.x is None or upward is None:
        return False
    same_column = (study_options.value, study_options.threshold) == (
        options.value,
        options.threshold,
    )
    constants = {name: name for name in number_parameters(data)}
    try:
        equations = [
            parse_equation(law, (options.x, upward), constants) for law in study_options.law
        ]
    except UserError:
        return False
    named = {name for equation in equations for name in equation.names} - {options.x, upward}
    return same_column and _one_value_a_panel(data, sorted(named), options.by)


def _one_value_a_panel(data: FigureData, names: Sequence[str], by: str | None) -> bool:
    panels = [*([RUN] if data.runs else []), *([by] if by is not None else [])]
    varied = varying(data.cells, names)
    if not (varied and panels):
        return not varied
    return bool((data.cells.groupby(panels)[varied].nunique() <= 1).all(axis=None))


def two_axes(
    data: FigureData, options: FigureOptions, *, panels: bool = False
) -> tuple[Axis, Axis]:
    """Return the axes x and y of a figure in which no other parameter may vary.

    With `panels` the parameter `by` may vary.
    """
    x = parameter_axis(data, "x", options.x, log=is_log(options, "x"))
    y = parameter_axis(data, "y", options.y, log=is_log(options, "y"))
    if x.name == y.name:
        raise BadValue("x", x.name, f"y is {y.name} too; the two axes take different parameters.")
    if options.by in (x.name, y.name):
        raise BadValue("by", options.by, "it is an axis already; panels take another parameter.")
    taken = [name for name in (x.name, y.name, options.by) if name is not None]
    for name in free_parameters(data, taken):
        if name != RUN:
            values = parameter_values(data)[name]
            panels_hint = ", make panels of it (option by)," if panels else ""
            excerpt = f"{', '.join(map(str, values[:4]))}{', ...' if len(values) > 4 else ''}"
            raise BadValue(
                "x",
                x.name,
                f"y is {y.name}, {name} varies too ({excerpt}), and its values would be mixed; "
                f"make it an axis{panels_hint} or choose one value (option where, {name}=VALUE).",
            )
    return x, y


def require_grid(data: FigureData, options: FigureOptions, x: Axis, y: Axis) -> None:
    """Refuse an expression along an axis whose points make no grid with the other axis."""
    frames = [frame for frame in (data.cells, data.planned) if {x.name, y.name} <= {*frame}]
    names = [x.name, y.name]
    points = len(pd.concat([frame[names] for frame in frames]).drop_duplicates())
    if data.replaced and points < len(x.values) * len(y.values):
        side, axis = ("y", y) if y.name == options.y and not y.name.isidentifier() else ("x", x)
        other = x if axis is y else y
        accepts = f"its values with those of {other.name} make no grid; lines draws them."
        raise BadValue(side, axis.name, accepts)


def is_log(options: FigureOptions, axis: str) -> bool | None:
    """Return whether the user wants `x`, `y` or `value` logarithmic; None without a choice."""
    return None if options.log is None else axis in options.log


def value_is_log(options: FigureOptions) -> bool | None:
    """Return the same for a column that is drawn along y."""
    return None if options.log is None else bool({"y", "value"} & options.log)


def measured_column(data: FigureData, name: str | None, option: str = "value") -> tuple[str, str]:
    """Return the name and the label of the column to draw: by default the study's headline."""
    name = data.study.headline if name is None else name
    if not name and not data.study.columns:
        raise UserError(f"{data.study.name} has measured nothing here: no cell is done.")
    columns = [*(column.name for column in data.study.columns), "steps", "seconds"]
    if name not in columns:
        raise BadValue(
            option, name, f"{data.study.name} measures no {name!r}; {suggestion(name, columns)}"
        )
    if name not in data.cells:
        raise BadValue(option, name, f"these cells don't hold {name}; sweep them again.")
    label = axis_label(data.study, name)
    if data.contrast:
        return name, f"{label}: {data.contrast}"
    return name, f"{label}, less that of {literal(data.less)}" if data.less else label


def check_threshold(threshold: float | None) -> float | None:
    """Return `threshold`."""
    if threshold is not None and not math.isfinite(threshold):
        raise BadValue("threshold", threshold, "a threshold is a finite number.")
    return threshold


def middle_threshold(numbers: pd.Series[float]) -> float:
    """Return the default threshold: the middle of the measured numbers, in three digits.

    It is the geometric middle where all are positive and span more than a factor of 10.
    """
    low, high = float(numbers.min()), float(numbers.max())
    logarithmic = low > 0 and high / low > 10
    return round_digits(math.sqrt(low * high) if logarithmic else (low + high) / 2, 3)


def choose_scale(log: bool | None, numbers: pd.Series[float], *, factor: float) -> bool:
    """Return whether a measured column is drawn on a logarithmic scale.

    Args:
        factor: the span of positive numbers from which the scale is logarithmic by default.
    """
    low, high = float(numbers.min()), float(numbers.max())
    if log and low <= 0:
        raise BadValue(
            "log", "value", f"the least number drawn is {low:g}, which has no logarithm."
        )
    return (low > 0 and high / low > factor) if log is None else log


def usable_cells(data: FigureData, value: str) -> pd.DataFrame:
    """Return the cells that are done and have a finite `value`, as a float column."""
    numbers = finite_column(data.cells, value)
    usable: pd.DataFrame = data.cells.assign(**{value: numbers})[numbers.notna()]
    return usable


MISSES = ("diverged", "step limit")
"""The reasons of failed cells whose training went on until it missed."""


def measured_or_missed(cells: pd.DataFrame, value: str) -> pd.Series[float]:
    """Return the finite `value` of cells that are done, and infinity where one missed it.

    Steps miss where a target is not reached, a loss or an error where training diverges or ends
    above its target. Other cells without a number, and those of other columns, are nan.
    """
    numbers = finite_column(cells, value)
    if not re.fullmatch(r"steps\w*|\w*(loss|error)", value):
        return numbers
    failed = cells["status"] == "failed"
    missed = failed & cells["reason"].isin(MISSES) if "reason" in cells else failed
    if value.startswith("steps"):
        missed |= ~failed & numbers.isna()
    return numbers.mask(missed, math.inf)


def misses_in_words(cells: pd.DataFrame) -> str:
    """Write why cells have no number: `target not reached`, `diverged`, `failed`, or several."""
    failed = cells["status"] == "failed"
    reasons = cells["reason"] if "reason" in cells else pd.Series("diverged", cells.index)
    reasons = reasons.where(failed, "step limit")  # of a cell that is done, too
    words = {"step limit": "target not reached", "diverged": "diverged"}
    return " or ".join(
        dict.fromkeys(words.get(reason, "failed") for reason in sorted(reasons)[::-1])
    )


def require_numbers(data: FigureData, value: str) -> pd.DataFrame:
    """Return the cells that are done and have a finite `value`, as a float column."""
    usable = usable_cells(data, value)
    if usable.empty:
        raise BadValue("value", value, f"none of the {len(data.cells)} cells has a number there.")
    return usable


BAND = 3
"""The number of seeds from which a setting is drawn as a mean with a band."""


def averaging(options: FigureOptions, seeds: int) -> Averaging:
    """Return the statistic over so many seeds, and its band, as the user wants it.

    By default it is the median with its quartiles, or with a line for each seed where there are
    fewer than three. A mean has its 95 % interval, and such a band is a mean's.
    """
    mean, band = options.mean, options.band
    if mean is None:
        mean = "arithmetic" if band in ("interval", "sd") else "median"
    if band is None:
        band = "quartiles" if mean == "median" else "interval"
        band = "seeds" if seeds < BAND else band
    return Averaging(cast("Mean", mean), cast("Band", band))
