"""Networks and their kernel regressions, side by side.

Regression with a tangent kernel by gradient descent, in closed form at any step.

Equation (24), γ ← γ − η (m H γ − Y), moves the predictions m H γ as the network's linearisation
moves: F − Y is multiplied by I − η m H at every step. The gradient of the loss (23) in γ would be
m H (m H γ − Y), which has one factor m H more.

Networks in training, and what they are held to: regression with their first kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    """Gradient descent from zero on labels that are Y − F(0), for each cell.

    Attributes:
        eigenvalues: of H, increasing, shape (cells, N).
        vectors: their eigenvectors as columns, shape (cells, N, N).
        labels: in the basis of the eigenvectors, shape (cells, N).
        rates: η m, by which an eigenvalue shortens its part of F − Y at a step, shape (cells,).
    """

    eigenvalues: Tensor
    vectors: Tensor
    labels: Tensor
    rates: Tensor

    @classmethod
    def with_kernel(cls, gram: Tensor, labels: Tensor, rates: Tensor) -> KernelRegression:
        """Return the regression with H, (cells, N, N), on labels, (cells, N)."""
        eigenvalues, vectors = torch.linalg.eigh(gram)
        return cls(eigenvalues, vectors, (vectors.mT @ labels[..., None]).squeeze(-1), rates)

    @property
    def smallest(self) -> Tensor:
        """λ, the smallest eigenvalue of H, (cells,)."""
        return self.eigenvalues[:, 0]

    @property
    def largest(self) -> Tensor:
        """The largest one."""
        return self.eigenvalues[:, -1]

    def of(self, cells: Tensor) -> KernelRegression:
        """Return those of some of the cells."""
        parts = (self.eigenvalues, self.vectors, self.labels, self.rates)
        return KernelRegression(*(one[cells] for one in parts))

    def left(self, step: int) -> Tensor:
        """Return what is left of each eigenvector's label after some steps, (cells, N)."""
        return (1 - self.rates[:, None] * self.eigenvalues) ** step * self.labels

    def predictions(self, step: int) -> Tensor:
        """Return m H γ of equation (24) after some steps, (cells, N)."""
        return self._from_basis(self.labels - self.left(step))

    def predictions_elsewhere(self, cross: Tensor, step: int) -> Tensor:
        """Return predictions at other inputs, (cells, N′).

        Args:
            cross: H between those and the training inputs, shape (cells, N′, N).
            step: after how many.
        """
        # Σ_{s < t} (1 − η m λ)^s is (1 − (1 − η m λ)^t) / (η m λ), and t where λ is zero
        inner = self.rates[:, None] * self.eigenvalues
        power = torch.expm1(step * torch.log1p(-inner.clamp(max=1 - 1e-15)))
        exact = torch.where(inner < 1, -power / inner, (1 - (1 - inner) ** step) / inner)
        summed = torch.where(inner.abs() * step < 1e-12, float(step), exact)
        coefficients = self._from_basis(self.rates[:, None] * summed * self.labels)
        return (cross @ coefficients[..., None]).squeeze(-1)

    def predictions_by_gradient(self, step: int) -> Tensor:
        """Return m H γ after steps along the gradient of (23), (cells, N).

        Its step size is η over the largest m λ: with η itself it would diverge.
        """
        squares = self.rates[:, None] * self.eigenvalues.square() / self.largest[:, None]
        return self._from_basis((1 - (1 - squares) ** step) * self.labels)

    def stated_contraction(self) -> Tensor:
        """Return log(1 − m η λ/2), the fall of log ‖F − Y‖² in a step of Theorem 4.2, (cells,)."""
        return torch.log1p(-(self.rates * self.smallest / 2).clamp(0, 1 - 1e-9))

    def growth_by_gradient(self, width: int) -> Tensor:
        """Return the decades by which a step along the gradient of (23) grows its largest part.

        With the step size η of (24): log₁₀ |1 − η (m λ)²|, (cells,). Below zero it would shrink.

        Args:
            width: m.
        """
        return (1 - self.rates * width * self.largest.square()).abs().log10()

    def _from_basis(self, values: Tensor) -> Tensor:
        return (self.vectors @ values[..., None]).squeeze(-1)

    def steps_to(self, epsilon: float, most: int = 10**12) -> list[float]:
        """Return how many steps bring ‖F − Y‖² to `epsilon` in each cell; nan where none does."""
        return [self._steps_of(place, epsilon, most) for place in range(len(self.rates))]

    def _steps_of(self, place: int, epsilon: float, most: int) -> float:
        factors = (1 - self.rates[place] * self.eigenvalues[place]).abs()
        squares = self.labels[place].square()

        def far(step: int) -> bool:
            return not float((factors ** (2 * step) * squares).sum()) <= epsilon

        if far(most):
            return math.nan
        low, high = -1, most  # far at `low`, or before the first step; near at `high`
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if far(middle) else (low, middle)
        return float(high)


