"""Gradient descent in token space: a seed's token projections, the state of cells, and the step.

Gradient descent on equation (1) sees the tokens through their inner products alone, and the weights
through the tokens' queries, keys and values. With the training tokens as rows of X,

    G = X Xᵀ,    q = X W_Q,    k = X W_K,    v = X W_V w_O,

a gradient step on the weights is exactly

    q ← q − η G ∂L/∂q,    k ← k − η G ∂L/∂k,    v ← v − η ‖w_O‖² G ∂L/∂v,

so no matrix of size d × d_h is touched. The engine keeps the coefficients C_q = −η Σ ∂L/∂q and sets
q = q₀ + G C_q; a test token's query is its initial one plus its inner products with the training
tokens times C_q. These coefficients are those of the paper's proof (Definition 5.2).

Tokens are kept at unit scale, x = s x̃ with s one of ‖μ‖, σ̃_p, σ_p. The scale enters where tokens
meet, in the scores s_i s_j q̃_i·k̃_j and the values s_j ṽ_j, and nowhere else. So cells that differ
in their signal-to-noise ratio share G̃, q̃₀, k̃₀ and ṽ₀, and for N samples these are the leading part
of those for more samples. Gaussian weights are kept at unit scale too: with W_Q and W_K of
deviation σ_h the scores are σ_h² times those, and the step is the same, because σ_h multiplies what
is added to queries and the keys that are added.

In comments, rows = samples · tokens, and width is the number of head coordinates that are kept. All
tensors are at unit scale; the tildes are left out of names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

from overfit_cli.core.matrix_products import add_product
from overfit_cli.studies.benign_vit.data import draw
from overfit_cli.studies.benign_vit.parameters import (
    NOT_PROJECTED,
    REALISATIONS_KEPT,
    BenignVitParameters,
    token_scales,
    weight_scales,
)


@dataclass(frozen=True)
class Projected:
    """Tokens of one kind at unit scale: the training tokens, the test tokens or the two signals."""

    G: Tensor  # inner products with the training tokens, (tokens of the kind, capacity · tokens)
    # q, k: initial projections in the rotated head space, (tokens of the kind, width)
    q: Tensor
    k: Tensor
    v: Tensor  # initial x W_V w_O, (tokens of the kind,)


@dataclass(frozen=True)
class TokenProjections:
    """A seed's tokens and weights, for any number of training samples up to `capacity`."""

    # labels, flip_draws: (capacity,)
    labels: Tensor
    flip_draws: Tensor
    test_labels: Tensor  # (test samples,)
    # train, test, signals: the tokens; capacity · tokens, test samples · tokens, and 2 of them
    train: Projected
    test: Projected
    signals: Projected
    test_scores: Tensor  # initial q kᵀ of each test sample, (test samples, tokens, tokens)
    output_norm_squared: float  # ‖w_O‖²
    _test_scores_outside: dict[int, Tensor] = field(default_factory=dict)

    def head_width(self, samples: int) -> int:
        """Return how many head coordinates the first `samples` samples reach: 2r, or all."""
        tokens = len(self.train.v) // len(self.labels)
        distinct = 2 + samples * (tokens - 1)  # r
        return min(2 * distinct, self.train.q.shape[1])

    def labels_of(self, cell: BenignVitParameters) -> Tensor:
        """Return the cell's training labels with its flips, (samples,)."""
        labels = self.labels[: cell.n]
        return torch.where(self.flip_draws[: cell.n] < cell.label_flip, -labels, labels)

    def test_scores_outside(self, width: int) -> Tensor:
        """Return the part of the test scores that the first `width` head coordinates lack.

        Training never changes this part. Its shape is (test samples, tokens, tokens).
        """
        if width not in self._test_scores_outside:
            samples, tokens, _ = self.test_scores.shape
            q = self.test.q[:, :width].view(samples, tokens, -1)  # (test samples, tokens, width)
            k = self.test.k[:, :width].view(samples, tokens, -1)  # (test samples, tokens, width)
            self._test_scores_outside[width] = self.test_scores - q @ k.mT
        return self._test_scores_outside[width]


