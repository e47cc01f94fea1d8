"""Made-up worlds for the study's claims, with noise as it was measured on twenty planted heads."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from calibration.multihead import (
    margin_cells,
    speed_curves,
    step_cells,
)
from calibration.rates import Worlds
from calibration.worlds import (
    Bools,
    MakeNumbers,
    Numbers,
    Random,
    margins_of,
    number_worlds_of,
    share_worlds,
)
from overfit_cli.studies.multihead.planted.claims import CLAIMS, SETTINGS

MARGINS = margins_of(CLAIMS)

_FOUND = {"alignment_w": 0.99, "alignment_u": 0.99}


def _finding(design: pd.DataFrame, succeeds: Bools, random: Random) -> pd.DataFrame:
    """Cells of which one has both signs flipped on each seed whose head isn't found by all."""
    flipped = ~design.duplicated(["seed", "optimiser", "learning_rate"]).to_numpy() & ~succeeds
    cosine = np.where(flipped, -0.94, 0.99)
    return design.assign(steps=1000, alignment_w=cosine, alignment_u=cosine)


def _margin(design: pd.DataFrame, shares: Numbers, random: Random) -> pd.DataFrame:
    return margin_cells(design, shares, random).assign(**_FOUND)


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


def _transitions(
    design: pd.DataFrame, samples: Numbers, random: Random, *, of_many: bool = False
) -> pd.DataFrame:
    """Cells whose error falls below a tenth at so many samples, or at so many times more for 50."""
    needed = np.where(design["heads"] == 50, samples, 1) * 500 if of_many else samples
    logs = np.log(design["n"].to_numpy(float) / needed)
    return design.assign(steps=1000, test_error=0.2 / (1 + np.exp(3 * logs)))


_of_claim = number_worlds_of(CLAIMS)


def _numbers(
    name: str, make: MakeNumbers, spread: float, *, logs: bool = False
) -> dict[str, Worlds]:
    return {f"planted-{name}": _of_claim(f"planted-{name}", make, spread, logs=logs)}


_OPTIMISERS = tuple(SETTINGS)

WORLDS: Mapping[str, Worlds] = {
    **{
        f"planted-{optimiser}-finds": share_worlds(_finding, MARGINS[f"planted-{optimiser}-finds"])
        for optimiser in (*_OPTIMISERS, "adam-large")
    },
    **{
        name: worlds
        for optimiser, margin, speed in (
            ("gd", 0.085, 0.08),
            ("momentum", 0.06, 0.13),
            ("adam", 0.06, 0.16),
        )
        for name, worlds in (
            *_numbers(f"{optimiser}-margin", _margin, margin).items(),
            *_numbers(f"{optimiser}-faster", _faster, speed).items(),
            *_numbers(f"{optimiser}-test-faster", speed_curves, speed).items(),
        )
    },
    **_numbers("gd-ever-faster", _faster, 0.08),
    **_numbers("gap-rate", _gaps, 0.3),
    **_numbers("gap-power", _gaps, 0.15),
    **_numbers("gap-transition", _transitions, 0.15, logs=True),
    **_numbers("gap-more-heads", partial(_transitions, of_many=True), 0.15, logs=True),
    **_numbers("momentum-sooner", _sooner, 0.4, logs=True),
}
