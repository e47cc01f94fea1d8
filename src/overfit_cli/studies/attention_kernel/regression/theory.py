"""Floors, rates and conditions that the paper proves (Song et al. 2024, section 4).

The rates and conditions are at the initial weights. Conditions are given as decades: the decimal
logarithm of left side over right side. Drawn weights miss them by 9 to 900 decades. Condition (8)
is met where W_O is large and W_V small (`balance`), and condition (12) where W_Q and W_K are small
and the labels are near the outputs at the start (`target=near`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from overfit_cli.studies.attention_kernel.parameters import Kernel
from overfit_cli.studies.attention_kernel.regression.data import Floats, Problem, token_values

NU = 1 / 54
"""The right side of condition (8), Theorem 2 (appendix 1.3, remark 5)."""

NU_PRIME = 1 / 8
"""The right side of condition (12), Theorem 3 (appendix 1.5, remark 6)."""


def loss_floor(kernel: Kernel, problem: Problem) -> float:
    """Return ½ Σ dist(y, hull)²: with W_V fixed, no W_Q and W_K can bring the loss below.

    Where rows of S sum to one, an output is in the hull of its sample's values: from Σ_h min_j a_hj
    to Σ_h max_j a_hj. Where they don't, each entry lies between 0 and 1, and the hull is from the
    sum of the negative values to that of the positive ones. Softmax gets as near as one likes to
    the first where the token rows are independent (D ≥ N n), d ≥ n − 1 and a sample's keys are
    affinely independent.
    """
    values = token_values(problem)
    if kernel.normalised:
        low, high = values.min(-1).sum(-1), values.max(-1).sum(-1)  # each (samples,)
    else:
        # each (samples,)
        low, high = np.minimum(values, 0).sum((1, 2)), np.maximum(values, 0).sum((1, 2))
    scale = kernel.scale(values.shape[-1])
    # (samples, tokens)
    nearest = np.clip(problem.labels, scale * low[:, None], scale * high[:, None])
    return float(np.square(problem.labels - nearest).sum() / 2)


def rates(problem: Problem, lambda_b: float, trained: str) -> tuple[float, float]:
    """Return the linear rates of Theorems 1 and 2: the paper's and the corrected one.

    The paper has α = β = ‖W_O‖² λ_B². W_V is block-diagonal over heads, so the smallest curvature
    is that of Σ_h ‖W_O,h‖² B_h B_hᵀ, which is at least min_h ‖W_O,h‖² λ_B² and may be below the
    paper's; where W_Q and W_K move too, the proof keeps a quarter of it.
    """
    lengths = np.square(problem.output).sum(-1)  # ‖W_O,h‖², (heads,)
    share = 0.25 if trained == "all" else 1.0
    return float(lengths.sum()) * lambda_b**2, share * float(lengths.min()) * lambda_b**2


def condition_8(problem: Problem, residual: float, lambda_b: float) -> float:
    """Return by how many decades condition (8) of Theorem 2 fails, inf where λ_B is 0."""
    samples, tokens, _ = problem.inputs.shape
    query, key = largest_singular_values(problem.query), largest_singular_values(problem.key)
    smallest = min(float(query.min()), float(key.min()), lambda_b)
    left_side = float(
        tokens**2
        * math.sqrt(samples * len(query))
        * np.linalg.norm(problem.inputs) ** 5
        * float((query**2 + key**2).sum())
        * float(largest_singular_values(problem.value).max())
        * residual
    )
    right_side = float(np.linalg.norm(problem.output)) * lambda_b**2 * smallest * NU
    return _decades(left_side) - _decades(float(right_side))


def condition_46(problem: Problem, lambda_b: float) -> float:
    """Return by how many decades (46) fails, which the proof of Theorem 2 uses in place of (8).

    It has λ̄_V = ⅔ (1 + σ_max(W_V)) and no residual. The proof takes Σ_h σ_max² of W_Q and of W_K to
    be above 1 too; where one is not, the condition fails by at least its decades below 1.
    """
    samples, tokens, _ = problem.inputs.shape
    query, key = largest_singular_values(problem.query), largest_singular_values(problem.key)
    squares = float((query**2).sum()), float((key**2).sum())
    smallest = min(float(query.min()), float(key.min()), 1.0, lambda_b)
    value = 2 / 3 * (1 + float(largest_singular_values(problem.value).max()))
    left_side = (
        tokens**2
        * math.sqrt(samples * len(query))
        * float(np.linalg.norm(problem.inputs)) ** 6
        * value
        * sum(squares)
    )
    right_side = float(np.linalg.norm(problem.output)) * lambda_b**2 * smallest * NU
    return max(_decades(left_side) - _decades(right_side), -_decades(min(squares)))


def condition_12(problem: Problem, residual: float, delta: Sequence[float]) -> float:
    """Return by how many decades condition (12) of Theorem 3 fails, inf where a δ_h is 0.

    The residual is ‖MH(M₀) − y‖, and δ_h the smallest singular value of ∂C_h/∂W_Q,h. It must hold
    for each head, with its own δ_h.
    """
    tokens = problem.inputs.shape[1]
    query, key = largest_singular_values(problem.query), largest_singular_values(problem.key)
    size = float(np.linalg.norm(problem.inputs))
    value = float(largest_singular_values(problem.value).max()) * float(
        np.linalg.norm(problem.output)
    )
    smallest = float(np.abs(token_values(problem)).min())
    by_head: list[float] = [
        _decades(tokens * size**5 * (q + k))
        + 2.25 * size**2 * (q**2 + k**2) / math.log(10)
        - _decades(min(smallest_of_head, q))
        for q, k, smallest_of_head in zip(map(float, query), map(float, key), delta, strict=True)
    ]
    return max(by_head) + _decades(value * residual) - _decades(smallest**2 * NU_PRIME)


def log10_gamma(problem: Problem, delta: float) -> float:
    """Return log₁₀ of Theorem 3's γ = ½ δ² κ² min|V′W_O|² (appendix 1.5), −inf where δ is 0."""
    smallest = float(np.abs(token_values(problem)).min())
    return _decades(0.5 * delta**2 * smallest**2) + 2 * log10_kappa(problem)


