"""Cells of two tables paired by the values of their parameters, and by seed where both have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

DIGITS = 12
"""Real numbers that agree to so many digits are one value of a parameter."""

By = Literal["seed", "means", "point"]


@dataclass(frozen=True)
class Pairs:
    """Rows of two tables that have their counterpart in the other.

    Attributes:
        left, right: the rows; those at one position of both are a pair.
        by: what pairs have in common beside the parameters: the `seed`; nothing, where `means`
            over seeds are paired; nothing either where the right side has no seeds and every seed
            of the left is paired with its `point`.
        here, there: how many places (cells, where seeds are paired) the left and the right have.
        both: how many of those both have.
    """

    left: pd.DataFrame
    right: pd.DataFrame
    by: By
    here: int
    there: int
    both: int


def pair_up(
    left: pd.DataFrame, right: pd.DataFrame, names: Sequence[str], columns: Sequence[str]
) -> Pairs:
    """Pair the cells of two tables.

    Where they have no seed in common, a cell stands for all seeds of its place: its columns are
    their means.

    Args:
        left: one row per cell, with `seed`, `status`, the parameters and the columns.
        right: the same; a table of points has no `seed`.
        names: the parameters whose values pairs share.
        columns: the measured columns.
    """
    by = _by(left, right)
    if by == "means":
        left, right = (_over_seeds(table, names, columns) for table in (left, right))
    keys = [*names, "seed"] if by == "seed" else list(names)
    one, other = places(left, keys), places(right, keys)
    at = _positions(one).merge(_positions(other), on="place", suffixes=("", "_right"))
    if by == "point":
        at = at.sort_values("at_right", kind="stable")  # points stay in their order
    return Pairs(
        left.iloc[at["at"]].reset_index(drop=True),
        right.iloc[at["at_right"]].reset_index(drop=True),
        by,
        here=one.nunique(),
        there=other.nunique(),
        both=at["place"].nunique(),
    )


def places(cells: pd.DataFrame, names: Sequence[str]) -> pd.Series[Any]:
    """Return what says the same of a cell and of its counterpart, as a tuple for each cell."""
    texts = [cells[name].map(as_place) for name in names]
    tuples = list(zip(*texts, strict=True)) or [()] * len(cells)
    return pd.Series(tuples, index=cells.index, dtype=object)


def as_place(value: Any) -> Any:
    """Return what a value of a parameter has in common with one that agrees to `DIGITS` digits."""
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else value


def finite(cells: pd.DataFrame, column: str) -> pd.Series[float]:
    """Return a measured column of the cells that are done; nan where one has no finite number."""
    numbers = pd.Series(cells[column].to_numpy(dtype=np.float64, na_value=np.nan), cells.index)
    return numbers.where((cells["status"] == "done") & np.isfinite(numbers))


def _by(left: pd.DataFrame, right: pd.DataFrame) -> By:
    if "seed" not in right:
        return "point"
    return "seed" if set(left["seed"]) & set(right["seed"]) else "means"


def _positions(place: pd.Series[Any]) -> pd.DataFrame:
    return pd.DataFrame({"place": place.to_numpy(), "at": np.arange(len(place))})


def _over_seeds(cells: pd.DataFrame, names: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """One row for each place, with the means of the cells that are done; failed where none is."""
    place = places(cells, names)
    means = {name: finite(cells, name).groupby(place).transform("mean") for name in columns}
    without = pd.DataFrame(means).isna().all(axis=1)
    cells = cells.assign(**means, status=np.where(without, "failed", "done"))
    return cells[~place.duplicated()].reset_index(drop=True)