@dataclass(frozen=True)
class Beside:
    """Cells of one shape: tensors whose first axis is the cell.

    Attributes:
        net: in training; its weights are changed in place.
        start: the same before the first step.
        inputs, tests: X and the test inputs, shapes (cells, n, d) and (cells, test samples, d).
        labels: Y, shape (cells, n, outputs).
        offsets: F(0), which is subtracted; zero but for round-off where it begins symmetric.
        test_start: F at the test inputs before the first step, (cells, test samples, outputs).
        gram, cross: H* between training inputs, and between test and training inputs.
        regression: with H*, from the same F(0).
        limit: with the kernel of infinitely many hidden units.
        step_sizes: η, shape (cells,).
    """

    net: Network
    start: Network
    inputs: Tensor
    tests: Tensor
    labels: Tensor
    offsets: Tensor
    test_start: Tensor
    gram: Tensor
    cross: Tensor
    regression: KernelRegression
    limit: KernelRegression
    step_sizes: Tensor

    def residual(self, out: Outputs) -> Tensor:
        """Return F − F(0) − Y at the training inputs, (cells, n, outputs)."""
        return out.values - self.offsets - self.labels

    def of(self, cells: Tensor) -> Beside:
        """Return those of some of the cells."""
        parts: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        for name, one in parts.items():
            parts[name] = one[cells] if isinstance(one, Tensor) else one.of(cells)
        return Beside(**parts)


def set_up(
    settings: Sequence[SoftmaxConvergenceParameters], problems: Sequence[Problem], device: str
) -> Beside:
    """Return the cells of a batch before their first step.

    Args:
        settings: of each cell; they have one activation, and all sizes alike.
        problems: what each was drawn.
        device: where to train.
    """
    first = settings[0]

    def tensor(values: Sequence[object]) -> Tensor:
        dtype = getattr(torch, first.dtype)
        return torch.stack([torch.as_tensor(one, dtype=dtype) for one in values]).to(device)

    inputs, tests = (
        tensor([getattr(one, name) for one in problems]) for name in ("inputs", "test_inputs")
    )
    labels = tensor([one.labels for one in problems])
    weights = tensor([one.weights for one in problems])
    net = Network(first.activation, weights, tensor([one.signs for one in problems]))
    out, tested = net.at(inputs), net.at(tests)
    gram = gram_matrix(out)
    sigma = tensor([one.sigma for one in settings])
    limit = limit_gram_matrix(first.activation, inputs, inputs, sigma, first.outputs)
    regression = _regression(settings, gram, labels)
    return Beside(
        net=net,
        start=Network(net.activation, weights.clone(), net.signs),
        inputs=inputs,
        tests=tests,
        labels=labels,
        offsets=out.values,
        test_start=tested.values,
        gram=gram,
        cross=gram_matrix(tested, out),
        regression=regression,
        limit=_regression(settings, limit, labels),
        step_sizes=regression.rates / first.m,
    )


def flat(values: Tensor) -> Tensor:
    """Return values of shape (cells, n, outputs) in the order of H's rows, (cells, outputs · n)."""
    return values.mT.flatten(1)


def _regression(
    settings: Sequence[SoftmaxConvergenceParameters], gram: Tensor, labels: Tensor
) -> KernelRegression:
    """Regression with the step sizes that the rules give for this kernel."""
    found = KernelRegression.with_kernel(gram, flat(labels), gram.new_zeros(len(gram)))
    paper = gram.new_tensor([float(one.step_rule == "paper") for one in settings])
    factors = gram.new_tensor([one.step_factor for one in settings])
    stated = 0.1 * found.smallest.clamp(min=0) / labels[0].numel() ** 2
    rates = factors * torch.where(paper > 0, stated, 1 / found.largest)
    return KernelRegression(found.eigenvalues, found.vectors, found.labels, rates)


def kernel_checks(beside: Beside) -> dict[str, Tensor]:
    """Return how far mH is from JJᵀ by autograd, and the outputs from zero, each (cells,).

    Args:
        beside: before the first step.
    """
    jacobian = jacobian_by_autograd(beside.net, beside.inputs)
    products = jacobian @ jacobian.mT
    far = (products - beside.net.width * beside.gram).abs().amax((1, 2))
    outputs = torch.cat([beside.offsets, beside.test_start], 1)
    return {
        "gram_error": far / products.abs().amax((1, 2)),
        "start_output": outputs.abs().amax((1, 2)),
    }


def jacobian_by_autograd(net: Network, inputs: Tensor) -> Tensor:
    """Return J, (cells, outputs · n, m · d): one backward pass for each output of each sample.

    Args:
        net: the networks.
        inputs: X, shape (cells, n, d).
    """
    with torch.enable_grad():
        weights = net.weights.clone().requires_grad_()
        values = Network(net.activation, weights, net.signs).at(inputs).values
        each = values.sum(0).mT.flatten()  # cells don't see each other's weights
        rows = [torch.autograd.grad(one, weights, retain_graph=True)[0] for one in each]
    return torch.stack([row.flatten(1) for row in rows], 1)


def shift_change(net: Network, inputs: Tensor) -> Tensor:
    """Return how much outputs change where all hidden units get the same unit vector more.

    Over the largest output, (cells,). A softmax over hidden units doesn't see it.
    """
    d = inputs.shape[-1]
    shifted = Network(net.activation, net.weights + d**-0.5, net.signs)
    before, after = net.at(inputs).values, shifted.at(inputs).values
    return (after - before).abs().amax((1, 2)) / before.abs().amax((1, 2))
