"""The powers of a sweep's axes with which a measured column scales."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from overfit_cli.claims.cells import done, positive, varying
from overfit_cli.core.claim import inconclusive, not_run
from overfit_cli.stats.boundaries import scaling_exponents
from overfit_cli.stats.intervals import Estimate, level_of_each


def fitted_powers(
    cells: pd.DataFrame, value: str, axes: Iterable[str], needed: Sequence[str]
) -> dict[str, Estimate]:
    """Return the power of each axis: the mean of the seeds' own fits.

    The intervals of all of them hold together 95 times of 100.

    All axes are fitted at once: where a grid has holes, one axis may change with another.

    Args:
        cells: one row per cell, failed ones too.
        value: the measured column.
        axes: the parameters that may vary.
        needed: those that must.

    Raises:
        UndecidedError: `not run` where a needed one doesn't vary; `inconclusive`, where cells
            failed, have no positive value, or don't tell the axes apart.
    """
    fitted = done(cells)
    positive(fitted, value)
    varied = varying(fitted, axes)
    constant = [name for name in needed if name not in varied]
    if constant:
        raise not_run(
            f"These cells have one value of {' and one of '.join(constant)}; it needs several."
        )
    found = scaling_exponents(fitted, varied, value, level_of_each(len(varied)))
    if found is None:
        raise inconclusive("No seed has cells that tell the axes apart.")
    return found
