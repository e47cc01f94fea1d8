"""The slow, obviously right way: autograd on the plain model, one cell at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from overfit_cli.studies.attention_kernel.kernels import KERNELS
from overfit_cli.studies.attention_kernel.regression.data import Problem, draw_problem
from overfit_cli.studies.attention_kernel.regression.model import MultiHeadAttention, squared_loss
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters

TRAINED = {"query": ("query",), "value": ("value",), "all": ("query", "key", "value")}


def plain_descent(
    parameters: KernelRegressionParameters, seed: int
) -> Iterator[tuple[float, dict[str, Tensor]]]:
    """Give the loss and the gradients in W_Q, W_K and W_V at each step, from step 0 on."""
    problem = draw_problem(parameters, seed)
    dtype = getattr(torch, parameters.dtype)
    model = MultiHeadAttention(problem, KERNELS[parameters.kernel], dtype)
    x, y = torch.tensor(problem.inputs, dtype=dtype), torch.tensor(problem.labels, dtype=dtype)
    weights = {name: getattr(model, name) for name in ("query", "key", "value")}
    for _ in range(parameters.training_steps + 1):
        loss = squared_loss(model(x), y)
        gradients = dict(
            zip(weights, torch.autograd.grad(loss, tuple(weights.values())), strict=True)
        )
        yield loss.item(), gradients
        with torch.no_grad():
            for name in TRAINED[parameters.trained]:
                weights[name] -= parameters.learning_rate * gradients[name]


def attention_by_definition(kernel: str, query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """S of one head and sample, entry by entry, from queries and keys (tokens, width)."""
    tokens, width = key.shape
    raw = np.zeros((len(query), tokens))
    for k, j in itertools.product(range(len(query)), range(tokens)):
        distance = np.sum((query[k] - key[j]) ** 2)
        raw[k, j] = {
            "gaussian-eq11": math.exp(-distance / math.sqrt(width)),
            "softmax": math.exp(query[k] @ key[j] / math.sqrt(width)),
            "softmax-times-n": math.exp(query[k] @ key[j] / math.sqrt(width)),
        }.get(kernel, math.exp(-distance / (2 * math.sqrt(width))))
    if kernel in ("softmax", "gaussian-normalised", "softmax-times-n"):
        raw /= raw.sum(axis=1, keepdims=True)
    scaled: np.ndarray = raw * {"softmax-times-n": tokens, "gaussian-over-n": 1 / tokens}.get(
        kernel, 1
    )
    return scaled


def mixed_tokens(problem: Problem, kernel: str) -> np.ndarray:
    """B = [S_ih X_i] over samples and heads, (samples · tokens, heads · features)."""
    rows = []
    for x in problem.inputs:
        heads = [
            attention_by_definition(kernel, x @ query, x @ key) @ x
            for query, key in zip(problem.query, problem.key, strict=True)
        ]
        rows.append(np.concatenate(heads, axis=1))
    return np.concatenate(rows)


def score_jacobian(problem: Problem, kernel: str, head: int) -> np.ndarray:
    """∂C_h/∂W_Q,h by autograd, (samples · tokens², features · width)."""
    x, key = torch.tensor(problem.inputs), torch.tensor(problem.key[head])

    def scores(query: Tensor) -> Tensor:
        q, k = x @ query, x @ key
        root = math.sqrt(query.shape[-1])
        if kernel in ("softmax", "softmax-times-n"):
            return (q @ k.mT / root).flatten()
        share = 1.0 if kernel == "gaussian-eq11" else 0.5
        differences = q[..., :, None, :] - k[..., None, :, :]
        return (-share * differences.square().sum(-1) / root).flatten()

    query = torch.tensor(problem.query[head])
    jacobian = torch.func.jacrev(scores)(query)
    return np.asarray(jacobian.flatten(1))
