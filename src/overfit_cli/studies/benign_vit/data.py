"""Data and initial weights of `benign-vit`, drawn directly or exactly in law.

Definition 3.1's samples and section 6's initial weights (Jiang et al. 2024) are drawn in float64 at
unit scale and rounded later, so that neither the precision nor the signal's or the noise's strength
changes a draw; `parameters.py` holds those strengths.

With `sampling=direct` every feature is drawn. With `sampling=law` the same probability law is drawn
in as few coordinates as it takes, for any d and d_h. Turn the feature space so that the two signals
and then each noise token in turn bring in at most one new axis. A token then has as many
coordinates as there are tokens before it, plus one: its standard normal parts along their axes and,
along its own, the length that is left, which is chi distributed (Bartlett's factor of a Wishart
matrix). The axes depend on the tokens alone, and Gaussian weights have the same law along any axes:
**the weights must be Gaussian**. Their rows [W_Q; W_K] along those axes are normal vectors of d_h
coordinates, turned in the same way. Training sees inner products only, and turning leaves those as
they are. So a draw in law has the shape of a direct draw in few dimensions, and is trained like
one. Test tokens come first, so that more training samples extend fewer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from overfit_cli.core.arrays import Floats, bartlett_rows
from overfit_cli.core.training import named_rng
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters

Split = Literal["train", "test"]


@dataclass(frozen=True)
class Samples:
    """Samples at unit scale."""

    labels: Floats  # ±1, (samples,)
    # uniform in [0, 1), (samples,); a label is flipped where this lies below `label_flip`, so
    # more flips extend fewer
    flip_draws: Floats
    # (samples, tokens, features); token 1 is e₁ or e₂, the others are noise of deviation 1 in
    # every feature
    tokens: Floats

    def observed(self, label_flip: float) -> Floats:
        """Return the labels with this share of them flipped, (samples,)."""
        return np.where(self.flip_draws < label_flip, -self.labels, self.labels)


@dataclass(frozen=True)
class Weights:
    """Initial weights of equation (1); Gaussian ones of deviation 1, with a w_O of length 1."""

    # query, key: (features, width); d_h wide where they are drawn directly
    query: Floats
    key: Floats
    value: Floats  # (features, d_v)
    output: Floats  # w_O, (d_v,); it isn't trained


@dataclass(frozen=True)
class Realisation:
    """All that is random in a cell, as one seed draws it."""

    weights: Weights
    train: Samples
    test: Samples


def draw(parameters: BenignVitParameters, seed: int) -> Realisation:
    """Draw a cell's samples and weights, in the way that its `sampling` names."""
    weights = draw_weights if parameters.sampling == "direct" else draw_weights_in_law
    return Realisation(
        weights(parameters, seed),
        draw_samples(parameters, seed, "train", parameters.n),
        draw_samples(parameters, seed, "test", parameters.test_samples),
    )


def draw_samples(parameters: BenignVitParameters, seed: int, split: Split, samples: int) -> Samples:
    """Draw `samples` samples of a seed's `train` or `test` stream; more samples extend fewer."""
    draw_noise = _noise if parameters.sampling == "direct" else _noise_in_law
    noise = draw_noise(parameters, seed, split, samples)  # (samples, tokens − 1, features)
    signs = named_rng(seed, split, "labels").integers(0, 2, samples)
    if split == "train" and parameters.labels == "balanced":
        signs[1::2] = 1 - signs[0::2][: samples // 2]  # pair by pair, so that more extend fewer
    labels: Floats = np.where(signs == 1, 1.0, -1.0)
    tokens = np.zeros((samples, parameters.tokens, noise.shape[2]))  # (samples, tokens, features)
    tokens[:, 1:] = noise
    tokens[np.arange(samples), 0, np.where(labels > 0, 0, 1)] = 1.0
    flip_draws: Floats = named_rng(seed, split, "flips").random(labels.shape)
    return Samples(labels, flip_draws, tokens)


def _noise(parameters: BenignVitParameters, seed: int, split: Split, samples: int) -> Floats:
    shape = (samples, parameters.tokens - 1, parameters.d)
    noise = named_rng(seed, split, "noise").standard_normal(shape)
    if parameters.noise == "orthogonal":
        noise[:, :, :2] = 0.0
    return noise


def _noise_in_law(parameters: BenignVitParameters, seed: int, split: Split, samples: int) -> Floats:
    """Noise in `noise_tokens` + 2 coordinates; training tokens' own axes follow test tokens'."""
    rows = samples * (parameters.tokens - 1)
    before = parameters.test_samples * (parameters.tokens - 1) if split == "train" else 0
    noise = np.zeros((rows, parameters.noise_tokens + 2))  # (rows, noise tokens + 2)
    if parameters.noise == "isotropic":
        noise[:, :2] = named_rng(seed, split, "noise along signals").standard_normal((rows, 2))
    normals, lengths = named_rng(seed, split, "noise"), named_rng(seed, split, "noise lengths")
    across = bartlett_rows(normals, lengths, rows, parameters.d - 2, before)
    noise[:, 2 : 2 + across.shape[1]] = across
    return noise.reshape(samples, parameters.tokens - 1, -1)


def draw_weights(parameters: BenignVitParameters, seed: int) -> Weights:
    """Draw the weights: PyTorch's default for a linear layer, or the theorems' Gaussian.

    PyTorch's is uniform in ±1/√(inputs), and W_Q, W_K and W_V are divided (section 6). w_O keeps
    it undivided: dividing it too never reaches the test losses of figure 1.

    Gaussian weights have deviation 1, and w_O has length 1: they are scaled later. w_O points in
    one direction; any other would give the same law.
    """
    shapes = {"query": parameters.d_h, "key": parameters.d_h, "value": parameters.d_v}
    d, d_v = parameters.d, parameters.d_v

    def uniform(name: str, shape: tuple[int, ...], inputs: int) -> Floats:
        bound = inputs**-0.5
        return named_rng(seed, "init", name).uniform(-bound, bound, shape)

    if parameters.initialisation == "pytorch":
        drawn = {name: uniform(name, (d, width), d) for name, width in shapes.items()}
        divided = {name: weight / parameters.init_divisor for name, weight in drawn.items()}
        return Weights(**divided, output=uniform("output", (d_v,), d_v))
    normal = {
        name: named_rng(seed, "init", name).standard_normal((d, width))
        for name, width in shapes.items()
    }
    return Weights(**normal, output=np.full(d_v, 1 / math.sqrt(d_v)))


def draw_weights_in_law(parameters: BenignVitParameters, seed: int) -> Weights:
    """Draw Gaussian weights along the tokens' axes.

    Queries' and keys' rows take turns, axis by axis, so that further axes extend them. Of W_V and
    w_O only W_V w_O is seen, a normal vector.
    """
    axes = parameters.noise_tokens + 2
    normals = named_rng(seed, "init", "query and key")
    lengths = named_rng(seed, "init", "query and key lengths")
    stacked = bartlett_rows(normals, lengths, 2 * axes, parameters.d_h)
    return Weights(
        query=stacked[0::2],
        key=stacked[1::2],
        value=named_rng(seed, "init", "value").standard_normal((axes, 1)),
        output=np.ones(1),
    )
