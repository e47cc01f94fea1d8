"""Whether more heads slow training down, or speed it up: the steps to the target loss.

The margins of claims on both data models stand here too.
"""

from __future__ import annotations

import math

import pandas as pd

from overfit_cli.claims.cells import done, trained
from overfit_cli.claims.rules import Margin, from_logarithms, judged
from overfit_cli.core.claim import Measurement, inconclusive, not_run
from overfit_cli.core.text import plural
from overfit_cli.stats.boundaries import scaling_exponents
from overfit_cli.stats.intervals import mean_estimate

SLOWER = Margin(least=0.1, because="a factor of 1.5 from 1 head to 50", fewest_seeds=10)
FASTER = Margin(most=-0.1, because=SLOWER.because, fewest_seeds=10)
REACHED = Margin(least=0.95, because="within a twentieth of γ_attn", fewest_seeds=10)
SOONER = Margin(most=1.0, because="1 is no gain", fewest_seeds=10)

LEAST_SPAN = 10
"""By which factor the numbers of heads must be apart, at least."""


def power_of_heads(cells: pd.DataFrame, margin: Margin) -> Measurement:
    """Measure the power of H in the steps to the target loss, seed by seed.

    A seed counts where all its cells come to the target: of the others nobody knows when they
    would.

    Args:
        cells: of one setting, of several numbers of heads.
        margin: of the power.
    """
    span = cells["heads"].max() / cells["heads"].min()
    if span < LEAST_SPAN:
        raise not_run(
            f"It needs numbers of heads that are a factor of {LEAST_SPAN} apart, and here they are "
            f"{span:g}."
        )
    there = of_whole_seeds(cells)
    found = scaling_exponents(there, ["heads"], "steps_to_target") if len(there) else None
    if found is None:
        raise inconclusive("No seed has cells that all come to the target loss.")
    middle = there.groupby("heads")["steps_to_target"].median()
    return judged(
        found["heads"],
        margin,
        details={
            **{f"median steps, H = {heads}": float(steps) for heads, steps in middle.items()},
            "seeds on which some H never comes to the target": cells["seed"].nunique()
            - there["seed"].nunique(),
        },
        note="The power of H in the steps to the target loss.",
    )


def of_whole_seeds(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the seeds of which all come to the target loss."""
    ended = with_steps(cells)
    reached = ended["steps_to_target"].notna().groupby(ended["seed"]).agg(["all", "size"])
    whole = reached.index[reached["all"] & (reached["size"] == reached["size"].max())]
    chosen: pd.DataFrame = ended[ended["seed"].isin(whole)]
    return chosen


def with_steps(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that are done, whose steps to the target are known or never were taken.

    Raises:
        UndecidedError: `inconclusive` where something else than training ended a cell, or one has
            no number of steps though its loss isn't above the target.
    """
    ended = done(trained(cells), 1.0)
    without = ended["steps_to_target"].isna()
    above = ended["train_loss"].astype(float) >= ended["target_loss"]
    if (lost := int((without & ~above).sum())) > 0:
        raise inconclusive(f"{lost} of {plural(len(ended), 'cell')} have no number of steps.")
    return ended


def ratio_of_steps(cells: pd.DataFrame, slow: pd.DataFrame) -> Measurement:
    """Measure the steps to the target over those of other cells of the same seed and heads.

    Args:
        cells: of one setting.
        slow: of the one that it is compared with.
    """
    both = with_steps(cells).merge(with_steps(slow), on=["seed", "heads"], suffixes=("", "_slow"))
    ratio = both["steps_to_target"] / both["steps_to_target_slow"]
    known = ratio.dropna()
    if known.empty:
        raise inconclusive("No seed has both settings come to the target loss.")
    of_seeds = known.map(math.log).groupby(both["seed"]).mean()
    return judged(
        from_logarithms(mean_estimate(of_seeds)),
        SOONER,
        details={
            "pairs of cells": len(both),
            "pairs of which one never comes to the target": len(both) - len(known),
        },
        note="Geometric means over heads, seed by seed.",
    )
