"""The matrices of the theorems written out, and what lemmas bound, by autograd."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import functional
from torch.nn.utils import parameters_to_vector

from overfit_cli.studies.attention_kernel.data import Problem, draw_problem
from overfit_cli.studies.attention_kernel.parameters import KernelRegressionParameters
from overfit_cli.studies.attention_kernel.reference import (
    TRAINED,
    MultiHeadAttention,
    plain_attention,
)


def attention_of(problem: Problem, kernel: str, sample: int) -> np.ndarray:
    """S of one sample, (heads, tokens, tokens)."""
    x = problem.inputs[sample]
    q, k = torch.tensor(x @ problem.query), torch.tensor(x @ problem.key)
    return np.asarray(plain_attention(kernel, q, k))


def mixed_tokens(problem: Problem, kernel: str) -> np.ndarray:
    """B = [S_ih X_i] over samples and heads, (samples · tokens, heads · features)."""
    samples = enumerate(problem.inputs)
    return np.concatenate([np.hstack(attention_of(problem, kernel, i) @ x) for i, x in samples])


def lengths(problem: Problem) -> np.ndarray:
    """‖W_O,h‖² of each head."""
    return np.asarray(np.square(problem.output).sum(-1))


def curvature(problem: Problem, kernel: str, of_heads: Iterable[float]) -> np.ndarray:
    """Σ_h c_h B_h B_hᵀ, which is that of the loss in W_V where c_h is ‖W_O,h‖²."""
    heads = np.split(mixed_tokens(problem, kernel), len(problem.output), axis=1)
    return np.asarray(sum(c * b @ b.T for c, b in zip(of_heads, heads, strict=True)))


def smallest(problem: Problem, kernel: str) -> float:
    """λ_B."""
    return float(np.linalg.svd(mixed_tokens(problem, kernel), compute_uv=False)[-1])


def scores_of(kernel: str, x: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """C of one head, (..., tokens, tokens)."""
    q, k, root = x @ query, x @ key, math.sqrt(query.shape[-1])
    if kernel in ("softmax", "softmax-times-n"):
        return q @ k.mT / root
    share = 1.0 if kernel == "gaussian-eq11" else 0.5
    return -share * (q[..., :, None, :] - k[..., None, :, :]).square().sum(-1) / root


def score_jacobian(problem: Problem, kernel: str, head: int) -> np.ndarray:
    """∂C_h/∂W_Q,h by autograd, (samples · tokens², features · width)."""
    scores = functools.partial(scores_of, kernel, torch.tensor(problem.inputs))
    query, key = _query_and_key(problem, head)
    in_query = jacobian(functools.partial(scores, key=key), query)
    return np.asarray(in_query.flatten(-2).flatten(0, -2))


def _query_and_key(problem: Problem, head: int) -> tuple[Tensor, Tensor]:
    return torch.tensor(problem.query[head]), torch.tensor(problem.key[head])


def plain_path(
    parameters: KernelRegressionParameters, seed: int
) -> Iterator[tuple[float, Tensor, Tensor]]:
    """The loss, the outputs, and the gradient in what is trained, each a vector, at each step."""
    problem = draw_problem(parameters, seed)
    model = MultiHeadAttention(problem, parameters.kernel, torch.float64)
    x, y = torch.tensor(problem.inputs), torch.tensor(problem.labels)
    moved = [getattr(model, name) for name in TRAINED[parameters.trained]]
    for _ in range(parameters.training_steps + 1):
        outputs = model(x)
        loss = (outputs - y).square().sum() / 2
        gradients = torch.autograd.grad(loss, moved)
        yield loss.item(), outputs.detach().flatten(), parameters_to_vector(gradients)
        with torch.no_grad():
            for one, gradient in zip(moved, gradients, strict=True):
                one.sub_(parameters.step_size * gradient)


def norms_of_attention(problem: Problem, sample: int, head: int) -> list[float]:
    """‖∂S_ih/∂W_Q,h‖ and ‖∂S_ih/∂W_K,h‖ of softmax as operators, by autograd."""
    x = torch.tensor(problem.inputs[sample])

    def attention(query: Tensor, key: Tensor) -> Tensor:
        return torch.softmax(scores_of("softmax", x, query, key), -1)

    return [_operator_norm(each) for each in jacobian(attention, _query_and_key(problem, head))]


def norms_of_gaussian_scores(problem: Problem, sample: int, head: int) -> list[float]:
    """‖∂C_ih/∂W_Q,h‖ and ‖∂²C_ih/∂W_Q,h²‖ as operators on a change of W_Q,h, by autograd."""
    x, (query, key) = torch.tensor(problem.inputs[sample]), _query_and_key(problem, head)
    scores = functools.partial(scores_of, "gaussian", x, key=key)
    first = functools.partial(jacobian, scores, create_graph=True)
    return [
        _operator_norm(each)
        for each in (first(query).detach(), jacobian(first, query, vectorize=True))
    ]


jacobian: Callable[..., Any] = functional.jacobian
"""`torch.func`'s takes seconds to be imported."""


def _operator_norm(of: Tensor) -> float:
    """The largest singular value of a Jacobian whose last two axes are the weights'."""
    return float(torch.linalg.matrix_norm(of.flatten(-2).flatten(0, -2), 2))


def gradient(problem: Problem, kernel: str, which: str, samples: slice = slice(None)) -> np.ndarray:
    """∂f(M; X)/∂W by autograd, (heads, features, width)."""
    model = MultiHeadAttention(problem, kernel, torch.float64)
    x, y = (torch.tensor(one[samples]) for one in (problem.inputs, problem.labels))
    loss = (model(x) - y).square().sum() / 2
    return np.asarray(torch.autograd.grad(loss, getattr(model, which))[0])
