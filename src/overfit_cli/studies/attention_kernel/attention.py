"""Attention under each of the kernels (Song et al. 2024, equations 3, 11, 20 and 21)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn.functional import scaled_dot_product_attention

from overfit_cli.core.matrix_products import product
from overfit_cli.studies.attention_kernel.kernels import Kernel

_LONG = 128
"""The least number of tokens at which heads are computed one by one on a CPU."""

_HIDDEN = -1e30
"""The exponent of padding: its exponential is zero, and so is its product with a zero gradient."""


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


def attend(
    kernel: Kernel, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Return S V, (..., heads, tokens, width): what each token receives from all others.

    The numbers are those of `attention` times values, but for rounding. Kernels of inner products
    use PyTorch's fused attention. Those of distances take one product for their exponents, and no
    pass over all pairs of tokens to add squared lengths or to hide padding: both are further
    features of queries and keys,

        −c ‖q − k‖² / √d = [2c q / √d, −c ‖q‖² / √d, 1] · [k, 1, −c ‖k‖² / √d].

    Args:
        kernel: which.
        query, key, value: shape (..., heads, tokens, width).
        mask: true where a key is a token and not padding, (samples, 1, 1, tokens), with samples the
            axis before the heads; each sample has a token.
    """
    scale = kernel.scale(key.shape[-2])
    value = value if scale == 1 else value * scale
    if kernel.distance is None:
        return _product_attention(query, key, value.expand_as(key), mask)
    factor = kernel.distance / math.sqrt(query.shape[-1])
    if kernel.normalised:
        features, key_features = _distance_features(factor, query, key, mask)
        return torch.softmax(features @ key_features.mT, -1) @ value
    features, key_features = _distance_features(factor * math.log2(math.e), query, key, mask)
    if query.device.type != "cpu" or query.shape[-2] < _LONG or not query.numel():
        return torch.exp2(features @ key_features.mT) @ value
    heads = (tensor.flatten(0, -3) for tensor in (features, key_features, value.expand_as(key)))
    received: Tensor = _PowerAttention.apply(*heads)  # type: ignore[no-untyped-call]
    return received.view_as(query)


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
    key_lengths = -factor * key.square().sum(-1, keepdim=True)  # (..., tokens, 1)
    if mask is not None:
        key_lengths = key_lengths.masked_fill(~mask.mT, _HIDDEN)
    query_lengths = -factor * query.square().sum(-1, keepdim=True)
    query_features = torch.cat(
        [2 * factor * query, query_lengths, torch.ones_like(query_lengths)], -1
    )
    return query_features, torch.cat([key, torch.ones_like(key_lengths), key_lengths], -1)


class _PowerAttention(Function):
    """2^(q·k) v on a CPU, head by head: the powers of one head stay in the cache, in one place.

    PyTorch's exp2 is four times as fast there as its exp, and twenty times on very small powers.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Map (heads of all samples, tokens, width) to the same."""
        heads = zip(query, key, value, strict=True)
        powers, received = [], []
        for q, k, v in heads:
            powers.append(product(q, k.mT).exp2_())  # (tokens, tokens)
            received.append(product(powers[-1], v))  # (tokens, width)
        ctx.save_for_backward(query, key, value, *powers)
        return torch.stack(received)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_received: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients by queries, keys and values, from that by what is received."""
        query, key, value, *powers = ctx.saved_tensors
        by_head = []
        for q, k, v, power, by in zip(query, key, value, powers, by_received, strict=True):
            by_exponent = product(by * math.log(2), v.mT).mul_(power)  # (tokens, tokens)
            by_head.append(
                (product(by_exponent, k), product(by_exponent.mT, q), product(power.mT, by))
            )
        by_query, by_key, by_value = (
            torch.stack(gradient) for gradient in zip(*by_head, strict=True)
        )
        return by_query, by_key, by_value
