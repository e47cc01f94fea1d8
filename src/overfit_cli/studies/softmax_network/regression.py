"""Kernel regression by gradient descent, in closed form at any step.

Regression with a kernel H follows equation (24),

    γ ← γ − η (m H γ − Y),

which moves the predictions m H γ as the network's linearisation moves: F − Y is multiplied by
I − η m H at every step. The gradient of the loss (23) in γ would be m H (m H γ − Y), which has one
factor m H more. In comments, N = outputs · n is the number of rows of H.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor


@dataclass(frozen=True)
class KernelRegression:
    """Gradient descent from zero on labels that are Y − F(0), for each cell."""

    eigenvalues: Tensor  # λ of H, increasing, (cells, N)
    vectors: Tensor  # V, their eigenvectors as columns, (cells, N, N)
    labels: Tensor  # Vᵀ Y, in the basis of the eigenvectors, (cells, N)
    rates: Tensor  # η m, by which an eigenvalue shortens its part of F − Y at a step, (cells,)

    @classmethod
    def with_kernel(cls, gram: Tensor, labels: Tensor, rates: Tensor) -> KernelRegression:
        """Return the regression with H, (cells, N, N), on labels, (cells, N)."""
        eigenvalues, V = torch.linalg.eigh(gram)  # (cells, N), (cells, N, N)
        return cls(eigenvalues, V, (V.mT @ labels[..., None]).squeeze(-1), rates)

    @property
    def smallest(self) -> Tensor:
        """The smallest eigenvalue λ of H, (cells,); 0 where round-off hides it."""
        return self.eigenvalues[:, 0].where(above_round_off(self.eigenvalues)[:, 0], 0.0)

    @property
    def largest(self) -> Tensor:
        """The largest eigenvalue of H, (cells,)."""
        return self.eigenvalues[:, -1]

    def select(self, cells: Tensor) -> KernelRegression:
        """Return the regressions of the cells at the indices `cells`."""
        return KernelRegression(*(getattr(self, part.name)[cells] for part in fields(self)))

    def remaining(self, step: int) -> Tensor:
        """Return what remains of each eigenvector's label after some steps, (cells, N).

        That is (1 − η m λ)^t Vᵀ Y.
        """
        return (1 - self.rates[:, None] * self.eigenvalues) ** step * self.labels

    def predictions(self, step: int) -> Tensor:
        """Return m H γ of equation (24) after some steps, (cells, N)."""
        return self._rotate_back(self.labels - self.remaining(step))

    def predictions_elsewhere(self, cross: Tensor, step: int) -> Tensor:
        """Return predictions after t steps at other inputs, (cells, N′).

        K is H between those and the training inputs, (cells, N′, N).
        """
        decay = self.rates[:, None] * self.eigenvalues  # η m λ, (cells, N)
        # (1 − decay)^t − 1 without cancellation, where the logarithm exists, (cells, N)
        power = torch.expm1(step * torch.log1p(-decay.clamp(max=1 - 1e-15)))
        # Σ_{r<t} (1 − decay)^r, (cells, N)
        exact = torch.where(decay < 1, -power / decay, (1 - (1 - decay) ** step) / decay)
        # the same without loss of digits, (cells, N)
        summed = torch.where(decay.abs() * step < 1e-12, float(step), exact)
        coefficients = self._rotate_back(self.rates[:, None] * summed * self.labels)  # m γ
        return (cross @ coefficients[..., None]).squeeze(-1)

    def predictions_by_gradient(self, step: int) -> Tensor:
        """Return m H γ after steps along the gradient of (23), (cells, N).

        Its step size is η over the largest m λ: with η itself it would diverge.
        """
        # η m λ² / λ_max, (cells, N)
        decay = self.rates[:, None] * self.eigenvalues.square() / self.largest[:, None]
        return self._rotate_back((1 - (1 - decay) ** step) * self.labels)

    def stated_contraction(self) -> Tensor:
        """Return log(1 − m η λ/2), the fall of log ‖F − Y‖² in a step by Lemma E.2, (cells,)."""
        return torch.log1p(-(self.rates * self.smallest / 2).clamp(0, 1 - 1e-9))

    def _rotate_back(self, values: Tensor) -> Tensor:
        """V times values, (cells, N)."""
        return (self.vectors @ values[..., None]).squeeze(-1)

    def steps_to(self, epsilon: float, limit: int = 10**12) -> list[float]:
        """Return how many steps bring ‖F − Y‖² to `epsilon` in each cell.

        A cell that needs more than `limit` steps has nan.
        """
        return [self._steps_of(cell, epsilon, limit) for cell in range(len(self.rates))]

    def _steps_of(self, cell: int, epsilon: float, limit: int) -> float:
        """The first step with ‖F − Y‖² at ε or below; a step size above 2/λ_max lets it grow again.

        ‖F − Y‖² is a sum of exponentials, so convex in the step: it falls, then it may rise.
        """
        factors = (1 - self.rates[cell] * self.eigenvalues[cell]).abs()  # (N,)
        squares = self.labels[cell].square()  # (N,)

        def parts(step: int) -> Tensor:
            return torch.where(squares > 0, factors ** (2 * step) * squares, 0.0)

        def is_at_most(step: int) -> bool:
            return float(parts(step).sum()) <= epsilon

        def rises(step: int) -> bool:
            return not float((parts(step) * (factors.square() - 1)).sum()) < 0

        lowest = _first(rises, limit)
        return float(_first(is_at_most, lowest)) if is_at_most(lowest) else math.nan


def _first(holds: Callable[[int], bool], limit: int) -> int:
    """The first number from 0 at which what stays true becomes true; `limit` at the latest."""
    low, high = -1, limit  # not true at `low`
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def above_round_off(eigenvalues: Tensor) -> Tensor:
    """Return which eigenvalues, increasing along the last axis, are more than round-off.

    Round-off is N times the precision times the largest one, as for the rank of a matrix.
    """
    precision = torch.finfo(eigenvalues.dtype).eps * eigenvalues.shape[-1]
    return eigenvalues > precision * eigenvalues[..., -1:]
