"""Equation (1) of Jiang et al. 2024 and its training loop, plain and slow: what to compare against.

    f(X) = 1/M · Σ_l softmax(x_l W_Q W_Kᵀ Xᵀ) X W_V w_O,    loss = mean log(1 + exp(−y f(X)))

The engine trains the same function in token space. So it does the CNN of Cao et al. 2022,

    f(X) = 1/m · Σ_j j Σ_r Σ_i ReLU(⟨w_j,r, x_i⟩)^q
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from overfit_cli.core.arrays import Floats
from overfit_cli.studies.benign_vit.cnn import draw_filters
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


def train_one_cell(p: BenignVitParameters, seed: int, drawn: Realisation | None = None) -> Trained:
    """Train one cell by plain autograd until its loss is at most ε."""
    drawn = draw(p, seed) if drawn is None else drawn
    weights, scales = drawn.weights, weight_scales(p)
    query, key = scales.head * weights.query, scales.head * weights.key
    dtype = getattr(torch, p.dtype)
    scaled = Weights(query, key, scales.value * weights.value, scales.output * weights.output)
    model = VisionTransformer(scaled, dtype)
    x, x_test = (_tokens(part, p) for part in (drawn.train, drawn.test))
    labels = drawn.train.observed(p.label_flip)[: p.n]
    steps, margins = _descend(model, x[: p.n], labels, p.learning_rate, p)
    with torch.no_grad():
        test_margins = torch.tensor(drawn.test.labels, dtype=dtype) * model(x_test)
        return Trained(
            steps=steps,
            train_loss=logistic_loss(margins).item(),
            test_loss=logistic_loss(test_margins).item(),
            test_error=(test_margins <= 0).double().mean().item(),
            model=model,
            train_labels=labels,
            train_margins=margins.numpy(),
            test_margins=test_margins.numpy(),
            test_attention=model.attention(x_test).numpy(),
            train_attention=model.attention(x[: p.n]).numpy(),
        )


def train_one_cnn(p: BenignCnnParameters, seed: int) -> tuple[int, Floats, Floats]:
    """Train the CNN by plain autograd: its steps, and the margins of training and test samples."""
    train = draw_samples(p, seed, "train", p.n)
    test = draw_samples(p, seed, "test", p.test_samples)
    x = _tokens(train, p)
    filters = p.sigma_0 * draw_filters(p, seed, x.shape[2])
    model = ConvolutionalNetwork(filters, p.power, x.dtype)
    steps, margins = _descend(model, x, train.observed(p.label_flip), p.filter_rate, p)
    with torch.no_grad():
        return steps, margins.numpy(), test.labels * model(_tokens(test, p)).numpy()


def _tokens(samples: Samples, p: BenignVitParameters) -> Tensor:
    """x, (samples, tokens, features), at true scale."""
    return torch.tensor(samples.tokens * token_scales(p)[:, None], dtype=getattr(torch, p.dtype))


def _descend(
    model: nn.Module, x: Tensor, labels: Floats, rate: float, p: BenignVitParameters
) -> tuple[int, Tensor]:
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    y = torch.tensor(labels, dtype=x.dtype)  # (samples,)
    for steps in itertools.count():
        margins = y * model(x)  # (samples,)
        loss = logistic_loss(margins)
        if loss.item() <= p.epsilon or steps >= p.max_steps:
            break
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
    return steps, margins.detach()
