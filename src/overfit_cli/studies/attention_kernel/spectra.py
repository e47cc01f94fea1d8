"""Singular values of the theorems, and the tangent kernel in W_Q with the steps that it predicts.

With W_Q alone trained the residual follows r_{t+1} ≈ (I − η Θ) r_t as long as W_Q hardly moves,
with Θ = Σ_h (X Xᵀ) ∘ (U_h U_hᵀ) over rows of X, and u_hk = ∂MH_k/∂q_hk. The tangent kernel is not
the paper's.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from overfit_cli.core.arrays import Floats
from overfit_cli.studies.attention_kernel import engine
from overfit_cli.studies.attention_kernel.data import Problem, token_values
from overfit_cli.studies.attention_kernel.engine import Constants, ForwardPass, Projections
from overfit_cli.studies.attention_kernel.parameters import Kernel, KernelRegressionParameters

LARGEST_SPECTRUM = 4096
"""The most rows of a matrix whose singular values are computed; beyond it they are left out."""

MILLIONTH = 1e-6

MOST_STEPS = 2**40
"""More predicted steps than these are not told."""


def smallest_of_b(fixed: Constants, out: ForwardPass) -> Tensor:
    """Return λ_B, (cells,): B is [S_i1 X_i, ..., S_iH X_i] over samples, (N n × H D)."""
    return _smallest_singular_value(_mixed(fixed, out).transpose(1, 2).flatten(2))


def _mixed(fixed: Constants, out: ForwardPass) -> Tensor:
    """Return S_h X, (cells, heads, rows, features); a row is a token of a sample."""
    return (out.attention @ fixed.inputs[:, None]).flatten(2, 3)


def curvatures(fixed: Constants, out: ForwardPass) -> tuple[Tensor, Tensor]:
    """Return the ends of the spectrum of K = Σ_h ‖W_O,h‖² B_h B_hᵀ, least and largest, (cells,).

    With W_V alone trained the residual is r_t = (I − η K)^t r_0: gradient descent descends at every
    step where η times the largest eigenvalue is at most 1, and its slowest rate is the least one.
    """
    weighted = _mixed(fixed, out) * fixed.output_squared.sqrt()[..., None, None]  # ‖W_O,h‖ S_h X
    wide = weighted.transpose(1, 2).flatten(2)  # (cells, rows, heads · features)
    if wide.shape[1] > LARGEST_SPECTRUM:
        unknown = torch.full_like(out.loss, math.nan)
        return unknown, unknown
    largest: Tensor = torch.linalg.matrix_norm(wide, 2)
    return _smallest_singular_value(wide).square(), largest.square()


def smallest_of_scores(fixed: Constants, state: Projections) -> Tensor:
    """Return δ_h = σ_min(∂C_h/∂W_Q,h) of N n² × D d matrices, (cells, heads).

    The row of C_kj is x_k ⊗ u_kj, where u is k_j/√d for inner products and (2c/√d)(k_j − q_k) for
    distances.
    """
    samples, tokens = state.query.shape[2:4]
    if samples * tokens**2 > LARGEST_SPECTRUM:
        return state.query.new_full(state.query.shape[:2], math.nan)
    root = math.sqrt(state.key.shape[-1])
    keys = state.key[..., None, :, :]  # (cells, heads, samples, 1, j, width)
    if fixed.kernel.distance is not None:
        keys = 2 * fixed.kernel.distance * (keys - state.query[..., :, None, :])
    keys = keys[..., None, :] / root  # (cells, heads, samples, 1 or k, j, 1, width)
    inputs = fixed.inputs[:, None, :, :, None, :, None]  # (cells, 1, samples, k, 1, features, 1)
    return _smallest_singular_value((inputs * keys).flatten(-2).flatten(2, 4))


def _smallest_singular_value(matrices: Tensor) -> Tensor:
    """Return σ_min of matrices (..., rows, columns), 0 where rows outnumber columns, (...)."""
    rows, columns = matrices.shape[-2:]
    if rows > LARGEST_SPECTRUM:
        return matrices.new_full(matrices.shape[:-2], math.nan)
    if rows > columns:
        return matrices.new_zeros(matrices.shape[:-2])
    finite = matrices.isfinite().all(-1).all(-1)
    values: Tensor = torch.linalg.svdvals(matrices.where(finite[..., None, None], 0.0))
    return values[..., -1].where(finite, math.nan)  # a diverged cell has none


# The tangent kernel


def tangent_columns(
    fixed: Constants,
    state: Projections,
    out: ForwardPass,
    problems: Sequence[Problem],
    settings: Sequence[KernelRegressionParameters],
) -> list[dict[str, float]]:
    """Return each cell's columns at the initial weights; none unless W_Q alone is trained."""
    if fixed.trained != ("query",) or fixed.gram.shape[-1] > LARGEST_SPECTRUM:
        return [{} for _ in problems]
    kernels = np.asarray(tangent_kernel(fixed, state, out).double().cpu())
    residuals = np.asarray(out.residual.flatten(1).double().cpu())  # (cells, rows)
    return [
        {
            "tangent_trace": float(np.trace(kernel)),
            "tangent_small": trace_at_small_weights(fixed.kernel, problem, each.sigma_w)
            if each.weights == "drawn"
            else math.nan,
            "tangent_steps": predicted_steps(kernel, residual, each.step_size),
        }
        for kernel, residual, problem, each in zip(
            kernels, residuals, problems, settings, strict=True
        )
    ]


