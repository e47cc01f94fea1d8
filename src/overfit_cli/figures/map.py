"""The figures `heatmap` and `cutoff`: a measured column over two parameters, as colours.

A point of the grid has a statistic over all its seeds, or hatches where too few of them have a
number. Cells of a refined sweep are dots at their own positions.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, LogNorm, to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import AbstractPathEffect, withStroke
from scipy.ndimage import distance_transform_edt

from overfit_cli.core.arrays import Floats
from overfit_cli.core.cells import Cells
from overfit_cli.core.figure import FigureOptions
from overfit_cli.figures import inputs, labels, style
from overfit_cli.figures.axes import Place, draw_equations, draw_theory, legend_below, log_ticks
from overfit_cli.figures.map_data import MOST_PRINTED, Map, MapPanel, Mask, lay_out_map
from overfit_cli.figures.picture import Picture, label_outer, new_panels, title_panels
from overfit_cli.stats import boundaries, intervals

Drawn = Sequence[tuple[Axes, MapPanel]]
"""Panels with their axes."""
HATCHES = {"lost": "//////", "missing": "......"}
"""The marks of points without a number."""
_OUTLINE: list[AbstractPathEffect] = [withStroke(linewidth=1.9, foreground="black")]
_CONTOUR: dict[str, Any] = {"colors": "white", "linewidths": 1.1, "linestyles": "-", "zorder": 2.5}
_BAND: dict[str, Any] = {"color": "0.15", "alpha": 0.3, "linewidth": 0, "zorder": 1.8}
_CROSSING: dict[str, Any] = {"color": "0.15", "linewidth": 1.2, "zorder": 3}  # above equations
_DOT: dict[str, Any] = {"marker": "o", "linestyle": "", "mew": 0.2, "zorder": 1.5}
_CELL = {**_DOT, "markersize": 1.2, "color": "white", "mec": "black", "alpha": 0.4}
_NOISE = {**_DOT, "markersize": 1.6, "color": "black", "mec": "white"}
_TRIANGLE = {"marker": [(-1, 0), (0, 0), (0, -1), (-1, 0)], "markersize": 6, "mew": 0.6}
_CORNER = {**_TRIANGLE, "linestyle": "", "color": "white", "mec": "black", "label": "partly"}
_CROSS: dict[str, Any] = {"marker": "x", "linestyle": "", "markersize": 3, "color": "0.35"}
_SHARES: dict[str, Any] = {"vmin": 0, "vmax": 1, "rasterized": True}
_SIZE = 0.86
"""The size of printed numbers, as a share of that of ticks."""
_SHARE_COLUMNS = 240
"""The number of columns along x in which a share is drawn."""
_LEAST_REGION = 0.04
"""The least share of the points of a region with a name in it."""


def draw_cutoff(data: Cells, options: FigureOptions) -> Picture:
    """Draw in two colours the side of the threshold of the statistic over seeds: see `draw_map`.

    The default threshold is the middle of the numbers that are drawn. The regions have the study's
    names of the sides of its headline. For a refined sweep, whose cells are too few and too uneven
    for means, the colour is the share of seeds whose fitted curves lie above.
    """
    return draw_map(data, options, sides=True)


def draw_map(data: Cells, options: FigureOptions, *, sides: bool = False) -> Picture:
    """Draw a statistic over seeds of `options.value` as colours over the parameters x and y.

    There is a panel for each run directory and each value of the parameter `by`, all with the same
    colours, which are logarithmic where the values are positive and span more than a factor of 30,
    or 10 in a small map, which has its numbers printed. A line is the contour of the threshold; the
    study's threshold applies to its headline.

    For the statistic see `lay_out_map`. For the median a seed that missed counts as beyond the
    others. Points where half of the seeds or more have no number are hatched, those where fewer
    have none have a corner; planned ones that did not run are dotted. A difference has a dot at
    points where its own interval over seeds contains 0. For a refined sweep only points with cells
    are coloured, in dots whose area grows with the number of seeds, and the line is the median
    crossing with its interval.

    Args:
        sides: whether it is a cutoff.
    """
    plan = lay_out_map(data, options)
    figure, all_axes = new_panels(len(plan.panels), height=2.6)
    for axes in all_axes:
        plan.x.dress(axes, "x")
        plan.y.dress(axes, "y")
    label_outer(all_axes)
    title_panels(all_axes, [part.title for part in plan.panels])
    figure.facts, figure.nothing = plan.facts, plan.nothing
    drawn, level = list(zip(all_axes, plan.panels, strict=True)), options.threshold
    if level is None and sides:
        level = inputs.middle_threshold(plan.numbers)
    elif level is None and not data.pairs and plan.value == data.study.headline:
        level = data.study.threshold
    legend: style.Legend = []
    if sides and level is not None:  # its default is a number
        legend += _draw_sides(figure, drawn, plan, level)
    else:
        _print_numbers(drawn, _draw_colours(figure, drawn, plan))
    if level is not None and data.refined:
        legend += _draw_crossings(drawn, plan, level)
    elif level is not None and not sides:
        legend += _draw_contours(figure, drawn, plan, level, options)
    places = [Place(axes, part.data.trained) for axes, part in drawn]
    legend += draw_equations(figure, places, data, options, (plan.x, plan.y))
    theory = inputs.theory_column(data, options, plan.value)
    legend += draw_theory(figure, places, theory, (plan.x, plan.y), level)
    legend_below(figure, legend + _draw_marks(drawn, plan))
    return figure


def _draw_colours(figure: Picture, drawn: Drawn, plan: Map) -> Any:
    norm = plan.norm
    look = {"cmap": style.DIVERGING if plan.is_centred else None, "norm": norm, "rasterized": True}
    for axes, part in drawn:
        if plan.data.refined:
            at = np.isfinite(part.number)
            x, y = (numbers[at] for numbers in np.meshgrid(part.x.positions, part.y.positions))
            sizes = 3 + 12 * part.arrived[at] / max(part.arrived.max(), 1)
            dots: Any = {**look, "edgecolors": "none", "clip_on": False, "zorder": 3}
            mesh: Any = axes.scatter(x, y, c=part.number[at], s=sizes, **dots)
        else:
            mesh = _draw_mesh(figure, axes, part, part.number, **look)
    bar = _draw_bar(figure, drawn, mesh, plan.labelled)
    if isinstance(norm, LogNorm):
        log_ticks(bar.ax.yaxis, float(norm.vmin or 1), float(norm.vmax or 1))
    return mesh


def _draw_mesh(figure: Picture, axes: Axes, part: MapPanel, numbers: Floats, **look: Any) -> Any:
    mesh = axes.pcolormesh(part.x.edges, part.y.edges, numbers, **look)
    x, y = np.meshgrid(part.x.numbers, part.y.numbers)
    figure.maps[mesh] = np.column_stack([x.ravel(), y.ravel()])
    return mesh


def _draw_bar(figure: Picture, drawn: Drawn, mesh: Any, label: str) -> Any:
    return figure.colorbar(mesh, ax=[axes for axes, _ in drawn], label=label, pad=0.02)


def _draw_sides(figure: Picture, drawn: Drawn, plan: Map, threshold: float) -> style.Legend:
    """Colour the two sides of a threshold, or of a refined sweep the share of seeds above it."""
    names = plan.data.study.sides if plan.value == plan.data.study.headline else ("", "")
    limit = labels.tick_number(threshold)
    signs = [f"{plan.label} {sign} {limit}" for sign in ("≤", ">")]
    figure.facts.append(f"The threshold is {limit}.")
    if (plan.numbers > threshold).nunique() < 2:
        figure.nothing = figure.nothing or "all of it has one colour"
    if plan.data.refined:
        for axes, part in drawn:
            mesh = _draw_share_above(axes, part, plan.value, threshold)
        label = f"share of seeds {names[1] or f'with {signs[1]}'}"
        _draw_bar(figure, drawn, mesh, labels.wrap_text(label, style.HIGH))
        figure.facts.append(f"Colour: the {label}, each seed's curve fitted to be monotone.")
        return [(Line2D([], [], **_CELL), "sampled")]
    for axes, part in drawn:
        above = np.where(np.isnan(part.number), np.nan, part.number > threshold)
        _draw_mesh(figure, axes, part, above, cmap=ListedColormap(style.MUTED), **_SHARES)
        for side, name in enumerate(names):
            _name_region(axes, part, above == side, name)
    return [
        (Patch(color=colour), f"{name}: {sign}" if name else sign)
        for colour, name, sign in zip(style.MUTED, names, signs, strict=True)
    ]


def _name_region(axes: Axes, part: MapPanel, region: Mask, name: str) -> None:
    """Write a region's name at its point that lies deepest inside."""
    if name and region.mean() >= _LEAST_REGION:
        sides = 1 / np.array(region.shape)
        depth = distance_transform_edt(np.pad(region, 1), sampling=sides)[1:-1, 1:-1]
        row, column = np.unravel_index(np.argmax(depth), region.shape)
        spot = float(part.x.positions[column]), float(part.y.positions[row])
        axes.text(*spot, name, ha="center", va="center", fontstyle="italic")


