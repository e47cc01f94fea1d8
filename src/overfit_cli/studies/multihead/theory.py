"""Bounds and margins that the paper proves, and measured quantities divided by them.

In the order of the file: β₁ to β₃ (Corollary 1), Proposition 1, what Theorems 1 and 2 require and
bound, the margins of the linear model, of the tangent kernel and of attention, and the certificates
along a trajectory. Where Corollary 1 has the norm of θ, that of U suffices (its footnote): that is
done here, so that what holds here holds for the looser bound of the text too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor, linalg

from overfit_cli.studies.multihead.curvature import Derivatives, derivatives, loss_curvature
from overfit_cli.studies.multihead.engine import Heads, full_matrices
from overfit_cli.studies.multihead.parameters import Floats

THEOREM_1, THEOREM_2 = 36.0, 256.0
"""The constants with which each theorem requires many heads (the appendix's restatements)."""


@dataclass(frozen=True)
class Sizes:
    """The sizes that the bounds depend on.

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


def gradient_bound(inputs: Tensor, U: Tensor) -> Tensor:
    """Return Proposition 1's bound on the gradient of one head's output, (samples,).

    ‖∇Φ‖ ≤ 2 ‖X‖²_{2,∞} Σ_t ‖X u_t‖_∞ + √T ‖X‖_{2,∞}

    Args:
        inputs: X, shape (samples, tokens, features).
        U: shape (tokens, features).
    """
    T = inputs.shape[1]
    longest: Tensor = linalg.vector_norm(inputs, dim=-1).amax(-1)  # ‖X‖_{2,∞}, (samples,)
    return 2 * longest**2 * _largest_outputs(inputs, U) + math.sqrt(T) * longest


def hessian_bound(inputs: Tensor, U: Tensor) -> Tensor:
    """Return Proposition 1's bound on the Hessian of one head's output, (samples,).

    ‖∇²Φ‖ ≤ 6 d ‖X‖²_{2,∞} ‖X‖²_{1,∞} Σ_t ‖X u_t‖_∞ + 2 √(T d) ‖X‖²_{2,∞} ‖X‖_{1,∞}

    Args:
        inputs: X, shape (samples, tokens, features).
        U: shape (tokens, features).
    """
    _, T, d = inputs.shape
    longest: Tensor = linalg.vector_norm(inputs, dim=-1).amax(-1)  # ‖X‖_{2,∞}, (samples,)
    largest = inputs.abs().amax((-2, -1))  # ‖X‖_{1,∞}, (samples,)
    first = 6 * d * longest**2 * largest**2 * _largest_outputs(inputs, U)
    return first + 2 * math.sqrt(T * d) * longest**2 * largest


def _largest_outputs(inputs: Tensor, U: Tensor) -> Tensor:
    """Return Σ_t ‖X u_t‖_∞, (samples,)."""
    outputs = inputs @ U.T  # (samples, s, t)
    return outputs.abs().amax(-2).sum(-1)


@dataclass(frozen=True)
class Hypotheses:
    """The requirements of Theorems 1 and 2 on H and η for one target θ, and their bounds.

    Constants are the appendix's.

    Attributes:
        sizes: the sizes that the bounds depend on.
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
        sizes = self.sizes
        root_t, root_d = math.sqrt(sizes.tokens), math.sqrt(sizes.features)
        inner = 3 * root_t * sizes.radius**3 * (3 * self.distance + self.largest)
        alpha = 3 * root_d * sizes.radius**2 * (inner + 2 * root_t * sizes.radius)
        curvature = 2 * root_t * root_d * sizes.radius**3 / math.sqrt(sizes.heads)
        log_rho = math.log10(curvature + sizes.tokens * sizes.radius**2 / 4) + 2 * math.log10(alpha)
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


@dataclass(frozen=True)
class LargestMargin:
    """The largest margin of a linear function of unit norm on some vectors.

    Attributes:
        direction: the unit vector that has it.
        margin: the least product of it with a vector.
        bound: an upper bound on all margins: the length of a convex combination.
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
        vectors: the vectors, labels multiplied in, shape (vectors, dimensions).
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
        signal = s**2 * (1 - missed) - 2 * missed * self.noise_on_signal
        return math.sqrt(self.tokens / 2) * signal / s

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
    plus, minus, *patterns = means
    total = plus + minus
    W = np.outer(plus, plus) + np.outer(minus, minus)
    W = W + sum(np.outer(pattern, total) for pattern in patterns)
    unit: Floats = W / np.linalg.norm(W)
    return unit


HESSIAN_SAMPLES = 32
"""How many training samples Hessians are measured on for Proposition 1, the first ones."""

RATIOS = (
    "model_gradient",
    "model_hessian",
    "loss_gradient",
    "loss_hessian",
    "loss_concavity",
)
"""Measured quantities over their bounds: Proposition 1's two, and Corollary 1's three."""


def radius(inputs: Tensor) -> float:
    """Return R of Assumption 1: the length of the longest token, and at least 1."""
    return max(1.0, float(inputs.norm(dim=-1).max()))


@dataclass(frozen=True)
class Weights:
    """One cell's heads, a class at a time, at a step.

    Attributes:
        projections: U, shape (classes, tokens, features).
        attentions: W, shape (classes, features, features).
        counts: how many heads each class has, shape (classes,).
    """

    projections: Tensor
    attentions: Tensor
    counts: Tensor


def weights_of_cell(heads: Heads, cell: int) -> Weights:
    """Return the classes of one cell that have heads, given the cell's index."""
    filled = heads.counts[cell] > 0  # (classes,)
    U, W = full_matrices(heads.weights)
    return Weights(U[cell][filled], W[cell][filled], heads.counts[cell][filled])


def certificates(weights: Weights, inputs: Tensor, labels: Tensor) -> dict[str, float]:
    """Return measured quantities over their bounds, by the names of `RATIOS`; 1 is the bound.

    Args:
        weights: one cell's heads.
        inputs: X, shape (samples, tokens, features).
        labels: y, shape (samples,).
    """
    by_class = [
        derivatives(inputs, U, W)
        for U, W in zip(weights.projections, weights.attentions, strict=True)
    ]
    model = [
        _proposition_1(head, U, inputs)
        for head, U in zip(by_class, weights.projections, strict=True)
    ]
    _, T, d = inputs.shape
    sizes = Sizes(T, d, radius(inputs), float(weights.counts.sum()))
    norm = float(largest_norm(weights.projections, weights.counts))
    curvature = loss_curvature(by_class, weights.counts, labels)
    largest = max(curvature.largest, -curvature.smallest)
    return {
        "model_gradient": max(gradient for gradient, _ in model),
        "model_hessian": max(hessian for _, hessian in model),
        "loss_gradient": curvature.gradient / sizes.beta_1(norm),
        "loss_hessian": math.exp(curvature.log_loss) * largest / sizes.beta_2(norm),
        "loss_concavity": -curvature.smallest * math.sqrt(sizes.heads) / sizes.beta_3(norm),
    }


def _proposition_1(head: Derivatives, U: Tensor, inputs: Tensor) -> tuple[float, float]:
    """Return Proposition 1's two ratios for one head, at the worst sample."""
    gradients = head.gradients.norm(dim=1) / gradient_bound(inputs, U)  # (samples,)
    first = head.first(HESSIAN_SAMPLES)
    norms = torch.linalg.eigvalsh(first.hessians()).abs().amax(1)  # (samples,)
    hessians = norms / hessian_bound(inputs[:HESSIAN_SAMPLES], U)  # (samples,)
    return float(gradients.max()), float(hessians.max())


def hypotheses(
    start: Weights, end: Weights, inputs: Tensor, losses: tuple[float, float], steps: int
) -> Hypotheses:
    """Return the hypotheses of Theorems 1 and 2 for a cell, with the last step as their target θ.

    Args:
        start, end: the heads at both ends.
        inputs: X, shape (samples, tokens, features).
        losses: the training loss at both ends.
        steps: K.
    """
    _, tokens, features = inputs.shape
    theta_start, theta_end = (
        torch.cat([weights.projections.flatten(1), weights.attentions.flatten(1)], 1)
        for weights in (start, end)
    )  # (classes, parameters)
    squares = (theta_end - theta_start).square().sum(1)
    return Hypotheses(
        Sizes(tokens, features, radius(inputs), float(end.counts.sum())),
        distance=float((end.counts * squares).sum().sqrt()),
        largest=float(theta_end.norm(dim=1).max()),
        target_loss=losses[1],
        start_loss=losses[0],
        steps=steps,
    )


def theorem_columns(hypotheses: Hypotheses, step_size: float, samples: int) -> dict[str, float]:
    """Return Theorem 1's and 2's bounds, and the decimal logarithms of what they require.

    Args:
        hypotheses: the hypotheses of both theorems.
        step_size: η.
        samples: n.
    """
    if not 0 < hypotheses.distance < math.inf:
        return {}
    return {
        "theorem1_bound": hypotheses.training_bound(step_size),
        "theorem1_heads": hypotheses.log10_heads_needed(THEOREM_1),
        "theorem2_bound": hypotheses.generalisation_bound(step_size, samples),
        "theorem2_heads": hypotheses.log10_heads_needed(THEOREM_2),
        "theorem_step_size": hypotheses.log10_largest_step_size(),
    }
