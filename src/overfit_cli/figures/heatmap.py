"""The figure `heatmap`: a measured column over two parameters, as colours.

A place of the grid has the mean over its seeds, or says why there is none. Cells that a refining
sweep chose are drawn as dots where they lie.
"""

from __future__ import annotations

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
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import BadValue, plural
from overfit_cli.figures.axes import Axis
from overfit_cli.figures.inputs import (
    checked_scale,
    checked_threshold,
    is_log,
    measured,
    two_axes,
    usable_cells,
    with_numbers,
)
from overfit_cli.figures.labels import opening, plain, wrapped
from overfit_cli.figures.laws import asked_equations, draw_equations
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
        mean: the mean over the seeds that have a number; nan where none has.
        failed: where every seed that ran failed.
        partly: where some seeds failed, and the mean is that of the others.
        missing: where there is neither a number nor a failure.
        sampled: where cells were run, in a sweep that refines; nowhere in another.
        seeds: how many seeds each mean is over.
        fewest, most: of those; 0 where there is none.
        left_out: how many failed cells lie where other seeds give a mean.
    """

    x: Axis
    y: Axis
    mean: Floats
    failed: Mask
    partly: Mask
    missing: Mask
    sampled: Mask
    seeds: Floats
    fewest: int
    most: int
    left_out: int


def seeds_in_words(grids: Sequence[Grid]) -> str:
    """Say over how many seeds the means of some grids are."""
    fewest = [grid.fewest for grid in grids if grid.most > 0]
    return mean_of_seeds(min(fewest), max(grid.most for grid in grids))


def mean_of_seeds(fewest: int, most: int, middle: str = "mean") -> str:
    """Say over how many seeds means are: `mean of 3 seeds`, `mean of 1 to 40 seeds`, `one seed`."""
    if most == 1:
        return "one seed"
    return f"{middle} of {'' if fewest == most else f'{fewest} to '}{most} seeds"


def lay_out(data: FigureData, x: Axis, y: Axis, value: str) -> Grid:
    """Average `value` over seeds at each place of the grid of `x` and `y`.

    A grid that was grown may have more places in some rows than in others. A place that was not
    asked for, but lies between two that were, shows the nearest of them, along x and then along y.
    Where no plan is known, every place of the grid counts as asked for.
    """
    groups = usable_cells(data, value).groupby([y.name, x.name])[value]
    mean, seeds = _table(groups.mean(), x, y), _table(groups.count(), x, y)
    broken = _table(_count(data.cells[data.cells["status"] == "failed"], x, y), x, y)
    asked = _asked(data, x, y)
    source = _nearest_asked(asked, x, y)
    absent = source < 0
    shown = np.where(absent, np.nan, mean.ravel()[source])
    failed = ~absent & np.isnan(shown) & (broken.ravel()[source] > 0)
    some = bool(np.isfinite(mean).any())
    return Grid(
        x=x,
        y=y,
        mean=shown,
        failed=failed,
        partly=~absent & np.isfinite(shown) & (broken.ravel()[source] > 0),
        missing=np.isnan(shown) & ~failed,
        seeds=np.nan_to_num(np.where(absent, 0.0, seeds.ravel()[source])),
        sampled=np.isfinite(_table(_count(data.cells, x, y), x, y)) & data.refined,
        fewest=int(np.nanmin(seeds)) if some else 0,
        most=int(np.nanmax(seeds)) if some else 0,
        left_out=int(np.nansum(broken[np.isfinite(mean)])),
    )


def _table(places: pd.Series[Any], x: Axis, y: Axis) -> Floats:
    """Turn a series indexed by (y, x) into an array with nan where it has nothing."""
    if places.empty:
        return np.full((len(y.values), len(x.values)), np.nan)
    table = places.unstack().reindex(index=list(y.values), columns=list(x.values))
    return table.to_numpy(dtype=np.float64)


def _count(cells: pd.DataFrame, x: Axis, y: Axis) -> pd.Series[Any]:
    return cells.groupby([y.name, x.name]).size()


def _asked(data: FigureData, x: Axis, y: Axis) -> Mask:
    if data.planned.empty or not {x.name, y.name} <= set(data.planned):
        return np.ones((len(y.values), len(x.values)), dtype=np.bool_)
    names = [y.name, x.name]
    either = pd.concat([data.planned[names], data.cells[names]])
    return np.isfinite(_table(_count(either, x, y), x, y))


def _nearest_asked(asked: Mask, x: Axis, y: Axis) -> NDArray[np.int64]:
    """Return, for each place, the flat index of the place whose cells it shows; -1 for none."""
    source = np.where(asked, np.arange(asked.size).reshape(asked.shape), -1)
    for lines, at in ((source, x.positions), (source.T, y.positions)):
        for line in lines:
            known = np.flatnonzero(line >= 0)
            if known.size:
                middles = (at[known][1:] + at[known][:-1]) / 2
                inside = slice(known[0], known[-1] + 1)
                line[inside] = line[known][np.searchsorted(middles, at[inside])]
    return source


_FINE = 240
"""Places along x at which a share is drawn."""

_BAND: dict[str, Any] = {"color": "0.15", "alpha": 0.3, "linewidth": 0}
_LINE: dict[str, Any] = {"color": "0.15", "linewidth": 1.2}
_DOT: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 1.7, "mew": 0.25}


def draw_means_where_sampled(axes: Axes, grid: Grid, look: dict[str, Any]) -> Any:
    """Colour the places with cells by their mean, in dots whose area grows with the seeds."""
    rows, columns = np.nonzero(np.isfinite(grid.mean) & grid.sampled)
    return axes.scatter(
        grid.x.positions[columns],
        grid.y.positions[rows],
        c=grid.mean[rows, columns],
        s=3 + 12 * grid.seeds[rows, columns] / max(grid.most, 1),
        edgecolors="none",
        clip_on=False,
        zorder=3,
        **look,
    )


def draw_share_above(
    axes: Axes, cells: pd.DataFrame, x: Axis, y: Axis, value: str, threshold: float
) -> Any:
    """Colour each y's row by the share of seeds above the threshold; blank where none is known."""
    ends = x.scaled(x.edges)
    borders = np.linspace(ends[0], ends[-1], _FINE + 1)
    at = x.unscaled((borders[1:] + borders[:-1]) / 2)
    shares = share_above(cells, x.name, y.name, value, threshold, at)
    unknown = np.full(_FINE, np.nan)
    rows = np.array([shares.get(place, unknown) for place in y.positions.tolist()])
    colours = LinearSegmentedColormap.from_list("sides", [MUTED[0], "white", MUTED[1]])
    look: dict[str, Any] = {"cmap": colours, "vmin": 0, "vmax": 1, "rasterized": True}
    return axes.pcolormesh(x.unscaled(borders), y.edges, rows, **look)


