"""A measured column over two parameters, as a map of colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import matplotlib
import matplotlib.axes
import matplotlib.figure
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import ListedColormap, LogNorm, Normalize
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from overfit_cli.analysis.equation import parse_equation
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.equation_curve import draw_equation
from overfit_cli.figures.grid import Grid, lay_out, seeds_in_words
from overfit_cli.figures.inputs import (
    checked_threshold,
    measured,
    middle_of,
    two_axes,
    with_numbers,
)
from overfit_cli.figures.panels import panels
from overfit_cli.figures.style import (
    COLOUR_MAP,
    HIGH,
    Legend,
    legend_below,
    log_ticks,
    new_panels,
    plain,
    styled,
    title_panels,
    wrapped,
)
from overfit_cli.words import plural

HATCHES = {"failed": "//////", "partly": "///", "missing": "......"}
"""How places without a number are marked, and those whose mean is that of some seeds alone."""

WORDS = {"failed": "failed", "partly": "some seeds failed", "missing": "missing"}


@styled
def draw_heatmap(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw `options.value`, averaged over seeds, as colours over the parameters x and y.

    There is a panel for each value of the parameter `by`, all in the same colours.
    With a threshold there are two colours, for its two sides; without, a scale of colours, by
    ratio where the values are positive and span more than a factor of 100. Places where every
    seed failed are hatched, those where some did hatched over their colour, places without any
    number dotted, and all are counted.

    Raises:
        UserError: if x or y can't be an axis, another parameter varies, the column is unknown or
            empty, the threshold isn't finite, or the equation is none.
    """
    x, y = two_axes(data, options, panels=True)
    value, label = measured(data, options.value)
    threshold = checked_threshold(options.threshold)
    numeric = [axis.name for axis in (x, y) if axis.scale != "category"]
    equation = None if options.law is None else parse_equation(options.law, numeric)
    with_numbers(data, value)
    parts = panels(data, options.by)
    grids = [lay_out(part.data, x, y, value) for part in parts]
    figure, all_axes = new_panels(len(parts), height=2.75)
    for axes in all_axes:
        x.dress(axes, "x")
        y.dress(axes, "y")
        axes.label_outer()
    title_panels(figure, all_axes, [part.title for part in parts], _title(label, grids))
    if threshold is None:
        _draw_scale(figure, all_axes, grids, label)
        legend: Legend = []
    else:
        legend = _draw_sides(all_axes, grids, threshold)
    if equation is not None:
        legend += [draw_equation(axes, equation, x.name, y.name) for axes in all_axes][:1]
    for state in HATCHES:
        masks = [getattr(grid, state) for grid in grids]
        patches = [_hatch(*place, state) for place in zip(all_axes, grids, masks, strict=True)]
        if any(mask.any() for mask in masks):
            legend.append((patches[0], f"{WORDS[state]} ({sum(mask.sum() for mask in masks)})"))
    if any(grid.sampled.any() for grid in grids):
        dots = [_draw_sampled(*place) for place in zip(all_axes, grids, strict=True)]
        legend.append((dots[0], "sampled"))
    legend_below(figure, legend)
    return figure


@styled
def draw_cutoff(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw a heatmap of two colours, with a threshold in any case; see `draw_heatmap`.

    Where none is asked for, it is the middle of what was measured, and the legend names it.
    """
    if options.threshold is None:
        value, _ = measured(data, options.value)
        options = replace(options, threshold=middle_of(with_numbers(data, value)[value]))
    return draw_heatmap(data, options)


def _draw_sampled(axes: matplotlib.axes.Axes, grid: Grid) -> Line2D:
    """Dot the places where cells were run."""
    rows, columns = np.nonzero(grid.sampled)
    x, y = grid.x.positions[columns], grid.y.positions[rows]
    (dots,) = axes.plot(x, y, "o", markersize=1.6, color="white", mec="black", mew=0.25)
    return dots


def _title(label: str, grids: Sequence[Grid]) -> str:
    title = f"{label}, {seeds_in_words(grids)}"
    left_out = sum(grid.left_out for grid in grids)
    return f"{title}\n{plural(left_out, 'failed cell')} left out" if left_out else title


def _draw_scale(
    figure: matplotlib.figure.Figure,
    all_axes: Sequence[matplotlib.axes.Axes],
    grids: Sequence[Grid],
    label: str,
) -> None:
    everything = np.concatenate([grid.mean.ravel() for grid in grids])
    low, high = float(np.nanmin(everything)), float(np.nanmax(everything))
    by_ratio = low > 0 and high / low > 100
    norm = LogNorm(low, high) if by_ratio else Normalize(low, high)
    look: dict[str, Any] = {"cmap": COLOUR_MAP, "norm": norm, "rasterized": True}
    meshes = [
        axes.pcolormesh(grid.x.edges, grid.y.edges, grid.mean, **look)
        for axes, grid in zip(all_axes, grids, strict=True)
    ]
    bar = figure.colorbar(meshes[0], ax=list(all_axes), label=wrapped(label, HIGH), pad=0.02)
    if by_ratio:
        log_ticks(bar.ax.yaxis, low, high)


def _draw_sides(
    all_axes: Sequence[matplotlib.axes.Axes], grids: Sequence[Grid], threshold: float
) -> Legend:
    ends = matplotlib.colormaps[COLOUR_MAP]
    colours = ListedColormap([ends(0.0), ends(1.0)])
    for axes, grid in zip(all_axes, grids, strict=True):
        above = np.where(np.isnan(grid.mean), np.nan, grid.mean > threshold)
        axes.pcolormesh(
            grid.x.edges, grid.y.edges, above, cmap=colours, vmin=0, vmax=1, rasterized=True
        )
    words = (f"at most {plain(threshold)}", f"above {plain(threshold)}")
    return [(Patch(color=colours(side)), text) for side, text in enumerate(words)]


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
