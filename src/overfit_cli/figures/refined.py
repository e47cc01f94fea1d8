"""Cells that a refining sweep chose, on a map: what is known, and where it was sampled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from overfit_cli.analysis.crossings import crossings, medians_by_row
from overfit_cli.analysis.sides import fit_sides
from overfit_cli.figures.axis import Axis
from overfit_cli.figures.grid import Grid
from overfit_cli.figures.style import MUTED, Legend

_FINE = 240
"""Places along each axis at which a probability is drawn."""

_BAND: dict[str, Any] = {"color": "0.15", "alpha": 0.3, "linewidth": 0}
_LINE: dict[str, Any] = {"color": "0.15", "linewidth": 1.2}
_DOT: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 1.7, "mew": 0.25}


def draw_means_where_sampled(axes: Axes, grid: Grid, look: dict[str, Any]) -> Any:
    """Colour the places with cells by their mean; the others stay blank."""
    rows, columns = np.nonzero(np.isfinite(grid.mean) & grid.sampled)
    return axes.scatter(
        grid.x.positions[columns],
        grid.y.positions[rows],
        c=grid.mean[rows, columns],
        s=9,
        edgecolors="none",
        clip_on=False,
        zorder=3,
        **look,
    )


def draw_probability(
    axes: Axes, cells: pd.DataFrame, x: Axis, y: Axis, value: str, threshold: float
) -> Any:
    """Colour the plane by the fitted probability of lying above; return what a bar is made from."""
    across, up = (axis.scaled(axis.edges) for axis in (x, y))
    places = [axis.scaled(cells[axis.name].to_numpy(dtype=np.float64)) for axis in (x, y)]
    sides = fit_sides(places[0], places[1], cells[value].to_numpy() > threshold)
    at = [np.linspace(ends[0], ends[-1], _FINE) for ends in (across, up)]
    likely = sides.probability(*np.meshgrid(*at))
    colours = LinearSegmentedColormap.from_list("sides", [MUTED[0], "white", MUTED[1]])
    look: dict[str, Any] = {"cmap": colours, "vmin": 0, "vmax": 1, "rasterized": True}
    return axes.pcolormesh(x.unscaled(at[0]), y.unscaled(at[1]), likely, shading="nearest", **look)


def draw_known_boundary(
    axes: Axes, cells: pd.DataFrame, x: Axis, y: Axis, value: str, threshold: float
) -> None:
    """Draw the median crossing for each y, with its interval as a band."""
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


def legend_of_refined(ends: str) -> Legend:
    """Return the legend of a boundary with its band, and of dots.

    Args:
        ends: what the band is.
    """
    return [
        (Line2D([], [], **_LINE), "median crossing"),
        (Patch(**_BAND), ends),
        (Line2D([], [], color="white", mec="black", **_DOT), "sampled"),
    ]
