"""Bounds on gradients and Hessians, and what Theorems 1 and 2 require (Deora et al. 2024).

Where Corollary 1 has the norm of θ it suffices to take that of U (its footnote): that is done here,
so that what holds here holds for the looser bound of the text too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, linalg

THEOREM_1, THEOREM_2 = 36.0, 256.0
"""The constants with which each theorem requires many heads (the appendix's restatements)."""


@dataclass(frozen=True)
class Sizes:
    """What the bounds depend on.

    Attributes:
        tokens: T.
        features: d.
        radius: R, at least 1 and at least the length of every token.
        heads: H.
    """

    tokens: int
    features: int
    radius: float
    heads: float

    def beta_1(self, norm: float) -> float:
        """Return β₁, by which the loss bounds its gradient (Corollary 1, 1).

        Args:
            norm: the largest norm of a head's U.
        """
        return math.sqrt(self.tokens) * self.radius * (2 * self.radius**2 * norm + 1)

    def beta_2(self, norm: float) -> float:
        """Return β₂, which bounds the Hessian's norm (Corollary 1, 2)."""
        return self.beta_3(norm) / math.sqrt(self.heads) + self.beta_1(norm) ** 2 / 4

    def beta_3(self, norm: float) -> float:
        """Return β₃; over √H the loss bounds by it how concave it is (Corollary 1, 3)."""
        root = math.sqrt(self.features)
        factor = 2 * math.sqrt(self.tokens) * root * self.radius**3
        return factor * (3 * root * self.radius**2 * norm + 1)


def gradient_bound(inputs: Tensor, projection: Tensor) -> Tensor:
    """Return Proposition 1's bound on the gradient of one head's output, (samples,).

    Args:
        inputs: X, shape (samples, tokens, features).
        projection: U, shape (tokens, features).
    """
    longest: Tensor = linalg.vector_norm(inputs, dim=-1).amax(-1)  # ‖X‖_{2,∞}
    return 2 * longest**2 * _largest_outputs(inputs, projection) + (
        math.sqrt(inputs.shape[1]) * longest
    )


def hessian_bound(inputs: Tensor, projection: Tensor) -> Tensor:
    """Return Proposition 1's bound on the Hessian of one head's output, (samples,)."""
    _, tokens, features = inputs.shape
    longest: Tensor = linalg.vector_norm(inputs, dim=-1).amax(-1)
    largest = inputs.abs().amax((-2, -1))  # ‖X‖_{1,∞}
    outputs = _largest_outputs(inputs, projection)
    first = 6 * features * longest**2 * largest**2 * outputs
    return first + 2 * math.sqrt(tokens * features) * longest**2 * largest


def _largest_outputs(inputs: Tensor, projection: Tensor) -> Tensor:
    """Σ_t ‖X u_t‖_∞, (samples,)."""
    outputs = inputs @ projection.T  # (samples, tokens s, tokens t)
    return outputs.abs().amax(-2).sum(-1)


@dataclass(frozen=True)
class Hypotheses:
    """What Theorems 1 and 2 require of H and η for one target θ, with the appendix's constants.

    Attributes:
        sizes: what the bounds depend on.
        distance: ‖θ − θ₀‖.
        largest: the largest norm of a head of θ.
        target_loss, start_loss: the training loss at θ and at θ₀.
        steps: K.
    """

    sizes: Sizes
    distance: float
    largest: float
    target_loss: float
    start_loss: float
    steps: int

    def log10_heads_needed(self, constant: float) -> float:
        """Return the decimal logarithm of the least H.

        Args:
            constant: `THEOREM_1` or `THEOREM_2`.
        """
        beta = self.sizes.beta_3(3 * self.distance + self.largest) / 2
        return 2 * (math.log10(constant * beta) + 2 * math.log10(self.distance))

    def log10_largest_step_size(self) -> float:
        """Return the decimal logarithm of the largest η that both theorems allow."""
        of = self.sizes
        root_t, root_d = math.sqrt(of.tokens), math.sqrt(of.features)
        inner = 3 * root_t * of.radius**3 * (3 * self.distance + self.largest)
        alpha = 3 * root_d * of.radius**2 * (inner + 2 * root_t * of.radius)
        curvature = 2 * root_t * root_d * of.radius**3 / math.sqrt(of.heads)
        log_rho = math.log10(curvature + of.tokens * of.radius**2 / 4) + 2 * math.log10(alpha)
        log_square = 2 * math.log10(self.distance)
        limits = [0.0, -log_rho]
        for loss in (self.start_loss, self.steps * self.target_loss):
            if loss > 0:
                limits.append(log_square - math.log10(loss))
        return min(limits)

    @property
    def _square(self) -> float:
        return self.distance * self.distance  # a power of a large float raises

    def training_bound(self, step_size: float) -> float:
        """Return Theorem 1's bound on the training loss after K steps (equation 4)."""
        return 2 * self.target_loss + 5 * self._square / (4 * step_size * self.steps)

    def generalisation_bound(self, step_size: float, samples: int) -> float:
        """Return Theorem 2's bound on test less training loss (equation 5)."""
        inner = 2 * self.steps * self.target_loss + 9 * self._square / (4 * step_size)
        return 4 * inner / samples


def largest_norm(projection: Tensor, counts: Tensor) -> Tensor:
    """Return the largest norm of a head's U, (cells,); classes without heads don't count."""
    norms = projection.square().sum((-2, -1)).sqrt()
    return torch.where(counts > 0, norms, 0.0).amax(-1)
