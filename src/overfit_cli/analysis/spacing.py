"""How the values of a parameter are spaced: by equal steps, or by equal ratios."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def by_ratio(values: ArrayLike) -> bool:
    """Return whether logarithms space ascending values more evenly; never of fewer than three."""
    at = np.asarray(values, dtype=np.float64)
    if at.size < 3 or at[0] <= 0:
        return False
    gaps, ratios = np.diff(at), np.diff(np.log(at))
    return bool(ratios.std() / ratios.mean() < gaps.std() / gaps.mean())
