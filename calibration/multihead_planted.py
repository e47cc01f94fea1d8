"""Made-up worlds for the study's claims, with noise as it was measured on twenty planted heads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from calibration.multihead import step_cells
from calibration.rates import Worlds
from calibration.worlds import (
    MakeNumbers,
    Numbers,
    Random,
    number_worlds_of,
)
from overfit_cli.studies.multihead.planted.claims import CLAIMS

_FOUND = {"alignment_w": 0.99, "alignment_u": 0.99}


def _faster(design: pd.DataFrame, powers: Numbers, random: Random) -> pd.DataFrame:
    return step_cells(design, powers, random).assign(**_FOUND)


def _sooner(design: pd.DataFrame, ratios: Numbers, random: Random) -> pd.DataFrame:
    """Cells of gradient descent, and of momentum that takes so many times its steps."""
    share = np.where(design["optimiser"] == "momentum", ratios, 1.0)
    return design.assign(steps=1000, train_loss=0.0, steps_to_target=500 * share, **_FOUND)


def _gaps(design: pd.DataFrame, powers: Numbers, random: Random) -> pd.DataFrame:
    """Cells whose gap is a power of n, another one for each seed."""
    gap = 100 * np.exp(powers * np.log(design["n"].to_numpy(float)))
    return design.assign(steps=1000, train_loss=0.0, test_loss=gap)


_of_claim = number_worlds_of(CLAIMS)


def _numbers(
    name: str, make: MakeNumbers, spread: float, *, logs: bool = False
) -> dict[str, Worlds]:
    return {f"planted-{name}": _of_claim(f"planted-{name}", make, spread, logs=logs)}


WORLDS: Mapping[str, Worlds] = {
    **_numbers("gd-faster", _faster, 0.08),
    **_numbers("gd-ever-faster", _faster, 0.08),
    **_numbers("gap-rate", _gaps, 0.3),
    **_numbers("gap-power", _gaps, 0.15),
    **_numbers("momentum-sooner", _sooner, 0.4, logs=True),
}
