"""Samples of the planted model (Deora et al. 2024, DM2).

The paper doesn't say how the planted head is drawn. Here W⋆ has entries N(0, 1/d), and U⋆ Gaussian
ones with a Frobenius norm of 1, a seed's own. Samples whose planted logit is at most γ_attn in size
are dropped.
"""

from __future__ import annotations

import math

import numpy as np

from overfit_cli.core.errors import BadValue
from overfit_cli.core.training import named_rng
from overfit_cli.studies.multihead.parameters import Floats, Head, Problem, Samples
from overfit_cli.studies.multihead.planted.parameters import MultiheadPlantedParameters

_CHUNK = 1024

_MOST_DRAWS = 1000
"""The largest number of draws, in multiples of the samples that are needed."""


def draw_problem(parameters: MultiheadPlantedParameters, seed: int) -> Problem:
    """Draw a seed's head and samples. Heads, optimisers and step sizes share a seed's draws."""
    planted = draw_head(parameters.tokens, parameters.d, seed)
    return Problem(
        train=_draw(parameters, planted, seed, "train", parameters.n),
        test=_draw(parameters, planted, seed, "test", parameters.test_samples),
        first=_draw(parameters, planted, seed, "first", parameters.first_samples),
        planted=planted,
        margin=parameters.least_logit,
    )


def draw_head(tokens: int, features: int, seed: int) -> Head:
    """Draw the head that labels a seed's samples."""
    # U⋆, (tokens, features)
    projection = named_rng(seed, "planted", "projection").standard_normal((tokens, features))
    # W⋆, (features, features)
    attention = named_rng(seed, "planted", "attention").standard_normal((features, features))
    return Head(projection / np.linalg.norm(projection), attention / math.sqrt(features))


def logits(head: Head, inputs: Floats) -> Floats:
    """Return Φ(X; W, U) of each sample, (samples,)."""
    scores = inputs @ head.attention @ inputs.swapaxes(1, 2)  # (samples, tokens, tokens)
    weights = np.exp(scores - scores.max(-1, keepdims=True))  # (samples, tokens, tokens)
    weights /= weights.sum(-1, keepdims=True)
    products: Floats = np.einsum("td,ntd->n", head.projection, weights @ inputs)
    return products


def _draw(
    parameters: MultiheadPlantedParameters, planted: Head, seed: int, stream: str, count: int
) -> Samples:
    random = named_rng(seed, stream, "tokens")
    inputs: list[Floats] = []
    labels: list[Floats] = []
    accepted = 0
    for drawn in range(0, _MOST_DRAWS * max(count, _CHUNK), _CHUNK):
        # (chunk, tokens, features)
        chunk = random.standard_normal((_CHUNK, parameters.tokens, parameters.d))
        values = logits(planted, chunk)  # (chunk,)
        large = np.abs(values) > parameters.least_logit
        inputs.append(chunk[large])
        labels.append(np.sign(values[large]))
        accepted += int(large.sum())
        if accepted >= count:
            return Samples(np.concatenate(inputs)[:count], np.concatenate(labels)[:count])
        if drawn > _MOST_DRAWS * max(accepted, 1):
            break
    raise BadValue(
        "least_logit",
        parameters.least_logit,
        f"of {_MOST_DRAWS} samples fewer than one has so large a planted logit; least_logit takes "
        "a smaller number.",
    )
