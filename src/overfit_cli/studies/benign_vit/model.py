"""What is computed: equation (1) of Jiang et al. 2024, written to be read.

    f(X) = 1/M · Σ_l softmax(x_l W_Q W_Kᵀ Xᵀ) X W_V w_O,    loss = mean log(1 + exp(−y f(X)))

The plain model here is the engine's oracle; the engine trains the same function in token space.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from overfit_cli.studies.benign_vit.data import Weights


def attention(query: Tensor, key: Tensor) -> Tensor:
    """Return softmax(q kᵀ) over the last axis, (..., tokens, tokens), from (..., tokens, width)."""
    return torch.softmax(query @ key.mT, dim=-1)


def output(attention_weights: Tensor, values: Tensor) -> Tensor:
    """Return f(X), (...,), from attention (..., tokens, tokens) and x W_V w_O (..., tokens)."""
    return (attention_weights @ values[..., None]).squeeze(-1).mean(-1)


def logistic_loss(margins: Tensor) -> Tensor:
    """Return the mean of log(1 + exp(−margin)) over the last axis; a margin is y f(X)."""
    return nn.functional.softplus(-margins).mean(-1)


class VisionTransformer(nn.Module):
    """The two-layer Vision Transformer of equation (1); w_O is fixed.

    Args:
        weights: the initial weights.
        dtype: the precision of the computation.
    """

    output_weight: Tensor

    def __init__(self, weights: Weights, dtype: torch.dtype) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.tensor(weights.query, dtype=dtype))
        self.key = nn.Parameter(torch.tensor(weights.key, dtype=dtype))
        self.value = nn.Parameter(torch.tensor(weights.value, dtype=dtype))
        self.register_buffer("output_weight", torch.tensor(weights.output, dtype=dtype))

    def attention(self, x: Tensor) -> Tensor:
        """Return each token's attention to each, (samples, tokens, tokens)."""
        return attention(x @ self.query, x @ self.key)

    def forward(self, x: Tensor) -> Tensor:
        """Return f(X), shape (samples,), of x of shape (samples, tokens, features)."""
        return output(self.attention(x), x @ self.value @ self.output_weight)
