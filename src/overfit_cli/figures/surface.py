"""Surfaces over a plane, each in three dimensions and as contours, on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.figure
import numpy as np
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from overfit_cli.figures.style import COLOUR_MAP, COLUMN, WIDE, styled, wrapped

Floats = NDArray[np.float64]
LEVELS = 12


@dataclass(frozen=True)
class Surface:
    """One surface.

    Attributes:
        title: what it is of.
        caption: what is to be said of it, below its title.
        across, up: where its points lie, shapes (n,) and (m,).
        heights: shape (n, m).
    """

    title: str
    caption: str
    across: Floats
    up: Floats
    heights: Floats


@styled
def draw_surfaces(
    surfaces: Sequence[Surface], labels: tuple[str, str, str], shared: str
) -> matplotlib.figure.Figure:
    """Draw each surface as a row: in three dimensions, and its contours beside it.

    Args:
        surfaces: one a row; heights and colours have one scale over all of them.
        labels: of the two directions, d₁ and d₂, and of the heights.
        shared: a line for the whole figure.
    """
    lowest = min(float(surface.heights.min()) for surface in surfaces)
    highest = max(float(surface.heights.max()) for surface in surfaces)
    scale = Normalize(lowest, highest)
    levels = MaxNLocator(LEVELS).tick_values(lowest, highest)
    figure = matplotlib.figure.Figure(figsize=(1.55 * COLUMN, 0.3 + 2.25 * len(surfaces)))
    figure.suptitle(wrapped(shared, int(1.5 * WIDE)), x=0.01, ha="left", fontsize=7)
    shown = []
    for row, surface in enumerate(surfaces):
        _draw_solid(figure, (len(surfaces), 2, 2 * row + 1), surface, scale)
        axes = figure.add_subplot(len(surfaces), 2, 2 * row + 2)
        shown.append(axes)
        filled = axes.contourf(
            surface.across, surface.up, surface.heights.T, levels, cmap=COLOUR_MAP, norm=scale
        )
        axes.contour(filled, colors="white", linewidths=0.4)
        axes.plot(0, 0, "+", color="white", markersize=6)
        axes.set(xlabel=labels[0], ylabel=labels[1], aspect="equal")
        axes.set_title(wrapped(f"{surface.title}\n{surface.caption}", WIDE // 2 + 2), fontsize=7)
    figure.colorbar(filled, ax=shown, label=labels[2], shrink=0.8)
    return figure


def _draw_solid(
    figure: matplotlib.figure.Figure,
    place: tuple[int, int, int],
    surface: Surface,
    scale: Normalize,
) -> None:
    axes: Any = figure.add_subplot(*place, projection="3d")
    across, up = np.meshgrid(surface.across, surface.up, indexing="ij")
    axes.plot_surface(
        across, up, surface.heights, cmap=COLOUR_MAP, norm=scale, rstride=1, cstride=1, linewidth=0
    )
    axes.set_zlim(scale.vmin, scale.vmax)
    axes.set(xlabel="$d_1$", ylabel="$d_2$")
    axes.tick_params(labelsize=6, pad=-2)
    axes.set(xticklabels=[], yticklabels=[])  # the contours beside have them
    axes.zaxis.set_major_locator(MaxNLocator(4))
    axes.tick_params(axis="z", pad=2)
    axes.xaxis.labelpad = axes.yaxis.labelpad = -14
    axes.view_init(elev=28, azim=-60)
    axes.set_box_aspect(None, zoom=1.15)
