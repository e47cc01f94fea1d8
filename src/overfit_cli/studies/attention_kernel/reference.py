"""Plain, slow models of Song et al. 2024: attention by its definition, gradients by autograd.

    MH(X) = Σ_h S_h(X W_Q,h, X W_K,h) X W_V,h W_O,h,    loss = ½ ‖MH(X) − y‖²    (equation 5)

and, with linear layers on top, G(X) = MH(X) W¹ ⋯ W^L in its place (equation 10). The transformer of
section 5 is computed one sample and head at a time. The fast ones share no code with these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn

from overfit_cli.studies.attention_kernel.data import Problem, draw_problem
from overfit_cli.studies.attention_kernel.layers import Layers, draw_layers
from overfit_cli.studies.attention_kernel.parameters import LAYERS, KernelRegressionParameters

TRAINED = {"query": ("query",), "value": ("value",), "all": ("query", "key", "value")}


def plain_attention(kernel: str, query: Tensor, key: Tensor) -> Tensor:
    """Return S, (..., tokens, tokens), from queries and keys (..., tokens, width).

    Equations 3, 11, 20 and 21.
    """
    tokens, root = key.shape[-2], math.sqrt(key.shape[-1])
    distance = (query[..., :, None, :] - key[..., None, :, :]).square().sum(-1)  # ‖q_k − k_j‖²
    if kernel in ("softmax", "softmax-times-n"):
        raw = torch.exp(query @ key.mT / root)
    else:
        raw = torch.exp(-distance / (root if kernel == "gaussian-eq11" else 2 * root))
    if kernel in ("softmax", "gaussian-normalised", "softmax-times-n"):
        raw = raw / raw.sum(-1, keepdim=True)
    return raw * {"softmax-times-n": tokens, "gaussian-over-n": 1 / tokens}.get(kernel, 1)


class MultiHeadAttention(nn.Module):
    """One layer of multi-head attention with one output a token; W_O is fixed."""

    output: Tensor

    def __init__(self, problem: Problem, kernel: str, dtype: torch.dtype) -> None:
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

    def __init__(self, problem: Problem, layers: Layers, kernel: str, dtype: torch.dtype) -> None:
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
    dtype, kernel = getattr(torch, parameters.dtype), parameters.kernel
    names = TRAINED.get(parameters.trained, TRAINED["all"])
    model = MultiHeadAttention(problem, kernel, dtype)
    x, y = torch.tensor(problem.inputs, dtype=dtype), torch.tensor(problem.labels, dtype=dtype)
    weights = {}
    if parameters.trained in LAYERS:
        model = AttentionWithLayers(problem, draw_layers(parameters, problem, seed), kernel, dtype)
        weights = {f"layer {level}": layer for level, layer in enumerate(model.layers, 1)}
        names = (*names, *weights)
    weights |= {name: getattr(model, name) for name in TRAINED["all"]}
    for _ in range(parameters.training_steps + 1):
        loss = (model(x) - y).square().sum() / 2
        slopes = torch.autograd.grad(loss, tuple(weights.values()))
        gradients = dict(zip(weights, slopes, strict=True))
        yield loss.item(), gradients
        with torch.no_grad():
            for name in names:
                weights[name] -= parameters.step_size * gradients[name]


# The transformer

Weights = Mapping[str, Tensor]
"""By their names in the state of a `Transformer`."""


def logits(
    weights: Weights, kernel: str, heads: int, tokens: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Return logits, (samples, classes), of tokens (samples, tokens); padding is left out.

    The mask is true where a token isn't padding, in the tokens' shape.
    """
    masks = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
    layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("layers."))
    rows = []
    for sample, present in zip(tokens, masks, strict=True):
        x = (weights["embedding"][sample] + weights["position"])[present]  # (tokens, d)
        for level in range(layers):
            name, padded = f"layers.{level}.", len(sample) / len(x)
            x = x + _attended(weights, name, kernel, heads, x, padded)
            wide = _linear(weights, f"{name}widen", _normed(weights, f"{name}perceptron_norm", x))
            bent = wide * (1 + torch.erf(wide / math.sqrt(2))) / 2  # GELU
            x = x + _linear(weights, f"{name}narrow", bent)
        units = _linear(weights, "head", _normed(weights, "norm", x).mean(0)).clamp(min=0)
        rows.append(_linear(weights, "classes", units))
    return torch.stack(rows)


def _attended(
    weights: Weights, name: str, kernel: str, heads: int, x: Tensor, padded: float
) -> Tensor:
    """Return what attention adds, (tokens, d); `padded` is the padded length over the tokens'."""
    normed = _normed(weights, f"{name}attention_norm", x)
    query, key, value = (
        _linear(weights, f"{name}{projection}", normed) for projection in ("query", "key", "value")
    )
    # The n in these two kernels' names is the padded length.
    scale = {"softmax-times-n": padded, "gaussian-over-n": 1 / padded}.get(kernel, 1.0)
    parts = zip(*(each.chunk(heads, dim=1) for each in (query, key, value)), strict=True)
    mixed = [scale * plain_attention(kernel, q, k) @ v for q, k, v in parts]
    return _linear(weights, f"{name}output", torch.cat(mixed, 1))


def _normed(weights: Weights, name: str, x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _linear(weights: Weights, name: str, x: Tensor) -> Tensor:
    return x @ weights[f"{name}.weight"].mT + weights[f"{name}.bias"]
