"""How likely a cell lies above a threshold, fitted to cells that were sampled unevenly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DEGREE = 3
"""The power of y up to which place and steepness of the boundary may depend on it."""

_WEAKNESS = 10.0
"""Of the penalty on the coefficients, which keeps a boundary without errors from being a step."""


@dataclass(frozen=True)
class Sides:
    """A logistic regression of the side on x, whose two coefficients are polynomials in y.

    Attributes:
        centre, scale: of x and y, each of shape (2,), to bring both near −1 to 1.
        model: the fitted regression; None where all cells lie on one side.
        only: the side, 0 or 1, where there is but one.
    """

    centre: Floats
    scale: Floats
    model: Any
    only: float

    def probability(self, x: Floats, y: Floats) -> Floats:
        """Return the probability that a new cell lies above, of the shape of x and y."""
        if self.model is None:
            return np.full(np.shape(x), self.only)
        features = _features(np.ravel(x), np.ravel(y), self.centre, self.scale)
        above: Floats = self.model.predict_proba(features)[:, 1]
        return above.reshape(np.shape(x))


def fit_sides(x: Floats, y: Floats, above: NDArray[np.bool_]) -> Sides:
    """Fit how likely a cell lies above a threshold.

    Cells may lie anywhere, several at a place. Along x a cell changes sides once, more or less
    steeply; where, and how steeply, depends smoothly on y.

    Args:
        x, y: where the cells lie, shapes (cells,), on a scale on which the boundary is smooth.
        above: whether each lies above.
    """
    from sklearn.linear_model import LogisticRegression  # half a second, which few figures need

    places = np.stack([x, y])
    centre = (places.max(axis=1) + places.min(axis=1)) / 2
    scale = np.maximum(np.ptp(places, axis=1) / 2, 1e-12)
    if above.all() or not above.any():
        return Sides(centre, scale, None, float(above[0]))
    model = LogisticRegression(C=_WEAKNESS, max_iter=1000)
    return Sides(centre, scale, model.fit(_features(x, y, centre, scale), above), 0.0)


def _features(x: Floats, y: Floats, centre: Floats, scale: Floats) -> Floats:
    """Powers of y, and the same times x, shape (places, 2 · degree + 1)."""
    across, up = (x - centre[0]) / scale[0], (y - centre[1]) / scale[1]
    powers = np.stack([up**power for power in range(DEGREE + 1)], axis=1)
    return np.concatenate([powers[:, 1:], powers * across[:, None]], axis=1)
