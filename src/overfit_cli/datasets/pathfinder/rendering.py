"""From paddles and discs to pixels, all images at once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from overfit_cli.datasets.pathfinder.paddles import Points
from overfit_cli.datasets.pathfinder.scenes import Scenes
from overfit_cli.datasets.pathfinder.settings import PathfinderSettings

Canvas = NDArray[np.float32]


def render(settings: PathfinderSettings, scenes: Scenes) -> NDArray[np.uint8]:
    """Draw white on black, shape (scenes, size, size); rows are y, from the top.

    Ink is evaluated at `antialiasing` points per pixel and axis: full within a shape, none beyond
    it, and linear in the distance over one spacing of the points in between. So a stroke as thin
    as a spacing keeps its weight wherever it lies. Where shapes overlap, the most ink counts; a
    pixel is the mean of its points.
    """
    points = settings.antialiasing
    thick = settings.paddle_thickness / 2
    half = max(settings.paddle_length / 2 - thick, 0)  # The round caps count as length.
    frame = _window(settings, half + max(thick, settings.marker_radius))
    side = settings.size * points + 2 * frame
    canvas = np.zeros((len(scenes.labels), side, side), dtype=np.float32)
    for column in range(settings.paddles):
        one = scenes.paddles.take(np.s_[:, column])
        _stamp(settings, canvas, frame, one.middles, one.directions, half, thick)
    for centres in scenes.markers.T:
        _stamp(settings, canvas, frame, centres, np.ones_like(centres), 0.0, settings.marker_radius)
    inner = canvas[:, frame : side - frame, frame : side - frame]
    blocks = inner.reshape(len(canvas), settings.size, points, settings.size, points)
    pixels: NDArray[np.uint8] = np.rint(255 * blocks.mean(axis=(2, 4))).astype(np.uint8)
    return pixels


def _stamp(
    settings: PathfinderSettings,
    canvas: Canvas,
    frame: int,
    middles: Points,
    directions: Points,
    half: float,
    radius: float,
) -> None:
    """Draw one shape into each image, in place: all points nearer than `radius` to a segment.

    Args:
        settings: hold the number of points.
        canvas: shape (scenes, side, side), with `frame` points around the image.
        frame: at least as wide as what a shape covers.
        middles, directions: of the segments, shape (scenes,).
        half: half a segment's length; 0 draws a disc.
        radius: half the stroke's thickness.
    """
    points = settings.antialiasing
    window = np.arange(_window(settings, half + radius))
    corner = np.stack([middles.real, middles.imag]) - half - radius
    x, y = np.floor(corner * points).astype(np.int64)[:, :, None] - 1 + window
    across = (x[:, None, :] + 0.5) / points - middles.real[:, None, None]
    down = (y[:, :, None] + 0.5) / points - middles.imag[:, None, None]
    cos, sin = directions.real[:, None, None], directions.imag[:, None, None]
    beyond = np.maximum(np.abs(across * cos + down * sin) - half, 0)
    distance = np.sqrt(beyond**2 + (down * cos - across * sin) ** 2)
    ink = np.clip(0.5 + points * (radius - distance), 0, 1, dtype=np.float32, casting="same_kind")
    where = np.arange(len(canvas))[:, None, None], y[:, :, None] + frame, x[:, None, :] + frame
    canvas[where] = np.maximum(canvas[where], ink)


def _window(settings: PathfinderSettings, reach: float) -> int:
    """Return how many points wide a square is that holds any shape of that reach, and its edge."""
    return math.ceil(2 * reach * settings.antialiasing) + 4
