"""Minibatch training: the rows of each step, and gradient steps on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from overfit_cli.rng import named_rng

if TYPE_CHECKING:
    import torch

Rows = NDArray[np.int64]


def minibatches(samples: int, size: int, seed: int, *, equal: bool = True) -> Iterator[Rows]:
    """Give the rows of minibatches for ever: each sample once an epoch, in an order of its own.

    Args:
        samples: how many there are.
        size: samples of a minibatch.
        seed: the cell's; the orders are drawn from its stream `train`, `order`.
        equal: whether the last minibatch of an epoch is filled up from the next one; else it has
            what is left.
    """
    orders = named_rng(seed, "train", "order")
    rows = np.empty(0, dtype=np.int64)
    while True:
        while len(rows) < (size if equal else 1):
            rows = np.concatenate([rows, orders.permutation(samples)])
        yield rows[:size]
        rows = rows[size:]


def gradient_steps(
    optimiser: torch.optim.Optimizer,
    loss_of: Callable[[Rows], torch.Tensor],
    minibatches: Iterator[Rows],
) -> Iterator[torch.Tensor]:
    """Take a gradient step whenever the next loss, on that step's minibatch, is asked for.

    Args:
        optimiser: holds the weights.
        loss_of: the mean loss on some rows of the training samples, with gradients.
        minibatches: those rows, step by step.
    """
    for rows in minibatches:
        loss = loss_of(rows)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        yield loss.detach()