def _draw_share_above(axes: Axes, part: MapPanel, value: str, threshold: float) -> Any:
    """Colour each y's row by the share of seeds above the threshold; blank where it is unknown."""
    x, y = part.x, part.y
    first, *_, last = x.scaled(x.edges)
    borders = np.linspace(first, last, _SHARE_COLUMNS + 1)
    positions = x.unscaled((borders[1:] + borders[:-1]) / 2)
    positions = np.clip(positions, x.positions[0], x.positions[-1])  # curves end at their cells
    cells = inputs.usable_cells(part.data, value)
    shares = boundaries.share_above(cells, x.name, y.name, value, threshold, positions)
    unknown = np.full(_SHARE_COLUMNS, np.nan)
    rows = np.array([shares.get(y_value, unknown) for y_value in y.positions.tolist()])
    colours = LinearSegmentedColormap.from_list("sides", [style.MUTED[0], "white", style.MUTED[1]])
    mesh = axes.pcolormesh(x.unscaled(borders), y.edges, rows, cmap=colours, **_SHARES)
    where = part.data.trained[[x.name, y.name]].drop_duplicates()
    axes.plot(*where.to_numpy(dtype=np.float64).T, label="cells", **_CELL)
    return mesh


def _draw_contours(
    figure: Picture, drawn: Drawn, plan: Map, level: float, options: FigureOptions
) -> style.Legend:
    """Draw the contour of positive numbers by ratio, of others as they are, where there is one."""
    text, found = f"{plan.label} = {labels.tick_number(level)}", False
    for axes, part in drawn:
        heights, at = np.ma.masked_invalid(part.number), level
        crosses = heights.count() and heights.min() < level < heights.max()
        if not crosses or min(heights.shape) < 2:
            continue
        if level > 0 and heights.min() > 0:
            heights, at = np.ma.log(heights), float(np.log(level))
        lines = axes.contour(part.x.positions, part.y.positions, heights, levels=[at], **_CONTOUR)
        lines.set_path_effects(_OUTLINE)
        found = True
    if found:
        figure.facts.append(f"White line: {text}.")
        look: dict[str, Any] = {"color": "white", "linewidth": _CONTOUR["linewidths"]}
        return [(Line2D([], [], path_effects=_OUTLINE, **look), text)]
    if options.threshold is not None:
        warnings.warn(f"no contour: the means don't cross {labels.typeset(text)}", stacklevel=2)
    return []


