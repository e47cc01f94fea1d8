"""Plain multi-head model and training loop by autograd, a head at a time.

The engine, which shares no code with this, trains the same function with gradients derived by hand
and each class of equal heads as one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.core.training import named_rng
from overfit_cli.studies.multihead.data import Problem, Samples
from overfit_cli.studies.multihead.parameters import MultiheadParameters


@dataclass(frozen=True)
class PlainStep:
    """A step of the plain loop."""

    loss: float  # the training loss before it
    # projections, attentions: U_h and W_h of each head before it
    projections: list[Tensor]
    attentions: list[Tensor]


def plain_model(x: Tensor, projections: Sequence[Tensor], attentions: Sequence[Tensor]) -> Tensor:
    """Return H^(−1/2) Σ_h ⟨U_h, softmax(X W_h Xᵀ) X⟩, (samples,); X is (samples, tokens, d)."""
    total = x.new_zeros(len(x))  # (samples,)
    for U, W in zip(projections, attentions, strict=True):
        A = torch.softmax(x @ W @ x.mT, dim=-1)  # (samples, tokens, tokens)
        total = total + (U * (A @ x)).sum((-2, -1))
    return total / math.sqrt(len(projections))


def first_weights(parameters: MultiheadParameters, first: Samples, seed: int) -> list[Tensor]:
    """Return U_h of each head after the first phase, a step of size α_h from zero (equation 120).

    Without a first phase α_h is 0. The gradient of the loss at zero is −Σ_i y_i X̄_i / (2 n₁) in
    each row, with X̄_i the mean token of sample i.
    """
    row = torch.zeros(parameters.d, dtype=torch.float64)
    for label, tokens in zip(first.labels, torch.tensor(first.inputs), strict=True):
        row += float(label) * tokens.mean(0) / (2 * len(first.labels))
    if parameters.first_phase == "signs":
        signs = named_rng(seed, "init", "signs").choice([1.0, -1.0], parameters.heads)
        step_sizes: list[float] = signs.tolist()
    elif parameters.first_phase == "uniform":
        step_sizes = named_rng(seed, "init", "sizes").uniform(-1.0, 1.0, parameters.heads).tolist()
    else:
        step_sizes = [0.0] * parameters.heads
    return [step_size * row.repeat(parameters.tokens, 1) for step_size in step_sizes]


def plain_training(
    parameters: MultiheadParameters, problem: Problem, seed: int
) -> Iterator[PlainStep]:
    """Give each step of training from zero, or from the first phase, every head by itself."""
    dtype = getattr(torch, parameters.dtype)
    x = torch.tensor(problem.train.inputs, dtype=dtype)  # (samples, tokens, features)
    y = torch.tensor(problem.train.labels, dtype=dtype)  # (samples,)
    projections = [
        U.to(dtype).requires_grad_() for U in first_weights(parameters, problem.first, seed)
    ]
    attentions = [
        torch.zeros(parameters.d, parameters.d, dtype=dtype, requires_grad=True)
        for _ in projections
    ]
    trained = [*attentions, *projections]
    step = _torch_optimiser(parameters, trained)
    for _ in range(parameters.training_steps + 1):
        loss = functional.softplus(-y * plain_model(x, projections, attentions)).mean()
        gradients = torch.autograd.grad(loss, trained)
        yield PlainStep(
            loss.item(),
            [U.detach().clone() for U in projections],
            [W.detach().clone() for W in attentions],
        )
        for weights, gradient in zip(trained, gradients, strict=True):
            divided = parameters.optimiser == "loss-normalised"
            weights.grad = gradient / loss.item() if divided else gradient
        step.step()


def _torch_optimiser(
    parameters: MultiheadParameters, trained: Sequence[Tensor]
) -> torch.optim.Optimizer:
    if parameters.optimiser == "adam":
        return torch.optim.Adam(trained, lr=parameters.step_size)
    momentum = parameters.momentum if parameters.optimiser == "momentum" else 0.0
    return torch.optim.SGD(trained, lr=parameters.step_size, momentum=momentum)
