"""Products of matrices agree with PyTorch's in float64, whichever library computes them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from overfit_cli import matrix_products
from overfit_cli.matrix_products import added_product

SHAPES = [
    pytest.param((1, 3, 5, 2), id="small: one call of PyTorch's"),
    pytest.param((4, 60, 60, 300), id="several at once"),
    pytest.param((1, 320, 320, 512), id="a training step of the paper's largest cell"),
    pytest.param((1, 1600, 32, 64), id="test tokens"),
    pytest.param((1, 1, 2000, 600), id="one row"),
    pytest.param((1, 2000, 600, 1), id="one column"),
]


def problem(shape: tuple[int, int, int, int], dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    batch, rows, inner, columns = shape
    generator = torch.Generator().manual_seed(7)

    def drawn(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64).to(dtype)

    return drawn(batch, rows, columns), drawn(batch, rows, inner), drawn(batch, inner, columns)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_product_is_the_exact_one_to_rounding(
    shape: tuple[int, int, int, int], dtype: torch.dtype
) -> None:
    initial, left, right = problem(shape, dtype)
    exact = initial.double() + torch.einsum("bri,bic->brc", left.double(), right.double())
    found = added_product(initial, left, right)
    assert found.dtype == dtype
    tolerance = 30 * torch.finfo(dtype).eps * shape[2] ** 0.5
    assert (found.double() - exact).abs().max() < tolerance


def test_operands_that_are_views_stay_as_they_are() -> None:
    initial, left, right = problem((1, 256, 400, 256), torch.float32)
    left, right = left[:, :, :200], right[:, 200:]  # Rows and columns of larger matrices.
    before = [part.clone() for part in (initial, left, right)]
    found = added_product(initial, left, right)
    assert torch.allclose(found, initial + left @ right, atol=1e-3)
    assert all(map(torch.equal, (initial, left, right), before))


def test_a_pytorch_without_onednn_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    initial, left, right = problem((1, 320, 320, 512), torch.float32)
    found = added_product(initial, left, right)
    monkeypatch.setattr(matrix_products, "_has_onednn", lambda: False)
    assert torch.allclose(added_product(initial, left, right), found, atol=1e-3)
