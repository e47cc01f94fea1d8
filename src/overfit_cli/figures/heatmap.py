"""The figure `heatmap`: a measured column over two parameters, as colours.

A point of the grid has the mean over its seeds, or a mark for the reason why it has none. Cells of
a refined sweep are dots at their own positions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import AbstractPathEffect, withStroke
from numpy.typing import NDArray

from overfit_cli.core.arrays import Floats
from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import Value
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import plural
from overfit_cli.figures.axes import Axis
from overfit_cli.figures.caption import repeated_crossings
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
from overfit_cli.figures.labels import opening, tick_number, typeset, wrap_text
from overfit_cli.figures.laws import Place, draw_equations, parse_equations
from overfit_cli.figures.panels import Panel, panels_of_runs
from overfit_cli.figures.picture import Picture, label_outer, new_panels, styled, title_panels
from overfit_cli.figures.style import DIVERGING, HIGH, MUTED, Legend, legend_below, log_ticks
from overfit_cli.stats.crossings import crossings, medians_by_row, share_above
from overfit_cli.stats.intervals import FEWEST_FOR_MEDIAN

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Grid:
    """A column over two parameters; all arrays have shape (values of y, values of x).

    Attributes:
        x: the axis to the right.
        y: the axis upward.
        mean: the mean over the seeds with a number; nan where no seed has one.
        failed: whether every seed that ran failed.
        partly: whether some seeds failed, and the mean is that of the others.
        missing: whether it was planned, and there is neither a number nor a failure.
        sampled: whether cells were run, in a refined sweep; False everywhere in another sweep.
        seeds: the number of seeds of each mean.
        min_seeds, max_seeds: the least and the greatest of those; 0 without a mean.
        left_out: the number of failed cells at points where other seeds give a mean.
    """

    x: Axis
    y: Axis
    mean: Floats
    failed: Mask
    partly: Mask
    missing: Mask
    sampled: Mask
    seeds: Floats
    min_seeds: int
    max_seeds: int
    left_out: int


def seeds_in_words(grids: Sequence[Grid]) -> str:
    """Write the number of seeds of the means of some grids."""
    least = [grid.min_seeds for grid in grids if grid.max_seeds > 0]
    return mean_of_seeds(min(least), max(grid.max_seeds for grid in grids))


def mean_of_seeds(least: int, greatest: int, middle: str = "mean") -> str:
    """Write the number of seeds of means: `one seed`, `mean of 3 seeds`, `mean of 1 to 4 seeds`."""
    if greatest == 1:
        return "one seed"
    return f"{middle} of {'' if least == greatest else f'{least} to '}{greatest} seeds"


def lay_out(data: FigureData, x: Axis, y: Axis, value: str) -> Grid:
    """Average `value` over seeds at each point of the grid of `x` and `y`.

    The axes of the grid have the values that the data has: beside another run directory the axes of
    a figure have more.

    A grid that was grown may have more points in some rows than in others. A point that was not
    planned, but lies between two planned ones, shows the nearest of them, along x and then along
    y; any other one stays blank. Without a plan every point of the grid counts as planned.
    """
    x, y = (
        axis if axis.scale == "category" else axis.only(_values_of(data, axis)) for axis in (x, y)
    )
    groups = usable_cells(data, value).groupby([y.name, x.name])[value]
    mean, seeds = _table(groups.mean(), x, y), _table(groups.count(), x, y)
    broken = _table(_count(data.cells[data.cells["status"] == "failed"], x, y), x, y)
    planned = _planned(data, x, y)
    source = _nearest_planned(planned, x, y, between=not data.sparse)
    absent = source < 0
    mean_shown = np.where(absent, np.nan, mean.ravel()[source])
    failed = ~absent & np.isnan(mean_shown) & (broken.ravel()[source] > 0)
    has_numbers = bool(np.isfinite(mean).any())
    return Grid(
        x=x,
        y=y,
        mean=mean_shown,
        failed=failed,
        partly=~absent & np.isfinite(mean_shown) & (broken.ravel()[source] > 0),
        missing=np.isnan(mean_shown) & ~failed & ~absent,
        seeds=np.nan_to_num(np.where(absent, 0.0, seeds.ravel()[source])),
        sampled=np.isfinite(_table(_count(data.cells, x, y), x, y)) & data.refined,
        min_seeds=int(np.nanmin(seeds)) if has_numbers else 0,
        max_seeds=int(np.nanmax(seeds)) if has_numbers else 0,
        left_out=int(np.nansum(broken[np.isfinite(mean)])),
    )


def _values_of(data: FigureData, axis: Axis) -> set[Value]:
    """The values of an axis that cells or planned cells have."""
    frames = [frame for frame in (data.cells, data.planned) if axis.name in frame]
    return {value for frame in frames for value in frame[axis.name].unique().tolist()}


def _table(series: pd.Series[Any], x: Axis, y: Axis) -> Floats:
    """Turn a series indexed by (y, x) into an array with nan for absent points."""
    if series.empty:
        return np.full((len(y.values), len(x.values)), np.nan)
    table = series.unstack().reindex(index=list(y.values), columns=list(x.values))
    return table.to_numpy(dtype=np.float64)


def _count(cells: pd.DataFrame, x: Axis, y: Axis) -> pd.Series[Any]:
    return cells.groupby([y.name, x.name]).size()


def _planned(data: FigureData, x: Axis, y: Axis) -> Mask:
    if data.planned.empty or not {x.name, y.name} <= set(data.planned):
        return np.ones((len(y.values), len(x.values)), dtype=np.bool_)
    names = [y.name, x.name]
    either = pd.concat([data.planned[names], data.cells[names]])
    return np.isfinite(_table(_count(either, x, y), x, y))


def _nearest_planned(planned: Mask, x: Axis, y: Axis, *, between: bool) -> NDArray[np.int64]:
    """Return the flat index of the point whose cells each point shows; -1 for none.

    Args:
        planned: which points were planned.
        x, y: the axes.
        between: whether points between planned ones show the nearest of them.
    """
    source = np.where(planned, np.arange(planned.size).reshape(planned.shape), -1)
    directions = ((source, x.positions), (source.T, y.positions)) if between else ()
    for lines, positions in directions:
        for line in lines:
            filled = np.flatnonzero(line >= 0)
            if filled.size:
                middles = (positions[filled][1:] + positions[filled][:-1]) / 2
                span = slice(filled[0], filled[-1] + 1)
                line[span] = line[filled][np.searchsorted(middles, positions[span])]
    return source


_SHARE_COLUMNS = 240
"""The number of columns along x in which a share is drawn."""

_BAND: dict[str, Any] = {"color": "0.15", "alpha": 0.3, "linewidth": 0}
_LINE: dict[str, Any] = {"color": "0.15", "linewidth": 1.2}
_DOT: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 1.7, "mew": 0.25}


def draw_means_where_sampled(axes: Axes, grid: Grid, look: dict[str, Any]) -> Any:
    """Colour the points with cells by their mean, in dots whose area grows with the seeds."""
    rows, columns = np.nonzero(np.isfinite(grid.mean) & grid.sampled)
    return axes.scatter(
        grid.x.positions[columns],
        grid.y.positions[rows],
        c=grid.mean[rows, columns],
        s=3 + 12 * grid.seeds[rows, columns] / max(grid.max_seeds, 1),
        edgecolors="none",
        clip_on=False,
        zorder=3,
        **look,
    )


def draw_share_above(
    axes: Axes, cells: pd.DataFrame, x: Axis, y: Axis, value: str, threshold: float
) -> Any:
    """Colour each y's row by the share of seeds above the threshold; blank where it is unknown."""
    ends = x.scaled(x.edges)
    borders = np.linspace(ends[0], ends[-1], _SHARE_COLUMNS + 1)
    positions = x.unscaled((borders[1:] + borders[:-1]) / 2)
    shares = share_above(cells, x.name, y.name, value, threshold, positions)
    unknown = np.full(_SHARE_COLUMNS, np.nan)
    rows = np.array([shares.get(y_value, unknown) for y_value in y.positions.tolist()])
    colours = LinearSegmentedColormap.from_list("sides", [MUTED[0], "white", MUTED[1]])
    look: dict[str, Any] = {"cmap": colours, "vmin": 0, "vmax": 1, "rasterized": True}
    return axes.pcolormesh(x.unscaled(borders), y.edges, rows, **look)


