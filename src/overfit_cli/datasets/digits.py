"""Handwritten digits as grey images of 28 × 28 pixels, drawn in the middle 20 × 20.

MNIST's own digits are placed like this; a ring of four pixels around them is empty.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SIZE = 28
INNER = 20
CLASSES = 10


@dataclass(frozen=True, eq=False)
class Digits:
    """Labelled images.

    Attributes:
        pixels: grey levels from 0 to 1, shape (images, 28, 28).
        labels: 0 to 9, shape (images,).
    """

    pixels: NDArray[np.float32]
    labels: NDArray[np.int64]

    def take(self, rows: NDArray[np.int64]) -> Digits:
        """Return some of the images."""
        return Digits(self.pixels[rows], self.labels[rows])


@functools.lru_cache(maxsize=1)
def built_in_digits() -> Digits:
    """Return scikit-learn's 1797 digits of 8 × 8 pixels, scaled to 20 × 20."""
    from PIL import Image
    from sklearn.datasets import load_digits

    found = load_digits()
    pixels = np.zeros((len(found.images), SIZE, SIZE), dtype=np.float32)
    margin = (SIZE - INNER) // 2
    inside = slice(margin, margin + INNER)
    for place, image in enumerate(found.images):
        small = Image.fromarray((image / 16).astype(np.float32))
        scaled = small.resize((INNER, INNER), Image.Resampling.BILINEAR)
        pixels[place, inside, inside] = np.asarray(scaled)
    return Digits(pixels, found.target.astype(np.int64))
