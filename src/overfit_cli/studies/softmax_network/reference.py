"""The networks and their training written down plainly, one at a time, by autograd."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from overfit_cli.studies.softmax_network import Activation


def plain_network(activation: Activation, x: Tensor, weights: Tensor, signs: Tensor) -> Tensor:
    """Return F, (n, outputs), of inputs (n, d), with W of (m, d) and a of (outputs, m)."""
    z = x @ weights.T  # (n, m)
    if activation == "softmax":
        hidden = z.exp() / z.exp().sum(dim=1, keepdim=True)  # (n, m)
        return len(weights) * hidden @ signs.T
    hidden = z.exp() if activation == "exp" else torch.clamp(z, min=0)  # (n, m)
    return hidden @ signs.T


def plain_training(
    activation: Activation,
    x: Tensor,
    targets: Tensor,
    weights: Tensor,
    signs: Tensor,
    step_size: float,
) -> Iterator[tuple[float, Tensor]]:
    """Give ½‖F − Y‖² and W before each step of gradient descent, without end."""
    weights = weights.clone().requires_grad_()
    while True:
        loss = (plain_network(activation, x, weights, signs) - targets).square().sum() / 2
        (gradient,) = torch.autograd.grad(loss, weights)
        yield loss.item(), weights.detach().clone()
        with torch.no_grad():
            weights -= step_size * gradient
