"""Equation (1) of Jiang et al. 2024 and its training loop, plain and slow: what to compare against.

    f(X) = 1/M · Σ_l softmax(x_l W_Q W_Kᵀ Xᵀ) X W_V w_O,    loss = mean log(1 + exp(−y f(X)))

The engine trains the same function in token space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from overfit_cli.studies.benign_vit.vit.data import Floats, Realisation, Samples, Weights, draw
from overfit_cli.studies.benign_vit.vit.parameters import (
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
    optimiser = torch.optim.SGD(model.parameters(), lr=parameters.learning_rate)
    steps = 0
    while True:
        margins = y * model(x)  # (samples,)
        loss = logistic_loss(margins)
        if loss.item() <= parameters.epsilon or steps >= parameters.max_steps:
            break
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        steps += 1
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
            train_margins=margins.detach().numpy(),
            test_margins=test_margins.numpy(),
            test_attention=model.attention(x_test).numpy(),
            train_attention=model.attention(x).numpy(),
        )


def _scaled(weights: Weights, parameters: BenignVitParameters) -> Weights:
    """Weights as they are trained, from those at unit scale."""
    scales = weight_scales(parameters)
    return Weights(
        scales.head * weights.query,
        scales.head * weights.key,
        scales.value * weights.value,
        scales.output * weights.output,
    )
