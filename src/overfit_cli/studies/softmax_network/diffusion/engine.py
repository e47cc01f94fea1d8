"""Networks as denoisers, trained at several step sizes, of which a validation draw chooses one.

All networks are tuned alike. Each is trained with every step size of its optimiser, from the same
initial weights; the step size and the step with the least mean of ‖F − x(0)‖² over the validation
draw are taken. That is what can be measured without knowing the target.

    F(W, x) = m ⟨a, softmax(W x)⟩,   x = (t, x(t)),   L(W) = ½ Σ_j ‖F(W, x_j) − x(0)_j‖²

are the network and the loss of section 6.1 (Cao et al. 2024), with ReLU or exp in place of softmax
in two of the networks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch
from torch import Tensor

from overfit_cli.core.arrays import Floats
from overfit_cli.core.training import logged_steps
from overfit_cli.studies.softmax_network import Activation
from overfit_cli.studies.softmax_network.activations import (
    Network,
    initial_weights,
    limit_gram_matrix,
)
from overfit_cli.studies.softmax_network.diffusion.data import Pairs, Problem
from overfit_cli.studies.softmax_network.diffusion.study import (
    LEAST_STEPS,
    PATIENCE,
    SoftmaxDiffusionParameters,
)

P = SoftmaxDiffusionParameters

STEP_SIZES = {"adam": (0.0006, 0.0025, 0.01, 0.04, 0.16, 0.64, 2.56), "gd": (0.1, 0.4, 1.6)}
"""Step sizes to try: Adam's as they are, gradient descent's over the curvature λ_max(JJᵀ)."""

IN_SPECTRUM = 1000
"""At most so many training inputs tell the tangent kernel's eigenvalues."""


@dataclass(frozen=True, eq=False)
class NetworkDenoiser:
    """F(t, x(t)) as an estimate of x(0)."""

    net: Network  # the network, with one cell, d + 1 inputs and d outputs
    output_scale: float  # c, the factor of its outputs
    radius: float  # the norm of (t, x(t)) that is the inputs' unit

    def inputs(self, noisy: Floats, times: Floats) -> Tensor:
        """Return X, (1, points, 1 + d)."""
        X = network_inputs(noisy, times, self.radius)  # (points, 1 + d)
        return torch.as_tensor(X)[None].to(self.net.weights)

    def outputs(self, X: Tensor) -> Tensor:
        """Return c F, (1, points, d)."""
        return self.output_scale * self.net.forward(X).values

    def __call__(self, noisy: Floats, times: Floats) -> Floats:
        """Return estimates of x(0), (points, d)."""
        estimates: Floats = self.outputs(self.inputs(noisy, times))[0].double().cpu().numpy()
        return estimates


@dataclass(frozen=True, eq=False)
class Tuned:
    """A network at a step of its training; `row` has its losses and its step size."""

    denoiser: NetworkDenoiser
    row: Mapping[str, float]
    step: int

    @property
    def rank(self) -> float:
        """The loss on the validation draw, by which the best is chosen; infinite if it diverged."""
        loss = self.row["validation_loss"]
        return loss if math.isfinite(loss) else math.inf


def network_inputs(noisy: Floats, times: Floats, radius: float) -> Floats:
    """Return a network's inputs (t, x(t)) / radius, (points, 1 + d)."""
    inputs: Floats = np.concatenate([times[:, None], noisy], axis=1) / radius
    return inputs


def initial_network(p: P, seed: int, train: Pairs, device: str) -> NetworkDenoiser:
    """Return a cell's network before its first step; the longest training input is its unit."""
    weights, signs = initial_weights("symmetric", (p.m, 1 + p.d, p.d), p.sigma, seed)
    kind = {"dtype": getattr(torch, p.dtype), "device": device}
    W = torch.as_tensor(weights, **kind)[None]  # (1, m, 1 + d)
    a = torch.as_tensor(signs, **kind)[None]  # (1, d, m)
    norms = np.linalg.norm(network_inputs(train.noisy, train.times, 1.0), axis=1)  # (points,)
    c = 1.0 if p.output_scale == "paper" else p.m**-0.5
    return NetworkDenoiser(Network(cast("Activation", p.model), W, a), c, float(norms.max()))


def tangent_spectrum(p: P, train: Pairs, radius: float) -> tuple[float, float]:
    """Return the largest and the smallest eigenvalue of H for infinitely many hidden units.

    Of more than `IN_SPECTRUM` training inputs the first are taken: the largest eigenvalue grows as
    their number, by which it is multiplied; the smallest one only falls. Both are nan where a
    kernel overflows.
    """
    X = torch.as_tensor(network_inputs(train.noisy, train.times, radius))  # (points, 1 + d)
    first = X[None, :IN_SPECTRUM]  # (1, n, 1 + d)
    sigma = torch.tensor([p.sigma], dtype=X.dtype)  # (1,)
    H = limit_gram_matrix(cast("Activation", p.model), first, first, sigma, 1)  # (1, n, n)
    if not H.isfinite().all():
        return math.nan, math.nan
    eigenvalues = torch.linalg.eigvalsh(H[0])  # increasing, (n,)
    return float(eigenvalues[-1]) * len(X) / first.shape[1], float(eigenvalues[0])


def tuned_network(
    start: NetworkDenoiser,
    p: P,
    curvature: float,
    problem: Problem,
    log: Callable[[int, Mapping[str, float]], None],
) -> Tuned | None:
    """Train a cell's network with each step size; None where all of them diverge.

    Gradient descent's step sizes are in units of 1 / λ_max(JJᵀ), one over the curvature. The losses
    of the step size that is best at a logged step are logged there.
    """
    unit = 1.0 if p.optimiser == "adam" else curvature
    nets = [_InTraining(start, p.optimiser, eta / unit, problem) for eta in STEP_SIZES[p.optimiser]]
    logged = set(logged_steps(p.training_steps, ratio=1.1))
    best: Tuned | None = None
    for step in range(p.training_steps + 1):
        if step in logged:
            leader = min((net.measure(step) for net in nets), key=lambda tuned: tuned.rank)
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
    def __init__(
        self, start: NetworkDenoiser, optimiser: str, step_size: float, problem: Problem
    ) -> None:
        W = start.net.weights.clone()  # (1, m, 1 + d), changed in place
        self._denoiser = replace(start, net=replace(start.net, weights=W))
        self._step_size = step_size
        self._draws = {
            name: (start.inputs(pairs.noisy, pairs.times), torch.as_tensor(pairs.clean)[None].to(W))
            for name, pairs in (("train", problem.train), ("validation", problem.validation))
        }  # X, (1, points, 1 + d), and Y, (1, points, d)
        kind = torch.optim.Adam if optimiser == "adam" else torch.optim.SGD
        self._optimiser = kind([W], lr=step_size)

    def take_step(self) -> None:
        """Take a step down L = ½‖c F − Y‖², with c the output scale: ∂L/∂W = c (c F − Y) ∂F/∂W."""
        net, c = self._denoiser.net, self._denoiser.output_scale
        X, Y = self._draws["train"]
        out = net.forward(X)
        net.weights.grad = c * out.gradient(c * out.values - Y)  # (1, m, 1 + d)
        self._optimiser.step()

    def measure(self, step: int) -> Tuned:
        row = {
            f"{name}_loss": float((self._denoiser.outputs(X) - Y).square().sum(-1).mean())
            for name, (X, Y) in self._draws.items()
        }
        net = self._denoiser.net
        kept = replace(self._denoiser, net=replace(net, weights=net.weights.clone()))
        return Tuned(kept, row | {"step_size": self._step_size}, step)
