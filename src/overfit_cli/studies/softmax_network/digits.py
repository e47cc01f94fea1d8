"""The built-in handwritten digits of 8 × 8 pixels, as points in few dimensions."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

PIXELS, DIGITS = 64, 1797
"""How many a digit has, and how many digits there are."""


@functools.lru_cache(maxsize=8)
def digit_components(d: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the digits' first d principal components, (1797, d), and which digits they are.

    All are scaled alike, so that the longest has norm 1.
    """
    from sklearn.datasets import load_digits

    found = load_digits()
    pixels = found.data - found.data.mean(axis=0)
    _, _, axes = np.linalg.svd(pixels, full_matrices=False)
    points = pixels @ axes[:d].T
    points /= np.linalg.norm(points, axis=1).max()
    return points, found.target
