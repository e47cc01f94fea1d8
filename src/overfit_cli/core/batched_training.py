"""Training of several cells at once: how they are batched, and the loop over steps.

A study whose cells of one shape are faster as one tensor groups them with `group_cells`, and
derives its training from `BatchedTraining`. At every step the loop runs

    forward pass → which cells end → measure and log those that are due → results of those that
    ended → gradient step → go on with the others

The study gives the forward pass, the measurements, the results, the step, and the selection of the
cells that go on. What it remembers of a cell is one object in `cells`, so that it leaves with it.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from overfit_cli.core.cell import Batch, Batches, Cell, P, Results
from overfit_cli.core.training import Row, Training, drop_nonfinite

BYTES_OF_LIBRARIES = 3e8
"""The memory of PyTorch in a process before it computes anything."""


def without_gradients(train: Callable[[], Results[P]]) -> Results[P]:
    """Give the results of a training in which PyTorch records nothing for gradients."""
    import torch

    with torch.inference_mode():
        left = iter(train())
    while True:
        with torch.inference_mode():
            result = next(left, None)
        if result is None:
            return
        yield result


def group_cells(
    cells: Batch[P],
    key: Callable[[Cell[P]], Any],
    size: Callable[[Cell[P]], float],
    most: float,
    cost: Callable[[Cell[P]], float] | None = None,
) -> Batches[P]:
    """Group cells that can be trained as one tensor.

    Args:
        key: what the cells of a batch share; batches are ordered by it.
        most: the largest size of a batch; a cell larger than that is a batch of its own.
        cost: the cells of a batch have about the same; the costliest batches come first.
    """
    batches: Batches[P] = []
    for _, group in itertools.groupby(sorted(cells, key=key), key=key):
        taken = math.inf
        for cell in group:
            if taken + size(cell) > most:
                batches.append([])
                taken = 0.0
            batches[-1].append(cell)
            taken += size(cell)
    if cost is not None:
        batches.sort(key=lambda batch: -cost(batch[0]) * len(batch))
    return batches


def shared_values(cell: Cell[P], apart: Container[str]) -> tuple[str, ...]:
    """Return the values of all parameters but those in which cells of a batch may differ."""
    values = cell.parameters.model_dump()
    return tuple(str(value) for name, value in values.items() if name not in apart)


@dataclass
class CellState(Generic[P]):
    """A cell in training; a study adds what it remembers of it."""

    cell: Cell[P]


State = TypeVar("State", bound=CellState[Any])
Pass = TypeVar("Pass")


class BatchedTraining(ABC, Generic[P, State, Pass]):
    """Cells of one shape in training. `cells` are those that go on, in the order of the tensors.

    A study whose cells all take all steps needs neither `ends` nor `select`: they end at step
    `last`, which is None where `ends` says so of each.
    """

    def __init__(
        self, cells: Sequence[State], training: Training, logged: Container[int], last: int | None
    ) -> None:
        self.cells = list(cells)
        self.training = training
        self._logged, self._last = logged, last

    @abstractmethod
    def forward(self, step: int) -> Pass:
        """Return the forward pass at a step, and count what is counted at every step."""

    @abstractmethod
    def measure(self, step: int, now: Pass, due: Sequence[int]) -> Sequence[Row]:
        """Return what is logged of some cells, a row each, before the gradient step.

        What isn't finite in a row, and an empty row, isn't logged.
        """

    @abstractmethod
    def results(self, step: int, now: Pass, rows: Mapping[int, Row]) -> Results[P]:
        """Give the results of cells that end, from what was measured there, by their indices."""

    @abstractmethod
    def take_step(self, now: Pass) -> None:
        """Take a gradient step with all cells."""

    def ends(self, now: Pass) -> Sequence[bool]:
        """Return for each cell whether it ends here: it is fitted, or has diverged."""
        return [False] * len(self.cells)

    def select(self, kept: Sequence[int]) -> None:
        """Go on, after a step, with the cells at these indices; the loop sees to `cells`."""
        raise NotImplementedError

    def steps_taken(self, index: int, step: int) -> float:
        """Return the step under which a cell is logged: one may take several as one."""
        return step

    def keep(self, row: Row) -> Row:
        """Return what is logged of a row: by default what is finite."""
        return drop_nonfinite(row)

    def train(self) -> Results[P]:
        """Take all steps, and give the results in the order in which the cells end."""
        for step in itertools.count():
            self.training.check_time()
            now = self.forward(step)
            ended = [True] * len(self.cells) if step == self._last else self.ends(now)
            over = any(ended)
            if over or step in self._logged:
                yield from self._measured(step, now, ended)
            if over and all(ended):
                return
            self.take_step(now)
            if over:
                kept = [index for index, end in enumerate(ended) if not end]
                self.select(kept)
                self.cells = [self.cells[index] for index in kept]

    def _measured(self, step: int, now: Pass, ended: Sequence[bool]) -> Results[P]:
        every = step in self._logged
        due = [index for index, end in enumerate(ended) if every or end]
        rows = dict(zip(due, self.measure(step, now, due), strict=True))
        for index, row in rows.items():
            if row:
                steps = self.steps_taken(index, step)
                self.training.log(self.cells[index].cell, steps, self.keep(row))
        if any(ended):
            yield from self.results(step, now, {p: row for p, row in rows.items() if ended[p]})
