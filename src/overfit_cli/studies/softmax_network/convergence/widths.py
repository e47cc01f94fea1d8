"""The smallest width that is sufficient, and what the widest networks of a sweep do."""

from __future__ import annotations

import numpy as np
import pandas as pd

from overfit_cli.stats.boundaries import crossings

ENOUGH = 2.0
"""A width suffices from which on training takes so many times the steps of endless width."""

_ENDLESS = 1e100


def widest(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the largest m."""
    found: pd.DataFrame = cells[cells["m"] == cells["m"].max()]
    return found


def with_slow_cells(cells: pd.DataFrame) -> pd.DataFrame:
    """Take cells that don't come to ε within their steps for done, and for endlessly slow."""
    ratios = cells["steps_over_limit"].astype(float).fillna(_ENDLESS)
    return cells.assign(steps_over_limit=ratios, status="done")


def sufficient_widths(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the smallest sufficient width of each activation, n and seed.

    Args:
        cells: one row per cell, failed ones too; no parameter but `m`, `n` and `activation` may
            vary. One that doesn't come to ε within its steps isn't wide enough.

    Returns:
        Columns `activation`, `n`, `seed` and `width`: infinite where no m of the sweep suffices,
        and 0 where all do.
    """
    each = []
    for activation, own in with_slow_cells(cells).groupby("activation"):
        found = crossings(own, "m", "n", "steps_over_limit", ENOUGH)
        width = found["crossing"].where(found["side"] != "above", np.inf)
        width = width.where(found["side"] != "below", 0.0)
        each.append(found[["n", "seed"]].assign(activation=activation, width=width))
    return pd.concat(each, ignore_index=True)
