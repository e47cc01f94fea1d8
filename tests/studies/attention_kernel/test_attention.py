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


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_what_its_definition_says(kernel: str) -> None:
    [query, key] = np.random.default_rng(1).standard_normal((2, 5, 3))
    fast = attention(KERNELS[kernel], torch.tensor(query), torch.tensor(key))
    assert np.allclose(fast, attention_by_definition(kernel, query, key), rtol=1e-13)


def test_a_masked_key_gets_no_attention() -> None:
    query, key = torch.tensor(np.random.default_rng(2).standard_normal((2, 4, 3)))
    mask = torch.tensor([True, False, True, True])
    for kernel in KERNELS.values():
        masked = attention(kernel, query, key, mask)
        assert (masked[:, 1] == 0).all()
        without = attention(kernel, query, key[mask])
        scale = kernel.scale(4) / kernel.scale(3)
        assert torch.allclose(masked[:, mask], without * scale, rtol=1e-13)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("tokens", "padded", "dtype"),
    [
        (SHORT, False, torch.float64),
        (SHORT, True, torch.float32),
        (LONG, False, torch.float32),
        (LONG, True, torch.float64),
    ],
)
def test_what_is_received_and_its_gradients_are_those_of_weights_times_values(
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
def test_distances_too_long_for_any_attention_give_zero_and_no_samples_receive_nothing(
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
    assert attend(KERNELS[kernel], query[:0], key[:0], value[:0]).shape == query[:0].shape
