"""Plain multi-head model and training loop by autograd, a head at a time.

The engine trains the same function with gradients derived by hand and heads that are alike as one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.studies.multihead.engine import first_gradient, first_step_sizes
from overfit_cli.studies.multihead.parameters import MultiheadParameters, Problem


@dataclass(frozen=True)
class PlainStep:
    """A step of the plain loop.

    Attributes:
        loss: the training loss before it.
        projections, attentions: U_h and W_h of each head before it.
    """

    loss: float
    projections: list[Tensor]
    attentions: list[Tensor]


def plain_model(x: Tensor, projections: Sequence[Tensor], attentions: Sequence[Tensor]) -> Tensor:
    """Return Φ̃(X), (samples,), of x of shape (samples, tokens, features)."""
    found = x.new_zeros(len(x))
    for projection, attention in zip(projections, attentions, strict=True):
        weights = torch.softmax(x @ attention @ x.mT, dim=-1)  # (samples, tokens, tokens)
        found = found + (projection * (weights @ x)).sum((-2, -1))
    return found / math.sqrt(len(projections))


def plain_training(
    parameters: MultiheadParameters, problem: Problem, seed: int
) -> Iterator[PlainStep]:
    """Give each step of training from zero, or from the first phase, every head by itself."""
    dtype = getattr(torch, parameters.dtype)
    x = torch.tensor(problem.train.inputs, dtype=dtype)
    y = torch.tensor(problem.train.labels, dtype=dtype)
    row = torch.tensor(first_gradient(problem.first).copy(), dtype=dtype)
    signs = first_step_sizes(parameters, seed)
    projections = [(sign * row).requires_grad_() for sign in signs.tolist()]
    attentions = [
        torch.zeros(parameters.d, parameters.d, dtype=dtype, requires_grad=True) for _ in signs
    ]
    trained = [*attentions, *(projections if parameters.trained == "all" else [])]
    step = _torch_optimiser(parameters, trained)
    for _ in range(parameters.training_steps + 1):
        loss = functional.softplus(-y * plain_model(x, projections, attentions)).mean()
        gradients = torch.autograd.grad(loss, trained)
        yield PlainStep(
            loss.item(),
            [one.detach().clone() for one in projections],
            [one.detach().clone() for one in attentions],
        )
        for one, gradient in zip(trained, gradients, strict=True):
            one.grad = gradient
        if parameters.optimiser == "loss-normalised":
            _scale(trained, 1 / loss.item())
        if parameters.optimiser == "gradient-normalised":
            _scale(trained, 1 / math.sqrt(sum(float(one.square().sum()) for one in gradients)))
        step.step()


def _scale(trained: Sequence[Tensor], factor: float) -> None:
    for one in trained:
        assert one.grad is not None
        one.grad = one.grad * factor


def _torch_optimiser(
    parameters: MultiheadParameters, trained: Sequence[Tensor]
) -> torch.optim.Optimizer:
    if parameters.optimiser == "adam":
        return torch.optim.Adam(trained, lr=parameters.step_size)
    momentum = parameters.momentum if parameters.optimiser == "momentum" else 0.0
    return torch.optim.SGD(trained, lr=parameters.step_size, momentum=momentum)
