"""Training of a batch of cells, with counts over all steps and measurements at logged ones."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TypeVar

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
)
from overfit_cli.studies.attention_kernel import engine, layers, lemmas, spectra, theory
from overfit_cli.studies.attention_kernel.data import Problem, draw_problem
from overfit_cli.studies.attention_kernel.engine import Constants, ForwardPass, Projections, Step
from overfit_cli.studies.attention_kernel.parameters import (
    LAYERS,
    KernelRegressionParameters,
    RegressionCell,
)

P = KernelRegressionParameters

DIVERGED = 1e12
"""A cell whose loss is more than this times its start has diverged."""

ROUND_OFF = 1e-20
"""Shares of the starting loss below this are round-off: bounds and ratios aren't checked there."""

SLACK = 1e-9
"""A loss is above a bound only if it is so by this share."""

DIGITS = 1e6
"""A fall of the loss is checked where it must be this many times its round-off."""

BLOCK = 64
"""Steps whose descent is looked at together."""


def train_batch(batch: Sequence[RegressionCell], training: Training) -> Results[P]:
    """Train cells of one shape together."""
    with_layers = batch[0].parameters.trained in LAYERS
    made = _WithLayers if with_layers else _Attention
    return made(batch, training).train()


Pass = TypeVar("Pass", Step, layers.Pass)


class _Together(BatchedTraining[P, CellState[P], Pass]):
    """Cells that take all steps together.

    `initial` has what is measured of each at the initial weights, and `rates` those of the bounds
    that are counted.
    """

    def __init__(
        self,
        batch: Sequence[RegressionCell],
        training: Training,
        start: Tensor,
        initial: Sequence[Row],
        rates: Mapping[str, Tensor],
    ) -> None:
        last = batch[0].parameters.training_steps
        states = [CellState(cell) for cell in batch]
        super().__init__(states, training, set(logged_steps(last)), last)
        self.start, self.initial, self.rates = start, initial, rates  # f(M_0), (cells,)
        never = torch.full_like(start, -1, dtype=torch.int64)  # (cells,)
        self._diverged = never
        # the first step at so small a share of the start; −1 before
        self._arrived = {"millionth": (1e-6, never), "trillionth": (1e-12, never)}
        self._above = {name: torch.zeros_like(never) for name in rates}

    def count(self, step: int, loss: Tensor, bounds: Mapping[str, Tensor]) -> None:
        """Count a step, given the bounds on the losses' share of their start."""
        share = loss / self.start  # f(M_t)/f(M_0), (cells,)
        gone = ~torch.isfinite(loss) | (share > DIVERGED)  # (cells,)
        self._diverged = _first(self._diverged, gone, step)
        for name, (least, known) in self._arrived.items():
            self._arrived[name] = least, _first(known, share <= least, step)
        for name, limit in bounds.items():
            self._above[name] += (share > limit * (1 + SLACK)) & (limit > ROUND_OFF)

    def results(self, step: int, now: Pass, rows: Mapping[int, Row]) -> Results[P]:
        for index in rows:
            cell, measured = self.cells[index].cell, dict(self.initial[index])
            if (diverged := int(self._diverged[index])) >= 0:
                yield CellResult(cell, known_numbers(measured, infinite=True), diverged, "diverged")
                continue
            loss, start = float(now.out.loss[index]), float(self.start[index])
            measured |= {"train_loss": loss, "relative_loss": loss / start if start else math.nan}
            for name, (_, steps) in self._arrived.items():
                if steps[index] >= 0:
                    measured[f"steps_to_{name}"] = int(steps[index])
            for name, above in self._above.items():
                if not self.rates[name][index].isnan():
                    measured[f"violations_{name}"] = int(above[index])
            measured |= self.at_end(index)
            yield CellResult(cell, known_numbers(measured, infinite=True), step)

    @abstractmethod
    def at_end(self, index: int) -> Row:
        """Return what else is measured of a cell at the last step."""

    def rows(self, step: int, due: Sequence[int], columns: Mapping[str, Tensor]) -> list[Row]:
        """Return what is logged of some cells; those that diverged before have no more rows."""
        if not self.training.logs:
            return [{}] * len(due)
        values = {name: column.tolist() for name, column in columns.items()}
        gone = ((self._diverged >= 0) & (self._diverged < step)).tolist()
        return [{} if gone[i] else {name: each[i] for name, each in values.items()} for i in due]


def _first(known: Tensor, there: Tensor, step: int) -> Tensor:
    return torch.where(there & (known < 0), step, known)


