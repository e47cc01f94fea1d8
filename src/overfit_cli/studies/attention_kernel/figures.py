"""Figures of Song et al. 2024: the condition on ranks, and figure 4's loss surfaces."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator

from overfit_cli.core.arrays import Floats
from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.figures.labels import short_settings
from overfit_cli.figures.map import draw_cutoff
from overfit_cli.figures.picture import Picture, title_panels
from overfit_cli.figures.style import DIVERGING, PAGE


def draw_ranks(data: Cells, options: FigureOptions) -> Picture:
    """Draw where δ is above zero with softmax, of which the lines say what is necessary."""
    figure = draw_cutoff(data.where("kernel = softmax"), options)
    figure.facts.append(
        "δ can be above zero only right of and above all lines; D·d ≥ N·n² is Remark 4's, and the "
        "others are ours."
    )
    return figure


LEVELS = 14
MEASURES = ["rms_laplacian", "interior_minima"]


class Surface(NamedTuple):
    """One surface."""

    title: str
    across: Floats  # where its points lie along d₁, (n,)
    up: Floats  # and along d₂, (m,)
    heights: Floats  # 0 at the centre, (n, m)


def draw_landscape(data: Cells, options: FigureOptions) -> Picture:
    """Draw the surfaces of the most typical network and pair of directions, one row per kernel."""
    cells = data.trained[data.trained["key"].isin(data.steps["key"])]
    cells = cells[cells["status"] == "done"]
    if cells.empty:
        raise UserError("No cell with a surface is done here.")
    names = [*data.varying(("pair", "kernel")), "kernel"]
    seed, pair = most_typical(cells, names)
    chosen = data.without_plan(cells[(cells["seed"] == seed) & (cells["pair"] == pair)])
    surfaces = [
        _surface(short_settings(data.schema, values), group.frame.iloc[0], data.steps)
        for values, group in chosen.settings(names)
    ]
    figure = draw_surfaces(surfaces, r"\Delta L")
    figure.facts.append(
        f"Heights and colours are the loss less that at the centre (cross). Network {seed}, pair "
        f"of directions {pair}: of those here (networks: {cells['seed'].nunique()}, pairs of each: "
        f"{cells['pair'].nunique()}) its Laplacian and minima are nearest to the medians, by the "
        "rank of the farther of them in any row."
    )
    return figure


def most_typical(cells: pd.DataFrame, names: list[str]) -> tuple[int, int]:
    """The network and the pair of directions whose measures are nearest to the medians by rank."""
    settings = [cells[name] for name in names]
    ranks = cells[MEASURES].astype(float).groupby(settings).rank(pct=True)
    medians = ranks.groupby(settings).transform("median")
    farthest = (ranks - medians).abs().max(axis=1).groupby([cells["seed"], cells["pair"]])
    table = pd.DataFrame({"distance": farthest.max(), "settings": farthest.size()})
    seed, pair = table.loc[table["settings"] == table["settings"].max(), "distance"].idxmin()
    return int(seed), int(pair)


def _surface(title: str, row: pd.Series, steps: pd.DataFrame) -> Surface:
    points = steps[steps["key"] == row["key"]].pivot(index="a", columns="b", values="loss")
    heights = points.to_numpy(np.float64) - float(row["centre_loss"])
    return Surface(title, points.index.to_numpy(float), points.columns.to_numpy(float), heights)


def draw_surfaces(surfaces: list[Surface], label: str) -> Picture:
    """Draw each surface as a row: in three dimensions, and as contours."""
    reach = max(float(np.abs(surface.heights).max()) for surface in surfaces) or 1.0
    decade = math.floor(math.log10(reach)) if reach < 0.01 else 0
    name = f"${label}" + (rf"\ (10^{{{decade}}})$" if decade else "$")
    scaled = [surface._replace(heights=surface.heights / 10.0**decade) for surface in surfaces]
    reach, every = reach / 10.0**decade, np.concatenate([each.heights.ravel() for each in scaled])
    ends = float(every.min()), float(every.max())
    scale, levels = Normalize(-reach, reach), MaxNLocator(LEVELS).tick_values(*ends)
    look: dict[str, Any] = {"cmap": DIVERGING, "norm": scale}
    figure = Picture(PAGE, 0.4 + 2.2 * len(scaled), least=4.6)
    grid = figure.add_gridspec(len(scaled), 2, width_ratios=(1.15, 1), wspace=0.12)
    flat = [figure.add_subplot(grid[row, 1]) for row in range(len(scaled))]
    for row, (axes, surface) in enumerate(zip(flat, scaled, strict=True)):
        solid: Any = figure.add_subplot(grid[row, 0], projection="3d")
        figure.surfaces[solid] = _draw_solid(solid, surface, ends, look)
        filled = axes.contourf(surface.across, surface.up, surface.heights.T, levels, **look)
        axes.contour(filled, colors="0.25", linewidths=0.35)
        axes.plot(0, 0, "+", color="black", markersize=6)
        axes.set(xlabel="direction $d_1$ in $W^Q$", ylabel="direction $d_2$ in $W^K$")
        axes.set_aspect("equal")
    title_panels(flat, [surface.title for surface in scaled])
    figure.colorbar(filled, ax=flat, label=name, shrink=0.7, aspect=30, pad=0.03)
    return figure


def _draw_solid(
    axes: Any, surface: Surface, ends: tuple[float, float], look: dict[str, Any]
) -> Floats:
    """Draw a surface in three dimensions; return its points, (points, 3)."""
    across, up = np.meshgrid(surface.across, surface.up, indexing="ij")
    axes.plot_surface(across, up, surface.heights, rstride=1, cstride=1, linewidth=0, **look)
    axes.set(xlabel="$d_1$", ylabel="$d_2$", zlim=ends)
    axes.tick_params(labelsize=6, pad=-3)
    for axis, count in ((axes.xaxis, 3), (axes.yaxis, 3), (axes.zaxis, 4)):
        axis.set_major_locator(MaxNLocator(count))
    axes.xaxis.labelpad = axes.yaxis.labelpad = -9
    axes.view_init(elev=28, azim=-60)
    axes.set_box_aspect((1, 1, 0.75), zoom=1.3)
    return np.column_stack([across.ravel(), up.ravel(), surface.heights.ravel()])
