"""The figure `heatmap`: a measured column over two parameters, as colours.

A point of the grid has a statistic over all its seeds, or hatches where too few of them have a
number. Cells of a refined sweep are dots at their own positions.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm, Normalize
from matplotlib.lines import Line2D
from matplotlib.patheffects import AbstractPathEffect, withStroke

from overfit_cli.core.arrays import Floats
from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import round_digits
from overfit_cli.core.values import Mean, valid_choice
from overfit_cli.figures.axes import Axis
from overfit_cli.figures.caption import repeated_crossings
from overfit_cli.figures.grid import (
    Grid,
    has_losses,
    lay_out,
    losses_in_words,
    noise_in_words,
    seeds_in_words,
    why_lost,
)
from overfit_cli.figures.inputs import (
    check_threshold,
    choose_scale,
    is_log,
    measured_column,
    require_grid,
    require_numbers,
    two_axes,
    usable_cells,
)
from overfit_cli.figures.labels import (
    formula_symbol,
    opening,
    tick_number,
    typeset,
    wrap_text,
)
from overfit_cli.figures.laws import Place, constant_side, draw_equations, parse_equations
from overfit_cli.figures.map_marks import (
    MOST_PRINTED,
    MapPanel,
    draw_noise,
    legend_of_noise,
    mark_points,
)
from overfit_cli.figures.panels import Panel, panels_of_runs
from overfit_cli.figures.picture import Picture, label_outer, new_panels, styled, title_panels
from overfit_cli.figures.refined import (
    draw_known_boundary,
    draw_lost,
    draw_numbers_where_sampled,
    legend_of_boundary,
)
from overfit_cli.figures.style import DIVERGING, HIGH, Legend, legend_below, log_ticks
from overfit_cli.stats.crossings import crossings
from overfit_cli.stats.equations import expression_in_mathtext

CONTOUR: dict[str, Any] = {"color": "white", "linewidth": 1.1}
_OUTLINE: list[AbstractPathEffect] = [withStroke(linewidth=1.9, foreground="black")]

Overlay = Callable[[matplotlib.axes.Axes, Panel], Legend]
"""A study's drawing on a panel of its data; it returns the entries of the legend."""


@dataclass(frozen=True)
class Map:
    """The plan of a map.

    Attributes:
        why: why seeds have no number.
        parts, grids: the data of each panel, and the numbers.
    """

    x: Axis
    y: Axis
    value: str
    label: str
    mean: Mean
    log: bool
    why: str
    parts: Sequence[Panel]
    grids: Sequence[Grid]
    facts: Sequence[str]

    @property
    def numbers(self) -> pd.Series[float]:
        """The numbers of all panels."""
        return pd.Series(np.concatenate([grid.number.ravel() for grid in self.grids])).dropna()

    @property
    def norm(self) -> Normalize:
        """The scale of the colours; that of differences is symmetric around 0."""
        low, high = float(self.numbers.min()), float(self.numbers.max())
        if self.parts[0].data.less:
            largest = max(abs(low), abs(high)) or 1.0
            return Normalize(-largest, largest)
        return LogNorm(low, high) if self.log else Normalize(low, high)

    @property
    def nothing(self) -> str:
        """Why the map says nothing; empty where it says something."""
        places = sum(int((grid.seeds > 0).sum() + grid.missing.sum()) for grid in self.grids)
        if self.numbers.nunique() < 2:
            return "all of it has one colour"
        return "half of it or more has no number" if 2 * len(self.numbers) <= places else ""


@styled
def draw_heatmap(data: FigureData, options: FigureOptions) -> Picture:
    """Draw a statistic over seeds of `options.value` as colours over the parameters x and y.

    There is a panel for each run directory and each value of the parameter `by`, all with the same
    colours, which are logarithmic where the values are positive and span more than a factor of 30,
    or 10 in a small map, which has its numbers printed. A line is the contour of the threshold; the
    study's threshold applies to its headline.

    The statistic is the mean; the median where colours are logarithmic or a seed has no number; or
    the one that the user names. For the median a seed that missed counts as beyond the others.
    Points where half of the seeds or more have no number are hatched; those where fewer have none
    have a corner, or how many have one; planned ones that did not run are dotted. A difference has
    a dot at points where its own interval over seeds contains 0: of the mean Student's t, of the
    median by order. For a refined
    sweep only points with cells are coloured, in dots whose area grows with the number of seeds,
    and the line is the median crossing with its interval.
    """
    return draw_map(data, options)


