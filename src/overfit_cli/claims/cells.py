"""Selection of the cells that a claim is judged on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
import pandas as pd

from overfit_cli.claim import Measurement, inconclusive, not_run
from overfit_cli.claims.rules import LEAST_SEEDS
from overfit_cli.parameters import StudyParameters

Values = Mapping[str, object]
"""Values of parameters; a tuple stands for any of its own."""


def at_values(cells: pd.DataFrame, values: Values) -> pd.DataFrame:
    """Return the cells that have these values of their parameters."""
    keep = np.ones(len(cells), dtype=bool)
    for name, value in values.items():
        keep &= cells[name].isin(value if isinstance(value, tuple) else (value,)).to_numpy()
    return cells[keep]


def at_defaults(
    cells: pd.DataFrame, model: type[StudyParameters], free: Collection[str], values: Values
) -> pd.DataFrame:
    """Return the cells with these values, and the defaults of all other parameters but `free`."""
    defaults = {name: value for name, value in model().model_dump().items() if name not in free}
    return at_values(cells, defaults | dict(values))


def values_in_words(values: Values) -> str:
    """Write values as they are set: `kernel=softmax, heads=1,2,4`."""
    each = {
        name: ",".join(map(str, value)) if isinstance(value, tuple) else value
        for name, value in values.items()
    }
    return ", ".join(f"{name}={value}" for name, value in each.items())


def varying(cells: pd.DataFrame, names: Iterable[str]) -> list[str]:
    """Return those of the columns that take several values, in their order."""
    return [name for name in names if cells[name].nunique() > 1]


def unless_one_value(cells: pd.DataFrame, names: Collection[str]) -> Measurement | None:
    """Return `not run` where any of the parameters `names` varies over the cells, else None."""
    several = ", ".join(varying(cells, names))
    return not_run(f"It needs cells of one value of {several}.") if several else None


def unless_enough(cells: pd.DataFrame, words: str, same: Collection[str]) -> Measurement | None:
    """Return why a claim isn't judged on these cells; None where it is.

    Args:
        cells: those that it is about.
        words: what they are.
        same: the parameters that may not vary.
    """
    if cells.empty:
        return not_run(f"It needs cells of {words}.")
    refusal = unless_one_value(cells, same)
    seeds = cells["seed"].nunique()
    if refusal is None and seeds < LEAST_SEEDS:
        return inconclusive(f"There are {seeds} seeds of {words}: fewer than {LEAST_SEEDS}.")
    return refusal


def whole_columns(cells: pd.DataFrame, x: str) -> pd.DataFrame:
    """Return the cells of the values of `x` at which most of a grid was run.

    A refined sweep has many more values, each with a few cells near the boundary: as parts of a
    grid they would count too much.
    """
    at_value = cells.groupby(x)[x].transform("size")
    chosen: pd.DataFrame = cells[at_value >= at_value.max() / 2]
    return chosen
