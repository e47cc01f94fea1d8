"""Gradient descent on the CNN of Cao et al. 2022, on inner products of tokens.

    f(X) = 1/m Σ_j j Σ_r Σ_i ReLU(⟨w_j,r, x_i⟩)^q,   j = ±1, r = 1 … m;   L = mean log(1 + e^(−y f))

Weights stay in the span of their start and the training tokens: w_j,r = w_j,r(0) + Σ_i c_i,j,r x_i.
So a step changes what filters give on the tokens, z = X w, by the Gram matrix K = X Xᵀ alone:

    c ← c − η ∂L/∂z,   z ← z − η K ∂L/∂z

Features enter K only: it takes any d with `sampling=law`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.core.training import named_rng
from overfit_cli.studies.benign_vit.cnn.parameters import BenignCnnParameters
from overfit_cli.studies.benign_vit.data import draw_samples
from overfit_cli.studies.benign_vit.parameters import token_scales


class ForwardPass(NamedTuple):
    """The network's outputs on some samples."""

    margins: Tensor  # y f(X), (samples,)
    loss: Tensor  # mean of log(1 + exp(−margin)), ()


class Filters:
    """A cell's network in training.

    Attributes:
        y: the training labels, ±1, (samples,).
        z: what filters give on training tokens, ⟨w, x⟩, (samples, tokens, filters); filters of
            class 1 come first.
    """

    def __init__(self, parameters: BenignCnnParameters, seed: int, device: str) -> None:
        p = parameters
        train = draw_samples(p, seed, "train", p.n)
        test = draw_samples(p, seed, "test", p.test_samples)
        scales = token_scales(p)[:, None]  # (tokens, 1)
        dtype = getattr(torch, p.dtype)

        def tensor(values: np.typing.NDArray[np.float64]) -> Tensor:
            return torch.from_numpy(values).to(device=device, dtype=dtype)

        features = train.tokens.shape[2]
        w = p.sigma_0 * draw_filters(p, seed, features)  # (features, filters)
        X = (train.tokens * scales).reshape(-1, features)  # (samples · tokens, features)
        X_test = (test.tokens * scales).reshape(-1, features)  # (test samples · tokens, features)
        flipped = np.where(train.flip_draws < p.label_flip, -train.labels, train.labels)

        self.parameters = p
        self.y, self._y_test = tensor(flipped), tensor(test.labels)  # (samples,)
        self._classes = tensor(np.repeat([1.0, -1.0], p.filters))  # j, (filters,)
        self._K, self._K_test = tensor(X @ X.T), tensor(X_test @ X.T)  # (…, samples · tokens)
        self._z_test = tensor(X_test @ w)  # at the start, (test samples · tokens, filters)
        self.z = tensor(X @ w).reshape(p.n, p.tokens, -1)  # (samples, tokens, filters)
        self._c = torch.zeros_like(self._flat)  # (samples · tokens, filters)

    @property
    def _flat(self) -> Tensor:
        return self.z.flatten(0, 1)

    def forward(self) -> ForwardPass:
        """Return the pass on the training samples."""
        return self._pass(self.z, self.y)

    def step(self, now: ForwardPass) -> None:
        """Take a gradient step: ∂L/∂z = −1/N σ(−y f) y j/m q ReLU(z)^(q−1)."""
        p = self.parameters
        slope = torch.sigmoid(-now.margins) * self.y / (p.n * p.filters)  # (samples,)
        grown = p.power * _power(self.z, p.power - 1) * self._classes  # (samples, tokens, filters)
        moved = p.filter_rate * (slope[:, None, None] * grown).flatten(0, 1)  # −η ∂L/∂z
        self._c += moved  # (samples · tokens, filters)
        self.z += (self._K @ moved).view_as(self.z)  # (samples, tokens, filters)

    def test(self) -> ForwardPass:
        """Return the pass on test samples."""
        z = self._z_test + self._K_test @ self._c  # (test samples · tokens, filters)
        by_sample = z.view(self.parameters.test_samples, self.parameters.tokens, -1)
        return self._pass(by_sample, self._y_test)

    def _pass(self, z: Tensor, y: Tensor) -> ForwardPass:
        p = self.parameters
        f = _power(z, p.power).sum(1) @ self._classes / p.filters  # (samples,)
        return ForwardPass(y * f, functional.softplus(-y * f).mean())


def _power(z: Tensor, q: float) -> Tensor:
    """ReLU(z)^q; at q = 0 the step function."""
    return (z > 0).to(z.dtype) if q == 0 else z.clamp(min=0) ** q


def draw_filters(
    parameters: BenignCnnParameters, seed: int, features: int
) -> np.typing.NDArray[np.float64]:
    """Draw the filters at unit scale, standard normal, (features, 2 filters).

    Gaussian filters have the same law along any axes, so that they are drawn alike with either
    `sampling`. Those along further axes extend these.
    """
    draws = named_rng(seed, "init", "filters")
    return draws.standard_normal((features, 2 * parameters.filters))