def draw_map(data: FigureData, options: FigureOptions, overlay: Overlay | None = None) -> Picture:
    """Draw a heatmap with an overlay on each of its panels; the caller is `styled`.

    Under an overlay no numbers are printed.
    """
    plan = lay_out_map(data, options, to_scale=overlay is not None)
    figure, all_axes = new_map(plan)
    mesh = _draw_colours(all_axes, plan, data, options)
    figure.nothing = plan.nothing
    words = wrap_text(_with_break(plan.label, data.contrast), HIGH)
    bar = figure.colorbar(mesh, ax=list(all_axes), label=words, pad=0.02)
    if isinstance(mesh.norm, LogNorm):
        log_ticks(bar.ax.yaxis, float(mesh.norm.vmin or 1), float(mesh.norm.vmax or 1))
    legend = _draw_levels(
        figure,
        all_axes,
        plan,
        contour_level(data, options, plan),
        asked=options.threshold is not None,
    )
    if overlay is not None:
        overlays = [overlay(axes, part) for axes, part in zip(all_axes, plan.parts, strict=True)]
        legend += next((entries for entries in overlays if entries), [])
    legend += draw_laws(figure, all_axes, plan, data, options)
    _title_constants(figure, all_axes, plan, data, options)
    legend_below(figure, legend + mark_losses(all_axes, plan, mesh if overlay is None else None))
    return figure


def _with_break(label: str, contrast: str) -> str:
    if not contrast or len(typeset(label)) <= HIGH:
        return label
    return label.replace(contrast, contrast.replace(" (", "\n(", 1))


def lay_out_map(data: FigureData, options: FigureOptions, *, to_scale: bool = False) -> Map:
    """Return the plan of a map with these options.

    Args:
        to_scale: whether few uneven values stand at their places, as an overlay needs it, and not
            in cells of one width.
    """
    x, y = two_axes(data, options, panels=True)
    require_grid(data, options, x, y)
    value, label = measured_column(data, options.value)
    check_threshold(options.threshold)
    parse_equations(data, options, (x, y))
    require_numbers(data, value)
    if not (to_scale or options.law or options.log is not None or data.refined):
        x, y = x.spread(), y.spread()
    parts = panels_of_runs(data, options.by)
    if options.mean is not None:
        valid_choice("mean", options.mean, get_args(Mean))
    mean = cast("Mean", options.mean or ("median" if has_losses(data, value) else "arithmetic"))
    grids = [lay_out(part.data, x, y, value, mean) for part in parts]
    log = _is_by_ratio(grids, data, options)
    if log and options.mean is None and mean == "arithmetic":
        mean, grids = "median", [lay_out(part.data, x, y, value, "median") for part in parts]
    over = data.averaged or seeds_in_words(grids, mean)
    shows = f"{opening(label)} over {x.label} and {y.label}: {over}."
    facts = [shows, *losses_in_words(data, grids, value, mean), *noise_in_words(data, grids)]
    return Map(x, y, value, label, mean, log, why_lost(data, value), parts, grids, facts)


def _is_by_ratio(grids: Sequence[Grid], data: FigureData, options: FigureOptions) -> bool:
    numbers = pd.Series(np.concatenate([grid.number.ravel() for grid in grids])).dropna()
    if numbers.empty:
        raise BadValue("value", None, "at every point half of the seeds or more have no number.")
    log = is_log(options, "value")
    if data.less:
        if log:
            raise BadValue("log", "value", "a difference has no logarithm where it is negative.")
        return False
    is_small = max(grid.number.size for grid in grids) <= MOST_PRINTED
    return choose_scale(log, numbers, factor=10 if is_small else 30)


def new_map(plan: Map) -> tuple[Picture, list[matplotlib.axes.Axes]]:
    """Return an empty picture of a map's panels."""
    figure, all_axes = new_panels(len(plan.parts), height=2.6)
    for axes in all_axes:
        plan.x.dress(axes, "x")
        plan.y.dress(axes, "y")
    label_outer(all_axes)
    title_panels(all_axes, [part.title for part in plan.parts])
    figure.facts += plan.facts
    return figure, all_axes


