"""Training of cells of one shape together, with measurements at logged steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from overfit_cli.core.cell import CellResult, Results
from overfit_cli.core.training import (
    BatchedTraining,
    CellState,
    Row,
    Training,
    failure,
    known_numbers,
    logged_steps,
)
from overfit_cli.studies.softmax_network.activations import Outputs, gram_matrix
from overfit_cli.studies.softmax_network.convergence.data import draw_problem
from overfit_cli.studies.softmax_network.convergence.engine import (
    Comparison,
    drift_checks,
    flat,
    set_up,
    step_parts,
)
from overfit_cli.studies.softmax_network.convergence.parameters import (
    ConvergenceCell,
    SoftmaxConvergenceParameters,
)
from overfit_cli.studies.softmax_network.regression import above_round_off
from overfit_cli.studies.softmax_network.theory import Statement

P = SoftmaxConvergenceParameters
ROUND_OFF = 1e-14
"""The share of the starting ‖F − Y‖² below which what is left is round-off."""

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
    "c1",
)
"""Columns of a cell that are the largest value of its logged steps."""

UNLOGGED = (
    "c0_over_bound",
    "gradient_over_bound",
    "step_length",
    "lambda_lost",
)
"""The same, which are columns of a cell alone; some are completed by `_stated_columns`."""


@dataclass
class _NetworkState(CellState[P]):
    first: dict[str, float]  # what is measured before the first step
    residual: float  # ‖F − Y‖² there
    # log(1 − m η λ/2), by which Lemma E.2 has its logarithm fall at every step
    contraction: float
    rate_ratio: float = 0.0  # ‖F − Y‖² over what that leaves of it, at most
    largest: dict[str, float] = field(default_factory=dict)  # the columns of `LARGEST`

    def hold_to_the_rate(self, step: int, square: float) -> None:
        """Hold ‖F − Y‖² after a step to the stated rate, as long as it is more than round-off."""
        if step and square > ROUND_OFF * self.residual:
            logarithm = math.log(square / self.residual) - step * self.contraction
            self.rate_ratio = max(self.rate_ratio, math.exp(min(logarithm, 700.0)))

    def add(self, row: Row) -> None:
        for name in (*LARGEST, *UNLOGGED):
            if not math.isnan(row.get(name, math.nan)):
                self.largest[name] = max(row[name], self.largest.get(name, -math.inf))


@dataclass(frozen=True)
class _Pass:
    out: Outputs  # the networks' outputs
    residual: Tensor  # F − F(0) − Y, (cells, n, outputs)
    squares: list[float]  # ‖F − F(0) − Y‖² of each cell


def train_batch(batch: Sequence[ConvergenceCell], training: Training) -> Results[P]:
    """Train cells that differ in their seeds, draws and step sizes alone."""
    with torch.no_grad():
        results = list(_NetworksTogether(batch, training).train())
    yield from results


class _NetworksTogether(BatchedTraining[P, _NetworkState, _Pass]):
    def __init__(self, batch: Sequence[ConvergenceCell], training: Training) -> None:
        settings = [cell.parameters for cell in batch]
        problems = [draw_problem(cell.parameters, cell.seed) for cell in batch]
        self._settings = settings[0]
        self._comparison = set_up(settings, problems, training.device)
        last = self._settings.training_steps
        logged = set(logged_steps(last, ratio=RATIO))
        super().__init__(self._states(batch), training, logged, last)

    def _states(self, batch: Sequence[ConvergenceCell]) -> list[_NetworkState]:
        comparison, epsilon = self._comparison, self._settings.epsilon
        regression, limit = comparison.regression, comparison.limit
        columns = {
            "lambda_start": _null_if_zero(regression.smallest),
            "kappa": regression.largest / regression.smallest,  # infinite where singular
            "step_size": comparison.step_sizes,
            "gradient_growth": regression.growth_by_gradient(self._settings.m),
        }
        if self._settings.verify:
            columns |= drift_checks(comparison, [cell.seed for cell in batch])
        values = _lists(columns)
        values |= {
            "ntk_steps": regression.steps_to(epsilon),
            "limit_steps": limit.steps_to(epsilon),
        }
        residuals = comparison.labels.square().sum((1, 2)).tolist()
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
        out = self._comparison.net.forward(self._comparison.inputs)
        residual = self._comparison.residual(out)
        squares = residual.square().sum((1, 2)).tolist()
        for state, square in zip(self.cells, squares, strict=True):
            state.hold_to_the_rate(step, square)
        return _Pass(out, residual, squares)

    def ends(self, now: _Pass) -> list[bool]:
        epsilon = self._settings.epsilon
        return [not math.isfinite(square) or square <= epsilon for square in now.squares]

    def take_step(self, now: _Pass) -> None:
        sizes = self._comparison.step_sizes[:, None, None]  # η, (cells, 1, 1)
        gradient = now.out.gradient(now.residual)  # (cells, m, d)
        self._comparison.net.weights.addcmul_(sizes, gradient, value=-1)

    def select(self, kept: Sequence[int]) -> None:
        self._comparison = self._comparison.select(
            torch.tensor(kept, device=self._comparison.inputs.device)
        )

    def measure(self, step: int, now: _Pass, due: Sequence[int]) -> list[Row]:
        values = _lists(_at_step(self._comparison, step, now.out, now.residual))
        rows: list[Row] = []
        for index in due:
            row = {name: column[index] for name, column in values.items()}
            if math.isfinite(row["train_loss"]):
                self.cells[index].add(row)
                logged = {name: value for name, value in row.items() if name not in UNLOGGED}
                rows.append(known_numbers(logged, infinite=True))
            else:
                rows.append({})
        return rows

    def results(self, step: int, now: _Pass, rows: Mapping[int, Row]) -> Results[P]:
        for index, row in rows.items():
            yield self._result(index, step, row)

    def _result(self, index: int, step: int, row: Row) -> CellResult[P]:
        state = self.cells[index]
        cell = state.cell
        if not row:
            return CellResult(cell, known_numbers(state.first), step, "diverged")
        square = 2 * row["train_loss"]
        reason = failure(square, cell.parameters.epsilon)
        measured = {**row, **state.first, **state.largest, "rate_ratio": state.rate_ratio}
        if not reason:
            measured |= {
                "steps_to_epsilon": step,
                "steps_over_limit": _ratio(step, state.first["limit_steps"]),
            }
        if square > ROUND_OFF * state.residual:
            whole = math.log(square / state.residual)
            measured["contraction"] = _ratio(-whole, -step * state.contraction)
        measured |= _stated_columns(cell.parameters, measured, math.sqrt(state.residual))
        return CellResult(cell, known_numbers(measured), step, reason)


def _at_step(
    comparison: Comparison, step: int, out: Outputs, residual: Tensor
) -> dict[str, Tensor]:
    """What is measured at a logged step, each (cells,), from outputs at the training inputs.

    The residual there is F − F(0) − Y, (cells, n, outputs). In comments, N = outputs · n, and N′ is
    the same of test inputs.
    """
    regression, tested = comparison.regression, comparison.net.forward(comparison.tests)
    H, K = gram_matrix(out), gram_matrix(tested, out)  # (cells, N, N), (cells, N′, N)
    eigenvalues = torch.linalg.eigvalsh(H.nan_to_num(0.0, 0.0, 0.0))  # increasing, (cells, N)
    moved = comparison.net.weights - comparison.start.weights  # W − W(0), (cells, m, d)
    # F − F(0) less what kernel regression predicts, at training and at test inputs
    learned = flat(residual + comparison.labels)  # F − F(0), (cells, N)
    train_gap = learned - regression.predictions(step)  # (cells, N)
    gradient_gap = learned - regression.predictions_by_gradient(step)  # (cells, N)
    gap = flat(tested.values - comparison.test_start)  # F − F(0) at test inputs, (cells, N′)
    gap = gap - regression.predictions_elsewhere(comparison.cross, step)  # (cells, N′)
    size = comparison.labels.flatten(1).norm(dim=1)  # ‖Y‖, (cells,)
    outputs, tests = residual.shape[-1], comparison.tests.shape[1]
    # K − K*, by output and test input, (cells, outputs, test samples, N)
    drift = (K - comparison.cross).view(len(K), outputs, tests, -1)
    return {
        "train_loss": residual.square().sum((1, 2)) / 2,  # ½‖F − F(0) − Y‖²
        "ntk_loss": regression.remaining(step).square().sum(1) / 2,
        "lambda_min": eigenvalues[:, 0].where(above_round_off(eigenvalues)[:, 0], math.nan),
        "lambda_max": eigenvalues[:, -1],
        "movement": moved.norm(dim=-1).amax(1),  # max_r ‖w_r − w_r(0)‖
        "kernel_drift": (H - comparison.gram).flatten(1).norm(dim=1),  # ‖H − H*‖_F
        "test_drift": drift.norm(dim=-1).amax((1, 2)),
        "train_gap": train_gap.norm(dim=1) / size,
        "gradient_gap": gradient_gap.norm(dim=1) / size,
        "test_gap": gap.square().mean(1).sqrt(),
        "test_gap_most": gap.abs().amax(1),
        **_next_step(comparison, out, residual, H, eigenvalues[:, 0]),
    }


def _next_step(
    comparison: Comparison, out: Outputs, residual: Tensor, gram: Tensor, smallest: Tensor
) -> dict[str, Tensor]:
    """What appendices D and E bound, each (cells,), with the smallest eigenvalue of H(τ).

    Bounds lack their factors of n, d and B, which `_stated_columns` has.
    """
    start = comparison.regression.smallest  # λ, (cells,)
    lost = torch.where(start > 0, 1 - smallest / start, math.nan)
    if comparison.net.activation != "softmax":
        return {"lambda_lost": lost}
    eta, m = comparison.step_sizes, comparison.net.width
    parts = step_parts(out, residual, eta)
    square = residual.square().sum((1, 2))  # ‖F − Y‖², (cells,)
    v = flat(residual)[..., None]  # (cells, N, 1)
    first = m * eta * (v.mT @ gram @ v).flatten()  # m η vᵀ H v, (cells,)
    return {
        "lambda_lost": lost,
        "c1": parts.c1 / first,
        "c0_over_bound": parts.c0.abs() / (0.1 * m * eta * start * square),
        "gradient_over_bound": parts.longest / square.sqrt(),
        "step_length": eta * parts.longest,
    }


def _lists(columns: Mapping[str, Tensor]) -> dict[str, list[float]]:
    return {name: column.tolist() for name, column in columns.items()}


def _null_if_zero(values: Tensor) -> Tensor:
    return values.where(values > 0, math.nan)


def _ratio(number: float, size: float) -> float:
    return number / size if size > 0 else math.nan


def _stated_columns(
    parameters: P, measured: Mapping[str, float], residual: float
) -> dict[str, float]:
    smallest, movement = measured["lambda_start"], measured["movement"]
    if movement <= 0:
        return {}
    n, outputs, m = parameters.n, parameters.outputs, parameters.m
    stated = Statement(n, parameters.d, outputs, parameters.sigma, smallest, m)
    drift, bound = measured["kernel_drift"], math.nan
    if drift > 0:
        bound = math.log10(drift) - stated.log10_drift(movement)
    row = {}
    if "gradient_over_bound" in measured:
        decades = math.log10(measured["gradient_over_bound"]) - stated.log10_gradient()
        row["gradient_over_bound"] = decades
    return row | {
        "width_missing": stated.log10_width() - math.log10(m),
        "step_size_beyond": math.log10(measured["step_size"]) - stated.log10_step_size(),
        "drift_share": drift / (movement * n * outputs),
        "drift_over_bound": bound,
        "movement_over_bound": math.log10(movement) - stated.log10_movement(residual),
        "gap_over_bound": _ratio(
            measured["test_gap_most"], stated.gap_bound(measured["test_drift"], drift)
        ),
    }
