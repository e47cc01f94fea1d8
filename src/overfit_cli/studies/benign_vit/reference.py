"""Equation (1) of Jiang et al. 2024 and its training loop, plain and slow: what to compare against.

    f(X) = 1/M · Σ_l softmax(x_l W_Q W_Kᵀ Xᵀ) X W_V w_O,    loss = mean log(1 + exp(−y f(X)))

The engine trains the same function in token space. So it does the CNN of Cao et al. 2022,

    f(X) = 1/m · Σ_j j Σ_r Σ_i ReLU(⟨w_j,r, x_i⟩)^q
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from overfit_cli.core.arrays import Floats
from overfit_cli.studies.benign_vit.cnn_engine import draw_filters
from overfit_cli.studies.benign_vit.cnn_study import BenignCnnParameters
from overfit_cli.studies.benign_vit.data import (
    Realisation,
    Samples,
    Weights,
    draw,
    draw_samples,
)
from overfit_cli.studies.benign_vit.parameters import (
    BenignVitParameters,
    token_scales,
    weight_scales,
)


def logistic_loss(margins: Tensor) -> Tensor:
    """Return the mean of log(1 + exp(−margin)) over the last axis; a margin is y f(X)."""
    return nn.functional.softplus(-margins).mean(-1)


class VisionTransformer(nn.Module):
    """The two-layer Vision Transformer of equation (1); w_O is fixed."""

    output_weight: Tensor

    def __init__(self, weights: Weights, dtype: torch.dtype) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.tensor(weights.query, dtype=dtype))
        self.key = nn.Parameter(torch.tensor(weights.key, dtype=dtype))
        self.value = nn.Parameter(torch.tensor(weights.value, dtype=dtype))
        self.register_buffer("output_weight", torch.tensor(weights.output, dtype=dtype))

    def attention(self, x: Tensor) -> Tensor:
        """Return each token's attention to each, (samples, tokens, tokens)."""
        return torch.softmax((x @ self.query) @ (x @ self.key).mT, dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        """Return f(X), shape (samples,), of x of shape (samples, tokens, features)."""
        values = x @ self.value @ self.output_weight  # (samples, tokens)
        return (self.attention(x) @ values[..., None]).squeeze(-1).mean(-1)


class ConvolutionalNetwork(nn.Module):
    """The two-layer CNN with the activation ReLU^q; its second layer is ±1/m."""

    def __init__(self, filters: Floats, power: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.filters = nn.Parameter(torch.tensor(filters, dtype=dtype))  # (features, 2 m)
        self.power = power

    def forward(self, x: Tensor) -> Tensor:
        """Return f(X), shape (samples,), of x of shape (samples, tokens, features)."""
        units = torch.relu(x @ self.filters) ** self.power  # (samples, tokens, 2 m)
        plus, minus = units.sum(1).chunk(2, dim=-1)  # (samples, m)
        return plus.mean(-1) - minus.mean(-1)


@dataclass(frozen=True)
class Trained:
    """A trained cell: its model, and the margins y f(X) and attention that it ends with."""

    steps: int
    train_loss: float
    test_loss: float
    test_error: float
    model: VisionTransformer
    train_labels: Floats
    train_margins: Floats
    test_margins: Floats
    test_attention: Floats
    train_attention: Floats


def flipped_labels(samples: Samples, label_flip: float) -> Floats:
    """Return the labels with the share `label_flip` of them flipped, shape (samples,)."""
    return np.where(samples.flip_draws < label_flip, -samples.labels, samples.labels)


def train_one_cell(
    parameters: BenignVitParameters, seed: int, drawn: Realisation | None = None
) -> Trained:
    """Train one cell by plain autograd until its loss is at most ε."""
    drawn = draw(parameters, seed) if drawn is None else drawn
    dtype = getattr(torch, parameters.dtype)
    model = VisionTransformer(_scaled(drawn.weights, parameters), dtype)
    scales = token_scales(parameters)[:, None]
    # (samples, tokens, d)
    x = torch.tensor(drawn.train.tokens[: parameters.n] * scales, dtype=dtype)
    labels = flipped_labels(drawn.train, parameters.label_flip)[: parameters.n]
    y = torch.tensor(labels, dtype=dtype)
    steps, margins = _descend(model, x, y, parameters.learning_rate, parameters)
    loss = logistic_loss(margins)
    with torch.no_grad():
        x_test = torch.tensor(drawn.test.tokens * scales, dtype=dtype)
        test_margins = torch.tensor(drawn.test.labels, dtype=dtype) * model(x_test)
        return Trained(
            steps=steps,
            train_loss=loss.item(),
            test_loss=logistic_loss(test_margins).item(),
            test_error=(test_margins <= 0).double().mean().item(),
            model=model,
            train_labels=labels,
            train_margins=margins.numpy(),
            test_margins=test_margins.numpy(),
            test_attention=model.attention(x_test).numpy(),
            train_attention=model.attention(x).numpy(),
        )


def train_one_cnn(parameters: BenignCnnParameters, seed: int) -> tuple[int, Floats, Floats]:
    """Train the CNN by plain autograd: its steps, and the margins of training and test samples."""
    dtype = getattr(torch, parameters.dtype)
    scales = token_scales(parameters)[:, None]
    train, test = (
        draw_samples(parameters, seed, "train", parameters.n),
        draw_samples(parameters, seed, "test", parameters.test_samples),
    )
    x, x_test = (torch.tensor(part.tokens * scales, dtype=dtype) for part in (train, test))
    y = torch.tensor(flipped_labels(train, parameters.label_flip), dtype=dtype)
    filters = parameters.sigma_0 * draw_filters(parameters, seed, x.shape[2])
    model = ConvolutionalNetwork(filters, parameters.power, dtype)
    steps, margins = _descend(model, x, y, parameters.filter_rate, parameters)
    with torch.no_grad():
        return steps, margins.numpy(), test.labels * model(x_test).numpy()


def _descend(
    model: nn.Module, x: Tensor, y: Tensor, rate: float, parameters: BenignVitParameters
) -> tuple[int, Tensor]:
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    for steps in itertools.count():
        margins = y * model(x)  # (samples,)
        loss = logistic_loss(margins)
        if loss.item() <= parameters.epsilon or steps >= parameters.max_steps:
            break
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
    return steps, margins.detach()


def _scaled(weights: Weights, parameters: BenignVitParameters) -> Weights:
    scales = weight_scales(parameters)
    return Weights(
        scales.head * weights.query,
        scales.head * weights.key,
        scales.value * weights.value,
        scales.output * weights.output,
    )
