"""Trends along an axis of a grid: rank correlations line by line, averaged within each seed."""

from __future__ import annotations

import pandas as pd

from overfit_cli.analysis.intervals import Estimate, mean_estimate
from overfit_cli.claim import Measurement, inconclusive
from overfit_cli.claims.cells import numbers
from overfit_cli.claims.rules import Margin, judged

LEAST_VALUES = 3
"""The fewest values of an axis that tell a trend."""

FALLING = Margin(most=0.0, because="0 is no trend", fewest_seeds=5)


def rank_correlation(grid: pd.DataFrame, value: str, axis: str, other: str) -> Estimate:
    """Return the mean rank correlation of a column with an axis, over the lines of a grid.

    The lines of a seed share its draws: each seed counts once, with the mean over its lines. A line
    along which the column doesn't change has no trend, and counts as 0.

    Args:
        grid: cells that are done.
        value: the column.
        axis: the parameter along which the lines run.
        other: the grid's other parameter; with a seed it names a line.

    Raises:
        UndecidedError: `inconclusive`, where no line tells a trend, or a cell has no number.
    """
    numbers(grid, value)
    line = grid.groupby([other, "seed"])
    ranks = line[[axis, value]].rank()  # all lines at once: there are hundreds
    ranks -= ranks.groupby([grid[other], grid["seed"]]).transform("mean")
    products = pd.DataFrame(
        {
            "both": ranks[axis] * ranks[value],
            "along": ranks[axis] ** 2,
            "of_value": ranks[value] ** 2,
        }
    )
    sums = products.groupby([grid[other], grid["seed"]]).sum()
    spread = (sums["along"] * sums["of_value"]) ** 0.5
    lines = (sums["both"] / spread).where(sums["of_value"] > 0, 0.0)[sums["along"] > 0]
    if lines.empty:
        raise inconclusive(f"No line along {axis} tells a trend.")
    return mean_estimate(lines.groupby(level="seed").mean())


def falls(grid: pd.DataFrame, value: str, axis: str, other: str) -> Measurement:
    """Measure whether a column falls along an axis; see `rank_correlation`."""
    found = rank_correlation(grid, value, axis, other)
    return judged(
        found,
        FALLING,
        details={f"values of {other}": grid[other].nunique()},
        note=f"The rank correlation of {value.replace('_', ' ')} with {axis} at one value of "
        f"{other}, averaged over those values, seed by seed.",
    )
