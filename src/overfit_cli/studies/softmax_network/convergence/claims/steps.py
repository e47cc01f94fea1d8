"""Claims on what the proof bounds at every step: appendix E, and Lemma 5.3's gradient.

Theorem 4.2's m and η, which the proof of Lemma E.2 has, are not met by any cell. What is bounded
needs neither to be measured: where a statement has no such condition the claim is the paper's, and
else it is ours and says what is not met.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd

from overfit_cli.claims.rules import OUT_OF_REACH, THEOREM_RULE, Requirements, judge_theorem
from overfit_cli.core.claim import Claim, Kind, Measurement, inconclusive
from overfit_cli.studies.softmax_network.convergence.claims.bounds import (
    PROBABLE,
    bound_cells,
    judge_probable,
    movement_above,
    unknown_cells,
)
from overfit_cli.studies.softmax_network.convergence.claims.kernels import (
    DRIFT_PRESET,
    FARTHEST,
    SMALL_PRESET,
    WIDE,
    paper_cells,
    softmax_claim,
)

_MOVEMENT = "decades by which the movement is above 0.01"
_TOO_FAR = "weights move by 0.01 or more"


def _column(cells: pd.DataFrame, name: str) -> pd.Series[float]:
    """A column that is logged along training; it is open where older cells lack it."""
    if name not in cells:
        raise inconclusive(f"No cell has a number of {name}: sweep again.")
    return cells[name].astype(float)


def _never_above(cells: pd.DataFrame, column: str, most: float) -> Measurement:
    held = paper_cells(cells, DRIFT_PRESET, WIDE)
    numbers = _column(held, column)
    return judge_theorem(
        numbers > most,
        held["seed"],
        unknown=unknown_cells(held, numbers),
        details={"most": float(numbers.max()), "median": float(numbers.median())},
    )


def _bounded(
    cells: pd.DataFrame, column: str, *, probable: bool, several: bool = False
) -> Measurement:
    """Measure the decades over a bound where weights move by less than 0.01."""
    held = bound_cells(cells, several=several)
    over_bound = _column(held, column)
    over, unknown = over_bound > 0, unknown_cells(held, over_bound)
    needed = Requirements({_MOVEMENT: movement_above(held)}, _TOO_FAR)
    if probable:
        return judge_probable(
            held, over, unknown=unknown, requirements=needed, decades_over=over_bound
        )
    return judge_theorem(
        over, held["seed"], unknown=unknown, requirements=needed, decades_over=over_bound
    )


_NEVER = -300.0
"""The decades of what is never above 0, over a bound that is."""


def _c2(cells: pd.DataFrame) -> Measurement:
    """Measure whether C₂ is above Claim E.6's bound: it is below 0 where it has no decades."""
    held = paper_cells(cells, SMALL_PRESET)
    last = _column(held, "c2")
    over = _column(held, "c2_over_bound")
    over = over.where(over.notna() | last.isna(), _NEVER)
    return judge_theorem(
        over > 0,
        held["seed"],
        unknown=unknown_cells(held, last),
        decades_over=over,
        details={"C₂ over m η vᵀHv at the last step, most": float(last.max())},
    )


_REACH = f"the bound is less than {OUT_OF_REACH:g} decades away"
_SHARES = PROBABLE.in_words("at each setting the share of seeds without an exception")
_NOT_MET = (
    "Theorem 4.2's m and η and D < R are not met; the step size is 1/(m λ_max), far larger than "
    "the theorem's"
)


def _claim(
    name: str,
    kind: Kind,
    source: str,
    statement: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
    hypotheses: str,
) -> Claim:
    preset = DRIFT_PRESET if kind == "ours" else SMALL_PRESET
    return softmax_claim(
        name, kind, source, statement, holds_where, measure, "curves", preset, hypotheses
    )


STEP_CLAIMS = (
    _claim(
        "c0-bound",
        "ours",
        "Lemma E.3",
        f"With {WIDE} hidden units or more |C₀| is at most 0.1 m η λ ‖F − Y‖² at every logged "
        "step.",
        THEOREM_RULE,
        partial(_never_above, column="c0_over_bound", most=1.0),
        _NOT_MET,
    ),
    _claim(
        "c1-bound",
        "ours",
        "Lemma E.4",
        f"With {WIDE} hidden units or more C₁ is at most −1.6 m η vᵀ H(τ) v, v = F − Y, at every "
        "logged step. At the symmetric start it is −2 of it by algebra, which decides nothing: "
        "later steps can break it.",
        THEOREM_RULE,
        partial(_never_above, column="c1", most=-1.6),
        f"{_NOT_MET}; the most over steps, which is kept, is at least the start's −2",
    ),
    _claim(
        "c2-bound",
        "paper",
        "Claim E.6",
        "C₂ is at most 2 m η² n² d² e^(9B) ‖F − Y‖² at every logged step.",
        f"{_REACH}; {THEOREM_RULE}",
        _c2,
        "the claim's probability is 1 − n e^(−mR), and its proof takes part 11 of Lemma D.1 and "
        "Lemma C.3, whose m and η are not met; v₂ has the remainder of the exponential for its "
        "Θ(1); d is the number of outputs, 1 here",
    ),
    _claim(
        "c3-bound",
        "paper",
        "Claim E.7",
        "C₃ is at most η² m² n² d² e^(16B) ‖F − Y‖² at every logged step, with probability 1 − δ.",
        f"{_REACH}; {_SHARES}",
        partial(_bounded, column="c3_over_bound", probable=True),
        "η ‖Δw_r‖ is at most 0.01, and weights move by less than 0.01; d is the number of outputs, "
        "1 here",
    ),
    _claim(
        "claim-e5",
        "ours",
        "Claim E.5",
        f"With {WIDE} hidden units or more λ_min(H(τ)) is at least λ/2 at every logged step.",
        THEOREM_RULE,
        partial(_never_above, column="lambda_lost", most=0.5),
        "the claim requires weights within R = λ/(2nd e^(10B)), which is not met",
    ),
    _claim(
        "gradient-length",
        "ours",
        "Lemma 5.3 (Lemma D.2)",
        f"With {WIDE} hidden units or more η ‖Δw_r‖ is at most 0.01 at every logged step.",
        THEOREM_RULE,
        partial(_never_above, column="step_length", most=FARTHEST),
        _NOT_MET,
    ),
)
