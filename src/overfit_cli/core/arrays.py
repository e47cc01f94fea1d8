"""Arrays of numbers: their type, the finite numbers of a column, and the columns that vary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd


Floats = NDArray[np.float64]

LARGEST = 1e150
"""The largest number that is averaged and drawn: the squares of larger ones overflow."""


def finite_column(cells: pd.DataFrame, column: str) -> pd.Series[float]:
    """Return a measured column of the cells that are done.

    It is nan where a cell has no number, or one beyond ±`LARGEST`, as a training that diverges
    has.
    """
    import pandas as pd

    numbers = pd.Series(cells[column].to_numpy(dtype=np.float64, na_value=np.nan), cells.index)
    return numbers.where((cells["status"] == "done") & (numbers.abs() <= LARGEST))


def without_overflow(rows: pd.DataFrame, columns: Iterable[str]) -> tuple[pd.DataFrame, int]:
    """Return rows with nan in place of numbers beyond ±`LARGEST`, and how many those are.

    Args:
        rows: cells or logged steps.
        columns: the measured columns; those that rows lack are ignored.
    """
    present = [name for name in columns if name in rows and rows[name].dtype.kind == "f"]
    too_large = rows[present].abs() > LARGEST
    count = int(too_large.to_numpy().sum())
    return (rows.assign(**rows[present].mask(too_large)), count) if count else (rows, 0)


def varying(cells: pd.DataFrame, names: Iterable[str]) -> list[str]:
    """Return those of the columns that take several values, in their order."""
    return [name for name in names if cells[name].nunique() > 1]
