"""Figure 4 of Song et al. 2024: loss surfaces of one network, a row for each kernel.

Each surface is shown in three dimensions and as contours, with a table of its measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.labels import short_settings, split_settings, varying_parameters
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.figures.style import DIVERGING, PAGE

Floats = NDArray[np.float64]
LEVELS = 14
DIRECTIONS = ("direction $d_1$ in $W^Q$", "direction $d_2$ in $W^K$")


def draw_landscape(data: FigureData, options: FigureOptions) -> Picture:
    """Draw the surfaces of the first network and pair of directions, one row per kernel and task.

    The measures of roughness stand beside the contours; the caption says how many networks and
    pairs the run directory holds.

    Raises:
        UserError: if no cell with a surface is done.
    """
    cells = data.cells[data.cells["key"].isin(data.trajectories["key"])]
    cells = cells[cells["status"] == "done"]
    if cells.empty:
        raise UserError("No cell with a surface is done here.")
    first = cells.sort_values(["seed", "pair"]).iloc[0]
    first_cells = cells[(cells["seed"] == first["seed"]) & (cells["pair"] == first["pair"])]
    names = [name for name in varying_parameters(data) if name not in ("pair", "kernel")]
    rows = [
        _surface(cells_of_one.iloc[0], names, data)
        for _, cells_of_one in split_settings(replace(data, cells=first_cells), [*names, "kernel"])
    ]
    figure: Picture = draw_surfaces(rows, (*DIRECTIONS, r"$\Delta L$"))
    figure.facts.append(
        f"Heights and colours are the loss less that at the centre. Network {first['seed']}, pair "
        f"of directions {first['pair']} (networks here: {cells['seed'].nunique()}, pairs of each: "
        f"{cells['pair'].nunique()})."
    )
    return figure


def _surface(row: pd.Series, names: list[str], data: FigureData) -> Surface:
    points = data.trajectories[data.trajectories["key"] == row["key"]].sort_values("step")
    across, up = (np.unique(points[name].to_numpy(dtype=np.float64)) for name in ("a", "b"))
    heights = points["loss"].to_numpy(dtype=np.float64).reshape(len(across), len(up))
    return Surface(
        title=short_settings(
            data.study, {"kernel": row["kernel"], **{name: row[name] for name in names}}
        ),
        measures={
            "loss at centre": f"{row['centre_loss']:.4f}",
            "interior minima": f"{int(row['interior_minima'])}",
            "rms Laplacian": f"{row['rms_laplacian']:.3g}",
            "quadratic residual": f"{row['quadratic_residual']:.2g}",
            "sharpness": f"{row['sharpness']:.2g}",
        },
        across=across,
        up=up,
        heights=heights - float(row["centre_loss"]),
    )


@dataclass(frozen=True)
class Surface:
    """One surface."""

    title: str
    measures: Mapping[str, str]  # numbers that are told of it, by what they are
    # across, up: where its points lie, (n,) and (m,)
    across: Floats
    up: Floats
    heights: Floats  # (n, m); 0 at the centre


@styled
def draw_surfaces(surfaces: Sequence[Surface], labels: tuple[str, str, str]) -> Picture:
    """Draw each surface as a row: in three dimensions, as contours, and its measures beside.

    Heights and colours have one scale over all surfaces, whose middle colour is 0. The labels are
    those of the directions d₁ and d₂, and of the heights.
    """
    lowest = min(float(surface.heights.min()) for surface in surfaces)
    highest = max(float(surface.heights.max()) for surface in surfaces)
    reach = max(-lowest, highest) or 1.0
    scale, levels = Normalize(-reach, reach), MaxNLocator(LEVELS).tick_values(lowest, highest)
    figure = Picture(PAGE, 0.4 + 2.3 * len(surfaces), least=6.0)
    grid = figure.add_gridspec(len(surfaces), 3, width_ratios=(1.45, 1, 0.72))
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(wspace=0.06)  # the solids' numbers stand outside of their axes
    for row, surface in enumerate(surfaces):
        solid: Any = figure.add_subplot(grid[row, 0], projection="3d")
        _draw_solid(solid, surface, scale, (lowest, highest))
        axes = figure.add_subplot(grid[row, 1])
        filled = axes.contourf(
            surface.across, surface.up, surface.heights.T, levels, cmap=DIVERGING, norm=scale
        )
        axes.contour(filled, colors="0.25", linewidths=0.35)
        axes.plot(0, 0, "+", color="black", markersize=6)
        axes.set(xlabel=labels[0], ylabel=labels[1], aspect="equal", title=surface.title)
        figure.colorbar(filled, ax=axes, label=labels[2], shrink=0.9, pad=0.02)
        _write_measures(figure.add_subplot(grid[row, 2]), surface)
    return figure


def _draw_solid(
    axes: Any, surface: Surface, scale: Normalize, heights: tuple[float, float]
) -> None:
    across, up = np.meshgrid(surface.across, surface.up, indexing="ij")
    axes.plot_surface(
        across, up, surface.heights, cmap=DIVERGING, norm=scale, rstride=1, cstride=1, linewidth=0
    )
    axes.set_zlim(*heights)
    axes.set(xlabel="$d_1$", ylabel="$d_2$")
    axes.tick_params(labelsize=6, pad=-2)
    axes.set(xticklabels=[], yticklabels=[])  # the contours beside have them
    axes.zaxis.set_major_locator(MaxNLocator(4))
    axes.tick_params(axis="z", pad=1)
    axes.xaxis.labelpad = axes.yaxis.labelpad = -14
    axes.view_init(elev=28, azim=-60)
    axes.set_box_aspect((1, 1, 0.75), zoom=1.08)


def _write_measures(axes: Axes, surface: Surface) -> None:
    """Write a surface's measures as a small table, a line for each."""
    axes.axis("off")
    for row, (name, number) in enumerate(surface.measures.items()):
        height = 0.86 - 0.14 * row
        axes.text(0.0, height, name, transform=axes.transAxes, fontsize=6.5)
        axes.text(1.0, height, number, transform=axes.transAxes, fontsize=6.5, ha="right")
        axes.plot((0, 1), (height - 0.04,) * 2, color="0.8", linewidth=0.4, clip_on=False)
    axes.set(xlim=(0, 1), ylim=(0, 1))
