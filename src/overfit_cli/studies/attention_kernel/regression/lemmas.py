"""Bounds of Lemmas 2, 3, 7 and 8, and the gradients and singular values that they hold for.

Lemmas 2 and 3 (Song et al. 2024, appendix) are about softmax, 7 and 8 about the Gaussian of section
4.2.1; other kernels have none. All ratios are left sides over right sides. All norms are Frobenius
norms in the weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from overfit_cli.studies.attention_kernel.parameters import KERNELS, Kernel
from overfit_cli.studies.attention_kernel.regression import engine
from overfit_cli.studies.attention_kernel.regression.data import Floats, Problem
from overfit_cli.studies.attention_kernel.regression.engine import (
    Constants,
    ForwardPass,
    Projections,
    Trained,
)
from overfit_cli.studies.attention_kernel.regression.parameters import LARGEST_SPECTRUM
from overfit_cli.studies.attention_kernel.regression.theory import largest_singular_values


def smallest_singular_value_of_b(fixed: Constants, out: ForwardPass) -> Tensor:
    """Return λ_B, (cells,): B is [S_i1 X_i, ..., S_iH X_i] over samples, (N n × H D)."""
    mixed = out.attention @ fixed.inputs[:, None]  # (cells, heads, samples, tokens, features)
    B = mixed.permute(0, 2, 3, 1, 4).flatten(3).flatten(1, 2)  # (cells, N n, H D)
    return _smallest_singular_value(B)


def curvatures(fixed: Constants, out: ForwardPass) -> tuple[Tensor, Tensor]:
    """Return the ends of the spectrum of K = Σ_h ‖W_O,h‖² B_h B_hᵀ, least and largest, (cells,).

    With W_V alone trained the residual is r_t = (I − η K)^t r_0: gradient descent descends at every
    step where η times the largest eigenvalue is at most 1, and its slowest rate is the least one.
    """
    mixed = (out.attention @ fixed.inputs[:, None]).flatten(2, 3)  # (cells, heads, rows, features)
    weighted = mixed * fixed.output_squared.sqrt()[..., None, None]  # ‖W_O,h‖ S_h X
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


def squared_gradients(fixed: Constants, state: Projections, out: ForwardPass) -> dict[str, Tensor]:
    """Return ‖∇f‖² in W_Q, W_K and W_V, each (cells,), under `query`, `key` and `value`."""
    scores = engine.gradient_in_scores(fixed, state, out)  # ∂f/∂C
    in_query = engine.gradient_in_queries(fixed.kernel, scores, state)  # ∂f/∂q
    in_key = engine.gradient_in_keys(fixed.kernel, scores, state)  # ∂f/∂k
    in_value = engine.gradient_in_values(out)[..., None]  # ∂f/∂a
    squared = fixed.output_squared[..., None, None, None]  # (cells, heads, 1, 1, 1)
    return {
        "query": _squared_norm(fixed, in_query),
        "key": _squared_norm(fixed, in_key),
        "value": _squared_norm(fixed, squared.sqrt() * in_value),
    }


def _squared_norm(fixed: Constants, gradient: Tensor) -> Tensor:
    """Return ‖Xᵀ g‖², summed over heads: the squared norm of the gradient in weights, (cells,)."""
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


SOFTMAX, GAUSSIAN = KERNELS["softmax"], KERNELS["gaussian"]


class Norms(NamedTuple):
    """The norms that the bounds depend on."""

    # tokens, width: n and d
    tokens: int
    width: int
    # inputs, labels: ‖X_i‖ and ‖y_i‖, (samples,)
    inputs: Floats
    labels: Floats
    # query, key: σ_max(W_Q,h) and σ_max(W_K,h), (heads,)
    query: Floats
    key: Floats
    value: float  # σ_max(W_V), the largest over heads
    output: float  # ‖W_O‖ of all heads together

    @property
    def root_heads(self) -> float:
        """√H."""
        return math.sqrt(len(self.query))


def norms_of(problem: Problem, trained: Trained = "query", path: float = 0.0) -> Norms:
    """Return the sizes of a problem, and of all weights on a path of some length from its start.

    No singular value of the trained weights changes by more than the path's length.
    """
    size = Norms(
        tokens=problem.inputs.shape[1],
        width=problem.query.shape[-1],
        inputs=np.linalg.norm(problem.inputs, axis=(1, 2)),
        labels=np.linalg.norm(problem.labels, axis=1),
        query=largest_singular_values(problem.query),
        key=largest_singular_values(problem.key),
        value=float(largest_singular_values(problem.value).max()),
        output=float(np.linalg.norm(problem.output)),
    )
    if trained != "value":
        size = size._replace(query=size.query + path)
    if trained == "all":
        size = size._replace(key=size.key + path)
    return size if trained == "query" else size._replace(value=size.value + path)


def attention_change_bound(size: Norms, weights: Floats) -> Floats:
    """Return Lemma 2's φ_i, from W_K, or ψ_i, from W_Q (33, 34), shape (samples,)."""
    bound: Floats = size.tokens / math.sqrt(size.width) * size.inputs**2 * np.linalg.norm(weights)
    return bound


def softmax_gradient(size: Norms, weights: Floats) -> Floats:
    """Return Lemma 2's Q_i, from W_K, or K_i, from W_Q (36, 37), shape (samples,)."""
    largest = size.output * np.linalg.norm(weights) * size.value  # a number
    bound: Floats = size.tokens * size.root_heads * size.inputs**3 * largest
    return bound


def score_change_bound(size: Norms) -> Floats:
    """Return the right side of Lemma 7 (1), shape (heads, samples)."""
    largest = np.sqrt(size.query**2 + size.key**2)[:, None]
    bound: Floats = math.sqrt(2 * size.tokens / size.width) * size.inputs**2 * largest
    return bound


