"""What the paper predicts: the regime of a cell (Theorems 4.1 and 4.2, figure 1)."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

FIGURE_1_CONSTANT = 1000.0
"""N · SNR² on the red curve of figure 1; the theorems leave the constant open."""

FIGURE_1_THRESHOLD = 0.2
"""The test loss at which figure 1b cuts."""

FIGURE_1_EXPONENT = 2.0
"""The power of the signal-to-noise ratio in N · SNR²."""

Regime = Literal["benign", "harmful"]


def boundary_product(n: ArrayLike, snr: ArrayLike) -> NDArray[np.float64]:
    """Return N · SNR², on which Theorems 4.1 and 4.2 say that everything hangs; broadcasts."""
    return np.asarray(n) * np.asarray(snr, dtype=np.float64) ** FIGURE_1_EXPONENT


def predicted_regime(n: float, snr: float) -> Regime:
    """Return the side of figure 1's curve N · SNR² = 1000 on which a cell lies."""
    return "benign" if boundary_product(n, snr) > FIGURE_1_CONSTANT else "harmful"


def measured_regime(test_loss: float) -> Regime:
    """Return the side of figure 1b's cut on which a test loss lies."""
    return "benign" if test_loss < FIGURE_1_THRESHOLD else "harmful"
