"""Gradients and singular values of cells, which the theorems are about (Song et al. 2024).

All norms are Frobenius norms in the weights.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from overfit_cli.studies.attention_kernel.regression import engine
from overfit_cli.studies.attention_kernel.regression.engine import (
    Constants,
    ForwardPass,
    Projections,
)
from overfit_cli.studies.attention_kernel.regression.parameters import LARGEST_SPECTRUM


def smallest_of_b(fixed: Constants, out: ForwardPass) -> Tensor:
    """Return λ_B, (cells,): B is [S_i1 X_i, ..., S_iH X_i] over samples, (N n × H D)."""
    mixed = out.attention @ fixed.inputs[:, None]  # (cells, heads, samples, tokens, features)
    return _smallest(mixed.permute(0, 2, 3, 1, 4).flatten(3).flatten(1, 2))


def largest_curvature(fixed: Constants, out: ForwardPass) -> Tensor:
    """Return the largest eigenvalue of the loss's Hessian in W_V, Σ_h ‖W_O,h‖² B_h B_hᵀ, (cells,).

    Gradient descent on W_V alone descends at every step where η times this is at most 1.
    """
    # (cells, heads, rows, features)
    mixed = (out.attention @ fixed.inputs[:, None]).flatten(2, 3)
    weighted = mixed * fixed.output_squared.sqrt()[..., None, None]
    wide = weighted.transpose(1, 2).flatten(2)  # (cells, rows, heads · features)
    if wide.shape[1] > LARGEST_SPECTRUM:
        return torch.full_like(out.loss, math.nan)
    largest: Tensor = torch.linalg.matrix_norm(wide, 2)
    return largest.square()


def smallest_of_scores(fixed: Constants, state: Projections) -> Tensor:
    """Return δ, (cells,): the smallest over heads of σ_min(∂C_h/∂W_Q,h), (N n² × D d).

    The row of C_kj is x_k ⊗ u_kj, where u is k_j/√d for inner products and (2c/√d)(k_j − q_k) for
    distances.
    """
    samples, tokens = state.query.shape[2:4]
    if samples * tokens**2 > LARGEST_SPECTRUM:
        return state.query.new_full(state.query.shape[:1], math.nan)
    root = math.sqrt(state.key.shape[-1])
    keys = state.key[..., None, :, :]
    if fixed.kernel.distance is not None:
        keys = 2 * fixed.kernel.distance * (keys - state.query[..., :, None, :])
    keys = keys[..., None, :] / root  # (cells, heads, samples, 1 or k, j, 1, width)
    inputs = fixed.inputs[:, None, :, :, None, :, None]  # (cells, 1, samples, k, 1, features, 1)
    return _smallest((inputs * keys).flatten(-2).flatten(2, 4)).amin(-1)


def _smallest(matrices: Tensor) -> Tensor:
    """The smallest singular value over the rows: 0 where they outnumber the columns."""
    rows, columns = matrices.shape[-2:]
    if rows > LARGEST_SPECTRUM:
        return matrices.new_full(matrices.shape[:-2], math.nan)
    if rows > columns:
        return matrices.new_zeros(matrices.shape[:-2])
    finite = matrices.isfinite().all(-1).all(-1)
    values: Tensor = torch.linalg.svdvals(matrices.where(finite[..., None, None], 0.0))
    return values[..., -1].where(finite, math.nan)  # a diverged cell has none


def squared_gradients(fixed: Constants, state: Projections, out: ForwardPass) -> dict[str, Tensor]:
    """Return ‖∇f‖² in W_Q, W_K and W_V, each (cells,), under `query`, `key` and `value`."""
    scores = engine.gradient_in_scores(fixed, state, out)
    in_query = engine.gradient_in_queries(fixed.kernel, scores, state)
    in_key = engine.gradient_in_keys(fixed.kernel, scores, state)
    in_value = engine.gradient_in_values(out)[..., None]
    squared = fixed.output_squared[..., None, None, None]  # (cells, heads, 1, 1, 1)
    return {
        "query": _squared(fixed, in_query),
        "key": _squared(fixed, in_key),
        "value": _squared(fixed, squared.sqrt() * in_value),
    }


def _squared(fixed: Constants, gradient: Tensor) -> Tensor:
    """‖Xᵀ g‖², summed over heads: the squared norm in the weights of a gradient in projections."""
    return (gradient * engine.times_gram(fixed, gradient)).sum((1, 2, 3, 4)).clamp(min=0)


def smallest_attention(out: ForwardPass) -> Tensor:
    """Return the smallest entry of S, (cells,)."""
    return out.attention.amin((1, 2, 3, 4))


def polyak_lojasiewicz_bound(
    fixed: Constants, state: Projections, out: ForwardPass, delta: Tensor, lambda_b: Tensor
) -> Tensor:
    """Return a lower bound of ‖∇f‖² / 2f at a step, (cells,), from the singular values there.

    With W_Q alone, δ² (min S)² (min|V′W_O|)² for a kernel without normalisation (lemma 7 (3)),
    and 0 for one with; with W_V, min_h ‖W_O,h‖² λ_B².
    """
    if fixed.trained != "query":
        return fixed.output_squared.amin(1) * lambda_b.square()
    if fixed.kernel.normalised:
        return torch.zeros_like(out.loss)
    smallest = state.value.abs().amin((1, 2, 3)) * smallest_attention(out)
    return (delta * smallest).square()