def draw_laws(
    figure: Picture,
    all_axes: Sequence[matplotlib.axes.Axes],
    plan: Map,
    data: FigureData,
    options: FigureOptions,
) -> Legend:
    """Draw the equations over a map, on all of its panels; return their legend."""
    equations = parse_equations(data, options, (plan.x, plan.y))
    places = [Place(axes, part.data.cells) for axes, part in zip(all_axes, plan.parts, strict=True)]
    return draw_equations(figure, places, equations, (plan.x.name, plan.y.name), data)


def mark_losses(
    all_axes: Sequence[matplotlib.axes.Axes], plan: Map, colours: Any | None = None
) -> Legend:
    """Mark the points of a map at which seeds have no number; return the legend.

    Args:
        colours: the artist of its colours, for numbers to be printed; None prints none.
    """
    complete, refined = split_by_sampling(all_axes, plan)
    legend = mark_points(complete, plan.why, plan.mean, colours)
    for panel in refined:
        draw_noise(panel, colours, {})
    legend += legend_of_noise([*complete, *refined])
    if count := sum(int((grid.lost & grid.sampled).sum()) for _, grid, _ in refined):
        crosses = [draw_lost(axes, grid) for axes, grid, _ in refined]
        legend.append((crosses[0], f"{plan.why}: half the seeds or more ({count})"))
    return legend


def split_by_sampling(
    all_axes: Sequence[matplotlib.axes.Axes], plan: Map
) -> tuple[list[MapPanel], list[MapPanel]]:
    """Return the panels of complete grids, and those of refined sweeps."""
    map_panels = list(zip(all_axes, plan.grids, plan.parts, strict=True))
    complete = [panel for panel in map_panels if not panel[2].data.refined]
    return complete, [panel for panel in map_panels if panel[2].data.refined]


def _draw_colours(
    all_axes: Sequence[matplotlib.axes.Axes], plan: Map, data: FigureData, options: FigureOptions
) -> Any:
    norm = plan.norm
    colours = DIVERGING if data.less else None
    look: dict[str, Any] = {"cmap": colours, "norm": norm, "rasterized": True}
    for axes, grid, part in zip(all_axes, plan.grids, plan.parts, strict=True):
        if part.data.refined:
            mesh = draw_numbers_where_sampled(axes, grid, look)
        else:
            mesh = axes.pcolormesh(grid.x.edges, grid.y.edges, grid.number, **look)
            cast("Picture", axes.figure).maps[mesh] = grid.points
    return mesh


def _title_constants(
    figure: Picture,
    all_axes: Sequence[matplotlib.axes.Axes],
    plan: Map,
    data: FigureData,
    options: FigureOptions,
) -> None:
    """Add to the titles of panels what an equation's left side measures, where its right varies.

    It is the median over all crossings of the contour's level.
    """
    level, names = contour_level(data, options, plan), (plan.x.name, plan.y.name)
    equations = parse_equations(data, options, (plan.x, plan.y))
    if level is None or len(equations) != 1 or not equations[0].left.names <= {*names}:
        return
    [equation] = equations
    cells = [part.data.cells for part in plan.parts]
    if len({constant_side(equation, names, part) for part in cells}) < 2:
        return
    titles = []
    for part, panel_cells in zip(plan.parts, cells, strict=True):
        curves = crossings(panel_cells, *names, plan.value, level)
        points = {plan.x.name: curves["crossing"].clip(lower=0), plan.y.name: curves[plan.y.name]}
        arrays = {name: column.to_numpy(dtype=np.float64) for name, column in points.items()}
        measured = round_digits(float(np.nanmedian(equation.left.value(arrays))), 3)
        titles.append(f"{part.title}: measured {tick_number(measured)}")
    title_panels(all_axes, titles)
    left = expression_in_mathtext(equation.left, functools.partial(formula_symbol, data.study))
    at = f"all crossings of {plan.label} = {tick_number(level)}"
    figure.facts.append(f"Measured, above each panel: the median of ${left}$ over {at}.")


