"""Selection of the cells that a claim is judged on, and how often their loss went to zero."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from overfit_cli.claim import Measurement
from overfit_cli.claims.cells import (
    Values,
    at_defaults,
    at_values,
    unless_enough,
    values_in_words,
)
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters

SOURCE = "Song et al. 2024"
ZERO = 1e-6
"""The share of its start at which a loss counts as having gone to zero."""

_FREE = ("kernel", "trained", "target", "heads", "learning_rate", "training_steps", "value_gap")
OF_ONE_VALUE = ("target", "training_steps", "sigma_w", "dtype")

Measure = Callable[[pd.DataFrame], Measurement]


def judged_on(values: Values, judge: Measure, *, any_target: bool = False) -> Measure:
    """Return what selects the cells with some values, and judges them if they are enough.

    Args:
        values: by parameter. The others are the defaults, or the example's, but for those in which
            cells of one claim may differ.
        judge: from the selected cells to the measurement.
        any_target: whether cells with different targets may be judged together.
    """
    same = [name for name in OF_ONE_VALUE if not (any_target and name == "target")]

    def measure(cells: pd.DataFrame) -> Measurement:
        selected = select(cells, values)
        refusal = unless_enough(selected, values_in_words(values), same)
        return judge(selected) if refusal is None else refusal

    return measure


def select(cells: pd.DataFrame, values: Values) -> pd.DataFrame:
    """Return the cells with these values; see `judged_on`."""
    if values.get("instance") == "example":
        return at_values(cells, {"trained": "query", **values})
    return at_defaults(cells, KernelRegressionParameters, _FREE, {"heads": 1, **values})


def share_at_zero(cells: pd.DataFrame) -> pd.Series[float]:
    """Return the share of seeds whose loss went to zero by step size; a failed cell's did not."""
    zero = (cells["status"] == "done") & (cells["relative_loss"].astype(float) < ZERO)
    return zero.astype(float).groupby(cells["learning_rate"]).mean()


def zero_in_words(cells: pd.DataFrame) -> str:
    """Say at which step size how many of the seeds went to zero."""
    shares, seeds = share_at_zero(cells), cells["seed"].nunique()
    each = [f"{round(share * seeds)} at {rate:g}" for rate, share in shares.items()]
    return f"seeds below {ZERO:g} of their start, of {seeds}, by step size: {', '.join(each)}"
