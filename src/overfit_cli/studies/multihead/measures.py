"""Measurements of heads at a step: norms, attention, margins and alignments (figures 2 to 5)."""

from __future__ import annotations

import torch
from torch import Tensor

from overfit_cli.studies.multihead.engine import attention_scores, logits_of
from overfit_cli.studies.multihead.heads import Heads, full_matrices
from overfit_cli.studies.multihead.optimisers import squared_norm
from overfit_cli.studies.multihead.problem import Head

Columns = dict[str, Tensor]
"""Values of each cell, (cells,), by column."""


def sizes_of_heads(heads: Heads) -> Columns:
    """Return the averaged norms of W and U (figure 2): 1/H Σ ‖W_h‖ and H^(−1/2) Σ ‖U_h‖."""
    projection, attention = full_matrices(heads.weights)
    return {
        "norm_w": _over_heads(heads, _norms(attention)) / heads.heads,
        "norm_u": _over_heads(heads, _norms(projection)) / heads.heads.sqrt(),
    }


def margins(heads: Heads, least: Tensor) -> Columns:
    """Return the least margin over ‖Ũ‖_F, and over the averaged norm; nan where U is zero.

    Args:
        heads: the heads.
        least: the least of y Φ̃ over the training samples, (cells,).
    """
    projection, _ = full_matrices(heads.weights)
    whole = squared_norm({"projection": projection}, heads.counts).sqrt()
    averaged = _over_heads(heads, _norms(projection)) / heads.heads.sqrt()
    return {"margin": _over(least, whole), "margin_average": _over(least, averaged)}


def attention_on_relevant(heads: Heads, inputs: Tensor, relevant: Tensor) -> Tensor:
    """Return the softmax on relevant tokens, over all heads, tokens and samples, (cells,).

    Args:
        heads: the heads.
        inputs: X, shape (samples, tokens, features).
        relevant: shape (samples, tokens).
    """
    _, attention = full_matrices(heads.weights)
    weights = attention_scores(inputs, attention)  # (cells, classes, t, s, samples)
    on_relevant = (weights * relevant.T).sum(3).mean((2, 3))
    return _over_heads(heads, on_relevant) / heads.heads


def alignments(heads: Heads, planted: Head) -> Columns:
    """Return the cosines between all heads and the planted one repeated (figure 4's caption)."""
    projection, attention = full_matrices(heads.weights)
    found = {}
    for name, own, other in (
        ("alignment_w", attention, planted.attention),
        ("alignment_u", projection, planted.projection),
    ):
        target = torch.as_tensor(other).to(own)
        inner = _over_heads(heads, (own * target).sum((-2, -1)))
        whole = squared_norm({name: own}, heads.counts).sqrt()
        found[name] = _over(inner, whole * heads.heads.sqrt() * target.norm())
    return found


def spread_of_heads(heads: Heads) -> Tensor:
    """Return the distance of heads from their mean over the mean's length, at most, (cells,)."""
    parts = [one.flatten(2) for one in full_matrices(heads.weights)]
    each = torch.cat(parts, 2)  # (cells, classes, parameters)
    share = (heads.counts / heads.heads[:, None])[..., None]
    mean = (share * each).sum(1, keepdim=True)
    far = torch.where(heads.counts > 0, (each - mean).norm(dim=-1), 0.0).amax(1)
    return _over(far, mean.norm(dim=-1).squeeze(1))


def on_test(heads: Heads, inputs: Tensor, labels: Tensor) -> Columns:
    """Return the test loss and the share of test samples of the wrong sign."""
    projection, attention = full_matrices(heads.weights)
    found = labels * logits_of(inputs, projection, attention, heads.mixing)
    return {
        "test_loss": torch.nn.functional.softplus(-found).mean(-1),
        "test_error": wrong(found),
    }


def wrong(margins: Tensor) -> Tensor:
    """Return the share of margins that aren't positive; one of zero counts as half, (cells,)."""
    return ((margins < 0).to(margins) + (margins == 0).to(margins) / 2).mean(-1)


def _norms(matrices: Tensor) -> Tensor:
    return matrices.square().sum((-2, -1)).sqrt()


def _over_heads(heads: Heads, of_class: Tensor) -> Tensor:
    """Sum over heads of what each class has, (cells,)."""
    return (heads.counts * of_class).sum(-1)


def _over(number: Tensor, size: Tensor) -> Tensor:
    return torch.where(size > 0, number / size, torch.nan)
