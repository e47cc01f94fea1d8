"""Picture of a comparison, B less A over the parameters that vary, and its record."""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from overfit_cli.core.figure import MOST_PANELS, Figure, FigureOptions, any_grid
from overfit_cli.core.files import read_bounded
from overfit_cli.core.parameters import describe
from overfit_cli.core.registry import figures_of
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import VERSION, BadValue
from overfit_cli.figures.caption import WIDTH
from overfit_cli.figures.draw import commands_behind, drawn
from overfit_cli.figures.inputs import resolve_options
from overfit_cli.figures.labels import brief, parameter_values, varying_parameters
from overfit_cli.figures.panels import subtract
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.record import (
    ComparisonRecord,
    FigureRecord,
    FileRecord,
    RunRecord,
    path_beside,
    record_of_cells,
    versions,
)
from overfit_cli.figures.style import THRESHOLD
from overfit_cli.report.difference_words import interpolated_in_words
from overfit_cli.report.differences import Comparison
from overfit_cli.report.published import MOST_BYTES
from overfit_cli.report.sides import Side, names_of
from overfit_cli.stats.pairs import is_log_spaced

FIGURE = "difference"
"""The figure's name in a record."""


def draw_difference(
    comparison: Comparison, command: str = "", out: Path | None = None, names: Sequence[str] = ()
) -> Picture:
    """Draw the difference in the first compared column, with its caption and its record.

    Over one number it is lines, over two a map; one more parameter has panels.

    Args:
        comparison: the comparison.
        command: the command line, for the caption; empty from Python.
        out: the file that it is drawn for; None where that isn't known.
        names: what the figure calls the two sides; empty for what their paths say.

    Raises:
        UserError: if nothing varies, more varies than a figure shows, or no pair has a number.
    """
    first, second = names or names_of(comparison.a, comparison.b)
    column = comparison.differences[0].column
    data = _data(comparison, column, first)
    figure, options = _figure(data, column)
    runs = [side.path for side in (comparison.a, comparison.b) if not side.is_published]
    picture = drawn(figure, data, options, commands_behind(runs, command))
    if figure.axes == 1:
        for axes in picture.axes:
            axes.axhline(0, **THRESHOLD)
    said = [f"B less A: B is {second}, A is {first}."]
    said += [interpolated_in_words(comparison.between)] if comparison.between is not None else []
    picture.caption = f"{textwrap.fill(' '.join(said), WIDTH)}\n\n{picture.caption}"
    picture.metadata = record_of_comparison(comparison, (first, second), command, out).metadata()
    return picture


def _data(comparison: Comparison, column: str, less: str) -> FigureData:
    """The pairs as cells whose column is B less A, which is called `less`."""
    pairs, only_a, only_b = comparison.pairs, comparison.alone_in_a, comparison.alone_in_b
    cells = pairs.left.assign(**{column: pairs.right[column]}, status=pairs.right["status"])
    seeds = [
        side.cells["seed"].nunique() for side in (comparison.b, comparison.a) if pairs.by == "means"
    ]
    return FigureData(
        comparison.a.study,
        subtract(cells, pairs.left, column),
        planned=pd.DataFrame(columns=["seed", *comparison.a.parameters]),
        trajectories=pd.DataFrame(),
        refined=comparison.a.refined or comparison.b.refined,
        less=less,
        averaged="mean of {} seeds less mean of {} seeds".format(*seeds) if seeds else "",
        unpaired=f"{only_a} of A and {only_b} of B without a counterpart"
        if only_a or only_b
        else "",
        differs=tuple(
            f"{name} {brief(first)} (A), {brief(second)} (B)"
            for name, (first, second) in comparison.settings.items()
        ),
    )


def _figure(data: FigureData, column: str) -> tuple[Figure, FigureOptions]:
    """What draws the data, with what lies along which axis.

    Raises:
        UserError: if nothing varies, or more than a figure shows.
    """
    described, varying = describe(data.study.parameters), varying_parameters(data)
    numbers = [name for name in varying if described[name].kind in ("int", "float")]
    if not varying:
        raise BadValue(
            "out", None, "no parameter varies in the pairs, so there is nothing to draw."
        )
    if len(numbers) < 2:
        return any_grid()["lines"], _over(data, column, (numbers or varying)[0])
    figure = figures_of(data.study)["heatmap"]
    if "minus" not in figure.accepts or not described.keys() <= set(data.cells):
        # Cells of another version may lack a column that the study's own map needs.
        figure = any_grid()["heatmap"]
    options = FigureOptions(value=column)
    if not {figure.options.x, figure.options.y} <= set(numbers):
        options = FigureOptions(value=column, x=numbers[1], y=numbers[0])
    resolved = resolve_options(figure, options, data)
    others = [name for name in varying if name not in (resolved.x, resolved.y)]
    values = parameter_values(data)
    if len(others) > 1 or any(len(values[name]) > MOST_PANELS for name in others):
        raise BadValue("out", None, _too_many(varying))
    return figure, FigureOptions(
        value=column, x=resolved.x, y=resolved.y, by=next(iter(others), None)
    )


def _over(data: FigureData, column: str, x: str) -> FigureOptions:
    """Lines over a parameter; a difference is never drawn on a logarithmic axis."""
    number = describe(data.study.parameters)[x].kind in ("int", "float")
    geometric = number and is_log_spaced(parameter_values(data)[x])
    return FigureOptions(value=column, x=x, log=frozenset({"x"} if geometric else ()))


def _too_many(varying: Sequence[str]) -> str:
    return (
        f"{', '.join(varying)} vary, more than a figure shows; choose values "
        "with --where NAME=VALUE."
    )


def record_of_comparison(
    comparison: Comparison, names: Sequence[str], command: str = "", out: Path | None = None
) -> FigureRecord:
    """Return the record of a comparison's figure.

    Args:
        comparison: the comparison; its first column is drawn.
        names: the sides' names in the figure.
        command: the command line; empty from Python.
        out: the figure's file; None where it isn't known.
    """
    a, b = comparison.a, comparison.b
    columns = tuple(difference.column for difference in comparison.differences)
    sides = [
        record_of_side(side, columns[0], out, name)
        for side, name in zip((a, b), names, strict=True)
        if not side.is_published
    ]
    published = None
    if b.is_published:
        data, beside = digest_of_file(b.path), path_beside(b.path, out)
        published = FileRecord(path=b.path.as_posix(), beside=beside, name=names[1], data=data)
    return FigureRecord(
        schema=1,
        overfit=VERSION,
        packages=versions(),
        command=command,
        title=f"{columns[0]}: {names[1]} less {names[0]}",
        figure=FIGURE,
        where=a.shared,
        runs=tuple(sides),
        compared=ComparisonRecord(
            columns=columns,
            where_a=a.where,
            where_b=b.where,
            interpolate=comparison.between is not None,
            published=published,
        ),
    )


def record_of_side(side: Side, column: str, out: Path | None = None, name: str = "") -> RunRecord:
    """Return the record of a side that is a run; times count where `column` is `seconds`."""
    seconds = column == "seconds"
    return record_of_cells(
        side.path, side.study.name, side.cells, seconds=seconds, out=out, name=name
    )


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a CSV file's content.

    Raises:
        OSError: if it can't be read.
    """
    return hashlib.sha256(read_bounded(path, MOST_BYTES)).hexdigest()
