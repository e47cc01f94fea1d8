"""Linear layers on top of attention, trained with it (Song et al. 2024, Remark 2 and Corollary 1).

    G(X) = MH(X) W¹ ⋯ W^L = Σ_h S_h X W_V,h o_h,    o_h = W_O,h W¹ ⋯ W^L,    loss = ½ ‖G(X) − y‖²

W_O,h has as many columns as a head is wide, and so have all W^l but the last, which has one. So o_h
takes the place of the fixed vector W_O,h of the other cells, and moves. W_O is drawn such that o_h
is that vector at the start: with and without layers the outputs begin alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from overfit_cli.core.cell import CellResult, Results
from overfit_cli.core.training import (
    BatchedTraining,
    CellState,
    Row,
    Training,
    known_numbers,
    logged_steps,
    named_rng,
)
from overfit_cli.studies.attention_kernel.parameters import KERNELS
from overfit_cli.studies.attention_kernel.regression import engine, lemmas
from overfit_cli.studies.attention_kernel.regression.counts import StepCounts
from overfit_cli.studies.attention_kernel.regression.data import Floats, Problem, draw_problem
from overfit_cli.studies.attention_kernel.regression.engine import (
    Constants,
    ForwardPass,
    Projections,
)
from overfit_cli.studies.attention_kernel.regression.parameters import (
    LAYERS,
    KernelRegressionParameters,
    RegressionCell,
)

P = KernelRegressionParameters


@dataclass(frozen=True)
class Layers:
    """W_O as a matrix, which is fixed, and the layers W¹, ..., W^L at the start."""

    mixing: Floats  # W_O, (heads, width, outputs)
    weights: tuple[Floats, ...]  # W^l, each (outputs, outputs), and the last (outputs, 1)


def draw_layers(parameters: P, problem: Problem, seed: int) -> Layers:
    """Draw orthogonal matrices W^l, a unit vector W^L, and W_O with entries N(0, 1/d).

    W_O is then changed as little as possible for W_O,h W¹ ⋯ W^L to be the problem's output weights.
    """
    heads, width = problem.output.shape
    depth = LAYERS[parameters.trained]
    draws = [
        named_rng(seed, "init", "layer", str(level)).standard_normal((width, width))
        for level in range(depth)
    ]
    weights = [np.linalg.qr(draw)[0] for draw in draws]
    weights[-1] = weights[-1][:, :1]
    product = np.linalg.multi_dot([np.eye(width), *weights])[:, 0]  # W¹ ⋯ W^L, of length 1
    mixing = named_rng(seed, "init", "mixing").standard_normal((heads, width, width))
    mixing /= math.sqrt(width)
    missing = problem.output - mixing @ product  # (heads, width)
    return Layers(mixing + missing[..., None] * product, tuple(weights))


@dataclass(frozen=True)
class State:
    """The weights that gradient descent moves."""

    # query, key, value: X W_Q, X W_K and X W_V, (cells, heads, samples, tokens, width)
    query: Tensor
    key: Tensor
    value: Tensor
    layers: tuple[Tensor, ...]  # W^l, (cells, outputs, outputs), and the last (cells, outputs, 1)


@dataclass(frozen=True)
class Pass:
    """The forward pass at a step."""

    state: State
    readout: Tensor  # o, (cells, heads, width)
    attended: Projections  # queries, keys, and the tokens' values X W_V o
    out: ForwardPass


@dataclass(frozen=True)
class Gradients:
    """Gradients in the state: in the projections, (cells, heads, samples, tokens, width)."""

    query: Tensor
    key: Tensor
    value: Tensor
    layers: tuple[Tensor, ...]


def set_up(
    batch: Sequence[RegressionCell], problems: Sequence[Problem], device: str
) -> tuple[Constants, Tensor, State]:
    """Return the constants, W_O, (cells, heads, width, outputs), and the state at step 0."""
    first = batch[0].parameters
    dtype = getattr(torch, first.dtype)

    def stack(arrays: Sequence[Floats]) -> Tensor:
        return torch.tensor(np.stack(arrays), dtype=dtype, device=device)

    fixed, start = engine.set_up(
        KERNELS[first.kernel],
        "all",
        problems,
        [cell.parameters.step_size for cell in batch],
        dtype=dtype,
        device=device,
    )
    drawn = [
        draw_layers(cell.parameters, problem, cell.seed)
        for cell, problem in zip(batch, problems, strict=True)
    ]
    value = fixed.inputs[:, None] @ stack([problem.value[:, None] for problem in problems])
    weights = zip(*(layers.weights for layers in drawn), strict=True)
    layers = tuple(stack(level) for level in weights)
    return (
        fixed,
        stack([each.mixing for each in drawn]),
        State(start.query, start.key, value, layers),
    )


def forward(fixed: Constants, mixing: Tensor, state: State) -> Pass:
    """Return o, the tokens' values, attention, residual and loss."""
    product = _product(state.layers)  # W¹ ⋯ W^L, (cells, outputs, 1)
    readout = (mixing @ product[:, None]).squeeze(-1)  # o_h, (cells, heads, width)
    values = (state.value * readout[:, :, None, None]).sum(-1)  # (cells, heads, samples, tokens)
    attended = Projections(state.query, state.key, values)
    return Pass(state, readout, attended, engine.forward(fixed, attended))


