"""The tokens of trained cells at true scale, and what is measured of them.

The engine trains at unit scale. Whatever is measured of cells is taken from here, where queries,
keys and values are those of the paper's tokens ‖μ‖ e₁, ξ₂, ... and weights:

    q = σ_h s q̃,    k = σ_h s k̃,    v = s ṽ    (s the strength of the token)

A logged step has the means of figures 3 and 4, and the worst case over all n, i and j of the
propositions B(t) to I(t) of appendix D and J(t) to Q(t) of appendix E (Jiang et al. 2024).

In comments, rows = samples · tokens of training, and width is the number of head coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from overfit_cli.core.matrix_products import add_product
from overfit_cli.core.training import Row
from overfit_cli.studies.benign_vit.engine import (
    ForwardPass,
    TokenProjections,
    TokenSpace,
    stacked,
)
from overfit_cli.studies.benign_vit.parameters import TOKEN_CLASSES


class TrueScaleTokens:
    """The training tokens, signals and test samples of cells as they are trained so far.

    Every method reads the state as it is when called; the projections are in the order of its
    cells.
    """

    def __init__(self, state: TokenSpace, projections: Sequence[TokenProjections]) -> None:
        self._state, self._projections = state, projections
        self._rows, self._width = state.q.shape[1:]
        cells, samples = state.labels.shape
        self._by_sample = (cells, samples, state.s.shape[1])
        self._G_signal = stacked(  # of e₁ and e₂ with the training tokens, (cells, 2, rows)
            [each.signals.G[:, : self._rows] for each in projections]
        )

    @property
    def labels(self) -> Tensor:
        """Training labels with their flips, (cells, samples)."""
        return self._state.labels

    @property
    def is_plus(self) -> Tensor:
        """Whether the signal of a training sample is the + signal, (cells, samples)."""
        return stacked([each.labels[: self._by_sample[1]] for each in self._projections]) > 0

    def queries_and_keys(self, *, first: bool = False) -> tuple[Tensor, Tensor]:
        """Return q = σ_h s q̃ and k = σ_h s k̃, (cells, samples, tokens, width) each."""
        scale = self._head_scales()[:, None, :, None]  # σ_h s, (cells, 1, tokens, 1)
        by_token = (*self._by_sample, -1)
        state = self._state
        q, k = (state.q0, state.k0) if first else (state.q, state.k)  # (cells, rows, width)
        return q.reshape(by_token) * scale, k.reshape(by_token) * scale

    def values(self) -> Tensor:
        """Return x W_V w_O = s ṽ of the training tokens, (cells, samples, tokens)."""
        return self._state.v.view(self._by_sample) * self._state.s[:, None]

    def signal_queries_and_keys(self, *, first: bool = False) -> tuple[Tensor, Tensor]:
        """Return q and k of the + and − signals of the only cell, (2, width) each.

        q̃ = q̃₀ + G̃ C_q and k̃ = k̃₀ + G̃ C_k with the signals' G̃, (2, rows).
        """
        state, signals, G = self._state, self._projections[0].signals, self._G_signal[0]
        q, k = signals.q[:, : self._width], signals.k[:, : self._width]  # (2, width)
        if not first:
            q, k = q + G @ state.C_q[0], k + G @ state.C_k[0]  # (2, width)
        scale = self._head_scales()[0, 0]  # σ_h ‖μ‖, a number
        return q * scale, k * scale

    def signal_values(self) -> Tensor:
        """Return μ±ᵀ W_V w_O = ‖μ‖ (ṽ₀ + ‖w_O‖² G̃ C_v), (cells, 2)."""
        drawn = stacked([each.signals.v for each in self._projections])  # (cells, 2)
        v0 = self._state.value_scale[:, None] * drawn  # (cells, 2)
        return self._state.s[:, :1] * self._state.moved_values(v0, self._G_signal)

    def output_norm(self) -> Tensor:
        """Return ‖w_O‖, (cells,)."""
        return self._state.output_norm_squared.sqrt()

    def test_pass(self) -> ForwardPass:
        """Return the forward pass over each cell's test samples, from its coefficients alone.

        q̃ = q̃₀ + G̃ C_q, k̃ = k̃₀ + G̃ C_k and ṽ = ṽ₀ + ‖w_O‖² G̃ C_v, with G̃ the inner products of
        test tokens with training tokens. The head coordinates that training doesn't reach keep
        their part of the initial scores.
        """
        state, width = self._state, self._width
        tests = [each.test for each in self._projections]
        cells, tokens = state.s.shape
        samples = len(self._projections[0].test_labels)
        by_sample = (cells * samples, tokens, -1)
        # In comments below: test rows = test samples · tokens.
        G = stacked([test.G[:, : self._rows] for test in tests])  # (cells, test rows, rows)
        q0 = stacked([test.q[:, :width] for test in tests])  # (cells, test rows, width)
        k0 = stacked([test.k[:, :width] for test in tests])  # (cells, test rows, width)
        q = add_product(q0, G, state.C_q).view(by_sample)  # (cells · samples, tokens, width)
        k = add_product(k0, G, state.C_k).view(by_sample)  # (cells · samples, tokens, width)
        outside = stacked([each.test_scores_outside(width) for each in self._projections])
        outside = outside.flatten(0, 1)  # (cells · samples, tokens, tokens)
        products = torch.baddbmm(outside, q, k.mT)  # q̃ k̃ᵀ, (cells · samples, tokens, tokens)
        drawn = stacked([test.v for test in tests])  # (cells, test rows)
        v = state.moved_values(state.value_scale[:, None] * drawn, G)  # (cells, test rows)
        y = stacked([each.test_labels for each in self._projections])  # (cells, samples)
        return state.read_out(
            products.view(cells, samples, tokens, tokens), v.view(cells, samples, tokens), y
        )

    def _head_scales(self) -> Tensor:
        """σ_h s, which multiplies a token position's q̃ and k̃, (cells, tokens)."""
        return self._state.s * self._state.head_scale[:, None]


