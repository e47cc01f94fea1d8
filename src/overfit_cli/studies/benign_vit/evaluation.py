"""What is measured of a trained cell on fresh samples, from its coefficients alone."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from overfit_cli.studies.benign_vit.assembly import stacked
from overfit_cli.studies.benign_vit.engine import Pass, TokenSpace, moved_values
from overfit_cli.studies.benign_vit.start import Start


def evaluate(state: TokenSpace, starts: Sequence[Start]) -> Pass:
    """Return the forward pass over each cell's test samples.

    Args:
        state: the cells as trained so far.
        starts: one start for each cell of `state`, in its order.
    """
    cells, tokens = state.scales.shape
    rows, width = state.query.shape[1:]
    samples = len(starts[0].test_labels)
    flat = (cells * samples, tokens, -1)
    gram = stacked([start.test_gram[:, :rows] for start in starts])

    def moved(initial: list[Tensor], coefficients: Tensor) -> Tensor:
        at_start = stacked([part[..., :width].flatten(0, 1) for part in initial])
        return torch.baddbmm(at_start, gram, coefficients).view(flat)

    query = moved([start.test_query for start in starts], state.query_coefficients)
    key = moved([start.test_key for start in starts], state.key_coefficients)
    outside = stacked([start.test_scores_outside(width) for start in starts])
    scores = torch.baddbmm(outside.flatten(0, 1), query, key.mT)
    value = moved_values(
        state.value_scale[:, None] * stacked([start.test_value.flatten() for start in starts]),
        gram,
        state.value_coefficients,
        state.value_gain,
    )
    labels = stacked([start.test_labels for start in starts])
    by_sample = (cells, samples, tokens)
    return state.read_out(scores.view(*by_sample, tokens), value.view(by_sample), labels)


def signal_values(state: TokenSpace, starts: Sequence[Start]) -> Tensor:
    """Return μ±ᵀ W_V w_O of each cell, (cells, 2), given one start for each."""
    rows = state.value.shape[1]
    initial = state.value_scale[:, None] * stacked([start.signal_value for start in starts])
    gram = stacked([start.signal_gram[:, :rows] for start in starts])
    moved = moved_values(initial, gram, state.value_coefficients, state.value_gain)
    return state.scales[:, :1] * moved
