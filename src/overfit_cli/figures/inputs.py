"""Inputs of a figure, checked before it is drawn: axes, columns, options, panels, differences.

An option is the user's where one is given, else the study's as far as it fits these cells.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.typing import ColorType

from overfit_cli.core.arrays import finite_column, varying
from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.expressions import read_equation
from overfit_cli.core.figure import MOST_PANELS, Figure, FigureOptions
from overfit_cli.core.parameters import Value, describe, parameter_named
from overfit_cli.core.study import RUN, Field, missed_by
from overfit_cli.core.text import plural, round_digits, suggestion
from overfit_cli.figures import labels, style
from overfit_cli.figures.axes import Axis, parameter_axis, require_parameter
from overfit_cli.stats.intervals import Averaging
from overfit_cli.stats.pairs import pair_up


def resolve_options(figure: Figure, asked: FigureOptions, data: Cells) -> FigureOptions:
    """Return the user's options, with the figure's own where they fit these cells.

    Of the figure's parameters for panels, the first that varies and is no axis is taken. Its theory
    and its threshold are about its column, its equation about its axes and threshold too.
    """
    own = figure.options
    if figure.equation_of is not None:
        own = replace(own, law=figure.equation_of(data)[:1])
    usual = own.value or data.study.headline
    column = asked.value or usual
    if column != usual:
        own = replace(own, theory=None, threshold=None)
    boundaries = {run.boundary for run in data.runs}
    placed = boundaries.pop() if len(boundaries) == 1 and "threshold" in figure.accepts else None
    if placed is not None and column == (placed[0] or data.study.headline):
        own = replace(own, threshold=placed[1])
        if asked.threshold not in (None, own.threshold):
            few = f"few may be near {asked.threshold:g}."
            warnings.warn(f"the sweep placed its cells near {own.threshold:g}; {few}", stacklevel=2)
    x, y = _choose_axes(figure.axes, own, asked, data)
    options = replace(own, **(asked.given() | {"x": x, "y": y}))
    if asked.by is None and own.by is not None:
        panels = [name for name in own.by.split(",") if name in data.varying((x, y))]
        options = replace(options, by=panels[0] if panels else None)
    is_own_plane = {x, y} == {own.x or x, own.y or y} and options.threshold == own.threshold
    is_own_law = column == usual and is_own_plane and _one_curve_a_panel(options, data)
    return options if is_own_law else replace(options, law=asked.law)


def _one_curve_a_panel(options: FigureOptions, data: Cells) -> bool:
    """Whether what the equations name beside the axes has one value in each panel."""
    names = data.schema.placed.among({*data.number_parameters, options.value or ""})
    try:
        read = [read_equation(law, names) for law in options.law or ()]
    except BadValue:
        return False
    axes = {options.x, options.y, options.value}
    named = varying(data.trained, {name for law in read for name in law.names} - axes)
    panels = [*([RUN] if data.run_names else []), *filter(None, [options.by])]
    if not (named and panels):
        return not named
    return bool((data.trained.groupby(panels)[named].nunique() <= 1).all(axis=None))


def _choose_axes(
    axes: int, own: FigureOptions, asked: FigureOptions, data: Cells
) -> tuple[str | None, str | None]:
    """The axes of the user, else those of the figure that vary, else parameters that vary."""
    free = [name for name in labels.independent_parameters(data) if name not in (asked.by, RUN)]
    if len(free) < axes:
        free = data.varying((asked.by, RUN))
    x, y = asked.x or own.x, asked.y or own.y
    if axes == 2 and asked.y is None and y not in free:
        y = next((name for name in free if name != x), y)
    if axes == 1:  # lines are joined along numbers, if there are any
        free.sort(key=lambda name: not data.schema[name].is_number)
    if axes >= 1 and asked.x is None and (x not in free or x == y):
        x = next((name for name in free if name != y), x)
    return x, y


def read_options(figure: Figure, data: Cells, asked: FigureOptions) -> tuple[Cells, FigureOptions]:
    """Return data with a column for each expression in the place of one, and options with names.

    The names of parameters stand in place of their symbols. A parameter in the place of a column is
    an expression: `(n)`. The figure's own options count where the user leaves one out; columns are
    logged ones where it reads trajectories.
    """
    model, logged = data.study.parameters, figure.reads == "trajectories"
    named = {side: getattr(asked, side) for side in ("x", "y", "by", "value", "theory")}
    for side in ("x", "y", "by"):
        named[side] = named[side] and parameter_named(model, named[side].strip())
    columns = {name for schema in (data.schema, data.logged) for name in schema.named("measured")}
    for option in ("value", "theory"):
        text, read = named[option] or getattr(figure.options, option) or "", ""
        for part in map(str.strip, re.split("([,;])", text) if logged else [text]):
            name = parameter_named(model, part)
            column = f"({name})" if name in data.number_parameters and part not in columns else part
            read += column
            if part not in ",;" and _is_expression(data, column):
                add = data.with_logged_column if logged else data.with_column
                data = add(column, figure.labels.get(part, ""), option)
        named[option] = named[option] and read
    return data, replace(asked, **named)


def prepare(figure: Figure, data: Cells, asked: FigureOptions) -> tuple[Cells, FigureOptions]:
    """Return data with a parameter for each expression along an axis, and all options."""
    taken = [name for name in (asked.x, asked.y, asked.by) if name is not None]
    for side in ("x", "y", "by"):
        text = getattr(asked, side) or ""
        data = data.with_parameter(text, taken, side) if _is_expression(data, text) else data
    return data, resolve_options(figure, asked, data)


def _is_expression(data: Cells, text: str) -> bool:
    names = {field.name for schema in (data.schema, data.logged) for field in schema.fields}
    return bool(text) and not text.isidentifier() and text not in {*names, RUN}


def two_axes(data: Cells, options: FigureOptions) -> tuple[Axis, Axis]:
    """Return the axes x and y of a figure in which no other parameter varies but that of panels."""
    x = parameter_axis(data, "x", options.x, log=options.is_log("x"))
    y = parameter_axis(data, "y", options.y, log=options.is_log("y"))
    if x.name == y.name:
        raise BadValue("x", x.name, f"y is {y.name} too; the two axes take different parameters.")
    if options.by in (x.name, y.name):
        raise BadValue("by", options.by, "it is an axis already; panels take another parameter.")
    if options.by is not None:
        require_parameter(data, "by", options.by)
    taken = [name for name in (x.name, y.name, options.by) if name is not None]
    for name in labels.free_parameters(data, taken):
        if name != RUN:
            values = ", ".join(map(str, data.values[name][:4]))
            accepts = f"y is {y.name}, {name} varies too ({values}, ...); make it an axis, make "
            accepts += f"panels of it (option by), or choose one (option where, {name}=VALUE)."
            raise BadValue("x", x.name, accepts)
    return x, y


def require_grid(data: Cells, options: FigureOptions, x: Axis, y: Axis) -> None:
    """Refuse an expression along an axis whose points make no grid with the other axis."""
    points = len(data.frame[[x.name, y.name]].drop_duplicates())
    if data.replaced and points < len(x.values) * len(y.values):
        side, axis = ("x", x) if y.name.isidentifier() else ("y", y)
        accepts = "its values with those of the other axis make no grid; lines draws them."
        raise BadValue(side, axis.name, accepts)


def measured_column(data: Cells, name: str | None, option: str = "value") -> tuple[str, str]:
    """Return the name and the label of the column to draw: by default the study's headline."""
    name = data.study.headline if name is None else name
    columns = data.schema.named("measured")
    if not name and not data.study.columns:
        raise UserError(f"{data.study.name} has measured nothing here: no cell is done.")
    if name not in columns:
        hint = suggestion(name, columns)
        raise BadValue(option, name, f"{data.study.name} measures no {name!r}; {hint}")
    if name not in data.trained:
        raise BadValue(option, name, f"these cells don't hold {name}; sweep them again.")
    return name, labels.axis_label(data.schema, name)


