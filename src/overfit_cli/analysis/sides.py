"""On which share of the seeds a column lies above a threshold, from cells sampled unevenly."""

from __future__ import annotations

from typing import cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.analysis.crossings import monotone_levels

Floats = NDArray[np.float64]


def share_above(
    cells: pd.DataFrame, x: str, y: str, value: str, threshold: float, at: Floats
) -> dict[float, Floats]:
    """Return, for each y, the share of seeds whose curve along x lies above the threshold.

    A curve is smoothed to be monotone, as for its crossing, and taken as straight between its
    points (in log(x) where every x is positive). Beyond them one that crosses stays on its side; of
    one that doesn't, nothing is known there. So the share is a half where the median crossing is.

    Args:
        cells: one row per cell, with a finite `value`; each seed of a y is a curve.
        x, y: the columns along which a curve runs, and that tells curves apart beside `seed`.
        value: the measured column.
        threshold: in the unit of `value`.
        at: places along x, of shape (places,).

    Returns:
        A share for each place, by y; nan where no curve is known.
    """
    by_ratio = bool((cells[x] > 0).all() and (at > 0).all())
    scaled = cells.assign(**{x: np.log(cells[x])}) if by_ratio else cells
    places = np.log(at) if by_ratio else at
    found: dict[float, Floats] = {}
    for of_y, row in scaled.groupby(y, sort=True):
        curves = [curve for _, curve in row.sort_values(x).groupby("seed")]
        sides = np.array([_sides(curve, x, value, threshold, places) for curve in curves])
        known = np.isfinite(sides).sum(axis=0)
        with np.errstate(invalid="ignore"):
            found[cast(float, of_y)] = np.nansum(sides, axis=0) / known
    return found


def _sides(curve: pd.DataFrame, x: str, value: str, threshold: float, places: Floats) -> Floats:
    """Where a curve lies above, 1, and below, 0; nan where it isn't known."""
    known = curve[x].to_numpy(dtype=np.float64)
    levels = monotone_levels(curve[value].to_numpy(dtype=np.float64), threshold)
    above = np.where(np.interp(places, known, levels) > 0, 1.0, 0.0)
    if levels.min() <= 0 < levels.max():
        return above
    return np.where((places >= known[0]) & (places <= known[-1]), above, np.nan)
