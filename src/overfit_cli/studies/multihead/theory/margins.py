"""Margins of Deora et al. 2024: of the linear model, of the tangent kernel, and of attention."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from overfit_cli.studies.multihead.problem import Floats


@dataclass(frozen=True)
class LargestMargin:
    """The largest margin of a linear function of unit norm on some vectors.

    Attributes:
        direction: the unit vector that has it.
        margin: the least product of it with a vector.
        bound: what no unit vector's margin exceeds: the length of a convex combination.
    """

    direction: Floats
    margin: float
    bound: float


def largest_margin(vectors: Floats) -> LargestMargin:
    """Return the unit vector whose least product with some vectors is largest.

    It points to the shortest vector of their convex hull, whose length is the margin. With weights
    x ≥ 0 the least of ‖Σ x_i v_i‖² + (1 − Σ x_i)² is at a multiple of that combination: a problem
    of non-negative least squares.

    Args:
        vectors: those to separate from 0, labels multiplied in, shape (vectors, dimensions).
    """
    scale = float(np.linalg.norm(vectors, axis=1).max()) or 1.0
    rows = np.vstack([vectors.T / scale, np.ones(len(vectors))])
    target = np.zeros(len(rows))
    target[-1] = 1.0
    weights, _ = nnls(rows, target)
    shortest = weights @ vectors / weights.sum()
    length = float(np.linalg.norm(shortest))
    direction: Floats = shortest / length if length else shortest
    return LargestMargin(direction, float((vectors @ direction).min()), length)


@dataclass(frozen=True)
class MixtureMargins:
    """The margins that the paper states for the tokenized mixture.

    Attributes:
        tokens: T.
        sparsity: ζ.
        strength: S.
        patterns: M.
        noise_on_signal: Z_μ, the largest product of a noise vector with μ₊ or μ₋.
        noise_on_patterns: Z_ν, M times the largest one with a ν.
        noise: Z, the longest noise vector.
        deviation: P of Lemma 2, the length of what the first phase adds to the oracle classifier.
    """

    tokens: int
    sparsity: float
    strength: float
    patterns: int
    noise_on_signal: float
    noise_on_patterns: float
    noise: float
    deviation: float

    def linear(self) -> float:
        """Return γ_lin, that of the oracle linear classifier (equation 132)."""
        irrelevant = 2 * (1 - self.sparsity) * self.noise_on_signal / self.strength**2
        return self.strength * math.sqrt(self.tokens / 2) * (self.sparsity - irrelevant)

    def tangent(self) -> float:
        """Return γ⋆, that of the tangent kernel after the first phase (equation 7)."""
        lost = self.deviation * math.pow(self.tokens, 2.5) * (self.strength + self.noise) ** 3
        return self.tangent_without_deviation() - lost

    def tangent_without_deviation(self) -> float:
        """Return what γ⋆ would be if P were 0, as with a first phase of endless samples."""
        s, z = self.strength, max(self.noise_on_signal, self.noise_on_patterns)
        inner = self.sparsity * s**4 - 7 * z * s**2 - 12 * z**2 - 16 * z**3 / s**2
        share = self.tokens * (1 - self.sparsity) * self.sparsity
        return share * inner / (4 * math.sqrt(2 * (self.patterns + 1))) + self.linear()

    def attention(self, missed: float = 0.0) -> float:
        """Return γ_attn, that of attention that misses so much of the relevant tokens (11)."""
        s = self.strength
        own = s**2 * (1 - missed) - 2 * missed * self.noise_on_signal
        return math.sqrt(self.tokens / 2) * own / s

    def noise_allowed(self) -> float:
        """Return the largest Z_μ and Z_ν for which Proposition 3 says something."""
        return self.strength**2 / 8

    def norm_needed(self, missed: float) -> float:
        """Return Γ_ε, by which Proposition 3 scales W_opt for a softmax that misses ε."""
        ratio = (1 / self.sparsity - 1) / missed
        return 8 * math.sqrt(2 * (self.patterns + 1)) / (3 * self.strength**2) * math.log(ratio)


def optimal_attention(means: Floats) -> Floats:
    """Return W_opt of unit norm, (features, features) (equation 9).

    Args:
        means: μ₊, μ₋, ν₁ to ν_M as rows.
    """
    plus, minus, *others = means
    both = plus + minus
    found = np.outer(plus, plus) + np.outer(minus, minus)
    found = found + sum(np.outer(other, both) for other in others)
    unit: Floats = found / np.linalg.norm(found)
    return unit
