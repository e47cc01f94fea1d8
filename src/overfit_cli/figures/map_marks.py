"""Marks on the points of a map: printed numbers, how many seeds have one, hatches and corners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.axes
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from overfit_cli.core.arrays import Floats
from overfit_cli.core.text import round_digits
from overfit_cli.core.values import Mean
from overfit_cli.figures.grid import Grid
from overfit_cli.figures.labels import tick_number, typeset
from overfit_cli.figures.panels import Panel
from overfit_cli.figures.style import Legend, points

MapPanel = tuple[matplotlib.axes.Axes, Grid, Panel]
"""The axes of a panel, its grid and its data."""

Texts = Mapping[tuple[int, int], str]
"""Texts by the row and the column of their points."""

MOST_PRINTED = 40
"""The largest number of points whose numbers are printed."""

HATCHES = {"lost": "//////", "missing": "......"}
"""The marks of points without a number."""

_SIZE = 0.86
"""The size of printed numbers, as a share of that of ticks."""

_LETTER = 0.62
"""The width of a digit, as a share of the size of its font."""

_ROOM = 0.8
"""The share of axes, as they are before they are laid out, that is left to them at least."""


def mark_points(
    panels: Sequence[MapPanel], why: str, mean: Mean, colours: Any | None = None
) -> Legend:
    """Mark the points of maps at which seeds have no number, and print what fits in their cells.

    Args:
        panels: the panels of complete grids.
        why: why seeds have no number.
        mean: the statistic.
        colours: the artist of the colours, for numbers to be printed; None prints none.
    """
    share = "half the seeds or more" if mean == "median" else "one seed or more"
    words = {"lost": f"{why}: {share}", "missing": "missing"}
    legend: Legend = []
    for state, hatch in HATCHES.items():
        masks = [getattr(grid, state) for _, grid, _ in panels]
        for (axes, grid, _), mask in zip(panels, masks, strict=True):
            _fill(axes, _cells(grid, mask), state, hatch)
        if count := sum(int(mask.sum()) for mask in masks):
            legend.append((Patch(**_look(hatch)), f"{words[state]} ({count})"))
    printed = _choose_texts(panels, numbers=colours is not None)
    for (axes, grid, _), texts in zip(panels, printed, strict=True):
        for (row, column), text in texts.items():
            ink = _ink(colours, grid.number[row, column])
            _write(axes, grid, (row, column), text, ink)
    if any("/" in text for texts in printed for text in texts.values()):
        legend.append((Line2D([], [], linestyle="none"), "k/n: seeds with a number"))
    return legend + _draw_corners(panels, printed, why)


def _choose_texts(panels: Sequence[MapPanel], *, numbers: bool) -> list[Texts]:
    """The texts of each panel's points: as much as fits in all cells."""
    small = numbers and all(grid.number.size <= MOST_PRINTED for _, grid, _ in panels)
    choices = [(True, True), (True, False)] if small else []
    for with_numbers, with_counts in [*choices, (False, True)]:
        texts = [_texts(grid, numbers=with_numbers, counts=with_counts) for _, grid, _ in panels]
        if all(
            _fits(axes, grid, text) for (axes, grid, _), text in zip(panels, texts, strict=True)
        ):
            return texts
    return [{} for _ in panels]


def _texts(grid: Grid, *, numbers: bool, counts: bool) -> Texts:
    """What is printed at the points of a grid."""
    texts = {}
    for row, column in np.argwhere(grid.seeds > 0).tolist():
        number, lines = grid.number[row, column], []
        if numbers and np.isfinite(number):
            lines.append(tick_number(round_digits(float(number), 3)))
        if grid.lost[row, column] or (counts and grid.partly[row, column]):
            lines.append(f"{grid.arrived[row, column]:.0f}/{grid.seeds[row, column]:.0f}")
        if lines:
            texts[row, column] = "\n".join(lines)
    return texts


def _fits(axes: Axes, grid: Grid, texts: Texts) -> bool:
    """Whether texts fit in the cells of their points, by the size of axes that aren't laid out."""
    figure = axes.get_figure(root=True)
    if figure is None:
        return False
    size = _SIZE * points("xtick.labelsize") / 72
    box, (wide, high) = axes.get_position(), figure.get_size_inches()
    widths, heights = _shares(grid)
    return all(
        size * _LETTER * (max(len(typeset(line)) for line in text.split("\n")) + 0.7)
        <= _ROOM * widths[column] * box.width * wide
        and size * 1.25 * (text.count("\n") + 1) <= _ROOM * heights[row] * box.height * high
        for (row, column), text in texts.items()
    )


