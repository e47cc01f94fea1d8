"""Training of cells of one shape together, with measurements at logged steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from overfit_cli.core.cell import CellResult, Results
from overfit_cli.core.training import Training, failure, logged_steps
from overfit_cli.studies.softmax_network.activations import Outputs, gram_matrix
from overfit_cli.studies.softmax_network.convergence import theory
from overfit_cli.studies.softmax_network.convergence.data import draw_problem
from overfit_cli.studies.softmax_network.convergence.engine import (
    Comparison,
    flat,
    kernel_checks,
    set_up,
    shift_change,
)
from overfit_cli.studies.softmax_network.convergence.parameters import (
    ConvergenceCell,
    SoftmaxConvergenceParameters,
)

RATIO = 1.25
"""The ratio of a logged step to the one before, after the first ten."""

LARGEST = (
    "movement",
    "kernel_drift",
    "test_drift",
    "train_gap",
    "gradient_gap",
    "test_gap",
    "test_gap_most",
)
"""What a cell has of its logged steps: the largest value."""

Row = dict[str, float]


@dataclass
class _Seen:
    """What was seen of a cell so far.

    Attributes:
        first: what is measured before the first step.
        residual: ‖F − Y‖² there.
        contraction: log(1 − m η λ/2), by which Theorem 4.2 has its logarithm fall at every step.
        rate_ratio: ‖F − Y‖² over what that leaves of it, at most.
        largest: the columns of `LARGEST`.
    """

    first: Row
    residual: float
    contraction: float
    rate_ratio: float = 0.0
    largest: Row = field(default_factory=dict)

    def hold_to_the_rate(self, step: int, square: float) -> None:
        """Hold ‖F − Y‖² after a step to the stated rate, as long as it is more than round-off."""
        if step and square > theory.ROUND_OFF * self.residual:
            logarithm = math.log(square / self.residual) - step * self.contraction
            self.rate_ratio = max(self.rate_ratio, math.exp(min(logarithm, 700.0)))

    def add(self, row: Row) -> None:
        """Keep the largest values of a logged step."""
        for name in LARGEST:
            self.largest[name] = max(row[name], self.largest.get(name, 0.0))


def train_batch(
    batch: Sequence[ConvergenceCell], training: Training
) -> Results[SoftmaxConvergenceParameters]:
    """Train cells that differ in their seeds, draws and step sizes alone."""
    with torch.no_grad():
        results = _Run(batch, training).results()
    yield from results


class _Run:
    """Cells in training: those still going, and what was seen of them."""

    def __init__(self, batch: Sequence[ConvergenceCell], training: Training) -> None:
        settings = [cell.parameters for cell in batch]
        problems = [draw_problem(cell.parameters, cell.seed) for cell in batch]
        self._training, self._settings = training, settings[0]
        self._cells = list(batch)
        self._beside = set_up(settings, problems, training.device)
        self._seen = self._at_first()

    def _at_first(self) -> list[_Seen]:
        """Measure before the first step."""
        beside, epsilon = self._beside, self._settings.epsilon
        regression, limit = beside.regression, beside.limit
        columns = {
            "lambda_start": regression.smallest,
            "kappa": regression.largest / regression.smallest,
            "lambda_limit": limit.smallest,
            "kappa_limit": limit.largest / limit.smallest,
            "step_size": beside.step_sizes,
            "gradient_growth": regression.growth_by_gradient(self._settings.m),
            **(kernel_checks(beside) if self._settings.verify else {}),
        }
        values = _lists(columns)
        values |= {
            "ntk_steps": regression.steps_to(epsilon),
            "limit_steps": limit.steps_to(epsilon),
        }
        residuals = beside.labels.square().sum((1, 2)).tolist()
        contractions = regression.stated_contraction().tolist()
        return [
            _Seen({name: one[place] for name, one in values.items()}, *both)
            for place, both in enumerate(zip(residuals, contractions, strict=True))
        ]

    def results(self) -> list[CellResult[SoftmaxConvergenceParameters]]:
        """Take all steps, and return the results in the order in which the cells end."""
        last = self._settings.training_steps
        logged = set(logged_steps(last, ratio=RATIO))
        results: list[CellResult[SoftmaxConvergenceParameters]] = []
        for step in range(last + 1):
            out = self._beside.net.forward(self._beside.inputs)
            residual = self._beside.residual(out)
            squares = residual.square().sum((1, 2)).tolist()
            for seen, square in zip(self._seen, squares, strict=True):
                seen.hold_to_the_rate(step, square)
            ended = [step == last or self._ends(square) for square in squares]
            due = [step in logged or over for over in ended]
            if any(due):
                rows = self._measure(step, out, residual, due)
                results += [self._result(i, step, rows[i]) for i, over in enumerate(ended) if over]
            if all(ended):
                break
            self._take_step(out.gradient(residual))
            if any(ended):
                self._keep([place for place, over in enumerate(ended) if not over])
        return results

    def _ends(self, square: float) -> bool:
        return not math.isfinite(square) or square <= self._settings.epsilon

    def _take_step(self, gradient: Tensor) -> None:
        sizes = self._beside.step_sizes[:, None, None]
        self._beside.net.weights.addcmul_(sizes, gradient, value=-1)

    def _keep(self, places: Sequence[int]) -> None:
        """Go on without the cells that have ended."""
        self._beside = self._beside.select(torch.tensor(places, device=self._beside.inputs.device))
        self._cells = [self._cells[place] for place in places]
        self._seen = [self._seen[place] for place in places]

    def _measure(self, step: int, out: Outputs, residual: Tensor, due: Sequence[bool]) -> list[Row]:
        """Measure all cells at a step, and log it for those that are due and haven't diverged."""
        values = _lists(_at_step(self._beside, step, out, residual))
        rows = [{name: one[i] for name, one in values.items()} for i in range(len(self._cells))]
        for cell, seen, row, now in zip(self._cells, self._seen, rows, due, strict=True):
            if now and math.isfinite(row["train_loss"]):
                seen.add(row)
                self._training.log(cell, step, _known(row))
        return rows

    def _result(self, place: int, step: int, row: Row) -> CellResult[SoftmaxConvergenceParameters]:
        cell, seen = self._cells[place], self._seen[place]
        if not math.isfinite(row["train_loss"]):
            return CellResult(cell, _known(seen.first), step, "diverged")
        square = 2 * row["train_loss"]
        reason = failure(square, cell.parameters.epsilon)
        measured = row | seen.first | seen.largest | {"rate_ratio": seen.rate_ratio}
        if not reason:
            measured |= {
                "steps_to_epsilon": step,
                "steps_over_ntk": _over(step, seen.first["ntk_steps"]),
                "steps_over_limit": _over(step, seen.first["limit_steps"]),
            }
        if square > theory.ROUND_OFF * seen.residual:
            whole = math.log(square / seen.residual)
            measured["contraction"] = _over(-whole, -step * seen.contraction)
        if self._settings.verify:
            net = self._beside.net.select(torch.tensor([place], device=self._beside.inputs.device))
            measured["shift_change"] = float(shift_change(net, self._beside.inputs[place][None]))
        measured |= theory.columns(cell.parameters, measured, math.sqrt(seen.residual))
        return CellResult(cell, _known(measured), step, reason)


