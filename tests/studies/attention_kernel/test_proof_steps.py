"""Linear layers on top, and the printed gradients."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from overfit_cli.studies.attention_kernel.parameters import KERNELS
from overfit_cli.studies.attention_kernel.reference import attention_by_definition
from overfit_cli.studies.attention_kernel.regression import linear_layers, reference, theory
from overfit_cli.studies.attention_kernel.regression.data import Problem, draw_problem
from overfit_cli.studies.attention_kernel.regression.parameters import LAYERS
from overfit_cli.studies.attention_kernel.regression.study import study
from tests.studies.attention_kernel.regression_oracle import mixed_tokens
from tests.studies.attention_kernel.test_regression import settings
from tests.training import cell_of, train

# Linear layers on top


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
@pytest.mark.parametrize("trained", LAYERS)
def test_layers_take_the_steps_that_autograd_takes(kernel: str, trained: str) -> None:
    parameters = settings(kernel=kernel, trained=trained, heads=2, learning_rate=1e-4)
    [result] = train(study, cell_of(study, parameters, 3), trajectories=True)
    plain = list(reference.plain_descent(parameters, 3))
    assert plain[-1][0] < 0.999 * plain[0][0], "it must learn"
    for step, loss in zip(result.trajectory["step"], result.trajectory["train_loss"], strict=True):
        assert loss == pytest.approx(plain[int(step)][0], rel=1e-10)
    squared = sum(float(gradient.square().sum()) for gradient in plain[-1][1].values())
    assert result.measurements["gradient"] == pytest.approx(math.sqrt(squared), rel=1e-9)


@pytest.mark.parametrize("trained", LAYERS)
def test_outputs_begin_as_without_layers(trained: str) -> None:
    with_layers = settings(kernel="softmax", trained=trained, heads=3)
    problem = draw_problem(with_layers, 5)
    layers = linear_layers.draw_layers(with_layers, problem, 5)
    assert len(layers.weights) == LAYERS[trained]
    product = np.linalg.multi_dot([np.eye(with_layers.d_h), *layers.weights])[:, 0]
    assert np.allclose(layers.mixing @ product, problem.output, rtol=1e-12)
    assert np.linalg.matrix_rank(layers.mixing[0]) == with_layers.d_h
    alone = with_layers.model_copy(update={"trained": "all"})
    [first], [second] = (train(study, cell_of(study, each, 5)) for each in (with_layers, alone))
    assert first.measurements["start_loss"] == pytest.approx(second.measurements["start_loss"])
    assert first.measurements["lambda_b"] == pytest.approx(second.measurements["lambda_b"])


def test_layers_refuse_a_balance() -> None:
    with pytest.raises(ValueError, match="balance takes 1"):
        settings(trained="layers-2", balance=10.0)


@pytest.mark.slow
def test_a_diverged_cell_with_layers_is_a_failure_and_steps_to_a_trillionth_are_counted() -> None:
    fast = settings(kernel="softmax", trained="layers-4", learning_rate=1e3)
    [diverged] = train(study, cell_of(study, fast))
    assert diverged.reason == "diverged"
    parameters = settings(kernel="gaussian", trained="query", training_steps=2000)
    losses = [loss for loss, _ in reference.plain_descent(parameters, 0)]
    first = next(step for step, loss in enumerate(losses) if loss <= 1e-12 * losses[0])
    [result] = train(study, cell_of(study, parameters))
    assert result.measurements["steps_to_trillionth"] == first
    assert result.measurements["steps_to_millionth"] < first


# The gradients that Lemmas 1 and 6 print


def loss_of(
    problem: Problem, kernel: str, query: Tensor, value: Tensor, scores: list[Tensor] | None = None
) -> Tensor:
    """f with W_Q, with any HD × Hd matrix as W_V, and with the scores C_ih that it goes through."""
    heads, _, width = problem.query.shape
    loss = torch.zeros((), dtype=torch.float64)
    for x, y in zip(*map(torch.tensor, (problem.inputs, problem.labels)), strict=True):
        mixed = []
        for head in range(heads):
            q, k = x @ query[head], x @ torch.tensor(problem.key[head])
            if kernel == "softmax":
                c = q @ k.mT / math.sqrt(width)
            else:
                c = -torch.cdist(q, k).square() / (2 * math.sqrt(width))
            if scores is not None:
                c.retain_grad()
                scores.append(c)
            attention = torch.softmax(c, -1) if kernel == "softmax" else torch.exp(c)
            mixed.append(attention @ x)
        outputs = torch.cat(mixed, 1) @ value @ torch.tensor(problem.output).flatten()
        loss = loss + (outputs - y).square().sum() / 2
    return loss


def block_diagonal(problem: Problem) -> Tensor:
    heads, features, width = problem.value.shape
    matrix = torch.zeros(heads * features, heads * width, dtype=torch.float64)
    for head, block in enumerate(problem.value):
        rows, columns = features * head, width * head
        matrix[rows : rows + features, columns : columns + width] = torch.tensor(block)
    return matrix


def residuals(problem: Problem, kernel: str) -> np.ndarray:
    """MH − y, a row of B at a time."""
    outputs = mixed_tokens(problem, kernel) @ block_diagonal(problem).numpy()
    return np.asarray(outputs @ problem.output.flatten() - problem.labels.flatten())


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
def test_27_and_50_are_the_gradient_of_an_unrestricted_matrix(kernel: str, heads: int) -> None:
    problem = draw_problem(settings(kernel=kernel, heads=heads, target="mixed-sign"), 1)
    value = block_diagonal(problem).requires_grad_()
    loss_of(problem, kernel, torch.tensor(problem.query), value).backward()  # type: ignore[no-untyped-call]
    mixed, r = mixed_tokens(problem, kernel), residuals(problem, kernel)
    printed = mixed.T @ r[:, None] @ problem.output.flatten()[None]  # (27), (50)
    assert value.grad is not None
    assert np.allclose(value.grad, printed, rtol=1e-10)
    model = reference.MultiHeadAttention(problem, KERNELS[kernel], torch.float64)
    x, y = torch.tensor(problem.inputs), torch.tensor(problem.labels)
    ((model(x) - y).square().sum() / 2).backward()
    assert model.value.grad is not None
    blocks = model.value.grad.square().sum()  # of the diagonal blocks, which (5) trains
    assert (float(blocks) < 0.9 * np.square(printed).sum()) == (heads > 1)
    # (28), (51): (I ⊗ Bᵀ)(W_O ⊗ I)(MH − y), with vec column by column
    hd = problem.output.size
    vector = (
        np.kron(np.eye(hd), mixed.T) @ np.kron(problem.output.reshape(-1, 1), np.eye(len(r))) @ r
    )
    assert np.allclose(vector, printed.T.ravel(), rtol=1e-10)


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
def test_29_to_31_and_52_and_53_are_the_gradients_in_scores_and_in_w_q(kernel: str) -> None:
    problem = draw_problem(settings(kernel=kernel, heads=2, target="mixed-sign"), 4)
    query = torch.tensor(problem.query, requires_grad=True)
    scores: list[Tensor] = []
    loss_of(problem, kernel, query, block_diagonal(problem), scores).backward()  # type: ignore[no-untyped-call]
    samples, tokens, _ = problem.inputs.shape
    width = problem.query.shape[-1]
    r = residuals(problem, kernel).reshape(samples, tokens)
    in_query = np.zeros_like(problem.query)
    for sample, x in enumerate(problem.inputs):
        for head in range(2):
            q, k = x @ problem.query[head], x @ problem.key[head]
            attention = attention_by_definition(kernel, q, k)
            values = x @ problem.value[head] @ problem.output[head]  # V' W_O of this head
            outer = np.outer(r[sample], values)  # (MH − y) W_Oᵀ V'ᵀ
            printed = outer * attention  # (53), and the first line of (31)
            if kernel == "softmax":
                raw = np.exp(q @ k.T / math.sqrt(width))  # exp C
                ones = np.ones((tokens, tokens))
                printed = printed - ((outer * attention / (raw @ ones)) @ ones.T) * raw  # (31)
                in_query[head] += x.T @ printed @ x @ problem.key[head] / math.sqrt(width)  # (29)
            else:
                for row in range(tokens):  # (52): the chain rule, with (100) over √d
                    change = printed[row] @ (q[row] - k)
                    in_query[head] -= np.outer(x[row], change) / math.sqrt(width)
            by_autograd = scores[2 * sample + head].grad
            assert by_autograd is not None
            assert np.allclose(by_autograd, printed, rtol=1e-9, atol=1e-13)
    assert query.grad is not None
    assert np.allclose(query.grad, in_query, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("trade", [10.0, 1e6])
def test_a_large_w_o_and_a_small_w_v_leave_12_and_68_as_they_are(trade: float) -> None:
    # Remark 6 says that they meet (68), which has the same left side as (12).
    problem = draw_problem(settings(n=2, tokens=3, d=9), 0)
    traded = replace(problem, value=problem.value / trade, output=trade * problem.output)
    before, after = (
        theory.condition_12(each, residual=1e-3, delta=[0.2, 0.3]) for each in (problem, traded)
    )
    assert before > 0
    assert after == pytest.approx(before, abs=1e-9)


def test_one_sample_and_head_need_as_many_features_as_tokens() -> None:
    # With D < n, B = S X has a rank below n whatever the weights: some labels are out of reach.
    for seed in range(10):
        for features in (2, 3, 4, 5):
            problem = draw_problem(
                settings(n=1, tokens=4, d=features, heads=1, trained="value"), seed
            )
            scores = problem.inputs[0] @ problem.query[0] @ problem.key[0].T @ problem.inputs[0].T
            attention = np.exp(scores - scores.max(-1, keepdims=True))
            attention /= attention.sum(-1, keepdims=True)
            smallest = np.linalg.svd((attention @ problem.inputs[0]).T)[1]
            rank = int((smallest > 1e-12 * smallest[0]).sum())
            assert (rank == 4) == (features >= 4)
