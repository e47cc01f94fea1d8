"""Attention under each of the kernels (Song et al. 2024, equations 3, 11, 20 and 21).

Scores are C_kj = q_k·k_j / √d for inner products and C_kj = −c ‖q_k − k_j‖² / √d for distances,
with the kernel's c. Attention is S = exp(C), divided by the sum of its row where the kernel is
normalised, times the kernel's power of the number of tokens.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import scaled_dot_product_attention

from overfit_cli.core.matrix_products import product
from overfit_cli.studies.attention_kernel.parameters import Kernel

_LONG = 128
"""The least number of tokens at which heads are computed one by one on a CPU."""

_HIDDEN = -1e30
"""The exponent of padding: its exponential is zero, and so is its product with a zero gradient."""


def attention_scores(kernel: Kernel, query: Tensor, key: Tensor) -> Tensor:
    """Return C, (..., tokens, tokens), from queries and keys (..., tokens, width)."""
    root = math.sqrt(query.shape[-1])
    products = query @ key.mT  # q_k·k_j, (..., tokens, tokens)
    if kernel.distance is None:
        return products / root
    lengths = (
        query.square().sum(-1)[..., :, None] + key.square().sum(-1)[..., None, :]
    )  # ‖q_k‖² + ‖k_j‖², (..., tokens, tokens)
    return (kernel.distance / root) * (2 * products - lengths)


def attention(kernel: Kernel, query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return S, (..., tokens, tokens), the weight of each key for each query, (..., tokens, width).

    The mask, (..., 1, tokens), is true where a key is a token and not padding.
    """
    C = attention_scores(kernel, query, key)  # (..., tokens, tokens)
    if mask is not None:
        C = C.masked_fill(~mask, -math.inf)
    S = torch.softmax(C, -1) if kernel.normalised else torch.exp(C)  # (..., tokens, tokens)
    scale = kernel.scale(key.shape[-2])
    return S if scale == 1 else S * scale


def attend(
    kernel: Kernel, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Return S V, (..., heads, tokens, width), without S where that is faster.

    The numbers are those of `attention` times values, but for rounding. Kernels of inner products
    use PyTorch's fused attention. Those of distances take one product for their exponents, and no
    pass over all pairs of tokens to add squared lengths or to hide padding: both are further
    features of queries and keys,

        −c ‖q − k‖² / √d = [2c q / √d, −c ‖q‖² / √d, 1] · [k, 1, −c ‖k‖² / √d].

    The mask, (samples, 1, 1, tokens), is true where a key is a token and not padding; samples are
    the axis before the heads, and each has a token.
    """
    scale = kernel.scale(key.shape[-2])
    value = value if scale == 1 else value * scale
    if kernel.distance is None:
        return _product_attention(query, key, value.expand_as(key), mask)
    factor = kernel.distance / math.sqrt(query.shape[-1])  # c / √d
    if kernel.normalised:
        q, k = _distance_features(factor, query, key, mask)
        return torch.softmax(q @ k.mT, -1) @ value
    q, k = _distance_features(factor * math.log2(math.e), query, key, mask)  # e^C = 2^(q·k)
    if query.device.type != "cpu" or query.shape[-2] < _LONG or not query.numel():
        return torch.exp2(q @ k.mT) @ value
    heads = (tensor.flatten(0, -3) for tensor in (q, k, value.expand_as(key)))
    outputs: Tensor = _PowerAttention.apply(*heads)  # type: ignore[no-untyped-call]
    return outputs.view_as(query)


def _product_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Return softmax(q kᵀ / √d) v; PyTorch fuses it for (samples, heads, tokens, width) alone."""
    if mask is not None:
        mask = mask.expand(*query.shape[:-3], 1, 1, -1).flatten(0, -4)
    q, k, v = (tensor.flatten(0, -4) for tensor in (query, key, value))
    return scaled_dot_product_attention(q, k, v, attn_mask=mask).view_as(query)


def _distance_features(
    factor: float, query: Tensor, key: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return features, (..., tokens, width + 2), whose product is −factor ‖q − k‖²."""
    k_last = -factor * key.square().sum(-1, keepdim=True)  # −c ‖k‖² / √d, (..., tokens, 1)
    if mask is not None:
        k_last = k_last.masked_fill(~mask.mT, _HIDDEN)
    q_last = -factor * query.square().sum(-1, keepdim=True)  # −c ‖q‖² / √d, (..., tokens, 1)
    return (
        torch.cat([2 * factor * query, q_last, torch.ones_like(q_last)], -1),
        torch.cat([key, torch.ones_like(k_last), k_last], -1),
    )


class _PowerAttention(Function):
    """2^(q·k) v on a CPU, head by head: the powers of one head stay in the cache."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Return 2^(q·k) v; all have shape (heads of all samples, tokens, width)."""
        powers, outputs = [], []
        for q, k, v in zip(query, key, value, strict=True):
            powers.append(product(q, k.mT).exp2_())  # (tokens, tokens)
            outputs.append(product(powers[-1], v))  # (tokens, width)
        ctx.save_for_backward(query, key, value, *powers)
        return torch.stack(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value, *powers = ctx.saved_tensors
        by_head = []
        for q, k, v, power, grad in zip(query, key, value, powers, grad_outputs, strict=True):
            in_C = product(grad * math.log(2), v.mT).mul_(power)  # (tokens, tokens)
            by_head.append((product(in_C, k), product(in_C.mT, q), product(power.mT, grad)))
        # (heads of all samples, tokens, width)
        in_query, in_key, in_value = (torch.stack(parts) for parts in zip(*by_head, strict=True))
        return in_query, in_key, in_value
