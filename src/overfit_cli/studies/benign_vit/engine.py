"""How it is trained fast: gradient descent in token space (DESIGN 4.1).

With the training tokens as rows of X, G = X Xᵀ, q = X W_Q, k = X W_K and v = X W_V w_O, a gradient
step on the weights is exactly

    q ← q − η G ∂L/∂q,    k ← k − η G ∂L/∂k,    v ← v − η ‖w_O‖² G ∂L/∂v,

so no matrix of size d × d_h is touched. The engine keeps the coefficients C = −η Σ ∂L/∂q and sets
q = q₀ + G C; a test token's query is then its initial one plus its inner products with the
training tokens times C. These coefficients are those of the paper's proof (definition 5.2).

Tokens stand at unit scale, x = s x̃ with s one of ‖μ‖, σ̃_p, σ_p: the scale enters where tokens
meet, in the scores s_i s_j q̃_i·k̃_j and the values s_j ṽ_j, and nowhere else. So cells that differ
in their signal-to-noise ratio share G, q̃₀, k̃₀ and ṽ₀ as they are. Gaussian heads stand at unit
scale too: with W_Q and W_K of deviation σ_h the scores are σ_h² times those, and the step is the
same, because σ_h multiplies what is added to queries and the keys that are added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor

from overfit_cli.studies.benign_vit.model import logistic_loss

_SMALLEST = 1e-30
"""A change of scores that is none."""


class Pass(NamedTuple):
    """A forward pass of every cell over samples, of training or of testing.

    Attributes:
        scores: q kᵀ, (cells, samples, tokens, tokens).
        attention: their softmax, shaped like them.
        attended: attention times values, (cells, samples, tokens).
        margins: y f(X), (cells, samples).
        loss: (cells,).
    """

    scores: Tensor
    attention: Tensor
    attended: Tensor
    margins: Tensor
    loss: Tensor

    def select(self, cells: Tensor) -> Pass:
        """Return the pass of the cells where `cells`, shape (cells,), is true."""
        return self if bool(cells.all()) else Pass(*(part[cells] for part in self))


class Pull(NamedTuple):
    """Minus the loss's gradient times the step size, at unit scale.

    Attributes:
        on_scores: by each score q̃_i·k̃_j, (cells, samples, tokens, tokens).
        on_values: by each value ṽ_j, (cells, samples, tokens).
    """

    on_scores: Tensor
    on_values: Tensor


@dataclass
class TokenSpace:
    """The state of cells of one shape that are trained together; rows = samples · tokens.

    Attributes:
        which: the cells' places in the list they came from, (cells,).
        scales: s, the strength of each token position, (cells, tokens).
        labels: training labels, flips included, (cells, samples).
        learning_rate, epsilon, max_steps, leap: (cells,).
        steps: how many have been taken, (cells,).
        stride: how many are taken next, as one, (cells,).
        head_scale: what q̃ and k̃ are to be multiplied by: σ_h, or 1, (cells,).
        value_scale: what ṽ₀ was multiplied by: σ_V ‖w_O‖, or 1, (cells,).
        value_gain: ‖w_O‖², (cells,).
        gram: G̃, (cells, rows, rows).
        initial_query, initial_key, query, key: q̃₀, k̃₀, q̃ and k̃, (cells, rows, width).
        initial_value, value: ṽ₀ and ṽ, (cells, rows).
        query_coefficients, key_coefficients, value_coefficients: s C for each of the three, shaped
            like them; what gradient descent has added, as combinations of unit-scale tokens.
    """

    which: Tensor
    scales: Tensor
    labels: Tensor
    learning_rate: Tensor
    epsilon: Tensor
    max_steps: Tensor
    leap: Tensor
    steps: Tensor
    stride: Tensor
    head_scale: Tensor
    value_scale: Tensor
    value_gain: Tensor
    gram: Tensor
    initial_query: Tensor
    initial_key: Tensor
    initial_value: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    query_coefficients: Tensor
    key_coefficients: Tensor
    value_coefficients: Tensor

    def select(self, cells: Tensor) -> TokenSpace:
        """Return the state of the cells where `cells`, shape (cells,), is true."""
        if bool(cells.all()):
            return self
        return TokenSpace(*(getattr(self, part.name)[cells] for part in fields(self)))

    def forward(self) -> Pass:
        """Return the forward pass over the training samples at the current state."""
        cells, samples = self.labels.shape
        by_sample = (cells, samples, self.scales.shape[1], -1)
        scores = _batched(self.query.view(by_sample), self.key.view(by_sample).mT)
        return self.read_out(scores, self.value.view(by_sample[:3]), self.labels)

    def read_out(self, scores: Tensor, value: Tensor, labels: Tensor) -> Pass:
        """Return the forward pass from what tokens are to each other at unit scale.

        Args:
            scores: q̃ k̃ᵀ, (cells, samples, tokens, tokens).
            value: ṽ, (cells, samples, tokens).
            labels: (cells, samples).
        """
        head = (self.head_scale**2)[:, None, None, None]
        scores = scores * (head * _pair_scales(self.scales))
        attention = torch.softmax(scores, dim=-1)
        attended = _batched(attention, (self.scales[:, None] * value)[..., None]).squeeze(-1)
        margins = labels * attended.mean(-1)
        return Pass(scores, attention, attended, margins, logistic_loss(margins))

    def pull(self, now: Pass, rate: Tensor) -> Pull:
        """Return what the loss asks for, as a step of size `rate`, given the forward pass `now`."""
        cells, samples, tokens = now.attended.shape
        # −η ∂L/∂f / M, so that everything below is already a step and not a gradient.
        pull = rate[:, None] * self.labels * torch.sigmoid(-now.margins)
        pull = (pull / (samples * tokens))[..., None]
        values = self.scales[:, None] * self.value.view(cells, samples, tokens)
        advantage = values[:, :, None, :] - now.attended[..., None]
        on_scores = advantage * now.attention * (pull[..., None] * _pair_scales(self.scales))
        return Pull(on_scores, now.attention.sum(2) * (pull * self.scales[:, None]))

    def descend(self, now: Pass) -> None:
        """Take a stride of gradient steps as one, given the forward pass `now` of the state."""
        cells, samples, tokens = now.attended.shape
        flat = (cells * samples, tokens, -1)
        pull = self.pull(now, (self.learning_rate * self.stride).to(now.margins.dtype))
        on_scores = pull.on_scores.view(flat)
        self.query_coefficients.view(flat).baddbmm_(on_scores, self.key.view(flat))
        self.key_coefficients.view(flat).baddbmm_(on_scores.mT, self.query.view(flat))
        self.value_coefficients += pull.on_values.view(cells, -1)
        torch.baddbmm(self.initial_query, self.gram, self.query_coefficients, out=self.query)
        torch.baddbmm(self.initial_key, self.gram, self.key_coefficients, out=self.key)
        self.value = moved_values(
            self.initial_value, self.gram, self.value_coefficients, self.value_gain
        )
        self.steps += self.stride

    def choose_stride(self, before: Pass, now: Pass) -> None:
        """Let the next stride change scores and margins by about `leap`, judged by the last one.

        It is at most twice the last one, and no longer than the loss takes to come down to ε at its
        last pace, so that ε isn't overshot. It is at least one step. A stride that turns out to
        have changed more isn't taken back; the next one is half of it.
        """
        change = torch.maximum(
            (now.scores - before.scores).abs().amax((1, 2, 3)),
            (now.margins - before.margins).abs().amax(1),
        )
        longer = self.stride * (self.leap / change.clamp(min=_SMALLEST)).clamp(0.5, 2)
        pace = (before.loss / now.loss).log() / self.stride
        to_epsilon = (now.loss / self.epsilon).log() / pace.clamp(min=_SMALLEST)
        left = torch.minimum(self.max_steps - self.steps, to_epsilon.ceil())
        self.stride = torch.minimum(longer.floor(), left).clamp(min=1)


def moved_values(initial: Tensor, gram: Tensor, coefficients: Tensor, gain: Tensor) -> Tensor:
    """Return ṽ = ṽ₀ + ‖w_O‖² G̃ C, (cells, rows), for tokens with inner products `gram`."""
    return torch.addcmul(initial, gain[:, None], (gram @ coefficients[..., None]).squeeze(-1))


def descend_until_fitted(state: TokenSpace) -> Iterator[tuple[TokenSpace, Pass, Tensor]]:
    """Train all cells; after each stride give (state, forward pass, which of them stop here).

    A cell stops when its training loss is at most its ε, isn't finite, or its steps are spent. The
    state is changed in place by the next stride.
    """
    leaps = bool((state.leap > 0).any())
    now = state.forward()
    while True:
        stops = (now.loss <= state.epsilon) | ~now.loss.isfinite()
        stops |= state.steps >= state.max_steps
        yield state, now, stops
        if bool(stops.any()):
            if bool(stops.all()):
                return
            state, now = state.select(~stops), now.select(~stops)
        state.descend(now)
        before, now = now, state.forward()
        if leaps:
            state.choose_stride(before, now)


def _pair_scales(scales: Tensor) -> Tensor:
    """s_i s_j, (cells, 1, tokens, tokens)."""
    return (scales[:, :, None] * scales[:, None, :])[:, None]


def _batched(left: Tensor, right: Tensor) -> Tensor:
    """Matrix product over the last two axes of (cells, samples, ...), as one batch."""
    product = torch.bmm(left.flatten(0, 1), right.flatten(0, 1))
    return product.view(*left.shape[:2], *product.shape[1:])
