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
        return judge(boundaries(cells, axis, FIGURE_1_THRESHOLD))

    return measure


def logarithms(found: list[Boundary], of: Numbers) -> pd.DataFrame | Measurement:
    """Return logarithms, a row a seed and a column a value of the axis; or why there are none.

    Seeds without a cell that is done at some value are left out. Where a curve crosses beyond the
    grid there is no number: that is a change of its own if most of the seeds do so at one value of
    the axis and most do not at another, on the same grid.
    """
    with np.errstate(divide="ignore"):
        logs = pd.DataFrame({one.at: of(one) for one in found}).transform(np.log)
    whole = logs.dropna()
    if len(whole) < LEAST_SEEDS:
        return Measurement.without_value(
            "inconclusive",
            f"It needs {LEAST_SEEDS} seeds with numbers at every value of the axis; of "
            f"{len(logs)}, {len(whole)} have them.",
        )
    beyond = whole.abs() == np.inf
    if not beyond.to_numpy().any():
        return whole
    share, same_grid = beyond.mean(), len({one.reach for one in found}) == 1
    moved = same_grid and bool(share.max() > 0.5 > share.min())
    return Measurement.without_value(
        "fails" if moved else "inconclusive",
        f"{int(beyond.any(axis=1).sum())} of {len(whole)} seeds cross beyond the grid at some "
        f"value of the axis{': at one of them most of the seeds' if moved else ''}.",
    )


def counts_in_words(found: list[Boundary]) -> str:
    """Say how many values, seeds and curves there are."""
    never, curves = sum(one.never for one in found), sum(one.curves for one in found)
    seeds = set.intersection(*(set(one.constants.index) for one in found))
    return (
        f"{len(found)} values of the axis, {len(seeds)} seeds at all of them; {never} of {curves} "
        "curves never cross."
    )
