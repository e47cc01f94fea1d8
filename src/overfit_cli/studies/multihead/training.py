"""Training of a seed's cells together, and what is measured of their heads at a step.

The measurements, norms, attention, margins and alignments, are those of figures 2 to 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor

from overfit_cli.core.cell import Cell, CellResult, Results
from overfit_cli.core.training import (
    BatchedTraining,
    CellState,
    Row,
    Training,
    failure,
    known_numbers,
    logged_steps,
    without_gradients,
)
from overfit_cli.studies.multihead import theory
from overfit_cli.studies.multihead.engine import (
    Gradients,
    HeadGradients,
    Heads,
    Weights,
    attention_scores,
    first_steps,
    full_matrices,
    gradients_of,
    initial_heads,
    log_mean_loss,
    logits_of,
    squared_norm,
)
from overfit_cli.studies.multihead.mixture.random_attention import random_attention_columns
from overfit_cli.studies.multihead.mixture.theory import first_phase_columns
from overfit_cli.studies.multihead.parameters import Head, MultiheadParameters, Optimiser, Problem

Columns = dict[str, Tensor]
"""Values of each cell, (cells,), by column."""


def sizes_of_heads(heads: Heads) -> Columns:
    """Return the averaged norms of W and U (figure 2): 1/H Σ ‖W_h‖ and H^(−1/2) Σ ‖U_h‖."""
    U, W = full_matrices(heads.weights)  # (cells, classes, T, d), (cells, classes, d, d)
    H = heads.heads  # (cells,)
    return {
        "norm_w": _sum_over_heads(heads, _norms(W)) / H,  # (cells,)
        "norm_u": _sum_over_heads(heads, _norms(U)) / H.sqrt(),  # (cells,)
    }


def margins(heads: Heads, least: Tensor) -> Columns:
    """Return min y Φ̃, (cells,), over ‖Ũ‖_F, and over H^(−1/2) Σ ‖U_h‖; nan where U is zero."""
    U, _ = full_matrices(heads.weights)  # (cells, classes, T, d)
    whole = squared_norm({"projection": U}, heads.counts).sqrt()  # ‖Ũ‖_F, (cells,)
    averaged = _sum_over_heads(heads, _norms(U)) / heads.heads.sqrt()  # (cells,)
    return {"margin": _ratio(least, whole), "margin_average": _ratio(least, averaged)}


def attention_on_relevant(heads: Heads, inputs: Tensor, relevant: Tensor) -> Tensor:
    """Return the softmax on relevant tokens, over all heads, tokens and samples, (cells,)."""
    _, W = full_matrices(heads.weights)  # (cells, classes, d, d)
    A = attention_scores(inputs, W)  # (cells, classes, t, s, samples)
    on_relevant = (A * relevant.T).sum(3).mean((2, 3))  # (cells, classes)
    return _sum_over_heads(heads, on_relevant) / heads.heads


def alignments(heads: Heads, planted: Head) -> Columns:
    """Return Σ_h ⟨W_h, W⋆⟩ / (‖W̃‖ √H ‖W⋆‖) of figure 4's caption, and the same for U."""
    U, W = full_matrices(heads.weights)  # (cells, classes, T, d), (cells, classes, d, d)
    cosines = {}
    for name, matrices, planted_matrix in (
        ("alignment_w", W, planted.attention),
        ("alignment_u", U, planted.projection),
    ):
        target = torch.as_tensor(planted_matrix).to(matrices)  # W⋆ (d, d) or U⋆ (T, d)
        inner = _sum_over_heads(heads, (matrices * target).sum((-2, -1)))  # (cells,)
        whole = squared_norm({name: matrices}, heads.counts).sqrt()  # (cells,)
        cosines[name] = _ratio(inner, whole * heads.heads.sqrt() * target.norm())  # (cells,)
    return cosines


def on_test(heads: Heads, inputs: Tensor, labels: Tensor) -> Columns:
    """Return the test loss, mean log(1 + exp(−y Φ̃)), and the share of the wrong sign."""
    U, W = full_matrices(heads.weights)  # (cells, classes, T, d), (cells, classes, d, d)
    margins = labels * logits_of(inputs, U, W, heads.mixing)  # y Φ̃, (cells, samples)
    return {
        "test_loss": torch.nn.functional.softplus(-margins).mean(-1),  # (cells,)
        "test_error": error_share(margins),  # (cells,)
    }


