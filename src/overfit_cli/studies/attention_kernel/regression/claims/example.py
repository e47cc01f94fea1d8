"""Section 4.2.2's example: a gradient of exactly zero at a loss of one, and how it is escaped."""

from __future__ import annotations

import pandas as pd

from overfit_cli.claim import Claim, Measurement
from overfit_cli.claims.cells import Values, unless_enough, values_in_words
from overfit_cli.studies.attention_kernel.regression.claims.selection import (
    OF_ONE_VALUE,
    SOURCE,
    judged_on,
    select,
    zero_in_words,
)

_SOURCE = f"{SOURCE}, section 4.2.2, example"
_SOFTMAX: Values = {"instance": "example", "kernel": "softmax"}
_GAUSSIAN: Values = {"instance": "example", "kernel": "gaussian"}


def _vanishing_gradient(cells: pd.DataFrame) -> Measurement:
    """Measure softmax attention's gradient and loss where both token values are equal."""
    gradients = cells[["gradient_query_start", "gradient_key_start"]]
    largest = float(gradients.to_numpy(dtype=float).max())
    start, end = cells["start_loss"].astype(float), cells["train_loss"].astype(float)
    constant = bool((start == end).all()) and bool((start == 1).all())
    return Measurement(
        "holds" if largest == 0 and constant else "fails",
        f"The largest gradient in W_Q and W_K over {len(cells)} cells is {largest:g}; the loss is "
        f"{start.min():g} to {start.max():g} at the start and {end.min():g} to {end.max():g} after "
        f"{int(cells['steps'].max())} steps.",
        largest,
    )


def _gaussian_gradient(cells: pd.DataFrame) -> Measurement:
    """Measure Gaussian attention's gradient where both token values are equal."""
    gradient = cells["gradient_query_start"].astype(float)
    return _over_cells(
        gradient,
        bool((gradient > 0).all()),
        f"The Gaussian kernel's gradient in W_Q is {gradient.min():.3g} to {gradient.max():.3g}; "
        f"{zero_in_words(cells)}.",
    )


def _escape(cells: pd.DataFrame) -> Measurement:
    """Measure softmax attention's gradient and final loss where the token values differ."""
    cells = select(cells, _SOFTMAX)
    cells = cells[(cells["value_gap"] > 0) & (cells["status"] == "done")]
    words = f"{values_in_words(_SOFTMAX)}, value_gap above 0"
    refusal = unless_enough(cells, words, OF_ONE_VALUE)
    if refusal is not None:
        return refusal
    gradient = cells["gradient_query_start"].astype(float)
    relative_loss = cells["relative_loss"].astype(float)
    by_gap = relative_loss.groupby(cells["value_gap"]).agg(["min", "max"])
    each = "; ".join(
        f"{low:.2g} to {high:.2g} at ε {gap:g}" for gap, (low, high) in by_gap.iterrows()
    )
    return _over_cells(
        gradient,
        bool((gradient > 0).all()) and bool((relative_loss < 1).all()),
        f"The gradient in W_Q is {gradient.min():.2g} to {gradient.max():.2g} over {len(cells)} "
        f"cells, and the final loss over the starting one is {each}.",
    )


def _over_cells(values: pd.Series[float], holds: bool, sentence: str) -> Measurement:
    """A measurement of the least of some cells' values."""
    low, high = float(values.min()), float(values.max())
    return Measurement("holds" if holds else "fails", sentence, low, low, high, "over cells")


CLAIMS = (
    Claim(
        name="example-gradient",
        source=_SOURCE,
        statement="Where both token values are equal, softmax attention's gradient in W_Q and W_K "
        "is zero at a loss above zero.",
        accepted="the gradients are exactly 0 in every cell, and the loss stays at exactly 1",
        measure=judged_on({**_SOFTMAX, "value_gap": 0}, _vanishing_gradient),
    ),
    Claim(
        name="example-gaussian",
        source=_SOURCE,
        statement="There Gaussian attention's gradient in W_Q is not zero.",
        accepted="above 0 in every cell",
        measure=judged_on({**_GAUSSIAN, "value_gap": 0}, _gaussian_gradient),
    ),
    Claim(
        name="example-escape",
        source=f"{_SOURCE}; ours",
        statement="Token values of 3 ± ε let softmax attention escape.",
        accepted="with ε > 0 every cell has a gradient above 0, and its loss falls",
        measure=_escape,
    ),
)
