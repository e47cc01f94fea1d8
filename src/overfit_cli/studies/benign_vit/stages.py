"""Where the proof's stages end, read off a trajectory (lemmas 5.2, 5.3 and E.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from overfit_cli.studies.benign_vit.theory import Regime

STAGE_2_SLOPE = 0.4
"""Stage 2 lasts while −ℓ′ is 1/2 − o(1) (lemma 5.3); here while its mean is above this."""


@dataclass(frozen=True)
class StageEnds:
    """The steps at which stages 1 and 2 end; nan where one never does.

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
    return StageEnds(
        first=_first(trajectory["step"], lead >= 3 * tokens),
        second=_first(trajectory["step"], trajectory["loss_slope"] < STAGE_2_SLOPE),
        lead=float(lead.max()),
    )


def _first(steps: pd.Series[float], reached: pd.Series[bool]) -> float:
    return float(steps[reached].min()) if reached.any() else np.nan
