"""Networks of a batch and the kernel regressions they are compared with, in closed form.

Regression with a kernel H by gradient descent follows equation (24),

    γ ← γ − η (m H γ − Y),

which moves the predictions m H γ as the network's linearisation moves: F − Y is multiplied by
I − η m H at every step. The gradient of the loss (23) in γ would be m H (m H γ − Y), which has one
factor m H more. In comments, N = outputs · n is the number of rows of H.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from overfit_cli.studies.softmax_network.activations import (
    Network,
    Outputs,
    gram_matrix,
    limit_gram_matrix,
)
from overfit_cli.studies.softmax_network.convergence.data import Problem
from overfit_cli.studies.softmax_network.convergence.parameters import SoftmaxConvergenceParameters


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
        return self.eigenvalues[:, 0].where(~self.is_singular, 0.0)

    @property
    def largest(self) -> Tensor:
        """The largest eigenvalue of H, (cells,)."""
        return self.eigenvalues[:, -1]

    @property
    def rank(self) -> Tensor:
        """How many eigenvalues of H are above round-off, (cells,)."""
        return above_round_off(self.eigenvalues).sum(1)

    @property
    def is_singular(self) -> Tensor:
        """Whether the smallest eigenvalue is round-off, (cells,)."""
        return self.rank < self.eigenvalues.shape[1]

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

    def growth_by_gradient(self, width: int) -> Tensor:
        """Return the decades by which a step along the gradient of (23) grows its largest part.

        With the step size η of (24): log₁₀ |1 − η (m λ)²|, (cells,). Below zero it would shrink.
        """
        return (1 - self.rates * width * self.largest.square()).abs().log10()

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


@dataclass(frozen=True)
class Comparison:
    """Networks of one shape and their kernel regressions: tensors whose first axis is the cell."""

    net: Network  # the networks in training; their weights are changed in place
    start: Network  # the same before the first step
    # inputs, tests: X and the test inputs, (cells, n, d) and (cells, test samples, d)
    inputs: Tensor
    tests: Tensor
    labels: Tensor  # Y, (cells, n, outputs)
    offsets: Tensor  # F(0), which is subtracted; zero but for round-off where it begins symmetric
    test_start: Tensor  # F at the test inputs before the first step, (cells, test samples, outputs)
    # gram, cross: H* between training inputs, (cells, N, N), and between test and training
    # inputs, (cells, N′, N)
    gram: Tensor
    cross: Tensor
    regression: KernelRegression  # with H*, from the same F(0)
    limit: KernelRegression  # with the kernel of infinitely many hidden units
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

    def tensor(values: Sequence[object]) -> Tensor:
        dtype = getattr(torch, first.dtype)
        return torch.stack([torch.as_tensor(value, dtype=dtype) for value in values]).to(device)

    X = tensor([problem.inputs for problem in problems])  # (cells, n, d)
    tests = tensor([problem.test_inputs for problem in problems])  # (cells, test samples, d)
    Y = tensor([problem.labels for problem in problems])  # (cells, n, outputs)
    W = tensor([problem.weights for problem in problems])  # (cells, m, d)
    a = tensor([problem.signs for problem in problems])  # (cells, outputs, m)
    sigma = tensor([each.sigma for each in settings])  # (cells,)
    net = Network(first.activation, W, a)
    out, tested = net.forward(X), net.forward(tests)
    H = gram_matrix(out)  # H*, (cells, N, N)
    H_limit = limit_gram_matrix(first.activation, X, X, sigma, first.outputs)  # (cells, N, N)
    regression = _regression(settings, H, Y)
    return Comparison(
        net=net,
        start=Network(net.activation, W.clone(), a),
        inputs=X,
        tests=tests,
        labels=Y,
        offsets=out.values,
        test_start=tested.values,
        gram=H,
        cross=gram_matrix(tested, out),  # (cells, N′, N)
        regression=regression,
        limit=_regression(settings, H_limit, Y),
        step_sizes=regression.rates / first.m,
    )


def flat(values: Tensor) -> Tensor:
    """Return values of shape (cells, n, outputs) in the order of H's rows, (cells, outputs · n)."""
    return values.mT.flatten(1)


def _regression(
    settings: Sequence[SoftmaxConvergenceParameters], gram: Tensor, labels: Tensor
) -> KernelRegression:
    """Regression with the step sizes that the rules give for this kernel.

    η m is c / λ_max by the rule of stability, and 0.1 c λ / (n² outputs²) by Theorem 4.2's.
    """
    start = KernelRegression.with_kernel(gram, flat(labels), gram.new_zeros(len(gram)))
    is_paper = gram.new_tensor([float(each.step_rule == "paper") for each in settings])  # (cells,)
    c = gram.new_tensor([each.step_factor for each in settings])  # (cells,)
    stated = 0.1 * start.smallest / labels[0].numel() ** 2  # (cells,)
    rates = c * torch.where(is_paper > 0, stated, 1 / start.largest)  # (cells,)
    return KernelRegression(start.eigenvalues, start.vectors, start.labels, rates)


def kernel_checks(cells: Comparison) -> dict[str, Tensor]:
    """Return how far m H is from JJᵀ by autograd, and the outputs from zero, each (cells,)."""
    J = jacobian_by_autograd(cells.net, cells.inputs)  # (cells, N, m · d)
    products = J @ J.mT  # (cells, N, N)
    error = (products - cells.net.width * cells.gram).abs().amax((1, 2))  # (cells,)
    outputs = torch.cat([cells.offsets, cells.test_start], 1)  # (cells, n + test samples, outputs)
    return {
        "gram_error": error / products.abs().amax((1, 2)),
        "start_output": outputs.abs().amax((1, 2)),
    }


def jacobian_by_autograd(net: Network, inputs: Tensor) -> Tensor:
    """Return J, (cells, outputs · n, m · d), at X, (cells, n, d), a backward pass per output."""
    with torch.enable_grad():
        W = net.weights.clone().requires_grad_()  # (cells, m, d)
        F = Network(net.activation, W, net.signs).forward(inputs).values  # (cells, n, outputs)
        scalars = F.sum(0).mT.flatten()  # cells don't see each other's weights; (outputs · n,)
        # each (cells, m, d)
        rows = [torch.autograd.grad(scalar, W, retain_graph=True)[0] for scalar in scalars]
    return torch.stack([row.flatten(1) for row in rows], 1)


def shift_change(net: Network, inputs: Tensor) -> Tensor:
    """Return how much outputs change where all hidden units get the same unit vector more.

    Over the largest output, (cells,). A softmax over hidden units doesn't see it.
    """
    d = inputs.shape[-1]
    shifted = Network(net.activation, net.weights + d**-0.5, net.signs)
    before = net.forward(inputs).values  # (cells, n, outputs)
    after = shifted.forward(inputs).values  # (cells, n, outputs)
    return (after - before).abs().amax((1, 2)) / before.abs().amax((1, 2))
