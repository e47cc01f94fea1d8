"""Which cells a claim is judged on, and how often their loss went to zero."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from overfit_cli.claim import Measurement
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters

SOURCE = "Song et al. 2024"
LEAST_SEEDS = 3
ZERO = 1e-6
"""The share of its start at which a loss counts as having gone to zero."""

_FREE = ("kernel", "trained", "target", "heads", "learning_rate", "training_steps", "value_gap")
_ALIKE = ("target", "training_steps", "sigma_w", "dtype")


def chosen(cells: pd.DataFrame, **values: object) -> pd.DataFrame:
    """Return the random instances of the demo's sizes with these values; one head if not said."""
    defaults = KernelRegressionParameters().model_dump()
    fixed = {name: value for name, value in defaults.items() if name not in _FREE}
    if "heads" not in values:
        fixed["heads"] = 1
    return _where(cells, fixed | values)


def example(cells: pd.DataFrame, **values: object) -> pd.DataFrame:
    """Return the example's cells with these values."""
    return _where(cells, {"instance": "example", "trained": "query", **values})


def _where(cells: pd.DataFrame, values: dict[str, object]) -> pd.DataFrame:
    keep = np.ones(len(cells), dtype=bool)
    for name, value in values.items():
        keep &= (cells[name] == value).to_numpy()
    return cells[keep]


def too_few(
    cells: pd.DataFrame, what: str, *, whatever: Collection[str] = ()
) -> Measurement | None:
    """Return why a claim isn't judged on these cells; None where it is.

    There are none, or fewer than three seeds, or a setting varies that isn't in `whatever`.
    """
    if cells.empty:
        return Measurement.without_value("not run", f"It needs cells of {what}.")
    mixed = [name for name in _ALIKE if name not in whatever and cells[name].nunique() > 1]
    if mixed:
        return Measurement.without_value(
            "not run", f"It needs cells of one value of {', '.join(mixed)}."
        )
    seeds = cells["seed"].nunique()
    if seeds < LEAST_SEEDS:
        return Measurement.without_value(
            "inconclusive", f"There are {seeds} seeds of {what}: fewer than {LEAST_SEEDS}."
        )
    return None


def zero_by_rate(cells: pd.DataFrame) -> pd.Series[float]:
    """Return the share of seeds whose loss went to zero by step size; a failed cell's did not."""
    zero = (cells["status"] == "done") & (cells["relative_loss"].astype(float) < ZERO)
    return zero.astype(float).groupby(cells["learning_rate"]).mean()


def shares_in_words(shares: pd.Series[float], seeds: int) -> str:
    """Say at which step size how many of the seeds went to zero."""
    each = [f"{round(share * seeds)} at {rate:g}" for rate, share in shares.items()]
    return f"seeds below {ZERO:g} of their start, of {seeds}, by step size: {', '.join(each)}"
