"""Picture of a comparison, B less A over the parameters that vary, and its record."""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import Figure, FigureOptions, grid_figures
from overfit_cli.core.files import read_bounded
from overfit_cli.core.parameters import describe
from overfit_cli.core.registry import figures_of
from overfit_cli.figures.draw import (
    ComparisonRecord,
    SourceRecord,
    drawn,
    new_record,
    path_beside,
    record_of_cells,
)
from overfit_cli.figures.inputs import difference, resolve_options
from overfit_cli.figures.labels import WIDTH
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.style import THRESHOLD
from overfit_cli.report.compare import Comparison, is_published, path_of
from overfit_cli.stats.pairs import is_log_spaced


def draw_difference(
    comparison: Comparison, command: str = "", out: Path | None = None, names: Sequence[str] = ()
) -> Picture:
    """Draw the difference in the first compared column: lines over one number, a map over two."""
    first, second = names or comparison.names
    columns = tuple(each["column"] for each in comparison.columns)
    less = difference(comparison.b, comparison.a, (second, first), columns[0])
    sides = {first: comparison.a, second: comparison.b}
    runs = {name: side for name, side in sides.items() if not is_published(side)}
    less = replace(less, parts=dict(reversed(runs.items())))
    figure, options = _choose_figure(less, columns[0])
    picture = drawn(figure, less, options, command)
    if figure.axes == 1:
        for axes in picture.axes:
            axes.axhline(0, **THRESHOLD)
    caption = textwrap.fill(f"B less A: B is {second}, A is {first}.", WIDTH)
    picture.caption = f"{caption}\n\n{picture.caption}"
    pairs = ((first, comparison.a), (second, comparison.b))  # both may have one name
    sources = [record_of_side(side, columns[0], out, name) for name, side in pairs]
    published = sources.pop() if is_published(comparison.b) else None
    where, where_a, where_b = comparison.where
    picture.metadata = new_record(
        command=command,
        title=f"{columns[0]}: {second} less {first}",
        figure="difference",
        where=where,
        runs=tuple(sources),
        compared=ComparisonRecord(
            columns=columns, where_a=where_a, where_b=where_b, published=published
        ),
    ).metadata()
    return picture


def _choose_figure(data: Cells, column: str) -> tuple[Figure, FigureOptions]:
    described, varying = describe(data.study.parameters), data.varying()
    numbers = [name for name in varying if described[name].kind in ("int", "float")]
    if not varying:
        nothing = "no parameter varies in the pairs, so there is nothing to draw."
        raise BadValue("out", None, nothing)
    if len(numbers) < 2:
        x = (numbers or varying)[0]
        # A difference is never drawn on a logarithmic axis.
        log = frozenset({"x"} if numbers and is_log_spaced(data.values[x]) else ())
        return grid_figures()["lines"], FigureOptions(value=column, x=x, log=log)
    figure = figures_of(data.study)["heatmap"]
    if "minus" not in figure.accepts or not described.keys() <= set(data.frame):
        # Cells of another version may lack a column that the study's own map needs.
        figure = grid_figures()["heatmap"]
    options = FigureOptions(value=column)
    if not {figure.options.x, figure.options.y} <= set(numbers):
        options = FigureOptions(value=column, x=numbers[1], y=numbers[0])
    options = resolve_options(figure, options, data)
    by = next((name for name in varying if name not in (options.x, options.y)), None)
    return figure, FigureOptions(value=column, x=options.x, y=options.y, by=by)


def record_of_side(
    side: Cells, column: str, out: Path | None = None, name: str = ""
) -> SourceRecord:
    """Return the record of a side; the times of a run count where `column` is `seconds`."""
    if is_published(side):
        path = path_of(side)
        data, beside = digest_of_file(path), path_beside(path, out)
        return SourceRecord(path=path.as_posix(), beside=beside, name=name, data=data)
    return record_of_cells(side, seconds=column == "seconds", out=out, name=name)


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a CSV file's content."""
    return hashlib.sha256(read_bounded(path)).hexdigest()
