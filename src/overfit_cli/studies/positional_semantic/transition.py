"""The two transitions along α, measured seed by seed and in the limit of many features.

At α_c both starts have the same training loss; at α_l attention from the semantic start has the
test error of the best linear map. Either is where a curve along α crosses a threshold, on the scale
of log α; the limit's is read off the replica columns in the same way.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pandas as pd

from overfit_cli.core.arrays import finite_column
from overfit_cli.stats.boundaries import crossings

KEYS = ["omega", "d", "alpha", "seed"]
"""What tells the pairs of cells of the two starts apart."""

Transition = Literal["energy", "linear"]

THRESHOLDS = {"energy": 0.0, "linear": 1.0}
"""The loss of the semantic start less the other's, and its test error over the linear one."""

DISTINCT = 0.05
"""The overlap m of the positional start below which it has found no second solution."""


def loss_gaps(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each pair of cells: by how much the semantic start's loss over d is larger.

    Columns `KEYS`; `gap`, measured, and `limit`, that of many features, nan where a cell of the
    pair has no number, and where both end in one solution, with m below `DISTINCT`; `status`.
    """
    pairs = {}
    for start in ("semantic", "positional"):
        rows = cells[cells["start"] == start]
        by_d = {}
        for name, column, overlap in (
            ("gap", "train_loss", "m"),
            ("limit", "replica_loss", "replica_m"),
        ):
            losses = finite_column(rows, column) / rows["d"]
            is_second = (start == "semantic") | (finite_column(rows, overlap) >= DISTINCT)
            by_d[name] = losses.where(is_second)
        pairs[start] = rows[KEYS].assign(**by_d).set_index(KEYS)
    gaps = pairs["semantic"] - pairs["positional"]
    return gaps.reset_index().assign(status="done")


def linear_ratios(cells: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each cell of the semantic start: its test error over the linear map's.

    The columns are those of `loss_gaps`.
    """
    rows = cells[cells["start"] == "semantic"]
    ratios = {
        "gap": finite_column(rows, "test_error") / finite_column(rows, "linear_test_error"),
        "limit": finite_column(rows, "replica_test_error")
        / finite_column(rows, "replica_linear_error"),
    }
    return rows[KEYS].assign(**ratios, status="done")


def transitions(cells: pd.DataFrame, transition: Transition) -> pd.DataFrame:
    """Return where each seed's curve along α crosses, at each ω.

    Columns `omega` and `seed`; `alpha`, infinite beyond the sampled values, 0 before them, nan
    where it is not known; `limit`, that of many features; and `ratio`, alpha over limit.
    """
    curves = loss_gaps(cells) if transition == "energy" else linear_ratios(cells)
    threshold = THRESHOLDS[transition]
    measured = crossings(curves, "alpha", "omega", "gap", threshold)
    known = curves.dropna(subset="limit").drop_duplicates(["omega", "alpha"]).assign(seed=0)
    limits = crossings(known, "alpha", "omega", "limit", threshold).set_index("omega")["crossing"]
    table = measured[["omega", "seed"]].assign(alpha=measured["crossing"].clip(lower=0))
    limit = table["omega"].map(limits).where(np.isfinite, np.nan)
    return table.assign(limit=limit, ratio=table["alpha"] / limit)
