"""Whether every cell of a grid is fitted: part of the claims of figures 1 and 2."""

from __future__ import annotations

import pandas as pd

from overfit_cli.claims.cells import numbers, of_whole_seeds, trained
from overfit_cli.claims.rules import Margin, judged, share_of_seeds
from overfit_cli.core.claim import Measurement


def every_cell_fitted(
    grid: pd.DataFrame, margin: Margin, counted: str, in_words: str = "steps"
) -> Measurement:
    """Measure on which share of the seeds every cell reaches a training loss of ε.

    Seeds that lack cells which others have don't count.

    Args:
        grid: one row per cell, failed ones too.
        margin: where the share must lie.
        counted: the column of how long it took.
        in_words: what that counts.
    """
    grid = trained(of_whole_seeds(grid))
    ended = grid["status"] == "done"
    numbers(grid[ended], "train_loss")
    fitted = ended & (grid["train_loss"] <= grid["epsilon"])
    took = grid.loc[fitted, counted]
    return judged(
        share_of_seeds(fitted, grid["seed"]),
        margin,
        details={
            "cells": len(grid),
            "cells that aren't fitted": int((~fitted).sum()),
            "largest training loss": float(grid["train_loss"].max()),
            f"fewest {in_words}": float(took.min()),
            f"most {in_words}": float(took.max()),
        },
        note="The share of seeds on which every cell is fitted.",
    )
