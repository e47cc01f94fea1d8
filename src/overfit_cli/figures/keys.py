"""Keys inside panels, which lie where nothing is drawn."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.path import Path

from overfit_cli.core.arrays import Floats

Corner = Literal["upper left", "upper right", "lower left", "lower right"]

CORNERS: tuple[Corner, ...] = ("upper left", "upper right", "lower left", "lower right")

CLEAR = 3.0
"""The distance in points between a key and the next curve that is enough."""

ROOM = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6)
"""The shares by which panels grow until a corner is clear."""

_ACROSS, _UP = 120, 60
"""The points of a panel at which bands are looked for."""


def draw_key(
    all_axes: Sequence[Axes], handles: Sequence[Line2D], names: Sequence[str], first: Corner
) -> Legend:
    """Draw one key for several panels, in the first corner of them that is clear of what is drawn.

    Where no corner is, the panels get room above.

    Args:
        all_axes: panels with their final limits, laid out; the preferred one first.
    """
    corners = sorted(CORNERS, key=lambda corner: corner != first)
    limits = [axes.get_ylim() for axes in all_axes]
    for room in ROOM:
        for axes, (low, high) in zip(all_axes, limits, strict=True):
            _raise_top(axes, low, high, room)
        for axes, corner in itertools.product(all_axes, corners):
            key = axes.legend(handles, names, loc=corner, borderaxespad=0.2, handlelength=1.8)
            if gap(axes, key, corner) >= CLEAR:
                return key
            key.remove()
    return all_axes[0].legend(handles, names, loc=first, borderaxespad=0.2, handlelength=1.8)


def _raise_top(axes: Axes, low: float, high: float, room: float) -> None:
    scale = axes.yaxis.get_transform()
    bottom, top = scale.transform(np.array([low, high]))
    axes.set_ylim(
        low, float(scale.inverted().transform(np.array([top + room * (top - bottom)]))[0])
    )


def gap(axes: Axes, key: Legend, corner: Corner) -> float:
    """Return the distance in points from a key to what is drawn; 0 where it lies on that."""
    box, size = key.get_window_extent(), np.array([axes.bbox.width, axes.bbox.height])
    spans = np.array([box.width, box.height]) / size
    start = np.array(["right" in corner, "upper" in corner]) * (1 - spans)
    drawn = _drawn(axes)
    outside = np.maximum(start - drawn, drawn - start - spans).clip(min=0) * size
    figure = axes.get_figure(root=True)
    dots = 72 / figure.dpi if figure else 1.0
    return float(np.hypot(*outside.T).min(initial=np.inf)) * dots


def _drawn(axes: Axes) -> Floats:
    """Points on all lines and bands, in shares of the axes; shape (points, 2)."""
    parts = [np.empty((0, 2))]
    to_shares = axes.transAxes.inverted()
    for line in axes.lines:
        corners = (line.get_transform() + to_shares).transform(line.get_xydata())
        parts.append(_along(corners[np.isfinite(corners).all(axis=1)]))
    mesh = np.stack(np.meshgrid(*(np.linspace(0, 1, count) for count in (_ACROSS, _UP))), axis=-1)
    points = mesh.reshape(-1, 2)
    for collection in axes.collections:
        for path in collection.get_paths():
            outline = (axes.transData + to_shares).transform(path.vertices)
            parts.append(points[Path(np.nan_to_num(outline)).contains_points(points)])
    drawn = np.concatenate(parts)
    return drawn[((drawn >= 0) & (drawn <= 1)).all(axis=1)]


def _along(corners: Floats) -> Floats:
    """Points along a line through corners, close to each other; shape (points, 2)."""
    if len(corners) < 2:
        return corners
    shares = np.linspace(0, 1, _ACROSS)[:, None, None]
    points: Floats = (corners[:-1] + shares * np.diff(corners, axis=0)).reshape(-1, 2)
    return points