def log10_kappa(problem: Problem) -> float:
    """Return log₁₀ of κ = exp(−9/4 ‖X‖² (λ_Q² + λ_K²)), the proof's lower bound of entries of S."""
    query, key = largest_singular_values(problem.query), largest_singular_values(problem.key)
    size = float(np.linalg.norm(problem.inputs))
    return -2.25 * size**2 * float((query**2 + key**2).max()) / math.log(10)


def lacks_rank(
    normalised: bool,
    samples: NDArray[np.int64],
    tokens: NDArray[np.int64],
    features: NDArray[np.int64],
    width: NDArray[np.int64],
) -> dict[str, NDArray[np.bool_]]:
    """Return which sizes lack what δ > 0 needs, by need, for two samples or more.

    Rows of ∂C/∂W_Q are x_k ⊗ W_Kᵀx_j for softmax, in Σ_i Sym²(V_i) ⊕ Σ_i Λ²(V_i) with V_i the span
    of a sample's tokens, and x_k ⊗ (W_Kᵀx_j − W_Qᵀx_k) for distances, which adds a space of N n
    dimensions. See the page on derivations.
    """
    rows = samples * tokens**2  # N n²
    symmetric = np.minimum(samples * tokens * (tokens + 1), features * (features + 1)) // 2
    skew = np.minimum(samples * tokens * (tokens - 1), features * (features - 1)) // 2
    spans, extra = (0, 0) if normalised else (2, samples * tokens)
    return {
        "d ≥ n": width < tokens,
        "D d ≥ N n²": features * width < rows,
        f"D ≥ 2n − {spans}" if spans else "D ≥ 2n": features < 2 * tokens - spans,
        "Sym² and Λ²": symmetric + skew + extra < rows,
    }


def lacks_width(
    normalised: bool,
    samples: NDArray[np.int64],
    tokens: NDArray[np.int64],
    features: NDArray[np.int64],
    width: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return which sizes lack (M − 1) d ≥ M n, M being the fewest samples with M n > D tokens.

    Only where M ≤ N. For distances n − 1 takes the place of n on the right. Arguments are those of
    `lacks_rank`; the page on derivations has the proof.
    """
    fewer = features // tokens  # M − 1
    common = tokens if normalised else tokens - 1
    lacks: NDArray[np.bool_] = (fewer < samples) & (fewer * width < (fewer + 1) * common)
    return lacks


def least_width(fewest: int, tokens: int) -> float:
    """Return the real d of softmax at which (M − 1) d = M n, for M ≥ 2 samples; `lacks_width`."""
    return fewest * tokens / (fewest - 1)


def largest_singular_values(weights: Floats) -> Floats:
    """Return the largest singular value of each head's matrix, shape (heads,)."""
    return cast("Floats", np.linalg.norm(weights, 2, axis=(1, 2)))


def _decades(value: float) -> float:
    if math.isnan(value):
        return math.nan
    return math.log10(value) if value > 0 else -math.inf
