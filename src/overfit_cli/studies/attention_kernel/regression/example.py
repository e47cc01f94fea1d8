"""Section 4.2.2's example: a gradient of exactly zero at a loss of one, and how it is escaped."""

from __future__ import annotations

import pandas as pd

from overfit_cli.claim import Measurement
from overfit_cli.studies.attention_kernel.regression.selection import (
    example,
    shares_in_words,
    too_few,
    zero_by_rate,
)


def vanishing(cells: pd.DataFrame) -> Measurement:
    """Measure softmax attention's gradient and loss where both token values are equal."""
    cells = example(cells, kernel="softmax", value_gap=0.0)
    refusal = too_few(cells, "instance=example, kernel=softmax, value_gap=0")
    if refusal is not None:
        return refusal
    gradients = cells[["gradient_query_start", "gradient_key_start"]]
    largest = float(gradients.to_numpy(dtype=float).max())
    start, end = cells["start_loss"].astype(float), cells["train_loss"].astype(float)
    still = bool((start == end).all()) and bool((start == 1).all())
    return Measurement(
        "holds" if largest == 0 and still else "fails",
        largest,
        None,
        None,
        f"The largest gradient in W_Q and W_K over {len(cells)} cells is {largest:g}; the loss is "
        f"{start.min():g} to {start.max():g} at the start and {end.min():g} to {end.max():g} after "
        f"{int(cells['steps'].max())} steps.",
    )


def gaussian_moves(cells: pd.DataFrame) -> Measurement:
    """Measure Gaussian attention's gradient where both token values are equal."""
    cells = example(cells, kernel="gaussian", value_gap=0.0)
    refusal = too_few(cells, "instance=example, kernel=gaussian, value_gap=0")
    if refusal is not None:
        return refusal
    gradient = cells["gradient_query_start"].astype(float)
    shares, seeds = zero_by_rate(cells), cells["seed"].nunique()
    return Measurement(
        "holds" if (gradient > 0).all() else "fails",
        float(gradient.min()),
        float(gradient.min()),
        float(gradient.max()),
        f"The Gaussian kernel's gradient in W_Q is {gradient.min():.3g} to {gradient.max():.3g}; "
        f"{shares_in_words(shares, seeds)}.",
        "over cells",
    )


def escape(cells: pd.DataFrame) -> Measurement:
    """Measure softmax attention's gradient and fall where the token values are set apart."""
    cells = example(cells, kernel="softmax")
    cells = cells[(cells["value_gap"] > 0) & (cells["status"] == "done")]
    refusal = too_few(cells, "instance=example, kernel=softmax, value_gap above 0")
    if refusal is not None:
        return refusal
    gradient, fall = (
        cells["gradient_query_start"].astype(float),
        cells["relative_loss"].astype(float),
    )
    by_gap = cells.assign(fall=fall).groupby("value_gap")["fall"].agg(["min", "max"])
    each = "; ".join(
        f"{low:.2g} to {high:.2g} at ε {gap:g}" for gap, (low, high) in by_gap.iterrows()
    )
    escaped = bool((gradient > 0).all()) and bool((fall < 1).all())
    return Measurement(
        "holds" if escaped else "fails",
        float(gradient.min()),
        float(gradient.min()),
        float(gradient.max()),
        f"The gradient in W_Q is {gradient.min():.2g} to {gradient.max():.2g} over {len(cells)} "
        f"cells, and the final loss over the starting one is {each}.",
        "over cells",
    )
