"""The measured boundary N · SNR² = C between the regimes, along another parameter."""

from __future__ import annotations

import pandas as pd

from overfit_cli.core.parameters import describe
from overfit_cli.stats import boundaries as analysis
from overfit_cli.stats.boundaries import Boundary, Curves
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory.predictions import (
    FIGURE_1_EXPONENT,
    FIGURE_1_THRESHOLD,
    HARMFUL_LOSS,
    learning_balance,
)

LEAST_VALUES = 3
_FREE = {"n", "snr", "max_steps"}


def why_no_boundary(cells: pd.DataFrame, axis: str) -> str | None:
    """Say why the boundary can't be found at each value of `axis`; None where it can.

    Args:
        cells: a study's cells.
        axis: the name of a parameter other than n and snr.
    """
    fixed = [name for name in describe(BenignVitParameters) if name not in {*_FREE, axis}]
    return analysis.why_no_boundary(cells, fixed, loss_curves(FIGURE_1_THRESHOLD), LEAST_VALUES)


def boundaries(cells: pd.DataFrame, axis: str, threshold: float) -> list[Boundary]:
    """Find the boundary at each value of `axis`, ascending; none where it can't be found.

    Args:
        cells: a study's cells.
        axis: the name of a parameter other than n and snr.
        threshold: the test loss at which overfitting turns benign.
    """
    if why_no_boundary(cells, axis):
        return []
    return analysis.boundaries(cells, axis, loss_curves(threshold))


def loss_curves(threshold: float) -> Curves:
    """Return the curves of the test loss over SNR that cross a threshold, one for each N."""
    return Curves("snr", "n", "test_loss", FIGURE_1_EXPONENT, threshold, HARMFUL_LOSS)


def balance_at(boundary: Boundary) -> float:
    """Return the N · SNR² at which its cells learn signal and noise equally fast at first."""
    first = boundary.cells.iloc[0]
    return float(learning_balance(first["sigma_p_tilde"] / first["sigma_p"], first["tokens"]))
