"""What is drawn: Definition 3.1's samples and section 6's initial weights (Jiang et al. 2024).

Everything is drawn in float64 at unit scale and rounded later, so that neither the precision nor
the signal's or the noise's strength changes a draw: `token_scales` holds those strengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from overfit_cli.streams import stream
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
    """Initial weights of equation (1).

    Attributes:
        query, key: shape (features, d_h).
        value: shape (features, d_v).
        output: w_O, shape (d_v,); it isn't trained.
    """

    query: Floats
    key: Floats
    value: Floats
    output: Floats


def draw_samples(
    parameters: BenignVitParameters, seed: int, which: Literal["train", "test"], samples: int
) -> Samples:
    """Draw `samples` samples of a seed's `train` or `test` stream; more samples extend fewer."""
    signs = stream(seed, which, "labels").integers(0, 2, samples)
    labels: Floats = np.where(signs == 1, 1.0, -1.0)
    shape = (samples, parameters.tokens - 1, parameters.d)
    noise = stream(seed, which, "noise").standard_normal(shape)
    if parameters.noise == "orthogonal":
        noise[:, :, :2] = 0.0
    tokens = np.zeros((samples, parameters.tokens, parameters.d))
    tokens[:, 1:] = noise
    tokens[np.arange(samples), 0, np.where(labels > 0, 0, 1)] = 1.0
    return Samples(labels, stream(seed, which, "flips").random(samples), tokens)


def draw_weights(parameters: BenignVitParameters, seed: int) -> Weights:
    """Draw the weights: PyTorch's default for a linear layer, W_Q, W_K and W_V divided (section 6).

    The default is uniform in ±1/√(inputs). w_O keeps it undivided: dividing it too never reaches
    the test losses of figure 1.
    """
    d, d_h, d_v = parameters.d, parameters.d_h, parameters.d_v

    def uniform(name: str, shape: tuple[int, ...], inputs: int) -> Floats:
        bound = inputs**-0.5
        return stream(seed, "init", name).uniform(-bound, bound, shape)

    return Weights(
        query=uniform("query", (d, d_h), d) / parameters.init_divisor,
        key=uniform("key", (d, d_h), d) / parameters.init_divisor,
        value=uniform("value", (d, d_v), d) / parameters.init_divisor,
        output=uniform("output", (d_v,), d_v),
    )


def token_scales(parameters: BenignVitParameters) -> Floats:
    """Return the strength of each token position, shape (tokens,): ‖μ‖, σ̃_p, σ_p, ..., σ_p."""
    scales = np.full(parameters.tokens, parameters.sigma_p)
    scales[0] = parameters.signal_norm
    scales[1] = parameters.sigma_p_tilde
    return scales


def flipped_labels(samples: Samples, label_flip: float) -> Floats:
    """Return the labels with the share `label_flip` of them flipped, shape (samples,)."""
    return np.where(samples.flip_draws < label_flip, -samples.labels, samples.labels)
