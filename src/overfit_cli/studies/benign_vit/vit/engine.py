"""Projections onto the span that training sees, and gradient descent in token space.

Token projections: all that training sees of a seed's realisation.

Gradient descent on equation (1) sees the tokens through their inner products and the weights
through the tokens' queries, keys and values. At unit scale these are the same for every
signal-to-noise ratio, and for N samples they are the leading part of those for more, so a seed's
cells share one `TokenProjections`.

Gradient descent in token space: the state of cells, the forward pass and the step.

With the training tokens as rows of X, G = X Xᵀ, q = X W_Q, k = X W_K and v = X W_V w_O, a gradient
step on the weights is exactly

    q ← q − η G ∂L/∂q,    k ← k − η G ∂L/∂k,    v ← v − η ‖w_O‖² G ∂L/∂v,

so no matrix of size d × d_h is touched. The engine keeps the coefficients C = −η Σ ∂L/∂q and sets
q = q₀ + G C; a test token's query is then its initial one plus its inner products with the
training tokens times C. These coefficients are those of the paper's proof (definition 5.2).

Tokens are kept at unit scale, x = s x̃ with s one of ‖μ‖, σ̃_p, σ_p: the scale enters where tokens
meet, in the scores s_i s_j q̃_i·k̃_j and the values s_j ṽ_j, and nowhere else. So cells that differ
in their signal-to-noise ratio share G, q̃₀, k̃₀ and ṽ₀ as they are. Gaussian weights are kept at
unit scale too: with W_Q and W_K of deviation σ_h the scores are σ_h² times those, and the step is
the same, because σ_h multiplies what is added to queries and the keys that are added.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import torch
from torch import Tensor

from overfit_cli.core.matrix_products import added_product
from overfit_cli.studies.benign_vit.reference import logistic_loss
from overfit_cli.studies.benign_vit.vit.data import draw
from overfit_cli.studies.benign_vit.vit.parameters import (
    REALISATIONS_KEPT,
    BenignVitParameters,
    token_scales,
    weight_scales,
)


@dataclass(frozen=True)
class Projected:
    """Tokens of one kind at unit scale: the training tokens, the test tokens or the two signals.

    Attributes:
        gram: inner products with the training tokens, (rows, capacity · tokens).
        query, key: initial projections in the rotated head space, (rows, width).
        value: initial x W_V w_O, (rows,).
    """

    gram: Tensor
    query: Tensor
    key: Tensor
    value: Tensor


@dataclass(frozen=True)
class TokenProjections:
    """A seed's tokens and weights, for any number of training samples up to `capacity`.

    Tokens have strength 1, and Gaussian weights deviation 1; the engine scales both.

    Attributes:
        labels, flip_draws: shape (capacity,).
        test_labels: shape (test samples,).
        train, test, signals: the tokens; rows are capacity · tokens, test samples · tokens, and 2.
        test_scores: initial q kᵀ of each test sample, (test samples, tokens, tokens).
        output_norm_squared: ‖w_O‖².
    """

    labels: Tensor
    flip_draws: Tensor
    test_labels: Tensor
    train: Projected
    test: Projected
    signals: Projected
    test_scores: Tensor
    output_norm_squared: float
    _outside: dict[int, Tensor] = field(default_factory=dict)

    def head_width(self, samples: int) -> int:
        """Return how many head coordinates the first `samples` samples reach: 2r, or all."""
        tokens = len(self.train.value) // len(self.labels)
        distinct = 2 + samples * (tokens - 1)
        return min(2 * distinct, self.train.query.shape[1])

    def labels_of(self, cell: BenignVitParameters) -> Tensor:
        """Return the cell's training labels with its flips, (samples,)."""
        labels = self.labels[: cell.n]
        return torch.where(self.flip_draws[: cell.n] < cell.label_flip, -labels, labels)

    def test_scores_outside(self, width: int) -> Tensor:
        """Return the part of the test scores that the first `width` head coordinates lack."""
        if width not in self._outside:
            samples, tokens, _ = self.test_scores.shape
            query, key = (
                part[:, :width].view(samples, tokens, -1)
                for part in (self.test.query, self.test.key)
            )
            self._outside[width] = self.test_scores - query @ key.mT
        return self._outside[width]


