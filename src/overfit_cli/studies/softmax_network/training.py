"""Training of a batch: networks beside kernel regression, and both against the paper's bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from overfit_cli.core.cell import Cell, CellResult, Results
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
from overfit_cli.studies.softmax_network.data import draw_problem
from overfit_cli.studies.softmax_network.engine import (
    Comparison,
    drift_checks,
    flat,
    set_up,
    step_parts,
    steps_at_infinite_width,
)
from overfit_cli.studies.softmax_network.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.theory import Statement

P = SoftmaxConvergenceParameters
ROUND_OFF = 1e-14
"""The share of the starting ‖F − Y‖² below which what is left is round-off."""

RATIO = 1.25
"""The ratio of a logged step to the one before, after the first ten."""

LOGGED = ("train_loss", "ntk_loss", "movement", "kernel_drift", "test_gap")
LAST = ("train_loss", "ntk_loss")
"""The logged columns; and the columns of a cell that are those of its last step.

Of what else is measured at logged steps a cell keeps the largest value.
"""


@dataclass
class _NetworkState(CellState[P]):
    first: dict[str, float]  # what is measured before the first step
    residual: float  # ‖F − Y‖² there
    limit_steps: float  # the steps to ε of infinitely many hidden units
    # log(1 − m η λ/2), by which Lemma E.2 has its logarithm fall at every step
    contraction: float
    rate_ratio: float = 0.0  # ‖F − Y‖² over what that leaves of it, at most
    largest: dict[str, float] = field(default_factory=dict)

    def hold_to_the_rate(self, step: int, square: float) -> None:
        """Hold ‖F − Y‖² after a step to the stated rate, as long as it is more than round-off."""
        if step and square > ROUND_OFF * self.residual:
            logarithm = math.log(square / self.residual) - step * self.contraction
            self.rate_ratio = max(self.rate_ratio, math.exp(min(logarithm, 700.0)))


@dataclass(frozen=True)
class _Pass:
    out: Outputs  # the networks' outputs
    residual: Tensor  # F − F(0) − Y, (cells, n, outputs)
    squares: list[float]  # ‖F − F(0) − Y‖² of each cell


def train_batch(batch: Sequence[Cell[P]], training: Training) -> Results[P]:
    """Train cells that differ in their seeds, draws and step sizes alone."""
    return _NetworksTogether(batch, training).train()


class _NetworksTogether(BatchedTraining[P, _NetworkState, _Pass]):
    def __init__(self, batch: Sequence[Cell[P]], training: Training) -> None:
        settings = [cell.parameters for cell in batch]
        problems = [draw_problem(cell.parameters, cell.seed) for cell in batch]
        self._settings = settings[0]
        self._cells = cells = set_up(settings, problems, training.device)
        regression, nan = cells.regression, cells.inputs.new_tensor(math.nan)
        columns = {
            "lambda_start": regression.smallest.where(regression.smallest > 0, nan),
            "kappa": regression.largest / regression.smallest,  # infinite where singular
            "step_size": cells.step_sizes,
        }
        if self._settings.verify:
            columns |= drift_checks(cells, [cell.seed for cell in batch])
        states = map(
            _NetworkState,
            batch,
            _rows(columns),
            cells.labels.square().sum((1, 2)).tolist(),
            steps_at_infinite_width(settings, cells),
            regression.stated_contraction().tolist(),
        )
        last = self._settings.training_steps
        super().__init__([*states], training, set(logged_steps(last, ratio=RATIO)), last)

    def forward(self, step: int) -> _Pass:
        out = self._cells.net.forward(self._cells.inputs)
        residual = self._cells.residual(out)
        squares = residual.square().sum((1, 2)).tolist()
        for state, square in zip(self.cells, squares, strict=True):
            state.hold_to_the_rate(step, square)
        return _Pass(out, residual, squares)

    def ends(self, now: _Pass) -> list[bool]:
        epsilon = self._settings.epsilon
        return [not math.isfinite(square) or square <= epsilon for square in now.squares]

    def take_step(self, now: _Pass) -> None:
        sizes = self._cells.step_sizes[:, None, None]  # η, (cells, 1, 1)
        gradient = now.out.gradient(now.residual)  # (cells, m, d)
        self._cells.net.weights.addcmul_(sizes, gradient, value=-1)

    def select(self, kept: Sequence[int]) -> None:
        self._cells = self._cells.select(torch.tensor(kept, device=self._cells.inputs.device))

    def measure(self, step: int, now: _Pass, due: Sequence[int]) -> list[Row]:
        every = _rows(_at_step(self._cells, step, now.out, now.residual))
        rows: list[Row] = [row if math.isfinite(row["train_loss"]) else {} for row in every]
        for index in due:
            largest = self.cells[index].largest
            for name in rows[index].keys() - {*LAST}:
                number = rows[index][name]
                if not math.isnan(number):
                    largest[name] = max(number, largest.get(name, -math.inf))
        return [rows[index] for index in due]

    def keep(self, row: Row) -> Row:
        return known_numbers({name: row[name] for name in LOGGED})

    def results(self, step: int, now: _Pass, rows: Mapping[int, Row]) -> Results[P]:
        for index, row in rows.items():
            yield self._result(self.cells[index], step, row)

    def _result(self, state: _NetworkState, step: int, row: Row) -> CellResult[P]:
        if not row:
            return CellResult(state.cell, known_numbers(state.first), step, "diverged")
        reason = failure(2 * row["train_loss"], self._settings.epsilon)
        measured = {name: row[name] for name in LAST} | state.first | state.largest
        measured["rate_ratio"] = state.rate_ratio
        if not reason:
            measured["steps_to_epsilon"] = step
            measured["steps_over_limit"] = _ratio(step, state.limit_steps)
        measured |= _stated_columns(state.cell.parameters, measured, math.sqrt(state.residual))
        return CellResult(state.cell, known_numbers(measured), step, reason)


def _at_step(cells: Comparison, step: int, out: Outputs, residual: Tensor) -> dict[str, Tensor]:
    """What is measured at a logged step, each (cells,), from outputs at the training inputs.

    The residual there is F − F(0) − Y, (cells, n, outputs). In comments, N = outputs · n, and N′ is
    the same of test inputs. C₀, C₁ and Δw are those of the next step (appendices D and E).
    """
    regression, tested = cells.regression, cells.net.forward(cells.tests)
    H, K = gram_matrix(out), gram_matrix(tested, out)  # (cells, N, N), (cells, N′, N)
    lowest = torch.linalg.eigvalsh(H.nan_to_num(0.0, 0.0, 0.0))[:, 0]  # λ_min(H), (cells,)
    moved = cells.net.weights - cells.start  # W − W(0), (cells, m, d)
    # F − F(0) less what kernel regression predicts, at training and at test inputs
    learned = flat(residual + cells.labels)  # F − F(0), (cells, N)
    train_gap = learned - regression.predictions(step)  # (cells, N)
    gradient_gap = learned - regression.predictions_by_gradient(step)  # (cells, N)
    gap = flat(tested.values - cells.test_start)  # F − F(0) at test inputs, (cells, N′)
    gap = gap - regression.predictions_elsewhere(cells.cross, step)  # (cells, N′)
    size = cells.labels.flatten(1).norm(dim=1)  # ‖Y‖, (cells,)
    # K − K*, by output and test input, (cells, outputs, test samples, N)
    drift = (K - cells.cross).view(len(K), residual.shape[-1], cells.tests.shape[1], -1)
    square, start = residual.square().sum((1, 2)), regression.smallest  # ‖F − Y‖², λ, (cells,)
    row = {
        "train_loss": square / 2,  # ½‖F − F(0) − Y‖²
        "ntk_loss": regression.remaining(step).square().sum(1) / 2,
        "movement": moved.norm(dim=-1).amax(1),  # max_r ‖w_r − w_r(0)‖
        "kernel_drift": (H - cells.gram).flatten(1).norm(dim=1),  # ‖H − H*‖_F
        "test_drift": drift.norm(dim=-1).amax((1, 2)),
        "train_gap": train_gap.norm(dim=1) / size,
        "gradient_gap": gradient_gap.norm(dim=1) / size,
        "test_gap": gap.square().mean(1).sqrt(),
        "test_gap_most": gap.abs().amax(1),
        "lambda_lost": torch.where(start > 0, 1 - lowest / start, math.nan),
    }
    if cells.net.activation == "softmax":
        eta, m, v = cells.step_sizes, cells.net.width, flat(residual)[..., None]  # v, (cells, N, 1)
        parts = step_parts(out, residual, eta)
        row["c1"] = parts.c1 / (m * eta * (v.mT @ H @ v).flatten())
        row["c0_over_bound"] = parts.c0.abs() / (0.1 * m * eta * start * square)
        row["step_length"] = eta * parts.longest
    return row


def _rows(columns: Mapping[str, Tensor]) -> list[dict[str, float]]:
    """Columns of cells, each (cells,), as a row for each cell."""
    lists = [column.tolist() for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def _ratio(number: float, size: float) -> float:
    return number / size if size > 0 else math.nan


def _stated_columns(p: P, measured: Row, residual: float) -> Row:
    """How far a cell is from Theorem 4.2's m and η, and its largest numbers over the bounds."""
    movement, drift = measured["movement"], measured["kernel_drift"]
    if movement <= 0:
        return {}
    stated = Statement(p.n, p.d, p.outputs, p.sigma, measured["lambda_start"], p.m)
    gap_bound = stated.gap_bound(measured["test_drift"], drift)
    over = math.log10(drift) - stated.log10_drift(movement) if drift > 0 else math.nan
    return {
        "width_missing": stated.log10_width() - math.log10(p.m),
        "step_size_beyond": math.log10(measured["step_size"]) - stated.log10_step_size(),
        "drift_share": drift / (movement * p.n * p.outputs),
        "drift_over_bound": over,
        "movement_over_bound": math.log10(movement) - stated.log10_movement(residual),
        "gap_over_bound": _ratio(measured["test_gap_most"], gap_bound),
    }