def theory_column(data: Cells, options: FigureOptions, value: str) -> tuple[str, str] | None:
    """Return the name and the label of a theory's column beside that of value; None for none."""
    if options.theory is None:
        return None
    column = measured_column(data, options.theory, "theory")
    if data.pairs or value == column[0]:
        raise BadValue("theory", options.theory, "it takes a column beside that of value.")
    return column


def middle_threshold(numbers: pd.Series[float]) -> float:
    """Return the default threshold: the middle of the measured numbers, in three digits.

    It is the geometric middle where all are positive and span more than a factor of 10.
    """
    low, high = float(numbers.min()), float(numbers.max())
    logarithmic = low > 0 and high / low > 10
    return round_digits(np.sqrt(low * high) if logarithmic else (low + high) / 2, 3)


def choose_scale(log: bool | None, numbers: pd.Series[float], *, factor: float) -> bool:
    """Return whether a measured column is drawn on a logarithmic scale.

    Args:
        factor: the span of positive numbers from which the scale is logarithmic by default.
    """
    low, high = float(numbers.min()), float(numbers.max())
    if log and low <= 0:
        least = f"the least number drawn is {low:g}, which has no logarithm."
        raise BadValue("log", "value", least)
    return (low > 0 and high / low > factor) if log is None else log


