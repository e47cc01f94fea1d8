"""The gradients that the proofs print, tangent kernels and ranks, against slow definitions."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from overfit_cli.studies.attention_kernel import engine, spectra
from overfit_cli.studies.attention_kernel.data import Problem, draw_problem
from overfit_cli.studies.attention_kernel.parameters import KERNELS
from overfit_cli.studies.attention_kernel.reference import MultiHeadAttention
from overfit_cli.studies.attention_kernel.theory import lacking
from tests.studies.attention_kernel import regression_oracle as oracle
from tests.studies.attention_kernel.test_regression import at_start, measured, settings


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
def test_29_to_31_and_52_and_53_are_the_gradients_in_scores_and_in_w_q(kernel: str) -> None:
    parameters = settings(kernel=kernel, heads=2, target="mixed-sign")
    problem = draw_problem(parameters, 4)
    fixed, state, out = at_start(parameters, 4)
    in_scores = engine.gradient_in_scores(fixed, state, out)[0]
    in_query, root = np.zeros_like(problem.query), math.sqrt(problem.query.shape[-1])
    for (sample, x), head in itertools.product(enumerate(problem.inputs), range(2)):
        q, k = x @ problem.query[head], x @ problem.key[head]
        attention = oracle.attention_of(problem, kernel, sample)[head]
        values = x @ problem.value[head] @ problem.output[head]  # V' W_O of this head
        outer = np.outer(out.residual[0, sample], values)  # (MH − y) W_Oᵀ V'ᵀ
        printed = outer * attention  # (53), and the first line of (31)
        if kernel == "softmax":
            raw, ones = np.exp(q @ k.T / root), np.ones((len(x), len(x)))  # raw is exp C
            printed = printed - ((outer * attention / (raw @ ones)) @ ones.T) * raw  # (31)
            in_query[head] += x.T @ printed @ x @ problem.key[head] / root  # (29)
        else:
            for row in range(len(x)):  # (52): the chain rule, with (100) over √d
                in_query[head] -= np.outer(x[row], printed[row] @ (q[row] - k)) / root
        assert np.allclose(in_scores[head, sample], printed, rtol=1e-9, atol=1e-13)
    by_autograd = oracle.gradient(problem, kernel, "query")
    assert np.allclose(by_autograd, in_query, rtol=1e-9, atol=1e-13)


# Tangent kernels, stationary queries and ranks of score Jacobians, against slow definitions


def tangent_by_autograd(problem: Problem, kernel: str) -> np.ndarray:
    """∂MH/∂W_Q times its transpose, (samples · tokens)²."""
    model = MultiHeadAttention(problem, kernel, torch.float64)
    out = model(torch.tensor(problem.inputs)).flatten()
    rows = [torch.autograd.grad(one, model.query, retain_graph=True)[0].flatten() for one in out]
    jacobian = torch.stack(rows)
    return np.asarray(jacobian @ jacobian.T)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_tangent_kernel_is_that_of_autograd(kernel: str) -> None:
    parameters = settings(kernel=kernel, heads=2)
    slow = tangent_by_autograd(draw_problem(parameters, 0), kernel)
    assert measured(parameters)["tangent_trace"] == pytest.approx(np.trace(slow), rel=1e-10)


@pytest.mark.parametrize("kernel", ["softmax", "gaussian-eq11", "gaussian-normalised"])
def test_its_trace_at_small_weights_is_the_mean_over_draws(kernel: str) -> None:
    """Of 40 draws of W_Q and W_K, at the same X and values."""
    problem, sigma = draw_problem(settings(n=2, heads=2), 1), 1e-4
    random, shape = np.random.default_rng(0), problem.query.shape
    draws = [sigma * random.standard_normal((2, *shape)) for _ in range(40)]
    small = [replace(problem, query=query, key=key) for query, key in draws]
    traces = [np.trace(tangent_by_autograd(each, kernel)) for each in small]
    expected = spectra.trace_at_small_weights(KERNELS[kernel], problem, sigma)
    error = np.std(traces) / math.sqrt(len(traces))
    assert abs(np.mean(traces) - expected) < 4 * error
    assert error < 0.1 * expected


@pytest.mark.parametrize("learning_rate", [0.05, 0.4, 0.9, 1.1])
def test_predicted_steps_are_those_of_the_recursion(learning_rate: float) -> None:
    draws = np.random.default_rng(3)
    basis = np.linalg.qr(draws.standard_normal((5, 5)))[0]
    theta = basis @ np.diag([2.0, 1.0, 0.5, 0.3, 0.2]) @ basis.T
    start = draws.standard_normal(5)
    predicted = spectra.predicted_steps(theta, start, learning_rate)
    residual, steps = start, 0
    while 1e-6 * start @ start < residual @ residual < 1e6:
        residual, steps = residual - learning_rate * theta @ residual, steps + 1
    assert math.isnan(predicted) if learning_rate > 1 else predicted == steps
    assert math.isnan(spectra.predicted_steps(theta, np.zeros(5), learning_rate))


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
def test_scores_have_full_rank_exactly_at_the_sizes_that_the_derivation_gives(kernel: str) -> None:
    """(N, n, D, d) lie on both sides of each of the five needs."""
    sizes = [
        *((2, 3, 6, 3), (2, 3, 5, 4), (2, 3, 4, 5), (2, 3, 3, 6), (2, 3, 6, 2), (2, 3, 5, 3)),
        *((4, 4, 13, 5), (4, 4, 13, 6), (4, 4, 9, 8), (4, 4, 8, 8), (4, 4, 7, 10)),
        *((2, 4, 7, 5), (2, 4, 7, 6), (2, 4, 5, 8), (3, 2, 3, 4), (3, 2, 4, 3), (2, 3, 9, 2)),
    ]
    for size in sizes:
        given = dict(zip(("n", "tokens", "d", "d_h"), size, strict=True))
        parameters = settings(**given, kernel=kernel, trained="value", heads=1)
        full = float(spectra.smallest_of_scores(*at_start(parameters)[:2])) > 1e-9
        lacks = lacking(kernel == "softmax", *map(np.array, size)).values()
        assert full == (not any(lacks)), size
