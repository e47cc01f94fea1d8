"""The kernel and the outputs held to slow ways that are obviously right, cell by cell."""

from __future__ import annotations

import torch
from torch import Tensor

from overfit_cli.studies.softmax_network.activations import Network
from overfit_cli.studies.softmax_network.convergence.beside import Beside


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