class _WithLayers(_Together[layers.Pass]):
    def __init__(self, batch: Sequence[RegressionCell], training: Training) -> None:
        problems = [draw_problem(cell.parameters, cell.seed) for cell in batch]
        self._fixed, self._mixing, self._state = layers.set_up(batch, problems, training.device)
        start = layers.pass_at(self._fixed, self._mixing, self._state).out
        lambda_b = spectra.smallest_of_b(self._fixed, start).tolist()
        initial = [
            {"start_loss": loss, "lambda_b": least}
            for loss, least in zip(start.loss.tolist(), lambda_b, strict=True)
        ]
        super().__init__(batch, training, start.loss, initial, {})

    def forward(self, step: int) -> layers.Pass:
        now = layers.pass_at(self._fixed, self._mixing, self._state)
        self._next, self._squares = layers.next_state(self._fixed, now)
        self.count(step, now.out.loss, {})
        return now

    def take_step(self, now: layers.Pass) -> None:
        self._state = self._next

    def measure(self, step: int, now: layers.Pass, due: Sequence[int]) -> list[Row]:
        logged = {"train_loss": now.out.loss, "gradient": self._squares.sqrt()}
        return self.rows(step, due, logged)

    def at_end(self, index: int) -> Row:
        return {"gradient": math.sqrt(float(self._squares[index]))}


class _Attention(_Together[Step]):
    def __init__(self, batch: Sequence[RegressionCell], training: Training) -> None:
        settings = [cell.parameters for cell in batch]
        self._problems = [draw_problem(cell.parameters, cell.seed) for cell in batch]
        fixed, self._state = engine.set_up(settings, self._problems, training.device)
        start = engine.forward(fixed, self._state)
        initial = _at_start(fixed, self._state, start, self._problems, settings)

        def initially(name: str) -> Tensor:
            return start.loss.new_tensor([row.get(name, math.nan) for row in initial])  # (cells,)

        rates = {name: initially(f"rate_{name}") for name in ("paper", "corrected")}
        rates["gamma"] = torch.pow(10.0, initially("log10_gamma"))  # of Theorem 3
        self._floor = initially("floor")
        super().__init__(batch, training, start.loss, initial, rates)
        self._fixed, self._descent = fixed, Descent(start.loss, fixed.learning_rate)
        self._ratios = lemmas.LipschitzRatios(fixed, start.loss)
        self._smallest_ratio = torch.full_like(start.loss, torch.inf)  # (cells,)
        self._before: Step | None = None  # the step before, where it was measured

    def forward(self, step: int) -> Step:
        now = engine.step_at(self._fixed, self._state)
        self._squares = engine.squared_norm(self._fixed, now.gradients)  # ‖∇f‖², (cells,)
        self.count(step, now.out.loss, self._bounds(step))
        self._descent.add(now.out.loss, self._squares)
        if self._before is not None:
            self._ratios.add(self._before, now)
        self._before = None
        return now

    def take_step(self, now: Step) -> None:
        self._state = engine.next_state(self._fixed, now)

    def _bounds(self, step: int) -> dict[str, Tensor]:
        learning_rate = self._fixed.learning_rate
        return {name: bound(rate, learning_rate, step) for name, rate in self.rates.items()}

    def measure(self, step: int, now: Step, due: Sequence[int]) -> list[Row]:
        self._before, loss = now, now.out.loss
        ratio = self._squares / (2 * loss)  # (cells,)
        above = loss / self.start > ROUND_OFF
        shown = torch.where(above, ratio, torch.inf)
        self._smallest_ratio = torch.fmin(self._smallest_ratio, shown)
        bounds = self._bounds(step)
        logged = {
            "train_loss": loss,
            "floor": self._floor,
            "bound_paper": self.start * bounds["paper"],
            "bound_corrected": self.start * bounds["corrected"],
            "gradient": self._squares.sqrt(),
        }
        return self.rows(step, due, logged)

    def at_end(self, index: int) -> Row:
        fixed, path = self._fixed, float(self._descent.path()[index])
        norms = theory.norms_of(self._problems[index], fixed.trained, path)
        z, g = lemmas.lipschitz_constants(norms, fixed.kernel, fixed.trained)
        return {
            "gradient": math.sqrt(float(self._squares[index])),
            "pl_ratio_min": float(self._smallest_ratio[index]),
            "descent": float(self._descent.least()[index]),
            "lemma_outputs": float(self._ratios.outputs[index]) / z,
            "lemma_change": float(self._ratios.gradients[index]) / g,
        }


