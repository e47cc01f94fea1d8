"""Networks of a batch and the kernel regressions they are compared with, in closed form.

Regression with a kernel H follows equation (24),

    γ ← γ − η (m H γ − Y),

which moves the predictions m H γ as the network's linearisation moves: F − Y is multiplied by
I − η m H at every step. The gradient of the loss (23) in γ would be m H (m H γ − Y), which has one
factor m H more. In comments, N = outputs · n is the number of rows of H.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from overfit_cli.core.training import named_rng
from overfit_cli.studies.softmax_network.activations import (
    Network,
    Outputs,
    gram_matrix,
    limit_gram_matrix,
)
from overfit_cli.studies.softmax_network.data import Problem
from overfit_cli.studies.softmax_network.parameters import (
    RADII,
    SoftmaxConvergenceParameters,
)


@dataclass(frozen=True)
class Comparison:
    """Networks of one shape and their kernel regressions: tensors whose first axis is the cell."""

    net: Network  # the networks in training; their weights are changed in place
    start: Tensor  # W(0), (cells, m, d)
    inputs: Tensor  # X, (cells, n, d)
    tests: Tensor  # (cells, test samples, d)
    labels: Tensor  # Y, (cells, n, outputs)
    offsets: Tensor  # F(0), which is subtracted; zero but for round-off where it begins symmetric
    test_start: Tensor  # F at the test inputs before the first step, (cells, test samples, outputs)
    gram: Tensor  # H* between training inputs, (cells, N, N)
    cross: Tensor  # H* between test and training inputs, (cells, N′, N)
    regression: KernelRegression  # with H*, from the same F(0)
    step_sizes: Tensor  # η, (cells,)

    def residual(self, out: Outputs) -> Tensor:
        """Return F − F(0) − Y at the training inputs, (cells, n, outputs)."""
        return out.values - self.offsets - self.labels

    def select(self, cells: Tensor) -> Comparison:
        """Return the cells at the indices `cells`."""
        parts: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        for name, part in parts.items():
            parts[name] = part[cells] if isinstance(part, Tensor) else part.select(cells)
        return Comparison(**parts)


def set_up(
    settings: Sequence[SoftmaxConvergenceParameters], problems: Sequence[Problem], device: str
) -> Comparison:
    """Return the cells of a batch before their first step."""
    first = settings[0]

    def tensor(name: str) -> Tensor:
        values = np.stack([getattr(problem, name) for problem in problems])
        return torch.as_tensor(values, dtype=getattr(torch, first.dtype), device=device)

    X, Y, tests = tensor("inputs"), tensor("labels"), tensor("test_inputs")
    W, a = tensor("weights"), tensor("signs")
    net = Network(first.activation, W, a)
    out, tested = net.forward(X), net.forward(tests)
    H = gram_matrix(out)  # H*, (cells, N, N)
    regression = regression_with(settings, H, Y)
    return Comparison(
        net=net,
        start=W.clone(),
        inputs=X,
        tests=tests,
        labels=Y,
        offsets=out.values,
        test_start=tested.values,
        gram=H,
        cross=gram_matrix(tested, out),  # (cells, N′, N)
        regression=regression,
        step_sizes=regression.rates / first.m,
    )


def steps_at_infinite_width(
    settings: Sequence[SoftmaxConvergenceParameters], cells: Comparison
) -> list[float]:
    """Return the steps to ε of regression with the kernel of infinitely many hidden units."""
    X, first = cells.inputs, settings[0]
    sigma = X.new_tensor([each.sigma for each in settings])  # (cells,)
    H = limit_gram_matrix(first.activation, X, X, sigma, first.outputs)  # (cells, N, N)
    return regression_with(settings, H, cells.labels).steps_to(first.epsilon)


def flat(values: Tensor) -> Tensor:
    """Return values of shape (cells, n, outputs) in the order of H's rows, (cells, outputs · n)."""
    return values.mT.flatten(1)


def regression_with(
    settings: Sequence[SoftmaxConvergenceParameters], gram: Tensor, labels: Tensor
) -> KernelRegression:
    """Regression with the step sizes that the rules give for this kernel.

    η m is c / λ_max by the rule of stability, and 0.1 c λ / (n² outputs²) by Theorem 4.2's.
    """
    start = KernelRegression.with_kernel(gram, flat(labels), gram.new_zeros(len(gram)))
    is_paper = gram.new_tensor([float(each.step_rule == "paper") for each in settings])  # (cells,)
    c = gram.new_tensor([each.step_factor for each in settings])  # (cells,)
    stated = 0.1 * start.smallest / labels[0].numel() ** 2  # (cells,)
    return replace(start, rates=c * torch.where(is_paper > 0, stated, 1 / start.largest))


_ROUNDS = 30
"""The rounds of ascent over directions."""


