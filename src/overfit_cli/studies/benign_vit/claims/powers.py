"""The powers with which numbers go with ‖μ‖, ε, η and N, and verdicts on them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from overfit_cli.analysis.scaling import Exponent, scaling_exponents
from overfit_cli.claim import Measurement, Verdict
from overfit_cli.studies.benign_vit.claims.verdicts import LEAST_SEEDS, between

TOLERANCE = 0.1
"""By how much a power may differ from the theorem's: T hides logarithms. A smaller one is none."""

SYMBOLS = {"snr": "‖μ‖", "epsilon": "ε", "learning_rate": "η", "n": "N"}
"""The parameters, by their names, and how they are written: ‖μ‖ goes with SNR."""


def within(power: Exponent, of: float) -> Verdict:
    """Return whether a power is `of`, to the tolerance."""
    return between(power.low, power.high, of - TOLERANCE, of + TOLERANCE)


def fitted_powers(
    cells: pd.DataFrame, value: str, needed: Sequence[str]
) -> dict[str, Exponent] | Measurement:
    """Return the powers of `value`; or why there are none, where cells failed or axes are few.

    All axes are fitted at once: where a grid has holes, one axis may go with another.

    Args:
        cells: of the regime.
        value: the measured column.
        needed: the axes that must vary.
    """
    failed = int((cells["status"] == "failed").sum())
    if failed:
        return Measurement.without_value(
            "inconclusive", f"{failed} of {len(cells)} cells failed, and they aren't like the rest."
        )
    axes = [name for name in SYMBOLS if cells[name].nunique() > 1]
    constant = [name for name in needed if name not in axes]
    if constant:
        return Measurement.without_value(
            "inconclusive", f"In these {len(cells)} cells {', '.join(constant)} takes one value."
        )
    found = scaling_exponents(cells, axes, value)
    if found is None or found[axes[0]].seeds < LEAST_SEEDS:
        return Measurement.without_value(
            "inconclusive", f"It takes {LEAST_SEEDS} seeds with cells that tell the axes apart."
        )
    return found
