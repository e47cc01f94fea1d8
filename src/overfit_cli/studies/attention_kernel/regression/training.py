"""From cells to results: draws their problems, trains them together and measures them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from overfit_cli.studies.attention_kernel.kernels import KERNELS
from overfit_cli.studies.attention_kernel.regression import engine, recording, spectra, theory
from overfit_cli.studies.attention_kernel.regression.data import Problem, draw_problem
from overfit_cli.studies.attention_kernel.regression.engine import Pass, Space, State
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters
from overfit_cli.study import Cell as AnyCell
from overfit_cli.study import CellResult, Results
from overfit_cli.training import Training

Cell = AnyCell[KernelRegressionParameters]

Measured = dict[str, list[float]]


def train_batch(batch: Sequence[Cell], training: Training) -> Results[KernelRegressionParameters]:
    """Train cells of one shape together."""
    with torch.inference_mode():
        run = _Run(batch, training)
        run.train()
    for place, cell in enumerate(batch):
        yield run.result(place, cell)


class _Run:
    """A batch under way: what it started from, and what is kept of it."""

    def __init__(self, batch: Sequence[Cell], training: Training) -> None:
        settings = [cell.parameters for cell in batch]
        problems = [draw_problem(cell.parameters, cell.seed) for cell in batch]
        first = settings[0]
        kernel = KERNELS[first.kernel]
        self._batch, self._training = batch, training
        self._steps = first.training_steps
        self._space, self._state = engine.set_up(
            kernel,
            first.trained,
            problems,
            [one.learning_rate for one in settings],
            dtype=getattr(torch, first.dtype),
            device=training.device,
        )
        self._now = engine.forward(self._space, self._state)
        self._start = _at_start(self._space, self._state, self._now, problems)
        self._bounds = recording.Bounds(
            self._tensor(self._start["rate_paper"]),
            self._tensor(self._start["rate_corrected"]),
            self._space.learning_rate,
        )
        self._running = recording.Running(self._bounds, self._now)
        self._ratios = torch.full_like(self._now.loss, torch.inf)
        self._gradient = self._now.loss

    def train(self) -> None:
        """Take all steps."""
        logged = set(recording.logged_steps(self._steps))
        for step, state, now in engine.descend(self._space, self._state, self._steps):
            self._running.add(step, now)
            if step in logged:
                self._log(step, state, now)

    def _log(self, step: int, state: State, now: Pass) -> None:
        space = self._space
        squared = recording.squared_gradients(space, state, now)
        moved = squared.values() if space.trained == "all" else [squared[space.trained]]
        total = torch.stack(list(moved)).sum(0)
        ratio = total / (2 * now.loss)
        above = now.loss / self._running.start > recording.ROUND_OFF
        self._ratios = torch.fmin(self._ratios, torch.where(above, ratio, torch.inf))
        self._gradient, self._now = total.sqrt(), now
        if not self._training.logs:
            return
        row = {
            "pl_ratio": ratio,
            **{f"gradient_{name}": value.sqrt() for name, value in squared.items()},
            **self._row(step, state, now),
        }
        columns = {name: values.tolist() for name, values in row.items()}
        for place, (cell, ended) in enumerate(
            zip(self._batch, self._running.diverged.tolist(), strict=True)
        ):
            if ended < 0 or step <= ended:
                own = {name: values[place] for name, values in columns.items()}
                self._training.log(cell, step, own)

    def _row(self, step: int, state: State, now: Pass) -> dict[str, Tensor]:
        """What is logged beside gradients: the loss, its bounds, and what the theorems rest on."""
        space, start = self._space, self._running.start
        paper, corrected = self._bounds.at(step)
        delta = spectra.smallest_of_scores(space, state)
        lambda_b = spectra.smallest_of_b(space, now)
        return {
            "train_loss": now.loss,
            "floor": self._tensor(self._start["floor"]),
            "bound_paper": start * paper,
            "bound_corrected": start * corrected,
            "delta": delta,
            "lambda_b": lambda_b,
            "pl_bound": recording.polyak_lojasiewicz_bound(space, state, now, delta, lambda_b),
            "smallest_attention": recording.smallest_attention(now),
        }

    def result(self, place: int, cell: Cell) -> CellResult[KernelRegressionParameters]:
        """Return the result of the batch's cell at `place`."""
        running, diverged = self._running, int(self._running.diverged[place])
        measured = {name: values[place] for name, values in self._start.items()}
        until = self._steps if diverged < 0 else diverged
        if diverged < 0:
            millionth = int(running.millionth[place])
            final, start = float(self._now.loss[place]), float(running.start[place])
            measured |= {
                "relative_loss": final / start if start > 0 else math.nan,
                "train_loss": final,
                "floor_ratio": final / measured["floor"] if measured["floor"] > 0 else math.nan,
                "gradient": float(self._gradient[place]),
                "smallest_attention": float(recording.smallest_attention(self._now)[place]),
                "steps_to_millionth": millionth if millionth >= 0 else math.nan,
                "pl_ratio_min": float(self._ratios[place]),
            }
            if not math.isnan(measured["rate_paper"]):
                measured["violations_paper"] = int(running.violations_paper[place])
                measured["violations_corrected"] = int(running.violations_corrected[place])
        known = {name: value for name, value in measured.items() if not math.isnan(value)}
        return CellResult(cell, known, until, "diverged" if diverged >= 0 else "")

    def _tensor(self, values: Sequence[float]) -> Tensor:
        return self._space.learning_rate.new_tensor(values)


def _at_start(space: Space, state: State, now: Pass, problems: Sequence[Problem]) -> Measured:
    """Return what is measured of each cell before the first step, by column."""
    lambda_b = spectra.smallest_of_b(space, now).tolist()
    delta = spectra.smallest_of_scores(space, state).tolist()
    stability = space.learning_rate * spectra.largest_curvature(space, now)
    gradients = recording.squared_gradients(space, state, now)
    residual = now.residual.flatten(1).norm(dim=1).tolist()
    measured: Measured = {
        "start_loss": now.loss.tolist(),
        "lambda_b": lambda_b,
        "delta": delta,
        "stability": stability.tolist(),
        **{f"gradient_{name}_start": value.sqrt().tolist() for name, value in gradients.items()},
    }
    for problem, b, d, r in zip(problems, lambda_b, delta, residual, strict=True):
        for name, value in _of_theory(space, problem, b, d, r).items():
            measured.setdefault(name, []).append(value)
    return measured


def _of_theory(
    space: Space, problem: Problem, lambda_b: float, delta: float, residual: float
) -> dict[str, float]:
    """Return the theorems' quantities of one cell; nan where they don't speak of it."""
    query = space.trained == "query"
    paper, corrected = theory.rates(problem, lambda_b, space.trained)
    return {
        "floor": theory.loss_floor(space.kernel, problem) if query else math.nan,
        "rate_paper": math.nan if query else paper,
        "rate_corrected": math.nan if query else corrected,
        "log10_gamma": theory.log10_gamma(problem, delta) if query else math.nan,
        "condition_8": theory.condition_8(problem, residual, lambda_b),
        "condition_12": theory.condition_12(problem, residual, delta),
    }
