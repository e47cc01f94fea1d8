"""Section 5: margins, the first phase in closed form, and random attention (section 7).

Lemma 2 states U_h = α_h 1 (ζ/2 u⋆ + p)ᵀ for the weights after the first phase, with u⋆ = μ₊ − μ₋.
The mean of y μ_y over equal labels is u⋆/2, so that the expectation is ζ/4 u⋆. The coefficient is
measured, and P is the length of U's row over α_h less ζ/4 u⋆. γ⋆ is equation (115) and after with
ζ/4 in place of ζ/2 and with E|α_h|: that is 1 for signs of ±1, and 1/2 where α_h is uniform on
[−1, 1], as the factor 1/2 of (116) suggests.

After the first phase W is zero, and a head's output and its gradients in U and W are multiples of
those of a head with α_h = 1, by α_h, 1 and α_h. So all that is measured there depends on the sum of
the α_h and on the means of their sizes and squares, and no head is computed by itself.

Where attention is random and U is zero, a head's output and its gradient in W are zero, and its
gradient in u_t is x̄_t, the mean of tokens that row t of softmax(X W Xᵀ) takes. So B_Φ of Definition
1 may be 1, its least value, and the products of two samples' features are 1/H Σ_h Σ_t ⟨x̄_t, x̄′_t⟩.

Margins of the tangent kernel are for parameters of norm √2 (Definition 1, P3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from overfit_cli.core.arrays import Floats
from overfit_cli.studies.multihead.data import Problem, Samples
from overfit_cli.studies.multihead.engine import FirstSteps, first_gradient
from overfit_cli.studies.multihead.parameters import CHANCE, MISSED
from overfit_cli.studies.multihead.theory import Derivatives, derivatives, radius


@dataclass(frozen=True)
class LargestMargin:
    """The largest margin of a linear function of unit norm on some vectors."""

    direction: Floats  # the unit vector that has it
    margin: float  # the least product of it with a vector


def largest_margin(vectors: Floats) -> LargestMargin:
    """Return the unit vector whose least product with some vectors is largest.

    It points to the shortest vector of their convex hull, whose length is the margin. With weights
    x ≥ 0 the least of ‖Σ x_i v_i‖² + (1 − Σ x_i)² is at a multiple of that combination: a problem
    of non-negative least squares. Labels are multiplied into the vectors, (vectors, dimensions).
    """
    scale = float(np.linalg.norm(vectors, axis=1).max()) or 1.0
    rows = np.vstack([vectors.T / scale, np.ones(len(vectors))])  # (dimensions + 1, vectors)
    target = np.zeros(len(rows))  # (dimensions + 1,)
    target[-1] = 1.0
    weights, _ = nnls(rows, target)
    shortest = weights @ vectors / weights.sum()  # (dimensions,)
    length = float(np.linalg.norm(shortest))
    direction: Floats = shortest / length if length else shortest
    return LargestMargin(direction, float((vectors @ direction).min()))


@dataclass(frozen=True)
class MixtureMargins:
    """The margins that the paper states for the tokenized mixture."""

    tokens: int  # T
    sparsity: float  # ζ
    strength: float  # S
    patterns: int  # M
    noise_on_signal: float  # Z_μ, the largest product of a noise vector with μ₊ or μ₋
    noise_on_patterns: float  # Z_ν, M times the largest one with a ν
    noise: float  # Z, the longest noise vector
    # P of Lemma 2, the length of what the first phase adds to the oracle classifier
    deviation: float
    mean_size: float = 1.0  # E|α_h|

    def linear(self) -> float:
        """Return γ_lin, that of the oracle linear classifier (equation 132)."""
        irrelevant = 2 * (1 - self.sparsity) * self.noise_on_signal / self.strength**2
        return self.strength * math.sqrt(self.tokens / 2) * (self.sparsity - irrelevant)

    def tangent(self) -> float:
        """Return γ⋆ of equation (7), with ζ/4 for ζ/2 and with E|α|; see the module's text."""
        lost = self.deviation * math.pow(self.tokens, 2.5) * (self.strength + self.noise) ** 3
        return self.tangent_without_deviation() - 2 * self.mean_size * lost

    def tangent_without_deviation(self) -> float:
        """Return what γ⋆ would be if P were 0, as with a first phase of endless samples."""
        s, z = self.strength, max(self.noise_on_signal, self.noise_on_patterns)
        inner = self.sparsity * s**4 - 7 * z * s**2 - 12 * z**2 - 16 * z**3 / s**2
        share = self.mean_size * self.tokens * (1 - self.sparsity) * self.sparsity
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
    """Return W_opt of unit norm, (features, features), from rows μ₊, μ₋, ν₁ to ν_M (equation 9)."""
    plus, minus, *patterns = means
    total = plus + minus
    W = np.outer(plus, plus) + np.outer(minus, minus)  # (features, features)
    W = W + sum(np.outer(pattern, total) for pattern in patterns)
    unit: Floats = W / np.linalg.norm(W)
    return unit