def draw_known_boundary(
    axes: Axes, cells: pd.DataFrame, x: Axis, y: Axis, value: str, threshold: float
) -> pd.DataFrame:
    """Draw the median crossing for each y, with its interval as a band; return the crossings."""
    curves = crossings(cells, x.name, y.name, value, threshold)
    medians = medians_by_row(curves, y.name)
    x_low, x_high = axes.get_xlim()
    crossed = medians[medians["seeds"] > 0].sort_values(y.name)
    ends = crossed[["low", "crossing", "high"]].clip(x_low, x_high)
    axes.fill_betweenx(crossed[y.name], ends["low"], ends["high"], **_BAND)
    in_view = crossed["crossing"].between(x_low, x_high)
    axes.plot(ends["crossing"].where(in_view), crossed[y.name], **_LINE)
    return curves


def draw_sampled(axes: Axes, cells: pd.DataFrame, x: Axis, y: Axis) -> None:
    """Dot the points where cells were run."""
    points = cells[[x.name, y.name]].drop_duplicates()
    axes.plot(points[x.name], points[y.name], color="white", mec="black", clip_on=False, **_DOT)


def draw_failed(axes: Axes, grid: Grid) -> Line2D:
    """Cross the points where every seed failed."""
    rows, columns = np.nonzero(grid.failed & grid.sampled)
    points = (grid.x.positions[columns], grid.y.positions[rows])
    return axes.plot(*points, "x", color="0.35", markersize=3, clip_on=False)[0]


