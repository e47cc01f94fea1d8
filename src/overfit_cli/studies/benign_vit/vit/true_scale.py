"""The tokens of trained cells at true scale, and the coefficients of the paper's proof.

The engine trains at unit scale. Whatever is measured of cells is taken from here, where queries,
keys, values and coefficients are those of the paper's tokens ‖μ‖ e₁, ξ₂, ... and weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from overfit_cli.core.matrix_products import added_product
from overfit_cli.studies.benign_vit.vit.engine import (
    ForwardPass,
    TokenProjections,
    TokenSpace,
    stacked,
)


class StepCoefficients(NamedTuple):
    """What a gradient step adds: Δq = Σ α k, Δk = Σ β q (definition B.3); α or β.

    The last two axes are the samples and tokens whose keys (queries) are added. A signal's key is
    one token in all samples of its label: its coefficient is the sum over them of token 1's.

    Attributes:
        signal: for the + and − signals, (2, samples, tokens).
        noise: for token 2 of each sample, (samples, samples, tokens).
    """

    signal: Tensor
    noise: Tensor


class TrueScaleTokens:
    """The training tokens, signals and test samples of cells as they are trained so far.

    Args:
        state: the cells; every method reads it as it is when called.
        projections: those of each cell of `state`, in its order.
    """

    def __init__(self, state: TokenSpace, projections: Sequence[TokenProjections]) -> None:
        self._state, self._projections = state, projections
        self._rows, self._width = state.query.shape[1:]
        cells, samples = state.labels.shape
        self._by_sample = (cells, samples, state.scales.shape[1])
        self._signal_gram = stacked([one.signals.gram[:, : self._rows] for one in projections])

    @property
    def labels(self) -> Tensor:
        """Training labels with their flips, (cells, samples)."""
        return self._state.labels

    @property
    def is_plus(self) -> Tensor:
        """Whether the signal of a training sample is the + signal, (cells, samples)."""
        return stacked([one.labels[: self._by_sample[1]] for one in self._projections]) > 0

    def queries_and_keys(self) -> tuple[Tensor, Tensor]:
        """Return those of the training tokens, (cells, samples, tokens, width) each."""
        scales = self._head_scales()[:, None, :, None]
        query, key = self._state.query, self._state.key
        by_token = (*self._by_sample, -1)
        return query.view(by_token) * scales, key.view(by_token) * scales

    def values(self) -> Tensor:
        """Return x W_V w_O of the training tokens, (cells, samples, tokens)."""
        return self._state.value.view(self._by_sample) * self._state.scales[:, None]

    def signal_queries_and_keys(self) -> tuple[Tensor, Tensor]:
        """Return those of the + and − signals of the only cell, (2, width) each."""
        state, signals, gram = self._state, self._projections[0].signals, self._signal_gram[0]
        query = signals.query[:, : self._width] + gram @ state.query_coefficients[0]
        key = signals.key[:, : self._width] + gram @ state.key_coefficients[0]
        scale = self._head_scales()[0, 0]
        return query * scale, key * scale

    def signal_values(self) -> Tensor:
        """Return μ±ᵀ W_V w_O, (cells, 2)."""
        unit = stacked([one.signals.value for one in self._projections])
        initial = self._state.value_scale[:, None] * unit
        return self._state.scales[:, :1] * self._state.moved_values(initial, self._signal_gram)

    def output_norm(self) -> Tensor:
        """Return ‖w_O‖, (cells,)."""
        return self._state.value_gain.sqrt()

    def test_pass(self) -> ForwardPass:
        """Return the forward pass over each cell's test samples, from its coefficients alone."""
        state, projections, width = self._state, self._projections, self._width
        cells, tokens = state.scales.shape
        samples = len(projections[0].test_labels)
        flat = (cells * samples, tokens, -1)
        # Inner products with the training tokens, (cells, test samples · tokens, rows).
        gram = stacked([one.test.gram[:, : self._rows] for one in projections])
        initial_query = stacked([one.test.query[:, :width] for one in projections])
        initial_key = stacked([one.test.key[:, :width] for one in projections])
        query = added_product(initial_query, gram, state.query_coefficients).view(flat)  # q₀ + G C
        key = added_product(initial_key, gram, state.key_coefficients).view(flat)
        outside = stacked([one.test_scores_outside(width) for one in projections])
        scores = torch.baddbmm(outside.flatten(0, 1), query, key.mT)  # (.., tokens, tokens)
        initial_value = stacked([one.test.value for one in projections])
        value = state.moved_values(state.value_scale[:, None] * initial_value, gram)
        labels = stacked([one.test_labels for one in projections])
        by_sample = (cells, samples, tokens)
        return state.read_out(scores.view(*by_sample, tokens), value.view(by_sample), labels)

    def value_coefficients(self) -> tuple[Tensor, Tensor]:
        """Return γ and ρ of the only cell: what training added to values, over ‖w_O‖².

        The engine keeps what gradient descent adds to each token as a combination of tokens, so the
        paper's coefficients (definition 5.2) need no fit and no approximation: they are sums of
        what is there.

        Returns:
            γ of the + and of the − signal, (2,), and ρ of noise tokens, (samples, tokens − 1).
        """
        scales, added = self._state.scales[0], self._state.value_coefficients[0]
        gamma = scales[0] * (self._signal_gram[0] @ added)
        rho = scales * (self._state.gram[0] @ added).view(self._by_sample[1:])
        return gamma, rho[:, 1:]

    def step_coefficients(self, now: ForwardPass) -> tuple[StepCoefficients, StepCoefficients]:
        """Return α and β of the only cell's step that follows its forward pass `now`."""
        _, samples, tokens = self._by_sample
        state, scales = self._state, self._state.scales[0]
        signal = self._signal_gram[0].view(2, samples, tokens)
        noise = state.gram[0].view(samples, tokens, samples, tokens)[:, 1]
        by_score = state.update(now, state.learning_rate).by_score[0]

        def added(by_score: Tensor) -> StepCoefficients:
            return StepCoefficients(
                scales[0] / scales * torch.einsum("anb,nbj->anj", signal, by_score),
                scales[1] / scales * torch.einsum("anb,nbj->anj", noise, by_score),
            )

        return added(by_score), added(by_score.mT)

    def _head_scales(self) -> Tensor:
        """What multiplies a token position's q̃ and k̃, (cells, tokens)."""
        return self._state.scales * self._state.head_scale[:, None]
