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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from overfit_cli.studies.attention_kernel.attention import attention
from overfit_cli.studies.attention_kernel.kernels import Kernel
from overfit_cli.studies.attention_kernel.regression.data import Floats, Problem, token_values
from overfit_cli.studies.attention_kernel.regression.model import squared_loss

Trained = Literal["query", "value", "all"]


@dataclass(frozen=True)
class Space:
    """What stays fixed while cells train together.

    Attributes:
        kernel: how queries and keys become attention.
        trained: which weights move.
        inputs: X, shape (cells, samples, tokens, features).
        gram: X Xᵀ, shape (cells, 1, rows, rows); a row is a token of a sample.
        labels: shape (cells, samples, tokens).
        output_squared: ‖W_O,h‖², shape (cells, heads).
        learning_rate: shape (cells,).
    """

    kernel: Kernel
    trained: Trained
    inputs: Tensor
    gram: Tensor
    labels: Tensor
    output_squared: Tensor
    learning_rate: Tensor


@dataclass(frozen=True)
class State:
    """Where the cells are.

    Attributes:
        query, key: shape (cells, heads, samples, tokens, width).
        value: X W_V W_O, shape (cells, heads, samples, tokens).
    """

    query: Tensor
    key: Tensor
    value: Tensor


@dataclass(frozen=True)
class Pass:
    """What a forward pass gives.

    Attributes:
        attention: S, shape (cells, heads, samples, tokens, tokens).
        residual: MH(X) − y, shape (cells, samples, tokens).
        loss: shape (cells,).
    """

    attention: Tensor
    residual: Tensor
    loss: Tensor


def set_up(
    kernel: Kernel,
    trained: Trained,
    problems: Sequence[Problem],
    learning_rates: Sequence[float],
    *,
    dtype: torch.dtype,
    device: str,
) -> tuple[Space, State]:
    """Put problems of one shape side by side; return what stays fixed, and what moves."""

    def together(arrays: Sequence[Floats]) -> Tensor:
        return torch.tensor(np.stack(arrays), dtype=dtype, device=device)

    inputs = together([problem.inputs for problem in problems])
    rows = inputs.flatten(1, 2)[:, None]
    space = Space(
        kernel=kernel,
        trained=trained,
        inputs=inputs,
        gram=rows @ rows.mT,
        labels=together([problem.labels for problem in problems]),
        output_squared=together([np.square(problem.output).sum(-1) for problem in problems]),
        learning_rate=torch.tensor(learning_rates, dtype=dtype, device=device),
    )
    tokens = inputs[:, None]  # every head sees them
    return space, State(
        query=tokens @ together([problem.query[:, None] for problem in problems]),
        key=tokens @ together([problem.key[:, None] for problem in problems]),
        value=together([token_values(problem).swapaxes(0, 1) for problem in problems]),
    )


def forward(space: Space, state: State) -> Pass:
    """Compute attention, outputs and loss."""
    weights = attention(space.kernel, state.query, state.key)
    outputs = _mix(space.kernel, weights, state.value).sum(1)
    return Pass(weights, outputs - space.labels, squared_loss(outputs, space.labels))


def _mix(kernel: Kernel, weights: Tensor, value: Tensor) -> Tensor:
    """Return S a, (cells, heads, samples, tokens).

    Rows that sum to one mix differences from the first token's value: equal values then give
    exactly that value, and a gradient of exactly zero, as in section 4.2.2's example.
    """
    if not kernel.normalised:
        return (weights @ value[..., None]).squeeze(-1)
    first = value[..., :1]
    differences = (weights @ (value - first)[..., None]).squeeze(-1)
    return differences + kernel.scale(value.shape[-1]) * first


def gradient_in_scores(space: Space, state: State, now: Pass) -> Tensor:
    """Return ∂f/∂C, (cells, heads, samples, tokens, tokens) (equations 31 and 53)."""
    value = state.value[..., None, :]
    if space.kernel.normalised:
        value = value - value[..., :1]  # exact zeros where all are equal
        mean = (now.attention * value).sum(-1, keepdim=True)
        value = value - mean / space.kernel.scale(value.shape[-1])
    return now.attention * value * now.residual[:, None, ..., None]


def gradient_in_queries(kernel: Kernel, scores: Tensor, state: State) -> Tensor:
    """Return ∂f/∂q in the query's shape, from `scores`, ∂f/∂C."""
    return _through_scores(kernel, scores, state.query, state.key)


def gradient_in_keys(kernel: Kernel, scores: Tensor, state: State) -> Tensor:
    """Return ∂f/∂k in the key's shape, from `scores`, ∂f/∂C."""
    return _through_scores(kernel, scores.mT, state.key, state.query)


def _through_scores(kernel: Kernel, scores: Tensor, own: Tensor, other: Tensor) -> Tensor:
    root = math.sqrt(own.shape[-1])
    products = scores @ other
    if kernel.distance is None:
        return products / root
    return (2 * kernel.distance / root) * (products - scores.sum(-1, keepdim=True) * own)


def gradient_in_values(now: Pass) -> Tensor:
    """Return ∂f/∂a, (cells, heads, samples, tokens)."""
    return (now.attention.mT @ now.residual[:, None, ..., None]).squeeze(-1)


def spread(space: Space, gradient: Tensor) -> Tensor:
    """Return G times a gradient, in its shape (cells, heads, samples, tokens, width)."""
    return (space.gram @ gradient.flatten(2, 3)).view_as(gradient)


def descend(space: Space, state: State, steps: int) -> Iterator[tuple[int, State, Pass]]:
    """Give every step from 0 to `steps`: its number, the state and the forward pass there."""
    rate = space.learning_rate[:, None, None, None, None]
    value_rate = (space.learning_rate[:, None] * space.output_squared)[..., None, None]
    for step in range(steps + 1):
        now = forward(space, state)
        yield step, state, now
        query, key, value = state.query, state.key, state.value
        if space.trained != "value":
            scores = gradient_in_scores(space, state, now)
            query = query - rate * spread(space, gradient_in_queries(space.kernel, scores, state))
        if space.trained == "all":
            key = key - rate * spread(space, gradient_in_keys(space.kernel, scores, state))
        if space.trained != "query":
            moved = spread(space, gradient_in_values(now)[..., None]).squeeze(-1)
            value = value - value_rate * moved
        state = State(query, key, value)
