"""The best value of a swept parameter, for each setting of the others."""

from __future__ import annotations

import pandas as pd


def best_of_sweep(cells: pd.DataFrame, swept: str, others: list[str], best_in: str) -> pd.DataFrame:
    """Return the cells at the best value of a swept parameter, for each setting of `others`.

    Args:
        cells: one row per cell.
        swept: the parameter, such as `learning_rate`.
        others: the parameters whose settings each have a best value of their own.
        best_in: the column whose mean over seeds is lowest at the best value, among the values at
            which the fewest cells failed.
    """
    failed = (cells["status"] == "failed").groupby([cells[name] for name in [*others, swept]])
    means = cells[best_in].groupby([cells[name] for name in [*others, swept]]).mean()
    table = pd.DataFrame({"failed": failed.sum(), best_in: means}).reset_index()
    ranked = table.sort_values(["failed", best_in])
    best = ranked.drop_duplicates(others) if others else ranked.head(1)
    return cells.merge(best[[*others, swept]], on=[*others, swept])
