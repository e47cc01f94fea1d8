"""The first phase (section 5.1) in closed form, and the attention support vector machine.

Lemma 2 states U_h = α_h 1 (ζ/2 u⋆ + p)ᵀ for the weights after the first phase, with u⋆ = μ₊ − μ₋.
The mean of y μ_y over equal labels is u⋆/2, so that the expectation is ζ/4 u⋆. The coefficient is
measured, and P is the length of U's row less ζ/4 u⋆: the largest that the data let it be.

For a fixed U, gradient descent on W is said to converge in direction to the machine's solution, the
W of least norm that separates each row's best token from the others (Tarzanagh et al. 2023;
Vasudeva et al. 2024).
"""

from __future__ import annotations

import math

import numpy as np
import torch

from overfit_cli.studies.multihead.curvature import derivatives
from overfit_cli.studies.multihead.parameters import Floats, Problem, Samples
from overfit_cli.studies.multihead.theory import (
    LargestMargin,
    MixtureMargins,
    Weights,
    largest_margin,
    optimal_attention,
    radius,
)

CHANCE = 0.05
"""δ, with which Definition 1's second property may fail."""

MISSED = 0.01
"""ε of Proposition 3: the softmax that may miss the relevant tokens."""


def first_phase_columns(problem: Problem, weights: Weights, signs: Floats) -> dict[str, float]:
    """Return Lemma 2's coefficient, Definition 1's properties over their bounds, and margins.

    Args:
        problem: the mixture's, with its patterns.
        weights: the heads after the first phase.
        signs: α of each class, shape (classes,).
    """
    assert problem.patterns is not None
    assert problem.train.relevant is not None
    plus, minus, *_ = problem.patterns
    oracle = plus - minus
    sparsity = float(problem.train.relevant.mean())
    row = weights.projections[0, 0].numpy() / signs[0]  # the same for all tokens
    coefficient = float(row @ oracle / (oracle @ oracle)) / sparsity
    deviation = float(np.linalg.norm(row - sparsity / 4 * oracle))
    stated = mixture_margins(problem.train, problem.patterns, deviation)
    largest, constructed = tangent_margins(problem, weights, signs)
    return {
        "first_coefficient": coefficient,
        "first_deviation": deviation,
        **_definition_1(problem, weights, stated),
        **proposition_3(problem, stated),
        "ntk_margin": largest[0],
        "ntk_margin_bound": largest[1],
        "ntk_margin_constructed": constructed,
        "gamma_tangent": stated.tangent(),
        "gamma_tangent_without": stated.tangent_without_deviation(),
        "tangent_heads": _heads_for_tangent_margin(problem, weights, stated),
        "gamma_linear": stated.linear(),
        "gamma_attention": stated.attention(),
    }


def _heads_for_tangent_margin(problem: Problem, weights: Weights, stated: MixtureMargins) -> float:
    """log₁₀ of Proposition 2's H, √H ≥ R⁴ T (S + P) √(2 log(n/δ)) / γ⋆; nan where γ⋆ ≤ 0."""
    if stated.tangent() <= 0:
        return math.nan
    r = radius(weights.projections.new_tensor(problem.train.inputs))
    sizes = r**4 * stated.tokens * (stated.strength + stated.deviation)
    log = math.log(len(problem.train.labels) / CHANCE)
    return 2 * math.log10(sizes * math.sqrt(2 * log) / stated.tangent())


def mixture_margins(samples: Samples, patterns: Floats, deviation: float) -> MixtureMargins:
    """Return the sizes that the paper's margins depend on, with the noise that was drawn.

    Args:
        samples: samples of the mixture.
        patterns: μ₊, μ₋ and ν₁ to ν_M as rows.
        deviation: P.
    """
    assert samples.relevant is not None
    irrelevant = samples.inputs[~samples.relevant]
    others = patterns[2:]
    noise = irrelevant - others[(irrelevant @ others.T).argmax(1)]
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


def _definition_1(problem: Problem, weights: Weights, stated: MixtureMargins) -> dict[str, float]:
    """Return P1's norm and P2's output over Proposition 2's bounds; above 1 breaks one."""
    inputs = weights.projections.new_tensor(problem.train.inputs)
    norms = weights.projections.flatten(1).norm(dim=1)
    heads = float(weights.counts.sum())
    output = inputs.new_zeros(len(inputs))  # Φ̃, (samples,)
    for count, U, W in zip(weights.counts, weights.projections, weights.attentions, strict=True):
        output += float(count) / math.sqrt(heads) * derivatives(inputs, U, W).outputs
    n, tokens, _ = problem.train.inputs.shape
    size = stated.strength + stated.deviation
    bound = tokens * radius(inputs) * size * math.sqrt(2 * math.log(n / CHANCE))
    return {
        "good_norm": float(norms.max()) / (math.sqrt(tokens) * size),
        "good_output": float(output.abs().max()) / bound,
    }


