"""Local minima in W_Q: the tokens whose query is stationary though another would serve it better.

Where token rows are independent (D ≥ N n) each query is free, so that each token has its own loss.
Its outputs over all queries are an interval, as they are continuous: a label between two of them is
reached by some query. Nothing of it is in the paper.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from overfit_cli.studies.attention_kernel.attention import attention
from overfit_cli.studies.attention_kernel.regression.engine import (
    Constants,
    ForwardPass,
    Projections,
)
from overfit_cli.studies.attention_kernel.regression.tangent import sensitivities

QUERIES = 4096
"""Queries that are tried for each sample and head."""

SMALLEST_SCORE, LARGEST_SCORE = 0.1, 100.0
"""How large the scores of these queries are, about; their logarithms are uniform in between."""

STATIONARY = 1e-6
"""A query is stationary where its output changes by less than this share of what it could."""

SATURATED = 0.999
"""Attention has saturated where a key has more of a head's: the minimum is then at infinity."""

OFF = 0.01
"""A label is missed by this share of the interval of outputs, or more."""


def share_at_minimum(fixed: Constants, state: Projections, out: ForwardPass, index: int) -> float:
    """Return the share of a cell's tokens whose queries are at a local minimum above zero.

    Each such query is stationary and not saturated, its output misses the label, and some queries
    of those tried give more than the label and others less.
    """
    cell = slice(index, index + 1)
    state = Projections(state.query[cell], state.key[cell], state.value[cell])
    out = ForwardPass(out.attention[cell], out.residual[cell], out.loss[cell])
    low, high = reached_outputs(fixed, state)  # each (1, samples, 1)
    labels, width = fixed.labels[cell], high - low
    inside = (low < labels) & (labels < high)  # (1, samples, tokens)
    missed = out.residual.abs() > OFF * width
    change = sensitivities(fixed, state, out).norm(dim=-1).amax(1)  # (1, samples, tokens)
    longest = state.key.norm(dim=-1).amax((1, 3))[..., None] / math.sqrt(state.key.shape[-1])
    is_stationary = change < STATIONARY * width * longest
    total = out.attention.sum(-1)  # (1, heads, samples, tokens)
    is_spread = (out.attention.amax(-1) < SATURATED * total).all(1)  # (1, samples, tokens)
    return float((inside & missed & is_stationary & is_spread).double().mean())


def reached_outputs(fixed: Constants, state: Projections) -> tuple[Tensor, Tensor]:
    """Return the least and the largest output of the queries tried, each (cells, samples, 1).

    With several heads each has its own query, so that their least and largest outputs add up.
    """
    *sizes, _, width = state.key.shape  # (cells, heads, samples)
    random = torch.Generator().manual_seed(0)
    directions = torch.randn((QUERIES, width), generator=random, dtype=torch.float64)
    shares = torch.rand((QUERIES, 1), generator=random, dtype=torch.float64)
    tried = directions * SMALLEST_SCORE * (LARGEST_SCORE / SMALLEST_SCORE) ** shares
    length = state.key.square().mean((-1, -2), keepdim=True).sqrt()  # (cells, heads, samples, 1, 1)
    queries = tried.to(state.key).expand(*sizes, -1, -1) / length
    S = attention(fixed.kernel, queries, state.key)  # (cells, heads, samples, queries, tokens)
    outputs = (S @ state.value[..., None]).squeeze(-1)  # (cells, heads, samples, queries)
    return outputs.amin(-1).sum(1)[..., None], outputs.amax(-1).sum(1)[..., None]
