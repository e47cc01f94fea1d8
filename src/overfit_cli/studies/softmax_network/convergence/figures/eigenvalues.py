"""Smallest eigenvalues of the tangent kernel against width and dimension."""

from __future__ import annotations

import numpy as np
from matplotlib.lines import Line2D

from overfit_cli.core.figure import FigureData, FigureOptions
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.figures.style import Legend, colours_of_map, legend_below
from overfit_cli.studies.softmax_network.names import NAMES
from overfit_cli.studies.softmax_network.series import done_cells, new_grid


def has_dimensions(data: FigureData) -> bool:
    """Return whether m and d vary."""
    return bool((data.cells[["m", "d"]].nunique() > 1).all())


@styled
def draw_eigenvalues(data: FigureData, options: FigureOptions) -> Picture:
    """Draw λ_min of the Gram matrix at the start against n/m, a line for each d.

    A column for each activation; the dashed lines are those of infinitely many hidden units.

    Raises:
        UserError: if another parameter varies, or no cell is there.
    """
    done_cells(data, ("activation", "m", "n", "d"))
    cells = data.cells.assign(ratio=data.cells["n"] / data.cells["m"])
    names = [one for one in NAMES if (cells["activation"] == one).any()]
    dimensions = sorted(cells["d"].unique())
    shades = colours_of_map(np.linspace(0, 0.9, len(dimensions)).tolist())
    figure, grid = new_grid(1, len(names))
    for axes, name in zip(grid[0], names, strict=True):
        for d, colour in zip(dimensions, shades, strict=True):
            own = cells[(cells["activation"] == name) & (cells["d"] == d)]
            own = own[own["lambda_start"] > 0]
            middle = own.groupby("ratio")["lambda_start"].median()
            axes.plot(middle.index, middle, "o-", color=colour, markersize=2.5)
            if len(own):
                axes.axhline(
                    float(own["lambda_limit"].median()),
                    color=colour,
                    linestyle="--",
                    linewidth=0.7,
                )
        axes.set_title(NAMES[name])
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("samples over hidden units $n/m$")
    grid[0, 0].set_ylabel(r"$\lambda_{\mathrm{min}}(H^*)$")
    legend: Legend = [
        (Line2D([], [], color=colour, marker="o", markersize=2.5), f"$d$ = {d}")
        for d, colour in zip(dimensions, shades, strict=True)
    ]
    legend.append((Line2D([], [], color="0.4", linestyle="--"), r"$m = \infty$"))
    legend_below(figure, legend, columns=7)
    return figure
