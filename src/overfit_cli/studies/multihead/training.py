"""Training of a seed's cells together, and what is measured of their heads at a step.

The measurements, norms, attention, margins and alignments, are those of figures 2 to 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from overfit_cli.core.cell import Batch, Cell, CellResult, Results
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
from overfit_cli.studies.multihead import first_phase, theory
from overfit_cli.studies.multihead.data import Head, draw_problem
from overfit_cli.studies.multihead.engine import (
    Gradients,
    HeadGradients,
    Heads,
    attention_scores,
    first_steps,
    initial_heads,
    log_mean_loss,
    logits_of,
    squared_norm,
)
from overfit_cli.studies.multihead.parameters import MultiheadParameters, Optimiser

P = MultiheadParameters

Columns = dict[str, Tensor]
"""Values of each cell, (cells,), by column."""

_PER_LOG_10 = 1 / math.log(10)

RATIO = 1.25
"""The ratio of a logged step to the one before, after the first ten."""


def norms(heads: Heads) -> Columns:
    """Return the averaged norms of W and U (figure 2): 1/H Σ ‖W_h‖ and H^(−1/2) Σ ‖U_h‖."""
    of_W, of_U = (matrices.square().sum((-2, -1)).sqrt() for matrices in (heads.W, heads.U))
    H = heads.heads  # (cells,), and of_W and of_U (cells, classes)
    return {
        "norm_w": (heads.counts * of_W).sum(-1) / H,  # (cells,)
        "norm_u": (heads.counts * of_U).sum(-1) / H.sqrt(),  # (cells,)
    }


def attention_on_relevant(heads: Heads, inputs: Tensor, relevant: Tensor) -> Tensor:
    """Return the softmax on relevant tokens, over all heads, tokens and samples, (cells,)."""
    A = attention_scores(inputs, heads.W)  # (cells, classes, t, s, samples)
    on_relevant = (A * relevant.T).sum(3).mean((2, 3))  # (cells, classes)
    return (heads.counts * on_relevant).sum(-1) / heads.heads


def alignments(heads: Heads, planted: Head) -> Columns:
    """Return Σ_h ⟨W_h, W⋆⟩ / (‖W̃‖ √H ‖W⋆‖) of figure 4's caption, and the same for U."""
    return {
        "alignment_w": _cosine(heads, heads.W, torch.as_tensor(planted.attention).to(heads.W)),
        "alignment_u": _cosine(heads, heads.U, torch.as_tensor(planted.projection).to(heads.U)),
    }


def _cosine(heads: Heads, matrices: Tensor, target: Tensor) -> Tensor:
    inner = (heads.counts * (matrices * target).sum((-2, -1))).sum(-1)  # (cells,)
    whole = squared_norm(matrices, heads.counts).sqrt()  # (cells,)
    return _ratio(inner, whole * heads.heads.sqrt() * target.norm())  # (cells,)


def on_test(heads: Heads, inputs: Tensor, labels: Tensor) -> Columns:
    """Return the test loss, mean log(1 + exp(−y Φ̃)), and the share of the wrong sign, 0 half."""
    margins = labels * logits_of(inputs, heads.U, heads.W, heads.mixing)  # y Φ̃, (cells, samples)
    wrong = (margins < 0).to(margins) + (margins == 0).to(margins) / 2  # (cells, samples)
    return {
        "test_loss": torch.nn.functional.softplus(-margins).mean(-1),  # (cells,)
        "test_error": wrong.mean(-1),  # (cells,)
    }


def _ratio(number: Tensor, size: Tensor) -> Tensor:
    """Return a ratio, (cells,); nan where the size is zero."""
    return torch.where(size > 0, number / size, torch.nan)


def train_batch(batch: Batch[P], training: Training) -> Results[P]:
    """Train cells that differ in heads, step sizes and momentum alone."""
    yield from without_gradients(lambda: _HeadsTogether(batch, training).train())


