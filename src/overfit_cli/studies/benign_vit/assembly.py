"""How cells and their starts become one state to train."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from overfit_cli.studies.benign_vit.engine import TokenSpace
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.scales import token_scales, weight_scales
from overfit_cli.studies.benign_vit.start import Start


def token_space(cells: Sequence[BenignVitParameters], starts: Sequence[Start]) -> TokenSpace:
    """Return the state at initialisation of cells of one shape, from each one's start."""
    first = starts[0]
    samples, tokens = cells[0].n, cells[0].tokens
    rows, width = samples * tokens, first.head_width(samples)
    query = stacked([start.query[:samples, :, :width].flatten(0, 1) for start in starts])
    key = stacked([start.key[:samples, :, :width].flatten(0, 1) for start in starts])
    strengths = [weight_scales(cell) for cell in cells]

    def per_cell(values: Sequence[object], dtype: torch.dtype = first.gram.dtype) -> Tensor:
        return torch.tensor(values, dtype=dtype, device=first.gram.device)

    output = per_cell([one.output for one in strengths])
    value_scale = output * per_cell([one.value for one in strengths])
    unit_value = stacked([start.value[:samples].flatten() for start in starts])
    value = value_scale[:, None] * unit_value
    return TokenSpace(
        which=torch.arange(len(cells), device=first.gram.device),
        scales=per_cell([token_scales(cell).tolist() for cell in cells]),
        labels=torch.stack(
            [start.labels_of(cell) for cell, start in zip(cells, starts, strict=True)]
        ),
        learning_rate=per_cell([cell.learning_rate for cell in cells]),
        epsilon=per_cell([cell.epsilon for cell in cells], torch.float64),  # not rounded up
        max_steps=per_cell([cell.max_steps for cell in cells], torch.float64),
        leap=per_cell([cell.leap for cell in cells], torch.float64),
        steps=per_cell([0] * len(cells), torch.float64),
        stride=per_cell([1] * len(cells), torch.float64),
        head_scale=per_cell([one.head for one in strengths]),
        value_scale=value_scale,
        value_gain=output**2 * per_cell([start.output_norm_squared for start in starts]),
        gram=stacked([start.gram[:rows, :rows] for start in starts]),
        initial_query=query,
        initial_key=key,
        initial_value=value,
        query=query.clone(memory_format=torch.contiguous_format),
        key=key.clone(memory_format=torch.contiguous_format),
        value=value,
        query_coefficients=torch.zeros(query.shape, dtype=query.dtype, device=query.device),
        key_coefficients=torch.zeros(key.shape, dtype=key.dtype, device=key.device),
        value_coefficients=torch.zeros(value.shape, dtype=value.dtype, device=value.device),
    )


def stacked(parts: Sequence[Tensor]) -> Tensor:
    """Stack along a new first axis; a view where all parts are one and the same memory."""
    first = parts[0]
    if all(part.data_ptr() == first.data_ptr() for part in parts):
        return first.expand(len(parts), *first.shape)
    return torch.stack(list(parts))