def projections_of(parameters: BenignVitParameters, seed: int, device: str) -> TokenProjections:
    """Return the projections that the cell shares with all cells of its seed and shape."""
    kind = "pytorch" if parameters.initialisation == "pytorch" else "gaussian"
    declared = type(parameters).model_fields
    defaults = {name: declared[name].default for name in NOT_PROJECTED}
    shared = {"n": parameters.capacity, "initialisation": kind, **defaults}
    return _unit_scale_projections(parameters.model_copy(update=shared), seed, device)


@functools.lru_cache(maxsize=REALISATIONS_KEPT)
def _unit_scale_projections(
    parameters: BenignVitParameters, seed: int, device: str
) -> TokenProjections:
    # Computed in float64 whatever the cell's precision: it is done once for each seed.
    drawn = draw(parameters, seed)
    weights, train, test = drawn.weights, drawn.train, drawn.test
    x = torch.from_numpy(train.tokens)  # (capacity, tokens, d)
    x_test = torch.from_numpy(test.tokens)  # (test samples, tokens, d)
    e = torch.eye(2, x.shape[2], dtype=x.dtype)  # e₁ and e₂, (2, d)
    W_Q, W_K = torch.from_numpy(weights.query), torch.from_numpy(weights.key)  # (d, d_h)
    w_VO = torch.from_numpy(weights.value) @ torch.from_numpy(weights.output)  # W_V w_O, (d,)
    q, k = x @ W_Q, x @ W_K  # (capacity, tokens, d_h)
    q_test, k_test = x_test @ W_Q, x_test @ W_K  # (test samples, tokens, d_h)
    q_signal, k_signal = W_Q[:2], W_K[:2]  # (2, d_h)
    basis = _head_basis((q_signal, k_signal), (q, k))  # (d_h, width)
    X = x.flatten(0, 1)  # (capacity · tokens, d)
    dtype = getattr(torch, parameters.dtype)

    def stored(tensor: Tensor) -> Tensor:
        return tensor.to(device=device, dtype=dtype).contiguous()

    def projected(tokens: Tensor, query: Tensor, key: Tensor) -> Projected:
        """Project tokens, (count, d), with queries and keys of (.., d_h)."""
        count = len(tokens)
        return Projected(
            G=stored(tokens @ X.mT),  # (count, capacity · tokens)
            q=stored((query @ basis).view(count, -1)),  # (count, width)
            k=stored((key @ basis).view(count, -1)),  # (count, width)
            v=stored(tokens @ w_VO),  # (count,)
        )

    return TokenProjections(
        labels=stored(torch.from_numpy(train.labels)),
        flip_draws=stored(torch.from_numpy(train.flip_draws)),
        test_labels=stored(torch.from_numpy(test.labels)),
        train=projected(X, q, k),
        test=projected(x_test.flatten(0, 1), q_test, k_test),
        signals=projected(e, q_signal, k_signal),
        test_scores=stored(q_test @ k_test.mT),  # (test samples, tokens, tokens)
        output_norm_squared=float((weights.output**2).sum()),
    )


def _head_basis(signals: tuple[Tensor, Tensor], heads: tuple[Tensor, Tensor]) -> Tensor:
    """Return an orthonormal basis, (d_h, width), whose first 2r vectors span the first N samples.

    The rows of [q; k] are orthonormalised in the order signals, (2, d_h) each, sample 1, sample 2,
    ...: the r distinct tokens of the first N samples then lie in the first 2r coordinates, and stay
    there, because a gradient step adds rows to rows.
    """
    q, k = heads
    noise = torch.cat([q[:, 1:], k[:, 1:]], dim=1).flatten(0, 1)  # (2 · noise tokens, d_h)
    ordered = torch.cat([*signals, noise])  # (2r, d_h)
    basis: Tensor = torch.linalg.qr(ordered[: min(ordered.shape)].mT).Q  # (d_h, width)
    return basis