def _at_step(beside: Comparison, step: int, out: Outputs, residual: Tensor) -> dict[str, Tensor]:
    """What is measured at a logged step, each (cells,).

    Args:
        beside: the cells.
        step: which.
        out: at the training inputs.
        residual: F − F(0) − Y there, shape (cells, n, outputs).
    """
    regression, tested = beside.regression, beside.net.forward(beside.tests)
    gram, cross = gram_matrix(out), gram_matrix(tested, out)
    learned = flat(residual + beside.labels)
    gap = flat(tested.values - beside.test_start)
    gap = gap - regression.predictions_elsewhere(beside.cross, step)
    spectrum = torch.linalg.eigvalsh(gram.nan_to_num(0.0, 0.0, 0.0))
    size = beside.labels.flatten(1).norm(dim=1)
    outputs, tests = residual.shape[-1], beside.tests.shape[1]
    drift = (cross - beside.cross).view(len(cross), outputs, tests, -1)
    return {
        "train_loss": residual.square().sum((1, 2)) / 2,
        "ntk_loss": regression.remaining(step).square().sum(1) / 2,
        "lambda_min": spectrum[:, 0],
        "lambda_max": spectrum[:, -1],
        "movement": (beside.net.weights - beside.start.weights).norm(dim=-1).amax(1),
        "kernel_drift": (gram - beside.gram).flatten(1).norm(dim=1),
        "test_drift": drift.norm(dim=-1).amax((1, 2)),
        "train_gap": (learned - regression.predictions(step)).norm(dim=1) / size,
        "gradient_gap": (learned - regression.predictions_by_gradient(step)).norm(dim=1) / size,
        "test_gap": gap.square().mean(1).sqrt(),
        "test_gap_most": gap.abs().amax(1),
    }


def _lists(columns: Mapping[str, Tensor]) -> dict[str, list[float]]:
    return {name: one.tolist() for name, one in columns.items()}


def _known(row: Row) -> Row:
    return {name: value for name, value in row.items() if math.isfinite(value)}


def _over(steps: float, others: float) -> float:
    return steps / others if others > 0 else math.nan
