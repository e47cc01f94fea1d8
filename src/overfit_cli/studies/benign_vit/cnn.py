"""Gradient descent on the CNN of Cao et al. 2022, on inner products of tokens.

    f(X) = 1/m Σ_j j Σ_r Σ_i ReLU(⟨w_j,r, x_i⟩)^q,   j = ±1, r = 1 … m;   L = mean log(1 + e^(−y f))

Weights stay in the span of their start and the training tokens: w_j,r = w_j,r(0) + Σ_i c_i,j,r x_i.
So a step changes what filters give on the tokens, z = X w, by the Gram matrix K = X Xᵀ alone:

    c ← c − η ∂L/∂z,   z ← z − η K ∂L/∂z;   on test tokens z = X_test w(0) + X_test Xᵀ c

Features enter K only: it takes any d with `sampling=law`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.core.arrays import Floats
from overfit_cli.core.cell import Batch, Cell, Results
from overfit_cli.core.descent import Descent
from overfit_cli.core.training import Row, Training, named_rng
from overfit_cli.studies.benign_vit.cnn_study import BenignCnnParameters, is_cnn
from overfit_cli.studies.benign_vit.data import draw_samples
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters, token_scales
from overfit_cli.studies.benign_vit.training import train_batch as train_transformers

P = BenignVitParameters


class Pass(NamedTuple):
    """The network's outputs on some samples."""

    margins: Tensor  # y f(X), (samples,)
    loss: Tensor  # mean of log(1 + exp(−margin)), ()


class Cnn(Descent[Pass]):
    """A cell's network in training; of filters those of class 1 come first."""

    def __init__(self, cell: Cell[P], p: BenignCnnParameters, device: str) -> None:
        train = draw_samples(p, cell.seed, "train", p.n)
        test = draw_samples(p, cell.seed, "test", p.test_samples)
        X, X_test = (
            (part.tokens * token_scales(p)[:, None]).reshape(-1, part.tokens.shape[2])
            for part in (train, test)
        )  # (samples · tokens, features)
        w = p.sigma_0 * draw_filters(p, cell.seed, X.shape[1])  # (features, filters)

        def tensor(values: Floats) -> Tensor:
            return torch.from_numpy(values).to(device, getattr(torch, p.dtype))

        self.p, self.updates = p, 0
        self.y, self.y_test = (
            tensor(train.observed(p.label_flip)),
            tensor(test.labels),
        )  # (samples,)
        self.j = tensor(np.repeat([1.0, -1.0], p.filters))  # (filters,)
        self.z, self.z_test = tensor(X @ w), tensor(X_test @ w)  # at the start
        self.K, self.K_test = tensor(X @ X.T), tensor(X_test @ X.T)  # (…, samples · tokens)
        self.c = torch.zeros_like(self.z)  # (samples · tokens, filters)

    def forward(self) -> Pass:
        return self._pass(self.z, self.y)

    def _pass(self, z: Tensor, y: Tensor) -> Pass:
        by_sample = relu_power(z, self.p.power).view(len(y), self.p.tokens, -1)
        f = by_sample.sum(1) @ self.j / self.p.filters  # (samples,)
        return Pass(y * f, functional.softplus(-y * f).mean())

    def step(self, now: Pass) -> None:
        """Take a step: ∂L/∂z = −1/N σ(−y f) y j/m q ReLU(z)^(q−1)."""
        p = self.p
        slope = torch.sigmoid(-now.margins) * self.y / (p.n * p.filters)  # (samples,)
        grown = p.power * relu_power(self.z, p.power - 1) * self.j  # (samples · tokens, filters)
        moved = p.filter_rate * (slope.repeat_interleave(p.tokens)[:, None] * grown)  # −η ∂L/∂z
        self.c += moved
        self.z += self.K @ moved
        self.updates += 1

    def _test(self) -> Pass:
        return self._pass(self.z_test + self.K_test @ self.c, self.y_test)

    def measure(self, now: Pass) -> Row:
        test = self._test()
        return {
            "train_loss": float(now.loss),
            "test_loss": float(test.loss),
            "test_error": float((test.margins <= 0).double().mean()),
            "train_margin": float(now.margins.mean()),
            "train_margin_min": float(now.margins.min()),
        }

    def measure_last(self, now: Pass) -> Row:
        margin, imbalance = float(self._test().margins.mean()), abs(float(self.y.mean()))
        return {"test_margin": margin, "label_imbalance": imbalance, "updates": self.updates}


def train_batch(batch: Batch[P], training: Training) -> Results[P]:
    """Train a batch: CNNs one by one, Vision Transformers as `benign-vit` does."""
    for cell in batch:
        if is_cnn(p := cell.parameters):
            yield Cnn(cell, p, training.device).train(cell, training, p.max_steps, p.epsilon)
    yield from train_transformers([each for each in batch if not is_cnn(each.parameters)], training)


def relu_power(z: Tensor, q: float) -> Tensor:
    """ReLU(z)^q; at q = 0 the step function."""
    return (z > 0).to(z.dtype) if q == 0 else z.clamp(min=0) ** q


def draw_filters(parameters: BenignCnnParameters, seed: int, features: int) -> Floats:
    """Draw the filters at unit scale, standard normal, (features, 2 filters).

    Gaussian filters have the same law along any axes, so that they are drawn alike with either
    `sampling`. Those along further axes extend these.
    """
    draws = named_rng(seed, "init", "filters")
    return draws.standard_normal((features, 2 * parameters.filters))