MEAN_SIZES = {"uniform": 0.5, "signs": 1.0}
"""E|α_h| of each first phase."""


def first_phase_columns(problem: Problem, first_phase: str, steps: FirstSteps) -> dict[str, float]:
    """Return Lemma 2's coefficient and deviation, Proposition 3's sides, and margins."""
    assert problem.patterns is not None
    assert problem.train.relevant is not None
    plus, minus, *_ = problem.patterns
    oracle = plus - minus
    sparsity = float(problem.train.relevant.mean())
    U = first_gradient(problem.first)  # of a head with α = 1, (tokens, features)
    coefficient = float(U[0] @ oracle / (oracle @ oracle)) / sparsity  # ⟨row, u⋆⟩ / (‖u⋆‖² ζ)
    deviation = float(np.linalg.norm(U[0] - sparsity / 4 * oracle))
    stated = mixture_margins(problem.train, problem.patterns, deviation)
    stated = replace(stated, mean_size=MEAN_SIZES[first_phase])
    inputs = torch.as_tensor(problem.train.inputs)  # (samples, tokens, features)
    head = derivatives(inputs, torch.as_tensor(U.copy()), inputs.new_zeros(2 * inputs.shape[2:]))
    largest, constructed = tangent_margins(problem, head, steps)
    return {
        "first_coefficient": coefficient,
        "first_deviation": deviation,
        **proposition_3(problem, stated),
        "ntk_margin": largest,
        "ntk_margin_constructed": constructed,
        "gamma_tangent": stated.tangent(),
        "tangent_heads": _heads_for_tangent_margin(problem, stated),
        "gamma_linear": stated.linear(),
        "gamma_attention": stated.attention(),
    }


def _heads_for_tangent_margin(problem: Problem, stated: MixtureMargins) -> float:
    """log₁₀ H of Lemma 15: √H ≥ 4 (2 R³ T (S + P) + √T R) √(2 log(n/δ)) / γ⋆; nan where γ⋆ ≤ 0."""
    if stated.tangent() <= 0:
        return math.nan
    r = radius(torch.as_tensor(problem.train.inputs))
    size = 2 * r**3 * stated.tokens * (stated.strength + stated.deviation)
    size += math.sqrt(stated.tokens) * r
    log = math.log(len(problem.train.labels) / CHANCE)
    return 2 * math.log10(4 * size * math.sqrt(2 * log) / stated.tangent())


def mixture_margins(samples: Samples, patterns: Floats, deviation: float) -> MixtureMargins:
    """Return what margins depend on, by the noise that was drawn; rows are μ₊, μ₋, ν₁ to ν_M."""
    assert samples.relevant is not None
    irrelevant = samples.inputs[~samples.relevant]  # (irrelevant tokens, features)
    others = patterns[2:]
    noise = irrelevant - others[(irrelevant @ others.T).argmax(1)]  # (irrelevant tokens, features)
    return MixtureMargins(
        tokens=samples.inputs.shape[1],
        sparsity=float(samples.relevant.mean()),
        strength=float(np.linalg.norm(patterns[0])),
        patterns=len(others),
        noise_on_signal=float(np.abs(noise @ patterns[:2].T).max()),
        noise_on_patterns=len(others) * float(np.abs(noise @ others.T).max()),
        noise=float(np.linalg.norm(noise, axis=1).max()),
        deviation=deviation,
    )


