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
from matplotlib.transforms import Affine2D, Transform
from numpy.typing import NDArray

from overfit_cli.core.arrays import Floats
from overfit_cli.core.text import plural, round_digits
from overfit_cli.core.values import Mean
from overfit_cli.figures.grid import Grid
from overfit_cli.figures.labels import tick_number, typeset
from overfit_cli.figures.panels import Panel
from overfit_cli.figures.style import Legend, points
from overfit_cli.stats.intervals import LEVEL

MapPanel = tuple[matplotlib.axes.Axes, Grid, Panel]
"""The axes of a panel, its grid and its data."""

Texts = Mapping[tuple[int, int], str]
"""Texts by the row and the column of their points."""

MOST_PRINTED = 40
"""The largest number of points whose numbers are printed."""

FEW_SEEDS = 10
"""The largest number of seeds whose least and greatest number are printed too, where these fit."""

HATCHES = {"lost": "//////", "missing": "......"}
"""The marks of points without a number."""

_SIZE = 0.86
"""The size of printed numbers, as a share of that of ticks."""

_LETTER, _POINT, _DASH = 0.64, 0.32, 0.5
"""The widths of a digit, a decimal point and a dash, as shares of the size of their font."""

_LARGEST_CORNER = 6.0
"""The largest side of a corner's triangle, in points."""

_INSET = 1.0
"""The distance of a corner's triangle from the ends of its cell, in points: frames hide no part."""

_ROOM = 0.8
"""The share of axes, as they are before they are laid out, that is left to them at least."""

_BELOW_TEXT = 0.12
"""The height of a dot in a cell with a text, as a share of the cell's."""

_DOT: dict[str, Any] = {
    "color": "black",
    "linestyle": "none",
    "marker": "o",
    "markersize": 1.2,
    "markeredgewidth": 0,
    "zorder": 1.5,
}


def mark_points(
    panels: Sequence[MapPanel], why: str, mean: Mean, colours: Any | None = None
) -> Legend:
    """Mark the points of maps at which seeds have no number, and print what fits in their cells."""
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
    if any("–" in text for texts in printed for text in texts.values()):
        legend.append((Line2D([], [], linestyle="none"), "below: least–greatest of the seeds"))
    for panel, texts in zip(panels, printed, strict=True):
        draw_noise(panel, colours, texts)
    return legend + _draw_corners(panels, printed, why)


def draw_noise(panel: MapPanel, colours: Any | None, texts: Texts) -> None:
    """Dot the points of a difference whose interval contains 0: under their texts, if any.

    Args:
        colours: the artist of the colours; None where the dots are black.
    """
    axes, grid, _ = panel
    for row, column in np.argwhere(np.isfinite(grid.number) & (grid.noise == 1)).tolist():
        height = _BELOW_TEXT if (row, column) in texts else 0.5
        x, y = _within(grid.x, column, 0.5), _within(grid.y, row, height)
        ink = _ink(colours, grid.number[row, column])
        axes.plot(x, y, **_DOT | {"color": ink}, scalex=False, scaley=False)


def legend_of_noise(panels: Sequence[MapPanel]) -> Legend:
    """Return the legend of the dots on a difference, if there are any."""
    count = sum(int((grid.noise[np.isfinite(grid.number)] == 1).sum()) for _, grid, _ in panels)
    words = f"{100 * LEVEL:g} % interval contains 0 ({plural(count, 'point')})"
    return [(Line2D([], [], **_DOT), words)] if count else []


def _choose_texts(panels: Sequence[MapPanel], *, numbers: bool) -> list[Texts]:
    small = numbers and all(grid.number.size <= MOST_PRINTED for _, grid, _ in panels)
    few = small and all(1 < grid.seeds.max() <= FEW_SEEDS for _, grid, _ in panels)
    choices = ["numbers counts ranges"] if few else []
    choices += ["numbers counts", "numbers"] if small else []
    for shown in [*choices, "counts"]:
        texts = [_texts(grid, shown) for _, grid, _ in panels]
        if all(
            _fits(axes, grid, text) for (axes, grid, _), text in zip(panels, texts, strict=True)
        ):
            return texts
    return [{} for _ in panels]


def _texts(grid: Grid, shown: str) -> Texts:
    texts = {}
    finite = grid.number[np.isfinite(grid.number)]
    write = _short if (finite == np.round(finite)).all() else _three_digits
    for row, column in np.argwhere(grid.seeds > 0).tolist():
        number, lines = grid.number[row, column], []
        if "numbers" in shown and np.isfinite(number):
            lines.append(write(number))
        ends = grid.least[row, column], grid.most[row, column]
        if "ranges" in shown and ends[0] < ends[1] < np.inf:
            lines.append("–".join(_short(end, 2 if end < 100 else 3) for end in ends))
        if grid.lost[row, column] or ("counts" in shown and grid.partly[row, column]):
            lines.append(f"{grid.arrived[row, column]:.0f}/{grid.seeds[row, column]:.0f}")
        if lines:
            texts[row, column] = "\n".join(lines)
    return texts


