"""Plain, slow kernel attention and transformer in NumPy, in float64.

Attention is computed entry by entry as its definition says, and the transformer one sample, head
and token at a time. The fast ones share no code with these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import numpy as np
import torch


def attention_by_definition(kernel: str, query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Return S, (tokens, tokens), of one head and sample from queries and keys (tokens, width).

    Equations 3, 11, 20 and 21 of Song et al. 2024, entry by entry.
    """
    tokens, width = key.shape
    raw = np.zeros((len(query), tokens))
    for k, j in itertools.product(range(len(query)), range(tokens)):
        distance = np.sum((query[k] - key[j]) ** 2)
        raw[k, j] = {
            "gaussian-eq11": math.exp(-distance / math.sqrt(width)),
            "softmax": math.exp(query[k] @ key[j] / math.sqrt(width)),
            "softmax-times-n": math.exp(query[k] @ key[j] / math.sqrt(width)),
        }.get(kernel, math.exp(-distance / (2 * math.sqrt(width))))
    if kernel in ("softmax", "gaussian-normalised", "softmax-times-n"):
        raw /= raw.sum(axis=1, keepdims=True)
    scaled: np.ndarray = raw * {"softmax-times-n": tokens, "gaussian-over-n": 1 / tokens}.get(
        kernel, 1
    )
    return scaled


Weights = Mapping[str, np.ndarray]
_EPSILON = 1e-5  # which LayerNorm adds to the variance


def weights_of(model: torch.nn.Module) -> dict[str, np.ndarray]:
    """Return the weights by name, as arrays."""
    return {name: value.detach().numpy() for name, value in model.state_dict().items()}


def logits(
    weights: Weights, kernel: str, heads: int, tokens: np.ndarray, mask: np.ndarray | None = None
) -> np.ndarray:
    """Return logits, (samples, classes), of tokens (samples, tokens).

    The weights are named as in the state of a `Transformer`. The mask is true where a token isn't
    padding, in the tokens' shape.
    """
    masks = np.ones(tokens.shape, dtype=bool) if mask is None else mask
    rows = []
    for sample, present in zip(tokens, masks, strict=True):
        units = head_units(weights, kernel, heads, sample, present)
        rows.append(_linear(weights, "classes", units))
    return np.array(rows)


def head_units(
    weights: Weights, kernel: str, heads: int, sample: np.ndarray, mask: np.ndarray
) -> np.ndarray:
    """Return the head's ReLU units, (hidden,), of one sample's tokens; padding is left out."""
    positions = np.flatnonzero(mask)
    stream = [
        weights["embedding"][sample[position]] + weights["position"][position]
        for position in positions
    ]
    layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("layers."))
    for layer in range(layers):
        name = f"layers.{layer}."
        stream = _attended(weights, name, kernel, heads, stream, len(sample))
        stream = [x + _perceptron(weights, name, x) for x in stream]
    mean = np.mean([_normalised(weights, "norm", x) for x in stream], axis=0)
    return np.array([max(unit, 0.0) for unit in _linear(weights, "head", mean)])


def _attended(
    weights: Weights, name: str, kernel: str, heads: int, stream: list[np.ndarray], padded: int
) -> list[np.ndarray]:
    normed = [_normalised(weights, f"{name}attention_norm", x) for x in stream]
    query, key, value = (
        np.array([_linear(weights, f"{name}{projection}", x) for x in normed])
        for projection in ("query", "key", "value")
    )
    # The n in these two kernels' names is the padded length.
    share = padded / len(stream)
    scale = {"softmax-times-n": share, "gaussian-over-n": 1 / share}.get(kernel, 1.0)
    width = query.shape[1] // heads
    mixed = np.zeros_like(query)
    for head in range(heads):
        columns = slice(head * width, (head + 1) * width)
        attention = scale * attention_by_definition(kernel, query[:, columns], key[:, columns])
        for position in range(len(stream)):
            for source in range(len(stream)):
                mixed[position, columns] += attention[position, source] * value[source, columns]
    return [
        x + _linear(weights, f"{name}output", row) for x, row in zip(stream, mixed, strict=True)
    ]


def _perceptron(weights: Weights, name: str, x: np.ndarray) -> np.ndarray:
    wide = _linear(weights, f"{name}widen", _normalised(weights, f"{name}perceptron_norm", x))
    bent = np.array([unit * (1 + math.erf(unit / math.sqrt(2))) / 2 for unit in wide])
    return _linear(weights, f"{name}narrow", bent)


def _normalised(weights: Weights, name: str, x: np.ndarray) -> np.ndarray:
    centred = x - x.sum() / len(x)
    scaled: np.ndarray = centred / math.sqrt((centred**2).sum() / len(x) + _EPSILON)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _linear(weights: Weights, name: str, x: np.ndarray) -> np.ndarray:
    product: np.ndarray = weights[f"{name}.weight"] @ x
    return product + weights[f"{name}.bias"]
