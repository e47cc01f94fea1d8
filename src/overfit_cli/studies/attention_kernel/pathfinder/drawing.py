"""Draws Pathfinder images: image i of a seed's split is the same however many are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from overfit_cli.rng import named_rng
from overfit_cli.studies.attention_kernel.pathfinder.rendering import render
from overfit_cli.studies.attention_kernel.pathfinder.scenes import Scenes, draw_scenes
from overfit_cli.studies.attention_kernel.pathfinder.settings import PathfinderSettings

GENERATOR_VERSION = 1
"""Raised whenever the same settings and seed would give other images."""

CHUNK = 128
"""How many images are drawn from one stream; always all of them, whatever is asked for."""

Split = Literal["train", "test"]


@dataclass(frozen=True)
class PathfinderImages:
    """Images with their labels.

    Attributes:
        pixels: white on black, uint8, shape (images, size, size).
        labels: 1 where a contour connects the discs, else 0, shape (images,).
        distances: how far apart the discs are, in pixels, nan where unknown, shape (images,).
    """

    pixels: NDArray[np.uint8]
    labels: NDArray[np.int64]
    distances: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: slice) -> PathfinderImages:
        """Return some of the images."""
        return PathfinderImages(self.pixels[index], self.labels[index], self.distances[index])


def draw(
    settings: PathfinderSettings, seed: int, split: Split, start: int, stop: int
) -> PathfinderImages:
    """Draw images `start` to `stop` - 1.

    Raises:
        UserError: if contours that long can't be laid in an image.
    """
    first = start // CHUNK
    parts = [draw_chunk(settings, seed, split, chunk) for chunk in range(first, -(-stop // CHUNK))]
    return joined(settings, parts)[start - first * CHUNK : stop - first * CHUNK]


def draw_chunk(
    settings: PathfinderSettings, seed: int, split: Split, chunk: int
) -> PathfinderImages:
    """Draw images chunk · CHUNK to (chunk + 1) · CHUNK - 1."""
    scenes = chunk_scenes(settings, seed, split, chunk)
    distances = scenes.distances.astype(np.float32)
    return PathfinderImages(render(settings, scenes), scenes.labels, distances)


def chunk_scenes(settings: PathfinderSettings, seed: int, split: Split, chunk: int) -> Scenes:
    """Return the geometry of a chunk's images."""
    return draw_scenes(settings, named_rng(seed, split, "pathfinder", str(chunk)), CHUNK)


def joined(settings: PathfinderSettings, parts: list[PathfinderImages]) -> PathfinderImages:
    """Return all parts' images, one part after the other; no part gives no image."""
    none = np.zeros((0, settings.size, settings.size), dtype=np.uint8)
    return PathfinderImages(
        np.concatenate([none, *(part.pixels for part in parts)]),
        np.concatenate([np.zeros(0, dtype=np.int64), *(part.labels for part in parts)]),
        np.concatenate([np.zeros(0, dtype=np.float32), *(part.distances for part in parts)]),
    )
