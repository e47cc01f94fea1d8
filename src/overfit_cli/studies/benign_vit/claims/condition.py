"""Cells that meet Condition 4.1, on either side of the boundary: those of the theorems' claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from overfit_cli.analysis.bounds import all_met
from overfit_cli.core.parameters import of_rows
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory.condition import condition_items
from overfit_cli.studies.benign_vit.theory.predictions import (
    Regime,
    boundary_product,
    learning_balance,
)

BENIGN_FROM, HARMFUL_UP_TO = 3.0, 0.25
"""N · SNR² over the balance of learning: from where "large" and "small" are taken to begin."""

MAY_VARY = frozenset({"max_steps", "test_samples", "leap", "dtype"})
"""Parameters that no theorem or lemma is about: cells may differ in them."""

LEAST_EPSILONS = 2
"""The fewest values of ε in a grid that the theorems are judged on."""


@dataclass(frozen=True)
class TheoremRegime:
    """Cells that meet the condition.

    Attributes:
        cells: all of them, failed ones too.
        sides: those that are far enough on either side of the boundary.
    """

    cells: pd.DataFrame
    sides: Mapping[Regime, pd.DataFrame]


def theorem_regime(cells: pd.DataFrame) -> TheoremRegime | None:
    """Return the cells of the theorems' regime; None where a side has none, or ε one value."""
    chosen = meeting_the_condition(cells)
    sides: dict[Regime, pd.DataFrame] = {
        "benign": on_side(chosen, "benign"),
        "harmful": on_side(chosen, "harmful"),
    }
    lacking = any(side.empty for side in sides.values())
    if lacking or chosen["epsilon"].nunique() < LEAST_EPSILONS:
        return None
    return TheoremRegime(chosen, sides)


def meeting_the_condition(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that meet all items of Condition 4.1."""
    drawn = cells[cells["initialisation"] == "condition"]
    meets = of_rows(
        BenignVitParameters, drawn, lambda one: all_met(condition_items(one, one.output_scale))
    )
    chosen: pd.DataFrame = drawn[np.array(meets, dtype=bool)]
    return chosen


def on_side(cells: pd.DataFrame, side: Regime) -> pd.DataFrame:
    """Return the cells that are far enough on one side of the boundary."""
    balance = learning_balance(cells["sigma_p_tilde"] / cells["sigma_p"], cells["tokens"])
    far = boundary_product(cells["n"], cells["snr"]) / balance
    return cells[far >= BENIGN_FROM if side == "benign" else far <= HARMFUL_UP_TO]
