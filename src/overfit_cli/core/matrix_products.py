"""Matrix products at the machine's speed.

PyTorch multiplies matrices with MKL, which does not use AVX-512 on AMD processors. oneDNN, which
PyTorch contains too, does: on an AMD EPYC that computes all 512 bits of a vector at once (Zen 5)
its float32 products are twice as fast; on Zen 4 and on Intel they are not. So the processor decides
(`product_library`), and a run's manifest says which product it had. PyTorch has no public function
for oneDNN's product of two matrices: the operator used here is the one that PyTorch's compiler
emits for a linear layer. Where a PyTorch lacks it, or it takes other arguments or gives other
numbers there, PyTorch's own product is used.
"""

from __future__ import annotations

import functools
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn import functional

from overfit_cli.core.training import product_library

_SMALLEST = 1_000_000
"""Multiplications below which the cost of calling oneDNN outweighs its speed."""


def add_product(initial: Tensor, left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """Return initial + left · right for a batch of matrices, without gradients.

    Shapes are (batch, rows, columns), (batch, rows, inner) and (batch, inner, columns); `out` is
    written to and returned.
    """
    if library_of(left, right) == "oneDNN":
        return add_by_onednn(initial, left, right, out)
    return torch.baddbmm(initial, left, right, out=out)


def add_by_onednn(
    initial: Tensor, left: Tensor, right: Tensor, out: Tensor | None = None
) -> Tensor:
    """Return initial + left · right with oneDNN's product, matrix by matrix; see `add_product`."""
    if out is None:
        out = torch.empty_like(initial, memory_format=torch.contiguous_format)
    for index, first in enumerate(initial):
        torch.add(_onednn(left[index], right[index]), first, out=out[index])
    return out


def library_of(left: Tensor, right: Tensor) -> Literal["PyTorch", "oneDNN"]:
    """Return the library that multiplies a batch of matrices; it depends on their shapes alone."""
    multiplications = left.shape[1] * left.shape[2] * right.shape[2]
    return "oneDNN" if _suits_onednn(left, multiplications) else "PyTorch"


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
        if self.bias is None or x.ndim < 2 or not _suits_onednn(x, x.numel() * self.out_features):
            return functional.linear(x, self.weight, self.bias)
        rows = x.flatten(0, -2)
        mapped: Tensor = _Linear.apply(rows, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return mapped.view(*x.shape[:-1], self.out_features)


class _Linear(Function):
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
    return (
        multiplications >= _SMALLEST
        and operand.dtype == torch.float32
        and operand.device.type == "cpu"
        and _has_onednn()
        and product_library() == "oneDNN"
    )


def _has_onednn() -> bool:
    return bool(torch.backends.mkldnn.enabled) and _operator_multiplies()


@functools.cache
def _operator_multiplies() -> bool:
    """Whether this PyTorch's operator, which is private, gives a product."""
    matrix = torch.arange(6, dtype=torch.float32).view(2, 3)
    try:
        return torch.equal(_onednn(matrix, matrix.mT), matrix @ matrix.mT)
    except Exception:  # it is not there, or takes other arguments
        return False


def _onednn(left: Tensor, right: Tensor) -> Tensor:
    """Return left · right, both matrices, as a linear layer of inputs `left`, weights `right`ᵀ."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(left, right.mT, None, "none", [], "")
    return result
