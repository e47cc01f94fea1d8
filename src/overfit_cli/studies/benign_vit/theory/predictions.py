"""Predictions of Theorems 4.1 and 4.2: a cell's regime, and how many steps it takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from overfit_cli.studies.benign_vit.parameters import BenignVitParameters

FIGURE_1_CONSTANT = 1000.0
"""N · SNR² on the red curve of figure 1; the theorems leave the constant open."""

FIGURE_1_STRONG_NOISE = 20.0
"""σ̃_p/σ_p in figure 1, and in figures 3 and 4."""

FIGURE_1_TOKENS = 16
"""M in figure 1."""

FIGURE_1_THRESHOLD = 0.2
"""The test loss at which figure 1b cuts."""

HARMFUL_LOSS = 0.5
"""The test loss at which the transition begins; ln 2 = 0.69 is that of a guess."""

FIGURE_1_EXPONENT = 2.0
"""The power of the signal-to-noise ratio in N · SNR²."""

Regime = Literal["benign", "harmful"]

THEOREMS: Mapping[Regime, str] = {"benign": "4.1", "harmful": "4.2"}
"""The theorem on each."""

BALANCE_IN_WORDS = "2 ((σ̃_p/σ_p)² + M − 2)"
"""What `learning_balance` returns, in words."""

STEP_POWERS: Mapping[Regime, Mapping[str, float]] = {
    "benign": {"snr": -2.0, "epsilon": -1.0, "learning_rate": -1.0, "n": 0.0},
    "harmful": {"n": 1.0, "epsilon": -1.0, "learning_rate": -1.0, "snr": 0.0},
}
"""The powers of each parameter with which T scales (Theorems 4.1 and 4.2).

‖μ‖ is proportional to the signal-to-noise ratio where σ_p and d stay.
"""


def boundary_product(n: ArrayLike, snr: ArrayLike) -> NDArray[np.float64]:
    """Return N · SNR², on which all depends by Theorems 4.1 and 4.2; broadcasts."""
    return np.asarray(n) * np.asarray(snr, dtype=np.float64) ** FIGURE_1_EXPONENT


def learning_balance(strong_noise: ArrayLike, tokens: ArrayLike) -> NDArray[np.float64]:
    """Return the N · SNR² at which a first step fits samples as much by signal as by noise.

    Attention is even at first, so that a step adds to W_V w_O the mean of y x over all tokens. A
    training sample's margin then grows by its signal token's ‖μ‖² times the N/2 samples that share
    it, and by its own noise tokens' (σ̃_p² + (M − 2) σ_p²) d. These are equal where N · SNR² is
    2 ((σ̃_p/σ_p)² + M − 2).

    Args:
        strong_noise: σ̃_p/σ_p.
        tokens: M; broadcasts.
    """
    squared = np.asarray(strong_noise, dtype=np.float64) ** 2
    return np.asarray(2 * (squared + np.asarray(tokens) - 2))


def predicted_boundary(strong_noise: ArrayLike, tokens: ArrayLike) -> NDArray[np.float64]:
    """Return the N · SNR² that parts the predicted regimes; the theorems leave it open.

    With figure 1's tokens it is that of the paper's curve, 1000. Elsewhere it is the balance of
    learning, near which overfitting begins to turn benign.

    Args:
        strong_noise: σ̃_p/σ_p.
        tokens: M; broadcasts.
    """
    figure_1 = np.isclose(strong_noise, FIGURE_1_STRONG_NOISE) & np.equal(tokens, FIGURE_1_TOKENS)
    return np.where(figure_1, FIGURE_1_CONSTANT, learning_balance(strong_noise, tokens))


def predicted_regime(parameters: BenignVitParameters) -> Regime:
    """Return the side of `predicted_boundary` on which a cell lies."""
    product = boundary_product(parameters.n, parameters.snr)
    boundary = predicted_boundary(parameters.strong_noise, parameters.tokens)
    return "benign" if product > boundary else "harmful"


def measured_regime(test_loss: float) -> Regime:
    """Return the side of figure 1b's cut on which a test loss lies."""
    return "benign" if test_loss < FIGURE_1_THRESHOLD else "harmful"


def predicted_steps(
    parameters: BenignVitParameters, output_norm: float, regime: Regime | None = None
) -> float:
    """Return T of Theorem 4.1 or 4.2, with a constant of 1.

    Unless the regime is given it is the predicted one.

    η⁻¹ ε⁻¹ ‖w_O‖⁻² times ‖μ‖⁻² in the benign regime, and times N σ_p⁻² d⁻¹ in the harmful one.
    """
    common = parameters.learning_rate * parameters.epsilon * output_norm**2
    if (regime or predicted_regime(parameters)) == "benign":
        return float(1 / (common * parameters.signal_norm**2))
    return float(parameters.n / (common * parameters.noise_norm**2))
