"""The powers of several parameters that a measured number scales with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from overfit_cli.analysis.intervals import Estimate, mean_estimate


def scaling_exponents(
    cells: pd.DataFrame, axes: Sequence[str], value: str, level: float | None = None
) -> dict[str, Estimate] | None:
    """Fit log(value) = c + Σ p_axis log(axis) by least squares, for each seed by itself.

    Seeds are independent and the cells of one aren't, so the spread is that between seeds.

    Args:
        cells: one row per cell, those that are done; axes and value are positive.
        axes: the columns that value depends on, each with several values.
        value: the measured column.
        level: of the intervals.

    Returns:
        The power p of value ∝ axis^p for each axis, the mean of the seeds' own fits; None if no
        seed has cells enough to tell the axes apart.
    """
    fits = [_fit(of_seed, axes, value) for _, of_seed in cells.groupby("seed")]
    slopes = np.array([fit for fit in fits if fit is not None])
    if len(slopes) == 0:
        return None
    return {
        axis: mean_estimate(of_axis, level) for axis, of_axis in zip(axes, slopes.T, strict=True)
    }


def _fit(cells: pd.DataFrame, axes: Sequence[str], value: str) -> np.ndarray | None:
    """One seed's exponents; None where its cells don't tell the axes apart."""
    logs = np.log(cells[list(axes)].to_numpy(dtype=np.float64))
    design = np.column_stack([np.ones(len(logs)), logs])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    solution = np.linalg.lstsq(design, np.log(cells[value].to_numpy(dtype=np.float64)), rcond=None)
    return np.asarray(solution[0][1:], dtype=np.float64)
