"""Gradient descent on many cells at once, with gradients derived by hand.

With the tokens of all samples as rows of X and G = X Xᵀ, queries q = X W_Q, keys k = X W_K and
token values a = X W_V W_O, a step on the weights is exactly

    q ← q − η G ∂f/∂q,    k ← k − η G ∂f/∂k,    a_h ← a_h − η ‖W_O,h‖² G ∂f/∂a_h

so no weight matrix is kept. Every tensor has a leading axis of cells, which share nothing: their
draws, labels and step sizes are their own. The gradients are Lemma 1's and Lemma 6's (appendix of
Song et al. 2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, linalg

from overfit_cli.core.arrays import Floats
from overfit_cli.studies.attention_kernel.attention import attention
from overfit_cli.studies.attention_kernel.data import Problem, token_values
from overfit_cli.studies.attention_kernel.parameters import (
    KERNELS,
    Kernel,
    KernelRegressionParameters,
)

MOVED: Mapping[str, tuple[str, ...]] = {"query": ("query",), "value": ("value",)}
"""The projections that gradient descent moves, where it doesn't move all."""

ALL = ("query", "key", "value")


@dataclass(frozen=True)
class Constants:
    """Inputs and settings of cells that are trained together; they don't change."""

    kernel: Kernel  # how queries and keys become attention
    trained: tuple[str, ...]  # the projections that are trained, of `ALL`
    inputs: Tensor  # X, (cells, samples, tokens, features)
    gram: Tensor  # X Xᵀ, (cells, 1, rows, rows); a row is a token of a sample
    labels: Tensor  # (cells, samples, tokens)
    output_squared: Tensor  # ‖W_O,h‖², (cells, heads)
    learning_rate: Tensor  # (cells,)


@dataclass(frozen=True)
class Projections:
    """Queries, keys and token values of the cells at a step: the state of gradient descent."""

    # query, key: (cells, heads, samples, tokens, width)
    query: Tensor
    key: Tensor
    value: Tensor  # X W_V W_O, (cells, heads, samples, tokens)


@dataclass(frozen=True)
class ForwardPass:
    """Attention, residuals and losses of the cells at a step."""

    attention: Tensor  # S, (cells, heads, samples, tokens, tokens)
    residual: Tensor  # MH(X) − y, (cells, samples, tokens)
    loss: Tensor  # (cells,)


@dataclass(frozen=True)
class Gradient:
    """A gradient in queries, keys or token values, and what a step makes of it."""

    projected: Tensor  # ∂f/∂q, (cells, heads, samples, tokens, width)
    times_gram: Tensor  # G ∂f/∂q, in the same shape

    def minus(self, gradient: Gradient) -> Gradient:
        """Return the difference from another one; the product with G is linear."""
        return Gradient(self.projected - gradient.projected, self.times_gram - gradient.times_gram)


@dataclass(frozen=True)
class Step:
    """A step of gradient descent."""

    state: Projections
    out: ForwardPass
    # those of the trained projections, under `query`, `key` and `value`
    gradients: Mapping[str, Gradient]


def set_up(
    settings: Sequence[KernelRegressionParameters], problems: Sequence[Problem], device: str
) -> tuple[Constants, Projections]:
    """Stack problems of one shape; return the constants and the state at step 0."""
    first = settings[0]
    stack = stacking(first, device)
    inputs = stack([problem.inputs for problem in problems])  # (cells, samples, tokens, features)
    rows = inputs.flatten(1, 2)[:, None]  # (cells, 1, rows, features)
    fixed = Constants(
        kernel=KERNELS[first.kernel],
        trained=MOVED.get(first.trained, ALL),
        inputs=inputs,
        gram=rows @ rows.mT,  # G = X Xᵀ
        labels=stack([problem.labels for problem in problems]),
        output_squared=stack([np.square(problem.output).sum(-1) for problem in problems]),
        learning_rate=stack([np.array(each.step_size) for each in settings]),
    )
    tokens = inputs[:, None]  # (cells, 1, samples, tokens, features): the same for every head
    return fixed, Projections(
        query=tokens @ stack([problem.query[:, None] for problem in problems]),
        key=tokens @ stack([problem.key[:, None] for problem in problems]),
        value=stack([token_values(problem).swapaxes(0, 1) for problem in problems]),
    )


def stacking(
    parameters: KernelRegressionParameters, device: str
) -> Callable[[Sequence[Floats]], Tensor]:
    """Return the function that makes a tensor, (cells, ...), of an array of each cell."""
    dtype = getattr(torch, parameters.dtype)
    return lambda arrays: torch.tensor(np.stack(arrays), dtype=dtype, device=device)


def forward(fixed: Constants, state: Projections) -> ForwardPass:
    """Compute S, MH(X) − y and f = ½ ‖MH(X) − y‖², with MH(X) = Σ_h S_h a_h (equation 5)."""
    S = attention(fixed.kernel, state.query, state.key)  # (cells, heads, samples, tokens, tokens)
    outputs = _mix(fixed.kernel, S, state.value).sum(1)  # (cells, samples, tokens)
    residual = outputs - fixed.labels  # (cells, samples, tokens)
    return ForwardPass(S, residual, residual.square().sum((-2, -1)) / 2)


