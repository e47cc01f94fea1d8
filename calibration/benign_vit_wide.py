"""Made-up worlds for the claims of `benign-vit` on wide heads, in which the truth is known.

Cells follow the formulas, up to a factor of each seed, or have a power of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.rates import Worlds
from calibration.worlds import number_worlds
from overfit_cli.claims.rules import Margin, tolerance_margin
from overfit_cli.studies.benign_vit.vit import theory
from overfit_cli.studies.benign_vit.vit.claims import wide_heads as claims
from overfit_cli.studies.benign_vit.vit.claims.condition import OfCell, numbers_of

Numbers = NDArray[np.float64]

SCATTER = 1e-4
"""By how much cells of a seed differ from its number."""

LOSSES = (0.1, 0.15)
"""A test loss with narrow heads, and the spread over M and ε beside it."""


def _scattered(design: pd.DataFrame, random: np.random.Generator) -> Numbers:
    return np.asarray(np.exp(SCATTER * random.standard_normal(len(design))))


def _of_formula(
    design: pd.DataFrame,
    ratios: Numbers,
    random: np.random.Generator,
    formula: OfCell,
    column: str,
) -> pd.DataFrame:
    """Cells whose column is so many times a formula of their parameters."""
    numbers = numbers_of(design, formula) * ratios * _scattered(design, random)
    return design.assign(train_loss=design["epsilon"], **{column: numbers})


def _deficit(
    design: pd.DataFrame,
    ratios: Numbers,
    random: np.random.Generator,
    formula: OfCell,
    power: float = 1.0,
) -> pd.DataFrame:
    """Cells whose attention misses 1 by so many times a formula."""
    cells = _of_formula(design, ratios**power, random, formula, "deficit")
    return cells.drop(columns="deficit").assign(train_attention_signal=1 - cells["deficit"])


def _rises(design: pd.DataFrame, ratios: Numbers, random: np.random.Generator) -> pd.DataFrame:
    """Cells whose test loss changes by a factor from the narrowest heads to the widest."""
    least, spread = LOSSES
    logs = np.log(design["d_h"].astype(float))
    share = (logs - logs.min()) / (logs.max() - logs.min())
    losses = least + spread * design["epsilon"] / design["epsilon"].max()
    return design.assign(train_loss=design["epsilon"], test_loss=losses * ratios**share)


def _powers(design: pd.DataFrame, powers: Numbers, random: np.random.Generator) -> pd.DataFrame:
    """Cells whose deficit scales with SNR by a power of its own."""
    snr = design["snr"] / design["snr"].min()
    return _deficit(design, (snr ** (powers - 2)).to_numpy(), random, theory.attention_deficit)


def _formula_worlds(column: str, formula: OfCell, margin: Margin, spread: float) -> Worlds:
    make = partial(_of_formula, formula=formula, column=column)
    return number_worlds(make, margin, spread, logs=True)


def _deficit_worlds(
    margin: Margin, formula: OfCell = theory.attention_deficit, power: float = 1.0
) -> Worlds:
    make: Callable[..., pd.DataFrame] = partial(_deficit, formula=formula, power=power)
    return number_worlds(make, margin, 0.02, logs=True)


WIDE_HEADS: Mapping[str, Worlds] = {
    "wide-heads-test-attention": _formula_worlds(
        "test_attention_signal",
        lambda cell: float(theory.wide_heads_test_attention(cell.tokens)),
        claims.AS_PREDICTED,
        0.001,
    ),
    "wide-heads-test-loss": _formula_worlds(
        "test_loss", theory.wide_heads_test_loss, claims.LOSS_AS_PREDICTED, 0.005
    ),
    "wide-heads-test-loss-rises": number_worlds(_rises, claims.RISES, 0.03, logs=True),
    "attention-deficit-formula": _deficit_worlds(claims.DEFICIT_AS_PREDICTED),
    "attention-deficit-powers": number_worlds(
        _powers, tolerance_margin(2.0, claims.POWER_TOLERANCE, ""), 0.01
    ),
    "attention-deficit-constant": _deficit_worlds(claims.ORDER_OF_ERROR, theory.stage_3_error),
    "attention-deficit-width": _deficit_worlds(claims.WIDTH_AS_PREDICTED, power=0.5),
}
