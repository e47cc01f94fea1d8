"""The powers of a sweep's axes with which a measured column scales, or why they can't be told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from overfit_cli.analysis.scaling import Exponent, scaling_exponents
from overfit_cli.claim import Measurement, inconclusive
from overfit_cli.claims.cells import varying
from overfit_cli.claims.rules import LEAST_SEEDS


def fitted_powers(
    cells: pd.DataFrame, value: str, axes: Iterable[str], needed: Sequence[str]
) -> dict[str, Exponent] | Measurement:
    """Return the powers of a column; or why there are none, where cells failed or axes are few.

    All axes are fitted at once: where a grid has holes, one axis may change with another.

    Args:
        cells: one row per cell, failed ones too.
        value: the measured column.
        axes: the parameters that may vary.
        needed: those that must.
    """
    failed = int((cells["status"] == "failed").sum())
    if failed:
        return inconclusive(
            f"{failed} of {len(cells)} cells failed, and they aren't like the rest."
        )
    varied = varying(cells, axes)
    constant = [name for name in needed if name not in varied]
    if constant:
        return inconclusive(f"In these {len(cells)} cells {', '.join(constant)} takes one value.")
    found = scaling_exponents(cells, varied, value)
    if found is None or found[varied[0]].seeds < LEAST_SEEDS:
        return inconclusive(f"It takes {LEAST_SEEDS} seeds with cells that tell the axes apart.")
    return found
