"""Inputs, labels and initial weights of a cell, and the built-in handwritten digits.

A longer training set extends a shorter one, and so does a wider network. The paper requires inputs
and labels of norm at most 1.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.arrays import Floats
from overfit_cli.core.training import named_rng
from overfit_cli.studies.softmax_network.activations import initial_weights
from overfit_cli.studies.softmax_network.parameters import SoftmaxConvergenceParameters


@dataclass(frozen=True, eq=False)
class Problem:
    """The data and the initial weights of a network."""

    inputs: Floats  # X, (n, d)
    labels: Floats  # Y, (n, outputs)
    test_inputs: Floats  # (test samples, d)
    weights: Floats  # W(0), (m, d)
    signs: Floats  # a, (outputs, m)


def draw_problem(p: SoftmaxConvergenceParameters, seed: int) -> Problem:
    """Draw a cell's problem."""
    if p.data == "digits":
        points, digits = digit_components(p.d)  # (1797, d) and (1797,)
        labels = np.where(digits % 2 == 0, 1.0, -1.0)[:, None]  # (1797, 1)
        order = named_rng(seed, "train", "digits").permutation(len(points))
        train, test = order[: p.n], order[len(points) - p.test_samples :]
        X, Y, tests = points[train], labels[train], points[test]
    else:
        inside = p.data == "ball"
        X = _ball_points(named_rng(seed, "train"), p.n, p.d, inside=inside)  # (n, d)
        Y = _ball_points(named_rng(seed, "train", "labels"), p.n, p.outputs, inside=True)
        tests = _ball_points(named_rng(seed, "test"), p.test_samples, p.d, inside=inside)
    initial = initial_weights(p.initialisation, (p.m, p.d, p.outputs), p.sigma, seed)
    return Problem(X, Y, tests, *initial)


def _ball_points(
    draws: np.random.Generator, count: int, dimensions: int, *, inside: bool
) -> Floats:
    """Points uniform in the unit ball, or on the sphere around it, (count, dimensions)."""
    numbers = draws.standard_normal((count, dimensions + 1))  # one more, for the radius
    directions, last = numbers[:, :-1], numbers[:, -1]
    points: Floats = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    if not inside:
        return points
    from scipy.stats import norm

    return points * (norm.cdf(last) ** (1 / dimensions))[:, None]


@functools.lru_cache(maxsize=8)
def digit_components(d: int) -> tuple[Floats, NDArray[np.int64]]:
    """Return the digits' first d principal components, (1797, d), and which digits they are.

    All are scaled alike, so that the longest has norm 1.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    pixels = digits.data - digits.data.mean(axis=0)  # (1797, 64)
    _, _, axes = np.linalg.svd(pixels, full_matrices=False)  # (64, 64)
    points = pixels @ axes[:d].T  # (1797, d)
    return points / np.linalg.norm(points, axis=1).max(), digits.target