def draw_known_boundary(
    axes: Axes, cells: pd.DataFrame, x: Axis, y: Axis, value: str, threshold: float
) -> None:
    """Draw the median crossing for each y, with its interval as a band."""
    if cells.empty:
        return
    found = medians_by_row(crossings(cells, x.name, y.name, value, threshold), y.name)
    left, right = axes.get_xlim()
    known = found[found["seeds"] > 0].sort_values(y.name)
    ends = known[["low", "crossing", "high"]].clip(left, right)
    axes.fill_betweenx(known[y.name], ends["low"], ends["high"], **_BAND)
    within = known["crossing"].between(left, right)
    axes.plot(ends["crossing"].where(within), known[y.name], **_LINE)


def draw_sampled(axes: Axes, cells: pd.DataFrame, x: Axis, y: Axis) -> None:
    """Dot the places where cells were run."""
    places = cells[[x.name, y.name]].drop_duplicates()
    axes.plot(places[x.name], places[y.name], color="white", mec="black", clip_on=False, **_DOT)


def draw_failed(axes: Axes, grid: Grid) -> Line2D:
    """Cross the places where every seed failed."""
    rows, columns = np.nonzero(grid.failed & grid.sampled)
    at = (grid.x.positions[columns], grid.y.positions[rows])
    return axes.plot(*at, "x", color="0.35", markersize=3, clip_on=False)[0]


def legend_of_boundary(value: str, places: Sequence[tuple[Any, Any, Panel]]) -> Legend:
    """Return the legend of a boundary with its band, over panels of refined sweeps."""
    seeds = [usable_cells(part.data, value)["seed"].nunique() for _, _, part in places]
    ends = "95 % interval" if max(seeds) >= FEWEST_FOR_MEDIAN else "least to greatest"
    return [(Line2D([], [], **_LINE), "median crossing"), (Patch(**_BAND), ends)]


def legend_of_dots() -> Legend:
    """Return the legend of the places where cells were run."""
    return [(Line2D([], [], color="white", mec="black", **_DOT), "sampled")]


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
            raise BadValue("log", "value", "a difference has no logarithm where it is negative.")
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
