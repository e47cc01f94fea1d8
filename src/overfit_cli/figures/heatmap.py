"""A measured column over two parameters, as a map of colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import AbstractPathEffect, withStroke
from numpy.typing import NDArray

from overfit_cli.errors import UserError
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.axis import Axis
from overfit_cli.figures.equations import asked_equations, draw_equations
from overfit_cli.figures.grid import Grid, lay_out, seeds_in_words
from overfit_cli.figures.inputs import (
    checked_scale,
    checked_threshold,
    is_log,
    measured,
    two_axes,
    usable_cells,
    with_numbers,
)
from overfit_cli.figures.labels import opening
from overfit_cli.figures.panels import Panel, panels_of_runs
from overfit_cli.figures.picture import Picture, label_outer, new_panels, styled, title_panels
from overfit_cli.figures.refined import (
    draw_failed,
    draw_known_boundary,
    draw_means_where_sampled,
    legend_of_boundary,
)
from overfit_cli.figures.style import (
    DIVERGING,
    HIGH,
    Legend,
    legend_below,
    log_ticks,
    plain,
    wrapped,
)
from overfit_cli.words import plural

HATCHES = {"failed": "//////", "partly": "///", "missing": "......"}
"""How places without a number are marked, and those whose mean is that of some seeds alone."""

WORDS = {"failed": "failed", "partly": "some seeds failed", "missing": "missing"}
CONTOUR: dict[str, Any] = {"color": "white", "linewidth": 1.1}
_OUTLINE: list[AbstractPathEffect] = [withStroke(linewidth=2.2, foreground="black")]

Overlay = Callable[[matplotlib.axes.Axes, Panel], Legend]
"""What a study draws on a panel of its data; it returns what a legend says of that."""

Place = tuple[matplotlib.axes.Axes, Grid, Panel]
"""A panel, with what is drawn on it."""


@dataclass(frozen=True)
class Map:
    """What a map is drawn from: its axes, its column, and a grid for each panel."""

    x: Axis
    y: Axis
    value: str
    label: str
    parts: Sequence[Panel]
    grids: Sequence[Grid]
    seeds: str

    @property
    def facts(self) -> list[str]:
        """What a caption says of it."""
        left_out = sum(grid.left_out for grid in self.grids)
        failed = f"; {plural(left_out, 'failed cell')} left out" if left_out else ""
        axes = f"{self.x.label} and {self.y.label}"
        return [f"{opening(self.label)} over {axes}: {self.seeds}{failed}."]


@styled
def draw_heatmap(data: FigureData, options: FigureOptions) -> Picture:
    """Draw `options.value`, averaged over seeds, as colours over the parameters x and y.

    There is a panel for each run directory and each value of the parameter `by`, all in the same
    colours: by ratio where the values are positive and span more than a factor of 100. A line is
    the contour of the threshold; that of the study is drawn of its headline. Places where every
    seed failed are hatched, those where some did hatched over their colour, places without any
    number dotted, and all are counted. Of a sweep that refined, only places with cells are
    coloured, in dots whose area grows with the number of seeds, and the line is the median
    crossing with its interval.

    Raises:
        UserError: if x or y can't be an axis, another parameter varies, the column is unknown or
            empty, the threshold isn't finite, or an equation is none.
    """
    return draw_map(data, options)


def draw_map(
    data: FigureData, options: FigureOptions, overlay: Overlay = lambda axes, part: []
) -> Picture:
    """Draw a heatmap with more on each of its panels; call it `styled`."""
    shown = lay_out_map(data, options)
    figure, all_axes = new_map(shown)
    mesh = _draw_colours(all_axes, shown, data, options)
    bar = figure.colorbar(mesh, ax=list(all_axes), label=wrapped(shown.label, HIGH), pad=0.02)
    if isinstance(mesh.norm, LogNorm):
        log_ticks(bar.ax.yaxis, float(mesh.norm.vmin or 1), float(mesh.norm.vmax or 1))
    legend = _draw_levels(figure, all_axes, shown, _level(data, options, shown))
    more = [overlay(axes, part) for axes, part in zip(all_axes, shown.parts, strict=True)]
    legend += next((entries for entries in more if entries), [])
    finish_map(figure, all_axes, shown, data, options, legend)
    return figure


def lay_out_map(data: FigureData, options: FigureOptions) -> Map:
    """Return what a map of these options is drawn from.

    Raises:
        UserError: see `draw_heatmap`.
    """
    x, y = two_axes(data, options, panels=True)
    value, label = measured(data, options.value)
    checked_threshold(options.threshold)
    asked_equations(data, options, (x, y))
    with_numbers(data, value)
    parts = panels_of_runs(data, options.by)
    grids = [lay_out(part.data, x, y, value) for part in parts]
    return Map(x, y, value, label, parts, grids, data.averaged or seeds_in_words(grids))


def new_map(shown: Map) -> tuple[Picture, list[matplotlib.axes.Axes]]:
    """Return an empty picture of a map's panels."""
    figure, all_axes = new_panels(len(shown.parts), height=2.6)
    for axes in all_axes:
        shown.x.dress(axes, "x")
        shown.y.dress(axes, "y")
    label_outer(all_axes)
    title_panels(all_axes, [part.title for part in shown.parts])
    figure.facts += shown.facts
    return figure, all_axes


