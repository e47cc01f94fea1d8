"""Steps against the theorems' powers: which cells tell, and what they give (Theorems 4.1, 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from overfit_cli.analysis.scaling import Exponent, scaling_exponents
from overfit_cli.parameters import describe
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory import (
    FIGURE_1_CONSTANT,
    FIGURE_1_STRONG_NOISE,
    STEP_LAWS,
    Regime,
    boundary_product,
)

LEAST_VALUES = 3
LEAST_STEPS = 100
"""Fewer steps are too coarse to tell a power by: one step is over a hundredth of them."""


_AFTER_TRAINING = {"test_samples", "max_steps"}


@dataclass(frozen=True)
class StepLaw:
    """Steps over a sweep in one regime.

    Attributes:
        cells: those of the regime that are done.
        exponents: by axis, of steps; empty where nothing can be fitted.
        fewest: the fewest steps that any of the cells took.
        failed: how many cells of the regime failed. They are the slow ones, so what is fitted to
            the others tells no law.
    """

    cells: pd.DataFrame
    exponents: Mapping[str, Exponent]
    fewest: int
    failed: int


def step_law(cells: pd.DataFrame, regime: Regime) -> StepLaw | None:
    """Fit how steps go with the axes of a sweep, in the cells of a predicted regime.

    Args:
        cells: a study's cells.
        regime: benign where N · SNR² is above figure 1's constant, harmful elsewhere.

    Returns:
        The law; None where no axis that the theorems speak of takes three values there, or where a
        parameter varies that they don't speak of.
    """
    # Figure 1's constant tells the regimes apart at figure 1's strength of the strong noise.
    if not np.isclose(cells["sigma_p_tilde"] / cells["sigma_p"], FIGURE_1_STRONG_NOISE).all():
        return None
    benign = boundary_product(cells["n"], cells["snr"]) > FIGURE_1_CONSTANT
    chosen = cells[benign == (regime == "benign")]
    failed = int((chosen["status"] == "failed").sum())
    chosen = chosen[(chosen["status"] == "done") & (chosen["steps"] > 0)]
    # An axis of two values is fitted too, or it would bend the others' powers.
    axes = [name for name in STEP_LAWS[regime] if chosen[name].nunique() > 1]
    if not any(chosen[name].nunique() >= LEAST_VALUES for name in axes):
        return None
    others = describe(BenignVitParameters).keys() - STEP_LAWS[regime].keys() - _AFTER_TRAINING
    if any(chosen[name].nunique() > 1 for name in others):
        return None
    exponents = scaling_exponents(chosen, axes, "steps") or {}
    return StepLaw(chosen, exponents, int(chosen["steps"].min()), failed)
