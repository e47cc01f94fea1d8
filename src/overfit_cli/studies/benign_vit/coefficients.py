"""The coefficients of the paper's proof, read off the engine's (definitions 5.1, 5.2 and B.3).

The engine keeps what gradient descent adds to each token as a combination of tokens, so the
paper's γ, ρ, α and β need no fit and no approximation: they are sums of what is there. All are of
the only cell of a state, and of tokens at their own strength.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from overfit_cli.studies.benign_vit.engine import Pass, TokenSpace
from overfit_cli.studies.benign_vit.start import Start


class ValueCoefficients(NamedTuple):
    """What training added to values x W_V w_O, over ‖w_O‖² (definition 5.2).

    Attributes:
        gamma: γ of the + and of the − signal, (2,).
        rho: ρ of every noise token, (samples, tokens − 1).
    """

    gamma: Tensor
    rho: Tensor


class StepCoefficients(NamedTuple):
    """What a gradient step adds: Δq = Σ α k, Δk = Σ β q (definition B.3).

    The last two axes are the samples and tokens whose keys (queries) are added. A signal's key is
    one token in all samples of its label: its coefficient is the sum over them of token 1's.

    Attributes:
        alpha_signal, beta_signal: for the + and − signals, (2, samples, tokens).
        alpha_noise, beta_noise: for token 2 of each sample, (samples, samples, tokens).
    """

    alpha_signal: Tensor
    alpha_noise: Tensor
    beta_signal: Tensor
    beta_noise: Tensor


def value_coefficients(state: TokenSpace, start: Start) -> ValueCoefficients:
    """Return γ and ρ at the state."""
    samples, tokens = state.labels.shape[1], state.scales.shape[1]
    scales, added = state.scales[0], state.value_coefficients[0]
    gamma = scales[0] * (start.signal_gram[:, : samples * tokens] @ added)
    rho = scales * (state.gram[0] @ added).view(samples, tokens)
    return ValueCoefficients(gamma, rho[:, 1:])


def step_coefficients(state: TokenSpace, now: Pass, start: Start) -> StepCoefficients:
    """Return α and β of the step that follows the forward pass `now`."""
    samples, tokens = state.labels.shape[1], state.scales.shape[1]
    scales, on_scores = state.scales[0], state.pull(now, state.learning_rate).on_scores[0]
    signal = start.signal_gram[:, : samples * tokens].view(2, samples, tokens)
    noise = state.gram[0].view(samples, tokens, samples, tokens)[:, 1]

    def added(gram: Tensor, scale: Tensor, pulls: Tensor) -> Tensor:
        return scale / scales * torch.einsum("anb,nbj->anj", gram, pulls)

    return StepCoefficients(
        alpha_signal=added(signal, scales[0], on_scores),
        alpha_noise=added(noise, scales[1], on_scores),
        beta_signal=added(signal, scales[0], on_scores.mT),
        beta_noise=added(noise, scales[1], on_scores.mT),
    )
