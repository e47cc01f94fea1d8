"""The best step size of a setting, for figures and claims alike: no kernel at another's rate."""

from __future__ import annotations

import pandas as pd

RATE = "learning_rate"


def best_rates(cells: pd.DataFrame, others: list[str], headline: str) -> pd.DataFrame:
    """Return the cells at the best step size of each setting of the parameters `others`.

    Best is the lowest mean of `headline` over seeds, among the step sizes at which the fewest
    failed.
    """
    failed = (cells["status"] == "failed").groupby([cells[name] for name in [*others, RATE]])
    means = cells[headline].groupby([cells[name] for name in [*others, RATE]]).mean()
    table = pd.DataFrame({"failed": failed.sum(), headline: means}).reset_index()
    ranked = table.sort_values(["failed", headline])
    best = ranked.drop_duplicates(others) if others else ranked.head(1)
    return cells.merge(best[[*others, RATE]], on=[*others, RATE])
