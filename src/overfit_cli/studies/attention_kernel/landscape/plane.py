"""Loss on a plane through a network, along one direction in W_Q and one in W_K of layer one.

Only the first layer's queries and keys change over the plane, and they change linearly:
q = q₀ + a q₁, k = k₀ + b k₁. So what comes before them is computed once, and many points go through
the rest of the network together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.core.training import named_rng
from overfit_cli.studies.attention_kernel.classifier.model import Layer, Transformer, key_mask

AT_A_TIME = {"cpu": 2**12, "cuda": 2**21}
"""Tokens, over points and samples, that go through the network together. On a CPU what they take
fits its cache: measured, half as many are slower, and so are twice as many."""


@dataclass(frozen=True)
class Directions:
    """Directions that span the plane: in the first layer's W_Q and in its W_K, each (d, d)."""

    query: Tensor
    key: Tensor


def draw_directions(model: Transformer, kind: str, seed: int, pair: int) -> Directions:
    """Draw a pair of directions of a seed.

    Args:
        model: the network at the centre.
        kind: `filter`, where each output's row has the length of the weights' row (Li et al.
            2018, section 4), or `raw`, standard normal.
        seed: of the network.
        pair: which pair.
    """
    layer = cast("Layer", model.layers[0])

    def draw(name: str, weight: Tensor) -> Tensor:
        numbers = named_rng(seed, "directions", str(pair), name).standard_normal(weight.shape)
        direction = torch.from_numpy(numbers).to(weight)
        if kind == "raw":
            return direction
        lengths = weight.norm(dim=1, keepdim=True) / direction.norm(dim=1, keepdim=True)
        scaled: Tensor = direction * lengths
        return scaled

    with torch.inference_mode():
        return Directions(draw("query", layer.query.weight), draw("key", layer.key.weight))


class Plane:
    """The loss of a fixed batch as a function of two numbers.

    Args:
        model: the network at the centre, which isn't changed.
        directions: the plane's.
        tokens, labels: the batch, shapes (samples, tokens) and (samples,).
        mask: true where a token is, (samples, tokens); None where nothing is padding.
    """

    def __init__(
        self,
        model: Transformer,
        directions: Directions,
        tokens: Tensor,
        labels: Tensor,
        mask: Tensor | None,
    ) -> None:
        self._model, self._labels, self._mask = model.eval(), labels, mask
        layer = cast("Layer", model.layers[0])
        with torch.inference_mode():
            self._input = model.embed(tokens)  # (samples, tokens, d)
            normed = layer.attention_norm(self._input)
            # Each has shape (samples, heads, tokens, width).
            self._query = layer.in_heads(layer.query(normed))
            self._key = layer.in_heads(layer.key(normed))
            self._value = layer.in_heads(layer.value(normed))
            self._query_step = layer.in_heads(normed @ directions.query.mT)
            self._key_step = layer.in_heads(normed @ directions.key.mT)

    def losses(self, at: Tensor) -> Tensor:
        """Return the loss at points (points, 2), shape (points,)."""
        samples, length = self._input.shape[:2]
        together = max(1, AT_A_TIME[at.device.type] // (samples * length))
        rows = max(1, AT_A_TIME[at.device.type] // length)  # samples, where a point is split
        with torch.inference_mode():
            parts = [self._mean_losses(part, rows) for part in torch.split(at, together)]
        return torch.cat(parts)

    def _mean_losses(self, at: Tensor, rows: int) -> Tensor:
        """The loss at a few points, (points,), with that many samples at a time."""
        total = at.new_zeros(len(at))
        for first in range(0, len(self._labels), rows):
            total += self._summed(at, slice(first, first + rows))
        return total / len(self._labels)

    def _summed(self, at: Tensor, rows: slice) -> Tensor:
        """The loss summed over some of the samples, (points,)."""
        a, b = at[:, 0, None, None, None, None], at[:, 1, None, None, None, None]
        mask = None if self._mask is None else self._mask[rows]
        keys = key_mask(mask)
        first, *rest = (cast("Layer", layer) for layer in self._model.layers)
        x = first.finish(
            self._input[rows].expand(len(at), -1, -1, -1),
            self._query[rows] + a * self._query_step[rows],
            self._key[rows] + b * self._key_step[rows],
            self._value[rows],
            keys,
        )  # (points, samples, tokens, d)
        for layer in rest:
            x = layer(x, keys)
        logits = self._model.classes(self._model.read_out(x, mask))  # (points, samples, classes)
        labels = self._labels[rows].expand(len(at), -1)
        losses = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        return losses.view(len(at), -1).sum(1)
