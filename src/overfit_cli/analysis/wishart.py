"""Normal vectors in very many dimensions, drawn by Bartlett's factor of a Wishart matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def bartlett_rows(
    normals: np.random.Generator,
    lengths: np.random.Generator,
    rows: int,
    dimension: int,
    before: int = 0,
) -> NDArray[np.float64]:
    """Draw standard normal vectors in `dimension` dimensions, up to a rotation.

    The result L is lower triangular: row i has standard normal parts along the axes of the
    `before` + i rows before it, and along its own the square root of a chi-square number with
    `dimension` − `before` − i degrees of freedom. Then L Lᵀ has the law of Z Zᵀ with Z of shape
    (rows, dimension), entries standard normal.

    Args:
        normals, lengths: where to draw from; more rows extend fewer.
        rows: how many vectors.
        dimension: theirs.
        before: how many vectors have brought in an axis before them.

    Returns:
        Shape (rows, min(before + rows, dimension)).
    """
    width = min(before + rows, dimension)
    factor = np.zeros((rows, width))
    for row in range(rows):
        own = before + row
        factor[row, :own] = normals.standard_normal(min(own, width))
        if own < width:
            factor[row, own] = np.sqrt(lengths.chisquare(dimension - own))
    return factor
