"""Matrix products at the machine's speed.

PyTorch's products go through MKL, which leaves the wider half of an AMD processor's vector units
idle. oneDNN, which PyTorch carries too, does not ask who made the processor: on one core of a
machine with AVX-512 from AMD its float32 products are twice as fast. PyTorch has no public name for
oneDNN's product of two matrices. The operator used here is the one that its compiler emits for a
linear layer; where a PyTorch lacks it, PyTorch's own product does the work.
"""

from __future__ import annotations

import torch
from torch import Tensor

_SMALLEST = 1_000_000
"""Multiplications below which the cost of calling oneDNN outweighs its speed."""


def added_product(initial: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return initial + left · right for a batch of matrices.

    Args:
        initial: (batch, rows, columns).
        left: (batch, rows, inner).
        right: (batch, inner, columns).
    """
    if _suits_onednn(left, right):
        # As a linear layer sees it: rows of `left` are inputs, columns of `right` are outputs.
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            left[0], right[0].mT, None, "none", [], ""
        )
        return product.add_(initial[0])[None]
    return torch.baddbmm(initial, left, right)


def _suits_onednn(left: Tensor, right: Tensor) -> bool:
    """Whether this is one large float32 product on a CPU, and oneDNN is there."""
    batch, rows, inner = left.shape
    return (
        batch == 1
        and rows * inner * right.shape[2] >= _SMALLEST
        and left.dtype == torch.float32
        and left.device.type == "cpu"
        and _has_onednn()
    )


def _has_onednn() -> bool:
    return hasattr(torch.ops.mkldnn, "_linear_pointwise")
