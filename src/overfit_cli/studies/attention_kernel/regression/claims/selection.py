"""Selection of the cells that a claim is judged on, and how often their loss went to zero."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import pandas as pd

from overfit_cli.claim import Measurement, inconclusive, not_run
from overfit_cli.claims.comparison import LEAST_SEEDS, unless_one_value
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters

SOURCE = "Song et al. 2024"
ZERO = 1e-6
"""The share of its start at which a loss counts as having gone to zero."""

_FREE = ("kernel", "trained", "target", "heads", "learning_rate", "training_steps", "value_gap")
_OF_ONE_VALUE = ("target", "training_steps", "sigma_w", "dtype")

Measure = Callable[[pd.DataFrame], Measurement]
Values = dict[str, object]


def judged_on(values: Values, judge: Measure, *, any_target: bool = False) -> Measure:
    """Return what selects the cells with some values, and judges them if they are enough.

    Args:
        values: by parameter; a tuple stands for any of its values. The others are the defaults, or
            the example's, but for those in which cells of one claim may differ.
        judge: from the selected cells to the measurement.
        any_target: whether cells with different targets may be judged together.
    """

    def measure(cells: pd.DataFrame) -> Measurement:
        selected = select(cells, values)
        refusal = unless_enough(selected, in_words(values), ("target",) if any_target else ())
        return judge(selected) if refusal is None else refusal

    return measure


def select(cells: pd.DataFrame, values: Values) -> pd.DataFrame:
    """Return the cells with these values; see `judged_on`."""
    if values.get("instance") == "example":
        fixed: Values = {"trained": "query"}
    else:
        defaults = KernelRegressionParameters().model_dump()
        fixed = {name: value for name, value in defaults.items() if name not in _FREE}
        fixed["heads"] = 1
    keep = np.ones(len(cells), dtype=bool)
    for name, value in (fixed | values).items():
        keep &= cells[name].isin(value if isinstance(value, tuple) else (value,)).to_numpy()
    return cells[keep]


def in_words(values: Values) -> str:
    """Write values as they are set: `kernel=softmax, heads=1,2,4`."""
    each = {
        name: ",".join(map(str, value)) if isinstance(value, tuple) else value
        for name, value in values.items()
    }
    return ", ".join(f"{name}={value}" for name, value in each.items())


def unless_enough(
    cells: pd.DataFrame, words: str, may_vary: Collection[str] = ()
) -> Measurement | None:
    """Return why a claim isn't judged on these cells; None where it is.

    There are none, or fewer than three seeds, or a parameter varies that isn't in `may_vary`.
    """
    if cells.empty:
        return not_run(f"It needs cells of {words}.")
    refusal = unless_one_value(cells, [name for name in _OF_ONE_VALUE if name not in may_vary])
    seeds = cells["seed"].nunique()
    if refusal is None and seeds < LEAST_SEEDS:
        return inconclusive(f"There are {seeds} seeds of {words}: fewer than {LEAST_SEEDS}.")
    return refusal


def share_at_zero(cells: pd.DataFrame) -> pd.Series[float]:
    """Return the share of seeds whose loss went to zero by step size; a failed cell's did not."""
    zero = (cells["status"] == "done") & (cells["relative_loss"].astype(float) < ZERO)
    return zero.astype(float).groupby(cells["learning_rate"]).mean()


def zero_in_words(cells: pd.DataFrame) -> str:
    """Say at which step size how many of the seeds went to zero."""
    shares, seeds = share_at_zero(cells), cells["seed"].nunique()
    each = [f"{round(share * seeds)} at {rate:g}" for rate, share in shares.items()]
    return f"seeds below {ZERO:g} of their start, of {seeds}, by step size: {', '.join(each)}"
