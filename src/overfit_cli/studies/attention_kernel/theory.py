"""Floors, rates and conditions that the paper proves (Song et al. 2024, section 4).

The rates and conditions are at the initial weights. Conditions are given as decades: the decimal
logarithm of left side over right side. Drawn weights miss them by 9 to 900 decades. Condition (8)
is met where W_O is large and W_V small (`balance`), and condition (12) where W_Q and W_K are small
and the labels are near the outputs at the start (`target=near`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.arrays import Floats
from overfit_cli.studies.attention_kernel.data import Problem, token_values
from overfit_cli.studies.attention_kernel.parameters import Kernel

NU = 1 / 54
"""The right side of condition (8), Theorem 2 (appendix 1.3, remark 5)."""

NU_PRIME = 1 / 8
"""The right side of condition (12), Theorem 3 (appendix 1.5, remark 6)."""


@dataclass(frozen=True)
class Norms:
    """The norms that conditions and bounds depend on, at some weights of a problem."""

    n: int  # tokens
    d: int  # width of a head
    x: Floats  # ‖X_i‖, (samples,)
    y: Floats  # ‖y_i‖, (samples,)
    q: Floats  # σ_max(W_Q,h), (heads,)
    k: Floats  # σ_max(W_K,h), (heads,)
    v: float  # σ_max(W_V), the largest over heads
    o: float  # ‖W_O‖ of all heads together
    a: float  # min |V′W_O|, the least size of a token's value at the start

    @property
    def X(self) -> float:
        """‖X‖ of all samples together."""
        return float(np.linalg.norm(self.x))


def norms_of(problem: Problem, trained: Sequence[str] = (), path: float = 0.0) -> Norms:
    """Return the norms of all weights on a path of some length from a problem's start.

    No singular value of the trained weights changes by more than the path's length.
    """
    moved = {name: path * (name in trained) for name in ("query", "key", "value")}
    return Norms(
        n=problem.inputs.shape[1],
        d=problem.query.shape[-1],
        x=np.linalg.norm(problem.inputs, axis=(1, 2)),
        y=np.linalg.norm(problem.labels, axis=1),
        q=np.linalg.norm(problem.query, 2, axis=(1, 2)) + moved["query"],
        k=np.linalg.norm(problem.key, 2, axis=(1, 2)) + moved["key"],
        v=float(np.linalg.norm(problem.value, 2, axis=(1, 2)).max()) + moved["value"],
        o=float(np.linalg.norm(problem.output)),
        a=float(np.abs(token_values(problem)).min()),
    )


def loss_floor(kernel: Kernel, problem: Problem) -> float:
    """Return ½ Σ dist(y, hull)²: with W_V fixed, no W_Q and W_K can bring the loss below.

    Where rows of S sum to one, an output is in the hull of its sample's values: from Σ_h min_j a_hj
    to Σ_h max_j a_hj. Where they don't, each entry lies between 0 and 1, and the hull is from the
    sum of the negative values to that of the positive ones. Softmax gets as near as one likes to
    the first where the token rows are independent (D ≥ N n), d ≥ n − 1 and a sample's keys are
    affinely independent.
    """
    values = token_values(problem)  # (samples, heads, tokens)
    if kernel.normalised:
        ends = values.min(-1).sum(-1), values.max(-1).sum(-1)  # each (samples,)
    else:
        ends = np.minimum(values, 0).sum((1, 2)), np.maximum(values, 0).sum((1, 2))
    low, high = kernel.scale(values.shape[-1]) * np.stack(ends)[..., None]  # each (samples, 1)
    nearest = np.clip(problem.labels, low, high)  # (samples, tokens)
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


def condition_8(N: Norms, residual: float, lambda_b: float) -> float:
    """Return by how many decades condition (8) of Theorem 2 fails, inf where λ_B is 0.

    n² √(N H) ‖X‖⁵ Σ_h (σ_Q² + σ_K²) σ_V ‖MH(M₀) − y‖ ≤ ν ‖W_O‖ λ_B² min(σ_Q, σ_K, λ_B)
    """
    left = _left_of_8(N) * N.X**5 * N.v * residual
    right = N.o * lambda_b**2 * min(N.q.min(), N.k.min(), lambda_b) * NU
    return _decades(left) - _decades(right)


def condition_46(N: Norms, lambda_b: float) -> float:
    """Return by how many decades (46) fails, which the proof of Theorem 2 uses in place of (8).

    It has λ̄_V = ⅔ (1 + σ_V) and no residual. The proof takes Σ_h σ_max² of W_Q and of W_K to be
    above 1 too; where one is not, the condition fails by at least its decades below 1.
    """
    left = _left_of_8(N) * N.X**6 * 2 / 3 * (1 + N.v)
    right = N.o * lambda_b**2 * min(N.q.min(), N.k.min(), 1.0, lambda_b) * NU
    sums = (N.q**2).sum(), (N.k**2).sum()
    return max(_decades(left) - _decades(right), -_decades(min(sums)))


def _left_of_8(N: Norms) -> float:
    return float(N.n**2 * math.sqrt(len(N.x) * len(N.q)) * (N.q**2 + N.k**2).sum())


def condition_12(N: Norms, residual: float, delta: Sequence[float]) -> float:
    """Return by how many decades condition (12) of Theorem 3 fails, inf where a δ_h is 0.

    It must hold for each head, with its own δ_h = σ_min(∂C_h/∂W_Q,h):

    n ‖X‖⁵ (σ_Q + σ_K) e^(9/4 ‖X‖² (σ_Q² + σ_K²)) σ_V ‖W_O‖ ‖MH(M₀) − y‖
        ≤ ν′ min|V′W_O|² min(δ_h, σ_Q)
    """
    by_head: list[float] = [
        _decades(N.n * N.X**5 * (q + k))
        + 2.25 * N.X**2 * (q**2 + k**2) / math.log(10)
        - _decades(min(smallest, q))
        for q, k, smallest in zip(N.q.tolist(), N.k.tolist(), delta, strict=True)
    ]
    return max(by_head) + _decades(N.v * N.o * residual) - _decades(N.a**2 * NU_PRIME)


def log10_gamma(N: Norms, delta: float) -> float:
    """Return log₁₀ of Theorem 3's γ = ½ δ² κ² min|V′W_O|² (appendix 1.5), −inf where δ is 0.

    κ = exp(−9/4 ‖X‖² (σ_Q² + σ_K²)) is the proof's lower bound of entries of S.
    """
    log10_kappa = -2.25 * N.X**2 * float((N.q**2 + N.k**2).max()) / math.log(10)
    return _decades(0.5 * delta**2 * N.a**2) + 2 * log10_kappa


def _decades(value: float) -> float:
    if math.isnan(value):
        return math.nan
    return math.log10(value) if value > 0 else -math.inf


Sizes = NDArray[np.int64]


def lacking(
    normalised: bool, N: Sizes, n: Sizes, D: Sizes, d: Sizes
) -> dict[str, NDArray[np.bool_]]:
    """Return which sizes lack what δ > 0 needs, by need, for N ≥ 2 samples of n tokens.

    Rows of ∂C/∂W_Q are x_k ⊗ W_Kᵀx_j for softmax, in Σ_i Sym²(V_i) ⊕ Σ_i Λ²(V_i) with V_i the span
    of a sample's tokens, and x_k ⊗ (W_Kᵀx_j − W_Qᵀx_k) for distances, which adds a space of N n
    dimensions. M is the fewest samples with M n > D tokens; the last need is one where M ≤ N. For
    distances n − 1 takes the place of n on its right. The page on derivations has the proofs.
    """
    rows = N * n**2
    symmetric = np.minimum(N * n * (n + 1), D * (D + 1)) // 2
    skew = np.minimum(N * n * (n - 1), D * (D - 1)) // 2
    fewer = D // n  # M − 1
    return {
        "d ≥ n": d < n,
        "D d ≥ N n²": D * d < rows,
        "D ≥ 2n": (2 * n if normalised else 2 * n - 2) > D,
        "Sym² and Λ²": symmetric + skew + (0 if normalised else N * n) < rows,
        "(M − 1) d ≥ M n": (fewer < N) & (fewer * d < (fewer + 1) * (n if normalised else n - 1)),
    }
