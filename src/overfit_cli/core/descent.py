"""Networks that are trained one by one, until they fit their samples or their steps are spent."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from typing import Any, Generic, Protocol, TypeVar

from overfit_cli.core.cell import Cell, CellResult, P
from overfit_cli.core.training import Row, Training, failure, known_numbers, logged_steps


class HasLoss(Protocol):
    """A forward pass on the training samples."""

    @property
    def loss(self) -> Any:
        """The training loss: a number, or a tensor with one."""


Pass = TypeVar("Pass", bound=HasLoss)


class Descent(ABC, Generic[Pass]):
    """The network of one cell in training. PyTorch records nothing, unless it needs gradients."""

    needs_gradients = False

    @abstractmethod
    def forward(self) -> Pass:
        """Return the forward pass on the training samples."""

    @abstractmethod
    def step(self, now: Pass) -> None:
        """Take a step: of gradient descent, or a pass over the samples."""

    @abstractmethod
    def measure(self, now: Pass) -> Row:
        """Return what is measured of a cell and logged at a step; what isn't finite is left out."""

    def measure_last(self, now: Pass) -> Row:
        """Return what is measured beside it after the last step."""
        return {}

    def train(
        self, cell: Cell[P], training: Training, steps: int, target: float | None = None
    ) -> CellResult[P]:
        """Train until the loss is at most the target or isn't finite, or all steps are taken."""
        import torch

        logged = frozenset(logged_steps(steps) if training.logs else ())
        with torch.inference_mode(not self.needs_gradients):
            for step in itertools.count():
                training.check_time()
                now = self.forward()
                reason = failure(float(now.loss), -math.inf if target is None else target)
                ends = reason != "step limit" or step == steps
                if ends or step in logged:
                    row = known_numbers(self.measure(now))
                    if training.logs:
                        training.log(cell, step, row)
                if ends:
                    break
                self.step(now)
            row |= known_numbers(self.measure_last(now))
        missed = reason == "diverged" or target is not None
        return CellResult(cell, row, step, reason if missed else "")
