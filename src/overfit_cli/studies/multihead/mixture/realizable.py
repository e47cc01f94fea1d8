"""Realizability from a good initialisation (Proposition 7 of Deora et al. 2024).

With θ⋆ of norm √2 and margin γ of the tangent kernel at θ₀, the proposition takes

    θ(ε) = θ₀ + (2 B_Φ + log(1/ε))/γ θ⋆,   so that L̂(θ(ε)) ≤ ε

if √H is at least 5 √(Td) R³ B₂/B_Φ (3 √d R² + 1) g₀² (1 ∨ g₀), g₀ = (2 B_Φ + log(1/ε))/γ. After a
first phase with as many signs α_h of 1 as of −1, heads are two classes, and H may be any number.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.core.arrays import Floats
from overfit_cli.studies.multihead.engine import logits_of
from overfit_cli.studies.multihead.mixture.parameters import REALIZED
from overfit_cli.studies.multihead.parameters import Problem
from overfit_cli.studies.multihead.theory import radius

LOG_HEADS = np.arange(0.0, 20.25, 0.25)
"""log₁₀ of the numbers of heads at which the loss of θ(ε) is computed."""


def realizability_columns(
    problem: Problem, U: Floats, direction: Floats, margin: float
) -> dict[str, float]:
    """Return log₁₀ of the H of (98) and of the least H from which on L̂(θ(ε)) ≤ ε, and L̂/ε.

    The last is the largest one from the H of (98) on. Nothing is known of a margin of 0 or less.

    Args:
        U: of a head with α_h = 1 after the first phase, (tokens, features).
        direction: θ⋆ of unit norm of such a head, U row by row and W row by row.
        margin: γ, of θ⋆ of norm √2.
    """
    if margin <= 0:
        return {}
    X = torch.as_tensor(problem.train.inputs)  # (samples, tokens, features)
    _, T, d = X.shape
    b2, b_phi = max(1.0, float(np.linalg.norm(U))), 1.0  # the signs' outputs cancel: Φ̃(θ₀) = 0
    g0 = (2 * b_phi + math.log(1 / REALIZED)) / margin
    R = radius(X)
    root = 5 * math.sqrt(T * d) * R**3 * b2 / b_phi * (3 * math.sqrt(d) * R**2 + 1)
    needed = 2 * math.log10(d * root * g0**2 * max(1.0, g0))  # with the corrected β₃: √H d times
    star = torch.as_tensor(direction) * math.sqrt(2)  # θ⋆ of a head, over 1/√H, (parameters,)
    losses = np.array([_loss(problem, X, U, g0 * star, 10.0**log) for log in LOG_HEADS])
    met = losses <= REALIZED
    last = np.flatnonzero(~met)
    least = LOG_HEADS[last[-1] + 1] if len(last) and last[-1] + 1 < len(met) else LOG_HEADS[0]
    beyond = needed <= LOG_HEADS
    return {
        "realizable_heads": math.inf if len(last) and last[-1] + 1 == len(met) else float(least),
        "proposition7_heads": needed,
        "proposition7_loss": float(losses[beyond].max()) / REALIZED if beyond.any() else math.nan,
    }


def _loss(problem: Problem, X: Tensor, U: Floats, change: Tensor, heads: float) -> float:
    """Return L̂ of U_h = α_h U + change in U/√H and W_h = α_h · change in W/√H, α_h = ±1.

    The change is √H times that of a head, (parameters,).
    """
    _, T, d = X.shape
    of_U = change[: T * d].view(T, d) / math.sqrt(heads)  # (T, d)
    of_W = change[T * d :].view(d, d) / math.sqrt(heads)  # (d, d)
    start = torch.as_tensor(U.copy())  # (T, d)
    projections = torch.stack([start + of_U, of_U - start])[None]  # (1, classes, T, d)
    attentions = torch.stack([of_W, -of_W])[None]  # (1, classes, d, d)
    mixing = X.new_full((1, 2), math.sqrt(heads) / 2)
    margins = torch.as_tensor(problem.train.labels) * logits_of(X, projections, attentions, mixing)
    return float(functional.softplus(-margins).mean())
