"""Made-up worlds for the study's claims, with noise as it was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from calibration.rates import Worlds
from calibration.worlds import (
    Bools,
    Numbers,
    Random,
    exception_worlds,
    joined_worlds,
    number_worlds_of,
)
from overfit_cli.studies.softmax_network import NAMES
from overfit_cli.studies.softmax_network.claims.scores import CLAIMS

WEIGHTINGS = ("score_error", "denoiser_error")


def _falling(
    design: pd.DataFrame, powers: Numbers, random: Random, *, columns: Sequence[str]
) -> pd.DataFrame:
    """Cells whose errors go as a power of n."""
    errors = design["n"].to_numpy(float) ** powers
    return design.assign(steps=400, **dict.fromkeys(columns, errors))


def _ratios(
    design: pd.DataFrame,
    ratios: Numbers,
    random: Random,
    *,
    selected: Mapping[str, str],
    columns: Sequence[str],
) -> pd.DataFrame:
    """Cells of which those with some values have so many times what the others have."""
    is_selected = (design[list(selected)] == pd.Series(selected)).all(axis=1)
    values = np.where(is_selected, ratios, 1.0)
    return design.assign(steps=400, best_step=100, **dict.fromkeys(columns, values))


def _memorising(design: pd.DataFrame, values: Numbers, random: Random) -> pd.DataFrame:
    return design.assign(steps=400, memorised=values)


def _above(design: pd.DataFrame, broken: Bools, random: Random) -> pd.DataFrame:
    """Cells wide enough, with errors above the one term that has a number where it is broken."""
    excess = np.where(broken, -0.01, 1.0)
    stated = {"width_missing": -1.0, "step_size_beyond": -1.0}
    return design.assign(steps=400, bound_over_error=excess, **stated)


_numbers = number_worlds_of(CLAIMS)


def _compared(name: str, columns: Sequence[str], spread: float) -> dict[str, Worlds]:
    """The worlds of a claim on ratios of softmax's columns to another model's."""
    make = partial(_ratios, selected={"model": "softmax"}, columns=columns)
    return {f"diffusion-{name}": _numbers(f"diffusion-{name}", make, spread, logs=True)}


WORLDS: Mapping[str, Worlds] = {
    "diffusion-falls": joined_worlds(
        {
            f"model == '{model}'": _numbers(
                "diffusion-falls", partial(_falling, columns=WEIGHTINGS), 0.1
            )
            for model in NAMES
        }
    ),
    **_compared("alike", WEIGHTINGS, 0.2),
    **_compared("posterior", WEIGHTINGS, 0.3),
    **_compared("samples", ["sliced_wasserstein"], 0.2),
    "diffusion-gd": _numbers(
        "diffusion-gd",
        partial(_ratios, selected={"optimiser": "gd", "output_scale": "paper"}, columns=WEIGHTINGS),
        0.2,
        logs=True,
    ),
    "diffusion-copies-softmax": _numbers("diffusion-copies-softmax", _memorising, 0.03),
    "diffusion-theorem66": exception_worlds(_above),
}
