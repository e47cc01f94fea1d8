"""Cells that a refining sweep chose, on a map: what is known, and where it was sampled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from overfit_cli.analysis.crossings import crossings, medians_by_row
from overfit_cli.analysis.intervals import FEWEST_FOR_MEDIAN
from overfit_cli.analysis.sides import share_above
from overfit_cli.figures.axis import Axis
from overfit_cli.figures.grid import Grid
from overfit_cli.figures.inputs import usable_cells
from overfit_cli.figures.panels import Panel
from overfit_cli.figures.style import MUTED, Legend

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
