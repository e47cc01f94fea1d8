"""The measured steps: the powers of T that a sweep shows, and where the proof's stages end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from overfit_cli.core.parameters import describe
from overfit_cli.stats.boundaries import scaling_exponents
from overfit_cli.stats.intervals import Estimate
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory.predictions import (
    FIGURE_1_CONSTANT,
    FIGURE_1_STRONG_NOISE,
    STEP_POWERS,
    Regime,
    boundary_product,
)

LEAST_VALUES = 3
LEAST_STEPS = 100
"""Fewer steps are too coarse to tell a power by: one step is over a hundredth of them."""

STAGE_2_SLOPE = 0.4
"""Stage 2 lasts while −ℓ′ is 1/2 − o(1) (lemma 5.3); here while its mean is above this."""

_AFTER_TRAINING = {"test_samples", "max_steps"}


@dataclass(frozen=True)
class StepScaling:
    """How steps scale over a sweep in one regime.

    Attributes:
        cells: those of the regime that are done.
        exponents: by axis, of steps; empty where nothing can be fitted.
        fewest: the fewest steps that any of the cells took.
        failed: how many cells of the regime failed. They are the slow ones, so what is fitted to
            the others tells no power.
    """

    cells: pd.DataFrame
    exponents: Mapping[str, Estimate]
    fewest: int
    failed: int


def step_scaling(cells: pd.DataFrame, regime: Regime) -> StepScaling | None:
    """Fit how steps scale with the axes of a sweep, in the cells of a predicted regime.

    Args:
        cells: a study's cells.
        regime: benign where N · SNR² is above figure 1's constant, harmful elsewhere.

    Returns:
        The fit; None where no axis that T depends on takes three values there, or where a
        parameter varies that T isn't stated for.
    """
    # Figure 1's constant tells the regimes apart at figure 1's strength of the strong noise.
    if not np.isclose(cells["sigma_p_tilde"] / cells["sigma_p"], FIGURE_1_STRONG_NOISE).all():
        return None
    benign = boundary_product(cells["n"], cells["snr"]) > FIGURE_1_CONSTANT
    chosen = cells[benign == (regime == "benign")]
    failed = int((chosen["status"] == "failed").sum())
    chosen = chosen[chosen["status"] == "done"]
    # An axis of two values is fitted too, or it would bend the others' powers.
    axes = [name for name in STEP_POWERS[regime] if chosen[name].nunique() > 1]
    if not any(chosen[name].nunique() >= LEAST_VALUES for name in axes):
        return None
    others = describe(BenignVitParameters).keys() - STEP_POWERS[regime].keys() - _AFTER_TRAINING
    if any(chosen[name].nunique() > 1 for name in others):
        return None
    fewest = chosen["steps"].fillna(0).min()  # what isn't known is too few
    exponents = (scaling_exponents(chosen, axes, "steps") or {}) if fewest > 0 else {}
    return StepScaling(chosen, exponents, int(fewest), failed)


@dataclass(frozen=True)
class StageEnds:
    """The steps at which stages 1 and 2 end (lemmas 5.2, 5.3 and E.3); nan where one never does.

    Attributes:
        first: the first step at which the value of the signal (in the harmful regime, of token 2)
            is 3M times any other's.
        second: the first step at which the loss's mean slope is below `STAGE_2_SLOPE`.
        lead: the greatest lead reached, to be held against 3M.
    """

    first: float
    second: float
    lead: float


def stage_ends(trajectory: pd.DataFrame, tokens: int, regime: Regime) -> StageEnds:
    """Return the ends of stages 1 and 2 of one cell.

    Args:
        trajectory: its logged steps, with `step`, `signal_lead`, `noise_lead` and `loss_slope`.
        tokens: M.
        regime: which lemma's criterion ends stage 1.
    """
    lead = trajectory["signal_lead" if regime == "benign" else "noise_lead"]
    ends = (lead >= 3 * tokens, trajectory["loss_slope"] < STAGE_2_SLOPE)
    first, second = (float(trajectory["step"][reached].min()) for reached in ends)
    return StageEnds(first, second, float(lead.max()))
