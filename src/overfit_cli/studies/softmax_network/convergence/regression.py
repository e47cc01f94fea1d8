"""Regression with a tangent kernel by gradient descent, in closed form at any step.

Equation (24), γ ← γ − η (m H γ − Y), moves the predictions m H γ as the network's linearisation
moves: F − Y is multiplied by I − η m H at every step. The gradient of the loss (23) in γ would be
m H (m H γ − Y), which has one factor m H more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class KernelRegression:
    """Gradient descent from zero on labels that are Y − F(0), for each cell.

    Attributes:
        eigenvalues: of H, increasing, shape (cells, N).
        vectors: their eigenvectors as columns, shape (cells, N, N).
        labels: in the basis of the eigenvectors, shape (cells, N).
        rates: η m, by which an eigenvalue shortens its part of F − Y at a step, shape (cells,).
    """

    eigenvalues: Tensor
    vectors: Tensor
    labels: Tensor
    rates: Tensor

    @classmethod
    def with_kernel(cls, gram: Tensor, labels: Tensor, rates: Tensor) -> KernelRegression:
        """Return the regression with H, (cells, N, N), on labels, (cells, N)."""
        eigenvalues, vectors = torch.linalg.eigh(gram)
        return cls(eigenvalues, vectors, (vectors.mT @ labels[..., None]).squeeze(-1), rates)

    @property
    def smallest(self) -> Tensor:
        """λ, the smallest eigenvalue of H, (cells,)."""
        return self.eigenvalues[:, 0]

    @property
    def largest(self) -> Tensor:
        """The largest one."""
        return self.eigenvalues[:, -1]

    def of(self, cells: Tensor) -> KernelRegression:
        """Return those of some of the cells."""
        parts = (self.eigenvalues, self.vectors, self.labels, self.rates)
        return KernelRegression(*(one[cells] for one in parts))

    def left(self, step: int) -> Tensor:
        """Return what is left of each eigenvector's label after some steps, (cells, N)."""
        return (1 - self.rates[:, None] * self.eigenvalues) ** step * self.labels

    def predictions(self, step: int) -> Tensor:
        """Return m H γ of equation (24) after some steps, (cells, N)."""
        return self._from_basis(self.labels - self.left(step))

    def predictions_elsewhere(self, cross: Tensor, step: int) -> Tensor:
        """Return predictions at other inputs, (cells, N′).

        Args:
            cross: H between those and the training inputs, shape (cells, N′, N).
            step: after how many.
        """
        # Σ_{s < t} (1 − η m λ)^s is (1 − (1 − η m λ)^t) / (η m λ), and t where λ is zero
        inner = self.rates[:, None] * self.eigenvalues
        power = torch.expm1(step * torch.log1p(-inner.clamp(max=1 - 1e-15)))
        exact = torch.where(inner < 1, -power / inner, (1 - (1 - inner) ** step) / inner)
        summed = torch.where(inner.abs() * step < 1e-12, float(step), exact)
        coefficients = self._from_basis(self.rates[:, None] * summed * self.labels)
        return (cross @ coefficients[..., None]).squeeze(-1)

    def predictions_by_gradient(self, step: int) -> Tensor:
        """Return m H γ after steps along the gradient of (23), (cells, N).

        Its step size is η over the largest m λ: with η itself it would diverge.
        """
        squares = self.rates[:, None] * self.eigenvalues.square() / self.largest[:, None]
        return self._from_basis((1 - (1 - squares) ** step) * self.labels)

    def stated_contraction(self) -> Tensor:
        """Return log(1 − m η λ/2), the fall of log ‖F − Y‖² in a step of Theorem 4.2, (cells,)."""
        return torch.log1p(-(self.rates * self.smallest / 2).clamp(0, 1 - 1e-9))

    def growth_by_gradient(self, width: int) -> Tensor:
        """Return the decades by which a step along the gradient of (23) grows its largest part.

        With the step size η of (24): log₁₀ |1 − η (m λ)²|, (cells,). Below zero it would shrink.

        Args:
            width: m.
        """
        return (1 - self.rates * width * self.largest.square()).abs().log10()

    def _from_basis(self, values: Tensor) -> Tensor:
        return (self.vectors @ values[..., None]).squeeze(-1)

    def steps_to(self, epsilon: float, most: int = 10**12) -> list[float]:
        """Return how many steps bring ‖F − Y‖² to `epsilon` in each cell; nan where none does."""
        return [self._steps_of(place, epsilon, most) for place in range(len(self.rates))]

    def _steps_of(self, place: int, epsilon: float, most: int) -> float:
        factors = (1 - self.rates[place] * self.eigenvalues[place]).abs()
        squares = self.labels[place].square()

        def far(step: int) -> bool:
            return not float((factors ** (2 * step) * squares).sum()) <= epsilon

        if far(most):
            return math.nan
        low, high = -1, most  # far at `low`, or before the first step; near at `high`
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if far(middle) else (low, middle)
        return float(high)
