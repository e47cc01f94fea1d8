"""The plain per-cell loop that the token-space engine is held to: autograd on equation (1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from overfit_cli.studies.benign_vit.data import (
    Draws,
    Weights,
    draw_directly,
    flipped_labels,
)
from overfit_cli.studies.benign_vit.model import VisionTransformer, logistic_loss
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.scales import token_scales, weight_scales


@dataclass(frozen=True)
class Trained:
    """What the loop ends with."""

    steps: int
    train_loss: float
    test_loss: float
    test_error: float
    model: VisionTransformer
    train_labels: np.ndarray
    train_margins: np.ndarray
    test_margins: np.ndarray
    test_attention: np.ndarray
    train_attention: np.ndarray


def train_one_cell(
    parameters: BenignVitParameters, seed: int, draws: Draws | None = None
) -> Trained:
    """Train one cell as anyone would write it, on the cell's own draws.

    `draws` may be given, for at least as many samples, to leave the drawing out of a timing.
    """
    draws = draw_directly(parameters, seed) if draws is None else draws
    dtype = getattr(torch, parameters.dtype)
    drawn, by = draws.weights, weight_scales(parameters)
    weights = Weights(
        by.head * drawn.query, by.head * drawn.key, by.value * drawn.value, by.output * drawn.output
    )
    model = VisionTransformer(weights, dtype)
    scales = token_scales(parameters)[:, None]
    x = torch.tensor(draws.train.tokens[: parameters.n] * scales, dtype=dtype)
    labels = flipped_labels(draws.train, parameters.label_flip)[: parameters.n]
    y = torch.tensor(labels, dtype=dtype)
    optimiser = torch.optim.SGD(model.parameters(), lr=parameters.learning_rate)
    steps = 0
    while True:
        margins = y * model(x)
        loss = logistic_loss(margins)
        if loss.item() <= parameters.epsilon or steps >= parameters.max_steps:
            break
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        steps += 1
    with torch.no_grad():
        x_test = torch.tensor(draws.test.tokens * scales, dtype=dtype)
        test_margins = torch.tensor(draws.test.labels, dtype=dtype) * model(x_test)
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
