"""Training of a batch of cells, with counts over all steps and measurements at logged ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

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
    without_gradients,
)
from overfit_cli.studies.attention_kernel.parameters import KERNELS
from overfit_cli.studies.attention_kernel.regression import engine, lemmas, tangent, theory
from overfit_cli.studies.attention_kernel.regression import lemmas as measures
from overfit_cli.studies.attention_kernel.regression.counts import (
    ROUND_OFF,
    Descent,
    LipschitzRatios,
    StepCounts,
    bound,
)
from overfit_cli.studies.attention_kernel.regression.data import Problem, draw_problem
from overfit_cli.studies.attention_kernel.regression.engine import (
    Constants,
    ForwardPass,
    Projections,
    Step,
)
from overfit_cli.studies.attention_kernel.regression.linear_layers import train_layers
from overfit_cli.studies.attention_kernel.regression.parameters import (
    LAYERS,
    KernelRegressionParameters,
    RegressionCell,
)

P = KernelRegressionParameters
RATES = ("paper", "corrected")

GAMMA = "gamma"
"""The rate of Theorem 3."""


def train_batch(batch: Sequence[RegressionCell], training: Training) -> Results[P]:
    """Train cells of one shape together."""
    if batch[0].parameters.trained in LAYERS:
        yield from train_layers(batch, training)
        return
    yield from without_gradients(lambda: _LayersTogether(batch, training).train())


@dataclass
class _LayerState(CellState[P]):
    problem: Problem


class _LayersTogether(BatchedTraining[P, _LayerState, Step]):
    def __init__(self, batch: Sequence[RegressionCell], training: Training) -> None:
        settings = [cell.parameters for cell in batch]
        problems = [draw_problem(cell.parameters, cell.seed) for cell in batch]
        first = settings[0]
        self._fixed, self._state = engine.set_up(
            KERNELS[first.kernel],
            cast("engine.Trained", first.trained),  # layers on top are trained elsewhere
            problems,
            [values.step_size for values in settings],
            dtype=getattr(torch, first.dtype),
            device=training.device,
        )
        start = engine.forward(self._fixed, self._state)
        measured = self._fixed, self._state, start, problems
        self._initial = _initial_measurements(*measured)
        self._initial |= tangent.initial_columns(*measured, settings)
        self._rates = {name: self._tensor(self._initial[f"rate_{name}"]) for name in RATES}
        decades = self._tensor(self._initial["log10_gamma"])
        self._rates[GAMMA] = torch.pow(10.0, decades)
        self._counts = StepCounts(start.loss, self._rates)
        self._descent = Descent(start.loss, self._fixed.learning_rate)
        self._ratios = LipschitzRatios(self._fixed, start.loss)
        self._smallest_ratio = torch.full_like(start.loss, torch.inf)  # (cells,)
        self._gradient = start.loss  # of the last step measured, (cells,)
        self._before: Step | None = None  # the step before, where it was measured
        states = [_LayerState(*pair) for pair in zip(batch, problems, strict=True)]
        last = first.training_steps
        super().__init__(states, training, set(logged_steps(last)), last)

    def forward(self, step: int) -> Step:
        now = engine.step_at(self._fixed, self._state, step)
        self._counts.add(step, now.out.loss, self._bounds(step))
        self._descent.add(now.out.loss, engine.squared_norm(self._fixed, now.gradients))
        if self._before is not None:
            self._ratios.add(self._before, now)
        self._before = None
        return now

    def take_step(self, now: Step) -> None:
        self._state = engine.next_state(self._fixed, now)

    def _bounds(self, step: int) -> dict[str, Tensor]:
        learning_rate = self._fixed.learning_rate
        return {name: bound(rate, learning_rate, step) for name, rate in self._rates.items()}

    def measure(self, step: int, now: Step, due: Sequence[int]) -> list[Row]:
        self._before, out = now, now.out
        squared = measures.squared_gradients(self._fixed, now.state, out)
        trained = self._fixed.trained
        # ‖∇f‖² in what is trained, (cells,)
        total = torch.stack(list(squared.values())).sum(0) if trained == "all" else squared[trained]
        ratio = total / (2 * out.loss)  # (cells,)
        above = out.loss / self._counts.start > ROUND_OFF
        self._smallest_ratio = torch.fmin(
            self._smallest_ratio, torch.where(above, ratio, torch.inf)
        )
        self._gradient = total.sqrt()
        if not self.training.logs:
            return [{}] * len(due)
        row = {
            "pl_ratio": ratio,
            **{f"gradient_{name}": value.sqrt() for name, value in squared.items()},
            **self._theory_row(step, now.state, out),
        }
        columns = {name: values.tolist() for name, values in row.items()}
        diverged = self._counts.diverged.tolist()
        return [
            {name: values[index] for name, values in columns.items()}
            if diverged[index] < 0 or step <= diverged[index]
            else {}
            for index in due
        ]

    def keep(self, row: Row) -> Row:
        """Log infinite ratios too: of a loss that is zero."""
        return row

    def _theory_row(self, step: int, state: Projections, out: ForwardPass) -> dict[str, Tensor]:
        fixed, start = self._fixed, self._counts.start
        delta = measures.smallest_of_scores(fixed, state).amin(-1)
        lambda_b = measures.smallest_singular_value_of_b(fixed, out)
        return {
            "train_loss": out.loss,
            "floor": self._tensor(self._initial["floor"]),
            **{f"bound_{name}": start * self._bounds(step)[name] for name in RATES},
            "delta": delta,
            "lambda_b": lambda_b,
            "pl_bound": measures.polyak_lojasiewicz_bound(fixed, state, out, delta, lambda_b),
            "smallest_attention": measures.smallest_attention(out),
        }

    def results(self, step: int, now: Step, rows: Mapping[int, Row]) -> Results[P]:
        for index in rows:
            cell = self.cells[index].cell
            measured = {name: values[index] for name, values in self._initial.items()}
            diverged = int(self._counts.diverged[index])
            if diverged >= 0:
                yield CellResult(cell, known_numbers(measured, infinite=True), diverged, "diverged")
            else:
                measured |= self._final_measurements(index, float(now.out.loss[index]))
                yield CellResult(cell, known_numbers(measured, infinite=True), step)

    def _final_measurements(self, index: int, loss: float) -> dict[str, float]:
        counts, start = self._counts, float(self._counts.start[index])
        measured = {
            "relative_loss": loss / start if start > 0 else math.nan,
            "train_loss": loss,
            "gradient": float(self._gradient[index]),
            **counts.steps_to(index),
            "pl_ratio_min": float(self._smallest_ratio[index]),
            "descent": float(self._descent.least()[index]),
            **self._lipschitz(index),
        }
        for name in (*RATES, GAMMA):
            if not self._rates[name][index].isnan():
                measured[f"violations_{name}"] = int(counts.violations[name][index])
        return measured

    def _lipschitz(self, index: int) -> dict[str, float]:
        trained, path = self._fixed.trained, float(self._descent.path()[index])
        sizes = lemmas.norms_of(self.cells[index].problem, trained, path)
        constants = lemmas.lipschitz_constants(sizes, self._fixed.kernel, trained)
        outputs, gradients = (float(ratio[index]) for ratio in self._ratios.largest())
        return {
            "lemma_outputs": outputs / constants[0],
            "lemma_change": gradients / constants[1],
        }

    def _tensor(self, values: Sequence[float]) -> Tensor:
        return self._fixed.learning_rate.new_tensor(values)


def _initial_measurements(
    fixed: Constants, state: Projections, out: ForwardPass, problems: Sequence[Problem]
) -> dict[str, list[float]]:
    lambda_b = measures.smallest_singular_value_of_b(fixed, out).tolist()
    delta = measures.smallest_of_scores(fixed, state).tolist()
    least, largest = measures.curvatures(fixed, out)
    gradients = measures.squared_gradients(fixed, state, out)
    residuals = out.residual.flatten(1).norm(dim=1).tolist()  # ‖MH(M₀) − y‖ of each cell
    by_cell = [
        _theory_of_cell(fixed, *each)
        for each in zip(problems, lambda_b, delta, residuals, least.tolist(), strict=True)
    ]
    return {
        "start_loss": out.loss.tolist(),
        "lambda_b": lambda_b,
        "delta": list(map(min, delta)),
        "stability": (fixed.learning_rate * largest).tolist(),
        **{f"gradient_{name}_start": gradients[name].sqrt().tolist() for name in ("query", "key")},
        **{name: [columns[name] for columns in by_cell] for name in by_cell[0]},
        "lemma_gradients": lemmas.gradient_ratios(fixed, state, out, problems).tolist(),
    }


def _theory_of_cell(
    fixed: Constants,
    problem: Problem,
    lambda_b: float,
    delta: Sequence[float],
    residual: float,
    curvature: float,
) -> dict[str, float]:
    query = fixed.trained == "query"
    paper, corrected = theory.rates(problem, lambda_b, fixed.trained)
    return {
        "floor": theory.loss_floor(fixed.kernel, problem) if query else math.nan,
        "rate_paper": math.nan if query else paper,
        "rate_margin": math.nan if query or not paper else 2 * curvature / paper,
        "rate_corrected": math.nan if query else corrected,
        "log10_gamma": theory.log10_gamma(problem, min(delta)) if query else math.nan,
        "condition_8": theory.condition_8(problem, residual, lambda_b),
        "condition_46": theory.condition_46(problem, lambda_b),
        "condition_12": theory.condition_12(problem, residual, delta),
    }
