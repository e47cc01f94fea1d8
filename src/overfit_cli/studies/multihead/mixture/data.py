"""Samples of the tokenized mixture model (Deora et al. 2024, DM1 and Assumption 3).

Patterns are S times the first axes: μ₊, μ₋, ν₁ to ν_M. A sample's relevant tokens are its label's
pattern; each other token is one of ν₁ to ν_M with Gaussian noise. Which places are relevant is
drawn for each sample.
"""

from __future__ import annotations

import math

import numpy as np

from overfit_cli.core.training import named_rng
from overfit_cli.studies.multihead.mixture.parameters import MultiheadMixtureParameters
from overfit_cli.studies.multihead.parameters import Floats, Problem, Samples


def draw_problem(parameters: MultiheadMixtureParameters, seed: int) -> Problem:
    """Draw a seed's problem. Heads, optimisers and step sizes of one seed share its draws."""
    return Problem(
        train=_draw(parameters, seed, "train", parameters.n),
        test=_draw(parameters, seed, "test", parameters.test_samples),
        first=_draw(parameters, seed, "first", parameters.first_samples),
        planted=None,
        margin=parameters.strength * math.sqrt(parameters.tokens / 2),
        patterns=patterns(parameters),
    )


def patterns(parameters: MultiheadMixtureParameters) -> Floats:
    """Return μ₊, μ₋, ν₁ to ν_M as rows, (patterns, features)."""
    return parameters.strength * np.eye(parameters.patterns + 2, parameters.d)


def _draw(parameters: MultiheadMixtureParameters, seed: int, stream: str, count: int) -> Samples:
    shape = (count, parameters.tokens)
    means = patterns(parameters)
    labels = named_rng(seed, stream, "labels").choice([1.0, -1.0], count)  # y, (samples,)
    order = named_rng(seed, stream, "places").random(shape).argsort(1)
    relevant = order < parameters.relevant  # (samples, tokens)
    # which ν, (samples, tokens)
    others = named_rng(seed, stream, "patterns").integers(0, parameters.patterns, shape)
    # (samples, tokens, features)
    noise = named_rng(seed, stream, "noise").standard_normal((*shape, parameters.d))
    irrelevant = means[2 + others] + parameters.sigma * noise  # (samples, tokens, features)
    of_label = means[np.where(labels > 0, 0, 1)][:, None]  # (samples, 1, features)
    return Samples(np.where(relevant[..., None], of_label, irrelevant), labels, relevant)
