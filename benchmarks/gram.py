"""Gram matrices by formula against three ways to get them by autograd, one thread.

In each round all of them compute the Gram matrix H = JJᵀ / m of the same network at the same
inputs, in float64, one after the other; what is printed are medians of a round's ratios. The sum of
a network's outputs has one gradient a sample, and so gives H where there is one output.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from benchmarks.timing import timed
from overfit_cli.studies.softmax_network.activations import Network, gram_matrix
from overfit_cli.studies.softmax_network.data import draw_problem
from overfit_cli.studies.softmax_network.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.reference import plain_network

AGREE = 1e-11
"""How far apart, over the largest entry, the matrices of all contestants may be."""

Contestant = Callable[[Network, Tensor], Tensor]
"""From a network and its inputs, (1, n, d), to H with rows (output, sample)."""


def drawn(n: int, width: int, outputs: int) -> tuple[Network, Tensor]:
    """Draw a softmax network, and inputs on the sphere in 8 dimensions."""
    parameters = SoftmaxConvergenceParameters(n=n, m=width, outputs=outputs, test_samples=1)
    problem = draw_problem(parameters, 0)
    weights, signs = torch.tensor(problem.weights[None]), torch.tensor(problem.signs[None])
    return Network("softmax", weights, signs), torch.tensor(problem.inputs[None])


@torch.no_grad()
def by_formula(net: Network, inputs: Tensor) -> Tensor:
    """Definition 3.6."""
    return gram_matrix(net.forward(inputs))[0]


def by_backward_passes(net: Network, inputs: Tensor) -> Tensor:
    """The Jacobian by autograd: one backward pass for each output of each sample."""
    weights = net.weights[0].clone().requires_grad_()
    values = plain_network("softmax", inputs[0], weights, net.signs[0])
    rows = [
        torch.autograd.grad(one, weights, retain_graph=True)[0].flatten()
        for one in values.T.flatten()
    ]
    jacobian = torch.stack(rows)
    return jacobian @ jacobian.T / net.width


def by_contraction(net: Network, inputs: Tensor) -> Tensor:
    """The Jacobian by `torch.func`, batched over samples, contracted over the weights."""

    def of_sample(weights: Tensor, x: Tensor) -> Tensor:
        return plain_network("softmax", x[None], weights, net.signs[0])[0]

    jacobians = torch.func.vmap(torch.func.jacrev(of_sample), (None, 0))(net.weights[0], inputs[0])
    rows: Tensor = jacobians.transpose(0, 1).flatten(0, 1).flatten(1)
    return rows @ rows.T / net.width


def by_summed_outputs(net: Network, inputs: Tensor) -> Tensor:
    """One gradient of the sum of a network's outputs for each sample, batched by `torch.func`."""

    def of_sample(weights: Tensor, x: Tensor) -> Tensor:
        return plain_network("softmax", x[None], weights, net.signs[0]).sum()

    gradients = torch.func.vmap(torch.func.grad(of_sample), (None, 0))(net.weights[0], inputs[0])
    rows: Tensor = gradients.flatten(1)
    return rows @ rows.T / net.width


def compete(n: int, width: int, outputs: int, rounds: int) -> None:
    """Compute with all, round by round, and print what it takes and the ratios."""
    others: dict[str, Contestant] = {
        "backward passes": by_backward_passes,
        "torch.func contraction": by_contraction,
    }
    if outputs == 1:
        others["summed outputs"] = by_summed_outputs
    contestants = {"formula": by_formula, **others}
    net, inputs = drawn(n, width, outputs)
    times: dict[str, list[float]] = {name: [] for name in contestants}
    apart = 0.0
    for number in range(rounds + 1):  # The first warms up.
        found = {name: timed(partial(one, net, inputs)) for name, one in contestants.items()}
        ours = found["formula"][1]
        for name, (seconds, gram) in found.items():
            apart = max(apart, float((gram - ours).abs().max() / ours.abs().max()))
            if number:
                times[name].append(seconds)
    print(f"n {n}, m {width}, outputs {outputs}")
    for name, of_rounds in times.items():
        ratio = statistics.median(a / b for a, b in zip(of_rounds, times["formula"], strict=True))
        print(f"{name:>24}: {1e3 * statistics.median(of_rounds):8.3f} ms, {ratio:6.1f} times ours")
    agreed = "as they must" if apart <= AGREE else f"more than {AGREE:.0e}"
    print(f"matrices within {apart:.1e} of each other, {agreed}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for n, width, outputs in ((16, 512, 1), (64, 1024, 1), (128, 4096, 1), (16, 1024, 4)):
        compete(n, width, outputs, arguments.rounds)


if __name__ == "__main__":
    main()