def error_share(margins: Tensor) -> Tensor:
    """Return the share of margins that aren't positive; one of zero counts as half, (cells,)."""
    return ((margins < 0).to(margins) + (margins == 0).to(margins) / 2).mean(-1)


def _norms(matrices: Tensor) -> Tensor:
    """Return Frobenius norms, (cells, classes)."""
    return matrices.square().sum((-2, -1)).sqrt()


def _sum_over_heads(heads: Heads, by_class: Tensor) -> Tensor:
    return (heads.counts * by_class).sum(-1)


def _ratio(number: Tensor, size: Tensor) -> Tensor:
    """Return a ratio, (cells,); nan where the size is zero."""
    return torch.where(size > 0, number / size, torch.nan)


RATIO = 1.25
"""The ratio of a logged step to the one before, after the first ten."""

_PER_LOG_10 = 1 / math.log(10)

P = TypeVar("P", bound=MultiheadParameters)


def train_batch(batch: Sequence[Cell[P]], problem: Problem, training: Training) -> Results[P]:
    """Train cells that differ in heads, step sizes and momentum alone."""
    yield from without_gradients(lambda: _HeadsTogether(batch, problem, training).train())


@dataclass
class _HeadsState(CellState[P]):
    initial: dict[str, float]  # what is measured of section 5.1 before the first step
    start_loss: float = math.nan  # the loss before the first step
    total: float = 0.0  # the sum of the losses of all steps but the first
    steps_to_target: float = math.nan  # the first step with a loss below the target; nan before
    # the largest certificate of the logged steps, by column
    worst: dict[str, float] = field(default_factory=dict)


