"""The matrices of the theorems written out: B, and the Jacobian of the attention scores."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from overfit_cli.studies.attention_kernel.reference import attention_by_definition
from overfit_cli.studies.attention_kernel.regression.data import Problem


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
