"""The tangent kernel of the outputs in W_Q: what it is at small weights, and the steps it predicts.

With W_Q alone trained the residual follows r_{t+1} ≈ (I − η Θ) r_t as long as W_Q hardly moves,
with Θ = Σ_h (X Xᵀ) ∘ (U_h U_hᵀ) over rows of X, and u_hk = ∂MH_k/∂q_hk. None of it is the paper's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from overfit_cli.studies.attention_kernel.parameters import Kernel
from overfit_cli.studies.attention_kernel.regression import engine
from overfit_cli.studies.attention_kernel.regression.data import Floats, Problem, token_values
from overfit_cli.studies.attention_kernel.regression.engine import (
    Constants,
    ForwardPass,
    Projections,
)
from overfit_cli.studies.attention_kernel.regression.parameters import (
    LARGEST_SPECTRUM,
    KernelRegressionParameters,
)

COLUMNS = ("tangent_trace", "tangent_small", "tangent_steps")

MILLIONTH = 1e-6

MOST_STEPS = 2.0**40
"""More predicted steps than these are not told."""


def sensitivities(fixed: Constants, state: Projections, out: ForwardPass) -> Tensor:
    """Return u = ∂MH_k/∂q_hk, (cells, heads, samples, tokens, width)."""
    ones = replace(out, residual=torch.ones_like(out.residual))
    scores = engine.gradient_in_scores(fixed, state, ones)  # ∂MH_k/∂C_kj
    return engine.gradient_in_queries(fixed.kernel, scores, state)


def tangent_kernel(fixed: Constants, state: Projections, out: ForwardPass) -> Tensor:
    """Return Θ, (cells, rows, rows); a row is a token of a sample."""
    u = sensitivities(fixed, state, out).flatten(2, 3)  # (cells, heads, rows, width)
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

    def is_above(steps: float) -> bool:
        return bool((shares * factors**steps).sum() > MILLIONTH * shares.sum())

    if not shares.sum() > 0 or factors.max() >= 1:
        return math.nan
    most = 1.0
    while is_above(most):
        most *= 2
        if most > MOST_STEPS:
            return math.nan
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if is_above(middle) else (least, middle)
    return most


def initial_columns(
    fixed: Constants,
    state: Projections,
    out: ForwardPass,
    problems: Sequence[Problem],
    settings: Sequence[KernelRegressionParameters],
) -> dict[str, list[float]]:
    """Return the columns at the initial weights, by column and cell; nan unless W_Q is trained."""
    if fixed.trained != "query" or fixed.gram.shape[-1] > LARGEST_SPECTRUM:
        return {name: [math.nan] * len(problems) for name in COLUMNS}
    theta = tangent_kernel(fixed, state, out)
    kernels = np.asarray(theta.double().cpu())
    residuals = np.asarray(out.residual.flatten(1).double().cpu())  # (cells, rows)
    small = [
        trace_at_small_weights(fixed.kernel, problem, each.sigma_w)
        if each.weights == "drawn"
        else math.nan
        for problem, each in zip(problems, settings, strict=True)
    ]
    steps = [
        predicted_steps(kernel, residual, each.step_size)
        for kernel, residual, each in zip(kernels, residuals, settings, strict=True)
    ]
    return {
        "tangent_trace": np.trace(kernels, axis1=1, axis2=2).tolist(),
        "tangent_small": small,
        "tangent_steps": steps,
    }
