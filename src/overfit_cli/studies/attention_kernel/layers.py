"""Linear layers on top of attention, trained with it (Song et al. 2024, Remark 2 and Corollary 1).

    G(X) = MH(X) W¹ ⋯ W^L = Σ_h S_h X W_V,h o_h,    o_h = W_O,h W¹ ⋯ W^L,    loss = ½ ‖G(X) − y‖²

W_O,h has as many columns as a head is wide, and so have all W^l but the last, which has one. So o_h
takes the place of the fixed vector W_O,h of the other cells, and moves. W_O is drawn such that o_h
is that vector at the start: with and without layers the outputs begin alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor

from overfit_cli.core.arrays import Floats
from overfit_cli.core.training import named_rng
from overfit_cli.studies.attention_kernel import engine
from overfit_cli.studies.attention_kernel.data import Problem
from overfit_cli.studies.attention_kernel.engine import Constants, ForwardPass, Projections
from overfit_cli.studies.attention_kernel.parameters import (
    LAYERS,
    KernelRegressionParameters,
    RegressionCell,
)


class Layers(NamedTuple):
    """W_O as a matrix, which is fixed, and the layers W¹, ..., W^L at the start."""

    mixing: Floats  # W_O, (heads, width, outputs)
    weights: tuple[Floats, ...]  # W^l, each (outputs, outputs), and the last (outputs, 1)


def draw_layers(parameters: KernelRegressionParameters, problem: Problem, seed: int) -> Layers:
    """Draw orthogonal matrices W^l, a unit vector W^L, and W_O with entries N(0, 1/d).

    W_O is then changed as little as possible for W_O,h W¹ ⋯ W^L to be the problem's output weights.
    """
    heads, width = problem.output.shape
    draws = [
        named_rng(seed, "init", "layer", str(level)).standard_normal((width, width))
        for level in range(LAYERS[parameters.trained])
    ]
    weights = [np.linalg.qr(draw)[0] for draw in draws]
    weights[-1] = weights[-1][:, :1]
    product = np.linalg.multi_dot([np.eye(width), *weights])[:, 0]  # W¹ ⋯ W^L, of length 1
    mixing = named_rng(seed, "init", "mixing").standard_normal((heads, width, width))
    mixing /= math.sqrt(width)
    missing = problem.output - mixing @ product  # (heads, width)
    return Layers(mixing + missing[..., None] * product, tuple(weights))


class State(NamedTuple):
    """The weights that gradient descent moves, or the gradient in them."""

    # query, key, value: X W_Q, X W_K and X W_V, (cells, heads, samples, tokens, width)
    query: Tensor
    key: Tensor
    value: Tensor
    layers: tuple[Tensor, ...]  # W^l, (cells, outputs, outputs), and the last (cells, outputs, 1)


class Pass(NamedTuple):
    """The forward pass at a step, with the gradient."""

    state: State
    out: ForwardPass
    gradient: State


def set_up(
    batch: Sequence[RegressionCell], problems: Sequence[Problem], device: str
) -> tuple[Constants, Tensor, State]:
    """Return the constants, W_O, (cells, heads, width, outputs), and the state at step 0."""
    settings = [cell.parameters for cell in batch]
    fixed, start = engine.set_up(settings, problems, device)
    stack = engine.stacking(settings[0], device)
    drawn = [
        draw_layers(cell.parameters, problem, cell.seed)
        for cell, problem in zip(batch, problems, strict=True)
    ]
    value = fixed.inputs[:, None] @ stack([problem.value[:, None] for problem in problems])
    layers = tuple(map(stack, zip(*(each.weights for each in drawn), strict=True)))
    mixing = stack([each.mixing for each in drawn])
    return fixed, mixing, State(start.query, start.key, value, layers)


def pass_at(fixed: Constants, mixing: Tensor, state: State) -> Pass:
    """Return attention, residual and loss, and ∂f/∂q, ∂f/∂k, ∂f/∂(X W_V) and ∂f/∂W^l.

    With g = ∂f/∂(X W_V o) they are, for values, g oᵀ; and with ∂f/∂P = Σ_h W_O,hᵀ (X W_V,h)ᵀ g for
    the product P = W¹ ⋯ W^L, (W¹ ⋯ W^{l−1})ᵀ ∂f/∂P (W^{l+1} ⋯ W^L)ᵀ for a layer.
    """
    readout = (mixing @ _product(state.layers)[:, None]).squeeze(-1)  # o_h, (cells, heads, width)
    values = (state.value * readout[:, :, None, None]).sum(-1)  # (cells, heads, samples, tokens)
    attended = Projections(state.query, state.key, values)
    out = engine.forward(fixed, attended)
    scores = engine.gradient_in_scores(fixed, attended, out)  # ∂f/∂C
    in_values = engine.gradient_in_values(out)[..., None]  # g, (..., samples, tokens, 1)
    in_readout = (state.value * in_values).sum((2, 3))[..., None]  # ∂f/∂o, (..., width, 1)
    in_product = (mixing.mT @ in_readout).sum(1)  # ∂f/∂P, (cells, outputs, 1)
    gradient = State(
        engine.gradient_in_queries(fixed.kernel, scores, attended),
        engine.gradient_in_keys(fixed.kernel, scores, attended),
        in_values * readout[:, :, None, None],
        tuple(_in_layer(state.layers, level, in_product) for level in range(len(state.layers))),
    )
    return Pass(state, out, gradient)


def next_state(fixed: Constants, now: Pass) -> tuple[State, Tensor]:
    """Return the state after a gradient step, and ‖∇f‖² before it, (cells,).

    P ← P − η G ∂f/∂P for queries, keys and values, and W^l ← W^l − η ∂f/∂W^l.
    """
    *projections, layers = now.state
    *in_projections, in_layers = now.gradient
    rate = fixed.learning_rate[:, None, None]  # η, (cells, 1, 1)
    slopes = [engine.times_gram(fixed, each) for each in in_projections]  # G ∂f/∂P
    squares = [(g * s).flatten(1).sum(1) for g, s in zip(in_projections, slopes, strict=True)]
    squares += [each.square().sum((1, 2)) for each in in_layers]
    pairs = zip(projections, slopes, strict=True)
    query, key, value = (each - rate[..., None, None] * slope for each, slope in pairs)
    moved = tuple(W - rate * each for W, each in zip(layers, in_layers, strict=True))
    total: Tensor = sum(squares[1:], squares[0])
    return State(query, key, value, moved), total.clamp(min=0)


def _in_layer(layers: Sequence[Tensor], level: int, in_product: Tensor) -> Tensor:
    """Return ∂f/∂W^l from ∂f/∂P, (cells, outputs, 1), in the shape of W^l."""
    left = _product(layers[:level]).mT @ in_product if level else in_product
    right = _product(layers[level + 1 :]).mT if layers[level + 1 :] else 1.0
    return (left * right).view_as(layers[level])


def _product(layers: Sequence[Tensor]) -> Tensor:
    """Return the product of layers, (cells, rows of the first, columns of the last)."""
    product = layers[-1]
    for layer in reversed(layers[:-1]):
        product = layer @ product
    return product
