"""Networks in training, and what they are held to: regression with their first kernels."""

from __future__ import annotations

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
from overfit_cli.studies.softmax_network.convergence.regression import KernelRegression


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
