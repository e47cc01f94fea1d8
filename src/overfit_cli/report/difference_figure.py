"""A difference of two runs: in words, as a figure, and its record.

A comparison in words: what is paired with what, and what differs.

The picture of a comparison: B less A over the parameters that vary, centred at zero.

The record of a comparison's figure: its two sides, and how they were compared.
"""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overfit_cli.core.figure import MOST_PANELS, Figure, FigureOptions
from overfit_cli.core.files import read_bounded
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import VERSION, UserError
from overfit_cli.figures.draw import commands_behind, drawn
from overfit_cli.figures.record import as_text, beside, record_of_cells, versions
from overfit_cli.report.difference_words import interpolated_in_words
from overfit_cli.report.differences import Comparison
from overfit_cli.report.published import MOST_BYTES
from overfit_cli.report.sides import Side, names_of

if TYPE_CHECKING:
    from overfit_cli.figures.picture import Picture
    from overfit_cli.figures.record import FileRecord, Provenance, RunRecord


def draw_difference(
    found: Comparison, command: str = "", out: Path | None = None, names: Sequence[str] = ()
) -> Picture:
    """Draw the difference in the first compared column, with its caption and its record.

    Over one number it is lines, over two a map; one more parameter has panels.

    Args:
        found: the comparison.
        command: what the user typed, for the caption; empty where nothing was.
        out: the file that it is drawn for; None where that isn't known.
        names: what the figure calls the two sides; empty for what their paths say.

    Raises:
        UserError: if nothing varies, more varies than a figure shows, or no pair has a number.
    """
    from overfit_cli.figures.caption import WIDTH
    from overfit_cli.figures.style import THRESHOLD

    first, second = names or names_of(found.a, found.b)
    column = found.differences[0].column
    data = _data(found, column, first)
    figure, options = _figure(data, column)
    runs = [one.path for one in (found.a, found.b) if not one.is_published]
    picture = drawn(figure, data, options, commands_behind(runs, command))
    if figure.axes == 1:
        for axes in picture.axes:
            axes.axhline(0, **THRESHOLD)
    said = [f"B less A: B is {second}, A is {first}."]
    said += [interpolated_in_words(found.between)] if found.between is not None else []
    picture.caption = f"{textwrap.fill(' '.join(said), WIDTH)}\n\n{picture.caption}"
    picture.record = record_of_comparison(found, (first, second), command, out)
    return picture


def _data(found: Comparison, column: str, less: str) -> FigureData:
    """The pairs as cells whose column is B less A, which is called `less`."""
    import pandas as pd

    from overfit_cli.figures.labels import brief
    from overfit_cli.figures.panels import subtracted

    pairs, of_a, of_b = found.pairs, found.alone_in_a, found.alone_in_b
    own = pairs.left.assign(**{column: pairs.right[column]}, status=pairs.right["status"])
    seeds = [one.cells["seed"].nunique() for one in (found.b, found.a) if pairs.by == "means"]
    return FigureData(
        found.a.study,
        subtracted(own, pairs.left, column),
        planned=pd.DataFrame(columns=["seed", *found.a.parameters]),
        trajectories=pd.DataFrame(),
        refined=found.a.refined or found.b.refined,
        less=less,
        averaged="mean of {} seeds less mean of {} seeds".format(*seeds) if seeds else "",
        unpaired=f"{of_a} of A and {of_b} of B without a counterpart" if of_a or of_b else "",
        differs=tuple(
            f"{name} {brief(one)} (A), {brief(other)} (B)"
            for name, (one, other) in found.settings.items()
        ),
    )


