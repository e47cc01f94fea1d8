"""Steps of the optimisers, for cells that are trained together."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from overfit_cli.studies.multihead.heads import Weights
from overfit_cli.studies.multihead.parameters import Optimiser

BETAS = (0.9, 0.999)
SMALL = 1e-8
"""What Adam adds to the root of the mean square; PyTorch's default, as the betas are."""


class Steps:
    """Takes steps with one optimiser, and keeps what it remembers.

    Args:
        optimiser: which.
        step_sizes: of each cell, shape (cells,).
        momentum: for `momentum`, of each cell, shape (cells,).
        counts: how many heads each class has, shape (cells, classes): a norm is over all heads.
    """

    def __init__(
        self, optimiser: Optimiser, step_sizes: Tensor, momentum: Tensor, counts: Tensor
    ) -> None:
        self._optimiser = optimiser
        self._step_sizes = step_sizes[:, None, None, None]
        self._momentum = momentum[:, None, None, None]
        self._counts = counts
        self._first: Weights = {}
        self._second: Weights = {}
        self._taken = 0

    @property
    def by_loss(self) -> bool:
        """Whether the gradients it is to be given are divided by the loss."""
        return self._optimiser in ("loss-normalised", "gradient-normalised")

    def take(self, weights: Weights, gradients: Mapping[str, Tensor]) -> None:
        """Change the weights by a step, in place."""
        self._taken += 1
        size = self._step_sizes
        if self._optimiser == "gradient-normalised":
            size = size / squared_norm(gradients, self._counts).sqrt()[:, None, None, None]
        for name, gradient in gradients.items():
            weights[name].addcmul_(size, self._direction(name, gradient), value=-1)

    def _direction(self, name: str, gradient: Tensor) -> Tensor:
        if self._optimiser == "momentum":
            before = _kept(self._first, name, gradient)
            return before.mul_(self._momentum).add_(gradient)
        if self._optimiser == "adam":
            return self._adam(name, gradient)
        return gradient

    def _adam(self, name: str, gradient: Tensor) -> Tensor:
        first = _kept(self._first, name, gradient)
        second = _kept(self._second, name, gradient)
        first.lerp_(gradient, 1 - BETAS[0])
        second.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        mean, square = (1 - beta**self._taken for beta in BETAS)
        return (first / mean) / ((second / square).sqrt() + SMALL)

    def keep(self, cells: Tensor) -> None:
        """Go on with some of the cells alone."""
        self._step_sizes, self._momentum = self._step_sizes[cells], self._momentum[cells]
        self._counts = self._counts[cells]
        self._first = {name: one[cells] for name, one in self._first.items()}
        self._second = {name: one[cells] for name, one in self._second.items()}


def _kept(kept: Weights, name: str, gradient: Tensor) -> Tensor:
    """What is remembered of the gradients so far; zeros before the first."""
    if name not in kept:
        kept[name] = torch.zeros_like(gradient)
    return kept[name]


def squared_norm(weights: Mapping[str, Tensor], counts: Tensor) -> Tensor:
    """Return the squared Frobenius norm of all heads together, (cells,)."""
    of_class = torch.stack([one.square().sum((-2, -1)) for one in weights.values()]).sum(0)
    return (counts * of_class).sum(-1)
