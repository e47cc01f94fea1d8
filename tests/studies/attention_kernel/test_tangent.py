"""Tangent kernels, stationary queries and ranks of score Jacobians, against slow definitions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from overfit_cli.studies.attention_kernel.parameters import KERNELS
from overfit_cli.studies.attention_kernel.regression import lemmas, tangent
from overfit_cli.studies.attention_kernel.regression.data import Problem, draw_problem
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters
from overfit_cli.studies.attention_kernel.regression.reference import MultiHeadAttention
from overfit_cli.studies.attention_kernel.regression.study import study
from overfit_cli.studies.attention_kernel.regression.theory import lacks_rank, lacks_width
from tests.studies.attention_kernel.test_regression import at_start
from tests.training import cell_of, train

SMALL = {"n": 3, "tokens": 3, "d": 11, "d_h": 4, "training_steps": 1}


def settings(**values: object) -> KernelRegressionParameters:
    return KernelRegressionParameters(**{**SMALL, **values})  # type: ignore[arg-type]


def tangent_by_autograd(problem: Problem, kernel: str) -> np.ndarray:
    """∂MH/∂W_Q times its transpose, (samples · tokens)²."""
    model = MultiHeadAttention(problem, KERNELS[kernel], torch.float64)
    out = model(torch.tensor(problem.inputs)).flatten()
    rows = [torch.autograd.grad(one, model.query, retain_graph=True)[0].flatten() for one in out]
    jacobian = torch.stack(rows)
    return np.asarray(jacobian @ jacobian.T)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_tangent_kernel_is_that_of_autograd(kernel: str) -> None:
    parameters = settings(kernel=kernel, heads=2)
    slow = tangent_by_autograd(draw_problem(parameters, 0), kernel)
    [result] = train(study, cell_of(study, parameters))
    assert result.measurements["tangent_trace"] == pytest.approx(np.trace(slow), rel=1e-10)


@pytest.mark.parametrize("kernel", ["softmax", "gaussian-eq11", "gaussian-normalised"])
def test_its_trace_at_small_weights_is_the_mean_over_draws(kernel: str) -> None:
    """Of 60 draws of W_Q and W_K, at the same X and values."""
    problem, sigma = draw_problem(settings(heads=2), 1), 1e-4
    draws = np.random.default_rng(0)
    shape = problem.query.shape
    traces = [
        np.trace(
            tangent_by_autograd(
                replace(
                    problem,
                    query=sigma * draws.standard_normal(shape),
                    key=sigma * draws.standard_normal(shape),
                ),
                kernel,
            )
        )
        for _ in range(60)
    ]
    expected = tangent.trace_at_small_weights(KERNELS[kernel], problem, sigma)
    error = np.std(traces) / math.sqrt(len(traces))
    assert abs(np.mean(traces) - expected) < 4 * error
    assert error < 0.1 * expected


@pytest.mark.parametrize("learning_rate", [0.05, 0.4, 0.9, 1.1])
def test_predicted_steps_are_those_of_the_recursion(learning_rate: float) -> None:
    draws = np.random.default_rng(3)
    basis = np.linalg.qr(draws.standard_normal((5, 5)))[0]
    theta = basis @ np.diag([2.0, 1.0, 0.5, 0.3, 0.2]) @ basis.T
    start = draws.standard_normal(5)
    predicted = tangent.predicted_steps(theta, start, learning_rate)
    residual, steps = start, 0
    while 1e-6 * start @ start < residual @ residual < 1e6:
        residual, steps = residual - learning_rate * theta @ residual, steps + 1
    assert math.isnan(predicted) if learning_rate > 1 else predicted == steps
    assert math.isnan(tangent.predicted_steps(theta, np.zeros(5), learning_rate))


def test_the_best_step_size_lies_between_one_and_two_over_the_largest_eigenvalue() -> None:
    theta, start = np.diag([4.0, 1.0, 0.5]), np.ones(3)
    sizes = np.linspace(0.02, 0.6, 30)
    steps = np.array([tangent.predicted_steps(theta, start, size) for size in sizes])
    assert np.isnan(steps[sizes >= 0.5]).all()
    assert 0.25 <= sizes[np.nanargmin(steps)] <= 0.5


@pytest.mark.parametrize(("kernel", "rate"), [("softmax", 20_000), ("gaussian", 8)])
def test_a_cell_near_its_labels_takes_the_steps_that_its_tangent_kernel_predicts(
    kernel: str, rate: float
) -> None:
    near = {"trained": "query", "target": "near", "sigma_w": 0.02, "training_steps": 3000}
    parameters = settings(kernel=kernel, learning_rate=rate, **near)
    measured = train(study, cell_of(study, parameters))[0].measurements
    assert measured["steps_to_millionth"] == pytest.approx(measured["tangent_steps"], abs=1)


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
def test_scores_have_full_rank_exactly_at_the_sizes_that_the_derivation_gives(kernel: str) -> None:
    """(N, n, D, d) lie on both sides of each of the five needs."""
    sizes = [
        *((2, 3, 6, 3), (2, 3, 5, 4), (2, 3, 4, 5), (2, 3, 3, 6), (2, 3, 6, 2), (2, 3, 5, 3)),
        *((4, 4, 13, 5), (4, 4, 13, 6), (4, 4, 9, 8), (4, 4, 8, 8), (4, 4, 7, 10)),
        *((2, 4, 7, 5), (2, 4, 7, 6), (2, 4, 5, 8), (3, 2, 3, 4), (3, 2, 4, 3)),
    ]
    for n, tokens, d, width in sizes:
        parameters = settings(
            n=n, tokens=tokens, d=d, d_h=width, kernel=kernel, trained="value", heads=1
        )
        full = float(lemmas.smallest_of_scores(*at_start(parameters)[:2])) > 1e-9
        arrays = [np.array(size) for size in (n, tokens, d, width)]
        normalised = kernel == "softmax"
        lacks = any(one.any() for one in lacks_rank(normalised, *arrays).values())
        lacks |= bool(lacks_width(normalised, *arrays))
        assert full == (not lacks), (n, tokens, d, width)


def test_the_gaussians_size_of_symmetric_and_skew_tensors_is_a_square() -> None:
    n, tokens, features = (axis.ravel() for axis in np.mgrid[2:9, 2:9, 1:60])
    lacks = lacks_rank(False, n, tokens, features, np.full_like(n, 99))["Sym² and Λ²"]
    np.testing.assert_array_equal(lacks, features**2 < n * tokens * (tokens - 1))


@pytest.mark.parametrize(("width", "tokens"), [(8, 4), (3, 4), (2, 4), (1, 3)])
def test_queries_are_stationary_at_equal_values_alone_where_heads_are_wide(
    width: int, tokens: int
) -> None:
    """The gradient in a query is residual · Cov(k, a) a/√d, a map of rank n − 1 for d ≥ n − 1."""
    draws = np.random.default_rng(width)
    keys, query = draws.standard_normal((tokens, width)), draws.standard_normal(width)
    weights = np.exp(keys @ query / math.sqrt(width))
    weights /= weights.sum()
    covariance = keys.T @ (np.diag(weights) - np.outer(weights, weights))  # (d, n), of values a
    singular = np.linalg.svd(covariance, compute_uv=False)
    assert np.allclose(covariance @ np.ones(tokens), 0, atol=1e-14)
    assert (singular > 1e-9).sum() == min(width, tokens - 1)
