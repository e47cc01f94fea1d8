"""Made-up worlds for the claims of `benign-vit` on wide heads, in which the truth is known.

Cells follow the formulas, up to a factor of each seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.rates import Worlds
from calibration.worlds import number_worlds_of
from overfit_cli.studies.benign_vit import theory
from overfit_cli.studies.benign_vit.claims import wide_heads as claims
from overfit_cli.studies.benign_vit.claims.condition import OfCell, numbers_of

Numbers = NDArray[np.float64]

SCATTER = 1e-4
"""By how much cells of a seed differ from its number."""


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
    design: pd.DataFrame, ratios: Numbers, random: np.random.Generator, formula: OfCell
) -> pd.DataFrame:
    """Cells whose attention misses 1 by so many times a formula."""
    cells = _of_formula(design, ratios, random, formula, "deficit")
    return cells.drop(columns="deficit").assign(train_attention_signal=1 - cells["deficit"])


_numbers = number_worlds_of(claims.WIDE_HEADS)


def _formula_worlds(name: str, column: str, formula: OfCell, spread: float) -> dict[str, Worlds]:
    make = partial(_of_formula, formula=formula, column=column)
    return {name: _numbers(name, make, spread, logs=True)}


def _deficit_worlds(name: str, formula: OfCell = theory.attention_deficit) -> dict[str, Worlds]:
    make: Callable[..., pd.DataFrame] = partial(_deficit, formula=formula)
    return {name: _numbers(name, make, 0.02, logs=True)}


WIDE_HEADS: Mapping[str, Worlds] = {
    **_formula_worlds(
        "wide-heads-test-attention",
        "test_attention_signal",
        lambda cell: float(theory.wide_heads_test_attention(cell.tokens)),
        0.001,
    ),
    **_formula_worlds("wide-heads-test-loss", "test_loss", theory.wide_heads_test_loss, 0.005),
    **_deficit_worlds("attention-deficit-formula"),
    **_deficit_worlds("attention-deficit-constant", theory.stage_3_error),
}
