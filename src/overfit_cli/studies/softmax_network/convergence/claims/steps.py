"""Claims on what the proof bounds at every step: appendix E, and Lemma 5.3's gradient.

Theorem 4.2's m and η, which the proof of Lemma E.2 has, are not met by any cell. What is bounded
needs neither to be measured: where a statement has no such condition the claim is the paper's, and
else it is ours and says what is not met.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd

from overfit_cli.claims.rules import THEOREM_RULE, judge_theorem
from overfit_cli.core.claim import Claim, Kind, Measurement, inconclusive
from overfit_cli.studies.softmax_network.convergence.claims.bounds import (
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

_NOT_MET = (
    "Theorem 4.2's m and η and D < R are not met; the step size is 1/(m λ_max), far larger than "
    "the theorem's"
)


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
