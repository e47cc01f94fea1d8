"""Numbers with their intervals against a parameter; those beyond a grid are arrows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.axes
import numpy as np

from overfit_cli.figures.style import PALETTE


def draw_intervals(
    axes: matplotlib.axes.Axes, values: Mapping[float, tuple[float, float, float]]
) -> bool:
    """Draw each number with the ends of its interval; return whether any lies beyond the grid.

    What does is an arrowhead at the edge of the panel: up where a number is infinite, down where
    it is 0.

    Args:
        axes: where to draw.
        values: number, lower end and upper end, by the parameter's value.
    """
    at, table = np.array(list(values)), np.array(list(values.values())).reshape(-1, 3)
    high, low = np.isposinf(table).any(axis=1), (table == 0).any(axis=1)
    shown = np.isfinite(table[:, 0]) & (table[:, 0] > 0)
    middle, ends = table[shown, 0], table[shown, 1:]
    ends = np.where(np.isfinite(ends) & (ends > 0), ends, middle[:, None])
    bars = [middle - ends[:, 0], ends[:, 1] - middle]
    axes.errorbar(at[shown], middle, yerr=bars, fmt="o", color=PALETTE[0], elinewidth=0.8, zorder=3)
    for marker, place, some in (("^", 0.96, high), ("v", 0.04, low)):
        heights = np.full(int(some.sum()), place)
        edge: Any = {"transform": axes.get_xaxis_transform(), "color": PALETTE[0]}
        axes.plot(at[some], heights, marker, **edge)
    return bool(high.any() or low.any())
