"""Theorems 1 and 2: linear rates with the paper's constant and the corrected one, and zero loss."""

from __future__ import annotations

import pandas as pd

from overfit_cli.claim import Claim, Measurement, inconclusive
from overfit_cli.claims.cells import Values
from overfit_cli.studies.attention_kernel.regression.claims.selection import (
    SOURCE,
    ZERO,
    judged_on,
    share_at_zero,
    zero_in_words,
)

HEADS = (1, 2, 4)
_TRAINED = {"value": "W_V alone", "all": "W_Q, W_K and W_V"}
_CONSTANTS = {
    ("paper", "value"): "‖W_O‖² λ_B²",
    ("paper", "all"): "‖W_O‖² λ_B²",
    ("corrected", "value"): "min_h ‖W_O,h‖² λ_B²",
    ("corrected", "all"): "min_h ‖W_O,h‖² λ_B² / 4",
}


def rate_claim(kind: str, trained: str) -> Claim:
    """Claim that the loss is at most (1 − ηα)^t of its start (Theorem 1, or 2 for all weights).

    Args:
        kind: `paper` or `corrected`, the constant in the rate α.
        trained: `value` or `all`.
    """
    theorem = 1 if trained == "value" else 2
    corrected = ", with the constant that its proof carries" if kind == "corrected" else ""

    def judge(cells: pd.DataFrame) -> Measurement:
        return _violations(cells, kind, with_condition_8=theorem == 2)

    return Claim(
        name=f"theorem{theorem}-{kind}",
        source=f"{SOURCE}, Theorem {theorem}{corrected}",
        statement=f"With {_TRAINED[trained]} trained, the loss is at most (1 − ηα)^t of its start, "
        f"α = {_CONSTANTS[kind, trained]}.",
        accepted="no step of any cell with H 1, 2 or 4 and a stable step size is above it",
        measure=judged_on({"kernel": "softmax", "trained": trained, "heads": HEADS}, judge),
    )


def _violations(cells: pd.DataFrame, kind: str, *, with_condition_8: bool) -> Measurement:
    """Count the steps above the bound, over the cells whose step size is stable."""
    stable = cells[(cells["stability"].astype(float) <= 1) & (cells["status"] == "done")]
    if stable["heads"].nunique() < len(HEADS):
        return inconclusive("Not every number of heads 1, 2, 4 has cells with a stable step.")
    violations = stable[f"violations_{kind}"].astype(float)
    each = ", ".join(
        f"{int(broken.sum())} of {len(broken)} cells at H {heads}"
        for heads, broken in (violations > 0).groupby(stable["heads"])
    )
    return Measurement(
        "holds" if not violations.any() else "fails",
        f"The bound is broken in {each}, at {int(violations.sum())} steps in all; "
        f"{stable['seed'].nunique()} seeds, {len(cells) - len(stable)} cells left out whose step "
        "is too large to descend. The median rate is "
        f"{stable[f'rate_{kind}'].astype(float).median():.2g}."
        + (_condition_8_in_words(stable) if with_condition_8 else ""),
        float(violations.sum()),
    )


def condition_claim(name: str, theorem: int, values: Values) -> Claim:
    """Claim that condition (8) or (12) holds at the initial weights of the cells with `values`."""

    def judge(cells: pd.DataFrame) -> Measurement:
        decades = cells[f"condition_{name}"].astype(float)
        low, high = float(decades.min()), float(decades.max())
        return Measurement(
            "holds" if high <= 0 else "fails",
            f"Condition ({name}) is missed by {decades.median():.1f} decades (median of "
            f"{len(decades)} cells; {low:.1f} to {high:.1f}).",
            float(decades.median()),
            low,
            high,
            "least and most",
        )

    return Claim(
        name=f"condition-{name}",
        source=f"{SOURCE}, Theorem {theorem}",
        statement=f"The initial weights meet condition ({name}), as Theorem {theorem} asks.",
        accepted="left side over right side is at most 1 in every cell: at most 0 decades",
        measure=judged_on(values, judge, any_target=True),
    )


def _zero_loss(cells: pd.DataFrame) -> Measurement:
    """Measure on how many seeds softmax attention reaches zero loss with all weights trained."""
    best = float(share_at_zero(cells).max())
    return Measurement(
        "holds" if best == 1 else "fails",
        f"Softmax, {zero_in_words(cells)}.{_condition_8_in_words(cells)}",
        best,
    )


def _condition_8_in_words(cells: pd.DataFrame) -> str:
    decades = cells["condition_8"].astype(float)
    return f" Condition (8) is missed by {decades.median():.0f} decades (median)."


CLAIMS = (
    *(rate_claim(kind, trained) for trained in ("value", "all") for kind in ("paper", "corrected")),
    Claim(
        name="theorem2-zero",
        source=f"{SOURCE}, Theorem 2",
        statement="With W_Q, W_K and W_V trained, softmax attention reaches zero loss.",
        accepted=f"at some step size all seeds fall below {ZERO:g} of their starting loss",
        measure=judged_on({"kernel": "softmax", "trained": "all", "heads": 1}, _zero_loss),
    ),
    condition_claim("8", 2, {"kernel": "softmax", "trained": "all"}),
)