def projections_of(parameters: BenignVitParameters, seed: int, device: str) -> TokenProjections:
    """Return the projections that the cell shares with all cells of its seed and shape."""
    kind = "pytorch" if parameters.initialisation == "pytorch" else "gaussian"
    fields = type(parameters).model_fields
    defaults = {name: fields[name].default for name in _NOT_PROJECTED}
    shared = {"n": parameters.capacity, "initialisation": kind, **defaults}
    return _at_unit_scale(parameters.model_copy(update=shared), seed, device)


_NOT_PROJECTED = (
    "snr",
    "sigma_p",
    "sigma_p_tilde",
    "noise_per",
    "sigma_h",
    "sigma_v",
    "output_scale",
    "learning_rate",
    "epsilon",
    "label_flip",
    "max_steps",
    "leap",
)
"""What scales or steers projections, or comes after them: cells that differ in it share them."""


@functools.lru_cache(maxsize=REALISATIONS_KEPT)
def _at_unit_scale(parameters: BenignVitParameters, seed: int, device: str) -> TokenProjections:
    # In float64 whatever the cell's precision: it is done once a seed.
    drawn = draw(parameters, seed)
    weights, train, test = drawn.weights, drawn.train, drawn.test
    x, x_test = torch.from_numpy(train.tokens), torch.from_numpy(test.tokens)  # (.., tokens, d)
    x_signal = torch.eye(2, x.shape[2], dtype=x.dtype)  # e₁ and e₂
    w_query, w_key = torch.from_numpy(weights.query), torch.from_numpy(weights.key)
    w_value = torch.from_numpy(weights.value) @ torch.from_numpy(weights.output)  # (d,)
    train_heads, test_heads = ((one @ w_query, one @ w_key) for one in (x, x_test))
    basis = _head_basis((w_query[:2], w_key[:2]), train_heads)
    rows = x.flatten(0, 1)  # (capacity · tokens, d)
    dtype = getattr(torch, parameters.dtype)

    def stored(tensor: Tensor) -> Tensor:
        return tensor.to(device=device, dtype=dtype).contiguous()

    def projected(tokens: Tensor, heads: tuple[Tensor, Tensor]) -> Projected:
        query, key = (stored((head @ basis).view(len(tokens), -1)) for head in heads)
        return Projected(stored(tokens @ rows.mT), query, key, stored(tokens @ w_value))

    return TokenProjections(
        labels=stored(torch.from_numpy(train.labels)),
        flip_draws=stored(torch.from_numpy(train.flip_draws)),
        test_labels=stored(torch.from_numpy(test.labels)),
        train=projected(rows, train_heads),
        test=projected(x_test.flatten(0, 1), test_heads),
        signals=projected(x_signal, (w_query[:2], w_key[:2])),
        test_scores=stored(test_heads[0] @ test_heads[1].mT),
        output_norm_squared=float((weights.output**2).sum()),
    )


def _head_basis(signals: tuple[Tensor, Tensor], heads: tuple[Tensor, Tensor]) -> Tensor:
    """Return an orthonormal basis of the head space whose first 2r carry the first N samples.

    The rows of [q; k] are orthonormalised in the order signals, sample 1, sample 2, ...: the r
    distinct tokens of the first N samples then lie in the first 2r coordinates, and stay there,
    because a gradient step adds rows to rows.

    Args:
        signals: queries and keys of e₁ and e₂, (2, d_h) each.
        heads: queries and keys of the training tokens, (samples, tokens, d_h) each.

    Returns:
        Shape (d_h, width).
    """
    query, key = heads
    noise = torch.cat([query[:, 1:], key[:, 1:]], dim=1).flatten(0, 1)
    ordered = torch.cat([*signals, noise])  # (2r, d_h)
    basis: Tensor = torch.linalg.qr(ordered[: min(ordered.shape)].mT).Q
    return basis


_SMALLEST = 1e-30
"""A change of scores that is none."""


class ForwardPass(NamedTuple):
    """A forward pass of every cell over samples, of training or of testing.

    Attributes:
        scores: q kᵀ, (cells, samples, tokens, tokens).
        attention: their softmax, shaped like them.
        values: x W_V w_O, (cells, samples, tokens).
        attended: attention times values, (cells, samples, tokens).
        margins: y f(X), (cells, samples).
        loss: (cells,).
    """

    scores: Tensor
    attention: Tensor
    values: Tensor
    attended: Tensor
    margins: Tensor
    loss: Tensor

    def select(self, cells: Tensor) -> ForwardPass:
        """Return the pass of the cells where `cells`, shape (cells,), is true."""
        return self if bool(cells.all()) else ForwardPass(*(part[cells] for part in self))


