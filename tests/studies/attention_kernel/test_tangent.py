"""Tangent kernels, local minima and the ranks of score Jacobians, against slow definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from overfit_cli.studies.attention_kernel.parameters import KERNELS
from overfit_cli.studies.attention_kernel.regression import (
    engine,
    lemmas,
    minima,
    tangent,
)
from overfit_cli.studies.attention_kernel.regression.data import Problem, draw_problem
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters
from overfit_cli.studies.attention_kernel.regression.reference import MultiHeadAttention
from overfit_cli.studies.attention_kernel.regression.study import study
from overfit_cli.studies.attention_kernel.regression.theory import lacks_rank, lacks_width
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
    largest = np.linalg.eigvalsh(slow)[-1]
    assert result.measurements["tangent_largest"] == pytest.approx(largest, rel=1e-10)


@pytest.mark.parametrize("kernel", ["softmax", "gaussian-eq11", "gaussian-normalised"])
def test_its_trace_at_small_weights_is_the_mean_over_draws(kernel: str) -> None:
    """Of 60 draws of W_Q and W_K, at the same X and values."""
    problem, sigma = draw_problem(settings(heads=2), 1), 1e-4
    draws = np.random.default_rng(0)
    shape = problem.query.shape
    traces = [
        np.trace(
            tangent_by_autograd(
                Problem(
                    inputs=problem.inputs,
                    labels=problem.labels,
                    query=sigma * draws.standard_normal(shape),
                    key=sigma * draws.standard_normal(shape),
                    value=problem.value,
                    output=problem.output,
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
        fixed, state = engine.set_up(
            KERNELS[kernel],
            "value",
            [draw_problem(parameters, 0)],
            [0.1],
            dtype=torch.float64,
            device="cpu",
        )
        full = float(lemmas.smallest_of_scores(fixed, state)) > 1e-9
        arrays = [np.array(size) for size in (n, tokens, d, width)]
        normalised = kernel == "softmax"
        lacks = any(one.any() for one in lacks_rank(normalised, *arrays).values())
        lacks |= bool(lacks_width(normalised, *arrays))
        assert full == (not lacks), (n, tokens, d, width)


def query_at(
    keys: list[float], values: list[float], labels: list[float], query: float
) -> tuple[engine.Constants, engine.Projections, engine.ForwardPass]:
    """One sample of width 1 with these keys and values, whose tokens all have one query."""
    count = len(keys)
    problem = Problem(
        inputs=np.eye(count)[None],
        labels=np.array([labels]),
        query=np.full((1, count, 1), query),
        key=np.array(keys).reshape(1, count, 1),
        value=np.array(values).reshape(1, count, 1),
        output=np.ones((1, 1)),
    )
    fixed, state = engine.set_up(
        KERNELS["softmax"], "query", [problem], [0.1], dtype=torch.float64, device="cpu"
    )
    return fixed, state, engine.forward(fixed, state)


def test_a_query_at_an_extremum_short_of_its_label_is_at_a_local_minimum() -> None:
    """Outputs rise to 0.707 at a query of −0.765, fall, and rise to 1 as the query goes on."""
    keys, values = np.array([-2.0, -1.0, 1.0, 2.0]), np.array([0.0, 3.0, -3.0, 1.0])

    def covariance(query: float) -> tuple[float, float]:
        weights = np.exp(query * keys)
        weights /= weights.sum()
        mean = float(weights @ values)
        return float(weights @ (values * keys) - mean * (weights @ keys)), mean

    def share(query: float, label: float) -> float:
        made = query_at(list(keys), list(values), [label] * 4, query)
        return minima.share_at_minimum(*made, 0)

    left, right = -1.0, -0.5
    for _ in range(60):  # the root of the covariance is the output's extremum
        turn = (left + right) / 2
        left, right = (turn, right) if covariance(turn)[0] > 0 else (left, turn)
    most = covariance(turn)[1]
    assert (turn, most) == pytest.approx((-0.765, 0.707), abs=2e-3)
    assert share(turn, 0.9) == 1.0, "the output is stationary, and other queries reach 0.9"
    assert share(turn + 0.1, 0.9) == 0.0, "it is not stationary"
    assert share(turn, 1.1) == 0.0, "no query reaches that label"
    assert share(turn, most) == 0.0, "the label is reached"
    assert share(-60.0, 0.9) == 0.0, "it is saturated: the minimum is at infinity"


def test_what_training_counts_as_a_minimum_is_one_and_no_saddle() -> None:
    """A cell of kernel-minima, d = 1: where a query is counted, its loss curves upward."""
    parameters = KernelRegressionParameters(
        **{"trained": "query", "target": "inside", "n": 2, "tokens": 5, "d": 24, "d_h": 1},  # type: ignore[arg-type]
    )
    fixed, state = engine.set_up(
        KERNELS["softmax"],
        "query",
        [draw_problem(parameters, 4)],
        [10.0],
        dtype=torch.float64,
        device="cpu",
    )
    for step in range(6000):
        state = engine.next_state(fixed, engine.step_at(fixed, state, step))
    out = engine.forward(fixed, state)
    assert minima.share_at_minimum(fixed, state, out, 0) == 0.3, "three tokens of ten"
    keys, values, queries = (x[0, 0] for x in (state.key, state.value, state.query))
    counted = 0
    for sample in range(2):
        k, a = keys[sample, :, 0].numpy(), values[sample].numpy()
        for token in range(5):
            scores = np.exp(float(queries[sample, token, 0]) * k)
            attention = scores / scores.sum()
            mean, middle = attention @ a, attention @ k
            slope = attention @ ((a - mean) * (k - middle))
            bend = attention @ ((a - mean) * (k - middle) ** 2)
            residual = mean - float(fixed.labels[0, sample, token])
            if abs(slope) < 1e-6 and abs(residual) > 1e-2 and attention.max() < 0.999:
                assert slope**2 + residual * bend > 1e-4
                counted += 1
    assert counted == 3
