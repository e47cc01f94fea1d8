"""Arrays of numbers: their type, Gaussian vectors in law, finite numbers and columns that vary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd


Floats = NDArray[np.float64]

LARGEST = 1e150
"""The largest number that is averaged and drawn: the squares of larger ones overflow."""


def finite_column(cells: pd.DataFrame, column: str) -> pd.Series[float]:
    """Return a measured column of done cells, nan for numbers beyond ±`LARGEST`."""
    import pandas as pd

    numbers = cells[column].to_numpy(dtype=np.float64, na_value=np.nan)
    known = (cells["status"] == "done").to_numpy(dtype=bool) & (np.abs(numbers) <= LARGEST)
    return pd.Series(np.where(known, numbers, np.nan), cells.index)


def varying(cells: pd.DataFrame, names: Iterable[str]) -> list[str]:
    """Return those of the columns that take several values, in their order."""

    def varies(column: pd.Series[Any]) -> bool:
        if column.dtype.kind not in "biuf":
            return column.nunique() > 1
        values = column.to_numpy()  # without counting, which is slow
        known = values[~np.isnan(values)]
        return bool((known != known[:1]).any())

    return [name for name in names if varies(cells[name])]


def bartlett_rows(
    normals: np.random.Generator,
    lengths: np.random.Generator,
    rows: int,
    dimension: int,
    before: int = 0,
) -> Floats:
    """Draw standard normal vectors up to a rotation, (rows, min(before + rows, dimension)).

    The result L is lower triangular: row i has standard normal parts along the axes of the `before`
    + i rows before it, and along its own the square root of a chi-square number with `dimension` −
    `before` − i degrees of freedom. Then L Lᵀ has the law of Z Zᵀ with Z of shape (rows,
    dimension), entries standard normal. More rows extend fewer.
    """
    width = min(before + rows, dimension)
    factor = np.zeros((rows, width))  # (rows, min(before + rows, dimension))
    for row in range(rows):
        axis = before + row
        factor[row, :axis] = normals.standard_normal(min(axis, width))
        if axis < width:
            factor[row, axis] = np.sqrt(lengths.chisquare(dimension - axis))
    return factor
