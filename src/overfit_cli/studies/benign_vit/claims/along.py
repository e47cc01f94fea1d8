"""Claims judged along an axis: on the boundary at each of its values, seed by seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from overfit_cli.claim import Measurement
from overfit_cli.studies.benign_vit.boundaries import Boundary, boundaries, obstacle
from overfit_cli.studies.benign_vit.claims.verdicts import LEAST_SEEDS
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
        span = float(cells[axis].max()) / float(cells[axis].min())
        if span < least_span:
            return Measurement.without_value(
                "not run",
                f"It needs values of {axis} that are a factor of {least_span:g} apart, as in "
                f"`overfit sweep {preset}`.",
            )
        if why := obstacle(cells, axis):
            return Measurement.without_value("not run", f"The boundary can't be found: {why}.")
        found = boundaries(cells, axis, FIGURE_1_THRESHOLD)
        seeds = max(len(one.constants) for one in found)
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
        f"{gone} of {len(logs)} seeds have no crossing within the grid, or no cells, at some value "
        f"of the axis{': at one of them most of the seeds' if moved else ''}.",
    )


def counts_in_words(found: list[Boundary]) -> str:
    """Say how many values, seeds and curves there are."""
    never, curves = sum(one.never for one in found), sum(one.curves for one in found)
    return (
        f"{len(found)} values of the axis, {len(found[0].constants)} seeds; {never} of {curves} "
        "curves never cross."
    )
