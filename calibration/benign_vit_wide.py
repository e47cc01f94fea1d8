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
from calibration.worlds import number_worlds, number_worlds_of
from overfit_cli.claims.rules import tolerance_margin
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


_numbers = number_worlds_of(claims.WIDE_HEADS)


def _formula_worlds(name: str, column: str, formula: OfCell, spread: float) -> dict[str, Worlds]:
    make = partial(_of_formula, formula=formula, column=column)
    return {name: _numbers(name, make, spread, logs=True)}


def _deficit_worlds(
    name: str, formula: OfCell = theory.attention_deficit, power: float = 1.0
) -> dict[str, Worlds]:
    make: Callable[..., pd.DataFrame] = partial(_deficit, formula=formula, power=power)
    return {name: _numbers(name, make, 0.02, logs=True)}


WIDE_HEADS: Mapping[str, Worlds] = {
    **_formula_worlds(
        "wide-heads-test-attention",
        "test_attention_signal",
        lambda cell: float(theory.wide_heads_test_attention(cell.tokens)),
        0.001,
    ),
    **_formula_worlds("wide-heads-test-loss", "test_loss", theory.wide_heads_test_loss, 0.005),
    "wide-heads-test-loss-rises": _numbers("wide-heads-test-loss-rises", _rises, 0.03, logs=True),
    **_deficit_worlds("attention-deficit-formula"),
    "attention-deficit-powers": number_worlds(
        _powers, tolerance_margin(2.0, claims.POWER_TOLERANCE, ""), 0.01
    ),
    **_deficit_worlds("attention-deficit-constant", theory.stage_3_error),
    **_deficit_worlds("attention-deficit-width", power=0.5),
}
