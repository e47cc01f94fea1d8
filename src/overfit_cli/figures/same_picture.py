"""Two files of a figure compared: whether they show the same picture."""

from __future__ import annotations

import numpy as np

from overfit_cli.figures.metadata import open_png

ALIKE = 4
"""Levels of 255 by which a pixel may differ: rounding differs between processors."""


def difference_of(kind: str, one: bytes, other: bytes) -> str:
    """Return how the picture of one file isn't that of the other, in words; empty where it is.

    PNG files are compared by their pixels, PDF and SVG files byte for byte.

    Raises:
        UserError: if a PNG file can't be read.
    """
    if kind != "png":
        return "" if one == other else "it differs byte for byte"
    images = [open_png(content).convert("RGBA") for content in (one, other)]
    sizes = [f"{image.width} × {image.height}" for image in images]
    if sizes[0] != sizes[1]:
        return f"it has {sizes[1]} pixels and the file {sizes[0]}"
    levels = [np.asarray(image) for image in images]
    apart = np.maximum(*levels) - np.minimum(*levels)  # (height, width, 4), of uint8
    count = int((apart > ALIKE).any(axis=-1).sum())
    share = 100 * count / (apart.shape[0] * apart.shape[1])
    return f"{share:.2g}% of its pixels differ" if count else ""