def usable_cells(data: Cells, value: str) -> pd.DataFrame:
    """Return the cells that are done and have a finite `value`, as a float column."""
    usable: pd.DataFrame = data.trained.assign(**{value: finite_column(data.trained, value)})
    return usable[usable[value].notna()]


def misses_in_words(cells: pd.DataFrame) -> str:
    """Write why cells have no number: `target not reached`, `diverged`, `failed`, or several."""
    reasons = missed_by(cells).where(cells["status"] == "failed", "step limit")
    words = {"step limit": "target not reached", "diverged": "diverged"}
    told = [words.get(reason, "failed") for reason in sorted(set(reasons), reverse=True)]
    return " or ".join(dict.fromkeys(told))


def lost_in_words(cells: pd.DataFrame, numbers: pd.Series[float], *, is_median: bool) -> list[str]:
    """Write how many cells missed or have no number, why, and where a figure has them.

    Args:
        numbers: those of the cells, infinite where one missed: beyond the others for a median.
    """
    missed, failed = numbers == np.inf, cells["status"] == "failed"
    lost = failed & numbers.isna()
    beyond, left_out = (missed, lost) if is_median else (missed & False, missed | lost)
    words = [
        f"{plural(int(which.sum()), 'cell')} ({misses_in_words(cells[which])}) {how}"
        for which, how in ((beyond, "taken as beyond the others"), (left_out, "left out"))
        if which.any()
    ]
    if count := int((numbers.isna() & ~failed).sum()):
        words.append(f"{plural(count, 'cell')} without a number left out")
    return words


def require_numbers(data: Cells, value: str) -> pd.DataFrame:
    """Return the cells that are done and have a finite `value`, as a float column."""
    usable = usable_cells(data, value)
    if usable.empty:
        raise BadValue("value", value, f"none of the {len(data.trained)} cells has a number there.")
    return usable


BAND = 3
"""The number of seeds from which a setting is drawn as a mean with a band."""


def averaging(options: FigureOptions, seeds: int) -> Averaging:
    """Return the statistic over so many seeds, and its band, as the user wants it.

    By default it is the median with its quartiles, or with a line for each seed where there are
    fewer than three. A mean has its 95 % interval, and such a band is a mean's.
    """
    mean = options.mean or ("arithmetic" if options.band in ("interval", "sd") else "median")
    usual: Any = "quartiles" if mean == "median" else "interval"
    return Averaging(mean, options.band or ("seeds" if seeds < BAND else usual))


@dataclass(frozen=True)
class Panel:
    """A part of the data with its title; the title of a single panel is empty.

    Attributes:
        colour: that of its only line, where panels have a line each.
    """

    title: str
    data: Cells
    colour: ColorType = style.PALETTE[0]


def panels(data: Cells, *names: str | None) -> list[Panel]:
    """Split the data by the values of parameters, in order; one that is None splits nothing."""
    by = list(dict.fromkeys(name for name in names if name is not None))
    for name in by:
        require_parameter(data, "by", name)
    parts = [
        Panel(", ".join(labels.setting(data.schema, *each) for each in values.items()), part)
        for values, part in data.settings(by)
    ]
    if len(parts) > MOST_PANELS:
        accepts = f"it makes {len(parts)} panels here; at most {MOST_PANELS} fit side by side."
        raise BadValue("by", by[-1], accepts)
    return parts


def panels_of_runs(data: Cells, by: str | None) -> list[Panel]:
    """Split the data by its run directories and as `panels` does."""
    return panels(data, RUN if data.run_names else None, by)


def panels_for_lines(data: Cells, names: Sequence[str]) -> str | None:
    """Return the parameter to make panels of where there would be more lines than colours.

    It is None where the lines are few enough, where no single parameter suffices, or where the
    lines differ by one number, so that shades of a colour show it.
    """
    lines = data.trained[list(names)].drop_duplicates()
    if not names or len(lines) <= len(style.PALETTE) or is_one_number(data, names):
        return None
    for name in names:
        remaining = lines.drop(columns=name).drop_duplicates()
        if lines[name].nunique() <= MOST_PANELS and max(len(remaining), 1) <= len(style.PALETTE):
            return name
    return None


def is_one_number(data: Cells, names: Sequence[str]) -> bool:
    """Return whether lines differ by one parameter only, and it is a number."""
    return len(names) == 1 and names[0] != RUN and not labels.is_word(data.schema, names[0])


