"""Picture of z-scores: how far published means lie from a run's, in standard errors of both."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import matplotlib.axes
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from overfit_cli.core.figure import Figure, FigureOptions
from overfit_cli.core.parameters import describe
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import plural
from overfit_cli.figures.heatmap import draw_map
from overfit_cli.figures.lines import draw_lines
from overfit_cli.figures.panels import Panel
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.figures.style import Legend, legend_below
from overfit_cli.report.differences import Comparison
from overfit_cli.report.equivalence import seeds_in_words
from overfit_cli.stats.pairs import setting_keys

LARGEST_Z = 8.0
"""Larger z-scores have its colour in a map: they would pale all others."""

_VERDICT = "verdict on the point"
"""The column of verdicts; no measured column is called so."""

_RING: dict[str, Any] = {
    "linestyle": "none",
    "marker": "o",
    "markersize": 6,
    "markerfacecolor": "none",
    "markeredgecolor": "black",
    "markeredgewidth": 1.0,
    "path_effects": [withStroke(linewidth=2.6, foreground="white")],
}
"""Black with a white edge, to be seen on every colour."""


def judged_column(comparison: Comparison) -> Mapping[str, Any]:
    """Return the first compared column; with a margin, the first whose places are judged."""
    judged = [record for record in comparison.differences if "verdicts" in record]
    return (judged or comparison.differences)[0]


def in_standard_errors(comparison: Comparison, data: FigureData) -> FigureData:
    """Return the data of a difference with a row per place, whose column is its z-score."""
    record, names = judged_column(comparison), list(comparison.pairs.keys)
    points = record["points"]
    located = setting_keys(pd.DataFrame([point["at"] for point in points]), names)
    places = dict(zip(located, points, strict=True))
    keys = setting_keys(data.cells, names)
    first = data.cells[~keys.duplicated() & keys.isin(places.keys())]
    at = [places[key] for key in keys[first.index]]
    cells = first.assign(seed=0, status="done")
    cells[record["column"]] = [point["z"] for point in at]
    cells[_VERDICT] = [point["verdict"] for point in at]
    return replace(
        data,
        cells=cells,
        planned=data.planned.iloc[:0],
        contrast="z of published − run",
        averaged=f"z: the difference of means in its standard errors, {seeds_in_words(points)}",
    )


def with_rings(figure: Figure, comparison: Comparison) -> Figure:
    """Return the grid's map or lines with a ring around each place that differs."""
    ringed = f"differs by more than {comparison.equivalent}"
    drawing = _draw_map if figure.axes == 2 else _draw_lines
    return replace(figure, draw=functools.partial(drawing, ringed))


@styled
def _draw_map(ringed: str, data: FigureData, options: FigureOptions) -> Picture:
    column, x, y = str(options.value), str(options.x), str(options.y)
    legend = _legend(data, ringed)

    def overlay(axes: matplotlib.axes.Axes, part: Panel) -> Legend:
        _draw_rings(axes, part.data.cells, x, y)
        return legend

    scores = data.cells[column]
    clipped = scores.clip(-LARGEST_Z, LARGEST_Z)
    figure = draw_map(replace(data, cells=data.cells.assign(**{column: clipped})), options, overlay)
    figure.facts = figure.facts[:1]  # the others are of seeds, which a z-score sums up
    if unknown := int(scores.isna().sum()):
        figure.facts.append(f"{plural(unknown, 'point')} without a z-score.")
    if beyond := int((scores.abs() > LARGEST_Z).sum()):
        figure.facts.append(
            f"{plural(beyond, 'point')} beyond ±{LARGEST_Z:g} with the colour of ±{LARGEST_Z:g}."
        )
    return _tell(figure, data, ringed)


@styled
def _draw_lines(ringed: str, data: FigureData, options: FigureOptions) -> Picture:
    """Draw z-scores as lines over a number; of several panels or over words without rings."""
    figure = draw_lines(data, options)
    x = str(options.x)
    if len(figure.axes) == 1 and describe(data.study.parameters)[x].kind in ("int", "float"):
        _draw_rings(figure.axes[0], data.cells, x, str(options.value))
        if not figure.legends:
            legend_below(figure, _legend(data, ringed))
    return _tell(figure, data, ringed)


def _draw_rings(axes: matplotlib.axes.Axes, cells: pd.DataFrame, x: str, y: str) -> None:
    differing = cells[cells[_VERDICT] == "differs"]
    axes.plot(differing[x], differing[y], **_RING, scalex=False, scaley=False)


def _legend(data: FigureData, ringed: str) -> Legend:
    count = int((data.cells[_VERDICT] == "differs").sum())
    return [(Line2D([], [], **_RING), f"{ringed} ({plural(count, 'point')})")] if count else []


def _tell(figure: Picture, data: FigureData, ringed: str) -> Picture:
    count, undecided = (int((data.cells[_VERDICT] == name).sum()) for name in ("differs", "open"))
    figure.facts.append(
        f"Ringed: {count} of {plural(len(data.cells), 'point')}, where the run {ringed} from the "
        f"published mean (the 95 % Welch interval lies outside); {undecided} others are open."
    )
    return figure
