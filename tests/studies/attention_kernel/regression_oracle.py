"""The matrices of the theorems written out, and what lemmas bound, by autograd."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import Tensor

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
    rows = []
    for sample, x in enumerate(problem.inputs):
        rows.append(np.concatenate([*attention_of(problem, kernel, sample) @ x], axis=1))
    return np.concatenate(rows)


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


def plain_path(
    parameters: KernelRegressionParameters, seed: int
) -> Iterator[tuple[float, Tensor, Tensor, Tensor]]:
    """The loss, the outputs, what is trained and its gradient, each a vector, at each step."""
    problem = draw_problem(parameters, seed)
    model = MultiHeadAttention(problem, parameters.kernel, torch.float64)
    x, y = torch.tensor(problem.inputs), torch.tensor(problem.labels)
    moved = [getattr(model, name) for name in TRAINED[parameters.trained]]
    for _ in range(parameters.training_steps + 1):
        outputs = model(x)
        loss = (outputs - y).square().sum() / 2
        gradients = torch.autograd.grad(loss, moved)
        flat = torch.cat([one.detach().flatten() for one in moved])
        yield (
            loss.item(),
            outputs.detach().flatten(),
            flat,
            torch.cat([one.flatten() for one in gradients]),
        )
        with torch.no_grad():
            for one, gradient in zip(moved, gradients, strict=True):
                one.sub_(parameters.step_size * gradient)


def norm_of_attention(problem: Problem, sample: int, head: int, which: str) -> float:
    """‖∂S_ih/∂W_h‖ of softmax as an operator, by autograd, for W_Q (`query`) or W_K (`key`)."""
    x = torch.tensor(problem.inputs[sample])
    weights = {name: torch.tensor(getattr(problem, name)[head]) for name in ("query", "key")}

    def attention(own: Tensor) -> Tensor:
        used = weights | {which: own}
        scores = (x @ used["query"]) @ (x @ used["key"]).mT / math.sqrt(own.shape[-1])
        return torch.softmax(scores, -1).flatten()

    return _operator_norm(torch.func.jacrev(attention)(weights[which]))


def norms_of_gaussian_scores(problem: Problem, sample: int, head: int) -> tuple[float, float]:
    """‖∂C_ih/∂W_Q,h‖ and ‖∂²C_ih/∂W_Q,h²‖ as operators on a change of W_Q,h, by autograd."""
    x, key = torch.tensor(problem.inputs[sample]), torch.tensor(problem.key[head])

    def scores(query: Tensor) -> Tensor:
        apart = (x @ query)[:, None] - (x @ key)[None]
        return (-apart.square().sum(-1) / (2 * math.sqrt(query.shape[-1]))).flatten()

    query = torch.tensor(problem.query[head])
    first = torch.func.jacrev(scores)
    second = torch.func.jacrev(first)(query)  # (scores, features, width, features, width)
    return _operator_norm(first(query)), _operator_norm(second.flatten(0, 2))


def _operator_norm(jacobian: Tensor) -> float:
    """The largest singular value of a Jacobian whose last two axes are the weights'."""
    return float(torch.linalg.matrix_norm(jacobian.flatten(-2).flatten(0, -2), 2))


def gradient_of_sample(problem: Problem, kernel: str, sample: int, which: str) -> np.ndarray:
    """∂f(M; X_i)/∂W by autograd, (heads, features, width)."""
    model = MultiHeadAttention(problem, kernel, torch.float64)
    x, y = (torch.tensor(one[sample : sample + 1]) for one in (problem.inputs, problem.labels))
    loss = (model(x) - y).square().sum() / 2
    return np.asarray(torch.autograd.grad(loss, getattr(model, which))[0])


def residual_of_sample(problem: Problem, kernel: str, sample: int) -> float:
    """‖MH(M; X_i) − y_i‖."""
    values = problem.inputs[sample] @ problem.value  # (heads, tokens, width)
    mixed = attention_of(problem, kernel, sample) @ values
    outputs = np.einsum("htw,hw->t", mixed, problem.output)
    return float(np.linalg.norm(outputs - problem.labels[sample]))
