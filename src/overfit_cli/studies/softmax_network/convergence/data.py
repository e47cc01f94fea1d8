"""Inputs, labels and initial weights of a cell.

A longer training set extends a shorter one, and so does a wider network. The paper requires inputs
and labels of norm at most 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.training import named_rng
from overfit_cli.studies.softmax_network.activations import initial_weights
from overfit_cli.studies.softmax_network.convergence.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.paper import digit_components

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """The data and the initial weights of a network."""

    inputs: Floats  # X, (n, d)
    labels: Floats  # Y, (n, outputs)
    test_inputs: Floats  # (test samples, d)
    weights: Floats  # W(0), (m, d)
    signs: Floats  # a, (outputs, m)


def draw_problem(parameters: SoftmaxConvergenceParameters, seed: int) -> Problem:
    """Draw a cell's problem."""
    inputs, labels, test_inputs = _samples(parameters, seed)
    shape = parameters.m, parameters.d, parameters.outputs
    initial = initial_weights(parameters.initialisation, shape, parameters.sigma, seed)
    return Problem(inputs, labels, test_inputs, *initial)


def _samples(parameters: SoftmaxConvergenceParameters, seed: int) -> tuple[Floats, Floats, Floats]:
    if parameters.data == "digits":
        return _digits(parameters, seed)
    d, outputs = parameters.d, parameters.outputs
    inside = parameters.data == "ball"
    labels = _ball_points(named_rng(seed, "train", "labels"), parameters.n, outputs, inside=True)
    inputs = _ball_points(named_rng(seed, "train"), parameters.n, d, inside=inside)
    tests = _ball_points(named_rng(seed, "test"), parameters.test_samples, d, inside=inside)
    return inputs, labels, tests


def _ball_points(
    draws: np.random.Generator, count: int, dimensions: int, *, inside: bool
) -> Floats:
    numbers = draws.standard_normal((count, dimensions + 1))  # one more, for the radius
    directions, last = numbers[:, :-1], numbers[:, -1]
    points: Floats = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    if not inside:
        return points
    from scipy.stats import norm

    return points * (norm.cdf(last) ** (1 / dimensions))[:, None]


def _digits(parameters: SoftmaxConvergenceParameters, seed: int) -> tuple[Floats, Floats, Floats]:
    points, digits = digit_components(parameters.d)
    labels = np.where(digits % 2 == 0, 1.0, -1.0)[:, None]  # (n, 1)
    order = named_rng(seed, "train", "digits").permutation(len(points))
    train, test = order[: parameters.n], order[len(points) - parameters.test_samples :]
    return points[train], labels[train], points[test]
