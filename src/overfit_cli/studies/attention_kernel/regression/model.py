"""What is computed: equation (5) of Song et al. 2024, written to be read.

    MH(X) = Σ_h S_h(X W_Q,h, X W_K,h) X W_V,h W_O,h,    loss = ½ ‖MH(X) − y‖²

The plain model here is the engine's oracle; the engine trains the same function by hand-derived
gradients, many cells at a time.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from overfit_cli.studies.attention_kernel.attention import attention
from overfit_cli.studies.attention_kernel.kernels import Kernel
from overfit_cli.studies.attention_kernel.regression.data import Problem


class MultiHeadAttention(nn.Module):
    """One layer of multi-head attention with one output a token; W_O is fixed.

    Args:
        problem: the initial weights.
        kernel: how queries and keys become attention.
        dtype: the precision of the computation.
    """

    output: Tensor

    def __init__(self, problem: Problem, kernel: Kernel, dtype: torch.dtype) -> None:
        super().__init__()
        self.kernel = kernel
        self.query = nn.Parameter(torch.tensor(problem.query, dtype=dtype))
        self.key = nn.Parameter(torch.tensor(problem.key, dtype=dtype))
        self.value = nn.Parameter(torch.tensor(problem.value, dtype=dtype))
        self.register_buffer("output", torch.tensor(problem.output, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Return MH(X), (samples, tokens), of x of shape (samples, tokens, features)."""
        tokens = x[:, None]  # a head axis
        weights = attention(self.kernel, tokens @ self.query, tokens @ self.key)
        heads = weights @ (tokens @ self.value)  # (samples, heads, tokens, width)
        return torch.einsum("nhtw,hw->nt", heads, self.output)


def squared_loss(outputs: Tensor, labels: Tensor) -> Tensor:
    """Return ½ Σ (output − label)² over the last two axes, (...,) from (..., samples, tokens)."""
    return (outputs - labels).square().sum((-2, -1)) / 2