class ForwardPass(NamedTuple):
    """A forward pass of every cell over samples, of training or of testing."""

    scores: Tensor  # q kᵀ at true scale, (cells, samples, tokens, tokens)
    attention: Tensor  # a, the softmax of each row of the scores, shaped like them
    values: Tensor  # v = x W_V w_O at true scale, (cells, samples, tokens)
    attended: Tensor  # a v, (cells, samples, tokens)
    margins: Tensor  # y f(X), (cells, samples)
    loss: Tensor  # the mean over samples of log(1 + exp(−y f(X))), (cells,)

    def select(self, cells: Tensor) -> ForwardPass:
        """Return the pass of the cells where `cells`, shape (cells,), is true."""
        return self if bool(cells.all()) else ForwardPass(*(part[cells] for part in self))


class Update(NamedTuple):
    """What a step adds: minus the loss's gradient times the step size, at unit scale."""

    by_score: Tensor  # −η ∂L/∂(q̃_i·k̃_j), (cells, samples, tokens, tokens)
    by_value: Tensor  # −η ∂L/∂ṽ_j, (cells, samples, tokens)


_SMALLEST = 1e-30
"""The change of scores, or of the loss, below which a division by it is avoided."""


@dataclass
class TokenSpace:
    """The constants and the state of cells of one shape that are trained together."""

    # Settings of the cells.
    indices: Tensor  # of each cell in the list that it came from, (cells,)
    labels: Tensor  # y with flips, (cells, samples)
    eta: Tensor  # η, (cells,)
    epsilon: Tensor  # (cells,)
    max_steps: Tensor  # (cells,)
    leap: Tensor  # (cells,)
    s: Tensor  # strength of each token position, (cells, tokens)
    s_pair: Tensor  # s_i s_j, (cells, 1, tokens, tokens)
    score_scale: Tensor  # σ_h² s_i s_j, or s_i s_j, (cells, 1, tokens, tokens)
    head_scale: Tensor  # factor of q̃ and k̃: σ_h, or 1, (cells,)
    value_scale: Tensor  # factor that ṽ₀ contains: σ_V ‖w_O‖, or 1, (cells,)
    output_norm_squared: Tensor  # ‖w_O‖², (cells,)

    # Projections of the training tokens at the start.
    G: Tensor  # (cells, rows, rows)
    q0: Tensor  # (cells, rows, width)
    k0: Tensor  # (cells, rows, width)
    v0: Tensor  # (cells, rows)

    # State.
    steps: Tensor  # gradient steps taken, (cells,)
    stride: Tensor  # gradient steps that the next update takes as one, (cells,)
    q: Tensor  # q₀ + G C_q, (cells, rows, width)
    k: Tensor  # k₀ + G C_k, (cells, rows, width)
    v: Tensor  # v₀ + ‖w_O‖² G C_v, (cells, rows)
    C_q: Tensor  # −η Σ ∂L/∂q, times the tokens' strengths, (cells, rows, width)
    C_k: Tensor  # −η Σ ∂L/∂k, likewise, (cells, rows, width)
    C_v: Tensor  # −η Σ ∂L/∂v, likewise, (cells, rows)

    def select(self, cells: Tensor) -> TokenSpace:
        """Return the cells where `cells`, shape (cells,), is true."""
        if bool(cells.all()):
            return self
        return TokenSpace(*(getattr(self, part.name)[cells] for part in fields(self)))

    def forward(self) -> ForwardPass:
        """Return the forward pass over the training samples at the current state."""
        cells, samples = self.labels.shape
        tokens = self.s.shape[1]
        by_sample = (cells * samples, tokens, -1)
        products = torch.bmm(self.q.view(by_sample), self.k.view(by_sample).mT)  # q̃ k̃ᵀ
        products = products.view(cells, samples, tokens, tokens)  # (cells, samples, tokens, tokens)
        v = self.v.view(cells, samples, tokens)  # (cells, samples, tokens)
        return self.read_out(products, v, self.labels)

    def read_out(self, products: Tensor, v: Tensor, y: Tensor) -> ForwardPass:
        """Return the forward pass from inner products and values at unit scale.

        f(X) = 1/M Σ_i a_i·v with a_i = softmax_j(s_i s_j q̃_i·k̃_j) and v_j = s_j ṽ_j (equation 1).

        Args:
            products: q̃ k̃ᵀ, (cells, samples, tokens, tokens).
            v: ṽ, (cells, samples, tokens).
            y: labels, (cells, samples).
        """
        scores = products * self.score_scale  # (cells, samples, tokens, tokens)
        attention = torch.softmax(scores, dim=-1)  # (cells, samples, tokens, tokens)
        values = v * self.s[:, None]  # (cells, samples, tokens)
        attended = (attention @ values[..., None]).squeeze(-1)  # (cells, samples, tokens)
        margins = y * attended.mean(-1)  # y f(X), (cells, samples)
        loss = in_whole_vectors(softplus, -margins).mean(-1)  # (cells,)
        return ForwardPass(scores, attention, values, attended, margins, loss)

    def update(self, now: ForwardPass, rate: Tensor) -> Update:
        """Return what a step of size `rate` adds, (cells,), given the forward pass `now`.

        With ℓ′ the slope of the loss at a margin and g = −η ∂L/∂f / M = −η y ℓ′ / (N M),

            −η ∂L/∂(q̃_i·k̃_j) = g s_i s_j a_ij (v_j − a_i·v),    −η ∂L/∂ṽ_j = g s_j Σ_i a_ij.
        """
        minus_slope = in_whole_vectors(torch.sigmoid, -now.margins)  # −ℓ′, (cells, samples)
        g = rate[:, None] * self.labels * minus_slope  # (cells, samples)
        g = (g / now.attended[0].numel())[..., None]  # over N M, (cells, samples, 1)
        lead = now.values[:, :, None] - now.attended[..., None]  # v_j − a_i·v, (.., i, j)
        factor = g[..., None] * self.s_pair  # g s_i s_j, (cells, samples, tokens, tokens)
        by_score = lead * now.attention * factor  # (cells, samples, tokens, tokens)
        by_value = now.attention.sum(2) * (g * self.s[:, None])  # (cells, samples, tokens)
        return Update(by_score, by_value)

    def descend(self, now: ForwardPass) -> None:
        """Take a stride of gradient steps as one, given the forward pass `now` of the state.

            C_q += B k,    C_k += Bᵀ q,    C_v += b

        with B and b from `update`; then q = q₀ + G C_q, and so on.
        """
        cells, samples, tokens = now.attended.shape
        by_sample = (cells * samples, tokens, -1)
        B, b = self.update(now, (self.eta * self.stride).to(now.margins.dtype))
        B = B.view(by_sample)  # (cells · samples, tokens, tokens)
        self.C_q.view(by_sample).baddbmm_(B, self.k.view(by_sample))
        self.C_k.view(by_sample).baddbmm_(B.mT, self.q.view(by_sample))
        self.C_v += b.view(cells, -1)
        add_product(self.q0, self.G, self.C_q, out=self.q)  # (cells, rows, width)
        add_product(self.k0, self.G, self.C_k, out=self.k)  # (cells, rows, width)
        self.v = self.moved_values(self.v0, self.G)  # (cells, rows)
        self.steps += self.stride

    def moved_values(self, v0: Tensor, G: Tensor) -> Tensor:
        """Return ṽ = ṽ₀ + ‖w_O‖² G̃ C_v, (cells, tokens), of any tokens.

        G̃, (cells, tokens, rows), has their inner products with the training tokens.
        """
        # A second column, of zeros: one cell is then multiplied like many, to the same bits.
        C_v = torch.constant_pad_nd(self.C_v[..., None], (0, 1))  # (cells, rows, 2)
        added = torch.bmm(G, C_v)[..., 0]  # (cells, tokens of the kind)
        return torch.addcmul(v0, self.output_norm_squared[:, None], added)

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
        factor = (self.leap / change.clamp(min=_SMALLEST)).clamp(0.5, 2)  # (cells,)
        longest = self.stride * factor  # (cells,)
        pace = (before.loss / now.loss).log() / self.stride  # fall of log loss in a step, (cells,)
        to_epsilon = (now.loss / self.epsilon).log() / pace.clamp(min=_SMALLEST)  # (cells,)
        remaining = torch.minimum(self.max_steps - self.steps, to_epsilon.ceil())  # (cells,)
        self.stride = torch.minimum(longest.floor(), remaining).clamp(min=1)  # (cells,)


