"""The figure `cutoff`: the side of a threshold of a measured column, over two parameters."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from scipy.ndimage import distance_transform_edt

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.caption import repeated_crossings
from overfit_cli.figures.heatmap import (
    Grid,
    Map,
    MapPanel,
    Overlay,
    draw_known_boundary,
    draw_sampled,
    draw_share_above,
    finish_map,
    lay_out_map,
    legend_of_boundary,
    legend_of_dots,
    new_map,
    split_by_sampling,
)
from overfit_cli.figures.inputs import middle_threshold, usable_cells
from overfit_cli.figures.labels import tick_number, wrap_text
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.figures.style import HIGH, MUTED, Legend

_LEAST_SHARE = 0.04
"""The least share of the grid of a region with a name in it."""


@styled
def draw_cutoff(data: FigureData, options: FigureOptions) -> Picture:
    """Draw in two colours the side of the threshold of the mean over seeds.

    The default threshold is the middle of the means that are drawn. The regions have the study's
    names of the sides of its headline. For a refined sweep, whose cells are too few and too uneven
    for means, the colour is the share of seeds whose fitted curves lie above, and the boundary has
    its band.

    Raises:
        UserError: as `draw_heatmap`.
    """
    return draw_sides(data, options)


def draw_sides(
    data: FigureData, options: FigureOptions, overlay: Overlay = lambda axes, part: []
) -> Picture:
    """Draw a cutoff with an overlay on each of its panels; the caller is `styled`.

    The overlay's entries in the legend stand after the equations.
    """
    plan = lay_out_map(data, options)
    threshold = options.threshold
    if threshold is None:
        drawn = np.concatenate([grid.mean[np.isfinite(grid.mean)] for grid in plan.grids])
        threshold = middle_threshold(pd.Series(drawn))
    names = data.study.sides if plan.value == data.study.headline else ("", "")
    figure, all_axes = new_map(plan)
    legend: Legend = []
    complete, refined = split_by_sampling(all_axes, plan)
    if complete:
        legend += _colour_sides(complete, plan, threshold, names)
    if refined:
        legend += _draw_refined(figure, refined, plan, threshold, names)
    figure.facts.append(f"The threshold is {tick_number(threshold)}.")
    overlays = [overlay(axes, part) for axes, part in zip(all_axes, plan.parts, strict=True)]
    further = next((entries for entries in overlays if entries), [])
    finish_map(figure, all_axes, plan, data, options, legend, further)
    return figure


def _colour_sides(
    panels: Sequence[MapPanel], plan: Map, threshold: float, names: tuple[str, str]
) -> Legend:
    """Colour every point of the grid by its side."""
    for axes, grid, _ in panels:
        is_above = np.where(np.isnan(grid.mean), np.nan, grid.mean > threshold)
        axes.pcolormesh(
            grid.x.edges,
            grid.y.edges,
            is_above,
            cmap=ListedColormap(MUTED),
            vmin=0,
            vmax=1,
            rasterized=True,
        )
        for side, name in enumerate(names):
            _name_region(axes, grid, is_above == side, name)
    signs = [f"{plan.label} {sign} {tick_number(threshold)}" for sign in ("≤", ">")]
    return [
        (Patch(color=colour), f"{name}: {sign}" if name else sign)
        for colour, name, sign in zip(MUTED, names, signs, strict=True)
    ]


def _name_region(axes: matplotlib.axes.Axes, grid: Grid, mask: np.ndarray, name: str) -> None:
    """Write the name of a region at its widest point, if the region is large enough."""
    if not name or mask.mean() < _LEAST_SHARE:
        return
    # The outside of the figure counts as another region: names keep clear of the frame.
    depth = distance_transform_edt(np.pad(mask, 1), sampling=[1 / len(mask), 1 / len(mask.T)])
    row, column = np.unravel_index(np.argmax(depth[1:-1, 1:-1]), mask.shape)
    axes.text(
        float(grid.x.positions[column]),
        float(grid.y.positions[row]),
        name,
        ha="center",
        va="center",
        fontstyle="italic",
    )


def _draw_refined(
    figure: Picture,
    panels: Sequence[MapPanel],
    plan: Map,
    threshold: float,
    names: tuple[str, str],
) -> Legend:
    """Colour each row by the share of seeds above, and draw the boundary with its band."""
    curves = []
    for axes, _, part in panels:
        cells = usable_cells(part.data, plan.value)
        mesh = draw_share_above(axes, cells, plan.x, plan.y, plan.value, threshold)
        curves.append(draw_known_boundary(axes, cells, plan.x, plan.y, plan.value, threshold))
        draw_sampled(axes, cells, plan.x, plan.y)
    side = f" ({names[1]})" if names[1] else ""
    label = f"share of seeds with {plan.label} > {tick_number(threshold)}{side}"
    all_axes = [axes for axes, _, _ in panels]
    figure.colorbar(mesh, ax=all_axes, label=wrap_text(label, HIGH), pad=0.02)
    legend = legend_of_boundary(plan.value, panels)
    figure.facts.append(
        f"Colour, for each value of {plan.y.label}: the share of seeds above, each seed's curve "
        f"fitted to be monotone. Line: the median crossing over seeds; band: {legend[-1][1]}."
    )
    figure.facts += repeated_crossings(curves)
    return legend + legend_of_dots()
