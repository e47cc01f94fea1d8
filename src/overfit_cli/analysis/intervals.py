"""Intervals for means that no formula fits, such as those of rank correlations."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def bootstrap_mean(values: ArrayLike, *, repeats: int = 2000, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of a mean.

    It stays within the range of the values, so that a mean correlation's interval stays in ±1.

    Args:
        values: independent values, shape (count,), at least one.
        repeats: how many bootstrap draws.
        seed: of the bootstrap.
    """
    sample = np.asarray(values, dtype=np.float64)
    places = np.random.default_rng(seed).integers(len(sample), size=(repeats, len(sample)))
    low, high = np.percentile(sample[places].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)
