"""Widths that suffice, the widest networks, and Table 1's steps, for claims and figures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from overfit_cli.stats.boundaries import crossings
from overfit_cli.stats.intervals import middle

ENOUGH = 2.0
"""A width suffices from which on training takes so many times the steps of endless width."""

LEAST_WIDTH = 2.0
"""The least width of a network of pairs of hidden units."""

_ENDLESS = 1e100


def widest(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the largest m."""
    chosen: pd.DataFrame = cells[cells["m"] == cells["m"].max()]
    return chosen


def table1_steps(cells: pd.DataFrame) -> pd.Series[float]:
    """Return λ⁻² n² log(n/ε) of each cell, Table 1's steps without their constant and n^o(1)."""
    n = cells["n"].astype(float)
    logarithm = np.log(n / cells["epsilon"].astype(float))
    steps: pd.Series[float] = n**2 * logarithm / cells["lambda_start"].astype(float) ** 2
    return steps


def keep_slow_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Take cells that don't come to ε within their steps for done, and for endlessly slow."""
    ratios = cells["steps_over_limit"].astype(float).fillna(_ENDLESS)
    return cells.assign(steps_over_limit=ratios, status="done")


def sufficient_widths(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the smallest sufficient width of each `activation`, `n` and `seed`, as `width`.

    No parameter but these and `m` may vary. A cell that doesn't come to ε within its steps, or
    failed, isn't wide enough. The width is infinite where no m of the sweep suffices, and 0 where
    all do.
    """
    each = []
    for activation, group in keep_slow_cells(cells).groupby("activation"):
        crossed = crossings(group, "m", "n", "steps_over_limit", ENOUGH)
        width = crossed["crossing"].where(crossed["side"] != "above", np.inf)
        width = width.where(crossed["side"] != "below", 0.0)
        each.append(crossed[["n", "seed"]].assign(activation=activation, width=width))
    return pd.concat(each, ignore_index=True)


def median_width(widths: pd.Series[float]) -> float:
    """Return the median of sufficient widths; 0 where one of the middle two is, nan without any.

    A width of 0 lies somewhere below the sweep: no mean of it and another one is a width.
    """
    ordered = np.sort(widths.dropna().to_numpy(dtype=np.float64))
    if not len(ordered):
        return float("nan")
    return middle(ordered) if ordered[(len(ordered) - 1) // 2] > 0 else 0.0


def by_data(cells: pd.DataFrame, widths: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """Return the widths of the cells of each `data` and `d` by themselves, in one table."""
    settings = cells[["data", "d"]].drop_duplicates()
    tables = [
        widths(cells[(cells["data"] == data) & (cells["d"] == d)]).assign(data=data, d=d)
        for data, d in zip(settings["data"], settings["d"], strict=True)
    ]
    return pd.concat(tables, ignore_index=True)
