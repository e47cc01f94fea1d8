"""Cells that meet Condition 4.1, on either side of the boundary, for the theorems and the lemmas.

`N·SNR² = Ω(1)` leaves its constant open. The benign proof's own is 60 M² C_p²: above it T₁ of Lemma
5.2 is positive, and Lemmas 5.3 to 5.5, stage 3 and Theorem 4.1 rest on that. So every claim of the
paper on the benign side of the theorems and lemmas requires it. Theorem 4.1 rests on stage 3's
error too: (114) needs it for the training loss, and (126) to (130) for test data. Whether T is
tight is asked from `BENIGN_FROM` times the balance of learning on. The harmful side begins at
`HARMFUL_UP_TO` times the balance for all; the proof's own constant in (144) is 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import add_absent, one_setting
from overfit_cli.core.claim import Measurement, UndecidedError, add_remark, not_run
from overfit_cli.core.parameters import map_parameters
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory import (
    BALANCE_IN_WORDS,
    Regime,
    boundary_product,
    learning_balance,
    meets_condition,
    proof_constant,
    stage_3_error,
    test_attention_error,
)

BENIGN_FROM, HARMFUL_UP_TO = 3.0, 0.25
"""N · SNR² over the balance of learning: from where "large" and "small" are taken to begin."""

T_DEPENDS_ON: Mapping[str, str] = {
    "snr": "‖μ‖",
    "epsilon": "ε",
    "n": "N",
    "learning_rate": "η",
    "output_scale": "‖w_O‖",
}
"""The parameters in T of Theorems 4.1 and 4.2, with their symbols: ‖μ‖ is proportional to SNR."""

MAY_VARY = frozenset({"max_steps", "test_samples", "leap", "dtype"})
"""Parameters that no theorem or lemma is about: cells may differ in them."""

WHERE = "Where items 1 and 3 to 10 of Condition 4.1 hold and noise tokens are as good as orthogonal"
"""How statements begin: item 2 is met in what it does, not by its bound."""

CONDITION = (
    "Condition 4.1 with constants of 1: a cell meets items 1 and 3 to 10 as they are printed, with "
    "the logarithms of Ω̃ and Õ left out, and item 2 by its bound or, in its place, because other "
    "noise tokens turn what one learns by at most ε/100, NM/√d"
)
PROBABILITY = "with probability at least 1 − 1/d: judged on the mean over seeds"
SIDES: Mapping[Regime, str] = {
    "benign": "N·SNR² = Ω(1): it is above 60 M² C_p², the proof's own constant (Lemma 5.2)",
    "harmful": f"N⁻¹·SNR⁻² = Ω(1): N·SNR² is at most {HARMFUL_UP_TO:g} times {BALANCE_IN_WORDS}",
}
LARGE = f"N·SNR² is at least {BENIGN_FROM:g} times {BALANCE_IN_WORDS}"
SMALL_ERROR = (
    "the error N·SNR² log(6N²M²/δ)³/√d_h of (65) and (111), with its logarithms and a constant of "
    "1, is below 1"
)
IN_CONVERGENCE = "(114) multiplies it by log(C/ε), which is above 1, and is left out"
SMALL_TEST_ERROR = (
    "‖μ‖ σ_p σ_h² d_h √(2 log(12N²M/δ)), which Lemma D.8 takes from item 2, is below 1 with a "
    "constant of 1"
)

OfCell = Callable[[BenignVitParameters], float]


def hypotheses_of(side: Regime) -> str:
    """Return what a theorem or a lemma requires on a side, and how cells meet it."""
    return f"{CONDITION}; {SIDES[side]}; {PROBABILITY}"


def meeting_the_condition(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that meet Condition 4.1, item 2 in what it does; see `meets_condition`."""
    drawn = cells[cells["initialisation"] == "condition"]
    meets = map_parameters(
        BenignVitParameters, drawn, lambda cell: meets_condition(cell, cell.output_scale)
    )
    chosen: pd.DataFrame = drawn[np.array(meets, dtype=bool)]
    return chosen


def cells_of_side(cells: pd.DataFrame, side: Regime) -> pd.DataFrame:
    """Return the cells that are far enough on one side of the boundary."""
    balance = learning_balance(cells["sigma_p_tilde"] / cells["sigma_p"], cells["tokens"])
    distance = boundary_product(cells["n"], cells["snr"]) / balance
    return cells[distance >= BENIGN_FROM if side == "benign" else distance <= HARMFUL_UP_TO]


def require_condition(cells: pd.DataFrame, side: Regime, example: str) -> pd.DataFrame:
    """Return a side's cells that meet the condition."""
    chosen = cells_of_side(meeting_the_condition(cells), side)
    if chosen.empty:
        raise not_run(
            f"It needs {side} cells with initialisation=condition that meet Condition 4.1, as in "
            f"`overfit sweep {example}`."
        )
    return chosen


def whole_design(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells at one value of what isn't in T, and failed ones for absent ones."""
    names = [name for name in BenignVitParameters.model_fields if name not in MAY_VARY]
    chosen = one_setting(cells, [name for name in names if name not in T_DEPENDS_ON])
    whole = add_absent(chosen, names)
    return whole.fillna({name: chosen[name].iloc[0] for name in MAY_VARY})


def with_large_product(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells in which N·SNR² is above the benign proof's constant."""
    constants = numbers_of(cells, proof_constant)
    products = pd.Series(boundary_product(cells["n"], cells["snr"]), cells.index)
    chosen: pd.DataFrame = cells[products > constants]
    if chosen.empty:
        short = float(np.log10(constants / products).min())
        raise vacuous(
            f"N·SNR² is {short:.2g} decades or more below 60 M² C_p², which the proof requires.",
            {"decades by which N·SNR² is below 60 M² C_p², least": short},
        )
    return chosen


def with_small_error(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells in which the paper's own error of stage 3 is below 1."""
    errors = numbers_of(cells, stage_3_error)
    chosen: pd.DataFrame = cells[errors < 1]
    if chosen.empty:
        raise vacuous(
            "The training attention may miss 1 by N·SNR² log(6N²M²/δ)³/√d_h, by (65) and (111), "
            f"which is {errors.min():.3g} or more.",
            {"error of (65) and (111), least": float(errors.min())},
        )
    return chosen


def with_error_of_convergence(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells, and say in the claim's note what (114) makes of their error of stage 3."""
    errors = numbers_of(cells, lambda cell: stage_3_error(cell) * math.log(1 / cell.epsilon))
    add_remark(
        f"With the log(C/ε) of (114) the error of stage 3 is {errors.min():.2g} to "
        f"{errors.max():.2g} at C = 1."
    )
    return cells


def with_small_test_error(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells in which lemma D.8's error on test data is below 1."""
    errors = numbers_of(cells, test_attention_error)
    chosen: pd.DataFrame = cells[errors < 1]
    if chosen.empty:
        raise vacuous(
            "A test sample's signal may score ‖μ‖ σ_p σ_h² d_h √(2 log(12N²M/δ)) with its noise, "
            f"by lemma D.8, which is {errors.min():.3g} or more.",
            {"error of lemma D.8, least": float(errors.min())},
        )
    return chosen


def vacuous(note: str, details: Mapping[str, float]) -> UndecidedError:
    """Return what to raise where no cell meets a hypothesis."""
    return UndecidedError(Measurement(verdict="vacuous", note=note, details=details))


def numbers_of(cells: pd.DataFrame, number: OfCell) -> pd.Series[float]:
    """Return a number of each cell's parameters."""
    values = map_parameters(BenignVitParameters, cells, number)
    return pd.Series(np.array(values, dtype=np.float64), cells.index)