def _shares(grid: Grid) -> tuple[Floats, Floats]:
    """The widths and the heights of cells, as shares of the axes."""
    spans = (np.diff(axis.scaled(axis.edges)) for axis in (grid.x, grid.y))
    widths, heights = (span / span.sum() for span in spans)
    return widths, heights


def _ink(colours: Any, number: float) -> str:
    """The colour of a text on the colour of a number."""
    if colours is None or not np.isfinite(number):
        return "black"
    shade = to_rgb(colours.cmap(colours.norm(number)))
    return "white" if np.dot(shade, (0.299, 0.587, 0.114)) < 0.55 else "black"


def _write(axes: Axes, grid: Grid, point: tuple[int, int], text: str, colour: str) -> None:
    """Write a text in the middle of a point's cell; on hatches it has a ground."""
    row, column = point
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    axes.text(
        _middle(grid.x, column),
        _middle(grid.y, row),
        text,
        color=colour,
        size=_SIZE * points("xtick.labelsize"),
        ha="center",
        va="center",
        linespacing=1.0,
        bbox=ground if grid.lost[row, column] else None,
    )


def _middle(axis: Any, index: int) -> float:
    ends = axis.scaled(axis.edges)[index : index + 2]
    return float(axis.unscaled(ends.mean(keepdims=True))[0])


def _cells(grid: Grid, mask: NDArray[np.bool_]) -> list[list[tuple[float, float]]]:
    """The corners of the cells of a mask."""
    x, y = grid.x.edges, grid.y.edges
    return [
        [(x[i], y[j]), (x[i + 1], y[j]), (x[i + 1], y[j + 1]), (x[i], y[j + 1])]
        for j, i in np.argwhere(mask)
    ]


def _look(hatch: str) -> dict[str, Any]:
    return {"facecolor": "white", "edgecolor": "0.35", "linewidth": 0, "hatch": hatch}


def _fill(axes: Axes, cells: list[list[tuple[float, float]]], state: str, hatch: str) -> None:
    if cells:
        axes.add_collection(PolyCollection(cells, label=state, **_look(hatch)), autolim=False)


def _draw_corners(panels: Sequence[MapPanel], printed: Sequence[Texts], why: str) -> Legend:
    """Mark a corner of the points where some seeds have no number, and no count is printed."""
    look: dict[str, Any] = {"facecolor": "black", "edgecolor": "white", "linewidth": 0.4}
    count = 0
    for (axes, grid, _), texts in zip(panels, printed, strict=True):
        marked = [
            (row, column)
            for row, column in np.argwhere(grid.partly).tolist()
            if "/" not in texts.get((row, column), "")
        ]
        corners = [_corner(axes, grid, row, column) for row, column in marked]
        if corners:
            axes.add_collection(PolyCollection(corners, label="partly", **look), autolim=False)
        count += len(corners)
    triangle: Any = [(0, 1), (1, 1), (1, 0), (0, 1)]
    handle = Line2D([], [], linestyle="none", marker=triangle, markersize=4, color="black")
    return [(handle, f"{why}: fewer seeds ({count})")] if count else []


def _corner(axes: Axes, grid: Grid, row: int, column: int) -> list[tuple[float, float]]:
    """The upper right corner of a cell, as a triangle."""
    right, high = grid.x.scaled(grid.x.edges)[column + 1], grid.y.scaled(grid.y.edges)[row + 1]
    widths, heights = (np.diff(axis.scaled(axis.edges)) for axis in (grid.x, grid.y))
    figure = axes.get_figure(root=True) or Figure()
    box, (wide, tall) = axes.get_position(), figure.get_size_inches()
    x_inch, y_inch = widths.sum() / (box.width * wide), heights.sum() / (box.height * tall)
    side = 0.5 * min(widths[column] / x_inch, heights[row] / y_inch)
    corners = [(right - side * x_inch, high), (right, high), (right, high - side * y_inch)]
    return [
        (float(grid.x.unscaled(np.array([u]))[0]), float(grid.y.unscaled(np.array([v]))[0]))
        for u, v in corners
    ]