@dataclass
class _HeadsState(CellState[P]):
    initial: dict[str, float]  # what is measured of section 5 before the first step
    start_loss: float = math.nan  # the loss before the first step
    total: float = 0.0  # the sum of the losses of all steps but the first
    steps_to_target: float = math.nan  # the first step with a loss below the target
    # the largest certificate of the logged steps, by column
    worst: dict[str, float] = field(default_factory=dict)


class _HeadsTogether(BatchedTraining[P, _HeadsState, Gradients]):
    """Gradient descent on heads, with what is counted at every step and measured at logged ones."""

    def __init__(self, batch: Batch[P], training: Training) -> None:
        settings = [cell.parameters for cell in batch]
        first, seed = settings[0], batch[0].seed
        problem = self._problem = draw_problem(first, seed)
        dtype = getattr(torch, first.dtype)

        def tensor(values: object) -> Tensor:
            return torch.as_tensor(values, dtype=dtype, device=training.device)

        self._settings = first
        self._inputs = tensor(problem.train.inputs)  # X, (samples, tokens, features)
        self._labels = tensor(problem.train.labels)  # y, (samples,)
        self._test = tensor(problem.test.inputs), tensor(problem.test.labels)
        self._heads = initial_heads(
            settings, seed, problem.first, dtype=dtype, device=training.device
        )
        self._start = self._heads.copy()
        self._steps = Steps(
            first.optimiser,
            tensor([values.step_size for values in settings]),  # η, (cells,)
            tensor([values.momentum for values in settings]),  # (cells,)
        )
        self._gradients = self._engine()
        states = [_HeadsState(cell, self._initial(index, cell)) for index, cell in enumerate(batch)]
        last = first.training_steps
        super().__init__(states, training, set(logged_steps(last, ratio=RATIO)), last)

    def _initial(self, index: int, cell: Cell[P]) -> dict[str, float]:
        p = cell.parameters
        if self._problem.patterns is None:
            return {}
        if p.initialisation == "attention":
            return first_phase.random_attention_columns(self._problem, self._heads.W[index])
        if p.first_phase == "none" or p.separate_heads:
            return {}
        steps = first_steps(p, cell.seed)
        return first_phase.first_phase_columns(self._problem, p.first_phase, steps)

    def _engine(self) -> HeadGradients:
        return HeadGradients(self._inputs, self._labels, *self._heads.counts.shape)

    def forward(self, step: int) -> Gradients:
        heads = self._heads
        now = self._gradients(
            heads.U, heads.W, heads.mixing, heads.heads, self._steps.divides_by_loss
        )
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
        self._steps.take((self._heads.U, self._heads.W), (now.projection, now.attention))

    def select(self, kept: Sequence[int]) -> None:
        cells = torch.tensor(kept, device=self._labels.device)  # indices
        self._heads, self._start = self._heads.select(cells), self._start.select(cells)
        self._steps.keep(cells)
        self._gradients = self._engine()

    def measure(self, step: int, now: Gradients, due: Sequence[int]) -> list[dict[str, float]]:
        heads, problem = self._heads, self._problem
        margins = now.logits * self._labels  # y Φ̃, (cells, samples)
        columns = {
            "train_loss": now.loss,
            "log10_train_loss": log_mean_loss(margins) * _PER_LOG_10,
            **on_test(heads, *self._test),
            **norms(heads),
            # min y Φ̃ / ‖Ũ‖_F, (cells,)
            "margin": _ratio(margins.amin(-1), squared_norm(heads.U, heads.counts).sqrt()),
        }
        if problem.train.relevant is not None:
            relevant = torch.as_tensor(problem.train.relevant).to(self._inputs)
            columns["attention"] = attention_on_relevant(heads, self._inputs, relevant)
        if problem.planted is not None:
            columns |= alignments(heads, problem.planted)
        values = {name: column.tolist() for name, column in columns.items()}
        return [self._row(i, {name: column[i] for name, column in values.items()}) for i in due]

    def _row(self, index: int, row: dict[str, float]) -> dict[str, float]:
        """A cell's row, with its certificates kept; empty if it has diverged."""
        if not math.isfinite(row["train_loss"]):
            return {}
        if self._settings.certify:
            weights = theory.weights_of_cell(self._heads, index)
            ratios = theory.certificates(weights, self._inputs, self._labels)
            worst = self.cells[index].worst
            worst |= {name: max(x, worst.get(name, -math.inf)) for name, x in ratios.items()}
        return row

    def results(self, step: int, now: Gradients, rows: Mapping[int, Row]) -> Results[P]:
        for index, row in rows.items():
            yield self._result(index, step, row)

    def _result(self, index: int, step: int, row: Row) -> CellResult[P]:
        state, settings = self.cells[index], self.cells[index].cell.parameters
        if not row:
            return CellResult(state.cell, {}, step, "diverged")
        measured = {**row, "steps_to_target": state.steps_to_target} | state.worst | state.initial
        measured["mean_train_loss"] = state.total / step if step else math.nan
        if self._problem.margin > 0:
            measured["margin_share"] = row["margin"] / self._problem.margin
        if settings.optimiser == "gd" and step > 0:
            start, end = (
                theory.weights_of_cell(heads, index) for heads in (self._start, self._heads)
            )
            losses = state.start_loss, row["train_loss"]
            target = theory.last_step_as_target(start, end, self._inputs, losses, step)
            if 0 < target.distance < math.inf:
                measured |= target.bounds(settings.step_size, len(self._labels))
                measured["required_heads"] = target.log10_heads(theory.THEOREM_1)
        reason = failure(row["train_loss"], settings.epsilon) if settings.epsilon else ""
        return CellResult(state.cell, known_numbers(measured), step, reason)