def final_rows(tokens: TrueScaleTokens, train: ForwardPass) -> Iterator[dict[str, float]]:
    """Give what is measured of each cell in turn, but for the number of its updates."""
    test, signal_values = tokens.test_pass(), tokens.signal_values()
    noise_values = tokens.values()[:, :, 1].abs().mean(1)  # (cells,)
    for cell, labels in enumerate(tokens.labels):
        on_train, on_test = (out.attention[cell].mean((0, 1)) for out in (train, test))  # (tokens,)
        yield _outcome(train, test, cell) | {
            "test_margin": float(test.margins[cell].mean()),
            "train_attention_signal": float(on_train[0]),
            "train_attention_noise": float(on_train[1]),
            "test_attention_signal": float(on_test[0]),
            "test_attention_noise": float(on_test[1]),
            "test_signal_attention_min": float(test.attention[cell, :, 0, 0].min()),
            "test_noise_value_max": float(test.values[cell, :, 1:].abs().max()),
            "value_plus": float(signal_values[cell, 0]),
            "value_minus": float(signal_values[cell, 1]),
            "value_noise": float(noise_values[cell]),
            "output_norm": float(tokens.output_norm()[cell]),
            "label_imbalance": abs(float(labels.mean())),
        }


def logged_row(tokens: TrueScaleTokens, now: ForwardPass, before: ForwardPass | None = None) -> Row:
    """Return what is logged of the only cell; `before` is the pass that was logged last."""
    row = {
        "attention_signal": now.attention[0, :, :, 0].mean(),
        "attention_noise": now.attention[0, :, :, 1].mean(),
        "loss_slope": torch.sigmoid(-now.margins[0]).mean(),
        **_attention_between_classes(now),
        **_products(tokens),
        **_values(tokens),
        **_gaps(now),
        **_rises(now, before),
        **_sizes(tokens, now),
    }
    return _outcome(now, tokens.test_pass()) | {name: float(value) for name, value in row.items()}


def _outcome(train: ForwardPass, test: ForwardPass, cell: int = 0) -> dict[str, float]:
    return {
        "train_loss": float(train.loss[cell]),
        "test_loss": float(test.loss[cell]),
        "test_error": float((test.margins[cell] <= 0).double().mean()),
        "train_margin": float(train.margins[cell].mean()),
        "train_margin_min": float(train.margins[cell].min()),
    }


def _attention_between_classes(now: ForwardPass) -> dict[str, Tensor]:
    """The mean attention of a token of each class on each class as a whole.

    That of one class adds up to 1; the rest's is nan, and that on it 0, with two tokens a sample.
    """
    a = now.attention.mean(1)[0]  # mean over samples, (tokens, tokens)
    on_class = torch.cat([a[:, :2], a[:, 2:].sum(-1, keepdim=True)], dim=-1)  # (tokens, 3)
    means = torch.cat([on_class[:2], on_class[2:].mean(0, keepdim=True)])  # (3, 3)
    return {
        f"attention_{source}_{target}": means[i, j]
        for i, source in enumerate(TOKEN_CLASSES)
        for j, target in enumerate(TOKEN_CLASSES)
    }


def _products(tokens: TrueScaleTokens) -> dict[str, Tensor]:
    """Inner products of Definition 5.1: of the + signal and the noise token."""
    q, k = (part[0] for part in tokens.signal_queries_and_keys())  # q₊ and k₊, (width,)
    q_2, k_2 = (part[0, :, 1] for part in tokens.queries_and_keys())  # (samples, width)
    plus = tokens.is_plus[0]  # (samples,)
    return {
        "product_signal_signal": q @ k,
        "product_signal_noise": (k_2 @ q)[plus].mean(),
        "product_noise_signal": (q_2 @ k)[plus].mean(),
        "product_noise_noise": (q_2 * k_2).sum(-1).mean(),
    }


