"""Sentences of two tokens, the teacher, and random first weights, in float64.

    x_l = ξ_l + p_l / √d,   ξ_l ~ N(0, σ² I),   p₁ = (1, …, 1) = −p₂            (l = 1, 2)
    y = T ξ,   T = (1 − ω) softmax(χ χᵀ) + ω A,   χ = ξ Q⋆ / √d,   Q⋆ ~ N(0, I)

Q starts in the span of the teacher, of (1, …, 1) and of a random matrix, and gradient descent adds
tokens: it never leaves the span of all of these. So training takes place in coordinates along an
orthonormal basis of the span, of which there are `features`, at most d.

With `sampling=direct` every feature of the training samples is drawn; where the span is smaller
than the space, a QR factorisation turns to it. With `sampling=law` the coordinates are drawn, for
any d. Along (1, …, 1) they are standard normal; across it the Gaussian vectors, row by row, have
the law of Bartlett's triangular factor.

Rows of T and A sum to 1, so only T₁₁ and T₂₂ are free, and only the difference ξ₁ − ξ₂ counts:
a prediction S x differs from T ξ by

    ± ((S_ll − T_ll) (ξ₁ − ξ₂) + (2 S_ll − 1) p₁ / √d)                         in token l = 1, 2.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from overfit_cli.core.arrays import Floats, bartlett_rows
from overfit_cli.core.training import named_rng
from overfit_cli.studies.positional_semantic.parameters import Parameters


@dataclass(frozen=True, eq=False)
class Sentences:
    """Samples, in coordinates."""

    tokens: Floats  # x_l / √d, (2, samples, features)
    teacher: Floats  # the diagonal of softmax(χ χᵀ), (2, samples)
    gap: Floats  # ‖ξ₁ − ξ₂‖² / d, (samples,)
    tilt: Floats  # ⟨ξ₁ − ξ₂, p₁⟩ / d^(3/2), (samples,)
    words: Floats  # ξ_l · ξ_k / d, (samples, 2, 2)
    along: Floats  # ξ_l · p₁ / d^(3/2), (samples, 2)


@dataclass(frozen=True, eq=False)
class Problem:
    """What a seed's cells are trained on, and where they may begin."""

    train: Sentences
    ones: Floats  # p₁ = (1, …, 1), (features,)
    teacher: Floats  # Q⋆, (features, rank)
    noise: Floats  # standard normal, for random first weights, (features, rank)


def draw_problem(parameters: Parameters, seed: int) -> Problem:
    """Draw a seed's problem; more samples extend fewer, whatever ω and the start are."""
    p = parameters
    draw_vectors = _vectors if p.sampling == "direct" else _vectors_in_law
    vectors = draw_vectors(p, seed)  # (1 + 2 rank + 2 n, features): p₁, Q⋆, noise, ξ / σ
    ones, teacher, noise, words = np.split(vectors, [1, 1 + p.rank, 1 + 2 * p.rank])
    sentences = _sentences(p, p.sigma * words, ones[0], teacher.T)
    return Problem(sentences, ones[0], teacher.T, noise.T)


def draw_teacher(d: int, seed: int, rank: int = 1) -> Floats:
    """Return the teacher of `sampling=direct`, Q⋆ᵀ, (rank, d)."""
    return named_rng(seed, "init", "teacher").standard_normal((rank, d))


@functools.cache
def teacher_norm(d: int, seed: int) -> float:
    """Return ‖Q⋆‖² / d of a seed."""
    return float(np.square(draw_teacher(d, seed)).mean())


def _vectors(p: Parameters, seed: int) -> Floats:
    draws = (
        draw_teacher(p.d, seed, p.rank),
        named_rng(seed, "init", "weights").standard_normal((p.rank, p.d)),
        named_rng(seed, "train", "tokens").standard_normal((2 * p.n, p.d)),
    )
    vectors = np.concatenate([np.ones((1, p.d)), *draws])  # (1 + 2 rank + 2 n, d)
    if p.optimiser == "adam" or len(vectors) >= p.d:
        return vectors
    return np.asarray(np.linalg.qr(vectors.T, mode="r")).T  # lower triangular


def _vectors_in_law(p: Parameters, seed: int) -> Floats:
    """The same vectors up to a rotation, (1 + 2 rank + 2 n, at most d)."""
    rows = 2 * p.rank + 2 * p.n
    along = named_rng(seed, "train", "along the positions").standard_normal(rows)
    normals, lengths = named_rng(seed, "train", "normals"), named_rng(seed, "train", "lengths")
    across = bartlett_rows(normals, lengths, rows, p.d - 1)  # (rows, at most d − 1)
    vectors = np.zeros((1 + rows, 1 + across.shape[1]))  # (1 + rows, features)
    vectors[0, 0] = math.sqrt(p.d)
    vectors[1:, 0], vectors[1:, 1:] = along, across
    return vectors


def _sentences(p: Parameters, words: Floats, ones: Floats, teacher: Floats) -> Sentences:
    """Sentences of the vectors ξ, (2 samples, features), of which two in turn are a sample's."""
    xi = words.reshape(-1, 2, words.shape[1])  # (samples, 2, features)
    positions = np.stack([ones, -ones]) / math.sqrt(p.d)  # p_l / √d, (2, features)
    chi = xi @ teacher / math.sqrt(p.d)  # (samples, 2, rank)
    gram = xi @ xi.transpose(0, 2, 1) / p.d  # (samples, 2, 2)
    along = xi @ ones / p.d**1.5  # (samples, 2)
    differences = chi[:, 0] - chi[:, 1]  # (samples, rank)
    scores = np.stack([(chi[:, 0] * differences).sum(-1), -(chi[:, 1] * differences).sum(-1)])
    return Sentences(
        tokens=((xi + positions) / math.sqrt(p.d)).transpose(1, 0, 2),
        teacher=expit(scores),
        gap=gram[:, 0, 0] + gram[:, 1, 1] - 2 * gram[:, 0, 1],
        tilt=along[:, 0] - along[:, 1],
        words=gram,
        along=along,
    )


def draw_test_sentences(
    parameters: Parameters, seed: int, problem: Problem, weights: Floats
) -> tuple[Sentences, Floats]:
    """Draw fresh samples as they are seen along p₁, Q⋆ and a cell's weights, exactly in law.

    Returns them, and Q, (features, rank), in their coordinates, (2 + 2 rank + 1, rank). The last
    two coordinates are what the tokens have across the span of the three.
    """
    p = parameters
    seen = np.column_stack([problem.ones, problem.teacher, weights])  # (features, 1 + 2 rank)
    axes = seen.shape[1]
    coordinates = np.zeros((axes + 2, axes))  # (axes + 2, 1 + 2 rank)
    coordinates[: min(seen.shape)] = np.linalg.qr(seen, mode="r")
    draws = named_rng(seed, "test", "tokens")
    xi = np.zeros((p.test_samples, 2, axes + 2))  # (samples, 2, axes + 2)
    xi[:, :, :axes] = draws.standard_normal((p.test_samples, 2, axes))
    xi[:, 0, axes] = np.sqrt(draws.chisquare(p.d - axes, p.test_samples))
    xi[:, 1, axes] = draws.standard_normal(p.test_samples)
    xi[:, 1, axes + 1] = np.sqrt(draws.chisquare(p.d - axes - 1, p.test_samples))
    ones, teacher, Q = np.split(coordinates, [1, 1 + p.rank], axis=1)
    flat = p.sigma * xi.reshape(-1, axes + 2)
    return _sentences(p, flat, ones[:, 0], teacher), Q
