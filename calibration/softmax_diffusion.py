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
    margins_of,
    number_worlds_of,
    share_worlds,
)
from overfit_cli.studies.softmax_network.diffusion.claims import CLAIMS, WEIGHTINGS
from overfit_cli.studies.softmax_network.paper import NAMES

MARGINS = margins_of(CLAIMS)


def _falling(
    design: pd.DataFrame, powers: Numbers, random: Random, *, columns: Sequence[str]
) -> pd.DataFrame:
    """Cells whose errors go as a power of n, but those of the constant denoiser."""
    errors = design["n"].to_numpy(float) ** np.where(design["model"] == "constant", 0.0, powers)
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


def _having(design: pd.DataFrame, values: Numbers, random: Random, *, column: str) -> pd.DataFrame:
    return design.assign(steps=400, **{column: values})


def _parted(design: pd.DataFrame, ratios: Numbers, random: Random, *, column: str) -> pd.DataFrame:
    """Cells with so much in a column, and 1 in those that it is compared with."""
    cells = design.assign(denoiser_error=1.0, early_stopping=1.0)
    return _having(cells, ratios, random, column=column)


def _coupled(design: pd.DataFrame, near: Bools, random: Random) -> pd.DataFrame:
    """Cells whose regression is near the network's, and far beyond it on other seeds."""
    return _parted(design, np.where(near, 1e-6, 1e7), random, column="coupling")


def _regressing(design: pd.DataFrame, falling: Bools, random: Random) -> pd.DataFrame:
    """Cells whose regression has half the error at the largest n, or far more on other seeds."""
    errors = np.where(design["n"] == design["n"].max(), np.where(falling, 0.5, 1e7), 1.0)
    return _having(design, errors, random, column="ntk_error")


def _above(design: pd.DataFrame, broken: Bools, random: Random) -> pd.DataFrame:
    """Cells wide enough, with errors above the one term that has a number where it is broken."""
    excess = np.where(broken, -0.01, 1.0)
    stated = {"width_missing": -1.0, "step_size_beyond": -1.0}
    return design.assign(steps=400, bound_over_error=excess, **stated)


_numbers = number_worlds_of(CLAIMS)


def _compared(
    name: str, columns: Sequence[str], spread: float, model: str = "softmax"
) -> dict[str, Worlds]:
    """The worlds of a claim on ratios of a model's columns to another's."""
    make = partial(_ratios, selected={"model": model}, columns=columns)
    return {f"diffusion-{name}": _numbers(f"diffusion-{name}", make, spread, logs=True)}


def _one_column(name: str, column: str, spread: float, *, logs: bool = False) -> dict[str, Worlds]:
    """The worlds of a claim on one column."""
    make = partial(_having, column=column)
    return {f"diffusion-{name}": _numbers(f"diffusion-{name}", make, spread, logs=logs)}


WORLDS: Mapping[str, Worlds] = {
    **{
        f"diffusion-falls-{model}": _numbers(
            f"diffusion-falls-{model}", partial(_falling, columns=WEIGHTINGS), 0.1
        )
        for model in NAMES
    },
    **{
        name: worlds
        for model in NAMES
        for name, worlds in (
            *_compared(f"constant-{model}", WEIGHTINGS, 0.2, model).items(),
            *_one_column(f"truth-{model}", "score_share", 0.3, logs=True).items(),
        )
    },
    **_compared("softmax-exp", WEIGHTINGS, 0.2),
    **_compared("softmax-relu", WEIGHTINGS, 0.2),
    **_compared("posterior", WEIGHTINGS, 0.3),
    **_compared("samples", ["sliced_wasserstein"], 0.2),
    "diffusion-gd": _numbers(
        "diffusion-gd",
        partial(_ratios, selected={"optimiser": "gd", "output_scale": "paper"}, columns=WEIGHTINGS),
        0.2,
        logs=True,
    ),
    **_one_column("gd-learns", "score_share", 0.3, logs=True),
    "diffusion-coupling": share_worlds(_coupled, MARGINS["diffusion-coupling"]),
    "diffusion-label-noise": _numbers(
        "diffusion-label-noise", partial(_parted, column="label_noise"), 0.2, logs=True
    ),
    "diffusion-assumption65": share_worlds(_regressing, MARGINS["diffusion-assumption65"]),
    **_compared("digits-constant", ["denoising_loss"], 0.02),
    **_compared("digits-posterior", ["denoising_loss"], 0.02),
    "diffusion-digits-falls": _numbers(
        "diffusion-digits-falls", partial(_falling, columns=["denoising_loss"]), 0.005
    ),
    **_one_column("copies-posterior", "memorised", 0.03),
    **_one_column("copies-softmax", "memorised", 0.03),
    "diffusion-theorem66": exception_worlds(_above),
}
