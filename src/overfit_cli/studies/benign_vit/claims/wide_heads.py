"""Claims of this tool on wide heads: the test loss in closed form, and how fast attention ends.

Both follow from Theorem 4.1's own dynamics (Jiang et al. 2024) to leading order in √d_h, without a
constant that is fitted: see `theory.wide_heads_test_loss` and `theory.attention_deficit`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import add_absent, one_setting, require_done
from overfit_cli.claims.stated import Choose, stated_claim
from overfit_cli.core.claim import Claim, add_remark, not_run
from overfit_cli.studies.benign_vit.claims.condition import (
    LARGE,
    MAY_VARY,
    OfCell,
    cells_of_side,
    numbers_of,
)
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory import (
    SMALL_DEFICIT,
    attention_deficit,
    boundary_product,
    stage_3_error,
    wide_heads_test_attention,
    wide_heads_test_loss,
)

if TYPE_CHECKING:
    from overfit_cli.core.claim import Kind

LEAST_VALUES = 2
"""The fewest values of each parameter that a formula has."""

_NAMES = [name for name in BenignVitParameters.model_fields if name not in MAY_VARY]


def _design(cells: pd.DataFrame, free: frozenset[str], example: str) -> pd.DataFrame:
    """The benign cells with weights as Condition 4.1 asks, alike but for `free`, all done."""
    drawn = cells[cells["initialisation"] == "condition"]
    chosen = cells_of_side(drawn[drawn["labels"] == "balanced"], "benign")
    if chosen.empty:
        raise not_run(
            f"It needs benign cells with initialisation=condition and labels=balanced, as in "
            f"`overfit sweep {example}`."
        )
    alike = one_setting(chosen, [name for name in _NAMES if name not in free])
    if lacking := [name for name in sorted(free) if alike[name].nunique() < LEAST_VALUES]:
        raise not_run(
            f"It needs {LEAST_VALUES} values of {', '.join(lacking)}, as in `overfit sweep "
            f"{example}`."
        )
    return require_done(add_absent(alike, _NAMES))


def _with_wide_heads(cells: pd.DataFrame) -> pd.DataFrame:
    chosen: pd.DataFrame = cells[numbers_of(cells, attention_deficit) <= SMALL_DEFICIT]
    if chosen.empty:
        raise not_run(f"It needs heads so wide that training attention misses {SMALL_DEFICIT:g}.")
    return chosen


def _over_formula(cells: pd.DataFrame, column: str, number: OfCell) -> pd.DataFrame:
    """The column over the formula; a deficit is what mean training attention misses of 1."""
    if column == "deficit":
        cells = cells.assign(deficit=1 - cells["train_attention_signal"].astype(float))
    wide = _with_wide_heads(cells)
    return wide.assign(over=wide[column].astype(float) / numbers_of(wide, number))


def _over_paper_error(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells with wide heads, with their deficit over the error of stage 3."""
    over = _over_formula(cells, "deficit", stage_3_error)
    rates = boundary_product(over["n"], over["snr"]) / np.sqrt(over["d_h"].astype(float))
    constants = np.exp(np.log(over["deficit"] / rates).groupby(over["tokens"]).mean())
    words = ", ".join(f"{constant:.3g} at M = {m}" for m, constant in constants.items())
    add_remark(f"The deficit over N·SNR²/√d_h is {words}.")
    return over


DESIGN = (
    f"weights as Condition 4.1 asks for, equally many labels of both kinds; {LARGE}; N is below "
    "log d, which item 3 asks for, and noise tokens overlap by NM/√d, a millionth or less"
)
WIDE = f"the formula's deficit of training attention is at most {SMALL_DEFICIT:g}"


_FREE = {
    "wide-heads": frozenset({"tokens", "epsilon", "d_h"}),
    "attention-deficit": frozenset({"tokens", "n", "snr", "d_h"}),
}
"""The parameters that vary in a preset."""


def _claim(
    name: str,
    statement: str,
    choose: Choose,
    stated: str,
    number: str,
    because: str,
    *,
    preset: str,
    source: str = "Theorem 4.1",
    kind: Kind = "ours",
) -> Claim:
    return stated_claim(
        lambda cells: choose(_design(cells, _FREE[preset], preset)),
        BenignVitParameters,
        stated,
        number=number,
        because=because,
        name=name,
        kind=kind,
        source=f"Jiang et al. 2024, {source}",
        statement=statement,
        hypotheses=f"{DESIGN}; {WIDE}",
        figure="wide-heads" if preset == "wide-heads" else "deficit",
        preset=preset,
    )


OVER = "geometric mean of over is 1 within a factor of"
"""The claim on how far a number may lie from the formula's, but for the factor."""

WIDE_HEADS = (
    _claim(
        "wide-heads-test-attention",
        "As d_h → ∞, test attention on the signal is (2M − 1)/M²: the signal's query pays all of "
        "its attention, and each of M − 1 new noise tokens pays 1/M.",
        partial(
            _over_formula,
            column="test_attention_signal",
            number=lambda cell: float(wide_heads_test_attention(cell.tokens)),
        ),
        f"{OVER} 1.02 at worst",
        "test attention over that, the least and the most of a seed's cells,",
        "what is missing goes as 1/√d_h",
        preset="wide-heads",
    ),
    _claim(
        "wide-heads-test-loss",
        "As d_h → ∞, the test loss is log(1 + (e^ε − 1)^((2M − 1)/M²)).",
        partial(_over_formula, column="test_loss", number=wide_heads_test_loss),
        f"{OVER} 1.1 at worst",
        "the test loss over that, the least and the most,",
        "attention that is missing, and leaps, change it",
        preset="wide-heads",
    ),
    _claim(
        "attention-deficit-formula",
        "What the mean training attention misses of 1 is NM‖w_O‖²/(2 s² σ_h² d_h "
        "log²(1/(e^ε − 1))), averaged over tokens of length s.",
        partial(_over_formula, column="deficit", number=attention_deficit),
        f"{OVER} 1.25 at worst",
        "what is missing over that, the least and the most,",
        "the next order is a tenth, and other keys and leaps take a few percent",
        preset="attention-deficit",
        source="(65) and (111)",
    ),
    _claim(
        "attention-deficit-constant",
        "The error of stage 3, N·SNR² log(6N²M²/δ)³/√d_h with a constant of 1, is the order of "
        "what the mean training attention misses of 1.",
        _over_paper_error,
        f"{OVER} 10 on average",
        "what is missing over that error",
        "an order of magnitude: the constant is open",
        preset="attention-deficit",
        source="(65) and (111)",
        kind="sharp",
    ),
)
