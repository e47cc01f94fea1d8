"""Made-up worlds for the claims on T: how the number of steps scales with each parameter."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.rates import Worlds
from calibration.worlds import number_worlds
from overfit_cli.claims.rules import around
from overfit_cli.studies.benign_vit.claims.steps import TOLERANCE
from overfit_cli.studies.benign_vit.theory.predictions import STEP_POWERS, Regime

FEWEST = 200.0
"""The steps of the quickest cell."""

SPREAD = 0.02
"""How much a power varies with the seed."""


def _scaled(
    design: pd.DataFrame,
    powers: NDArray[np.float64],
    random: np.random.Generator,
    regime: Regime,
    axis: str,
) -> pd.DataFrame:
    """Cells whose steps scale as T does, but for one axis with a power of their own."""
    logs = sum(
        (powers if name == axis else power) * np.log(design[name].to_numpy(dtype=np.float64))
        for name, power in STEP_POWERS[regime].items()
    )
    steps = FEWEST * np.exp(logs - np.min(logs) + 0.01 * random.standard_normal(len(design)))
    return design.assign(steps=np.ceil(steps), train_loss=design["epsilon"])


STEPS: Mapping[str, Worlds] = {
    f"steps-{regime}-{axis.replace('_', '-')}": number_worlds(
        partial(_scaled, regime=regime, axis=axis), around(power, TOLERANCE, ""), SPREAD
    )
    for regime, axes in STEP_POWERS.items()
    for axis, power in axes.items()
}