class Update(NamedTuple):
    """What a step adds: minus the loss's gradient times the step size, at unit scale.

    Attributes:
        by_score: by each score q̃_i·k̃_j, (cells, samples, tokens, tokens).
        by_value: by each value ṽ_j, (cells, samples, tokens).
    """

    by_score: Tensor
    by_value: Tensor


@dataclass
class TokenSpace:
    """The state of cells of one shape that are trained together; rows = samples · tokens.

    Attributes:
        which: the cells' places in the list they came from, (cells,).
        scales: s, the strength of each token position, (cells, tokens).
        pair_scales: s_i s_j, (cells, 1, tokens, tokens).
        score_scales: what q̃ k̃ᵀ is to be multiplied by: σ_h² s_i s_j, or s_i s_j; shaped like them.
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
    pair_scales: Tensor
    score_scales: Tensor
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

    def forward(self) -> ForwardPass:
        """Return the forward pass over the training samples at the current state."""
        cells, samples = self.labels.shape
        tokens = self.scales.shape[1]
        by_sample = (cells * samples, tokens, -1)
        products = torch.bmm(self.query.view(by_sample), self.key.view(by_sample).mT)
        value = self.value.view(cells, samples, tokens)
        return self.read_out(products.view(cells, samples, tokens, tokens), value, self.labels)

    def read_out(self, products: Tensor, value: Tensor, labels: Tensor) -> ForwardPass:
        """Return the forward pass from what tokens are to each other at unit scale.

        Args:
            products: q̃ k̃ᵀ, (cells, samples, tokens, tokens); changed in place.
            value: ṽ, (cells, samples, tokens).
            labels: (cells, samples).
        """
        scores = products.mul_(self.score_scales)  # (cells, samples, tokens, tokens)
        attention = torch.softmax(scores, dim=-1)
        values = value * self.scales[:, None]
        attended = (attention @ values[..., None]).squeeze(-1)  # (cells, samples, tokens)
        margins = labels * attended.mean(-1)  # (cells, samples)
        return ForwardPass(scores, attention, values, attended, margins, logistic_loss(margins))

    def update(self, now: ForwardPass, rate: Tensor) -> Update:
        """Return what a step of size `rate` adds, (cells,), given the forward pass `now`."""
        # −η ∂L/∂f / M, so that everything below is already a step and not a gradient.
        by_output = rate[:, None] * self.labels * torch.sigmoid(-now.margins)
        by_output = (by_output / now.attended[0].numel())[..., None]  # (cells, samples, 1)
        # ∂a_i·v/∂s_ij = a_ij (v_j − a_i·v), (cells, samples, tokens, tokens)
        by_score = (now.values[:, :, None] - now.attended[..., None]).mul_(now.attention)
        by_score.mul_(by_output[..., None] * self.pair_scales)
        return Update(by_score, now.attention.sum(2) * (by_output * self.scales[:, None]))

    def descend(self, now: ForwardPass) -> None:
        """Take a stride of gradient steps as one, given the forward pass `now` of the state."""
        cells, samples, tokens = now.attended.shape
        flat = (cells * samples, tokens, -1)
        update = self.update(now, (self.learning_rate * self.stride).to(now.margins.dtype))
        by_score = update.by_score.view(flat)  # (cells · samples, tokens, tokens)
        self.query_coefficients.view(flat).baddbmm_(by_score, self.key.view(flat))
        self.key_coefficients.view(flat).baddbmm_(by_score.mT, self.query.view(flat))
        self.value_coefficients += update.by_value.view(cells, -1)
        self.query = added_product(self.initial_query, self.gram, self.query_coefficients)
        self.key = added_product(self.initial_key, self.gram, self.key_coefficients)
        self.value = self.moved_values(self.initial_value, self.gram)
        self.steps += self.stride

    def moved_values(self, initial: Tensor, gram: Tensor) -> Tensor:
        """Return ṽ = ṽ₀ + ‖w_O‖² G̃ C of any tokens, (cells, rows).

        Args:
            initial: their ṽ₀, (cells, rows).
            gram: their inner products with the training tokens.
        """
        added = (gram @ self.value_coefficients[..., None]).squeeze(-1)  # (cells, rows)
        return torch.addcmul(initial, self.value_gain[:, None], added)

    def choose_stride(self, before: ForwardPass, now: ForwardPass) -> None:
        """Let the next stride change scores and margins by about `leap`, judged by the last one.

        It is at most twice the last one, and no longer than the loss takes to come down to ε at its
        last pace, so that ε isn't overshot. It is at least one step. A stride that turns out to
        have changed more isn't taken back; the next one is half of it.
        """
        change = torch.maximum(
            (now.scores - before.scores).abs().amax((1, 2, 3)),
            (now.margins - before.margins).abs().amax(1),
        )  # (cells,)
        longer = self.stride * (self.leap / change.clamp(min=_SMALLEST)).clamp(0.5, 2)
        pace = (before.loss / now.loss).log() / self.stride
        to_epsilon = (now.loss / self.epsilon).log() / pace.clamp(min=_SMALLEST)
        left = torch.minimum(self.max_steps - self.steps, to_epsilon.ceil())
        self.stride = torch.minimum(longer.floor(), left).clamp(min=1)


def initial_state(
    cells: Sequence[BenignVitParameters], projections: Sequence[TokenProjections]
) -> TokenSpace:
    """Return the state at initialisation of cells of one shape, from each one's projections."""
    first, samples = projections[0], cells[0].n
    gram = first.train.gram
    rows, width = samples * cells[0].tokens, first.head_width(samples)
    strengths = [weight_scales(cell) for cell in cells]

    def per_cell(values: Sequence[object], dtype: torch.dtype = gram.dtype) -> Tensor:
        return torch.tensor(values, dtype=dtype, device=gram.device)

    query = stacked([one.train.query[:rows, :width] for one in projections])
    key = stacked([one.train.key[:rows, :width] for one in projections])
    output = per_cell([one.output for one in strengths])
    value_scale = output * per_cell([one.value for one in strengths])
    value = value_scale[:, None] * stacked([one.train.value[:rows] for one in projections])
    head_scale = per_cell([one.head for one in strengths])
    scales = per_cell([token_scales(cell).tolist() for cell in cells])
    pair_scales = (scales[:, :, None] * scales[:, None, :])[:, None]
    pairs = zip(cells, projections, strict=True)
    return TokenSpace(
        which=torch.arange(len(cells), device=gram.device),
        scales=scales,
        pair_scales=pair_scales,
        score_scales=(head_scale**2)[:, None, None, None] * pair_scales,
        labels=torch.stack([one.labels_of(cell) for cell, one in pairs]),
        learning_rate=per_cell([cell.learning_rate for cell in cells]),
        epsilon=per_cell([cell.epsilon for cell in cells], torch.float64),  # not rounded up
        max_steps=per_cell([cell.max_steps for cell in cells], torch.float64),
        leap=per_cell([cell.leap for cell in cells], torch.float64),
        steps=per_cell([0] * len(cells), torch.float64),
        stride=per_cell([1] * len(cells), torch.float64),
        head_scale=head_scale,
        value_scale=value_scale,
        value_gain=output**2 * per_cell([one.output_norm_squared for one in projections]),
        gram=stacked([one.train.gram[:rows, :rows] for one in projections]),
        initial_query=query,
        initial_key=key,
        initial_value=value,
        query=query.contiguous(),  # a view of several cells can't be cut into samples
        key=key.contiguous(),
        value=value,
        query_coefficients=_zeros_like(query),
        key_coefficients=_zeros_like(key),
        value_coefficients=_zeros_like(value),
    )


def stacked(parts: Sequence[Tensor]) -> Tensor:
    """Stack along a new first axis; a view where all parts are one and the same memory."""
    first = parts[0]
    if all(part.data_ptr() == first.data_ptr() for part in parts):
        return first.expand(len(parts), *first.shape)
    return torch.stack(list(parts))


def _zeros_like(tensor: Tensor) -> Tensor:
    """Zeros in memory of their own, which a view of several cells lacks."""
    return torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
