"""Cells of two tables paired by their parameters, and by seed where both have it.

Also the spacing of values, and the best value of a swept parameter for each setting of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from overfit_cli.core.arrays import finite_column
from overfit_cli.core.text import brief


def is_log_spaced(values: ArrayLike) -> bool:
    """Return whether at least three ascending values are spaced more evenly on a log scale."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.size < 3 or numbers[0] <= 0:
        return False
    gaps, ratios = np.diff(numbers), np.diff(np.log(numbers))
    return bool(ratios.std() / ratios.mean() < gaps.std() / gaps.mean())


DIGITS = 12
"""Real numbers that agree to so many digits are one value of a parameter."""

Kind = Literal["seed", "means", "point"]


@dataclass(frozen=True)
class Pairs:
    """Rows of two tables that have a counterpart in the other.

    A place is a setting of the parameters, with its seed where seeds are paired.

    Attributes:
        left, right: the rows; those at one position of both are a pair.
        by: `seed` where cells of one seed are paired, `means` where means over seeds are, and
            `point` where one table has no seeds: each seed of the other has its point.
        keys: the columns in which the rows of a pair agree, `seed` last where seeds are paired.
        here, there: the number of places of the left table, and of the right one.
        both: the number of places that both have.
        seeds: how many seeds both tables have, where means over them are paired.
    """

    left: pd.DataFrame
    right: pd.DataFrame
    by: Kind
    keys: Sequence[str]
    here: int
    there: int
    both: int
    seeds: tuple[int, ...] = ()


def pair_up(
    left: pd.DataFrame, right: pd.DataFrame, names: Sequence[str], columns: Sequence[str]
) -> Pairs:
    """Pair the cells of two tables.

    Tables without a common seed are paired by their means over seeds.

    Args:
        left, right: one row per cell, with `seed`, `status`, the parameters and the columns; points
            have no `seed`.
        names: the parameters whose values the cells of a pair share.
    """
    kind: Kind = "point"
    seeds = tuple[int, ...]()
    if "seed" in left and "seed" in right:
        kind = "seed" if left["seed"].isin(right["seed"]).any() else "means"
    if kind == "means":
        seeds = tuple(int(table["seed"].nunique()) for table in (left, right))
        left, right = (_seed_means(table, names, columns) for table in (left, right))
    keys = [*names, "seed"] if kind == "seed" else list(names)
    left_keys, right_keys = setting_keys(left, keys), setting_keys(right, keys)
    matches = _numbered(left_keys).merge(_numbered(right_keys), on="key", suffixes=("", "_right"))
    if "seed" not in right:
        matches = matches.sort_values("row_right", kind="stable")  # points stay in their order
    return Pairs(
        left.iloc[matches["row"]].reset_index(drop=True),
        right.iloc[matches["row_right"]].reset_index(drop=True),
        kind,
        keys,
        here=left_keys.nunique(),
        there=right_keys.nunique(),
        both=matches["key"].nunique(),
        seeds=seeds,
    )


def setting_keys(cells: pd.DataFrame, names: Sequence[str]) -> pd.Series[Any]:
    """Return the values of some columns, rounded to `DIGITS` digits, as a tuple for each cell."""
    texts = [cells[name].map(setting_key) for name in names]
    tuples = list(zip(*texts, strict=True)) or [()] * len(cells)
    return pd.Series(tuples, index=cells.index, dtype=object)


def setting_key(value: Any) -> Any:
    """Return a value of a parameter as a key: a real number as a text of `DIGITS` digits."""
    return brief(value, DIGITS) if isinstance(value, float) else value


NEAR = 1e-6
"""A printed value of a parameter that agrees with one of a run to this share is that one."""


def nearest_values(printed: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Return real numbers with the nearest value in place of those that agree to `NEAR`."""
    known, numbers = np.array(values, dtype=np.float64), np.array(printed, dtype=np.float64)
    if not known.size:
        return list(printed)
    nearest = known[np.abs(known[:, None] - numbers).argmin(axis=0)]
    agrees = np.abs(numbers - nearest) <= NEAR * np.abs(nearest)
    return [float(number) for number in np.where(agrees, nearest, numbers)]


def _numbered(keys: pd.Series[Any]) -> pd.DataFrame:
    return pd.DataFrame({"key": keys.to_numpy(), "row": np.arange(len(keys))})


def _seed_means(cells: pd.DataFrame, names: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    settings = setting_keys(cells, names)
    means = {
        name: finite_column(cells, name).groupby(settings).transform("mean") for name in columns
    }
    has_no_mean = pd.DataFrame(means).isna().all(axis=1)
    cells = cells.assign(**means, status=np.where(has_no_mean, "failed", "done"))
    return cells[~settings.duplicated()].reset_index(drop=True)


def best_of_sweep(
    cells: pd.DataFrame, swept: str, grouping: list[str], *criteria: str
) -> pd.DataFrame:
    """Return the cells at the best value of a swept parameter, for each setting of `grouping`.

    Args:
        grouping: the parameters whose settings each have their own best value.
        criteria: the column whose mean over seeds is lowest at the best value, among the values at
            which the fewest cells failed; further ones decide where means of the ones before are
            equal.
    """
    settings = [cells[name] for name in [*grouping, swept]]
    table = cells[list(criteria)].groupby(settings).mean()
    ranked = table.assign(failed=(cells["status"] != "done").groupby(settings).sum()).reset_index()
    order = ranked[swept].rank(method="dense")
    ranked["outer"] = (order - order.median()).abs()  # of equal ones the best is no edge
    ranked = ranked.sort_values(["failed", *criteria, "outer"])
    best = ranked.drop_duplicates(grouping) if grouping else ranked.head(1)
    places = setting_keys(best, [*grouping, swept])
    return cells[setting_keys(cells, [*grouping, swept]).isin(places)]