def _draw_crossings(drawn: Drawn, plan: Map, level: float) -> style.Legend:
    """Draw the median crossing for each y of refined sweeps, with its interval as a band."""
    x, y, seeds = plan.x.name, plan.y.name, 0
    for axes, part in drawn:
        cells = inputs.usable_cells(part.data, plan.value)
        seeds = max(seeds, cells["seed"].nunique())
        medians = boundaries.medians_by_row(boundaries.crossings(cells, x, y, plan.value, level), y)
        crossed = medians[medians["seeds"] > 0].sort_values(y)
        limits = axes.get_xlim()
        ends = crossed[["low", "crossing", "high"]].clip(*limits)
        label = "interval of the crossings"
        axes.fill_betweenx(crossed[y], ends["low"], ends["high"], label=label, **_BAND)
        seen = ends["crossing"].where(crossed["crossing"].between(*limits))
        axes.plot(seen, crossed[y], label="crossings", **_CROSSING)
    line = Line2D([], [], **_CROSSING)
    return [(line, "median crossing"), (Patch(**_BAND), intervals.MEDIAN.band_in_words(seeds))]


def _draw_marks(drawn: Drawn, plan: Map) -> style.Legend:
    """Mark the points whose seeds have no number, and those of a difference that may be noise."""
    share = "half the seeds or more" if plan.mean == "median" else "one seed or more"
    lost = f"{plan.why}: {share}"
    if plan.data.refined:
        legend = _mark(drawn, "lost", _CROSS, lost)
    else:
        legend = _hatch(drawn, "lost", lost) + _hatch(drawn, "missing", "missing")
        legend += _mark(drawn, "partly", _CORNER, f"{plan.why}: fewer seeds", (0.97, 0.97))
    at = 0.5, 0.12 if any(axes.texts for axes, _ in drawn) else 0.5
    noise = f"{100 * intervals.LEVEL:g} % interval contains 0"
    return legend + _mark(drawn, "noise", _NOISE, noise, at)


