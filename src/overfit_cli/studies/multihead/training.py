"""Training of heads, and what is measured on the way.

Measurements of heads at a step: norms, attention, margins and alignments (figures 2 to 5).

Training of a seed's cells together, with measurements at logged steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from overfit_cli.core.cell import Cell, CellResult, Results
from overfit_cli.core.training import Training, failure, logged_steps
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
        results = _Run(batch, problem, training).results()
    yield from results


class _Run(Generic[P]):
    """Cells in training: those still going, and what was measured of them so far."""

    def __init__(self, batch: Sequence[Cell[P]], problem: Problem, training: Training) -> None:
        settings = [cell.parameters for cell in batch]
        first = settings[0]
        dtype = getattr(torch, first.dtype)

        def tensor(values: object) -> Tensor:
            return torch.as_tensor(values, dtype=dtype, device=training.device)

        self._training, self._problem, self._settings = training, problem, first
        self._inputs, self._labels = tensor(problem.train.inputs), tensor(problem.train.labels)
        self._test = tensor(problem.test.inputs), tensor(problem.test.labels)
        relevant = problem.train.relevant
        self._relevant = None if relevant is None else tensor(relevant)
        self._cells = list(batch)
        self._heads = initial_heads(
            settings, batch[0].seed, problem.first, dtype=dtype, device=training.device
        )
        self._start = self._heads.copy()
        self._steps = Steps(
            first.optimiser,
            tensor([one.step_size for one in settings]),
            tensor([one.momentum for one in settings]),
            self._heads.counts,
        )
        self._gradients = self._engine()
        self._start_losses: Tensor | None = None
        self._sums = [0.0] * len(batch)
        self._reached = [math.nan] * len(batch)
        self._worst: list[dict[str, float]] = [{} for _ in batch]
        self._initial = [self._first_phase(place) for place in range(len(batch))]

    def _first_phase(self, place: int) -> dict[str, float]:
        """What is measured before the first step of what section 5.1 says."""
        settings = self._settings
        if not settings.certify or settings.first_phase == "none" or not self._of_mixture:
            return {}
        weights = theory.weights_of_cell(self._heads, place)
        signs = np.array([1.0, -1.0]) if settings.first_phase == "signs" else np.ones(1)
        there = (self._heads.counts[place] > 0).cpu().numpy()
        return first_phase_columns(self._problem, weights, signs[there])

    @property
    def _of_mixture(self) -> bool:
        return self._problem.patterns is not None and not self._settings.separate_heads

    def _engine(self) -> HeadGradients:
        return HeadGradients(self._inputs, self._labels, *self._heads.counts.shape)

    def results(self) -> list[CellResult[P]]:
        """Take all steps, and return the results in the order in which the cells end."""
        last = self._settings.training_steps
        logged = set(logged_steps(last, ratio=RATIO))
        results: list[CellResult[P]] = []
        for step in range(last + 1):
            found = self._look()
            losses = found.loss.tolist()
            self._count(step, losses)
            ended = [step == last or self._ends(loss) for loss in losses]
            due = [step in logged or over for over in ended]
            if any(due):
                rows = self._measure(step, found, due)
                results += [
                    self._result(place, step, row) for place, row in enumerate(rows) if ended[place]
                ]
            if all(ended):
                break
            self._step(self._without(ended, found) if any(ended) else found)
        return results

    def _look(self) -> Gradients:
        projection, attention = full_matrices(self._heads.weights)
        heads = self._heads
        found = self._gradients(
            projection, attention, heads.mixing, heads.heads, self._steps.divides_by_loss
        )
        if self._start_losses is None:
            self._start_losses = found.loss
        return found

    def _step(self, found: Gradients) -> None:
        gradients = gradients_of(self._heads.weights, found.projection, found.attention)
        if self._settings.trained == "attention":
            del gradients["projection"]
        self._steps.take(self._heads.weights, gradients)

    def _ends(self, loss: float) -> bool:
        return not math.isfinite(loss) or 0 < self._settings.epsilon >= loss

    def _count(self, step: int, losses: Sequence[float]) -> None:
        for place, loss in enumerate(losses):
            self._sums[place] += loss if step else 0.0
            if loss < self._settings.target_loss and math.isnan(self._reached[place]):
                self._reached[place] = step

    def _without(self, ended: Sequence[bool], found: Gradients) -> Gradients:
        """Go on without the cells that have ended, from the same step."""
        kept = [place for place, over in enumerate(ended) if not over]
        cells = torch.tensor(kept, device=self._labels.device)
        self._cells = [self._cells[place] for place in kept]
        self._reached = [self._reached[place] for place in kept]
        self._worst = [self._worst[place] for place in kept]
        self._initial = [self._initial[place] for place in kept]
        self._sums = [self._sums[place] for place in kept]
        self._heads, self._start = self._heads.select(cells), self._start.select(cells)
        assert self._start_losses is not None
        self._start_losses = self._start_losses[cells]
        self._steps.keep(cells)
        self._gradients = self._engine()
        return found.select(cells)

    def _measure(self, step: int, found: Gradients, due: Sequence[bool]) -> list[dict[str, float]]:
        """Measure all cells at a step, and log it for those that are due and haven't diverged."""
        signed = found.logits * self._labels
        heads = self._heads
        columns = {
            "train_loss": found.loss,
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
        values = {name: one.tolist() for name, one in columns.items()}
        rows = [{name: one[place] for name, one in values.items()} for place in range(len(signed))]
        for place, row in enumerate(rows):
            if due[place]:
                self._log(place, step, row)
        return rows

    def _log(self, place: int, step: int, row: dict[str, float]) -> None:
        if not math.isfinite(row["train_loss"]):
            return
        if self._settings.machine:
            of_cell = theory.weights_of_cell(self._heads, place)
            row |= first_phase.columns(self._problem.train, of_cell)
        if self._settings.certify:
            of_cell = theory.weights_of_cell(self._heads, place)
            ratios = theory.certificates(of_cell, self._inputs, self._labels)
            worst = self._worst[place]
            worst |= {name: max(one, worst.get(name, -math.inf)) for name, one in ratios.items()}
            row |= ratios
        of_step = row | {"loss_times_step": row["train_loss"] * step}
        self._training.log(self._cells[place], step, _known(of_step))

    def _result(self, place: int, step: int, row: dict[str, float]) -> CellResult[P]:
        cell = self._cells[place]
        settings = cell.parameters
        if not math.isfinite(row["train_loss"]):
            return CellResult(cell, {}, step, "diverged")
        measured = row | {"steps_to_target": self._reached[place]} | self._worst[place]
        measured |= self._initial[place]
        measured["mean_train_loss"] = self._sums[place] / step if step else math.nan
        measured["margin_share"] = row["margin"] / self._problem.margin
        if settings.optimiser == "gd" and step > 0:
            measured |= self._theorems(place, step, settings.step_size, row["train_loss"])
        reason = failure(row["train_loss"], settings.epsilon) if settings.epsilon else ""
        return CellResult(cell, _known(measured), step, reason)

    def _theorems(self, place: int, step: int, step_size: float, loss: float) -> dict[str, float]:
        """Theorems 1 and 2 for one cell, with the last step as their target θ."""
        assert self._start_losses is not None
        hypotheses = theory.hypotheses(
            theory.weights_of_cell(self._start, place),
            theory.weights_of_cell(self._heads, place),
            self._inputs,
            (float(self._start_losses[place]), loss),
            step,
        )
        return theory.theorem_columns(hypotheses, step_size, len(self._labels))


def _known(row: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in row.items() if math.isfinite(value)}
