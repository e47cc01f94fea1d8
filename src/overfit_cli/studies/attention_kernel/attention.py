"""Attention under each of the kernels (Song et al. 2024, equations 3, 11, 20 and 21)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from overfit_cli.studies.attention_kernel.kernels import Kernel


def attention_scores(kernel: Kernel, query: Tensor, key: Tensor) -> Tensor:
    """Return C, (..., tokens, tokens), from queries and keys (..., tokens, width)."""
    root = math.sqrt(query.shape[-1])
    products = query @ key.mT  # (..., tokens, tokens)
    if kernel.distance is None:
        return products / root
    lengths = query.square().sum(-1)[..., :, None] + key.square().sum(-1)[..., None, :]
    return (kernel.distance / root) * (2 * products - lengths)


def attention(kernel: Kernel, query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return S, (..., tokens, tokens): the weight of each key for each query.

    Args:
        kernel: which.
        query, key: shape (..., tokens, width).
        mask: true where a key is a token and not padding, broadcast to (..., 1, tokens).
    """
    scores = attention_scores(kernel, query, key)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, -1) if kernel.normalised else torch.exp(scores)
    scale = kernel.scale(key.shape[-2])
    return weights if scale == 1 else weights * scale
