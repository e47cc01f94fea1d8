"""Matrix products at the machine's speed.

PyTorch multiplies matrices with MKL. On AMD processors MKL does not use AVX-512. oneDNN, which
PyTorch contains too, does: on one core of an AMD EPYC its float32 products are twice as fast. On an
Intel processor it is the other way round: MKL is as fast for large matrices, and up to twice as
fast for small ones and for those that are transposed. So the processor's maker decides, and the
same machine always takes the same product.
PyTorch has no public function for oneDNN's product of two matrices. The operator used here is the
one that PyTorch's compiler emits for a linear layer. Where a PyTorch lacks it, its own product is
used.
"""

from __future__ import annotations

import functools
import platform
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn import functional

_SMALLEST = 1_000_000
"""Multiplications below which the cost of calling oneDNN outweighs its speed."""


def add_product(initial: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return initial + left · right for a batch of matrices, without gradients.

    Args:
        initial: (batch, rows, columns).
        left: (batch, rows, inner).
        right: (batch, inner, columns).
    """
    batch, rows, inner = left.shape
    if batch == 1 and _suits_onednn(left, rows * inner * right.shape[2]):
        return _onednn(left[0], right[0]).add_(initial[0])[None]
    return torch.baddbmm(initial, left, right)


def product(left: Tensor, right: Tensor) -> Tensor:
    """Return left · right of matrices (rows, inner) and (inner, columns), without gradients."""
    if not _suits_onednn(left, left.numel() * right.shape[1]):
        return left @ right
    if left.mT.is_contiguous() and right.numel() < left.numel():
        return _onednn(right.mT, left.mT).mT  # oneDNN copies a left side that is transposed.
    return _onednn(left, right)


class Linear(nn.Linear):
    """PyTorch's linear layer x Wᵀ + b, computed with these products."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., inputs) to (..., outputs)."""
        unsuited = self.bias is None or x.ndim < 2
        if unsuited or not _suits_onednn(x, x.numel() * self.out_features):
            return functional.linear(x, self.weight, self.bias)
        rows = x.flatten(0, -2)
        mapped: Tensor = _Linear.apply(rows, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return mapped.view(*x.shape[:-1], self.out_features)


class _Linear(Function):
    """The layer's products, forwards and backwards."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return product(x, weight.mT).add_(bias)  # (rows, outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_output: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        d_x = product(d_output, weight)  # (rows, inputs)
        d_weight = product(d_output.mT, x).contiguous()  # (outputs, inputs)
        return d_x, d_weight, d_output.sum(0)


def _suits_onednn(operand: Tensor, multiplications: int) -> bool:
    """Whether a product is large, in float32 and on a CPU, and oneDNN is there and faster."""
    return (
        multiplications >= _SMALLEST
        and operand.dtype == torch.float32
        and operand.device.type == "cpu"
        and _has_onednn()
        and not is_intel()
    )


def _has_onednn() -> bool:
    return bool(torch.backends.mkldnn.enabled) and hasattr(torch.ops.mkldnn, "_linear_pointwise")


_CPU_INFO = Path("/proc/cpuinfo")


@functools.cache
def is_intel() -> bool:
    """Return whether Intel made the processor, on which MKL is the faster library."""
    described = _CPU_INFO.read_text("utf-8") if _CPU_INFO.exists() else platform.processor()
    return "GenuineIntel" in described


def _onednn(left: Tensor, right: Tensor) -> Tensor:
    """Return left · right, both matrices, as a linear layer of inputs `left`, weights `right`ᵀ."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(left, right.mT, None, "none", [], "")
    return result
