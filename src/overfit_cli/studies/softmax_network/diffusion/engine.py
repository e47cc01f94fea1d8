"""Networks as denoisers, trained at several step sizes, of which a validation draw chooses one.

All networks are tuned alike. Each is trained with every step size of its optimiser, from the same
initial weights; the step size and the step with the least mean of ‖F − x(0)‖² over the validation
draw are taken. That is what can be measured without knowing the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch
from torch import Tensor

from overfit_cli.core.training import logged_steps
from overfit_cli.studies.softmax_network.activations import (
    Network,
    initial_weights,
    limit_gram_matrix,
)
from overfit_cli.studies.softmax_network.diffusion.data import Floats, Pairs, Problem
from overfit_cli.studies.softmax_network.diffusion.parameters import SoftmaxDiffusionParameters
from overfit_cli.studies.softmax_network.paper import Activation

STEP_SIZES = {"adam": (0.0006, 0.0025, 0.01, 0.04, 0.16, 0.64, 2.56), "gd": (0.1, 0.4, 1.6)}
"""What is tried: of Adam as they are, of gradient descent over the curvature λ_max(JJᵀ)."""

LEAST_STEPS, PATIENCE = 100, 2
"""Training ends after so many steps, where the best network is from less than half of them."""

IN_SPECTRUM = 1000
"""At most so many training inputs tell the tangent kernel's eigenvalues."""

Log = Callable[[int, Mapping[str, float]], None]


@dataclass(frozen=True, eq=False)
class NetworkDenoiser:
    """F(t, x(t)) as an estimate of x(0).

    Attributes:
        net: with one cell.
        output_scale: what its outputs are multiplied by.
        radius: the norm that is the inputs' unit.
    """

    net: Network
    output_scale: float
    radius: float

    def __call__(self, noisy: Floats, times: Floats) -> Floats:
        """Return estimates of x(0), (points, d)."""
        inputs = torch.as_tensor(scaled(noisy, times, self.radius))[None].to(self.net.weights)
        outputs = self.output_scale * self.net.at(inputs).values[0]
        found: Floats = outputs.double().cpu().numpy()
        return found


@dataclass(frozen=True, eq=False)
class Tuned:
    """A network at a step of its training.

    Attributes:
        denoiser: the network.
        step_size: η, with which it is trained.
        step: which.
        train_loss, validation_loss: ‖F − x(0)‖², means over the training and the validation draw.
    """

    denoiser: NetworkDenoiser
    step_size: float
    step: int
    train_loss: float
    validation_loss: float

    @property
    def rank(self) -> float:
        """By what the best is chosen: the loss on the validation draw; infinite if it diverged."""
        return self.validation_loss if math.isfinite(self.validation_loss) else math.inf

    @property
    def row(self) -> dict[str, float]:
        """What is logged of it."""
        names = ("train_loss", "validation_loss", "step_size")
        return {name: getattr(self, name) for name in names}


def scaled(noisy: Floats, times: Floats, radius: float) -> Floats:
    """Return a network's inputs (t, x(t)) in units of a norm, (points, 1 + d)."""
    found: Floats = np.concatenate([times[:, None], noisy], axis=1) / radius
    return found


def initial_network(
    parameters: SoftmaxDiffusionParameters, seed: int, train: Pairs, device: str
) -> NetworkDenoiser:
    """Return a cell's network before its first step; the longest training input is its unit."""
    of = parameters
    weights, signs = initial_weights("symmetric", (of.m, 1 + of.d, of.d), of.sigma, seed)
    dtype = getattr(torch, of.dtype)
    first, second = (torch.as_tensor(one, dtype=dtype, device=device) for one in (weights, signs))
    output_scale = 1.0 if of.output_scale == "paper" else of.m**-0.5
    radius = np.linalg.norm(scaled(train.noisy, train.times, 1.0), axis=1).max()
    net = Network(cast("Activation", of.model), first[None], second[None])
    return NetworkDenoiser(net, output_scale, float(radius))