def _values(tokens: TrueScaleTokens) -> dict[str, Tensor]:
    """Values of Definition 5.2, and by how much one dominates its sample, at the worst sample.

    The signal's lead is Lemma 5.2's, token 2's is Lemma E.3's; a sample's signal is taken by its
    label.
    """
    v, y = tokens.values()[0], tokens.labels[0]  # (samples, tokens), (samples,)
    signals = tokens.signal_values()[0]  # μ±ᵀ W_V w_O, (2,)
    signal = torch.where(y > 0, signals[0], -signals[1])  # y μᵀ W_V w_O, (samples,)
    strong, sizes = y * v[:, 1], v.abs()  # y ξ₂ᵀ W_V w_O, (samples,); (samples, tokens)
    rivals = torch.cat([signal.abs()[:, None], sizes[:, 2:]], dim=1)  # (samples, tokens − 1)
    return {
        "value_plus": signals[0],
        "value_minus": signals[1],
        "value_noise": sizes[:, 1].mean(),
        "signal_lead": (signal / sizes[:, 1:].amax(1)).min(),
        "noise_lead": (strong / rivals.amax(1)).min(),
        "noise_value_most": sizes[:, 1:].max(),
        "rest_value_most": torch.cat([signals.abs(), sizes[:, 2:].flatten()]).max(),
        "strong_value_least": strong.min(),
    }


def _gaps(now: ForwardPass) -> dict[str, Tensor | float]:
    """Λ and Ψ of a query: its score with the signal, or with token 2, less any other.

    The least over samples, keys and the queries of a class; nan without such a token.
    """
    scores = now.scores[0]  # ⟨q_i, k_j⟩, (samples, tokens, tokens)
    gaps = {
        name: (scores[..., key, None] - _without(scores, key)).amin((0, 2))  # (tokens,)
        for name, key in (("signal_gap", 0), ("noise_gap", 1))
    }
    classes = (slice(0, 1), slice(1, 2), slice(2, None))
    return {
        f"{name}_{source}": least[part].min() if len(least[part]) else math.nan
        for name, least in gaps.items()
        for source, part in zip(TOKEN_CLASSES, classes, strict=True)
    }


def _without(scores: Tensor, key: int) -> Tensor:
    """The scores with all keys but one, (samples, tokens, tokens − 1)."""
    return torch.cat([scores[..., :key], scores[..., key + 1 :]], dim=-1)


def _rises(now: ForwardPass, before: ForwardPass | None) -> dict[str, Tensor | float]:
    """By how much scores moved since the last logged step as a proposition says, the least.

    D(t) and H(t): scores with the signal's key rise, and those with noise keys fall. L(t) and P(t):
    those with token 2's key rise at least twice as much as any other.
    """
    if before is None:
        return {"signal_score_rise": math.nan, "noise_score_rise": math.nan}
    moved = (now.scores - before.scores)[0]  # (samples, tokens, tokens)
    return {
        "signal_score_rise": torch.minimum(moved[..., 0].min(), -moved[..., 1:].max()),
        "noise_score_rise": (moved[..., 1, None] - 2 * _without(moved, 1)).min(),
    }


def _sizes(tokens: TrueScaleTokens, now: ForwardPass) -> dict[str, Tensor]:
    """How long queries and keys are, how large scores, and how far other products moved.

    These products are of two queries or two keys of different tokens, and of a query and a key that
    meet in no sample: of noise in different samples, and of both signals.
    """
    q, k = _distinct(tokens)  # (distinct tokens, width) each
    q0, k0 = _distinct(tokens, first=True)  # the same at initialisation
    growth = torch.cat([(a**2).sum(1) / (b**2).sum(1) for a, b in ((q, q0), (k, k0))])
    different = ~torch.eye(len(q), dtype=torch.bool, device=q.device)  # (distinct, distinct)
    pairs = ((q, q, q0, q0, different), (k, k, k0, k0, different), (q, k, q0, k0, _stray(tokens)))
    moves = [(a @ b.mT - a0 @ b0.mT)[chosen].abs().max() for a, b, a0, b0, chosen in pairs]
    scores = now.scores[0]  # (samples, tokens, tokens)
    return {
        "head_norm_least": growth.min(),
        "head_norm_most": growth.max(),
        "stray_product_move": torch.stack(moves).max(),
        "score_most": scores.abs().max(),
        "score_range_most": (scores.amax(-1) - scores.amin(-1)).max(),
    }


def _distinct(tokens: TrueScaleTokens, *, first: bool = False) -> tuple[Tensor, Tensor]:
    """Return q and k of both signals and of all noise tokens, (distinct tokens, width) each."""
    signals = tokens.signal_queries_and_keys(first=first)  # (2, width) each
    noise = (part[0, :, 1:].flatten(0, 1) for part in tokens.queries_and_keys(first=first))
    q, k = (torch.cat(pair) for pair in zip(signals, noise, strict=True))
    return q, k


def _stray(tokens: TrueScaleTokens) -> Tensor:
    """Which queries and keys meet in no sample, (distinct tokens, distinct tokens).

    A signal meets noise of its label alone; its products with other noise are in no proposition.
    """
    _, samples, count = tokens.queries_and_keys()[0].shape[:3]
    sample = torch.arange(samples).repeat_interleave(count - 1)  # of each noise token
    stray = torch.zeros(2 + len(sample), 2 + len(sample), dtype=torch.bool)
    stray[0, 1] = stray[1, 0] = True
    stray[2:, 2:] = sample[:, None] != sample
    return stray.to(tokens.labels.device)
