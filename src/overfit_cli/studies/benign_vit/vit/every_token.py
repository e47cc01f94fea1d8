"""The propositions of the proofs about every token, sample and key: the worst case at each step.

The propositions B(t) to I(t) of appendix D and J(t) to Q(t) of appendix E (Jiang et al. 2024) hold
for all n, i and j. A logged step has the least or the most over them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from overfit_cli.studies.benign_vit.vit.engine import ForwardPass
from overfit_cli.studies.benign_vit.vit.parameters import TOKEN_CLASSES
from overfit_cli.studies.benign_vit.vit.true_scale import TrueScaleTokens


def every_token_row(
    tokens: TrueScaleTokens, now: ForwardPass, before: ForwardPass | None
) -> dict[str, float]:
    """Return the columns of a logged step of the only cell."""
    return {**_gaps(now), **_rises(now, before), **_products(tokens, now), **_values(tokens)}


def _gaps(now: ForwardPass) -> dict[str, float]:
    """Λ and Ψ of a query: its score with the signal, or with token 2, less any other.

    The least over samples, keys and the queries of a class; nan without such a token.
    """
    scores = now.scores[0]  # ⟨q_i, k_j⟩, (samples, tokens, tokens)
    others = torch.cat(
        [scores[:, :, :1], scores[:, :, 2:]], dim=-1
    )  # (samples, tokens, tokens − 1)
    gaps = {
        "signal_gap": (scores[:, :, :1] - scores[:, :, 1:]).amin((0, 2)),  # Λ, (tokens,)
        "noise_gap": (scores[:, :, 1:2] - others).amin((0, 2)),  # Ψ, (tokens,)
    }
    classes = (slice(0, 1), slice(1, 2), slice(2, None))
    return {
        f"{name}_{source}": float(least[part].min()) if len(least[part]) else math.nan
        for name, least in gaps.items()
        for source, part in zip(TOKEN_CLASSES, classes, strict=True)
    }


def _rises(now: ForwardPass, before: ForwardPass | None) -> dict[str, float]:
    """By how much scores moved since the last logged step as a proposition says, the least.

    D(t) and H(t): scores with the signal's key rise, and those with noise keys fall. L(t) and P(t):
    those with token 2's key rise at least twice as much as any other.
    """
    if before is None:
        return {"signal_score_rise": math.nan, "noise_score_rise": math.nan}
    moved = (now.scores - before.scores)[0]  # (samples, tokens, tokens)
    others = torch.cat([moved[:, :, :1], moved[:, :, 2:]], dim=-1)  # (samples, tokens, tokens − 1)
    return {
        "signal_score_rise": float(torch.minimum(moved[:, :, 0].min(), -moved[:, :, 1:].max())),
        "noise_score_rise": float((moved[:, :, 1:2] - 2 * others).min()),
    }


def _products(tokens: TrueScaleTokens, now: ForwardPass) -> dict[str, float]:
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
        "head_norm_least": float(growth.min()),
        "head_norm_most": float(growth.max()),
        "stray_product_move": float(torch.stack(moves).max()),
        "score_most": float(scores.abs().max()),
        "score_range_most": float((scores.amax(-1) - scores.amin(-1)).max()),
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


def _values(tokens: TrueScaleTokens) -> dict[str, float]:
    """Values of what loses on either side, the most, and of token 2 with its label, the least."""
    values, signals = tokens.values()[0], tokens.signal_values()[0]  # (samples, tokens), (2,)
    sizes = values.abs()  # (samples, tokens)
    rest = torch.cat([signals.abs(), sizes[:, 2:].flatten()])  # (2 + samples · (tokens − 2),)
    return {
        "noise_value_most": float(sizes[:, 1:].max()),
        "rest_value_most": float(rest.max()),
        "strong_value_least": float((tokens.labels[0] * values[:, 1]).min()),
    }