def tangent_kernel(fixed: Constants, state: Projections, out: ForwardPass) -> Tensor:
    """Return Θ, (cells, rows, rows); a row is a token of a sample."""
    ones = replace(out, residual=torch.ones_like(out.residual))
    scores = engine.gradient_in_scores(fixed, state, ones)  # ∂MH_k/∂C_kj
    u = engine.gradient_in_queries(fixed.kernel, scores, state)  # ∂MH_k/∂q_hk
    u = u.flatten(2, 3)  # (cells, heads, rows, width)
    kernel: Tensor = (fixed.gram * (u @ u.mT)).sum(1)
    return kernel


def trace_at_small_weights(kernel: Kernel, problem: Problem, sigma_w: float) -> float:
    """Return the mean of tr Θ over W_Q and W_K of deviation σ_W, as σ_W goes to 0.

    There softmax gives every token 1/n and the Gaussian 1, so u_k = Σ_j b_j k_j/√d with
    b_j = (a_j − ā)/n for softmax, and Σ_j b_j (k_j − q_k)/√d with b_j = a_j for the Gaussian.
    """
    values = token_values(problem)  # a, (samples, heads, tokens)
    tokens = values.shape[-1]
    if kernel.normalised:
        weights = kernel.scale(tokens) * (values - values.mean(-1, keepdims=True)) / tokens
    else:
        weights = kernel.scale(tokens) * values
    lengths = np.square(problem.inputs).sum(-1)  # ‖x_k‖², (samples, tokens)
    mixed = np.einsum("nhj,njd->nhd", weights, problem.inputs)  # Σ_j b_j x_j
    squares = np.square(mixed).sum((1, 2))[:, None]  # (samples, 1)
    if kernel.distance is not None:
        sums = np.square(weights.sum(-1)).sum(1)[:, None]  # Σ_h (Σ_j b_j)², (samples, 1)
        squares = (2 * kernel.distance) ** 2 * (squares + sums * lengths)
    return float(sigma_w**2 * (lengths * squares).sum())


def predicted_steps(kernel: Floats, residual: Floats, learning_rate: float) -> float:
    """Return the first step at which ‖(I − η Θ)^t r‖² is at most a millionth of its start."""
    eigenvalues, vectors = np.linalg.eigh(kernel)
    shares = np.square(vectors.T @ residual)  # (rows,)
    factors = np.square(1 - learning_rate * eigenvalues)  # of the loss's modes, per step

    def arrives(steps: int) -> bool:
        return bool((shares * factors**steps).sum() <= MILLIONTH * shares.sum())

    if not shares.sum() > 0 or factors.max() >= 1:
        return math.nan
    most = next((2**power for power in range(40) if arrives(2**power)), MOST_STEPS)
    steps = bisect.bisect_left(range(most), True, lo=most // 2, key=arrives)
    return math.nan if steps == MOST_STEPS else steps
