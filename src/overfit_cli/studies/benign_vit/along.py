"""Claims judged along an axis: on the boundary at each of its values, seed by seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from overfit_cli.claim import Measurement
from overfit_cli.studies.benign_vit.boundaries import Boundary, boundaries
from overfit_cli.studies.benign_vit.exponent import LEAST_SEEDS
from overfit_cli.studies.benign_vit.theory import FIGURE_1_THRESHOLD

Judge = Callable[[list[Boundary]], Measurement]
Numbers = Callable[[Boundary], "pd.Series[float]"]


def along(
    axis: str, least_span: float, preset: str, judge: Judge
) -> Callable[[pd.DataFrame], Measurement]:
    """Judge the boundaries along an axis.

    Args:
        axis: the parameter's name.
        least_span: the factor by which its ends must be apart.
        preset: one that has it.
        judge: given a boundary a value, ascending.
    """

    def measure(cells: pd.DataFrame) -> Measurement:
        found = boundaries(cells, axis, FIGURE_1_THRESHOLD)
        if not found or found[-1].at / found[0].at < least_span:
            return Measurement.without_value(
                "not run",
                f"It needs values of {axis} that are a factor of {least_span:g} apart, three of n "
                f"and of snr, and nothing else that varies, as in `overfit sweep {preset}`.",
            )
        seeds = len(found[0].constants)
        if seeds < LEAST_SEEDS:
            return Measurement.without_value(
                "inconclusive", f"It needs {LEAST_SEEDS} seeds; there are {seeds}."
            )
        return judge(found)

    return measure


def logarithms(found: list[Boundary], of: Numbers) -> pd.DataFrame:
    """Return logarithms, a row a seed and a column a value of the axis; nan without a number."""
    table = pd.DataFrame({one.at: of(one) for one in found})
    return table.where(np.isfinite(table) & (table > 0)).map(np.log)


def missing_numbers(logs: pd.DataFrame) -> Measurement | None:
    """Return why seeds without a number leave the verdict open, or make it "fails"."""
    missing = logs.isna()
    gone = int(missing.any(axis=1).sum())
    if not gone:
        return None
    share = missing.mean()
    moved = bool(share.max() > 0.5 > share.min())
    return Measurement.without_value(
        "fails" if moved else "inconclusive",
        f"{gone} of {len(logs)} seeds don't cross within the grid at every value of the axis"
        f"{': at one of them most of the seeds do not' if moved else ''}.",
    )


def counts_in_words(found: list[Boundary]) -> str:
    """Say how many values, seeds and curves there are."""
    never, curves = sum(one.never for one in found), sum(one.curves for one in found)
    return (
        f"{len(found)} values of the axis, {len(found[0].constants)} seeds; {never} of {curves} "
        "curves never cross."
    )