class _HeadsTogether(BatchedTraining[P, _HeadsState[P], Gradients]):
    """Gradient descent on heads, with what is counted at every step and measured at logged ones."""

    def __init__(self, batch: Sequence[Cell[P]], problem: Problem, training: Training) -> None:
        settings = [cell.parameters for cell in batch]
        first = settings[0]
        dtype = getattr(torch, first.dtype)

        def tensor(values: object) -> Tensor:
            return torch.as_tensor(values, dtype=dtype, device=training.device)

        self._problem, self._settings, self._settings_of_cells = problem, first, settings
        self._inputs = tensor(problem.train.inputs)  # X, (samples, tokens, features)
        self._labels = tensor(problem.train.labels)  # y, (samples,)
        self._test = tensor(problem.test.inputs), tensor(problem.test.labels)
        relevant = problem.train.relevant
        self._relevant = None if relevant is None else tensor(relevant)  # (samples, tokens)
        self._heads = initial_heads(
            settings, batch[0].seed, problem.first, dtype=dtype, device=training.device
        )
        self._start = self._heads.copy()
        self._steps = Steps(
            first.optimiser,
            tensor([values.step_size for values in settings]),  # η, (cells,)
            tensor([values.momentum for values in settings]),  # (cells,)
            self._heads.counts,
        )
        self._gradients = self._engine()
        last = first.training_steps
        states = [_HeadsState(cell, self._first_phase(cell)) for cell in batch]
        super().__init__(states, training, set(logged_steps(last, ratio=RATIO)), last)

    def _first_phase(self, cell: Cell[P]) -> dict[str, float]:
        settings = cell.parameters
        if settings.initialisation == "attention" and self._problem.patterns is not None:
            index = self._settings_of_cells.index(settings)
            return random_attention_columns(self._problem, self._heads.weights["attention"][index])
        of_mixture = self._problem.patterns is not None and not settings.separate_heads
        drawn = settings.first_phase in ("signs", "uniform")
        measured = settings.certify or drawn
        if not measured or settings.first_phase == "none" or not of_mixture:
            return {}
        steps = first_steps(settings, cell.seed)
        return first_phase_columns(self._problem, settings.first_phase, steps)

    def _engine(self) -> HeadGradients:
        return HeadGradients(self._inputs, self._labels, *self._heads.counts.shape)

    def forward(self, step: int) -> Gradients:
        heads = self._heads
        U, W = full_matrices(heads.weights)  # (cells, classes, T, d), (cells, classes, d, d)
        now = self._gradients(U, W, heads.mixing, heads.heads, self._steps.divides_by_loss)
        for state, loss in zip(self.cells, now.loss.tolist(), strict=True):
            if step:
                state.total += loss
            else:
                state.start_loss = loss
            if loss < self._settings.target_loss and math.isnan(state.steps_to_target):
                state.steps_to_target = step
        return now

    def ends(self, now: Gradients) -> list[bool]:
        epsilon = self._settings.epsilon
        return [not math.isfinite(loss) or 0 < epsilon >= loss for loss in now.loss.tolist()]

    def take_step(self, now: Gradients) -> None:
        gradients = gradients_of(self._heads.weights, now.projection, now.attention)
        if self._settings.trained == "attention":
            del gradients["projection"]
        self._steps.take(self._heads.weights, gradients)

    def select(self, kept: Sequence[int]) -> None:
        cells = torch.tensor(kept, device=self._labels.device)  # indices
        self._heads, self._start = self._heads.select(cells), self._start.select(cells)
        self._steps.keep(cells)
        self._gradients = self._engine()

    def measure(self, step: int, now: Gradients, due: Sequence[int]) -> list[dict[str, float]]:
        margins_of_samples = now.logits * self._labels  # y Φ̃, (cells, samples)
        heads = self._heads
        columns = {
            "train_loss": now.loss,
            "log10_train_loss": log_mean_loss(margins_of_samples) * _PER_LOG_10,
            "train_error": error_share(margins_of_samples),
            **on_test(heads, *self._test),
            **sizes_of_heads(heads),
            **margins(heads, margins_of_samples.amin(-1)),
        }
        if self._relevant is not None:
            columns["attention"] = attention_on_relevant(heads, self._inputs, self._relevant)
        if self._problem.planted is not None:
            columns |= alignments(heads, self._problem.planted)
        values = {name: column.tolist() for name, column in columns.items()}
        return [
            self._row(index, step, {name: column[index] for name, column in values.items()})
            for index in due
        ]

    def _row(self, index: int, step: int, row: dict[str, float]) -> dict[str, float]:
        """A cell's row, with what is measured of one cell at a time; empty if it has diverged."""
        if not math.isfinite(row["train_loss"]):
            return {}
        if self._settings.certify:
            weights = theory.weights_of_cell(self._heads, index)
            ratios = theory.certificates(weights, self._inputs, self._labels)
            worst = self.cells[index].worst
            worst |= {name: max(x, worst.get(name, -math.inf)) for name, x in ratios.items()}
        return row | {"loss_times_step": row["train_loss"] * step}

    def results(self, step: int, now: Gradients, rows: Mapping[int, Row]) -> Results[P]:
        for index, row in rows.items():
            yield self._result(index, step, dict(row))

    def _result(self, index: int, step: int, row: dict[str, float]) -> CellResult[P]:
        state = self.cells[index]
        settings = state.cell.parameters
        if not row:
            return CellResult(state.cell, {}, step, "diverged")
        del row["loss_times_step"]
        measured = row | {"steps_to_target": state.steps_to_target} | state.worst | state.initial
        measured["mean_train_loss"] = state.total / step if step else math.nan
        if self._problem.margin > 0:
            measured["margin_share"] = row["margin"] / self._problem.margin
        if settings.optimiser == "gd" and step > 0:
            measured |= self._theorems(index, step, settings.step_size, row["train_loss"])
        reason = failure(row["train_loss"], settings.epsilon) if settings.epsilon else ""
        return CellResult(state.cell, known_numbers(measured), step, reason)

    def _theorems(self, index: int, step: int, step_size: float, loss: float) -> dict[str, float]:
        hypotheses = theory.hypotheses(
            theory.weights_of_cell(self._start, index),
            theory.weights_of_cell(self._heads, index),
            self._inputs,
            (self.cells[index].start_loss, loss),
            step,
        )
        return theory.theorem_columns(hypotheses, step_size, len(self._labels))


BETAS = (0.9, 0.999)

