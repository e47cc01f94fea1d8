"""Samples of both data models of Deora et al. 2024, each of a seed's own streams.

DM1, the tokenized mixture (Assumption 3): patterns are S times the first axes: μ₊, μ₋, ν₁ to ν_M. A
sample's relevant tokens are its label's pattern; each other token is one of ν₁ to ν_M with Gaussian
noise. Which places are relevant is drawn for each sample.

DM2, the planted model: Gaussian tokens, y the sign of Φ(X; W⋆, U⋆). The paper doesn't say how the
planted head is drawn. Here W⋆ has entries N(0, 1/d), and U⋆ Gaussian ones with a Frobenius norm of
1, a seed's own. Samples whose planted logit is at most γ_attn in size are dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.arrays import Floats
from overfit_cli.core.errors import BadValue
from overfit_cli.core.training import named_rng
from overfit_cli.studies.multihead.parameters import (
    MultiheadMixtureParameters,
    MultiheadParameters,
    MultiheadPlantedParameters,
)


@dataclass(frozen=True)
class Samples:
    """Labelled samples."""

    inputs: Floats  # X, (samples, tokens, features)
    labels: Floats  # y, ±1, (samples,)
    # which tokens carry the label, (samples, tokens); None where none does alone
    relevant: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Head:
    """The weights of one attention head."""

    projection: Floats  # U, (tokens, features)
    attention: Floats  # W, (features, features)


@dataclass(frozen=True)
class Problem:
    """The samples of a cell, and what is known of their labels."""

    train: Samples
    test: Samples
    first: Samples  # those of the first phase
    planted: Head | None  # the head that gave the labels; None where none did
    margin: float  # the margin that attention can reach, γ_attn; 0 where it isn't known
    patterns: Floats | None = None  # μ₊, μ₋ and ν₁ to ν_M as rows; None where there are none


def draw_problem(parameters: MultiheadParameters, seed: int) -> Problem:
    """Draw a seed's problem. Heads, optimisers and step sizes of one seed share its draws."""
    p = parameters
    streams = (("train", p.n), ("test", p.test_samples), ("first", p.first_samples))
    if isinstance(p, MultiheadPlantedParameters):
        head = draw_head(p.tokens, p.d, seed)
        train, test, first = (_planted(p, head, seed, *stream) for stream in streams)
        return Problem(train, test, first, head, p.least_logit)
    assert isinstance(p, MultiheadMixtureParameters)
    margin = p.strength * math.sqrt(p.tokens / 2)  # γ_attn = S √T / √2
    train, test, first = (_mixture(p, seed, *stream) for stream in streams)
    return Problem(train, test, first, None, margin, patterns(p))


def patterns(parameters: MultiheadMixtureParameters) -> Floats:
    """Return μ₊, μ₋, ν₁ to ν_M as rows, (patterns, features)."""
    return parameters.strength * np.eye(parameters.patterns + 2, parameters.d)


def _mixture(p: MultiheadMixtureParameters, seed: int, stream: str, count: int) -> Samples:
    shape, means = (count, p.tokens), patterns(p)
    labels = named_rng(seed, stream, "labels").choice([1.0, -1.0], count)  # y, (samples,)
    order = named_rng(seed, stream, "places").random(shape).argsort(1)
    relevant = order < p.relevant  # (samples, tokens)
    others = named_rng(seed, stream, "patterns").integers(0, p.patterns, shape)  # which ν
    noise = named_rng(seed, stream, "noise").standard_normal((*shape, p.d))
    irrelevant = means[2 + others] + p.sigma * noise  # (samples, tokens, features)
    of_label = means[np.where(labels > 0, 0, 1)][:, None]  # (samples, 1, features)
    return Samples(np.where(relevant[..., None], of_label, irrelevant), labels, relevant)


def draw_head(tokens: int, features: int, seed: int) -> Head:
    """Draw the head that labels a seed's samples."""
    U = named_rng(seed, "planted", "projection").standard_normal((tokens, features))
    W = named_rng(seed, "planted", "attention").standard_normal((features, features))
    return Head(U / np.linalg.norm(U), W / math.sqrt(features))


def logits(head: Head, inputs: Floats) -> Floats:
    """Return Φ(X; W, U) of each sample, (samples,)."""
    scores = inputs @ head.attention @ inputs.swapaxes(1, 2)  # (samples, tokens, tokens)
    weights = np.exp(scores - scores.max(-1, keepdims=True))  # (samples, tokens, tokens)
    weights /= weights.sum(-1, keepdims=True)
    products: Floats = np.einsum("td,ntd->n", head.projection, weights @ inputs)
    return products


_CHUNK = 1024

_MOST_DRAWS = 1000
"""The largest number of draws, in multiples of the samples that are needed."""


def _planted(
    p: MultiheadPlantedParameters, head: Head, seed: int, stream: str, count: int
) -> Samples:
    random, accepted = named_rng(seed, stream, "tokens"), 0
    inputs, labels = list[Floats](), list[Floats]()
    for drawn in range(0, _MOST_DRAWS * max(count, _CHUNK), _CHUNK):
        chunk = random.standard_normal((_CHUNK, p.tokens, p.d))  # (chunk, tokens, features)
        values = logits(head, chunk)  # (chunk,)
        large = np.abs(values) > p.least_logit
        inputs.append(chunk[large])
        labels.append(np.sign(values[large]))
        accepted += int(large.sum())
        if accepted >= count:
            return Samples(np.concatenate(inputs)[:count], np.concatenate(labels)[:count])
        if drawn > _MOST_DRAWS * max(accepted, 1):
            break
    raise BadValue(
        "least_logit",
        p.least_logit,
        f"of {_MOST_DRAWS} samples fewer than one has so large a planted logit; least_logit takes "
        "a smaller number.",
    )