def legend_of_boundary(value: str, panels: Sequence[tuple[Any, Any, Panel]]) -> Legend:
    """Return the legend of a boundary with its band, over panels of refined sweeps."""
    seeds = [usable_cells(part.data, value)["seed"].nunique() for _, _, part in panels]
    ends = "95 % interval" if max(seeds) >= FEWEST_FOR_MEDIAN else "least to greatest"
    return [(Line2D([], [], **_LINE), "median crossing"), (Patch(**_BAND), ends)]


def legend_of_dots() -> Legend:
    """Return the legend of the points where cells were run."""
    return [(Line2D([], [], color="white", mec="black", **_DOT), "sampled")]


HATCHES = {"failed": "//////", "partly": "///", "missing": "......"}
"""The marks of points without a number, and of points where some seeds failed."""

WORDS = {"failed": "failed", "partly": "some seeds failed", "missing": "missing"}
CONTOUR: dict[str, Any] = {"color": "white", "linewidth": 1.1}
_OUTLINE: list[AbstractPathEffect] = [withStroke(linewidth=2.2, foreground="black")]

Overlay = Callable[[matplotlib.axes.Axes, Panel], Legend]
"""A study's drawing on a panel of its data; it returns the entries of the legend."""

MapPanel = tuple[matplotlib.axes.Axes, Grid, Panel]
"""The axes of a panel, its grid and its data."""


@dataclass(frozen=True)
class Map:
    """The plan of a map: its axes, its column, and a grid for each panel."""

    x: Axis
    y: Axis
    value: str
    label: str
    parts: Sequence[Panel]
    grids: Sequence[Grid]
    seeds: str

    @property
    def facts(self) -> list[str]:
        """The sentences of the caption."""
        left_out = sum(grid.left_out for grid in self.grids)
        failed = f"; {plural(left_out, 'failed cell')} left out" if left_out else ""
        axes = f"{self.x.label} and {self.y.label}"
        return [f"{opening(self.label)} over {axes}: {self.seeds}{failed}."]


@styled
def draw_heatmap(data: FigureData, options: FigureOptions) -> Picture:
    """Draw `options.value`, averaged over seeds, as colours over the parameters x and y.

    There is a panel for each run directory and each value of the parameter `by`, all with the same
    colours, which are logarithmic where the values are positive and span more than a factor of 100.
    A line is the contour of the threshold; the study's threshold applies to its headline. Points
    where every seed failed are hatched, those where some seeds failed are hatched over their
    colour, and planned ones without a number are dotted; the legend counts them. For a refined
    sweep only points with cells are coloured, in dots whose area grows with the number of seeds,
    and the line is the median crossing with its interval.

    Raises:
        UserError: if x or y cannot be an axis, another parameter varies, the column is unknown or
            empty, the threshold is not finite, or an equation is invalid.
    """
    return draw_map(data, options)


def draw_map(
    data: FigureData, options: FigureOptions, overlay: Overlay = lambda axes, part: []
) -> Picture:
    """Draw a heatmap with an overlay on each of its panels; the caller is `styled`."""
    plan = lay_out_map(data, options)
    figure, all_axes = new_map(plan)
    mesh = _draw_colours(all_axes, plan, data, options)
    bar = figure.colorbar(mesh, ax=list(all_axes), label=wrap_text(plan.label, HIGH), pad=0.02)
    if isinstance(mesh.norm, LogNorm):
        log_ticks(bar.ax.yaxis, float(mesh.norm.vmin or 1), float(mesh.norm.vmax or 1))
    legend = _draw_levels(
        figure,
        all_axes,
        plan,
        _level(data, options, plan),
        asked=options.threshold is not None,
    )
    overlays = [overlay(axes, part) for axes, part in zip(all_axes, plan.parts, strict=True)]
    legend += next((entries for entries in overlays if entries), [])
    finish_map(figure, all_axes, plan, data, options, legend)
    return figure


