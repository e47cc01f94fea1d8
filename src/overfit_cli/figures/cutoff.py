"""Which side of a threshold a measured column is on, over two parameters."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.axes
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from scipy.ndimage import distance_transform_edt

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.heatmap import (
    Grid,
    Map,
    Place,
    by_sampling,
    draw_known_boundary,
    draw_sampled,
    draw_share_above,
    finish_map,
    lay_out_map,
    legend_of_boundary,
    legend_of_dots,
    new_map,
)
from overfit_cli.figures.inputs import middle_of, usable_cells, with_numbers
from overfit_cli.figures.labels import plain, wrapped
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.figures.style import HIGH, MUTED, Legend

_LEAST_SHARE = 0.04
"""Of the places, how many a region needs for its name to stand in it."""


@styled
def draw_cutoff(data: FigureData, options: FigureOptions) -> Picture:
    """Draw in two colours on which side of the threshold the mean over seeds lies.

    Where no threshold is asked for, it is the middle of what was measured. The regions are named as
    the study names the sides of its headline. Of a sweep that refined, the colour is the
    share of seeds whose fitted curves lie above, and the boundary has its band: such cells are too
    few, and too uneven, for means.

    Raises:
        UserError: as `draw_heatmap` does.
    """
    shown = lay_out_map(data, options)
    threshold = options.threshold
    if threshold is None:
        threshold = middle_of(with_numbers(data, shown.value)[shown.value])
    names = data.study.sides if shown.value == data.study.headline else ("", "")
    figure, all_axes = new_map(shown)
    legend: Legend = []
    whole, refined = by_sampling(all_axes, shown)
    if whole:
        legend += _draw_sides(whole, shown, threshold, names)
    if refined:
        legend += _draw_refined(figure, refined, shown, threshold, names)
    figure.facts.append(f"The threshold is {plain(threshold)}.")
    finish_map(figure, all_axes, shown, data, options, legend)
    return figure


def _draw_sides(
    places: Sequence[Place], shown: Map, threshold: float, names: tuple[str, str]
) -> Legend:
    """Colour every place by its side."""
    for axes, grid, _ in places:
        above = np.where(np.isnan(grid.mean), np.nan, grid.mean > threshold)
        axes.pcolormesh(
            grid.x.edges,
            grid.y.edges,
            above,
            cmap=ListedColormap(MUTED),
            vmin=0,
            vmax=1,
            rasterized=True,
        )
        for side, name in enumerate(names):
            _name_region(axes, grid, above == side, name)
    signs = [f"{shown.label} {sign} {plain(threshold)}" for sign in ("≤", ">")]
    return [
        (Patch(color=colour), f"{name}: {sign}" if name else sign)
        for colour, name, sign in zip(MUTED, names, signs, strict=True)
    ]


def _name_region(axes: matplotlib.axes.Axes, grid: Grid, mask: np.ndarray, name: str) -> None:
    """Write the name of a region where it is widest, if it is wide enough."""
    if not name or mask.mean() < _LEAST_SHARE:
        return
    # Outside of the figure counts as another region: names keep clear of the frame.
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
    places: Sequence[Place],
    shown: Map,
    threshold: float,
    names: tuple[str, str],
) -> Legend:
    """Colour each row by the share of seeds above, and draw the boundary with its band."""
    for axes, _, part in places:
        cells = usable_cells(part.data, shown.value)
        mesh = draw_share_above(axes, cells, shown.x, shown.y, shown.value, threshold)
        draw_known_boundary(axes, cells, shown.x, shown.y, shown.value, threshold)
        draw_sampled(axes, cells, shown.x, shown.y)
    above = f" ({names[1]})" if names[1] else ""
    label = f"share of seeds with {shown.label} > {plain(threshold)}{above}"
    drawn_on = [axes for axes, _, _ in places]
    figure.colorbar(mesh, ax=drawn_on, label=wrapped(label, HIGH), pad=0.02)
    legend = legend_of_boundary(shown.value, places)
    figure.facts.append(
        f"Colour, for each {shown.y.label}: the share of seeds above, each seed's curve fitted to "
        f"be monotone. Line: the median crossing over seeds; band: {legend[-1][1]}."
    )
    return legend + legend_of_dots()
