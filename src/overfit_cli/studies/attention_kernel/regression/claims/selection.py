"""Selection of the cells that a claim is judged on, and how often their loss went to zero."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, Values, numbers, trained
from overfit_cli.claims.rules import Margin, judged
from overfit_cli.core.claim import Measurement, inconclusive
from overfit_cli.stats.intervals import level_of_each, share_estimate
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters

SOURCE = "Song et al. 2024"
ZERO = 1e-6
"""The share of its start at which a loss counts as having gone to zero."""

ON_MOST_DRAWS = Margin(least=0.5, because="more draws than not", fewest_seeds=6)
ON_FEW_DRAWS = Margin(most=0.5, because="fewer draws than not", fewest_seeds=7)
AT_BEST = (
    ON_MOST_DRAWS.in_words("the share of seeds at zero, at the best step size,")
    + ", 9 where that is the best of eight"
)

_ALIKE = ("target", "training_steps", "sigma_w", "dtype")


def selection(values: Values, preset: str, *, any_target: bool = False) -> Selection:
    """Return which cells have some values; their heads, if not named, are one.

    Args:
        values: by parameter.
        preset: one that has such cells.
        any_target: whether cells with different targets may be judged together.
    """
    alike = [
        name for name in _ALIKE if name not in values and not (any_target and name == "target")
    ]
    vary = ["learning_rate", "value_gap", *(["target"] if any_target else [])]
    fixed = {"heads": 1, **values}
    return Selection(
        KernelRegressionParameters,
        at=fixed,
        vary=[name for name in vary if name not in fixed],
        alike=alike,
        preset=preset,
    )


def at_zero(cells: pd.DataFrame) -> pd.Series[bool]:
    """Return which cells' losses went to zero; that of one that diverged did not.

    Raises:
        UndecidedError: `inconclusive` where a cell has no loss, or none that training gave it.
    """
    zero = pd.Series(False, index=cells.index)
    ended = trained(cells)[cells["status"] == "done"]
    zero[ended.index] = numbers(ended, "relative_loss") < ZERO
    return zero


def zero_loss_of(chosen: pd.DataFrame) -> Measurement:
    """Measure on which share of the seeds the loss goes to zero, at the step size that has most.

    It fails only where the best step size lies among those tried: beyond them there may be better.
    """
    reached = _reached(chosen)
    count = int(reached.sum(axis=1).max())
    share = share_estimate(count, reached.shape[1], level_of_each(len(reached)))
    found = judged(
        share,
        ON_MOST_DRAWS,
        details={
            **zero_by_step_size(chosen),
            "cells whose closed-form floor is above zero": int((chosen["floor"] > 0).sum()),
            "cells": len(chosen),
        },
        note=f"The share of seeds whose loss falls below {ZERO:g} of its start, at the step size "
        "that has most of them; the interval allows for that choice.",
    )
    best = _best(chosen, reached)
    if found.verdict != "fails" or best not in (reached.index[0], reached.index[-1]):
        return found
    edge = f"The best step size, {best:g}, is at the edge of those tried: beyond may be better."
    return replace(found, verdict="inconclusive", note=f"{found.note} {edge}")


def _reached(cells: pd.DataFrame) -> pd.DataFrame:
    """Which seeds went to zero at which step size, (step sizes, seeds), of those all were run at.

    A seed counts where all of its cells at a step size went to zero.
    """
    by_seed = at_zero(cells).groupby([cells["learning_rate"], cells["seed"]]).all().unstack()
    whole = by_seed.dropna()
    if whole.empty:
        raise inconclusive("At no step size were all seeds run.")
    return whole.astype(bool)


def _best(cells: pd.DataFrame, reached: pd.DataFrame) -> float:
    """The step size that most seeds went to zero at; of several, that of the lowest losses."""
    losses = cells["relative_loss"].astype(float).where(cells["status"] == "done", np.inf)
    medians = losses.groupby(cells["learning_rate"]).median().loc[reached.index]
    order = pd.DataFrame({"reached": -reached.sum(axis=1), "loss": medians})
    return float(order.sort_values(["reached", "loss"]).index[0])


def zero_by_step_size(cells: pd.DataFrame) -> dict[str, float]:
    """Return how many seeds went to zero at each step size."""
    counts = at_zero(cells).groupby(cells["learning_rate"]).sum()
    return {f"seeds at zero, step size {rate:g}": int(count) for rate, count in counts.items()}
