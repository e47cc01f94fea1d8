"""Plain model and gradient descent by autograd, one cell at a time (Song et al. 2024, equation 5).

    MH(X) = Σ_h S_h(X W_Q,h, X W_K,h) X W_V,h W_O,h,    loss = ½ ‖MH(X) − y‖²

and, with linear layers on top, G(X) = MH(X) W¹ ⋯ W^L in its place (equation 10).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from overfit_cli.studies.attention_kernel.parameters import KERNELS, Kernel
from overfit_cli.studies.attention_kernel.regression.data import Problem, draw_problem
from overfit_cli.studies.attention_kernel.regression.linear_layers import Layers, draw_layers
from overfit_cli.studies.attention_kernel.regression.parameters import (
    LAYERS,
    KernelRegressionParameters,
)

TRAINED = {"query": ("query",), "value": ("value",), "all": ("query", "key", "value")}


def plain_attention(kernel: Kernel, query: Tensor, key: Tensor) -> Tensor:
    """Return S, (..., tokens, tokens), as the kernels are defined (equations 3, 11, 20 and 21)."""
    root = math.sqrt(query.shape[-1])
    if kernel.distance is None:
        raw = torch.exp(query @ key.mT / root)
    else:
        differences = query[..., :, None, :] - key[..., None, :, :]  # (..., k, j, width)
        raw = torch.exp(-kernel.distance * differences.square().sum(-1) / root)
    if kernel.normalised:
        raw = raw / raw.sum(-1, keepdim=True)
    return raw * kernel.scale(key.shape[-2])


class MultiHeadAttention(nn.Module):
    """One layer of multi-head attention with one output a token; W_O is fixed."""

    output: Tensor

    def __init__(self, problem: Problem, kernel: Kernel, dtype: torch.dtype) -> None:
        super().__init__()
        self.kernel = kernel
        self.query = nn.Parameter(torch.tensor(problem.query, dtype=dtype))
        self.key = nn.Parameter(torch.tensor(problem.key, dtype=dtype))
        self.value = nn.Parameter(torch.tensor(problem.value, dtype=dtype))
        self.register_buffer("output", torch.tensor(problem.output, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Return MH(X), (samples, tokens), of x of shape (samples, tokens, features)."""
        return torch.einsum("nhtw,hw->nt", self.heads(x), self.output)

    def heads(self, x: Tensor) -> Tensor:
        """Return S_h X W_V,h, (samples, heads, tokens, width)."""
        tokens = x[:, None]  # (samples, 1, tokens, features)
        S = plain_attention(self.kernel, tokens @ self.query, tokens @ self.key)
        return S @ (tokens @ self.value)


class AttentionWithLayers(MultiHeadAttention):
    """The same with W_O as a matrix, which is fixed, and linear layers on top of it."""

    mixing: Tensor

    def __init__(
        self, problem: Problem, layers: Layers, kernel: Kernel, dtype: torch.dtype
    ) -> None:
        super().__init__(problem, kernel, dtype)
        self.register_buffer("mixing", torch.tensor(layers.mixing, dtype=dtype))
        self.layers = nn.ParameterList(torch.tensor(each, dtype=dtype) for each in layers.weights)

    def forward(self, x: Tensor) -> Tensor:
        """Return G(X), (samples, tokens), of x of shape (samples, tokens, features)."""
        outputs = torch.einsum("nhtw,hwo->nto", self.heads(x), self.mixing)
        for layer in self.layers:
            outputs = outputs @ layer
        return outputs.squeeze(-1)


def plain_descent(
    parameters: KernelRegressionParameters, seed: int
) -> Iterator[tuple[float, dict[str, Tensor]]]:
    """Give the loss and the gradients in all weights at each step, from step 0 on."""
    problem = draw_problem(parameters, seed)
    dtype = getattr(torch, parameters.dtype)
    kernel, names = KERNELS[parameters.kernel], TRAINED.get(parameters.trained, TRAINED["all"])
    model = MultiHeadAttention(problem, kernel, dtype)
    x, y = torch.tensor(problem.inputs, dtype=dtype), torch.tensor(problem.labels, dtype=dtype)
    weights = {}
    if parameters.trained in LAYERS:
        model = AttentionWithLayers(problem, draw_layers(parameters, problem, seed), kernel, dtype)
        weights = {f"layer {level}": layer for level, layer in enumerate(model.layers, 1)}
        names = (*names, *weights)
    weights |= {name: getattr(model, name) for name in ("query", "key", "value")}
    for _ in range(parameters.training_steps + 1):
        loss = (model(x) - y).square().sum() / 2
        gradients = dict(
            zip(weights, torch.autograd.grad(loss, tuple(weights.values())), strict=True)
        )
        yield loss.item(), gradients
        with torch.no_grad():
            for name in names:
                weights[name] -= parameters.step_size * gradients[name]
