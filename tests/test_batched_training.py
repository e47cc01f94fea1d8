"""Cells in one loop: each gives what it gives alone, whatever ends, diverges or is logged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from overfit_cli.core.cell import Cell, CellResult, Results
from overfit_cli.core.training import (
    BatchedTraining,
    CellState,
    Execution,
    Row,
    Training,
    group_cells,
    without_gradients,
)
from tests.fake_study import FakeParameters

LAST = 12
LOGGED = frozenset({0, 1, 2, 5, 12})
FITTED, DIVERGED = 1e-3, 1e3


@dataclass
class Ball(CellState[FakeParameters]):
    """A weight that gradient descent shrinks, w ← (1 − η) w, and the steps that it has seen."""

    steps: int = 0


class Balls(BatchedTraining[FakeParameters, Ball, list[float]]):
    """Weights as plain lists, in the order of the cells."""

    def __init__(self, rates: Sequence[float], training: Training) -> None:
        cells = [Ball(cell_of(index)) for index in range(len(rates))]
        super().__init__(cells, training, LOGGED, LAST)
        self.rates, self.weights = list(rates), [1.0] * len(rates)

    def forward(self, step: int) -> list[float]:
        for state in self.cells:
            state.steps += 1
        return [weight**2 for weight in self.weights]

    def ends(self, now: list[float]) -> list[bool]:
        return [loss < FITTED or loss > DIVERGED for loss in now]

    def measure(self, step: int, now: list[float], due: Sequence[int]) -> list[Row]:
        return [{"loss": now[place], "undefined": math.nan} for place in due]

    def results(self, step: int, now: list[float], rows: Mapping[int, Row]) -> Results[Any]:
        for place, row in rows.items():
            reason = "diverged" if now[place] > DIVERGED else ""
            seen = {"loss": row["loss"], "seen": float(self.cells[place].steps)}
            yield CellResult(self.cells[place].cell, seen, step, reason)

    def take_step(self, now: list[float]) -> None:
        kept = zip(self.rates, self.weights, strict=True)
        self.weights = [(1 - rate) * weight for rate, weight in kept]

    def select(self, kept: Sequence[int]) -> None:
        self.rates = [self.rates[place] for place in kept]
        self.weights = [self.weights[place] for place in kept]


def cell_of(index: int) -> Cell[FakeParameters]:
    return Cell("fake", 1, FakeParameters(), index)


def alone(rate: float) -> dict[int, float]:
    """The losses of a cell by itself at the steps that are logged, of which it ends at the last."""
    losses = [(1 - rate) ** (2 * step) for step in range(LAST + 1)]
    ended = [step for step, loss in enumerate(losses) if loss < FITTED or loss > DIVERGED]
    last = min([*ended, LAST])
    return {step: losses[step] for step in sorted({*LOGGED, last}) if step <= last}


RATES = (0.1, 0.9, 4.0, 0.5, 2.5, 1.0, 0.01)
"""Slow, fitted at once or after some steps, diverging soon or late."""


@pytest.mark.parametrize("count", [1, 2, 5, 7])
def test_each_cell_gives_what_it_gives_alone_in_the_order_in_which_they_end(count: int) -> None:
    training = Training(Execution(trajectories=True))
    balls = Balls(RATES[:count], training)
    results = {result.cell.seed: result for result in balls.train()}
    assert sorted(results) == list(range(count))
    for index, rate in enumerate(RATES[:count]):
        rows, result = alone(rate), results[index]
        steps, loss = [*rows.items()][-1]
        assert result.measurements == pytest.approx({"loss": loss, "seen": steps + 1}, rel=1e-12)
        assert (result.steps, result.reason) == (steps, "diverged" if loss > DIVERGED else "")
        losses = pytest.approx([*rows.values()], rel=1e-12)
        assert training.trajectory(cell_of(index)) == {"step": [*rows], "loss": losses}
    steps_taken = [result.steps for result in results.values()]
    assert steps_taken == sorted(steps_taken) and steps_taken[-1] == LAST
    assert [RATES[state.cell.seed] for state in balls.cells] == balls.rates


def test_batches_share_a_key_have_at_most_a_size_and_the_costliest_come_first() -> None:
    cells = [cell_of(index) for index in range(10)]

    def seeds(*how: Any) -> list[list[int]]:
        return [[cell.seed for cell in batch] for batch in group_cells(cells, *how)]

    by_key = [[0, 3], [6, 9], [1, 4], [7], [2, 5], [8]]
    assert seeds(lambda cell: cell.seed % 3, lambda cell: 1 + cell.seed % 2, 3.0) == by_key
    assert seeds(lambda _: 0, lambda _: 9.0, 1.0) == [[seed] for seed in range(10)], "too large"
    costs = (lambda cell: cell.seed, lambda _: 1.0, 1.0, lambda cell: cell.seed)
    assert seeds(*costs) == [[seed] for seed in range(9, -1, -1)]


def test_a_training_without_gradients_is_one_at_every_step_and_not_between_results() -> None:
    recorded = list[bool]()

    def train() -> Results[FakeParameters]:
        recorded.append(torch.is_inference_mode_enabled())  # as it is set up
        for seed in range(2):
            recorded.append(torch.is_inference_mode_enabled())
            yield CellResult(cell_of(seed), {}, 0)

    trained = without_gradients(train)
    between = [(result.cell.seed, torch.is_inference_mode_enabled()) for result in trained]
    assert between == [(0, False), (1, False)]
    assert recorded == [True, True, True]