def largest_drift(net: Network, inputs: Tensor, directions: Tensor, radius: float) -> Tensor:
    """Return the largest ‖H(W + V) − H(W)‖_F / (R n outputs) with ‖v_r‖ ≤ R, each (cells,).

    For softmax and exp a lower bound of it. Where R is small the change of H is nearly linear in V,
    and its norm convex: with the gradient G at V, the V of norms R with the largest inner product
    is R g_r / ‖g_r‖, and the norm there is no smaller. Rounds of this rise without a step size.

    For ReLU H changes by jumps, and this is an upper bound: all units are taken to flip for a
    sample that can, those with |⟨w_r, x_i⟩| ≤ R ‖x_i‖, and no two changes to cancel. Directions are
    V of the first round, up to the norms of its rows, (starts, cells, m, d).
    """
    size = radius * inputs.shape[1] * net.signs.shape[1]
    if net.activation == "relu":
        return _flipped(net, inputs, radius) / size
    gram = gram_matrix(net.forward(inputs))  # (cells, N, N)
    most = inputs.new_zeros(len(inputs))  # (cells,)
    for start in directions:
        V = start  # (cells, m, d)
        for _ in range(_ROUNDS):
            V = (radius * V / V.norm(dim=-1, keepdim=True)).requires_grad_()
            with torch.enable_grad():
                moved = Network(net.activation, net.weights + V, net.signs)
                change = gram_matrix(moved.forward(inputs)) - gram  # (cells, N, N)
                norms = change.flatten(1).norm(dim=1)  # (cells,)
                (V,) = torch.autograd.grad(norms.sum(), V)
            most = torch.maximum(most, norms.detach())
    return most / size


def _flipped(net: Network, inputs: Tensor, radius: float) -> Tensor:
    z = inputs @ net.weights.mT  # (cells, n, m)
    flips = (z.abs() <= radius * inputs.norm(dim=-1, keepdim=True)).to(z)  # (cells, n, m)
    count = flips.sum(-1)  # (cells, n)
    either = count[:, :, None] + count[:, None] - flips @ flips.mT  # of x_i or x_j, (cells, n, n)
    outputs = net.signs.shape[1]
    changes = (inputs @ inputs.mT) * either / net.width  # (cells, n, n)
    bound: Tensor = outputs * changes.flatten(1).norm(dim=1)  # (cells,)
    return bound


def drift_checks(cells: Comparison, seeds: Sequence[int]) -> dict[str, Tensor]:
    """Return the largest changes of H within `RADII`, from the radial and a random direction."""
    W = cells.net.weights
    draws = [named_rng(seed, "worst", "directions") for seed in seeds]
    drawn = np.stack([draw.standard_normal(tuple(W.shape[1:])) for draw in draws])  # (cells, m, d)
    directions = torch.stack([W, torch.as_tensor(drawn).to(W)])  # (2, cells, m, d)
    return {
        name: largest_drift(cells.net, cells.inputs, directions, radius)
        for name, radius in zip(("worst_drift", "worst_drift_far"), RADII, strict=True)
    }


class StepParts(NamedTuple):
    """What a step of gradient descent does to ‖F − Y‖² of softmax networks, each (cells,).

    They are two of the four parts of its change (Lemma E.1). With S = softmax(z), dz = −η X Δwᵀ and
    g = Σ_r S_r (e^dz_r − 1), so that α grows by 1 + g,

        v₀ = −g/(1 + g) m Σ_r a_r S_r e^dz_r,  v₁ = m Σ_r a_r S_r dz_r.
    """

    c0: Tensor  # 2 ⟨F − Y, v₀⟩
    c1: Tensor  # 2 ⟨F − Y, v₁⟩
    longest: Tensor  # max_r ‖Δw_r‖


def step_parts(out: Outputs, residual: Tensor, step_sizes: Tensor) -> StepParts:
    """Return the parts of the next step, of the residual F − F(0) − Y, (cells, n, outputs)."""
    a, S = out.signs, out.slopes  # a and m S, (cells, outputs, m) and (cells, n, m)
    gradient = out.gradient(residual)  # Δw, (cells, m, d)
    dz = -step_sizes[:, None, None] * (out.inputs @ gradient.mT)  # (cells, n, m)
    g = (S * torch.expm1(dz)).mean(-1, keepdim=True)  # (cells, n, 1)
    v0 = -g / (1 + g) * ((S * dz.exp()) @ a.mT)  # (cells, n, outputs)
    v1 = (S * dz) @ a.mT  # (cells, n, outputs)
    c0, c1 = (2 * (residual * part).sum((1, 2)) for part in (v0, v1))  # (cells,)
    return StepParts(c0, c1, gradient.norm(dim=-1).amax(1))


# Kernel regression by gradient descent, at any step


