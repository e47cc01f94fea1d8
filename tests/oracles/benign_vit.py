"""The plain per-cell loop that the token-space engine is held to: autograd on equation (1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from overfit_cli.studies.benign_vit.data import (
    draw_samples,
    draw_weights,
    flipped_labels,
    token_scales,
)
from overfit_cli.studies.benign_vit.model import VisionTransformer, logistic_loss
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters


@dataclass(frozen=True)
class Trained:
    """What the loop ends with."""

    steps: int
    train_loss: float
    test_loss: float
    test_error: float
    model: VisionTransformer
    train_margins: np.ndarray
    test_margins: np.ndarray
    test_attention: np.ndarray
    train_attention: np.ndarray


def train_one_cell(parameters: BenignVitParameters, seed: int) -> Trained:
    """Train one cell as anyone would write it, on the cell's own draws."""
    dtype = getattr(torch, parameters.dtype)
    model = VisionTransformer(draw_weights(parameters, seed), dtype)
    scales = token_scales(parameters)[:, None]
    train = draw_samples(parameters, seed, "train", parameters.n)
    x = torch.tensor(train.tokens * scales, dtype=dtype)
    y = torch.tensor(flipped_labels(train, parameters.label_flip), dtype=dtype)
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
    test = draw_samples(parameters, seed, "test", parameters.test_samples)
    with torch.no_grad():
        x_test = torch.tensor(test.tokens * scales, dtype=dtype)
        test_margins = torch.tensor(test.labels, dtype=dtype) * model(x_test)
        return Trained(
            steps=steps,
            train_loss=loss.item(),
            test_loss=logistic_loss(test_margins).item(),
            test_error=(test_margins <= 0).double().mean().item(),
            model=model,
            train_margins=margins.detach().numpy(),
            test_margins=test_margins.numpy(),
            test_attention=model.attention(x_test).numpy(),
            train_attention=model.attention(x).numpy(),
        )