def _at_start(
    fixed: Constants,
    state: Projections,
    out: ForwardPass,
    problems: Sequence[Problem],
    settings: Sequence[P],
) -> list[dict[str, float]]:
    """Return each cell's columns at the initial weights."""
    least, largest = spectra.curvatures(fixed, out)
    in_query, in_key = (
        engine.squared_norm(fixed, engine.gradients(fixed, state, out, (name,))).sqrt()
        for name in ("query", "key")
    )
    columns = {
        "start_loss": out.loss,
        "lambda_b": spectra.smallest_of_b(fixed, out),
        "stability": fixed.learning_rate * largest,
        "gradient_query_start": in_query,
        "gradient_key_start": in_key,
        "lemma_gradients": lemmas.gradient_ratios(fixed, state, out, problems),
    }
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    rows = [dict(zip(columns, numbers, strict=True)) for numbers in values]
    tangents = spectra.tangent_columns(fixed, state, out, problems, settings)
    deltas = spectra.smallest_of_scores(fixed, state).tolist()
    residuals = out.residual.flatten(1).norm(dim=1).tolist()  # ‖MH(M₀) − y‖ of each cell
    for index, row in enumerate(rows):
        problem, delta, lambda_b = problems[index], deltas[index], row["lambda_b"]
        norms, residual = theory.norms_of(problem), residuals[index]
        row |= {
            "delta": min(delta),
            "condition_8": theory.condition_8(norms, residual, lambda_b),
            "condition_46": theory.condition_46(norms, lambda_b),
            "condition_12": theory.condition_12(norms, residual, delta),
            **tangents[index],
        }
        if fixed.trained == ("query",):
            row["floor"] = theory.loss_floor(fixed.kernel, problem)
            row["log10_gamma"] = theory.log10_gamma(norms, min(delta))
        else:
            paper, corrected = theory.rates(problem, lambda_b, settings[index].trained)
            row |= {"rate_paper": paper, "rate_corrected": corrected}
            row["rate_margin"] = 2 * float(least[index]) / paper if paper else math.nan
    return rows


def bound(rate: Tensor, learning_rate: Tensor, step: int) -> Tensor:
    """Return (1 − ηα)^step, (cells,): 0 where ηα is above 1, nan where the rate α is."""
    shares = (1 - learning_rate * rate).clamp(min=0) ** step
    return torch.where(rate.isnan(), torch.nan, shares)  # nan to the power of 0 is 1


class Descent:
    """How much of equation (14)'s fall the loss makes: (f(M_0) − f(M_t)) / η Σ_{r<t} ‖∇f(M_r)‖²."""

    def __init__(self, start: Tensor, learning_rate: Tensor) -> None:
        self._start, self._learning_rate = start, learning_rate
        self._told = start * (DIGITS * torch.finfo(start.dtype).eps)  # (cells,)
        self._least = torch.full_like(start, torch.inf)  # (cells,)
        self._fall = self._path = torch.zeros_like(start)  # η Σ ‖∇f‖² and η Σ ‖∇f‖ so far, (cells,)
        self._steps: list[tuple[Tensor, Tensor]] = []  # losses and squares

    def add(self, loss: Tensor, squared: Tensor) -> None:
        """Take in a step's loss and squared gradient."""
        self._steps.append((loss, squared))
        if len(self._steps) == BLOCK:
            self._look()

    def least(self) -> Tensor:
        """Return the smallest ratio over steps t ≥ 1; nan where no step tells."""
        self._look()
        return self._least.where(self._least.isfinite(), torch.nan)

    def path(self) -> Tensor:
        """Return Σ η ‖∇f(M_r)‖, the length of the way that the weights came."""
        self._look()
        return self._path

    def _look(self) -> None:
        if not self._steps:
            return
        losses, squares = map(torch.stack, zip(*self._steps, strict=True))  # (steps, cells)
        # η Σ_{r≤t} ‖∇f(M_r)‖², (steps, cells)
        after = self._fall + self._learning_rate * squares.cumsum(0)
        before = torch.cat([self._fall[None], after[:-1]])  # η Σ_{r<t} ‖∇f(M_r)‖², (steps, cells)
        tells = (before > self._told) & (losses > ROUND_OFF * self._start)
        ratio = ((self._start - losses) / before).where(tells, torch.inf)  # (steps, cells)
        self._least = torch.fmin(self._least, ratio.amin(0))
        self._fall = after[-1]
        self._path = self._path + self._learning_rate * squares.sqrt().sum(0)
        self._steps = []