def contour_level(data: FigureData, options: FigureOptions, plan: Map) -> float | None:
    """Return the level of the contour: the user's threshold, or the study's for its headline."""
    if options.threshold is not None or data.less:
        return options.threshold
    return data.study.threshold if plan.value == data.study.headline else None


def _draw_levels(
    figure: Picture,
    all_axes: Sequence[matplotlib.axes.Axes],
    plan: Map,
    level: float | None,
    *,
    asked: bool,
) -> Legend:
    """Draw the contour of the numbers at this level, or the crossings of a refined sweep."""
    if level is None:
        return []
    complete, refined = split_by_sampling(all_axes, plan)
    legend = _draw_contours(figure, complete, plan, level)
    if not legend and asked and complete:
        nowhere = f"the means don't cross {typeset(plan.label)} = {tick_number(level)}"
        warnings.warn(f"no contour: {nowhere}", UserWarning, stacklevel=2)
    curves = [
        draw_known_boundary(
            axes, usable_cells(part.data, plan.value), plan.x, plan.y, plan.value, level
        )
        for axes, _, part in refined
    ]
    figure.facts += repeated_crossings(curves)
    return legend + (legend_of_boundary(plan.value, refined) if refined else [])


def _draw_contours(figure: Picture, panels: Sequence[MapPanel], plan: Map, level: float) -> Legend:
    """Draw the contour of the numbers at this level, where there is one.

    Between rows that are far apart it is straight from crossing to crossing: a contour between
    neighbours on the grid would have a kink at each column there.
    """
    handle = Line2D([], [], path_effects=_OUTLINE, **CONTOUR)
    crossed = False
    for axes, grid, _ in panels:
        number = np.ma.masked_invalid(grid.number)
        crosses = number.count() and number.min() < level < number.max()
        if crosses and min(number.shape) > 1:
            logarithmic = level > 0 and number.min() > 0
            heights, level_height = (
                (np.ma.log(number), np.log(level)) if logarithmic else (number, level)
            )
            look: dict[str, Any] = {"zorder": 2.5, "path_effects": _OUTLINE}  # above the laws'
            if len(points := _crossings_of_rows(grid, heights, float(level_height))):
                look["label"] = f"contour at {level:g}"
                axes.plot(*points.T, marker="o", markersize=2.5, **CONTOUR, **look)
                handle.set(marker="o", markersize=2.5)
            else:
                line = axes.contour(
                    grid.x.positions,
                    grid.y.positions,
                    heights,
                    levels=[float(level_height)],
                    colors=CONTOUR["color"],
                    linewidths=CONTOUR["linewidth"],
                    linestyles="-",
                    zorder=look["zorder"],
                )
                line.set_path_effects(_OUTLINE)
            crossed = True
    if not crossed:
        return []
    text = f"{plan.label} = {tick_number(level)}"
    straight = handle.get_marker() == "o"
    between = f", straight between the crossings at each {plan.y.label}" if straight else ""
    figure.facts.append(f"White line: {text}{between}.")
    return [(handle, text)]


_FEW_ROWS, _MORE_COLUMNS = 4, 3
"""A map has far rows if it has at most so many, and so many times as many columns."""


def _crossings_of_rows(grid: Grid, heights: np.ma.MaskedArray[Any, Any], level: float) -> Floats:
    """The point of each row at which it crosses a level, shape (rows, 2), in a map of far rows.

    There is none unless every row crosses it once; columns are interpolated on their scale.
    """
    rows, columns = heights.shape
    if rows > _FEW_ROWS or columns < _MORE_COLUMNS * rows or np.ma.is_masked(heights):
        return np.empty((0, 2))
    above = np.asarray(heights) > level
    changes = above[:, 1:] != above[:, :-1]
    if (changes.sum(axis=1) != 1).any():
        return np.empty((0, 2))
    x, before = grid.x.scaled(grid.x.positions), changes.argmax(axis=1)
    row = np.arange(rows)
    low, high = (np.asarray(heights)[row, before + offset] for offset in (0, 1))
    shares = (level - low) / (high - low)
    crossed = grid.x.unscaled(x[before] + shares * (x[before + 1] - x[before]))
    return np.column_stack([crossed, grid.y.positions])
