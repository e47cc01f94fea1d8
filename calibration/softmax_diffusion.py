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
    number_worlds,
    share_worlds,
)
from overfit_cli.claims.rules import Margin
from overfit_cli.studies.softmax_network.diffusion.claims import (
    A_TENTH,
    ALIKE,
    AS_FRESH,
    BETTER,
    COPIES,
    FALLS,
    LARGER,
    LEARNS,
    MOST_SEEDS,
    WEIGHTINGS,
)
from overfit_cli.studies.softmax_network.paper import NAMES


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


def _compared(model: str, margin: Margin, columns: Sequence[str], spread: float) -> Worlds:
    make = partial(_ratios, selected={"model": model}, columns=columns)
    return number_worlds(make, margin, spread, logs=True)


WORLDS: Mapping[str, Worlds] = {
    **{
        f"diffusion-falls-{model}": number_worlds(partial(_falling, columns=WEIGHTINGS), FALLS, 0.1)
        for model in NAMES
    },
    **{f"diffusion-constant-{model}": _compared(model, BETTER, WEIGHTINGS, 0.2) for model in NAMES},
    **{
        f"diffusion-truth-{model}": number_worlds(
            partial(_having, column="score_share"), A_TENTH, 0.3, logs=True
        )
        for model in NAMES
    },
    **{
        f"diffusion-softmax-{rival}": _compared("softmax", ALIKE, WEIGHTINGS, 0.2)
        for rival in ("exp", "relu")
    },
    "diffusion-posterior": _compared("softmax", BETTER, WEIGHTINGS, 0.3),
    "diffusion-samples": _compared("softmax", ALIKE, ["sliced_wasserstein"], 0.2),
    "diffusion-gd": number_worlds(
        partial(_ratios, selected={"optimiser": "gd", "output_scale": "paper"}, columns=WEIGHTINGS),
        ALIKE,
        0.2,
        logs=True,
    ),
    "diffusion-gd-learns": number_worlds(
        partial(_having, column="score_share"), LEARNS, 0.3, logs=True
    ),
    "diffusion-coupling": share_worlds(_coupled, MOST_SEEDS),
    "diffusion-label-noise": number_worlds(
        partial(_parted, column="label_noise"), LARGER, 0.2, logs=True
    ),
    "diffusion-assumption65": share_worlds(_regressing, MOST_SEEDS),
    **{
        f"diffusion-digits-{rival}": _compared("softmax", BETTER, ["denoising_loss"], 0.02)
        for rival in ("constant", "posterior")
    },
    "diffusion-digits-falls": number_worlds(
        partial(_falling, columns=["denoising_loss"]), FALLS, 0.005
    ),
    "diffusion-copies-posterior": number_worlds(partial(_having, column="memorised"), COPIES, 0.03),
    "diffusion-copies-softmax": number_worlds(partial(_having, column="memorised"), AS_FRESH, 0.03),
    "diffusion-theorem66": exception_worlds(_above),
}