def finish_map(
    figure: Picture,
    all_axes: Sequence[matplotlib.axes.Axes],
    shown: Map,
    data: FigureData,
    options: FigureOptions,
    legend: Legend,
) -> None:
    """Draw equations and what has no number over a map, and its legend below."""
    equations = asked_equations(data, options, (shown.x, shown.y))
    legend = legend + draw_equations(figure, all_axes, equations, shown.x, shown.y, data)
    whole, refined = by_sampling(all_axes, shown)
    for state in HATCHES:
        count = sum(int(getattr(grid, state).sum()) for _, grid, _ in whole)
        patches = [_hatch(axes, grid, getattr(grid, state), state) for axes, grid, _ in whole]
        if count:
            legend.append((patches[0], f"{WORDS[state]} ({count})"))
    if count := sum(int((grid.failed & grid.sampled).sum()) for _, grid, _ in refined):
        crosses = [draw_failed(axes, grid) for axes, grid, _ in refined]
        legend.append((crosses[0], f"failed ({count})"))
    legend_below(figure, legend)


def by_sampling(
    all_axes: Sequence[matplotlib.axes.Axes], shown: Map
) -> tuple[list[Place], list[Place]]:
    """Return the panels of whole grids, and those of sweeps that refined."""
    places = list(zip(all_axes, shown.grids, shown.parts, strict=True))
    whole = [place for place in places if not place[2].data.refined]
    return whole, [place for place in places if place[2].data.refined]


def _draw_colours(
    all_axes: Sequence[matplotlib.axes.Axes], shown: Map, data: FigureData, options: FigureOptions
) -> Any:
    """Colour the places; return what a colour bar is made from."""
    everything = pd.Series(np.concatenate([grid.mean.ravel() for grid in shown.grids])).dropna()
    low, high = float(everything.min()), float(everything.max())
    if data.less:
        if is_log(options, "value"):
            raise UserError("--log value: a difference has no logarithm where it is negative.")
        most = max(abs(low), abs(high)) or 1.0
        norm: Normalize = Normalize(-most, most)
    else:
        log = checked_scale(is_log(options, "value"), everything, factor=100)
        norm = LogNorm(low, high) if log else Normalize(low, high)
    colours = options.cmap or (DIVERGING if data.less else None)
    look: dict[str, Any] = {"cmap": colours, "norm": norm, "rasterized": True}
    for axes, grid, part in zip(all_axes, shown.grids, shown.parts, strict=True):
        if part.data.refined:
            drawn = draw_means_where_sampled(axes, grid, look)
        else:
            drawn = axes.pcolormesh(grid.x.edges, grid.y.edges, grid.mean, **look)
    return drawn


def _level(data: FigureData, options: FigureOptions, shown: Map) -> float | None:
    """Where the contour is: the user's threshold, or the study's for its headline."""
    if options.threshold is not None or data.less:
        return options.threshold
    return data.study.threshold if shown.value == data.study.headline else None


def _draw_levels(
    figure: Picture, all_axes: Sequence[matplotlib.axes.Axes], shown: Map, level: float | None
) -> Legend:
    """Draw where the column has this level: the means' contour, or what a refined sweep found."""
    if level is None:
        return []
    whole, refined = by_sampling(all_axes, shown)
    legend = _draw_contours(whole, shown, level)
    if legend:
        figure.facts.append(f"White line: {shown.label} = {plain(level)}.")
    for axes, _, part in refined:
        cells = usable_cells(part.data, shown.value)
        draw_known_boundary(axes, cells, shown.x, shown.y, shown.value, level)
    return legend + (legend_of_boundary(shown.value, refined) if refined else [])


def _draw_contours(places: Sequence[Place], shown: Map, level: float) -> Legend:
    """Draw the line on which the means have this level, where there is one."""
    crossed = False
    for axes, grid, _ in places:
        mean = np.ma.masked_invalid(grid.mean)
        if mean.count() and mean.min() < level < mean.max() and min(mean.shape) > 1:
            by_ratio = level > 0 and mean.min() > 0
            heights, at = (np.ma.log(mean), np.log(level)) if by_ratio else (mean, level)
            line = axes.contour(
                grid.x.positions,
                grid.y.positions,
                heights,
                levels=[float(at)],
                colors=CONTOUR["color"],
                linewidths=CONTOUR["linewidth"],
                linestyles="-",
            )
            line.set_path_effects(_OUTLINE)
            crossed = True
    handle = Line2D([], [], path_effects=_OUTLINE, **CONTOUR)
    return [(handle, f"{shown.label} = {plain(level)}")] if crossed else []


def _hatch(axes: matplotlib.axes.Axes, grid: Grid, mask: NDArray[np.bool_], state: str) -> Patch:
    """Hatch the places of `mask`, one polygon each, and return the legend's patch."""
    x, y = grid.x.edges, grid.y.edges
    squares = [
        [(x[i], y[j]), (x[i + 1], y[j]), (x[i + 1], y[j + 1]), (x[i], y[j + 1])]
        for j, i in np.argwhere(mask)
    ]
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": "0.35", "linewidth": 0}
    if state == "partly":
        look |= {"facecolor": "none", "edgecolor": "0.6"}
    look["hatch"] = HATCHES[state]
    if squares:
        axes.add_collection(PolyCollection(squares, label=state, **look), autolim=False)
    return Patch(**look)
