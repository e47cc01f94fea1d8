"""What the paper predicts: a cell's regime, and how many steps it takes (Theorems 4.1 and 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overfit_cli.studies.benign_vit.parameters import BenignVitParameters

FIGURE_1_CONSTANT = 1000.0
"""N · SNR² on the red curve of figure 1; the theorems leave the constant open."""

FIGURE_1_THRESHOLD = 0.2
"""The test loss at which figure 1b cuts."""

FIGURE_1_EXPONENT = 2.0
"""The power of the signal-to-noise ratio in N · SNR²."""

Regime = Literal["benign", "harmful"]

STEP_LAWS: Mapping[Regime, Mapping[str, float]] = {
    "benign": {"snr": -2.0, "epsilon": -1.0, "learning_rate": -1.0, "n": 0.0},
    "harmful": {"n": 1.0, "epsilon": -1.0, "learning_rate": -1.0, "snr": 0.0},
}
"""The powers with which T goes with each parameter (Theorems 4.1 and 4.2).

‖μ‖ goes with the signal-to-noise ratio where σ_p and d stay.
"""


def boundary_product(n: ArrayLike, snr: ArrayLike) -> NDArray[np.float64]:
    """Return N · SNR², on which Theorems 4.1 and 4.2 say that everything hangs; broadcasts."""
    return np.asarray(n) * np.asarray(snr, dtype=np.float64) ** FIGURE_1_EXPONENT


def predicted_regime(n: float, snr: float) -> Regime:
    """Return the side of figure 1's curve N · SNR² = 1000 on which a cell lies."""
    return "benign" if boundary_product(n, snr) > FIGURE_1_CONSTANT else "harmful"


def measured_regime(test_loss: float) -> Regime:
    """Return the side of figure 1b's cut on which a test loss lies."""
    return "benign" if test_loss < FIGURE_1_THRESHOLD else "harmful"


def predicted_steps(parameters: BenignVitParameters, output_norm: float) -> float:
    """Return T of Theorem 4.1 or 4.2, whichever speaks of the cell, with a constant of 1.

    η⁻¹ ε⁻¹ ‖w_O‖⁻² times ‖μ‖⁻² in the benign regime, and times N σ_p⁻² d⁻¹ in the harmful one.
    """
    common = parameters.learning_rate * parameters.epsilon * output_norm**2
    if predicted_regime(parameters.n, parameters.snr) == "benign":
        return float(1 / (common * parameters.signal_norm**2))
    return float(parameters.n / (common * parameters.sigma_p**2 * parameters.d))