def _mix(kernel: Kernel, S: Tensor, a: Tensor) -> Tensor:
    """Return S a, (cells, heads, samples, tokens).

    Rows that sum to one mix differences from the first token's value: equal values then give
    exactly that value, and a gradient of exactly zero, as in section 4.2.2's example.
    """
    if not kernel.normalised:
        return (S @ a[..., None]).squeeze(-1)
    first = a[..., :1]  # (cells, heads, samples, 1)
    differences = (S @ (a - first)[..., None]).squeeze(-1)  # (cells, heads, samples, tokens)
    return differences + kernel.scale(a.shape[-1]) * first


def gradient_in_scores(fixed: Constants, state: Projections, out: ForwardPass) -> Tensor:
    """Return ∂f/∂C, (cells, heads, samples, tokens, tokens) (equations 31 and 53).

    It is S_kj a_j r_k with r = MH(X) − y; where rows of S are normalised, S_kj (a_j − ā_k) r_k with
    ā_k the mean of a under row k.
    """
    a = state.value[..., None, :]  # (cells, heads, samples, 1, tokens)
    if fixed.kernel.normalised:
        a = a - a[..., :1]  # exact zeros where all are equal
        mean = (out.attention * a).sum(-1, keepdim=True)  # (cells, heads, samples, tokens, 1)
        a = a - mean / fixed.kernel.scale(a.shape[-1])  # (cells, heads, samples, tokens, tokens)
    return out.attention * a * out.residual[:, None, ..., None]


def gradient_in_queries(kernel: Kernel, scores: Tensor, state: Projections) -> Tensor:
    """Return ∂f/∂q in the query's shape, from `scores`, ∂f/∂C."""
    return _through_scores(kernel, scores, state.query, state.key)


def gradient_in_keys(kernel: Kernel, scores: Tensor, state: Projections) -> Tensor:
    """Return ∂f/∂k in the key's shape, from `scores`, ∂f/∂C."""
    return _through_scores(kernel, scores.mT, state.key, state.query)


def _through_scores(kernel: Kernel, scores: Tensor, vectors: Tensor, others: Tensor) -> Tensor:
    """Return ∂f/∂v from ∂f/∂C, in the shape of v, (cells, heads, samples, tokens, width).

    With C = v·w / √d it is Σ_j (∂f/∂C_j) w_j / √d, and with C = −c ‖v − w‖² / √d it is (2c / √d)
    Σ_j (∂f/∂C_j) (w_j − v). The rows of ∂f/∂C are for v; w are the `others`.
    """
    root = math.sqrt(vectors.shape[-1])
    products = scores @ others  # (cells, heads, samples, tokens, width)
    if kernel.distance is None:
        return products / root
    return (2 * kernel.distance / root) * (products - scores.sum(-1, keepdim=True) * vectors)


def gradient_in_values(out: ForwardPass) -> Tensor:
    """Return ∂f/∂a = Sᵀ (MH(X) − y), (cells, heads, samples, tokens)."""
    return (out.attention.mT @ out.residual[:, None, ..., None]).squeeze(-1)


def times_gram(fixed: Constants, gradient: Tensor) -> Tensor:
    """Return G times a gradient, in its shape (cells, heads, samples, tokens, width)."""
    return (fixed.gram @ gradient.flatten(2, 3)).view_as(gradient)


def step_at(fixed: Constants, state: Projections) -> Step:
    """Return a step: the forward pass and the gradients that the next one is made of."""
    out = forward(fixed, state)
    return Step(state, out, gradients(fixed, state, out, fixed.trained))


def next_state(fixed: Constants, step: Step) -> Projections:
    """Return the state after a gradient step: P ← P − η ∂L/∂P XXᵀ, and for values η ‖W_O,h‖²."""
    rate = fixed.learning_rate[:, None, None, None, None]  # η, (cells, 1, 1, 1, 1)
    query, key, value = step.state.query, step.state.key, step.state.value
    gradients = step.gradients
    if "query" in gradients:
        query = query - rate * gradients["query"].times_gram
    if "key" in gradients:
        key = key - rate * gradients["key"].times_gram
    if "value" in gradients:
        squared = fixed.learning_rate[:, None] * fixed.output_squared  # (cells, heads)
        value = value - squared[..., None, None] * gradients["value"].times_gram.squeeze(-1)
    return Projections(query, key, value)


def gradients(
    fixed: Constants, state: Projections, out: ForwardPass, names: Collection[str]
) -> dict[str, Gradient]:
    """Return the gradients in some of `ALL` projections."""
    found: dict[str, Tensor] = {}
    if {"query", "key"} & {*names}:
        scores = gradient_in_scores(fixed, state, out)
    if "query" in names:
        found["query"] = gradient_in_queries(fixed.kernel, scores, state)
    if "key" in names:
        found["key"] = gradient_in_keys(fixed.kernel, scores, state)
    if "value" in names:
        found["value"] = gradient_in_values(out)[..., None]
    return {name: Gradient(each, times_gram(fixed, each)) for name, each in found.items()}


def squared_norm(fixed: Constants, gradients: Mapping[str, Gradient]) -> Tensor:
    """Return the squared norm in the weights of some gradients together, (cells,).

    That of one is g · G g, for values times ‖W_O,h‖²; so a difference of two gradients has one too.
    """
    squares = []
    for name, each in gradients.items():
        by_head = linalg.vecdot(each.projected.flatten(2), each.times_gram.flatten(2))
        squares.append((by_head * fixed.output_squared if name == "value" else by_head).sum(1))
    total: Tensor = sum(squares[1:], squares[0])
    return total.clamp(min=0)