def _figure(data: FigureData, column: str) -> tuple[Figure, FigureOptions]:
    """What draws the data, with what lies along which axis.

    Raises:
        UserError: if nothing varies, or more than a figure shows.
    """
    from overfit_cli.core.figure import any_grid
    from overfit_cli.core.parameters import describe
    from overfit_cli.core.registry import figures_of
    from overfit_cli.figures.inputs import resolved_options
    from overfit_cli.figures.labels import parameter_values, varying_parameters

    described, varying = describe(data.study.parameters), varying_parameters(data)
    numbers = [name for name in varying if described[name].kind in ("int", "float")]
    if not varying:
        raise UserError("--out: no parameter varies in the pairs, so there is nothing to draw.")
    if len(numbers) < 2:
        return any_grid()["lines"], _over(data, column, (numbers or varying)[0])
    own = figures_of(data.study)["heatmap"]
    if "minus" not in own.accepts or not described.keys() <= set(data.cells):
        own = any_grid()["heatmap"]  # cells of another version may lack what the study's own needs
    options = FigureOptions(value=column)
    if not {own.options.x, own.options.y} <= set(numbers):
        options = FigureOptions(value=column, x=numbers[1], y=numbers[0])
    resolved = resolved_options(own, options, data)
    others = [name for name in varying if name not in (resolved.x, resolved.y)]
    values = parameter_values(data)
    if len(others) > 1 or any(len(values[name]) > MOST_PANELS for name in others):
        raise UserError(_too_many(varying))
    return own, FigureOptions(value=column, x=resolved.x, y=resolved.y, by=next(iter(others), None))


def _over(data: FigureData, column: str, x: str) -> FigureOptions:
    """Lines over a parameter; a difference is never drawn on a logarithmic axis."""
    from overfit_cli.core.parameters import describe
    from overfit_cli.figures.labels import parameter_values
    from overfit_cli.stats.pairs import by_ratio

    number = describe(data.study.parameters)[x].kind in ("int", "float")
    geometric = number and by_ratio(parameter_values(data)[x])
    return FigureOptions(value=column, x=x, log=frozenset({"x"} if geometric else ()))


def _too_many(varying: Sequence[str]) -> str:
    return (
        f"--out: {', '.join(varying)} vary, more than a figure shows; choose values with "
        "--where NAME=VALUE."
    )


FIGURE = "difference"
"""What a record calls the figure."""


def record_of_comparison(
    found: Comparison, names: Sequence[str], command: str = "", out: Path | None = None
) -> Provenance:
    """Return the record of a comparison's figure.

    Args:
        found: the comparison; its first column is drawn.
        names: what the figure calls its sides.
        command: what the user typed; empty where nothing was.
        out: the figure's file, if it is known.
    """
    from overfit_cli.figures.record import ComparisonRecord, Provenance

    a, b = found.a, found.b
    columns = tuple(one.column for one in found.differences)
    runs = [
        record_of_side(side, columns[0], out, name)
        for side, name in zip((a, b), names, strict=True)
        if not side.is_published
    ]
    return Provenance(
        schema=1,
        overfit=VERSION,
        packages=versions(),
        command=as_text(command),
        title=as_text(f"{columns[0]}: {names[1]} less {names[0]}"),
        figure=FIGURE,
        where=a.shared,
        runs=tuple(runs),
        compared=ComparisonRecord(
            columns=columns,
            where_a=a.where,
            where_b=b.where,
            interpolate=found.between is not None,
            published=_record_of_file(b, out, names[1]) if b.is_published else None,
        ),
    )


def record_of_side(side: Side, column: str, out: Path | None = None, name: str = "") -> RunRecord:
    """Return what a record says of a side that is a run.

    Args:
        side: the run's chosen cells.
        column: what is drawn.
        out: the figure's file, if it is known.
        name: what the figure calls the side.
    """
    timed = column == "seconds"
    return record_of_cells(
        side.path, side.study.name, side.cells, seconds=timed, out=out, name=name
    )


def _record_of_file(side: Side, out: Path | None, name: str) -> FileRecord:
    from overfit_cli.figures.record import FileRecord

    return FileRecord(
        path=as_text(side.path.as_posix()),
        beside=beside(side.path, out),
        name=as_text(name),
        data=digest_of_file(side.path),
    )


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a CSV file's content.

    Raises:
        OSError: if it can't be read.
    """
    return hashlib.sha256(read_bounded(path, MOST_BYTES)).hexdigest()