def tangent_spectrum(
    parameters: SoftmaxDiffusionParameters, train: Pairs, radius: float
) -> tuple[float, float]:
    """Return the largest and the smallest eigenvalue of H for infinitely many hidden units.

    Of more than `IN_SPECTRUM` training inputs the first are taken: the largest eigenvalue grows as
    their number, by which it is multiplied; the smallest one only falls. Both are nan where a
    kernel overflows.
    """
    inputs = torch.as_tensor(scaled(train.noisy, train.times, radius))
    some = inputs[None, :IN_SPECTRUM]
    sigma = torch.tensor([parameters.sigma], dtype=some.dtype)
    kernel = limit_gram_matrix(cast("Activation", parameters.model), some, some, sigma, 1)
    if not kernel.isfinite().all():
        return math.nan, math.nan
    found = torch.linalg.eigvalsh(kernel[0])
    return float(found[-1]) * len(inputs) / some.shape[1], float(found[0])


def tuned_network(
    start: NetworkDenoiser,
    parameters: SoftmaxDiffusionParameters,
    curvature: float,
    problem: Problem,
    log: Log,
) -> Tuned | None:
    """Train a cell's network with each step size; None where all of them diverge.

    Args:
        start: before the first step.
        parameters: of the cell.
        curvature: λ_max(JJᵀ), in which gradient descent's step sizes are given.
        problem: the cell's draws.
        log: called at logged steps, with the losses of the step size that leads there.
    """
    way = parameters.optimiser
    sizes = [size if way == "adam" else size / curvature for size in STEP_SIZES[way]]
    nets = [_InTraining(start, way, size, problem) for size in sizes]
    logged = set(logged_steps(parameters.training_steps, ratio=1.1))
    best: Tuned | None = None
    for step in range(parameters.training_steps + 1):
        if step in logged:
            leader = min((net.measured(step) for net in nets), key=lambda one: one.rank)
            if not math.isfinite(leader.rank):
                return best if best is not None and best.step > 0 else None
            log(step, leader.row)
            if best is None or leader.rank < best.rank:
                best = leader
            if step > LEAST_STEPS and step > PATIENCE * best.step:
                break
        for net in nets:
            net.take_step()
    return best


class _InTraining:
    """A network in training with one step size."""

    def __init__(
        self, start: NetworkDenoiser, optimiser: str, step_size: float, problem: Problem
    ) -> None:
        weights = start.net.weights.clone()
        self._denoiser = replace(start, net=replace(start.net, weights=weights))
        self._step_size = step_size
        self._train, self._validation = (
            self._tensors(pairs) for pairs in (problem.train, problem.validation)
        )
        kind = torch.optim.Adam if optimiser == "adam" else torch.optim.SGD
        self._optimiser = kind([weights], lr=step_size)

    def take_step(self) -> None:
        """Take a step down ½‖F − Y‖²."""
        weights, scale = self._denoiser.net.weights, self._denoiser.output_scale
        inputs, clean = self._train
        out = self._denoiser.net.at(inputs)
        weights.grad = scale * out.gradient(scale * out.values - clean)
        self._optimiser.step()

    def measured(self, step: int) -> Tuned:
        """Return the network as it is after a step."""
        net = self._denoiser.net
        kept = replace(self._denoiser, net=replace(net, weights=net.weights.clone()))
        losses = self._loss(*self._train), self._loss(*self._validation)
        return Tuned(kept, self._step_size, step, *losses)

    def _loss(self, inputs: Tensor, clean: Tensor) -> float:
        outputs = self._denoiser.output_scale * self._denoiser.net.at(inputs).values
        return float((outputs - clean).square().sum(-1).mean())

    def _tensors(self, pairs: Pairs) -> tuple[Tensor, Tensor]:
        """Inputs and what is to be learned, (1, points, 1 + d) and (1, points, d)."""
        inputs = scaled(pairs.noisy, pairs.times, self._denoiser.radius)
        first, second = (torch.as_tensor(one)[None] for one in (inputs, pairs.clean))
        weights = self._denoiser.net.weights
        return first.to(weights), second.to(weights)