@dataclass(frozen=True)
class KernelRegression:
    """Gradient descent from zero on labels that are Y − F(0), for each cell."""

    eigenvalues: Tensor  # λ of H, increasing, (cells, N)
    vectors: Tensor  # V, their eigenvectors as columns, (cells, N, N)
    labels: Tensor  # Vᵀ Y, in the basis of the eigenvectors, (cells, N)
    rates: Tensor  # η m, by which an eigenvalue shortens its part of F − Y at a step, (cells,)

    @classmethod
    def with_kernel(cls, gram: Tensor, labels: Tensor, rates: Tensor) -> KernelRegression:
        """Return the regression with H, (cells, N, N), on labels, (cells, N)."""
        eigenvalues, V = torch.linalg.eigh(gram)  # (cells, N), (cells, N, N)
        return cls(eigenvalues, V, (V.mT @ labels[..., None]).squeeze(-1), rates)

    @property
    def smallest(self) -> Tensor:
        """The smallest eigenvalue λ of H, (cells,); 0 where round-off hides it."""
        return self.eigenvalues[:, 0].where(above_round_off(self.eigenvalues)[:, 0], 0.0)

    @property
    def largest(self) -> Tensor:
        """The largest eigenvalue of H, (cells,)."""
        return self.eigenvalues[:, -1]

    def select(self, cells: Tensor) -> KernelRegression:
        """Return the regressions of the cells at the indices `cells`."""
        return KernelRegression(*(getattr(self, part.name)[cells] for part in fields(self)))

    def remaining(self, step: int) -> Tensor:
        """Return what remains of each eigenvector's label after some steps, (cells, N).

        That is (1 − η m λ)^t Vᵀ Y.
        """
        return (1 - self.rates[:, None] * self.eigenvalues) ** step * self.labels

    def predictions(self, step: int) -> Tensor:
        """Return m H γ of equation (24) after some steps, (cells, N)."""
        return self._rotate_back(self.labels - self.remaining(step))

    def predictions_elsewhere(self, cross: Tensor, step: int) -> Tensor:
        """Return predictions after t steps at other inputs, (cells, N′).

        K is H between those and the training inputs, (cells, N′, N).
        """
        decay = self.rates[:, None] * self.eigenvalues  # η m λ, (cells, N)
        # (1 − decay)^t − 1 without cancellation, where the logarithm exists, (cells, N)
        power = torch.expm1(step * torch.log1p(-decay.clamp(max=1 - 1e-15)))
        # Σ_{r<t} (1 − decay)^r, (cells, N)
        exact = torch.where(decay < 1, -power / decay, (1 - (1 - decay) ** step) / decay)
        # the same without loss of digits, (cells, N)
        summed = torch.where(decay.abs() * step < 1e-12, float(step), exact)
        coefficients = self._rotate_back(self.rates[:, None] * summed * self.labels)  # m γ
        return (cross @ coefficients[..., None]).squeeze(-1)

    def predictions_by_gradient(self, step: int) -> Tensor:
        """Return m H γ after steps along the gradient of (23), (cells, N).

        Its step size is η over the largest m λ: with η itself it would diverge.
        """
        # η m λ² / λ_max, (cells, N)
        decay = self.rates[:, None] * self.eigenvalues.square() / self.largest[:, None]
        return self._rotate_back((1 - (1 - decay) ** step) * self.labels)

    def stated_contraction(self) -> Tensor:
        """Return log(1 − m η λ/2), the fall of log ‖F − Y‖² in a step by Lemma E.2, (cells,)."""
        return torch.log1p(-(self.rates * self.smallest / 2).clamp(0, 1 - 1e-9))

    def _rotate_back(self, values: Tensor) -> Tensor:
        """V times values, (cells, N)."""
        return (self.vectors @ values[..., None]).squeeze(-1)

    def steps_to(self, epsilon: float, limit: int = 10**12) -> list[float]:
        """Return how many steps bring ‖F − Y‖² to `epsilon` in each cell.

        A cell that needs more than `limit` steps has nan.
        """
        return [self._steps_of(cell, epsilon, limit) for cell in range(len(self.rates))]

    def _steps_of(self, cell: int, epsilon: float, limit: int) -> float:
        """The first step with ‖F − Y‖² at ε or below; a step size above 2/λ_max lets it grow again.

        ‖F − Y‖² is a sum of exponentials, so convex in the step: it falls, then it may rise.
        """
        factors = (1 - self.rates[cell] * self.eigenvalues[cell]).abs()  # (N,)
        squares = self.labels[cell].square()  # (N,)

        def parts(step: int) -> Tensor:
            return torch.where(squares > 0, factors ** (2 * step) * squares, 0.0)

        def is_at_most(step: int) -> bool:
            return float(parts(step).sum()) <= epsilon

        def rises(step: int) -> bool:
            return not float((parts(step) * (factors.square() - 1)).sum()) < 0

        lowest = _first(rises, limit)
        return float(_first(is_at_most, lowest)) if is_at_most(lowest) else math.nan


def _first(holds: Callable[[int], bool], limit: int) -> int:
    """The first number from 0 at which what stays true becomes true; `limit` at the latest."""
    low, high = -1, limit  # not true at `low`
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def above_round_off(eigenvalues: Tensor) -> Tensor:
    """Return which eigenvalues, increasing along the last axis, are more than round-off.

    Round-off is N times the precision times the largest one, as for the rank of a matrix.
    """
    precision = torch.finfo(eigenvalues.dtype).eps * eigenvalues.shape[-1]
    return eigenvalues > precision * eigenvalues[..., -1:]
