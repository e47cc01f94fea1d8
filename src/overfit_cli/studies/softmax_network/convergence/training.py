"""Training of cells of one shape together, with measurements at logged steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from overfit_cli.core.cell import CellResult, Results
from overfit_cli.core.together import CellState, CellsTogether
from overfit_cli.core.training import Row, Training, drop_nonfinite, failure, logged_steps
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


@dataclass
class _NetworkState(CellState[SoftmaxConvergenceParameters]):
    """A cell in training.

    Attributes:
        first: what is measured before the first step.
        residual: ‖F − Y‖² there.
        contraction: log(1 − m η λ/2), by which Theorem 4.2 has its logarithm fall at every step.
        rate_ratio: ‖F − Y‖² over what that leaves of it, at most.
        largest: the columns of `LARGEST`.
    """

    first: dict[str, float]
    residual: float
    contraction: float
    rate_ratio: float = 0.0
    largest: dict[str, float] = field(default_factory=dict)

    def hold_to_the_rate(self, step: int, square: float) -> None:
        """Hold ‖F − Y‖² after a step to the stated rate, as long as it is more than round-off."""
        if step and square > theory.ROUND_OFF * self.residual:
            logarithm = math.log(square / self.residual) - step * self.contraction
            self.rate_ratio = max(self.rate_ratio, math.exp(min(logarithm, 700.0)))

    def add(self, row: Row) -> None:
        """Keep the largest values of a logged step."""
        for name in LARGEST:
            self.largest[name] = max(row[name], self.largest.get(name, 0.0))


@dataclass(frozen=True)
class _Pass:
    """A forward pass over the training inputs.

    Attributes:
        out: the networks' outputs.
        residual: F − F(0) − Y, shape (cells, n, outputs).
        squares: ‖F − F(0) − Y‖² of each cell.
    """

    out: Outputs
    residual: Tensor
    squares: list[float]


def train_batch(
    batch: Sequence[ConvergenceCell], training: Training
) -> Results[SoftmaxConvergenceParameters]:
    """Train cells that differ in their seeds, draws and step sizes alone."""
    with torch.no_grad():
        results = list(_NetworksTogether(batch, training).train())
    yield from results


class _NetworksTogether(CellsTogether[SoftmaxConvergenceParameters, _NetworkState, _Pass]):
    """Gradient descent on networks, beside regression with their tangent kernels."""

    def __init__(self, batch: Sequence[ConvergenceCell], training: Training) -> None:
        settings = [cell.parameters for cell in batch]
        problems = [draw_problem(cell.parameters, cell.seed) for cell in batch]
        self._settings = settings[0]
        self._beside = set_up(settings, problems, training.device)
        last = self._settings.training_steps
        logged = set(logged_steps(last, ratio=RATIO))
        super().__init__(self._states(batch), training, logged, last)

    def _states(self, batch: Sequence[ConvergenceCell]) -> list[_NetworkState]:
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
            _NetworkState(
                cell,
                {name: column[i] for name, column in values.items()},
                residuals[i],
                contractions[i],
            )
            for i, cell in enumerate(batch)
        ]

    def forward(self, step: int) -> _Pass:
        out = self._beside.net.forward(self._beside.inputs)
        residual = self._beside.residual(out)
        squares = residual.square().sum((1, 2)).tolist()
        for state, square in zip(self.cells, squares, strict=True):
            state.hold_to_the_rate(step, square)
        return _Pass(out, residual, squares)

    def ends(self, now: _Pass) -> list[bool]:
        epsilon = self._settings.epsilon
        return [not math.isfinite(square) or square <= epsilon for square in now.squares]

    def take_step(self, now: _Pass) -> None:
        sizes = self._beside.step_sizes[:, None, None]  # η, (cells, 1, 1)
        gradient = now.out.gradient(now.residual)  # (cells, m, d)
        self._beside.net.weights.addcmul_(sizes, gradient, value=-1)

    def select(self, kept: Sequence[int]) -> None:
        self._beside = self._beside.select(torch.tensor(kept, device=self._beside.inputs.device))

    def measure(self, step: int, now: _Pass, due: Sequence[int]) -> list[Row]:
        values = _lists(_at_step(self._beside, step, now.out, now.residual))
        rows: list[Row] = []
        for place in due:
            row = {name: column[place] for name, column in values.items()}
            if math.isfinite(row["train_loss"]):
                self.cells[place].add(row)
                rows.append(row)
            else:
                rows.append({})
        return rows

    def results(
        self, step: int, now: _Pass, rows: Mapping[int, Row]
    ) -> Results[SoftmaxConvergenceParameters]:
        for place, row in rows.items():
            yield self._result(place, step, row)

    def _result(self, place: int, step: int, row: Row) -> CellResult[SoftmaxConvergenceParameters]:
        state = self.cells[place]
        cell = state.cell
        if not row:
            return CellResult(cell, drop_nonfinite(state.first), step, "diverged")
        square = 2 * row["train_loss"]
        reason = failure(square, cell.parameters.epsilon)
        measured = {**row, **state.first, **state.largest, "rate_ratio": state.rate_ratio}
        if not reason:
            measured |= {
                "steps_to_epsilon": step,
                "steps_over_ntk": _over(step, state.first["ntk_steps"]),
                "steps_over_limit": _over(step, state.first["limit_steps"]),
            }
        if square > theory.ROUND_OFF * state.residual:
            whole = math.log(square / state.residual)
            measured["contraction"] = _over(-whole, -step * state.contraction)
        if self._settings.verify:
            net = self._beside.net.select(torch.tensor([place], device=self._beside.inputs.device))
            measured["shift_change"] = float(shift_change(net, self._beside.inputs[place][None]))
        measured |= theory.columns(cell.parameters, measured, math.sqrt(state.residual))
        return CellResult(cell, drop_nonfinite(measured), step, reason)


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
    return {name: column.tolist() for name, column in columns.items()}


def _over(steps: float, others: float) -> float:
    return steps / others if others > 0 else math.nan
