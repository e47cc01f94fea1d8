"""Training of a seed's cells together, with measurements at logged steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from overfit_cli.core.study import Cell, CellResult, Results
from overfit_cli.core.training import Training, failure, logged_steps
from overfit_cli.studies.multihead import attention_machine, certificates, measures
from overfit_cli.studies.multihead.engine import Gradients, HeadGradients, log_mean_loss
from overfit_cli.studies.multihead.first_phase import first_phase_columns
from overfit_cli.studies.multihead.heads import full_matrices, gradients_of, initial_heads
from overfit_cli.studies.multihead.optimisers import Steps
from overfit_cli.studies.multihead.parameters import MultiheadParameters
from overfit_cli.studies.multihead.problem import Problem

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
        self._start = self._heads.copied()
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
        weights = certificates.of_cell(self._heads, place)
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
            projection, attention, heads.mixing, heads.heads, self._steps.by_loss
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
        self._heads, self._start = self._heads.of(cells), self._start.of(cells)
        assert self._start_losses is not None
        self._start_losses = self._start_losses[cells]
        self._steps.keep(cells)
        self._gradients = self._engine()
        return found.of(cells)

    def _measure(self, step: int, found: Gradients, due: Sequence[bool]) -> list[dict[str, float]]:
        """Measure all cells at a step, and log it for those that are due and haven't diverged."""
        margins = found.logits * self._labels
        heads = self._heads
        columns = {
            "train_loss": found.loss,
            "log10_train_loss": log_mean_loss(margins) * _PER_LOG_10,
            "train_error": measures.wrong(margins),
            **measures.on_test(heads, *self._test),
            **measures.sizes_of_heads(heads),
            **measures.margins(heads, margins.amin(-1)),
            "head_spread": measures.spread_of_heads(heads),
        }
        if self._relevant is not None:
            columns["attention"] = measures.attention_on_relevant(
                heads, self._inputs, self._relevant
            )
        if self._problem.planted is not None:
            columns |= measures.alignments(heads, self._problem.planted)
        values = {name: one.tolist() for name, one in columns.items()}
        rows = [{name: one[place] for name, one in values.items()} for place in range(len(margins))]
        for place, row in enumerate(rows):
            if due[place]:
                self._log(place, step, row)
        return rows

    def _log(self, place: int, step: int, row: dict[str, float]) -> None:
        if not math.isfinite(row["train_loss"]):
            return
        if self._settings.machine:
            of_cell = certificates.of_cell(self._heads, place)
            row |= attention_machine.columns(self._problem.train, of_cell)
        if self._settings.certify:
            of_cell = certificates.of_cell(self._heads, place)
            ratios = certificates.certificates(of_cell, self._inputs, self._labels)
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
        hypotheses = certificates.hypotheses(
            certificates.of_cell(self._start, place),
            certificates.of_cell(self._heads, place),
            self._inputs,
            (float(self._start_losses[place]), loss),
            step,
        )
        return certificates.theorem_columns(hypotheses, step_size, len(self._labels))


def _known(row: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in row.items() if math.isfinite(value)}