def gaussian_gradient(size: Norms) -> Floats:
    """Return Lemma 7's Q'_i (60), shape (heads, samples)."""
    return score_change_bound(size) * size.inputs * size.output * size.value


def lipschitz_constants(size: Norms, kernel: Kernel, trained: Trained) -> tuple[float, float]:
    """Return the proofs' constants of outputs and of gradients: Z and G, or Z' and G'.

    Those of Lemma 3 for softmax, in W_Q alone or in all weights (90, 99), and of Lemma 8 for the
    Gaussian, in W_Q alone (equations after 101 and 109); only terms of trained weights count. They
    are nan for other kernels and weights.
    """
    if kernel == SOFTMAX and trained != "value":
        return _constants_of_lemma_3(size, everything=trained == "all")
    if kernel == GAUSSIAN and trained == "query":
        return _constants_of_lemma_8(size)
    return math.nan, math.nan


def _constants_of_lemma_3(size: Norms, everything: bool) -> tuple[float, float]:
    samples, root = len(size.inputs), size.tokens * size.root_heads
    in_query = softmax_gradient(size, size.key)
    others = (
        [softmax_gradient(size, size.query), root * size.inputs * size.output] if everything else []
    )
    z = np.sqrt(sum(np.square(bound) for bound in (in_query, *others)))  # (samples,)
    # √(φ² + ψ²), (samples,)
    spread = np.hypot(
        attention_change_bound(size, size.key), attention_change_bound(size, size.query)
    )
    l_query = root * (_residual_change(size, z) + 2 * _largest_residual(size) * spread)
    reach = root * size.value * size.inputs * size.output + size.labels
    l_value = spread * size.inputs * size.output * reach + root * size.output * z
    outputs = samples * math.sqrt(sum(bound.max() ** 2 for bound in (in_query, *others)))
    gradients = 2 * l_query.max() + l_value.max() if everything else l_query.max()
    return outputs, samples * float(gradients)


def _constants_of_lemma_8(size: Norms) -> tuple[float, float]:
    samples = len(size.inputs)
    z = np.linalg.norm(gaussian_gradient(size), axis=0)  # (samples,)
    scale = math.sqrt(size.tokens) * size.inputs**2
    scores = scale * float((size.query + size.key).max())
    largest = _largest_residual(size)
    l_query = largest * scale + scores * (_residual_change(size, z) + largest * scores)
    return samples * float(z.max()), samples * float(l_query.max())


def _largest_residual(size: Norms) -> float:
    """Return R̄ (95), which bounds every (MH(X_i) − y_i) W_Oᵀ V'ᵀ."""
    inputs, labels = float(np.linalg.norm(size.inputs)), float(np.linalg.norm(size.labels))
    largest = size.tokens * size.root_heads * size.value * inputs * size.output + labels
    return largest * size.output * inputs * size.value


def _residual_change(size: Norms, z: Floats) -> Floats:
    """Return P_i (97, 108), which bounds the change of these, (samples,)."""
    reach = size.tokens * size.root_heads * size.value * size.inputs * size.output + size.labels
    bound: Floats = (z * size.value + reach) * size.inputs * size.output
    return bound


def gradient_ratios(
    fixed: Constants, state: Projections, out: ForwardPass, problems: Sequence[Problem]
) -> Tensor:
    """Return the largest ratio over samples of Lemma 2 (4, 5), or of 7 (4), (cells,).

    nan where there are too many scores, and for other kernels.
    """
    samples, tokens = state.query.shape[2:4]
    if fixed.kernel not in (SOFTMAX, GAUSSIAN) or samples * tokens**2 > LARGEST_SPECTRUM:
        return torch.full_like(out.loss, math.nan)
    by_cell = [norms_of(problem) for problem in problems]
    residual = out.residual.norm(dim=-1)  # (cells, samples)
    # each (cells, heads, samples)
    in_query, in_key = _gradient_norms(fixed, state, out)
    if fixed.kernel == GAUSSIAN:
        bound = _stack(fixed, [gaussian_gradient(size) for size in by_cell]) * residual[:, None]
        return _share(in_query, bound).amax((1, 2))
    # each (cells, samples)
    in_query, in_key = (norm.square().sum(1).sqrt() for norm in (in_query, in_key))
    q = _stack(fixed, [softmax_gradient(size, size.key) for size in by_cell])
    k = _stack(fixed, [softmax_gradient(size, size.query) for size in by_cell])
    return torch.maximum(_share(in_query, q * residual), _share(in_key, k * residual)).amax(1)


def _gradient_norms(
    fixed: Constants, state: Projections, out: ForwardPass
) -> tuple[Tensor, Tensor]:
    """Return ‖∂f(M; X_i)/∂W_Q,h‖ and the same for W_K, each (cells, heads, samples)."""
    scores = engine.gradient_in_scores(fixed, state, out)
    gram = (fixed.inputs @ fixed.inputs.mT)[:, None]  # (cells, 1, samples, tokens, tokens)

    def norm(gradient: Tensor) -> Tensor:
        return (gradient * (gram @ gradient)).sum((-2, -1)).clamp(min=0).sqrt()

    return (
        norm(engine.gradient_in_queries(fixed.kernel, scores, state)),
        norm(engine.gradient_in_keys(fixed.kernel, scores, state)),
    )


def _stack(fixed: Constants, arrays: Sequence[Floats]) -> Tensor:
    return fixed.learning_rate.new_tensor(np.stack(arrays))


def _share(left: Tensor, right: Tensor) -> Tensor:
    return (left / right).where(right > 0, 0.0)
