"""The theorems' own regime: cells that meet Condition 4.1, and the two sides they speak of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from overfit_cli.claim import Measurement
from overfit_cli.parameters import of_row
from overfit_cli.studies.benign_vit.condition import condition_items
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory import Regime, boundary_product, learning_balance

BENIGN_FROM, HARMFUL_UP_TO = 3.0, 0.25
"""N · SNR² over the balance of learning: from where "large" and "small" are taken to begin."""


@dataclass(frozen=True)
class InRegime:
    """Cells that meet the condition.

    Attributes:
        cells: all of them, failed ones too.
        sides: those that are far enough on either side of the boundary.
    """

    cells: pd.DataFrame
    sides: dict[Regime, pd.DataFrame]


Judge = Callable[[InRegime], Measurement]


def in_regime(cells: pd.DataFrame) -> InRegime | None:
    """Return the cells of the theorems' regime; None where one of its sides has no cell."""
    asked = cells[cells["initialisation"] == "condition"]
    settings = (of_row(BenignVitParameters, row) for _, row in asked.iterrows())
    chosen = asked[np.array([_meets_condition(one) for one in settings], dtype=bool)]
    balance = learning_balance(chosen["sigma_p_tilde"] / chosen["sigma_p"], chosen["tokens"])
    far = boundary_product(chosen["n"], chosen["snr"]) / balance
    benign, harmful = chosen[far >= BENIGN_FROM], chosen[far <= HARMFUL_UP_TO]
    if benign.empty or harmful.empty:
        return None
    return InRegime(chosen, {"benign": benign, "harmful": harmful})


def _meets_condition(parameters: BenignVitParameters) -> bool:
    """Whether all items hold with constants of 1."""
    return all(item.decades == 0 for item in condition_items(parameters, parameters.output_scale))


def judged(judge: Judge) -> Callable[[pd.DataFrame], Measurement]:
    """Judge the cells of the theorems' regime; say "not run" without any."""

    def measure(cells: pd.DataFrame) -> Measurement:
        regime = in_regime(cells)
        if regime is None:
            return Measurement.without_value(
                "not run",
                "It needs cells with initialisation=condition that meet Condition 4.1, on both "
                "sides of the boundary, as in `overfit sweep theorem-regime`.",
            )
        return judge(regime)

    return measure
