"""The figure `cutoff`: the side of a threshold of a measured column, over two parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import matplotlib.axes
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from scipy.ndimage import distance_transform_edt

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.caption import repeated_crossings
from overfit_cli.figures.grid import Grid, Mask
from overfit_cli.figures.heatmap import (
    Map,
    Overlay,
    draw_laws,
    lay_out_map,
    mark_losses,
    new_map,
    split_by_sampling,
)
from overfit_cli.figures.inputs import middle_threshold, usable_cells
from overfit_cli.figures.labels import tick_number, wrap_text
from overfit_cli.figures.map_marks import MapPanel
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.figures.refined import (
    draw_known_boundary,
    draw_sampled,
    draw_share_above,
    legend_of_boundary,
    legend_of_dots,
)
from overfit_cli.figures.style import HIGH, MUTED, Legend, legend_below

_LEAST_SHARE = 0.04
"""The least share of the axes of a region with a name in it."""

_SAMPLES = 120
"""The number of samples along each side of axes among which a name's point is chosen."""

_WIDTH = 2.5
"""How many times as wide as high a name is."""


@styled
def draw_cutoff(data: FigureData, options: FigureOptions) -> Picture:
    """Draw in two colours the side of the threshold of the statistic over seeds: see `heatmap`.

    The default threshold is the middle of the numbers that are drawn. The regions have the study's
    names of the sides of its headline. For a refined sweep, whose cells are too few and too uneven
    for means, the colour is the share of seeds whose fitted curves lie above, and the boundary has
    its band.
    """
    return draw_sides(data, options)


def draw_sides(data: FigureData, options: FigureOptions, overlay: Overlay | None = None) -> Picture:
    """Draw a cutoff with an overlay on each of its panels; the caller is `styled`."""
    plan = lay_out_map(data, options, to_scale=overlay is not None)
    threshold = options.threshold
    if threshold is None:
        threshold = middle_threshold(plan.numbers)
    names = data.study.sides if plan.value == data.study.headline else ("", "")
    figure, all_axes = new_map(plan)
    legend: Legend = []
    complete, refined = split_by_sampling(all_axes, plan)
    if complete:
        legend += _colour_sides(complete, plan, threshold, names)
    if refined:
        legend += _draw_refined(figure, refined, plan, threshold, names)
    if refined and not complete:  # no colour shows the statistic
        figure.facts[:1] = [f"The side of the threshold on which {plan.label} lies at most seeds."]
    figure.facts.append(f"The threshold is {tick_number(threshold)}.")
    legend += draw_laws(figure, all_axes, plan, data, options)
    if overlay is not None:
        overlays = [overlay(axes, part) for axes, part in zip(all_axes, plan.parts, strict=True)]
        legend += next((entries for entries in overlays if entries), [])
    for axes, grid, _ in complete:
        _name_regions(axes, grid, grid.number > threshold, names)
    figure.nothing = plan.nothing or _one_side(plan, threshold)
    legend_below(figure, legend + mark_losses(all_axes, plan))
    return figure


def _one_side(plan: Map, threshold: float) -> str:
    return "all of it has one colour" if (plan.numbers > threshold).nunique() < 2 else ""


def _colour_sides(
    panels: Sequence[MapPanel], plan: Map, threshold: float, names: tuple[str, str]
) -> Legend:
    for axes, grid, _ in panels:
        is_above = np.where(np.isnan(grid.number), np.nan, grid.number > threshold)
        mesh = axes.pcolormesh(
            grid.x.edges,
            grid.y.edges,
            is_above,
            cmap=ListedColormap(MUTED),
            vmin=0,
            vmax=1,
            rasterized=True,
        )
        cast("Picture", axes.figure).maps[mesh] = grid.points
    signs = [f"{plan.label} {sign} {tick_number(threshold)}" for sign in ("≤", ">")]
    return [
        (Patch(color=colour), f"{name}: {sign}" if name else sign)
        for colour, name, sign in zip(MUTED, names, signs, strict=True)
    ]


def _name_regions(
    axes: matplotlib.axes.Axes, grid: Grid, is_above: Mask, names: tuple[str, str]
) -> None:
    shares = (np.arange(_SAMPLES) + 0.5) / _SAMPLES
    ends = [(axis, axis.scaled(axis.edges)) for axis in (grid.x, grid.y)]
    spots = [edges[0] + shares * (edges[-1] - edges[0]) for _, edges in ends]
    columns, rows = (
        np.searchsorted(edges, spot) - 1 for (_, edges), spot in zip(ends, spots, strict=True)
    )
    free = np.isfinite(grid.number)[np.ix_(rows, columns)] & ~_lines_on(axes)
    for side, name in enumerate(names):
        mask = free & (is_above == bool(side))[np.ix_(rows, columns)]
        if not name or mask.mean() < _LEAST_SHARE:
            continue
        # The outside of the figure counts as another region: names keep clear of the frame.
        depth = distance_transform_edt(np.pad(mask, 1), sampling=[1, 1 / _WIDTH])[1:-1, 1:-1]
        row, column = np.unravel_index(np.argmax(depth), mask.shape)
        x, y = grid.x.unscaled(spots[0])[column], grid.y.unscaled(spots[1])[row]
        axes.text(float(x), float(y), name, ha="center", va="center", fontstyle="italic")


def _lines_on(axes: matplotlib.axes.Axes) -> Mask:
    """The samples of axes through which a line runs, shape (samples, samples)."""
    covered = np.zeros((_SAMPLES, _SAMPLES), dtype=np.bool_)
    to_shares = axes.transData - axes.transAxes
    for line in axes.lines:
        spots = to_shares.transform(np.asarray(line.get_xydata(), dtype=np.float64)) * _SAMPLES
        inside = np.isfinite(spots).all(axis=1) & ((spots >= 0) & (spots < _SAMPLES)).all(axis=1)
        columns, rows = spots[inside].astype(int).T
        covered[rows, columns] = True
    return covered


def _draw_refined(
    figure: Picture,
    panels: Sequence[MapPanel],
    plan: Map,
    threshold: float,
    names: tuple[str, str],
) -> Legend:
    curves = []
    for axes, _, part in panels:
        cells = usable_cells(part.data, plan.value)
        mesh = draw_share_above(axes, cells, plan.x, plan.y, plan.value, threshold)
        curves.append(draw_known_boundary(axes, cells, plan.x, plan.y, plan.value, threshold))
        draw_sampled(axes, cells, plan.x, plan.y)
    above = names[1] or f"with {plan.label} > {tick_number(threshold)}"
    label = f"share of seeds {above}"
    all_axes = [axes for axes, _, _ in panels]
    figure.colorbar(mesh, ax=all_axes, label=wrap_text(label, HIGH), pad=0.02)
    legend = legend_of_boundary(plan.value, panels)
    figure.facts.append(
        f"Colour, for each value of {plan.y.label}: the share of seeds above, each seed's curve "
        f"fitted to be monotone. Black line: the median crossing over seeds, with its "
        f"{legend[-1][1]}."
    )
    figure.facts += repeated_crossings(curves)
    return legend + legend_of_dots()