SMALL = 1e-8
"""The number that Adam adds to the root of the mean square; PyTorch's default, as the betas are."""


class Steps:
    """Takes the steps of one optimiser, and keeps its moments.

    η and the factor of `momentum` are (cells,). A norm is over all heads, of which each class has
    `counts`, (cells, classes).
    """

    def __init__(
        self, optimiser: Optimiser, step_sizes: Tensor, momentum: Tensor, counts: Tensor
    ) -> None:
        self._optimiser = optimiser
        self._step_sizes = step_sizes[:, None, None, None]  # η, (cells, 1, 1, 1)
        self._momentum = momentum[:, None, None, None]  # μ, (cells, 1, 1, 1)
        self._counts = counts  # (cells, classes)
        self._first: Weights = {}  # velocities, or Adam's means of gradients
        self._second: Weights = {}  # Adam's means of squared gradients
        self._taken = 0

    @property
    def divides_by_loss(self) -> bool:
        """Whether it takes gradients that are divided by the loss."""
        return self._optimiser in ("loss-normalised", "gradient-normalised")

    def take(self, weights: Weights, gradients: Mapping[str, Tensor]) -> None:
        """Change the weights by a step θ ← θ − η · direction, in place."""
        self._taken += 1
        size = self._step_sizes  # η, (cells, 1, 1, 1)
        if self._optimiser == "gradient-normalised":
            norm = _norm(gradients, self._counts)  # ‖∇L‖, (cells,)
            size = size / norm[:, None, None, None]  # (cells, 1, 1, 1)
        for name, gradient in gradients.items():
            direction = self._direction(name, gradient)  # in the shape of the weights
            weights[name].addcmul_(size, direction, value=-1)

    def _direction(self, name: str, gradient: Tensor) -> Tensor:
        """Return what is subtracted for a step size of 1, in the gradient's shape."""
        if self._optimiser == "momentum":
            v = _moment(self._first, name, gradient)  # (cells, classes, rows, columns)
            return v.mul_(self._momentum).add_(gradient)  # v ← μ v + ∇L
        if self._optimiser == "adam":
            return self._adam(name, gradient)
        return gradient

    def _adam(self, name: str, gradient: Tensor) -> Tensor:
        """Return m̂ / (√v̂ + ε) with m ← β₁ m + (1 − β₁) ∇L and v ← β₂ v + (1 − β₂) (∇L)²."""
        m = _moment(self._first, name, gradient)  # (cells, classes, rows, columns)
        v = _moment(self._second, name, gradient)  # (cells, classes, rows, columns)
        m.lerp_(gradient, 1 - BETAS[0])
        v.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        # m̂ = m / (1 − β₁^k) and v̂ = v / (1 − β₂^k) at step k
        mean, square = (1 - beta**self._taken for beta in BETAS)
        return (m / mean) / ((v / square).sqrt() + SMALL)

    def keep(self, cells: Tensor) -> None:
        """Go on with some of the cells alone, given by their indices."""
        self._step_sizes, self._momentum = self._step_sizes[cells], self._momentum[cells]
        self._counts = self._counts[cells]
        self._first = {name: moment[cells] for name, moment in self._first.items()}
        self._second = {name: moment[cells] for name, moment in self._second.items()}


def _moment(moments: Weights, name: str, gradient: Tensor) -> Tensor:
    """Return the moment of a tensor's gradients so far; zeros before the first."""
    if name not in moments:
        moments[name] = torch.zeros_like(gradient)
    return moments[name]


def _norm(gradients: Mapping[str, Tensor], counts: Tensor) -> Tensor:
    """Return the Frobenius norm of all heads together, (cells,); its square may underflow."""
    by_name = [
        gradient.abs().amax((-3, -2, -1)) for gradient in gradients.values()
    ]  # each (cells,)
    largest = torch.stack(by_name).amax(0)  # max |∇L|, (cells,)
    largest = largest.clamp(min=torch.finfo(largest.dtype).tiny)  # (cells,)
    scaled = {
        name: gradient / largest[:, None, None, None] for name, gradient in gradients.items()
    }  # each in its gradient's shape
    return largest * squared_norm(scaled, counts).sqrt()
