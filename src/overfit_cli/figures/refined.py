"""Drawings of refined sweeps, whose cells lie near a boundary: dots, shares, crossings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from overfit_cli.figures.axes import Axis
from overfit_cli.figures.grid import Grid
from overfit_cli.figures.inputs import usable_cells
from overfit_cli.figures.panels import Panel
from overfit_cli.figures.style import MUTED, Legend
from overfit_cli.stats.crossings import crossings, medians_by_row, share_above
from overfit_cli.stats.intervals import FEWEST_FOR_MEDIAN

_SHARE_COLUMNS = 240
"""The number of columns along x in which a share is drawn."""

_BAND: dict[str, Any] = {"color": "0.15", "alpha": 0.3, "linewidth": 0, "zorder": 1.8}
_LINE: dict[str, Any] = {"color": "0.15", "linewidth": 1.2, "zorder": 3}  # above equations
_DOT: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 1.2, "mew": 0.2}


def draw_numbers_where_sampled(axes: Axes, grid: Grid, look: dict[str, Any]) -> Any:
    """Colour the points with cells by their number, in dots whose area grows with the seeds."""
    rows, columns = np.nonzero(np.isfinite(grid.number) & grid.sampled)
    return axes.scatter(
        grid.x.positions[columns],
        grid.y.positions[rows],
        c=grid.number[rows, columns],
        s=3 + 12 * grid.arrived[rows, columns] / max(grid.arrived.max(), 1),
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
    positions = np.clip(positions, x.positions[0], x.positions[-1])  # curves end at their cells
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
    interval = axes.fill_betweenx(crossed[y.name], ends["low"], ends["high"], **_BAND)
    interval.set_label("interval of the crossings")
    in_view = crossed["crossing"].between(x_low, x_high)
    axes.plot(ends["crossing"].where(in_view), crossed[y.name], **_LINE, label="crossings")
    return curves


def draw_sampled(axes: Axes, cells: pd.DataFrame, x: Axis, y: Axis) -> None:
    """Dot the points where cells were run."""
    points = cells[[x.name, y.name]].drop_duplicates()
    look: dict[str, Any] = {"color": "white", "mec": "black", "alpha": 0.4, "zorder": 1.5}
    axes.plot(points[x.name], points[y.name], **look, **_DOT, label="cells")


def draw_lost(axes: Axes, grid: Grid) -> Line2D:
    """Cross the points without a number over the seeds."""
    rows, columns = np.nonzero(grid.lost & grid.sampled)
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
