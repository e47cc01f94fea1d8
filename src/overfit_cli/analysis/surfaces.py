"""Measures of the roughness of a surface that is sampled on a square grid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def interior_minima(surface: Floats) -> int:
    """Return the number of points off the edge that are below all of their eight neighbours.

    Args:
        surface: heights, shape (rows, columns).
    """
    rows, columns = surface.shape
    centre = surface[1:-1, 1:-1]
    lower = np.ones(centre.shape, dtype=bool)
    for down in (0, 1, 2):
        for across in (0, 1, 2):
            if (down, across) != (1, 1):
                around = surface[down : rows - 2 + down, across : columns - 2 + across]
                lower &= centre < around
    return int(lower.sum())


def rms_laplacian(surface: Floats, spacing: float) -> float:
    """Return the root mean square of the discrete Laplacian, height per squared unit of length.

    Args:
        surface: heights, shape (rows, columns).
        spacing: the distance between neighbours, along either axis.
    """
    centre = surface[1:-1, 1:-1]
    around = surface[:-2, 1:-1] + surface[2:, 1:-1] + surface[1:-1, :-2] + surface[1:-1, 2:]
    return float(np.sqrt(np.mean(np.square((around - 4 * centre) / spacing**2))))


def quadratic_residual(surface: Floats, at: Floats) -> float:
    """Return the rms residual of the best quadratic, as a share of the surface's deviation.

    0 is a perfect bowl or saddle, or flat; 1 is a surface of which a quadratic says nothing.

    Args:
        surface: heights, shape (points, points).
        at: where the points lie along either axis, shape (points,).
    """
    if surface.min() == surface.max():
        return 0.0
    a, b = np.meshgrid(at, at, indexing="ij")
    terms = np.stack([np.ones_like(a), a, b, a * a, a * b, b * b], -1).reshape(-1, 6)
    flat = surface.ravel()
    fitted = terms @ np.linalg.lstsq(terms, flat, rcond=None)[0]
    return float(np.sqrt(np.mean(np.square(flat - fitted))) / flat.std())


def sharpness(surface: Floats, centre: float) -> float:
    """Return the largest rise above the height `centre`, over one plus that height."""
    return (float(surface.max()) - centre) / (1 + centre)
