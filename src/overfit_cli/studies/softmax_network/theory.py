"""Theorems 4.2, 6.6 and F.2 and Lemmas 5.1 and 5.3, with the constants that the paper leaves.

B = max(C σ √log(n d / δ), 1) with C > 10 (Definition 4.1) stands in exponents: e^(18 B) of hidden
units is a number of hundreds of digits. So everything here is a decimal logarithm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

C = 10.0
"""The end of C > 10 in Definition 4.1, where the bounds and the required m are least."""

CHANCE = 0.05
"""δ, with which all of it may fail."""


def largest_inner(n: int, d: int, sigma: float) -> float:
    """Return B = max(C σ √log(n d / δ), 1) of Definition 4.1, a bound on |⟨w_r, x_i⟩|."""
    return max(C * sigma * math.sqrt(math.log(n * d / CHANCE)), 1.0)


@dataclass(frozen=True)
class Statement:
    """The sizes that the theorem and the lemmas depend on."""

    # n, d, outputs: samples, features and outputs. The paper has d of both
    n: int
    d: int
    outputs: int
    sigma: float  # σ
    smallest: float  # λ, the smallest eigenvalue of H at the start
    width: int  # m

    @property
    def b(self) -> float:
        """B of Definition 4.1."""
        return largest_inner(self.n, self.d, self.sigma)

    @property
    def _labels(self) -> float:
        return math.log10(self.n * self.outputs)

    @property
    def _smallest(self) -> float:
        return math.log10(self.smallest)

    def log10_width(self) -> float:
        """Return Theorem 4.2's m, λ⁻² n² d² e^(18B) log²(nd/δ)."""
        log = math.log(self.n * self.outputs / CHANCE)
        return 2 * (self._labels - self._smallest + math.log10(log)) + _decades(18 * self.b)

    def log10_width_for_scores(self) -> float:
        """Return Theorem 6.6's m, λ⁻² n³ d³ e^(18B) log²(nd/δ)."""
        return self.log10_width() + self._labels

    def log10_score_bound(self) -> float:
        """Return 1/(λ √n), the term of Theorem 6.6's bound that needs no more than λ."""
        return -self._smallest - math.log10(self.n) / 2

    def log10_step_size(self) -> float:
        """Return Theorem 4.2's η, 0.1 λ / (m n² d² e^(16B))."""
        exact = math.log10(0.1) + self._smallest - math.log10(self.width) - 2 * self._labels
        return exact - _decades(16 * self.b)

    def log10_drift(self, movement: float) -> float:
        """Return Lemma 5.1's bound on ‖H − H*‖, R n d e^(10B), of the largest movement R."""
        return math.log10(movement) + self._labels + _decades(10 * self.b)

    def log10_movement(self, residual: float) -> float:
        """Return Lemma 5.3's D, 4 m⁻¹ λ⁻¹ e^(3B) √(nd) ‖F(0) − Y‖, of the residual ‖F(0) − Y‖."""
        exact = math.log10(4 * residual) - math.log10(self.width) - self._smallest
        return exact + self._labels / 2 + _decades(3 * self.b)

    def gap_bound(self, test_drift: float, drift: float) -> float:
        """Return Theorem F.2's bound on |F_ntk − F_nn|, its O(·) taken for 1.

        K moves by ε_test at most at a test input and an output, and H by ε_H.
        """
        root = math.sqrt(self.n * self.outputs)
        if drift == 0:
            return root / self.smallest * test_drift
        log = math.log(self.n * self.outputs / (drift * self.width * self.smallest))
        return root / self.smallest * (test_drift + log**2 / self.smallest * drift)


def _decades(power: float) -> float:
    return power / math.log(10)
