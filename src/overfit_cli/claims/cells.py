"""Selection of the cells that a claim is judged on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from overfit_cli.parameters import Value


def at_values(cells: pd.DataFrame, values: Mapping[str, Value]) -> pd.DataFrame:
    """Return the cells that have these values of their parameters."""
    return cells[np.logical_and.reduce([cells[name] == value for name, value in values.items()])]


def varying(cells: pd.DataFrame, names: Iterable[str]) -> list[str]:
    """Return those of the columns that take several values, in their order."""
    return [name for name in names if cells[name].nunique() > 1]


def whole_columns(cells: pd.DataFrame, x: str) -> pd.DataFrame:
    """Return the cells of the values of `x` at which most of a grid was run.

    A refined sweep has many more values, each with a few cells near the boundary: as parts of a
    grid they would count too much.
    """
    at_value = cells.groupby(x)[x].transform("size")
    chosen: pd.DataFrame = cells[at_value >= at_value.max() / 2]
    return chosen