def gradients(fixed: Constants, mixing: Tensor, now: Pass) -> Gradients:
    """Return ∂f/∂q, ∂f/∂k, ∂f/∂(X W_V) and ∂f/∂W^l.

    With g = ∂f/∂(X W_V o) they are, for values, g oᵀ; and with ∂f/∂P = Σ_h W_O,hᵀ (X W_V,h)ᵀ g for
    the product P = W¹ ⋯ W^L, (W¹ ⋯ W^{l−1})ᵀ ∂f/∂P (W^{l+1} ⋯ W^L)ᵀ for a layer.
    """
    state, layers = now.state, now.state.layers
    scores = engine.gradient_in_scores(fixed, now.attended, now.out)
    in_values = engine.gradient_in_values(now.out)[..., None]  # g, (..., samples, tokens, 1)
    in_readout = (state.value * in_values).sum((2, 3))[..., None]  # ∂f/∂o, (..., width, 1)
    in_product = (mixing.mT @ in_readout).sum(1)  # ∂f/∂P, (cells, outputs, 1)
    in_layers = []
    for level, layer in enumerate(layers):
        before = _product(layers[:level]) if level else None  # W¹ ⋯ W^{l−1}
        left = in_product if before is None else before.mT @ in_product  # (cells, n_{l−1}, 1)
        after = layers[level + 1 :]  # W^{l+1} ⋯ W^L, whose product is (cells, n_l, 1)
        in_layers.append((left @ _product(after).mT if after else left).view_as(layer))
    return Gradients(
        engine.gradient_in_queries(fixed.kernel, scores, now.attended),
        engine.gradient_in_keys(fixed.kernel, scores, now.attended),
        in_values * now.readout[:, :, None, None],
        tuple(in_layers),
    )


def next_state(fixed: Constants, state: State, gradient: Gradients) -> tuple[State, Tensor]:
    """Return the state after a gradient step, and ‖∇f‖² before it, (cells,)."""
    rate = fixed.learning_rate
    squares = torch.zeros_like(rate)
    moved = {}
    for name in ("query", "key", "value"):
        projected = getattr(gradient, name)
        times_gram = engine.times_gram(fixed, projected)  # G ∂f/∂q
        squares = squares + (projected * times_gram).flatten(1).sum(1)
        moved[name] = getattr(state, name) - rate[:, None, None, None, None] * times_gram
    squares = squares + sum(each.square().sum((1, 2)) for each in gradient.layers)
    layers = tuple(
        layer - rate[:, None, None] * each
        for layer, each in zip(state.layers, gradient.layers, strict=True)
    )
    return State(**moved, layers=layers), squares.clamp(min=0)


def _product(layers: Sequence[Tensor]) -> Tensor:
    """Return the product of layers, (cells, rows of the first, columns of the last)."""
    product = layers[-1]
    for layer in reversed(layers[:-1]):
        product = layer @ product
    return product


def train_layers(batch: Sequence[RegressionCell], training: Training) -> Iterator[CellResult[P]]:
    """Train cells of one shape together."""
    with torch.inference_mode():
        results = list(_LayersOnTop(batch, training).train())
    yield from results


class _LayersOnTop(BatchedTraining[P, CellState[P], Pass]):
    def __init__(self, batch: Sequence[RegressionCell], training: Training) -> None:
        problems = [draw_problem(cell.parameters, cell.seed) for cell in batch]
        self._fixed, self._mixing, self._state = set_up(batch, problems, training.device)
        start = forward(self._fixed, self._mixing, self._state).out
        self._counts = StepCounts(start.loss, ())
        self._lambda_b = lemmas.smallest_singular_value_of_b(self._fixed, start)
        self._squares = torch.zeros_like(start.loss)  # ‖∇f‖² at the last step, (cells,)
        last = batch[0].parameters.training_steps
        super().__init__(
            [CellState(cell) for cell in batch], training, set(logged_steps(last)), last
        )

    def forward(self, step: int) -> Pass:
        now = forward(self._fixed, self._mixing, self._state)
        self._counts.add(step, now.out.loss, {})
        self._next, self._squares = next_state(
            self._fixed, self._state, gradients(self._fixed, self._mixing, now)
        )
        return now

    def take_step(self, now: Pass) -> None:
        self._state = self._next

    def measure(self, step: int, now: Pass, due: Sequence[int]) -> list[Row]:
        if not self.training.logs:
            return [{}] * len(due)
        columns = {
            "train_loss": now.out.loss.tolist(),
            "lambda_b": lemmas.smallest_singular_value_of_b(self._fixed, now.out).tolist(),
        }
        return [{name: values[index] for name, values in columns.items()} for index in due]

    def results(self, step: int, now: Pass, rows: Mapping[int, Row]) -> Results[P]:
        for index in rows:
            cell, start = self.cells[index].cell, float(self._counts.start[index])
            loss, diverged = float(now.out.loss[index]), int(self._counts.diverged[index])
            measured = {"start_loss": start, "lambda_b": float(self._lambda_b[index])}
            if diverged >= 0:
                yield CellResult(cell, known_numbers(measured, infinite=True), diverged, "diverged")
                continue
            measured |= {
                "relative_loss": loss / start,
                "train_loss": loss,
                "gradient": math.sqrt(float(self._squares[index])),
                **self._counts.steps_to(index),
            }
            yield CellResult(cell, known_numbers(measured, infinite=True), step)