BETAS = (0.9, 0.999)

SMALL = 1e-8
"""The number that Adam adds to the root of the mean square; PyTorch's default, as the betas are."""


class Steps:
    """Takes the steps of one optimiser on U and W, and keeps its moments.

    η and the factor of `momentum` are (cells,). Weights, gradients and moments have the shape
    (cells, classes, rows, columns).
    """

    def __init__(self, optimiser: Optimiser, step_sizes: Tensor, momentum: Tensor) -> None:
        self._optimiser = optimiser
        self._step_sizes = step_sizes[:, None, None, None]  # η, (cells, 1, 1, 1)
        self._momentum = momentum[:, None, None, None]  # μ, (cells, 1, 1, 1)
        self._first: list[Tensor] = []  # velocities, or Adam's means of gradients
        self._second: list[Tensor] = []  # Adam's means of squared gradients
        self._taken = 0

    @property
    def divides_by_loss(self) -> bool:
        """Whether it takes gradients that are divided by the loss."""
        return self._optimiser == "loss-normalised"

    def take(self, weights: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
        """Change the weights by a step θ ← θ − η · direction, in place."""
        self._taken += 1
        if not self._first:
            self._first = [torch.zeros_like(gradient) for gradient in gradients]
            self._second = [torch.zeros_like(gradient) for gradient in gradients]
        moments = zip(weights, gradients, self._first, self._second, strict=True)
        for theta, gradient, first, second in moments:
            direction = self._direction(gradient, first, second)
            theta.addcmul_(self._step_sizes, direction, value=-1)

    def _direction(self, gradient: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """Return what is subtracted for a step size of 1.

        Momentum has v ← μ v + ∇L, and Adam m̂ / (√v̂ + ε) with m ← β₁ m + (1 − β₁) ∇L and
        v ← β₂ v + (1 − β₂) (∇L)²; at step k m̂ = m / (1 − β₁^k) and v̂ = v / (1 − β₂^k).
        """
        if self._optimiser == "momentum":
            return first.mul_(self._momentum).add_(gradient)
        if self._optimiser == "adam":
            first.lerp_(gradient, 1 - BETAS[0])
            second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
            mean, square = (1 - beta**self._taken for beta in BETAS)
            return (first / mean) / ((second / square).sqrt() + SMALL)
        return gradient

    def keep(self, cells: Tensor) -> None:
        """Go on with some of the cells alone, given by their indices."""
        self._step_sizes, self._momentum = self._step_sizes[cells], self._momentum[cells]
        self._first = [moment[cells] for moment in self._first]
        self._second = [moment[cells] for moment in self._second]
