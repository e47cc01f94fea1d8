"""The contour x ∝ y^p on which a measured column has a value, fitted seed by seed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from overfit_cli.analysis.crossings import crossing_table, crossings


@dataclass(frozen=True)
class Contour:
    """Where a column passes a threshold along x, for each value of y.

    Attributes:
        middle: the median of log x over seeds, indexed by y.
        powers: p of each seed, the slope of log x in log y.
        left_out: how many seeds don't pass it for every y, and have no p.
    """

    middle: pd.Series[float]
    powers: pd.Series[float]
    left_out: int

    def local_powers(self) -> dict[tuple[float, float], float]:
        """Return the power from each y to the next, of the medians."""
        at = self.middle.index.to_numpy(float)
        slopes = np.diff(self.middle) / np.diff(np.log(at))
        return dict(zip(pairwise(at.tolist()), slopes.tolist(), strict=True))


def contour(cells: pd.DataFrame, x: str, y: str, value: str, threshold: float) -> Contour | None:
    """Fit the contour on which `value` is `threshold`.

    Args:
        cells: one row per cell, failed ones too.
        x, y: parameters that are positive; no other one may vary.
        value: the measured column.
        threshold: its value on the contour.

    Returns:
        The contour; None where no seed passes the threshold for every y, or there is one y.
    """
    logs = crossing_table(crossings(cells, x, y, value, threshold), y)  # (y, seeds)
    whole = logs.replace([np.inf, -np.inf], np.nan).dropna(axis=1)
    if whole.empty or len(whole) < 2:
        return None
    slopes = np.polyfit(np.log(whole.index.to_numpy(float)), whole.to_numpy(), 1)[0]
    return Contour(
        middle=pd.Series(np.median(whole.to_numpy(), axis=1), whole.index),
        powers=pd.Series(slopes, whole.columns),
        left_out=logs.shape[1] - whole.shape[1],
    )
