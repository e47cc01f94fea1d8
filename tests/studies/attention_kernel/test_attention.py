"""The classifier's fast attention is that of the definitions, with its gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from overfit_cli.studies.attention_kernel.attention import attend, attention
from overfit_cli.studies.attention_kernel.parameters import KERNELS
from overfit_cli.studies.attention_kernel.reference import attention_by_definition

SHORT, LONG = 7, 150
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5}


def problem(tokens: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Queries, keys and values, (samples, heads, tokens, width), and a gradient by the output."""
    draws = np.random.default_rng(tokens)
    parts = draws.standard_normal((4, 3, 2, tokens, 6))
    query, key, value, by_output = torch.from_numpy(parts).to(dtype)
    return query, key, value, by_output


def padding(tokens: int) -> Tensor:
    """Samples of all tokens, of all but one, and of one, (samples, 1, 1, tokens)."""
    lengths = torch.tensor([tokens, tokens - 1, 1])
    return (torch.arange(tokens) < lengths[:, None])[:, None, None]


@pytest.mark.parametrize("tokens", [SHORT, LONG])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.one_in(3)
def test_what_is_received_is_the_definitions_weights_times_values(kernel: str, tokens: int) -> None:
    query, key, value, _ = problem(tokens, torch.float64)
    found = attend(KERNELS[kernel], query, key, value)
    for sample, head in ((0, 0), (2, 1)):
        weights = attention_by_definition(
            kernel, query[sample, head].numpy(), key[sample, head].numpy()
        )
        expected = weights @ value[sample, head].numpy()
        assert np.allclose(found[sample, head], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("tokens", [SHORT, LONG])
@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_are_those_of_weights_times_values(
    kernel: str, tokens: int, padded: bool, dtype: torch.dtype
) -> None:
    mask = padding(tokens) if padded else None
    *inputs, by_output = problem(tokens, dtype)
    fast = [part.clone().requires_grad_() for part in inputs]
    slow = [part.double().requires_grad_() for part in inputs]
    found = attend(KERNELS[kernel], fast[0], fast[1], fast[2], mask)
    expected = attention(KERNELS[kernel], slow[0], slow[1], mask) @ slow[2]
    torch.autograd.backward(found, by_output)
    torch.autograd.backward(expected, by_output.double())
    pairs = [(found, expected), *((a.grad, b.grad) for a, b in zip(fast, slow, strict=True))]
    for mine, exact in pairs:
        assert mine is not None and exact is not None
        worst = (mine.double() - exact).detach().abs().max()
        assert worst <= TOLERANCE[dtype] * exact.detach().abs().max()


@pytest.mark.parametrize("tokens", [SHORT, LONG])
@pytest.mark.parametrize("kernel", KERNELS)
def test_no_samples_receive_nothing(kernel: str, tokens: int) -> None:
    query, key, value, _ = (part[:0] for part in problem(tokens, torch.float32))
    assert attend(KERNELS[kernel], query, key, value).shape == query.shape


@pytest.mark.parametrize("tokens", [SHORT, LONG])
@pytest.mark.parametrize("kernel", KERNELS)
def test_distances_too_long_for_any_attention_give_zero_and_not_nan(
    kernel: str, tokens: int
) -> None:
    query, key, value, by_output = problem(tokens, torch.float32)
    query.mul_(1e4).requires_grad_()
    received = attend(KERNELS[kernel], query, key, value, padding(tokens))
    torch.autograd.backward(received, by_output)
    assert query.grad is not None
    assert received.isfinite().all() and query.grad.isfinite().all()
    if not KERNELS[kernel].normalised:
        assert (received == 0).all() and (query.grad == 0).all()