def lay_out_map(data: FigureData, options: FigureOptions) -> Map:
    """Return the plan of a map with these options.

    Raises:
        UserError: see `draw_heatmap`.
    """
    x, y = two_axes(data, options, panels=True)
    require_grid(data, options, x, y)
    value, label = measured_column(data, options.value)
    check_threshold(options.threshold)
    parse_equations(data, options, (x, y))
    require_numbers(data, value)
    parts = panels_of_runs(data, options.by)
    grids = [lay_out(part.data, x, y, value) for part in parts]
    return Map(x, y, value, label, parts, grids, data.averaged or seeds_in_words(grids))


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


def finish_map(
    figure: Picture,
    all_axes: Sequence[matplotlib.axes.Axes],
    plan: Map,
    data: FigureData,
    options: FigureOptions,
    legend: Legend,
    after_equations: Legend | None = None,
) -> None:
    """Draw equations and the marks of points without a number over a map, and its legend below.

    Args:
        figure: the picture.
        all_axes: the axes of its panels.
        plan: the plan of the map.
        data: the figure's data.
        options: the options, with the equations.
        legend: the entries of what is drawn already.
        after_equations: those that stand after the equations.
    """
    equations = parse_equations(data, options, (plan.x, plan.y))
    places = [Place(axes, part.data.cells) for axes, part in zip(all_axes, plan.parts, strict=True)]
    legend = legend + draw_equations(figure, places, equations, (plan.x.name, plan.y.name), data)
    legend += after_equations or []
    complete, refined = split_by_sampling(all_axes, plan)
    for state in HATCHES:
        count = sum(int(getattr(grid, state).sum()) for _, grid, _ in complete)
        patches = [_hatch(axes, grid, getattr(grid, state), state) for axes, grid, _ in complete]
        if count:
            legend.append((patches[0], f"{WORDS[state]} ({count})"))
    if count := sum(int((grid.failed & grid.sampled).sum()) for _, grid, _ in refined):
        crosses = [draw_failed(axes, grid) for axes, grid, _ in refined]
        legend.append((crosses[0], f"failed ({count})"))
    legend_below(figure, legend)


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
    """Colour the points of the grids; return the artist for a colour bar."""
    everything = pd.Series(np.concatenate([grid.mean.ravel() for grid in plan.grids])).dropna()
    low, high = float(everything.min()), float(everything.max())
    if data.less:
        if is_log(options, "value"):
            raise BadValue("log", "value", "a difference has no logarithm where it is negative.")
        largest = max(abs(low), abs(high)) or 1.0
        norm: Normalize = Normalize(-largest, largest)
    else:
        log = choose_scale(is_log(options, "value"), everything, factor=100)
        norm = LogNorm(low, high) if log else Normalize(low, high)
    colours = options.cmap or (DIVERGING if data.less else None)
    look: dict[str, Any] = {"cmap": colours, "norm": norm, "rasterized": True}
    for axes, grid, part in zip(all_axes, plan.grids, plan.parts, strict=True):
        if part.data.refined:
            mesh = draw_means_where_sampled(axes, grid, look)
        else:
            mesh = axes.pcolormesh(grid.x.edges, grid.y.edges, grid.mean, **look)
    return mesh


def _level(data: FigureData, options: FigureOptions, plan: Map) -> float | None:
    """The level of the contour: the user's threshold, or the study's for its headline."""
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
    """Draw the contour of the means at this level, or the crossings of a refined sweep.

    Where the user asked for the level and no mean lies on its other side, a note says so.
    """
    if level is None:
        return []
    complete, refined = split_by_sampling(all_axes, plan)
    legend = _draw_contours(complete, plan, level)
    if legend:
        figure.facts.append(f"White line: {plan.label} = {tick_number(level)}.")
    elif asked and complete:
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


def _draw_contours(panels: Sequence[MapPanel], plan: Map, level: float) -> Legend:
    """Draw the contour of the means at this level, where there is one."""
    crossed = False
    for axes, grid, _ in panels:
        mean = np.ma.masked_invalid(grid.mean)
        if mean.count() and mean.min() < level < mean.max() and min(mean.shape) > 1:
            logarithmic = level > 0 and mean.min() > 0
            heights, level_height = (
                (np.ma.log(mean), np.log(level)) if logarithmic else (mean, level)
            )
            line = axes.contour(
                grid.x.positions,
                grid.y.positions,
                heights,
                levels=[float(level_height)],
                colors=CONTOUR["color"],
                linewidths=CONTOUR["linewidth"],
                linestyles="-",
            )
            line.set_path_effects(_OUTLINE)
            crossed = True
    handle = Line2D([], [], path_effects=_OUTLINE, **CONTOUR)
    return [(handle, f"{plan.label} = {tick_number(level)}")] if crossed else []


def _hatch(axes: matplotlib.axes.Axes, grid: Grid, mask: NDArray[np.bool_], state: str) -> Patch:
    """Hatch the points of `mask`, one polygon each, and return the legend's patch."""
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
