"""Training of `benign-vit`: gradient descent in token space, cells of one shape as one tensor."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from overfit_cli.core.cell import Batch, Cell, CellResult, Results
from overfit_cli.core.training import (
    BatchedTraining,
    CellState,
    Row,
    Training,
    failure,
)
from overfit_cli.studies.benign_vit.engine import (
    ForwardPass,
    TokenProjections,
    initial_state,
    projections_of,
)
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.true_scale import TrueScaleTokens, final_rows, logged_row

P = BenignVitParameters


def train_batch(batch: Batch[P], training: Training) -> Results[P]:
    """Train a batch of one shape together; a logged run, which measures at every step, alone."""
    for part in [[cell] for cell in batch] if training.logs else [batch]:
        yield from train_together(part, training)


def train_together(cells: Batch[P], training: Training) -> Results[P]:
    """Train cells of one shape as one tensor; each gives its result at the step where it stops."""
    return VitsTogether(cells, training).train()


def _projections_of_all(cells: Batch[P], device: str) -> list[TokenProjections]:
    def projections(cell: Cell[P]) -> TokenProjections:
        return projections_of(cell.parameters, cell.seed, device)

    seeds = {cell.seed: cell for cell in cells}
    if len(seeds) > 1:
        with ThreadPoolExecutor() as threads:
            list(threads.map(projections, seeds.values()))
    return [projections(cell) for cell in cells]  # kept ones, after the threads


class VitsTogether(BatchedTraining[P, CellState[P], ForwardPass]):
    """Gradient descent in token space, a stride of steps at a time.

    A cell ends when its training loss is at most its ε, isn't finite, or its steps are spent.
    """

    def __init__(self, cells: Batch[P], training: Training) -> None:
        self._projections = _projections_of_all(cells, training.device)
        self.state = initial_state([cell.parameters for cell in cells], self._projections)
        self._leaps = bool((self.state.leap > 0).any())
        self._before: ForwardPass | None = None
        logged = range(sys.maxsize if training.logs else 0)
        super().__init__([CellState(cell) for cell in cells], training, logged, last=None)

    @property
    def tokens(self) -> TrueScaleTokens:
        """The cells' tokens."""
        return TrueScaleTokens(self.state, self._projections)

    def forward(self, step: int) -> ForwardPass:
        now = self.state.forward()
        if self._before is not None and self._leaps:
            self.state.choose_stride(self._before, now)
        return now

    def ends(self, now: ForwardPass) -> list[bool]:
        state = self.state
        stops = (now.loss <= state.epsilon) | ~now.loss.isfinite()
        stops |= state.steps >= state.max_steps
        ended: list[bool] = stops.tolist()
        return ended

    def take_step(self, now: ForwardPass) -> None:
        self.state.descend(now)
        self._before = now if self._leaps or self.training.logs else None

    def select(self, kept: Sequence[int]) -> None:
        mask = self._mask(kept)
        self.state = self.state.select(mask)
        self._before = self._before and self._before.select(mask)
        self._projections = [self._projections[index] for index in kept]

    def steps_taken(self, index: int, step: int) -> float:
        return float(self.state.steps[index])

    def measure(self, step: int, now: ForwardPass, due: Sequence[int]) -> list[Row]:
        if not self.training.logs:
            return [{}] * len(due)
        return [logged_row(self.tokens, now, self._before)]

    def results(self, step: int, now: ForwardPass, rows: Mapping[int, Row]) -> Results[P]:
        mask = self._mask(list(rows))
        ended = self.state.select(mask)
        tokens = TrueScaleTokens(ended, [self._projections[index] for index in rows])
        at_end = zip(rows, ended.steps.tolist(), final_rows(tokens, now.select(mask)), strict=True)
        for index, steps, row in at_end:
            cell = self.cells[index].cell
            reason = failure(row["train_loss"], cell.parameters.epsilon)
            yield CellResult(cell, {**row, "updates": step}, int(steps), reason)

    def _mask(self, indices: Sequence[int]) -> Tensor:
        chosen = set(indices)
        return torch.tensor(
            [index in chosen for index in range(len(self.cells))], device=self.state.steps.device
        )
