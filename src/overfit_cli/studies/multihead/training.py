"""Training of a seed's cells together, and what is measured of their heads at a step.

The measurements, norms, attention, margins and alignments, are those of figures 2 to 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from overfit_cli.core.cell import Cell, CellResult, Results
from overfit_cli.core.together import CellState, CellsTogether
from overfit_cli.core.training import Row, Training, drop_nonfinite, failure, logged_steps
from overfit_cli.studies.multihead import first_phase, theory
from overfit_cli.studies.multihead.engine import (
    Gradients,
    HeadGradients,
    Heads,
    Steps,
    attention_scores,
    full_matrices,
    gradients_of,
    initial_heads,
    log_mean_loss,
    logits_of,
    squared_norm,
)
from overfit_cli.studies.multihead.first_phase import first_phase_columns
from overfit_cli.studies.multihead.parameters import Head, MultiheadParameters, Problem

Columns = dict[str, Tensor]
"""Values of each cell, (cells,), by column."""


def sizes_of_heads(heads: Heads) -> Columns:
    """Return the averaged norms of W and U (figure 2): 1/H Σ ‖W_h‖ and H^(−1/2) Σ ‖U_h‖."""
    projection, attention = full_matrices(heads.weights)
    return {
        "norm_w": _over_heads(heads, _norms(attention)) / heads.heads,
        "norm_u": _over_heads(heads, _norms(projection)) / heads.heads.sqrt(),
    }


def margins(heads: Heads, least: Tensor) -> Columns:
    """Return the least margin over ‖Ũ‖_F, and over the averaged norm; nan where U is zero.

    Args:
        heads: the heads.
        least: the least of y Φ̃ over the training samples, (cells,).
    """
    projection, _ = full_matrices(heads.weights)
    whole = squared_norm({"projection": projection}, heads.counts).sqrt()
    averaged = _over_heads(heads, _norms(projection)) / heads.heads.sqrt()
    return {"margin": _over(least, whole), "margin_average": _over(least, averaged)}


def attention_on_relevant(heads: Heads, inputs: Tensor, relevant: Tensor) -> Tensor:
    """Return the softmax on relevant tokens, over all heads, tokens and samples, (cells,).

    Args:
        heads: the heads.
        inputs: X, shape (samples, tokens, features).
        relevant: shape (samples, tokens).
    """
    _, attention = full_matrices(heads.weights)
    weights = attention_scores(inputs, attention)  # (cells, classes, t, s, samples)
    on_relevant = (weights * relevant.T).sum(3).mean((2, 3))
    return _over_heads(heads, on_relevant) / heads.heads


def alignments(heads: Heads, planted: Head) -> Columns:
    """Return the cosines between all heads and the planted one repeated (figure 4's caption)."""
    projection, attention = full_matrices(heads.weights)
    found = {}
    for name, own, other in (
        ("alignment_w", attention, planted.attention),
        ("alignment_u", projection, planted.projection),
    ):
        target = torch.as_tensor(other).to(own)
        inner = _over_heads(heads, (own * target).sum((-2, -1)))
        whole = squared_norm({name: own}, heads.counts).sqrt()
        found[name] = _over(inner, whole * heads.heads.sqrt() * target.norm())
    return found


def spread_of_heads(heads: Heads) -> Tensor:
    """Return the distance of heads from their mean over the mean's length, at most, (cells,)."""
    parts = [one.flatten(2) for one in full_matrices(heads.weights)]
    each = torch.cat(parts, 2)  # (cells, classes, parameters)
    share = (heads.counts / heads.heads[:, None])[..., None]
    mean = (share * each).sum(1, keepdim=True)
    far = torch.where(heads.counts > 0, (each - mean).norm(dim=-1), 0.0).amax(1)
    return _over(far, mean.norm(dim=-1).squeeze(1))


def on_test(heads: Heads, inputs: Tensor, labels: Tensor) -> Columns:
    """Return the test loss and the share of test samples of the wrong sign."""
    projection, attention = full_matrices(heads.weights)
    found = labels * logits_of(inputs, projection, attention, heads.mixing)
    return {
        "test_loss": torch.nn.functional.softplus(-found).mean(-1),
        "test_error": wrong(found),
    }


def wrong(margins: Tensor) -> Tensor:
    """Return the share of margins that aren't positive; one of zero counts as half, (cells,)."""
    return ((margins < 0).to(margins) + (margins == 0).to(margins) / 2).mean(-1)


def _norms(matrices: Tensor) -> Tensor:
    return matrices.square().sum((-2, -1)).sqrt()


def _over_heads(heads: Heads, of_class: Tensor) -> Tensor:
    """Sum over heads of what each class has, (cells,)."""
    return (heads.counts * of_class).sum(-1)


def _over(number: Tensor, size: Tensor) -> Tensor:
    return torch.where(size > 0, number / size, torch.nan)


RATIO = 1.25
"""The ratio of a logged step to the one before, after the first ten."""

_PER_LOG_10 = 1 / math.log(10)


P = TypeVar("P", bound=MultiheadParameters)


def train_batch(batch: Sequence[Cell[P]], problem: Problem, training: Training) -> Results[P]:
    """Train cells of one seed and one shape together.

    Args:
        batch: the cells; they differ in heads, step sizes and momentum alone.
        problem: what all of them are trained on.
        training: the device, and the log.
    """
    with torch.inference_mode():
        results = list(_HeadsTogether(batch, problem, training).train())
    yield from results


@dataclass
class _HeadsState(CellState[P]):
    """A cell in training.

    Attributes:
        initial: what is measured of section 5.1 before the first step.
        start_loss: the loss before the first step.
        total: the sum of the losses of all steps but the first.
        steps_to_target: the first step with a loss below the target; nan before.
        worst: the largest certificate of the logged steps, by column.
    """

    initial: dict[str, float]
    start_loss: float = math.nan
    total: float = 0.0
    steps_to_target: float = math.nan
    worst: dict[str, float] = field(default_factory=dict)


class _HeadsTogether(CellsTogether[P, _HeadsState[P], Gradients]):
    """Gradient descent on heads, with what is counted at every step and measured at logged ones."""

    def __init__(self, batch: Sequence[Cell[P]], problem: Problem, training: Training) -> None:
        settings = [cell.parameters for cell in batch]
        first = settings[0]
        dtype = getattr(torch, first.dtype)

        def tensor(values: object) -> Tensor:
            return torch.as_tensor(values, dtype=dtype, device=training.device)

        self._problem, self._settings = problem, first
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
        states = [_HeadsState(cell, self._first_phase(i)) for i, cell in enumerate(batch)]
        super().__init__(states, training, set(logged_steps(last, ratio=RATIO)), last)

    def _first_phase(self, place: int) -> dict[str, float]:
        """What is measured before the first step of what section 5.1 says."""
        settings = self._settings
        of_mixture = self._problem.patterns is not None and not settings.separate_heads
        if not settings.certify or settings.first_phase == "none" or not of_mixture:
            return {}
        weights = theory.weights_of_cell(self._heads, place)
        signs = np.array([1.0, -1.0]) if settings.first_phase == "signs" else np.ones(1)
        has_heads = (self._heads.counts[place] > 0).cpu().numpy()
        return first_phase_columns(self._problem, weights, signs[has_heads])

    def _engine(self) -> HeadGradients:
        return HeadGradients(self._inputs, self._labels, *self._heads.counts.shape)

    def forward(self, step: int) -> Gradients:
        projection, attention = full_matrices(self._heads.weights)
        heads = self._heads
        now = self._gradients(
            projection, attention, heads.mixing, heads.heads, self._steps.divides_by_loss
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
        gradients = gradients_of(self._heads.weights, now.projection, now.attention)
        if self._settings.trained == "attention":
            del gradients["projection"]
        self._steps.take(self._heads.weights, gradients)

    def select(self, kept: Sequence[int]) -> None:
        cells = torch.tensor(kept, device=self._labels.device)
        self._heads, self._start = self._heads.select(cells), self._start.select(cells)
        self._steps.keep(cells)
        self._gradients = self._engine()

    def measure(self, step: int, now: Gradients, due: Sequence[int]) -> list[dict[str, float]]:
        signed = now.logits * self._labels  # y Φ̃, (cells, samples)
        heads = self._heads
        columns = {
            "train_loss": now.loss,
            "log10_train_loss": log_mean_loss(signed) * _PER_LOG_10,
            "train_error": wrong(signed),
            **on_test(heads, *self._test),
            **sizes_of_heads(heads),
            **margins(heads, signed.amin(-1)),
            "head_spread": spread_of_heads(heads),
        }
        if self._relevant is not None:
            columns["attention"] = attention_on_relevant(heads, self._inputs, self._relevant)
        if self._problem.planted is not None:
            columns |= alignments(heads, self._problem.planted)
        values = {name: column.tolist() for name, column in columns.items()}
        return [
            self._row(place, step, {name: column[place] for name, column in values.items()})
            for place in due
        ]

    def _row(self, place: int, step: int, row: dict[str, float]) -> dict[str, float]:
        """A cell's row, with what is measured of one cell at a time; empty if it has diverged."""
        if not math.isfinite(row["train_loss"]):
            return {}
        weights = theory.weights_of_cell(self._heads, place)
        if self._settings.machine:
            row |= first_phase.columns(self._problem.train, weights)
        if self._settings.certify:
            ratios = theory.certificates(weights, self._inputs, self._labels)
            worst = self.cells[place].worst
            worst |= {name: max(x, worst.get(name, -math.inf)) for name, x in ratios.items()}
            row |= ratios
        return row | {"loss_times_step": row["train_loss"] * step}

    def results(self, step: int, now: Gradients, rows: Mapping[int, Row]) -> Results[P]:
        for place, row in rows.items():
            yield self._result(place, step, dict(row))

    def _result(self, place: int, step: int, row: dict[str, float]) -> CellResult[P]:
        state = self.cells[place]
        settings = state.cell.parameters
        if not row:
            return CellResult(state.cell, {}, step, "diverged")
        del row["loss_times_step"]
        measured = row | {"steps_to_target": state.steps_to_target} | state.worst | state.initial
        measured["mean_train_loss"] = state.total / step if step else math.nan
        measured["margin_share"] = row["margin"] / self._problem.margin
        if settings.optimiser == "gd" and step > 0:
            measured |= self._theorems(place, step, settings.step_size, row["train_loss"])
        reason = failure(row["train_loss"], settings.epsilon) if settings.epsilon else ""
        return CellResult(state.cell, drop_nonfinite(measured), step, reason)

    def _theorems(self, place: int, step: int, step_size: float, loss: float) -> dict[str, float]:
        """Theorems 1 and 2 for one cell, with the last step as their target θ."""
        hypotheses = theory.hypotheses(
            theory.weights_of_cell(self._start, place),
            theory.weights_of_cell(self._heads, place),
            self._inputs,
            (self.cells[place].start_loss, loss),
            step,
        )
        return theory.theorem_columns(hypotheses, step_size, len(self._labels))
