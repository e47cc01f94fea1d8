"""Numbers between the points of a grid, linear along each axis; the grid may have gaps."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def between(axes: Sequence[Floats], values: Floats, points: Floats) -> Floats:
    """Return what lies at some points, multilinear between the corners of the box around each.

    Args:
        axes: the grid's values along each axis, ascending, two or more of each.
        values: the numbers on the grid, shape (values of the first axis, of the second, ...); nan
            where there is none.
        points: shape (points, axes).

    Returns:
        Shape (points,): nan beyond the grid, and where a corner that counts has no number.
    """
    corners, shares, outside = [], [], np.zeros(len(points), dtype=np.bool_)
    for axis, at in zip(axes, points.T, strict=True):
        below = np.clip(np.searchsorted(axis, at, side="right") - 1, 0, len(axis) - 2)
        corners.append(below)
        shares.append((at - axis[below]) / (axis[below + 1] - axis[below]))
        outside |= (at < axis[0]) | (at > axis[-1])
    total = np.zeros(len(points))
    for sides in itertools.product((0, 1), repeat=len(axes)):
        weights = np.ones(len(points))
        for side, share in zip(sides, shares, strict=True):
            weights = weights * (share if side else 1 - share)
        place = tuple(below + side for below, side in zip(corners, sides, strict=True))
        total += np.where(weights == 0, 0.0, weights * values[place])  # nothing times nan is nan
    return np.where(outside, np.nan, total)
