"""Claims on a boundary as another parameter changes: its numbers compared seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from overfit_cli.claims.rules import from_logarithms
from overfit_cli.core.claim import inconclusive
from overfit_cli.stats.boundaries import Boundary
from overfit_cli.stats.intervals import Estimate, level_of_each, mean_estimate, median_estimate

BySeed = Callable[[Boundary], "pd.Series[float]"]
"""A number of a boundary for each seed."""


def changes(found: Sequence[Boundary], of: BySeed) -> dict[float, Estimate]:
    """Return by which factor a number changes from the first boundary to each other one.

    Factors are geometric means over seeds; where one is infinite, because a seed crosses beyond the
    grid, medians. Their intervals hold together 95 times of 100.

    Args:
        found: a boundary for each value of an axis, ascending.
        of: the number, positive.

    Raises:
        UndecidedError: `inconclusive`, where a seed crosses beyond the grid at the first value.
    """
    logs = seed_logarithms(found, of)
    if (beyond := int(np.isinf(logs.iloc[:, 0]).sum())) > 0:
        raise inconclusive(
            f"Seeds that cross beyond the grid at the first value of the axis: {beyond} of "
            f"{len(logs)}."
        )
    level = level_of_each(len(logs.columns) - 1)
    estimate = median_estimate if np.isinf(logs.to_numpy()).any() else mean_estimate
    after = [one.at for one in found[1:]]
    return {at: from_logarithms(estimate(logs[at] - logs.iloc[:, 0], level)) for at in after}


def power_along(found: Sequence[Boundary], of: BySeed, to: Sequence[float]) -> Estimate:
    """Return the power with which a number scales with another one along the axis.

    Args:
        found: a boundary for each value of the axis, ascending.
        of: the number, positive.
        to: the other one, at each value of the axis.

    Raises:
        UndecidedError: `inconclusive`, where a curve crosses beyond the grid.
    """
    logs = seed_logarithms(found, of)
    if (beyond := int(np.isinf(logs.to_numpy()).any(axis=1).sum())) > 0:
        raise inconclusive(
            f"Seeds that cross beyond the grid at some value of the axis, and have no power: "
            f"{beyond} of {len(logs)}."
        )
    return mean_estimate(np.polyfit(np.log(to), logs.to_numpy().T, 1)[0])


def seed_logarithms(found: Sequence[Boundary], of: BySeed) -> pd.DataFrame:
    """Return logarithms, one row per seed and one column per value of the axis.

    Seeds without a cell that is done at some value are left out. What lies beyond the grid is
    infinite.

    Raises:
        UndecidedError: `inconclusive`, where no seed is left.
    """
    with np.errstate(divide="ignore"):
        logs = pd.DataFrame({one.at: of(one) for one in found}).transform(np.log)
    whole = logs.dropna()
    if whole.empty:
        raise inconclusive("No seed has numbers at every value of the axis.")
    return whole


def counts(found: Sequence[Boundary]) -> dict[str, float]:
    """Return how many curves there are, and how many never cross."""
    return {
        "curves": sum(one.curves for one in found),
        "curves that never cross": sum(one.never for one in found),
    }
