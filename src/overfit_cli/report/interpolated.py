"""Interpolation of a run at the points of another, seed by seed.

Between the cells of a seed, numbers are linear along each axis, or along its logarithm where its
values are spaced by ratio. Beyond the cells, and beside a gap in them, nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from overfit_cli.core.arrays import Floats, finite_column
from overfit_cli.core.parameters import describe
from overfit_cli.core.text import BadValue
from overfit_cli.report.sides import Side
from overfit_cli.stats.pairs import (
    DIGITS,
    is_log_spaced,
    multilinear,
    setting_keys,
)


@dataclass(frozen=True)
class Interpolated:
    """A run's cells, and what lies between them.

    Attributes:
        cells: the run's own, and one for each seed and each point where it has none; its numbers
            are interpolated.
        points: how many points the other side has.
        between: at how many of those the numbers are interpolated.
        unknown: how many lie beyond the run's grid, or beside a gap in it.
        axes: along what is interpolated, and whether in the logarithm.
    """

    cells: pd.DataFrame
    points: int
    between: int
    unknown: int
    axes: Mapping[str, bool]


def interpolate(a: Side, b: Side, names: Sequence[str], columns: Sequence[str]) -> Interpolated:
    """Interpolate measured columns of A at those points of B where A has no cells, seed by seed.

    Along an axis whose values are spaced by ratio the logarithm is taken. Beyond the cells of a
    seed, and beside one that failed or is missing, nothing is known.

    Args:
        a: a run.
        b: another run, or published points.
        names: the parameters that make a point. A is interpolated between the values of those that
            are numbers and vary in A; the others must agree.
        columns: the measured columns.

    Raises:
        UserError: if no number varies in A.
    """
    kinds = describe(a.study.parameters)
    axes = [
        name
        for name in names
        if name in kinds and kinds[name].kind in ("int", "float") and len(a.values(name)) > 1
    ]
    if not axes:
        lack = "no number varies in A, so nothing lies between its cells."
        raise BadValue("interpolate", None, lack)
    cells, points = a.cells[[*a.parameters, "seed", "status", *columns]], b.cells
    logarithmic = {name: is_log_spaced(np.unique(_rounded(cells[name]))) for name in axes}
    settings = [name for name in names if name not in axes]
    place, present = setting_keys(points, names), set(setting_keys(cells, names))
    wanted = points[~place.isin(present) & ~place.duplicated()]
    by_setting = dict(list(wanted.groupby(setting_keys(wanted, settings))))
    made = [
        _of_one_seed(group, by_setting[at], names, logarithmic, columns)
        for _, of_seed in cells.groupby("seed")
        for at, group in of_seed.groupby(setting_keys(of_seed, settings))
        if at in by_setting
    ]
    known = [rows for rows in made if len(rows)]
    found = len(set(setting_keys(pd.concat(known), names))) if known else 0
    return Interpolated(
        pd.concat([cells, *known], ignore_index=True),
        points=place.nunique(),
        between=found,
        unknown=len(wanted) - found,
        axes=logarithmic,
    )


def _of_one_seed(
    cells: pd.DataFrame,
    points: pd.DataFrame,
    names: Sequence[str],
    logarithmic: Mapping[str, bool],
    columns: Sequence[str],
) -> pd.DataFrame:
    """The points between one seed's cells, those at which some column is known."""
    axes = {name: np.unique(_rounded(cells[name])) for name in logarithmic}
    if min(map(len, axes.values())) < 2:
        return points.iloc[:0]
    at = tuple(np.searchsorted(axis, _rounded(cells[name])) for name, axis in axes.items())
    scaled = [_scaled(axis, logarithmic[name]) for name, axis in axes.items()]
    where = [_scaled(_rounded(points[name]), log) for name, log in logarithmic.items()]
    rows = cells.iloc[[0] * len(points)].set_index(points.index)  # what doesn't vary
    rows = rows.assign(**{name: points[name] for name in names}, status="done")
    for column in columns:
        grid = np.full([len(axis) for axis in scaled], np.nan)
        grid[at] = finite_column(cells, column)
        rows[column] = multilinear(scaled, grid, np.column_stack(where))
    known: pd.DataFrame = rows[rows[list(columns)].notna().any(axis=1)]
    return known


def _rounded(values: Any) -> Floats:
    """Values of a parameter by which places are told apart, in order of the rows."""
    return np.array([float(f"{value:.{DIGITS}g}") for value in values], dtype=np.float64)


def _scaled(values: Floats, logarithmic: bool) -> Floats:
    """Values on the scale along which is interpolated; nan for what has no logarithm."""
    if not logarithmic:
        return values
    positive = values > 0
    return np.where(positive, np.log(np.where(positive, values, 1.0)), np.nan)