def side_by_side(names: Sequence[str], parts: Sequence[Cells], value: str = "") -> Cells:
    """Return the data of several run directories together, with the column `run directory`.

    Args:
        value: the column that the figure draws, which all of them have.
    """
    if len(parts) == 1:
        return parts[0]
    first, is_one_study = parts[0], len({part.study.name for part in parts}) == 1
    varying = {name for part in parts for name in part.varying()}
    for name, part in zip(names, parts, strict=True):
        lacks = sorted(varying - {*describe(part.study.parameters)})
        if value and not is_one_study and not {value} & {*part.frame, *part.steps}:
            lacks.append(value)
        if lacks:
            lack = f"have no {lacks[0]}, which varies or is drawn in another"
            others = "name runs of one study, or of the same parameters and columns."
            raise BadValue("directory", name, f"its cells, of {part.study.name}, {lack}; {others}")

    def together(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
        """The rows of all, whose keys begin with the names."""
        named = [table.assign(**{RUN: n}) for n, table in zip(names, tables, strict=True)]
        rows = pd.concat(named, ignore_index=True)
        return rows.assign(key=rows[RUN] + "/" + rows["key"]) if "key" in rows else rows

    called = dict(zip(names, parts, strict=True))
    field = Field(RUN, "literal", choices=tuple(names), label="run", role="cell")
    return replace(
        first,
        frame=together(part.frame for part in parts),
        schema=first.schema.with_field(field),
        read_steps=lambda: together(part.steps for part in parts),
        runs=tuple(replace(run, name=name) for name, part in called.items() for run in part.runs),
        differs=_differences(names, parts) if is_one_study else {},
        parts=called,
    )


def _differing(parts: Sequence[Cells]) -> dict[str, tuple[Value, ...]]:
    """The parameters with one value in each part that is not the same, and these values."""
    taken = {name: [part.values.get(name, ()) for part in parts] for name in parts[0].values}
    return {
        name: tuple(value for (value,) in each)
        for name, each in taken.items()
        if all(len(values) == 1 for values in each) and len({*each}) > 1
    }


def _differences(names: Sequence[str], parts: Sequence[Cells]) -> dict[str, str]:
    """How the parameters differ that don't vary, by their names: `0.1 (first), 0.2 (second)`."""
    told = dict[str, str]()
    for parameter, values in _differing(parts).items():
        pairs = zip(map(labels.brief, values), names, strict=True)
        told[parameter] = ", ".join(f"{value} ({of})" for value, of in pairs)
    return told


def difference(data: Cells, minus: Cells, called: tuple[str, str], column: str) -> Cells:
    """Return cells whose column is its difference to that of their counterparts.

    Counterparts have the same seed and values of the parameters that vary. Without a seed in common
    means over seeds are subtracted. The rows are of these cells; where these are published points,
    which have no keys, of the others. The label of the column says what is subtracted.

    Args:
        called: the names of both.
    """
    parts, varied = [data, minus], {*data.varying(), *minus.varying()}
    names = [n for n in dict.fromkeys([*data.parameters, *minus.parameters]) if n in varied]
    for name in (*names, column):
        if any(name not in part.frame for part in parts):
            raise BadValue("minus", called[1], f"its cells and the others don't share {name}.")
    pairs = pair_up(data.trained, minus.trained, names, [column])
    if not pairs.both:
        shared = ", ".join(names) or "the parameters"
        accepts = f"no cell of it has the seed and the values of {shared} of a cell here."
        raise BadValue("minus", called[1], accepts)
    left, right = pairs.left, pairs.right
    lost, also_lost = (side["status"] == "failed" for side in (left, right))
    reasons = [side.get("reason", pd.Series("", side.index)) for side in (left, right)]
    cells, rows = (data, left) if "key" in left else (minus, right)
    changed = rows.assign(
        **{column: left[column].astype(float) - right[column].astype(float)},
        status=np.where(lost | also_lost, "failed", "done"),
        reason=reasons[0].where(lost, reasons[1]),
    )
    differing, less = _differing(parts), f", less that of {labels.literal(called[1])}"
    if len(differing) == 1:
        less = f": {labels.contrast(data.schema, *differing.items())}"
    label = f"{labels.axis_label(data.schema, column)}{less}"
    # A number that one side missed is no difference: it is not known.
    known: dict[str, Any] = {"unit": "", "symbol": "", "reached": True, "diverges": False}
    known["declared"] = True
    return replace(
        cells.with_trained(changed) if cells.run.sparse else cells.without_plan(changed),
        schema=cells.schema.with_field(replace(data.schema[column], label=label, **known)),
        pairs=pairs,
        differs=_differences(called, parts),
        parts=dict(zip(called, parts, strict=True)),
    )
