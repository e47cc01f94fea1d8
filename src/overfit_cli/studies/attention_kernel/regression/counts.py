"""Counts over all steps of a batch: bounds, falls of the loss, and Lipschitz ratios."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from overfit_cli.studies.attention_kernel.regression import engine
from overfit_cli.studies.attention_kernel.regression.engine import Constants, Step

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


def bound(rate: Tensor, learning_rate: Tensor, step: int) -> Tensor:
    """Return (1 − ηα)^step, (cells,): 0 where ηα is above 1, nan where the rate α is."""
    shares = (1 - learning_rate * rate).clamp(min=0) ** step
    return torch.where(rate.isnan(), torch.nan, shares)  # nan to the power of 0 is 1


class StepCounts:
    """Counts over all steps of a batch."""

    def __init__(self, start: Tensor, rates: Iterable[str]) -> None:
        count = torch.zeros_like(start, dtype=torch.int64)  # (cells,)
        self.start = start
        self.millionth = count - 1  # the first step at 1e-6 of the start; −1 before
        self.trillionth = count - 1
        self.diverged = count - 1
        self.violations = {name: count.clone() for name in rates}

    def add(self, step: int, loss: Tensor, bounds: Mapping[str, Tensor]) -> None:
        """Count a step, given the losses there and the bounds on their share of the start."""
        share = loss / self.start  # f(M_t)/f(M_0), (cells,)
        gone = ~torch.isfinite(loss) | (share > DIVERGED)  # (cells,)
        self.diverged = torch.where(gone & (self.diverged < 0), step, self.diverged)
        self.millionth = _first(self.millionth, share <= 1e-6, step)
        self.trillionth = _first(self.trillionth, share <= 1e-12, step)
        for name, limit in bounds.items():
            self.violations[name] += (share > limit * (1 + SLACK)) & (limit > ROUND_OFF)

    def steps_to(self, index: int) -> dict[str, float]:
        """Return a cell's steps to a millionth and to a trillionth; nan where it took more."""
        counts = {"millionth": self.millionth, "trillionth": self.trillionth}
        return {
            f"steps_to_{name}": float(steps) if (steps := int(count[index])) >= 0 else math.nan
            for name, count in counts.items()
        }


def _first(known: Tensor, there: Tensor, step: int) -> Tensor:
    return torch.where(there & (known < 0), step, known)


class Descent:
    """How much of equation (14)'s fall the loss makes: (f(M_0) − f(M_t)) / η Σ_{r<t} ‖∇f(M_r)‖²."""

    def __init__(self, start: Tensor, learning_rate: Tensor) -> None:
        self._start, self._learning_rate = start, learning_rate
        self._told = start * (DIGITS * torch.finfo(start.dtype).eps)  # (cells,)
        self._least = torch.full_like(start, torch.inf)  # (cells,)
        self._fall = self._path = torch.zeros_like(start)  # η Σ ‖∇f‖² and η Σ ‖∇f‖ so far, (cells,)
        self._losses: list[Tensor] = []
        self._squares: list[Tensor] = []

    def add(self, loss: Tensor, squared: Tensor) -> None:
        """Take in a step's loss and squared gradient."""
        self._losses.append(loss)
        self._squares.append(squared)
        if len(self._losses) == BLOCK:
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
        if not self._losses:
            return
        losses, squares = torch.stack(self._losses), torch.stack(self._squares)  # (steps, cells)
        # η Σ_{r≤t} ‖∇f(M_r)‖², (steps, cells)
        after = self._fall + self._learning_rate * squares.cumsum(0)
        before = torch.cat([self._fall[None], after[:-1]])  # η Σ_{r<t} ‖∇f(M_r)‖², (steps, cells)
        tells = (before > self._told) & (losses > ROUND_OFF * self._start)
        ratio = ((self._start - losses) / before).where(tells, torch.inf)  # (steps, cells)
        self._least = torch.fmin(self._least, ratio.amin(0))
        self._fall = after[-1]
        self._path = self._path + self._learning_rate * squares.sqrt().sum(0)
        self._losses, self._squares = [], []


class LipschitzRatios:
    """The largest ‖MH(M') − MH(M)‖ / ‖M' − M‖ of a step M to the next M', and that of gradients."""

    def __init__(self, fixed: Constants, start: Tensor) -> None:
        self._fixed, self._start = fixed, start
        self._outputs = self._gradients = torch.full_like(start, torch.nan)  # (cells,)

    def add(self, before: Step, after: Step) -> None:
        """Take in a step and the next one, where the weights moved by more than round-off."""
        fixed = self._fixed
        # ‖M′ − M‖ = η ‖∇f(M)‖, (cells,)
        moved = fixed.learning_rate * engine.squared_norm(fixed, before.gradients).sqrt()
        tells = moved.square() > ROUND_OFF * self._start
        # the labels cancel
        outputs = (after.out.residual - before.out.residual).flatten(1).norm(dim=1)
        apart = {
            name: gradient.minus(before.gradients[name])
            for name, gradient in after.gradients.items()
        }
        gradients = engine.squared_norm(fixed, apart).sqrt()  # (cells,)
        self._outputs = _larger(self._outputs, outputs / moved, tells)
        self._gradients = _larger(self._gradients, gradients / moved, tells)

    def largest(self) -> tuple[Tensor, Tensor]:
        """Return the largest ratio of outputs and that of gradients; nan where nothing moved."""
        return self._outputs, self._gradients


def _larger(largest: Tensor, ratio: Tensor, tells: Tensor) -> Tensor:
    return torch.fmax(largest, ratio.where(tells, torch.nan))