_VECTOR = 64
"""A multiple of the numbers that a processor's vector instructions take at once."""


def in_whole_vectors(function: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
    """Return an elementwise function of values, (cells, samples), to the same bits in any batch.

    The end of a tensor that fills no whole vector is computed by other instructions, which round
    differently. So each cell's values are padded to whole vectors.
    """
    samples = values.shape[1]
    return function(torch.constant_pad_nd(values, (0, -samples % _VECTOR)))[:, :samples]


def initial_state(
    cells: Sequence[BenignVitParameters], projections: Sequence[TokenProjections]
) -> TokenSpace:
    """Return the state at initialisation of cells of one shape, from each one's projections."""
    trains = [each.train for each in projections]
    precision, device = trains[0].G.dtype, trains[0].G.device
    rows, width = cells[0].n * cells[0].tokens, projections[0].head_width(cells[0].n)

    def per_cell(values: Sequence[object], dtype: torch.dtype = precision) -> Tensor:
        return torch.tensor(values, dtype=dtype, device=device)

    strengths = [weight_scales(cell) for cell in cells]
    head_scale = per_cell([each.head for each in strengths])  # (cells,)
    output_scale = per_cell([each.output for each in strengths])  # (cells,)
    value_scale = output_scale * per_cell([each.value for each in strengths])  # (cells,)
    norms_squared = per_cell([each.output_norm_squared for each in projections])  # (cells,)
    s = per_cell([token_scales(cell).tolist() for cell in cells])  # (cells, tokens)
    s_pair = (s[:, :, None] * s[:, None, :])[:, None]  # (cells, 1, tokens, tokens)
    q0 = stacked([train.q[:rows, :width] for train in trains])  # (cells, rows, width)
    k0 = stacked([train.k[:rows, :width] for train in trains])  # (cells, rows, width)
    v0 = value_scale[:, None] * stacked([train.v[:rows] for train in trains])  # (cells, rows)
    pairs = zip(cells, projections, strict=True)
    return TokenSpace(
        indices=torch.arange(len(cells), device=device),
        labels=torch.stack([each.labels_of(cell) for cell, each in pairs]),
        eta=per_cell([cell.learning_rate for cell in cells]),
        epsilon=per_cell([cell.epsilon for cell in cells], torch.float64),  # not rounded up
        max_steps=per_cell([cell.max_steps for cell in cells], torch.float64),
        leap=per_cell([cell.leap for cell in cells], torch.float64),
        s=s,
        s_pair=s_pair,
        score_scale=(head_scale**2)[:, None, None, None] * s_pair,
        head_scale=head_scale,
        value_scale=value_scale,
        output_norm_squared=output_scale**2 * norms_squared,
        G=stacked([train.G[:rows, :rows] for train in trains]),
        q0=q0,
        k0=k0,
        v0=v0,
        steps=per_cell([0] * len(cells), torch.float64),
        stride=per_cell([1] * len(cells), torch.float64),
        # In memory of their own: each step writes to it, and cuts it into samples.
        q=q0.clone(memory_format=torch.contiguous_format),
        k=k0.clone(memory_format=torch.contiguous_format),
        v=v0,
        C_q=_zeros_like(q0),
        C_k=_zeros_like(k0),
        C_v=_zeros_like(v0),
    )


def stacked(parts: Sequence[Tensor]) -> Tensor:
    """Stack along a new first axis; a view where all parts are one and the same memory."""
    first = parts[0]
    if all(part.data_ptr() == first.data_ptr() for part in parts):
        return first.expand(len(parts), *first.shape)
    return torch.stack(list(parts))


def _zeros_like(tensor: Tensor) -> Tensor:
    return torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
