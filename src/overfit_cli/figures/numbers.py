"""Numbers that a picture shows, as a table: its lines, bands, points, maps, contours and bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import (
    Collection,
    LineCollection,
    PathCollection,
    PolyCollection,
    QuadMesh,
)
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from overfit_cli.core.arrays import Floats

COLUMNS = ("panel", "element", "label", "x", "y", "value")
"""A row is a point of an element of a panel, in the order in which it is drawn: a band's outline,
a map's cell at its parameters with its value, a contour with its level, a bar's two corners. A
value without a meaning, such as that of a line, is empty."""


def drawn_numbers(
    figure: Figure,
    surfaces: Mapping[Axes, Floats],
    maps: Mapping[Artist, Floats] = MappingProxyType({}),
) -> pd.DataFrame:
    """Return what a figure shows, a row for each point; see `COLUMNS`.

    Args:
        surfaces: the points of surfaces in three dimensions, which matplotlib keeps to itself.
        maps: the points that cells of maps stand for; other cells are at their middles.
    """
    rows = [
        pd.DataFrame({"panel": panel, "element": element, "label": label, **_columns(points)})
        for number, axes in enumerate(_panels(figure), start=1)
        for panel in [_name(axes, number)]
        for element, label, points in _elements(axes, surfaces.get(axes), maps)
    ]
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=list(COLUMNS))


def _panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_label() != "<colorbar>" and axes.axison]


def _name(axes: Axes, number: int) -> str:
    named = axes.get_title() or axes.get_title(loc="left") or axes.get_ylabel()
    return f"{number}: {' '.join(named.split())}" if named else str(number)


def _columns(points: Floats) -> dict[str, Floats]:
    values = points[:, 2] if points.shape[1] > 2 else np.full(len(points), np.nan)
    return {"x": points[:, 0], "y": points[:, 1], "value": values}


def _elements(
    axes: Axes, surface: Floats | None, maps: Mapping[Artist, Floats]
) -> Iterator[tuple[str, str, Floats]]:
    if surface is not None:
        yield "surface", "", surface
    for artist in (*axes.lines, *axes.collections, *axes.images, *axes.patches):
        label = " ".join(str(artist.get_label()).split())
        if artist.get_visible():
            for element, points in _points(artist, maps.get(artist)):
                yield element, "" if label.startswith("_") else label, points


def _points(artist: Artist, cells: Floats | None) -> Iterator[tuple[str, Floats]]:
    if isinstance(artist, Line2D):
        yield "line", np.asarray(artist.get_xydata(), dtype=np.float64)
    elif isinstance(artist, ContourSet):
        for level, path in zip(artist.levels, artist.get_paths(), strict=False):
            yield "contour", _with_value(path.vertices, float(level))
    elif isinstance(artist, QuadMesh):
        corners = np.asarray(artist.get_coordinates(), np.float64)  # (rows + 1, columns + 1, 2)
        middles = ((corners[:-1, :-1] + corners[1:, 1:]) / 2).reshape(-1, 2)
        yield "map", _with_value(middles if cells is None else cells, _array(artist))
    elif isinstance(artist, AxesImage):
        yield "map", _of_image(artist)
    elif isinstance(artist, PathCollection):
        points = np.ma.filled(np.ma.asarray(artist.get_offsets(), np.float64), np.nan)
        values = artist.get_array()
        yield "points", points if values is None else _with_value(points, _array(artist))
    elif isinstance(artist, PolyCollection | LineCollection):
        element = "band" if isinstance(artist, PolyCollection) else "segments"
        for path in artist.get_paths():
            yield element, np.asarray(path.vertices, dtype=np.float64)
    elif isinstance(artist, Rectangle):
        (x, y), width, height = artist.get_xy(), artist.get_width(), artist.get_height()
        yield "bar", np.array([[x, y], [x + width, y + height]], dtype=np.float64)


def _array(artist: Collection | AxesImage) -> Floats:
    values = np.ma.asarray(artist.get_array(), np.float64)
    return np.asarray(np.ma.filled(values, np.nan)).ravel()


def _of_image(image: AxesImage) -> Floats:
    """The middles of an image's pixels and their values; of colours the mean of the channels."""
    values = np.ma.filled(np.ma.asarray(image.get_array(), np.float64), np.nan)
    values = values if values.ndim == 2 else values.mean(axis=2)
    left, right, bottom, top = image.get_extent()
    rows, columns = values.shape
    x = left + (right - left) * (np.arange(columns) + 0.5) / columns
    y = bottom + (top - bottom) * (np.arange(rows) + 0.5) / rows
    y = y if image.origin == "lower" else y[::-1]
    return _with_value(np.column_stack([a.ravel() for a in np.meshgrid(x, y)]), values.ravel())


def _with_value(points: object, values: Floats | float) -> Floats:
    xy = np.asarray(points, dtype=np.float64)
    return np.column_stack([xy, np.broadcast_to(values, len(xy))])
