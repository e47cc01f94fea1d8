"""Pathfinder images with their labels: rendered from scenes, and cached on disk.

All images of a chunk are rendered at once. The cache has a folder for each random stream and
settings. A larger count continues where the cached images end. Where the folder cannot be written,
or has other content, the images are drawn again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.files import cache_folder, lock_folder, write_file
from overfit_cli.studies.attention_kernel.pathfinder.paddles import PathfinderSettings, Points
from overfit_cli.studies.attention_kernel.pathfinder.scenes import Scenes, draw_scenes

GENERATOR_VERSION = 2
"""Incremented whenever the same settings and seed would give other images."""

CHUNK = 128
"""The number of images of a random stream; they are always drawn together."""

FILE = "images.npz"

NO_MARKERS = np.zeros((0, 2), dtype=np.complex64)
"""The discs of no images."""


@dataclass(frozen=True)
class Stream:
    """The random numbers that images are drawn with, from a chunk's number.

    The name is part of the cache's key.
    """

    name: Mapping[str, str | int]
    generator: Callable[[int], np.random.Generator]


@dataclass(frozen=True)
class PathfinderImages:
    """Images with their labels, 1 where a contour connects the discs; shape (images,).

    Pixels are white on black, uint8, shape (images, size, size). Markers are the discs' centres x +
    iy, nan where unknown, shape (images, 2).
    """

    pixels: NDArray[np.uint8]
    labels: NDArray[np.int64]
    markers: NDArray[np.complex64]

    @property
    def distances(self) -> NDArray[np.float32]:
        """The distances between the discs, in pixels, nan where unknown, shape (images,)."""
        return np.asarray(np.abs(self.markers[:, 1] - self.markers[:, 0]))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: slice | NDArray[np.int64]) -> PathfinderImages:
        return PathfinderImages(self.pixels[index], self.labels[index], self.markers[index])


def images(settings: PathfinderSettings, stream: Stream, count: int) -> PathfinderImages:
    """Return the first `count` images of a stream, drawn or from the cache."""
    key = _key(settings, stream)
    folder = cache_folder() / "pathfinder" / key
    cached = _read(settings, folder / FILE, key)
    if len(cached) >= count:
        return cached[:count]
    with contextlib.ExitStack() as stack:
        with suppress(OSError):
            # Another process that needs the same images waits for them instead of drawing them.
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock_folder(folder))
            cached = _read(settings, folder / FILE, key)
        # In whole chunks, so that no image is drawn twice.
        missing = draw(settings, stream, len(cached), max(len(cached), -(-count // CHUNK) * CHUNK))
        cached = join_images(settings, [cached, missing])
        with suppress(OSError):
            _keep(folder, key, cached)
    return cached[:count]


def draw(settings: PathfinderSettings, stream: Stream, start: int, stop: int) -> PathfinderImages:
    """Draw images `start` to `stop` - 1."""
    first = start // CHUNK
    parts = []
    for chunk in range(first, -(-stop // CHUNK)):
        scenes = chunk_scenes(settings, stream, chunk)
        markers = scenes.markers.astype(np.complex64)
        parts.append(PathfinderImages(render(settings, scenes), scenes.labels, markers))
    return join_images(settings, parts)[start - first * CHUNK : stop - first * CHUNK]


def chunk_scenes(settings: PathfinderSettings, stream: Stream, chunk: int) -> Scenes:
    """Return the geometry of images chunk · CHUNK to (chunk + 1) · CHUNK - 1."""
    return draw_scenes(settings, stream.generator(chunk), CHUNK)


def join_images(settings: PathfinderSettings, parts: list[PathfinderImages]) -> PathfinderImages:
    """Concatenate images; without parts there are none."""
    empty = np.zeros((0, settings.size, settings.size), dtype=np.uint8)
    return PathfinderImages(
        np.concatenate([empty, *(part.pixels for part in parts)]),
        np.concatenate([np.zeros(0, dtype=np.int64), *(part.labels for part in parts)]),
        np.concatenate([NO_MARKERS, *(part.markers for part in parts)]),
    )


def _key(settings: PathfinderSettings, stream: Stream) -> str:
    kind = {**asdict(settings), **stream.name, "generator": GENERATOR_VERSION}
    return hashlib.sha256(json.dumps(kind, sort_keys=True).encode()).hexdigest()[:24]


def _keep(folder: Path, key: str, drawn_images: PathfinderImages) -> None:
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, key=key, **vars(drawn_images))
    write_file(folder / FILE, content.getvalue())


def _read(settings: PathfinderSettings, path: Path, key: str) -> PathfinderImages:
    """Return the images that are kept; none where the file is torn, or of other content."""
    nothing = join_images(settings, [])
    with suppress(Exception), np.load(io.BytesIO(path.read_bytes())) as arrays:
        stored = PathfinderImages(arrays["pixels"], arrays["labels"], arrays["markers"])
        whole = join_images(settings, [stored])  # raises where the shapes of images differ
        if str(arrays["key"]) == key and len(whole) % CHUNK == 0:
            sizes = {len(array) for array in vars(whole).values()}
            return whole if len(sizes) == 1 else nothing
    return nothing


def render(settings: PathfinderSettings, scenes: Scenes) -> NDArray[np.uint8]:
    """Draw white on black, shape (scenes, size, size); rows are y, from the top.

    Ink is evaluated at `antialiasing` points per pixel and axis: 1 inside a shape, 0 outside, and
    linear in the distance over one spacing of the points in between. So the weight of a stroke as
    thin as a spacing is independent of its position. Where shapes overlap, the maximum counts; a
    pixel is the mean of its points.
    """
    points = settings.antialiasing
    thick = settings.paddle_thickness / 2
    half = max(settings.paddle_length / 2 - thick, 0)  # The round caps count as length.
    frame = _window(settings, half + max(thick, settings.marker_radius))
    side = settings.size * points + 2 * frame
    canvas = np.zeros((len(scenes.labels), side, side), dtype=np.float32)
    for column in range(settings.paddles):
        paddle = scenes.paddles.take(np.s_[:, column])
        _stamp(settings, canvas, frame, paddle.middles, paddle.directions, half, thick)
    for centres in scenes.markers.T:
        _stamp(settings, canvas, frame, centres, np.ones_like(centres), 0.0, settings.marker_radius)
    inner = canvas[:, frame : side - frame, frame : side - frame]
    blocks = inner.reshape(len(canvas), settings.size, points, settings.size, points)
    pixels: NDArray[np.uint8] = np.rint(255 * blocks.mean(axis=(2, 4))).astype(np.uint8)
    return pixels


Canvas = NDArray[np.float32]


def _stamp(
    settings: PathfinderSettings,
    canvas: Canvas,
    frame: int,
    middles: Points,
    directions: Points,
    half: float,
    radius: float,
) -> None:
    """Draw one shape into each image, in place: all points closer than `radius` to a segment.

    The canvas has shape (scenes, side, side), with `frame` points around the image. `half` is half
    a segment's length; 0 draws a disc.
    """
    points = settings.antialiasing
    window = np.arange(_window(settings, half + radius))
    corner = np.stack([middles.real, middles.imag]) - half - radius
    x, y = np.floor(corner * points).astype(np.int64)[:, :, None] - 1 + window
    dx = (x[:, None, :] + 0.5) / points - middles.real[:, None, None]
    dy = (y[:, :, None] + 0.5) / points - middles.imag[:, None, None]
    cos, sin = directions.real[:, None, None], directions.imag[:, None, None]
    overhang = np.maximum(np.abs(dx * cos + dy * sin) - half, 0)
    distance = np.sqrt(overhang**2 + (dy * cos - dx * sin) ** 2)
    ink = np.clip(0.5 + points * (radius - distance), 0, 1, dtype=np.float32, casting="same_kind")
    indices = np.arange(len(canvas))[:, None, None], y[:, :, None] + frame, x[:, None, :] + frame
    canvas[indices] = np.maximum(canvas[indices], ink)


def _window(settings: PathfinderSettings, reach: float) -> int:
    return math.ceil(2 * reach * settings.antialiasing) + 4
