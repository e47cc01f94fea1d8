"""The tokens of trained cells at true scale, and the coefficients of the paper's proof.

The engine trains at unit scale. Whatever is measured of cells is taken from here, where queries,
keys, values and coefficients are those of the paper's tokens ‖μ‖ e₁, ξ₂, ... and weights:

    q = σ_h s q̃,    k = σ_h s k̃,    v = s ṽ    (s the strength of the token)

In comments, rows = samples · tokens of training, and width is the number of head coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from overfit_cli.core.matrix_products import add_product
from overfit_cli.studies.benign_vit.vit.engine import (
    ForwardPass,
    TokenProjections,
    TokenSpace,
    stacked,
)


class StepCoefficients(NamedTuple):
    """What a gradient step adds: Δq = Σ α k, Δk = Σ β q (Definition B.3); α or β.

    The last two axes are the samples and tokens whose keys (queries) are added. A signal's key is
    one token in all samples of its label: its coefficient is the sum over them of token 1's.
    """

    signal: Tensor  # for the + and − signals, (2, samples, tokens)
    noise: Tensor  # for token 2 of each sample, (samples, samples, tokens)


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

    def value_coefficients(self) -> tuple[Tensor, Tensor]:
        """Return γ and ρ of the only cell: what training added to values, over ‖w_O‖².

        The engine keeps what gradient descent adds to each token as a combination of tokens, so the
        paper's coefficients (Definition 5.2) need no fit and no approximation: they are s G̃ C_v.

        Returns:
            γ of the + and of the − signal, (2,), and ρ of noise tokens, (samples, tokens − 1).
        """
        s, C_v = self._state.s[0], self._state.C_v[0]  # (tokens,), (rows,)
        gamma = s[0] * (self._G_signal[0] @ C_v)  # (2,)
        added = (self._state.G[0] @ C_v).view(self._by_sample[1:])  # (samples, tokens)
        rho = s * added  # (samples, tokens)
        return gamma, rho[:, 1:]

    def step_coefficients(self, now: ForwardPass) -> tuple[StepCoefficients, StepCoefficients]:
        """Return α and β of the only cell's step that follows its forward pass `now`.

        A step adds G̃ B k̃ to q̃, with B = −η ∂L/∂(q̃_i·k̃_j) of each sample. So α of a token and of
        token j of sample n is s / s_j times Σ_b G̃_(n,b) B_n,bj, and β has Bᵀ in place of B.
        """
        _, samples, tokens = self._by_sample
        state, s = self._state, self._state.s[0]  # (tokens,)
        signal = self._G_signal[0].view(2, samples, tokens)  # (2, samples, tokens)
        pairs = state.G[0].view(samples, tokens, samples, tokens)  # G̃ of training tokens
        noise = pairs[:, 1]  # token 2 of each sample with all, (samples, samples, tokens)
        B = state.update(now, state.eta).by_score[0]  # (samples, tokens, tokens)

        def coefficients(B: Tensor) -> StepCoefficients:
            return StepCoefficients(
                s[0] / s * torch.einsum("anb,nbj->anj", signal, B),  # (2, samples, tokens)
                s[1] / s * torch.einsum("anb,nbj->anj", noise, B),  # (samples, samples, tokens)
            )

        return coefficients(B), coefficients(B.mT)

    def _head_scales(self) -> Tensor:
        """σ_h s, which multiplies a token position's q̃ and k̃, (cells, tokens)."""
        return self._state.s * self._state.head_scale[:, None]
