"""Strengths of tokens and initial weights: what multiplies draws that are made at unit scale."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from overfit_cli.studies.benign_vit.parameters import BenignVitParameters


class WeightScales(NamedTuple):
    """What multiplies drawn weights.

    Attributes:
        head: W_Q's and W_K's.
        value: W_V's.
        output: w_O's.
    """

    head: float
    value: float
    output: float


def token_scales(parameters: BenignVitParameters) -> NDArray[np.float64]:
    """Return the strength of each token position, shape (tokens,): ‖μ‖, σ̃_p, σ_p, ..., σ_p."""
    shrunk = math.sqrt(parameters.d) if parameters.noise_per == "token" else 1.0
    scales = np.full(parameters.tokens, parameters.sigma_p / shrunk)
    scales[0] = parameters.signal_norm
    scales[1] = parameters.sigma_p_tilde / shrunk
    return scales


def weight_scales(parameters: BenignVitParameters) -> WeightScales:
    """Return what multiplies a cell's drawn weights: PyTorch's are drawn as they are."""
    if parameters.initialisation == "pytorch":
        return WeightScales(1.0, 1.0, 1.0)
    return WeightScales(*weight_deviations(parameters), parameters.output_scale)


def weight_deviations(parameters: BenignVitParameters) -> tuple[float, float]:
    """Return the deviations of an entry of W_Q and W_K, and of W_V, at initialisation."""
    if parameters.initialisation == "pytorch":  # uniform in ±1/√d, divided
        deviation = 1 / (math.sqrt(3 * parameters.d) * parameters.init_divisor)
        return deviation, deviation
    if parameters.initialisation == "gaussian":
        return parameters.sigma_h, parameters.sigma_v
    low, high = head_variance_window(parameters)
    middle = math.sqrt(math.sqrt(low * high))
    return middle, value_deviation_bound(parameters, parameters.output_scale)


def score_scale(parameters: BenignVitParameters) -> float:
    """Return what multiplies the weakest token's score with itself, at unit scale: (σ_h s)²."""
    head = weight_scales(parameters).head
    return float((head * token_scales(parameters).min()) ** 2)


def strength_bound(parameters: BenignVitParameters) -> float:
    """Return min{‖μ‖⁻², (σ_p² d)⁻¹} d_h^(−1/2), which bounds η (Condition 4.1, item 6)."""
    strength = float(min(parameters.signal_norm**-2, parameters.noise_norm**-2))
    return strength / math.sqrt(parameters.d_h)


def head_variance_window(parameters: BenignVitParameters) -> tuple[float, float]:
    """Return the bounds of σ_h² (Condition 4.1, item 8; δ is 1/d)."""
    logarithm = math.log(6.0 * parameters.n**2 * parameters.tokens**2 * parameters.d)
    bound = strength_bound(parameters)
    return bound * logarithm**-2, bound * logarithm**-1.5


def value_deviation_bound(parameters: BenignVitParameters, output_norm: float) -> float:
    """Return the upper bound of σ_V (Condition 4.1, item 7)."""
    return math.sqrt(strength_bound(parameters)) / output_norm
