"""Picture of a comparison, B less A over the parameters that vary, and its record."""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import Figure, FigureOptions, grid_figures
from overfit_cli.core.files import read_bounded
from overfit_cli.core.parameters import describe
from overfit_cli.core.registry import figures_of
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import VERSION
from overfit_cli.figures.caption import WIDTH
from overfit_cli.figures.draw import commands_behind, drawn
from overfit_cli.figures.inputs import resolve_options
from overfit_cli.figures.labels import (
    axis_label,
    brief,
    contrast,
    parameter_values,
    varying_parameters,
)
from overfit_cli.figures.panels import subtract
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.record import (
    ComparisonRecord,
    FigureRecord,
    SourceRecord,
    path_beside,
    record_of_cells,
    versions,
)
from overfit_cli.figures.style import THRESHOLD
from overfit_cli.report.differences import Comparison
from overfit_cli.report.published import MOST_BYTES
from overfit_cli.report.sides import Side
from overfit_cli.stats.pairs import is_log_spaced
from overfit_cli.sweeps.manifest import read_manifest


def draw_difference(
    comparison: Comparison, command: str = "", out: Path | None = None, names: Sequence[str] = ()
) -> Picture:
    """Draw the difference in the first compared column, with its caption and its record.

    Over one number it is lines, over two a map; one more parameter has panels.
    """
    a, b = comparison.a, comparison.b
    first, second = names or comparison.labels
    data = _figure_data(comparison, first)
    figure, options = _choose_figure(data, comparison.differences[0]["column"])
    runs = [side.path for side in (a, b) if not side.is_published]
    picture = drawn(figure, data, options, commands_behind(runs, command))
    if figure.axes == 1:
        for axes in picture.axes:
            axes.axhline(0, **THRESHOLD)
    caption = f"B less A: B is {second}, A is {first}."
    if data.contrast and a.path == b.path and not names:
        [(name, values)] = comparison.settings.items()
        value_a, value_b = (brief(values[side]) for side in "ab")
        caption = f"B less A: B has {axis_label(a.study, name)} {value_b}, A {value_a}."
    picture.caption = f"{textwrap.fill(caption, WIDTH)}\n\n{picture.caption}"
    picture.metadata = _record(comparison, (first, second), command, out).metadata()
    return picture


def _figure_data(comparison: Comparison, less: str) -> FigureData:
    a, b, pairs, alone = comparison.a, comparison.b, comparison.pairs, comparison.alone
    column = comparison.differences[0]["column"]
    cells = pairs.left.assign(**{column: pairs.right[column]}, status=pairs.right["status"])
    seeds = [side.cells["seed"].nunique() for side in (b, a) if pairs.by == "means"]
    manifests = [read_manifest(side.path) for side in (a, b) if not side.is_published]
    sparse = any(manifest is not None and manifest.sparse for manifest in manifests)
    return FigureData(
        a.study,
        subtract(cells, pairs.left, column),
        planned=cells.loc[slice(None) if sparse else [], ["seed", *a.parameters]],
        trajectories=pd.DataFrame(),
        sparse=sparse,
        refined=any(manifest is not None and manifest.refined for manifest in manifests),
        less=less,
        contrast=contrast(
            a.study, {name: (v["b"], v["a"]) for name, v in comparison.settings.items()}
        ),
        averaged="mean of {} seeds less mean of {} seeds".format(*seeds) if seeds else "",
        unpaired=f"{alone['a']} of A and {alone['b']} of B without a counterpart"
        if any(alone.values())
        else "",
        differs=tuple(
            f"{name} {brief(values['a'])} (A), {brief(values['b'])} (B)"
            for name, values in comparison.settings.items()
        ),
        parts=comparison.parts,
    )


def _choose_figure(data: FigureData, column: str) -> tuple[Figure, FigureOptions]:
    described, varying = describe(data.study.parameters), varying_parameters(data)
    numbers = [name for name in varying if described[name].kind in ("int", "float")]
    values = parameter_values(data)
    if not varying:
        nothing = "no parameter varies in the pairs, so there is nothing to draw."
        raise BadValue("out", None, nothing)
    if len(numbers) < 2:
        x = (numbers or varying)[0]
        # A difference is never drawn on a logarithmic axis.
        log = frozenset({"x"} if numbers and is_log_spaced(values[x]) else ())
        return grid_figures()["lines"], FigureOptions(value=column, x=x, log=log)
    figure = figures_of(data.study)["heatmap"]
    if "minus" not in figure.accepts or not described.keys() <= set(data.cells):
        # Cells of another version may lack a column that the study's own map needs.
        figure = grid_figures()["heatmap"]
    options = FigureOptions(value=column)
    if not {figure.options.x, figure.options.y} <= set(numbers):
        options = FigureOptions(value=column, x=numbers[1], y=numbers[0])
    options = resolve_options(figure, options, data)
    by = next((name for name in varying if name not in (options.x, options.y)), None)
    return figure, FigureOptions(value=column, x=options.x, y=options.y, by=by)


def _record(
    comparison: Comparison, names: tuple[str, str], command: str, out: Path | None
) -> FigureRecord:
    column, a, b = comparison.differences[0]["column"], comparison.a, comparison.b
    runs = [
        record_of_side(side, column, out, name) for side, name in zip((a, b), names, strict=True)
    ]
    published = runs.pop() if b.is_published else None
    return FigureRecord(
        schema=1,
        overfit=VERSION,
        packages=versions(),
        command=command,
        title=f"{column}: {names[1]} less {names[0]}",
        figure="difference",
        where=comparison.where,
        runs=tuple(runs),
        compared=ComparisonRecord(
            columns=tuple(record["column"] for record in comparison.differences),
            where_a=a.where,
            where_b=b.where,
            published=published,
        ),
    )


def record_of_side(
    side: Side, column: str, out: Path | None = None, name: str = ""
) -> SourceRecord:
    """Return the record of a side; the times of a run count where `column` is `seconds`."""
    if side.is_published:
        data, beside = digest_of_file(side.path), path_beside(side.path, out)
        return SourceRecord(path=side.path.as_posix(), beside=beside, name=name, data=data)
    return record_of_cells(
        side.path, side.study.name, side.cells, seconds=column == "seconds", out=out, name=name
    )


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a CSV file's content."""
    return hashlib.sha256(read_bounded(path, MOST_BYTES)).hexdigest()