def proposition_3(problem: Problem, stated: MixtureMargins) -> dict[str, float]:
    """Return the noise, the softmax missed and the margin of θ_opt, over their stated bounds.

    Args:
        problem: the mixture's.
        stated: its margins.
    """
    assert problem.patterns is not None
    samples, relevant = problem.train, problem.train.relevant
    assert relevant is not None
    W = torch.as_tensor(stated.norm_needed(MISSED) * optimal_attention(problem.patterns))  # Γ W_opt
    X = torch.as_tensor(samples.inputs)
    outputs = derivatives(X, torch.as_tensor(_oracle(problem)), W).outputs  # (samples,)
    A = (X @ W @ X.mT).softmax(-1)  # (samples, t, s)
    missed = (A * torch.as_tensor(~relevant)[:, None]).sum(-1)  # (samples, t)
    least = float((torch.as_tensor(samples.labels) * outputs).min())
    noise = max(stated.noise_on_signal, stated.noise_on_patterns)
    return {
        "optimal_noise": noise / stated.noise_allowed(),
        "optimal_missed": float(missed.max()) / MISSED,
        "optimal_margin": stated.attention(MISSED) / least,
    }


def _oracle(problem: Problem) -> Floats:
    """Return the linear classifier 1 u⋆ᵀ of unit norm, (tokens, features)."""
    assert problem.patterns is not None
    plus, minus, *_ = problem.patterns
    U: Floats = np.tile(plus - minus, (problem.train.inputs.shape[1], 1))
    U /= np.linalg.norm(U)
    return U


def tangent_margins(
    problem: Problem, weights: Weights, signs: Floats
) -> tuple[tuple[float, float], float]:
    """Return the largest margin of the tangent kernel with its bound, and that of section 5.2's θ⋆.

    Both are for parameters of norm √2 (Definition 1, P3). Heads of a class have the same features,
    so that of the best θ they have the same share.

    Args:
        problem: the mixture's.
        weights: the heads after the first phase.
        signs: α of each class, shape (classes,).
    """
    assert problem.patterns is not None
    inputs = weights.projections.new_tensor(problem.train.inputs)
    heads = float(weights.counts.sum())
    gradients = [
        derivatives(inputs, U, W).gradients.numpy()
        for U, W in zip(weights.projections, weights.attentions, strict=True)
    ]  # each (samples, parameters)
    shares = np.sqrt(weights.counts.numpy() / heads)
    labels = problem.train.labels[:, None]
    features = np.hstack(
        [share * gradient for share, gradient in zip(shares, gradients, strict=True)]
    )  # (samples, classes · parameters)
    best = largest_margin(labels * features)
    oracle, attention = _oracle(problem).ravel(), optimal_attention(problem.patterns).ravel()
    chosen = np.hstack(
        [
            share * np.concatenate([oracle, sign * attention])
            for share, sign in zip(shares, signs, strict=True)
        ]
    )
    constructed = float((labels * features @ chosen[:, None]).min())
    root = math.sqrt(2)
    return (root * best.margin, root * best.bound), constructed


_ZERO_MARGIN = 1e-9
"""The margin, over the longest vector's length, that is taken for none."""


def constraints(inputs: Floats, labels: Floats, U: Floats) -> Floats:
    """Return the vectors whose largest margin is that of the attention support vector machine.

    For each row t of a sample the best token α has the largest y ⟨u_t, x_s⟩. W separates it from
    the others where x_tᵀ W (x_α − x_s) is positive for all s: products of W with these vectors.

    Args:
        inputs: X, shape (samples, tokens, features).
        labels: y, shape (samples,).
        U: fixed, shape (tokens, features).

    Returns:
        x_t (x_α − x_s)ᵀ in a row for each sample, t and s other than α, (vectors, features²).
    """
    values = labels[:, None, None] * (U @ inputs.swapaxes(1, 2))  # y ⟨u_t, x_s⟩, (n, t, s)
    best = values.argmax(-1)  # α, (n, t)
    chosen = np.take_along_axis(inputs, best[..., None], axis=1)  # x_α, (n, t, features)
    differences = chosen[:, :, None] - inputs[:, None]  # x_α − x_s, (n, t, s, features)
    products = inputs[:, :, None, :, None] * differences[..., None, :]  # (n, t, s, features, ·)
    rest = np.arange(inputs.shape[1]) != best[..., None]  # (n, t, s)
    vectors: Floats = products[rest].reshape(-1, inputs.shape[2] ** 2)
    return vectors


def solution(samples: Samples, U: Floats) -> LargestMargin | None:
    """Return the machine's solution for one head; None where no W separates the best tokens.

    Args:
        samples: the training samples.
        U: shape (tokens, features).
    """
    vectors = constraints(samples.inputs, samples.labels, U)
    best = largest_margin(vectors)
    longest = float(np.linalg.norm(vectors, axis=1).max())
    return best if best.margin > _ZERO_MARGIN * longest else None


def columns(samples: Samples, weights: Weights) -> dict[str, float]:
    """Return the mean cosine of the heads' W with their solutions, and the solutions' least margin.

    There is no cosine where a head has no solution, or no W yet.

    Args:
        samples: the training samples.
        weights: one cell's heads.
    """
    cosines, margins = [], []
    for U, W in zip(weights.projections, weights.attentions, strict=True):
        best = solution(samples, U.cpu().double().numpy())
        flat = W.cpu().double().numpy().ravel()  # (features²,)
        length = float(np.linalg.norm(flat))
        margins.append(best.margin if best else 0.0)
        cosines.append(float(best.direction @ flat) / length if best and length else np.nan)
    share = weights.counts.cpu().double().numpy()
    return {
        "machine_cosine": float(np.average(cosines, weights=share)),
        "machine_margin": min(margins),
    }
