"""What is drawn: Definition 3.1's samples and section 6's initial weights (Jiang et al. 2024).

Everything is drawn in float64 at unit scale and rounded later, so that neither the precision nor
the signal's or the noise's strength changes a draw: `token_scales` holds those strengths.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from overfit_cli.rng import named_rng
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Samples:
    """Samples at unit scale.

    Attributes:
        labels: ±1, shape (samples,).
        flip_draws: uniform in [0, 1), shape (samples,); a label is flipped where this lies below
            `label_flip`, so more flips extend fewer.
        tokens: shape (samples, tokens, features); token 1 is e₁ or e₂, the others are noise of
            deviation 1 in every feature.
    """

    labels: Floats
    flip_draws: Floats
    tokens: Floats


@dataclass(frozen=True)
class Weights:
    """Initial weights of equation (1); Gaussian ones of deviation 1, with a w_O of length 1.

    Attributes:
        query, key: shape (features, width); d_h wide where they are drawn directly.
        value: shape (features, d_v).
        output: w_O, shape (d_v,); it isn't trained.
    """

    query: Floats
    key: Floats
    value: Floats
    output: Floats


@dataclass(frozen=True)
class Draws:
    """What a cell is made of."""

    weights: Weights
    train: Samples
    test: Samples


def draw_directly(parameters: BenignVitParameters, seed: int) -> Draws:
    """Draw every feature of every token and every weight."""
    return Draws(
        draw_weights(parameters, seed),
        draw_samples(parameters, seed, "train", parameters.n),
        draw_samples(parameters, seed, "test", parameters.test_samples),
    )


def draw_samples(
    parameters: BenignVitParameters, seed: int, which: Literal["train", "test"], samples: int
) -> Samples:
    """Draw `samples` samples of a seed's `train` or `test` stream; more samples extend fewer."""
    shape = (samples, parameters.tokens - 1, parameters.d)
    noise = named_rng(seed, which, "noise").standard_normal(shape)
    if parameters.noise == "orthogonal":
        noise[:, :, :2] = 0.0
    return labelled(noise, seed, which)


def labelled(noise: Floats, seed: int, which: Literal["train", "test"]) -> Samples:
    """Return samples of noise tokens (samples, tokens − 1, features), with labels and signals."""
    samples, noise_tokens, features = noise.shape
    signs = named_rng(seed, which, "labels").integers(0, 2, samples)
    labels: Floats = np.where(signs == 1, 1.0, -1.0)
    tokens = np.zeros((samples, noise_tokens + 1, features))
    tokens[:, 1:] = noise
    tokens[np.arange(samples), 0, np.where(labels > 0, 0, 1)] = 1.0
    flip_draws: Floats = named_rng(seed, which, "flips").random(labels.shape)
    return Samples(labels, flip_draws, tokens)


def draw_weights(parameters: BenignVitParameters, seed: int) -> Weights:
    """Draw the weights: PyTorch's default for a linear layer, or the theorems' Gaussian.

    PyTorch's is uniform in ±1/√(inputs), and W_Q, W_K and W_V are divided (section 6). w_O keeps
    it undivided: dividing it too never reaches the test losses of figure 1.

    Gaussian weights are of deviation 1, and w_O of length 1: a start is scaled later. w_O points
    in one direction; any other would give the same law.
    """
    d, d_h, d_v = parameters.d, parameters.d_h, parameters.d_v
    if parameters.initialisation != "pytorch":
        return Weights(
            query=named_rng(seed, "init", "query").standard_normal((d, d_h)),
            key=named_rng(seed, "init", "key").standard_normal((d, d_h)),
            value=named_rng(seed, "init", "value").standard_normal((d, d_v)),
            output=np.full(d_v, 1 / math.sqrt(d_v)),
        )

    def uniform(name: str, shape: tuple[int, ...], inputs: int) -> Floats:
        bound = inputs**-0.5
        return named_rng(seed, "init", name).uniform(-bound, bound, shape)

    return Weights(
        query=uniform("query", (d, d_h), d) / parameters.init_divisor,
        key=uniform("key", (d, d_h), d) / parameters.init_divisor,
        value=uniform("value", (d, d_v), d) / parameters.init_divisor,
        output=uniform("output", (d_v,), d_v),
    )


def flipped_labels(samples: Samples, label_flip: float) -> Floats:
    """Return the labels with the share `label_flip` of them flipped, shape (samples,)."""
    return np.where(samples.flip_draws < label_flip, -samples.labels, samples.labels)
