"""Arrays of numbers: their type, the finite numbers of a column, and the columns that vary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd


Floats = NDArray[np.float64]


def finite_column(cells: pd.DataFrame, column: str) -> pd.Series[float]:
    """Return a measured column of the cells that are done; nan where one has no finite number."""
    import pandas as pd

    numbers = pd.Series(cells[column].to_numpy(dtype=np.float64, na_value=np.nan), cells.index)
    return numbers.where((cells["status"] == "done") & np.isfinite(numbers))


def varying(cells: pd.DataFrame, names: Iterable[str]) -> list[str]:
    """Return those of the columns that take several values, in their order."""
    return [name for name in names if cells[name].nunique() > 1]
