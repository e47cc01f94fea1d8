"""Products of matrices agree with PyTorch's in float64, whichever library computes them."""

from __future__ import annotations

import platform
from pathlib import Path
from unittest import mock

import pytest
import torch
from torch import Tensor, nn

from overfit_cli.core import matrix_products, training
from overfit_cli.core.matrix_products import Linear, add_product
from overfit_cli.core.training import processor_name, product_library

SHAPES = {
    "small: one call of PyTorch's": (1, 3, 5, 2),
    "several at once": (4, 60, 60, 300),
    "a training step of the paper's largest cell": (1, 320, 320, 512),
    "one row": (1, 1, 2000, 600),
    "one column": (1, 2000, 600, 1),
}


def problem(shape: tuple[int, int, int, int], dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    batch, rows, inner, columns = shape
    generator = torch.Generator().manual_seed(7)

    def drawn(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64).to(dtype)

    return drawn(batch, rows, columns), drawn(batch, rows, inner), drawn(batch, inner, columns)


@pytest.fixture(params=["PyTorch", "oneDNN"])
def _library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library that this processor is said to multiply with."""
    monkeypatch.setattr(matrix_products, "product_library", lambda: request.param)


@pytest.mark.usefixtures("_library")
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_product_is_the_exact_one_to_rounding(
    shape: tuple[int, int, int, int], dtype: torch.dtype
) -> None:
    initial, left, right = problem(shape, dtype)
    exact = initial.double() + torch.einsum("bri,bic->brc", left.double(), right.double())
    found = add_product(initial, left, right)
    assert found.dtype == dtype
    inner = shape[2]
    # A sum term by term errs in proportion to its terms.
    tolerance = torch.finfo(dtype).eps * (30 * inner**0.5 + inner)
    assert (found.double() - exact).abs().max() < tolerance
    kept = torch.full_like(found, torch.nan)
    assert add_product(initial, left, right, out=kept) is kept
    assert torch.equal(kept, found), "the memory that is written to changes no bit"


def test_operands_that_are_views_stay_as_they_are() -> None:
    initial, left, right = problem((1, 256, 400, 256), torch.float32)
    left, right = left[:, :, :200], right[:, 200:]  # Rows and columns of larger matrices.
    before = [part.clone() for part in (initial, left, right)]
    found = add_product(initial, left, right)
    assert torch.allclose(found, initial + left @ right, atol=1e-3)
    assert all(map(torch.equal, (initial, left, right), before))


def renamed(x: Tensor, weight: Tensor, *, activation: str) -> Tensor:
    return x @ weight.mT


@pytest.mark.parametrize("operator", [None, renamed, lambda x, *given: x, torch.ops.aten.cholesky])
def test_a_pytorch_with_another_operator_multiplies_without_it(
    operator: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    initial, left, right = problem((1, 320, 320, 512), torch.float32)
    monkeypatch.setattr(matrix_products, "product_library", lambda: "oneDNN")
    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", operator)
    fresh = matrix_products._operator_multiplies.__wrapped__
    monkeypatch.setattr(matrix_products, "_operator_multiplies", fresh)
    assert torch.equal(add_product(initial, left, right), torch.baddbmm(initial, left, right))


@pytest.mark.usefixtures("_library")
@pytest.mark.parametrize(("inputs", "outputs"), [(64, 64), (48, 96), (96, 48)])
@pytest.mark.parametrize("samples", [(), (3,), (2000,), (8, 250)])
def test_a_linear_layer_has_pytorchs_outputs_and_gradients(
    inputs: int, outputs: int, samples: tuple[int, ...]
) -> None:
    torch.manual_seed(3)
    plain, rows = Linear(inputs, outputs, bias=False), torch.randn(2000, inputs)
    assert torch.allclose(plain(rows), rows @ plain.weight.mT, atol=1e-4)
    layer, exact = Linear(inputs, outputs), nn.Linear(inputs, outputs).double()
    exact.load_state_dict(layer.state_dict())
    x = torch.randn(*samples, inputs).requires_grad_()
    x_exact = x.detach().double().requires_grad_()
    found, expected, slopes = layer(x), exact(x_exact), torch.randn(*samples, outputs)
    found.backward(slopes)
    expected.backward(slopes.double())
    pairs = [(found.detach(), expected.detach()), (x.grad, x_exact.grad)]
    pairs += [(getattr(layer, one).grad, getattr(exact, one).grad) for one in ("weight", "bias")]
    for mine, theirs in pairs:
        assert mine is not None and theirs is not None
        assert mine.is_contiguous()
        assert (mine.double() - theirs).abs().max() < 1e-5 * (1 + theirs.abs().max())


def test_a_second_derivative_is_refused_and_not_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_products, "product_library", lambda: "oneDNN")
    layer, x = Linear(64, 64), torch.randn(2000, 64).requires_grad_()
    [by_x] = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        torch.autograd.backward(by_x.sum())


@pytest.mark.skipif(not matrix_products._has_onednn(), reason="this PyTorch has no oneDNN")
def test_large_float32_products_on_a_cpu_are_onednns() -> None:
    library = mock.patch.object(matrix_products, "product_library", return_value="oneDNN")
    product = mock.patch.object(matrix_products, "_onednn", wraps=matrix_products._onednn)
    with library as chosen, product as used:
        add_product(*problem((1, 320, 320, 512), torch.float32))
        Linear(64, 64)(torch.randn(2000, 64)).sum().backward()
        assert used.call_count == 4  # One product; a layer's output, and two gradients.
        add_product(*problem((1, 320, 320, 512), torch.float64))
        add_product(*problem((1, 8, 8, 8), torch.float32))
        chosen.return_value = "PyTorch"
        add_product(*problem((1, 320, 320, 512), torch.float32))
    assert used.call_count == 4


PROCESSORS = {
    ("GenuineIntel", "6", "avx512f"): "PyTorch",
    ("AuthenticAMD", "26", "avx512f"): "oneDNN",
    ("AuthenticAMD", "26", ""): "PyTorch",
    ("AuthenticAMD", "25", "avx512f"): "PyTorch",
    ("AuthenticAMD", "", "avx512f"): "PyTorch",
}


@pytest.mark.parametrize(("processor", "library"), PROCESSORS.items())
def test_the_processor_decides_the_library(
    processor: tuple[str, str, str], library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker, family, flags = processor
    file = tmp_path / "cpuinfo"
    lines = (f"vendor_id\t: {maker}", f"cpu family\t: {family}", "model name\t: Fast 9")
    file.write_text("\n".join([*lines, f"flags\t\t: fpu {flags} avx2", ""]))
    monkeypatch.setattr(training, "_CPU_INFO", file)
    monkeypatch.setattr(training, "_processor", training._processor.__wrapped__)
    library_now = product_library.__wrapped__
    assert (processor_name(), library_now()) == (f"{maker} Fast 9", library)
    file.unlink()
    monkeypatch.setattr(platform, "processor", lambda: maker)
    assert (processor_name(), library_now()) == (maker, "PyTorch")