def _short(number: float, digits: int = 3) -> str:
    return tick_number(round_digits(float(number), digits))


def _three_digits(number: float) -> str:
    text = _short(number)
    return f"{number:#.3g}" if text.replace(".", "").isdigit() and 0.01 <= number < 100 else text


def _fits(axes: Axes, grid: Grid, texts: Texts) -> bool:
    figure = axes.get_figure(root=True)
    if figure is None:
        return False
    size = _SIZE * points("xtick.labelsize") / 72
    box, (wide, high) = axes.get_position(), figure.get_size_inches()
    widths, heights = _shares(grid)
    return all(
        size * (max(_width(typeset(line)) for line in text.split("\n")) + 0.25)
        <= _ROOM * widths[column] * box.width * wide
        and size * 1.25 * (text.count("\n") + 1) <= _ROOM * heights[row] * box.height * high
        for (row, column), text in texts.items()
    )


def _width(text: str) -> float:
    widths = {".": _POINT, "–": _DASH}
    return sum(widths.get(letter, _LETTER) for letter in text)


def _shares(grid: Grid) -> tuple[Floats, Floats]:
    spans = (np.diff(axis.scaled(axis.edges)) for axis in (grid.x, grid.y))
    widths, heights = (span / span.sum() for span in spans)
    return widths, heights


def _ink(colours: Any, number: float) -> str:
    if colours is None or not np.isfinite(number):
        return "black"
    shade = to_rgb(colours.cmap(colours.norm(number)))
    return "white" if np.dot(shade, (0.299, 0.587, 0.114)) < 0.55 else "black"


def _write(axes: Axes, grid: Grid, point: tuple[int, int], text: str, colour: str) -> None:
    row, column = point
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    axes.text(
        _within(grid.x, column, 0.5),
        _within(grid.y, row, 0.5),
        text,
        color=colour,
        size=_SIZE * points("xtick.labelsize"),
        ha="center",
        va="center",
        linespacing=1.0,
        bbox=ground if grid.lost[row, column] else None,
    )


def _within(axis: Any, index: int, share: float) -> float:
    low, high = axis.scaled(axis.edges)[index : index + 2]
    return float(axis.unscaled(np.array([low + share * (high - low)]))[0])


def _cells(grid: Grid, mask: NDArray[np.bool_]) -> list[list[tuple[float, float]]]:
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
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": "black", "linewidth": 0.6}
    sides = [_side_of_corner(axes, grid) for axes, grid, _ in panels]
    count = 0
    for (axes, grid, _), texts in zip(panels, printed, strict=True):
        marked = [
            (row, column)
            for row, column in np.argwhere(grid.partly).tolist()
            if "/" not in texts.get((row, column), "")
        ]
        if marked:
            right_ends, upper_ends = grid.x.edges[1:], grid.y.edges[1:]
            offsets = [(right_ends[column], upper_ends[row]) for row, column in marked]
            side = min(sides)
            corner = PolyCollection(
                [[(-side - _INSET, -_INSET), (-_INSET, -_INSET), (-_INSET, -side - _INSET)]]
                * len(marked),
                offsets=offsets,
                offset_transform=axes.transData,
                label="partly",
                **look,
            )
            axes.add_collection(corner, autolim=False)
            corner.set_transform(_points_transform(axes))
        count += len(marked)
    triangle: Any = [(0, 1), (1, 1), (1, 0), (0, 1)]
    shape: Any = {"marker": triangle, "markersize": 4, "mfc": "white", "mec": "black"}
    handle = Line2D([], [], linestyle="none", **shape)
    return [(handle, f"{why}: fewer seeds ({count})")] if count else []


def _side_of_corner(axes: Axes, grid: Grid) -> float:
    """The side of a corner's triangle in points, which is one for all cells: half of the least."""
    figure = axes.get_figure(root=True) or Figure()
    box, (wide, high) = axes.get_position(), figure.get_size_inches()
    widths, heights = _shares(grid)
    least = min(widths.min() * box.width * wide, heights.min() * box.height * high)
    return float(np.clip(0.5 * 72 * _ROOM * least, 3.0, _LARGEST_CORNER))


def _points_transform(axes: Axes) -> Transform:
    figure = axes.get_figure(root=True) or Figure()
    return Affine2D().scale(1 / 72) + figure.dpi_scale_trans
