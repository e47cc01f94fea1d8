"""How rough a surface is, in numbers (Song et al. 2024, section 5.3.2, which only shows it)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def offsets(points: int, spacing: float) -> Floats:
    """Return where the points lie along a direction: spacing · (r − points/2), r = 1, 2, ...

    With 50 points of spacing 0.02 these are section 5.2's, from −0.48 to 0.5.
    """
    return spacing * (np.arange(1, points + 1, dtype=np.float64) - points // 2)


def interior_minima(surface: Floats) -> int:
    """Return the number of points off the edge that are below all of their eight neighbours."""
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
    """Return the root mean square of the discrete Laplacian, loss per squared unit of direction."""
    centre = surface[1:-1, 1:-1]
    around = surface[:-2, 1:-1] + surface[2:, 1:-1] + surface[1:-1, :-2] + surface[1:-1, 2:]
    return float(np.sqrt(np.mean(np.square((around - 4 * centre) / spacing**2))))


def quadratic_residual(surface: Floats, at: Floats) -> float:
    """Return the rms residual of the best quadratic, as a share of the surface's deviation.

    0 is a perfect bowl or saddle, or flat; 1 is a surface of which a quadratic says nothing.
    """
    if surface.min() == surface.max():
        return 0.0
    a, b = np.meshgrid(at, at, indexing="ij")
    terms = np.stack([np.ones_like(a), a, b, a * a, a * b, b * b], -1).reshape(-1, 6)
    flat = surface.ravel()
    fitted = terms @ np.linalg.lstsq(terms, flat, rcond=None)[0]
    return float(np.sqrt(np.mean(np.square(flat - fitted))) / flat.std())


def sharpness(surface: Floats, centre: float) -> float:
    """Return by how much the loss rises above the centre's at most, over one plus the centre's."""
    return (float(surface.max()) - centre) / (1 + centre)