def _hatch(drawn: Drawn, state: str, words: str) -> style.Legend:
    look: Any = {"facecolor": "white", "edgecolor": "0.35", "linewidth": 0, "hatch": HATCHES[state]}
    count = 0
    for axes, part in drawn:
        x, y = part.x.edges, part.y.edges
        cells = [
            [(x[i], y[j]), (x[i + 1], y[j]), (x[i + 1], y[j + 1]), (x[i], y[j + 1])]
            for j, i in np.argwhere(getattr(part, state))
        ]
        if cells:
            axes.add_collection(PolyCollection(cells, label=state, **look), autolim=False)
        count += len(cells)
    return [(Patch(**look), f"{words} ({count})")] if count else []


def _mark(
    drawn: Drawn, state: str, look: Any, words: str, at: tuple[float, float] = (0.5, 0.5)
) -> style.Legend:
    """Draw a mark at points in a state, at these shares of their cells; return its legend."""
    count = 0
    for axes, part in drawn:
        rows, columns = np.nonzero(getattr(part, state) == 1)
        if rows.size:
            axes.plot(part.x.within(at[0])[columns], part.y.within(at[1])[rows], **look)
        count += rows.size
    return [(Line2D([], [], **look), f"{words} ({count})")] if count else []


def _print_numbers(drawn: Drawn, mesh: Any) -> None:
    """Print the numbers of a small map in its cells, if they fit."""
    if any(part.number.size > MOST_PRINTED or part.data.refined for _, part in drawn):
        return
    size = _SIZE * style.points("xtick.labelsize")
    texts = [[*map(labels.three_digits, part.number.flat)] for _, part in drawn]
    longest = max(len(labels.typeset(each)) for text in texts for each in text)
    for axes, part in drawn:
        box, figure = axes.get_position(), axes.get_figure(root=True)
        wide, high = figure.get_size_inches() if figure else (0, 0)
        rows, columns = part.number.shape
        room = 72 * 0.75 * wide * box.width / columns, 72 * 0.75 * high * box.height / rows
        if 0.6 * (longest + 0.5) * size > room[0] or 1.2 * size > room[1]:
            return
    look: dict[str, Any] = {"ha": "center", "va": "center", "size": size}
    for (axes, part), text in zip(drawn, texts, strict=True):
        spots = itertools.product(part.y.within(0.5), part.x.within(0.5))
        for (y, x), number, written in zip(spots, part.number.flat, text, strict=True):
            if np.isfinite(number):
                shade = to_rgb(mesh.cmap(mesh.norm(number)))
                ink = "white" if np.dot(shade, (0.299, 0.587, 0.114)) < 0.55 else "black"
                axes.text(x, y, written, color=ink, **look)
