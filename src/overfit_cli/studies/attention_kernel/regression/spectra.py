"""Smallest singular values that the theorems rest on: of B and of ∂C/∂W_Q (Song et al. 2024)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from overfit_cli.studies.attention_kernel.regression.batching import LARGEST_SPECTRUM
from overfit_cli.studies.attention_kernel.regression.engine import Pass, Space, State


def smallest_of_b(space: Space, now: Pass) -> Tensor:
    """Return λ_B, (cells,): B is [S_i1 X_i, ..., S_iH X_i] over samples, (N n × H D)."""
    mixed = now.attention @ space.inputs[:, None]  # (cells, heads, samples, tokens, features)
    return _smallest(mixed.permute(0, 2, 3, 1, 4).flatten(3).flatten(1, 2))


def largest_curvature(space: Space, now: Pass) -> Tensor:
    """Return the largest eigenvalue of the loss's Hessian in W_V, Σ_h ‖W_O,h‖² B_h B_hᵀ, (cells,).

    Gradient descent on W_V alone descends at every step where η times this is at most 1.
    """
    mixed = (now.attention @ space.inputs[:, None]).flatten(2, 3)
    weighted = mixed * space.output_squared.sqrt()[..., None, None]
    wide = weighted.transpose(1, 2).flatten(2)  # (cells, rows, heads · features)
    if wide.shape[1] > LARGEST_SPECTRUM:
        return torch.full_like(now.loss, math.nan)
    largest: Tensor = torch.linalg.matrix_norm(wide, 2)
    return largest.square()


def smallest_of_scores(space: Space, state: State) -> Tensor:
    """Return δ, (cells,): the smallest over heads of σ_min(∂C_h/∂W_Q,h), (N n² × D d).

    The row of C_kj is x_k ⊗ u_kj, where u is k_j/√d for inner products and (2c/√d)(k_j − q_k) for
    distances.
    """
    samples, tokens = state.query.shape[2:4]
    if samples * tokens**2 > LARGEST_SPECTRUM:
        return state.query.new_full(state.query.shape[:1], math.nan)
    root = math.sqrt(state.key.shape[-1])
    towards = state.key[..., None, :, :]
    if space.kernel.distance is not None:
        towards = 2 * space.kernel.distance * (towards - state.query[..., :, None, :])
    towards = towards[..., None, :] / root  # (cells, heads, samples, 1 or k, j, 1, width)
    from_ = space.inputs[:, None, :, :, None, :, None]  # (cells, 1, samples, k, 1, features, 1)
    return _smallest((from_ * towards).flatten(-2).flatten(2, 4)).amin(-1)


def _smallest(matrices: Tensor) -> Tensor:
    """The smallest singular value over the rows: 0 where they outnumber the columns."""
    rows, columns = matrices.shape[-2:]
    if rows > LARGEST_SPECTRUM:
        return matrices.new_full(matrices.shape[:-2], math.nan)
    if rows > columns:
        return matrices.new_zeros(matrices.shape[:-2])
    finite = matrices.isfinite().all(-1).all(-1)
    values: Tensor = torch.linalg.svdvals(matrices.where(finite[..., None, None], 0.0))
    return values[..., -1].where(finite, math.nan)  # a diverged cell's are none
