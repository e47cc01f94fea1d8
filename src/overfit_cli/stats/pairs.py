"""Cells of two tables paired by their parameters, and by seed where both have it.

Also what pairing needs: the spacing of values, numbers between the points of a grid, and the best
value of a swept parameter for each setting of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray


def by_ratio(values: ArrayLike) -> bool:
    """Return whether logarithms space ascending values more evenly; never of fewer than three."""
    at = np.asarray(values, dtype=np.float64)
    if at.size < 3 or at[0] <= 0:
        return False
    gaps, ratios = np.diff(at), np.diff(np.log(at))
    return bool(ratios.std() / ratios.mean() < gaps.std() / gaps.mean())


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


def interpolate(
    cells: pd.DataFrame,
    points: pd.DataFrame,
    axes: Mapping[str, bool],
    settings: Sequence[str],
    columns: Sequence[str],
) -> pd.DataFrame:
    """Return cells at points between those of a table, seed by seed, with linear numbers.

    Args:
        cells: one row per cell, with `seed`, `status`, the parameters and the columns.
        points: one row per point, with the parameters.
        axes: the parameters along which is interpolated, and whether in their logarithm.
        settings: the parameters whose values must be those of a point.
        columns: the measured columns.

    Returns:
        A row for each seed and point with a number in some column. There is none beyond a seed's
        cells, and beside one that failed or is missing.
    """
    by_setting = dict(list(points.groupby(places(points, settings))))
    grids = [
        _interpolate_grid(grid, by_setting[setting], axes, settings, columns)
        for (_, setting), grid in cells.groupby([cells["seed"], places(cells, settings)])
        if setting in by_setting
    ]
    with_rows = [rows for rows in grids if len(rows)]
    return pd.concat(with_rows) if with_rows else cells.iloc[:0]


def _interpolate_grid(
    cells: pd.DataFrame,
    points: pd.DataFrame,
    axes: Mapping[str, bool],
    settings: Sequence[str],
    columns: Sequence[str],
) -> pd.DataFrame:
    """Interpolate the cells of one seed and one setting."""
    from scipy.interpolate import RegularGridInterpolator

    coordinates = [_rounded(cells[name]) for name in axes]
    levels = [np.unique(values) for values in coordinates]
    if min(map(len, levels)) < 2:
        return points.iloc[:0]
    grid = np.full([*map(len, levels), len(columns)], np.nan)
    index = tuple(map(np.searchsorted, levels, coordinates))
    grid[index] = np.column_stack([finite(cells, column) for column in columns])
    scaled = [_scale(x, log) for x, log in zip(levels, axes.values(), strict=True)]
    targets = [_scale(_rounded(points[name]), log) for name, log in axes.items()]
    linear = RegularGridInterpolator(scaled, grid, bounds_error=False, fill_value=np.nan)
    rows = cells.iloc[[0] * len(points)].set_index(points.index)  # what doesn't vary
    rows = rows.assign(**{name: points[name] for name in [*axes, *settings]}, status="done")
    rows[list(columns)] = linear(np.column_stack(targets))
    known: pd.DataFrame = rows[rows[list(columns)].notna().any(axis=1)]
    return known


def _rounded(values: pd.Series[Any]) -> NDArray[np.float64]:
    """Values of a parameter as numbers, to the digits by which places are told apart."""
    return np.array([float(as_place(float(value))) for value in values])


def _scale(values: NDArray[np.float64], logarithmic: bool) -> NDArray[np.float64]:
    """Return values on the scale of an axis; nan for what has no logarithm."""
    if not logarithmic:
        return values
    scaled: NDArray[np.float64] = np.full_like(values, np.nan)
    return np.log(values, out=scaled, where=values > 0)


def best_of_sweep(cells: pd.DataFrame, swept: str, others: list[str], best_in: str) -> pd.DataFrame:
    """Return the cells at the best value of a swept parameter, for each setting of `others`.

    Args:
        cells: one row per cell.
        swept: the parameter, such as `learning_rate`.
        others: the parameters whose settings each have a best value of their own.
        best_in: the column whose mean over seeds is lowest at the best value, among the values at
            which the fewest cells failed.
    """
    failed = (cells["status"] == "failed").groupby([cells[name] for name in [*others, swept]])
    means = cells[best_in].groupby([cells[name] for name in [*others, swept]]).mean()
    table = pd.DataFrame({"failed": failed.sum(), best_in: means}).reset_index()
    ranked = table.sort_values(["failed", best_in])
    best = ranked.drop_duplicates(others) if others else ranked.head(1)
    return cells.merge(best[[*others, swept]], on=[*others, swept])