def proposition_3(problem: Problem, stated: MixtureMargins) -> dict[str, float]:
    """Return the noise, the softmax missed and the margin of θ_opt, over their stated bounds."""
    assert problem.patterns is not None
    samples, relevant = problem.train, problem.train.relevant
    assert relevant is not None
    W = torch.as_tensor(stated.norm_needed(MISSED) * optimal_attention(problem.patterns))  # Γ W_opt
    X = torch.as_tensor(samples.inputs)  # (samples, tokens, features)
    outputs = derivatives(X, torch.as_tensor(_oracle(problem)), W).outputs  # (samples,)
    A = (X @ W @ X.mT).softmax(-1)  # (samples, t, s)
    missed = (A * torch.as_tensor(~relevant)[:, None]).sum(-1)  # (samples, t)
    least = float((torch.as_tensor(samples.labels) * outputs).min())
    noise = max(stated.noise_on_signal, stated.noise_on_patterns)
    return {
        "optimal_noise": noise / stated.noise_allowed(),
        "optimal_missed": float(missed.max()) / MISSED,
        "optimal_margin": stated.attention(MISSED) / least,
        "margin_attention": least,
        "margin_linear": _linear_margin(problem),
    }


def _linear_margin(problem: Problem) -> float:
    products = np.einsum("ntd,td->n", problem.train.inputs, _oracle(problem))  # (samples,)
    return float((problem.train.labels * products).min())


def _oracle(problem: Problem) -> Floats:
    """Return the linear classifier 1 u⋆ᵀ of unit norm, (tokens, features)."""
    assert problem.patterns is not None
    plus, minus, *_ = problem.patterns
    U: Floats = np.tile(plus - minus, (problem.train.inputs.shape[1], 1))
    U /= np.linalg.norm(U)
    return U


def tangent_margins(problem: Problem, head: Derivatives, steps: FirstSteps) -> tuple[float, float]:
    """Return the largest margin of the tangent kernel, and that of section 5.2's θ⋆.

    A head's features are its gradients over √H. The products of two samples' features, summed over
    heads, are those of the gradients in U and of √(mean α²) times those in W; the products with θ⋆
    contain the mean of |α|.

    Args:
        head: the derivatives of a head with α = 1.
        steps: α_h of the heads.
    """
    assert problem.patterns is not None
    gradients = head.gradients.numpy()  # (samples, parameters)
    in_U, in_W = np.split(gradients, [problem.train.inputs[0].size], axis=1)
    labels = problem.train.labels[:, None]
    root_mean_square = math.sqrt(steps.mean(steps.sizes**2))
    best = largest_margin(labels * np.hstack([in_U, root_mean_square * in_W]))
    oracle, attention = _oracle(problem).ravel(), optimal_attention(problem.patterns).ravel()
    products = in_U @ oracle + steps.mean(np.abs(steps.sizes)) * (in_W @ attention)  # (samples,)
    constructed = float((problem.train.labels * products).min())
    return math.sqrt(2) * best.margin, constructed


def random_attention_columns(problem: Problem, W: Tensor) -> dict[str, float]:
    """Return margins of W, (heads, features, features), and after a first phase with one head."""
    assert problem.patterns is not None
    inputs = torch.as_tensor(problem.train.inputs)  # (samples, tokens, features)
    U = torch.as_tensor(first_gradient(problem.first).copy())  # of a head with α = 1, (T, d)
    head = derivatives(inputs, U, inputs.new_zeros(2 * inputs.shape[2:]))
    after, _ = tangent_margins(problem, head, FirstSteps(np.ones(1), np.ones(1)))
    return {
        "ntk_margin": math.sqrt(2) * output_margin(problem, W),
        "ntk_margin_first": after,
        "gamma_attention": problem.margin,
    }


def output_margin(problem: Problem, W: Tensor) -> float:
    """Return the largest margin of gradients in U for U = 0, for parameters of norm 1."""
    X = torch.as_tensor(problem.train.inputs, dtype=torch.float64)  # (samples, tokens, features)
    products = X.new_zeros(2 * (len(X),))  # (samples, samples)
    for of_head in W.double().cpu():
        means = ((X @ of_head @ X.mT).softmax(-1) @ X).flatten(1)  # x̄, (samples, T d)
        products += means @ means.T / len(W)
    signed = problem.train.labels[:, None] * products.numpy() * problem.train.labels
    sizes, directions = np.linalg.eigh(signed)
    # vectors with these products, of as many dimensions as there are samples
    vectors: Floats = directions * np.sqrt(sizes.clip(min=0.0))
    return largest_margin(vectors).margin
