"""A measured column over two parameters, as a map of colours."""

from __future__ import annotations

from typing import Any

import matplotlib
import matplotlib.axes
import matplotlib.figure
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import ListedColormap, LogNorm, Normalize
from matplotlib.patches import Patch
from numpy.typing import NDArray

from overfit_cli.analysis.law import parse_law
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.grid import Grid, lay_out
from overfit_cli.figures.law_curve import draw_law
from overfit_cli.figures.question import checked_threshold, measured, two_axes
from overfit_cli.figures.style import (
    COLOUR_MAP,
    HIGH,
    WIDE,
    Legend,
    legend_below,
    log_ticks,
    new_figure,
    plain,
    styled,
    wrapped,
)

HATCHES = {"failed": "//////", "missing": "......"}


@styled
def draw_heatmap(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw `options.value`, averaged over seeds, as colours over the parameters x and y.

    With a threshold there are two colours, for its two sides; without, a scale of colours, by
    ratio where the values are positive and span more than a factor of 100. Places where every
    seed failed are hatched, places without any number dotted, and both are counted.

    Raises:
        UserError: if x or y can't be an axis, another parameter varies, the column is unknown or
            empty, the threshold isn't finite, or the law is none.
    """
    x, y = two_axes(data, options)
    value, label = measured(data, options.value)
    threshold = checked_threshold(options.threshold)
    numeric = [axis.name for axis in (x, y) if axis.scale != "category"]
    law = None if options.law is None else parse_law(options.law, numeric)
    grid = lay_out(data, x, y, value)
    figure, axes = new_figure(height=2.75)
    x.dress(axes, "x")
    y.dress(axes, "y")
    axes.set_title(wrapped(_title(label, grid), WIDE))
    if threshold is None:
        _draw_scale(axes, grid, label)
        legend: Legend = []
    else:
        legend = _draw_sides(axes, grid, threshold)
    if law is not None:
        legend.append(draw_law(axes, law, x.name, y.name))
    for state, mask in (("failed", grid.failed), ("missing", grid.missing)):
        if mask.any():
            legend.append(_hatch(axes, grid, mask, state))
    legend_below(figure, legend)
    return figure


def _title(label: str, grid: Grid) -> str:
    title = f"{label}, {grid.seeds_in_words}"
    return f"{title}\n{grid.left_out} failed cells left out" if grid.left_out else title


def _draw_scale(axes: matplotlib.axes.Axes, grid: Grid, label: str) -> None:
    low, high = float(np.nanmin(grid.mean)), float(np.nanmax(grid.mean))
    by_ratio = low > 0 and high / low > 100
    norm = LogNorm(low, high) if by_ratio else Normalize(low, high)
    mesh = axes.pcolormesh(
        grid.x.edges, grid.y.edges, grid.mean, cmap=COLOUR_MAP, norm=norm, rasterized=True
    )
    bar = axes.figure.colorbar(mesh, ax=axes, label=wrapped(label, HIGH), pad=0.02)
    if by_ratio:
        log_ticks(bar.ax.yaxis, low, high)


def _draw_sides(axes: matplotlib.axes.Axes, grid: Grid, threshold: float) -> Legend:
    ends = matplotlib.colormaps[COLOUR_MAP]
    colours = ListedColormap([ends(0.0), ends(1.0)])
    above = np.where(np.isnan(grid.mean), np.nan, grid.mean > threshold)
    axes.pcolormesh(
        grid.x.edges, grid.y.edges, above, cmap=colours, vmin=0, vmax=1, rasterized=True
    )
    words = (f"at most {plain(threshold)}", f"above {plain(threshold)}")
    return [(Patch(color=colours(side)), text) for side, text in enumerate(words)]


def _hatch(
    axes: matplotlib.axes.Axes, grid: Grid, mask: NDArray[np.bool_], state: str
) -> tuple[Patch, str]:
    """Hatch the places of `mask`, one polygon each, and return the legend's entry."""
    x, y = grid.x.edges, grid.y.edges
    squares = [
        [(x[i], y[j]), (x[i + 1], y[j]), (x[i + 1], y[j + 1]), (x[i], y[j + 1])]
        for j, i in np.argwhere(mask)
    ]
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": "0.35", "linewidth": 0}
    look["hatch"] = HATCHES[state]
    axes.add_collection(PolyCollection(squares, label=state, **look), autolim=False)
    return Patch(**look), f"{state} ({mask.sum()})"
