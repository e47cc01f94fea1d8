"""Worlds that break one clause of a claim on Cui et al. 2024."""

from __future__ import annotations

import numpy as np
import pandas as pd

from calibration.clauses import Broken

RUN = "positional-published-quick"


def permuted(cells: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    """Give each seed its overlaps at other α."""
    for _, at in cells.groupby(["omega", "seed", "start"]):
        cells.loc[at.index, "theta"] = random.permutation(at["theta"].to_numpy())
    return cells


BROKEN = (Broken("semantic-theta", "at each α", RUN, permuted),)
