"""Theorems 1 and 2: linear rates, with the paper's constant and the corrected one; conditions."""

from __future__ import annotations

import pandas as pd

from overfit_cli.claim import Claim, Measurement
from overfit_cli.studies.attention_kernel.regression.selection import (
    SOURCE,
    chosen,
    shares_in_words,
    too_few,
    zero_by_rate,
)

HEADS = (1, 2, 4)
_MOVED = {"value": "W_V alone", "all": "W_Q, W_K and W_V"}


def rate_claim(kind: str, trained: str) -> Claim:
    """The loss stays below (1 − ηα)^t of its start (Theorem 1, or 2 where all is trained)."""
    theorem = 1 if trained == "value" else 2

    def measure(cells: pd.DataFrame) -> Measurement:
        parts = [chosen(cells, kernel="softmax", trained=trained, heads=h) for h in HEADS]
        cells = pd.concat(parts)
        refusal = too_few(cells, f"kernel=softmax, trained={trained}, heads=1,2,4")
        if refusal is not None:
            return refusal
        stable = cells[(cells["stability"].astype(float) <= 1) & (cells["status"] == "done")]
        if stable["heads"].nunique() < len(HEADS):
            return Measurement.without_value(
                "inconclusive", "Not every number of heads 1, 2, 4 has cells with a stable step."
            )
        broken = stable[f"violations_{kind}"].astype(float)
        by_heads = (broken > 0).groupby(stable["heads"])
        each = ", ".join(
            f"{int(found.sum())} of {len(found)} cells at H {heads}" for heads, found in by_heads
        )
        left = len(cells) - len(stable)
        return Measurement(
            "holds" if not broken.any() else "fails",
            float(broken.sum()),
            None,
            None,
            f"The bound is broken in {each}, at {int(broken.sum())} steps in all; "
            f"{stable['seed'].nunique()} seeds, {left} cells left out whose step is too large to "
            f"descend. The median rate is {stable[f'rate_{kind}'].astype(float).median():.2g}."
            + (_condition_8(stable) if theorem == 2 else ""),
        )

    constants = {
        "paper": "‖W_O‖² λ_B²",
        "corrected": "min_h ‖W_O,h‖² λ_B²" + (" / 4" if theorem == 2 else ""),
    }
    return Claim(
        name=f"theorem{theorem}-{kind}",
        source=f"{SOURCE}, Theorem {theorem}"
        + (", with the constant that its proof carries" if kind == "corrected" else ""),
        statement=f"With {_MOVED[trained]} trained, the loss is at most (1 − ηα)^t of its start, "
        f"α = {constants[kind]}.",
        accepted="no step of any cell with H 1, 2 or 4 and a stable step size is above it",
        measure=measure,
    )


def _condition_8(cells: pd.DataFrame) -> str:
    decades = cells["condition_8"].astype(float)
    return f" Condition (8) is missed by {decades.median():.0f} decades (median)."


def all_zero(cells: pd.DataFrame) -> Measurement:
    """Measure on how many seeds softmax attention reaches zero loss with all weights trained."""
    cells = chosen(cells, kernel="softmax", trained="all")
    refusal = too_few(cells, "kernel=softmax, trained=all, heads=1")
    if refusal is not None:
        return refusal
    shares, seeds = zero_by_rate(cells), cells["seed"].nunique()
    best = float(shares.max())
    return Measurement(
        "holds" if best == 1 else "fails",
        best,
        None,
        None,
        f"Softmax, {shares_in_words(shares, seeds)}.{_condition_8(cells)}",
    )


def condition_claim(name: str, theorem: int, what: dict[str, object]) -> Claim:
    """Condition (8) or (12) holds at the start of the cells with the values `what`."""

    def measure(cells: pd.DataFrame) -> Measurement:
        cells = chosen(cells, **what)
        words = ", ".join(f"{key}={value}" for key, value in what.items())
        refusal = too_few(cells, words, whatever=("target",))
        if refusal is not None:
            return refusal
        decades = cells[f"condition_{name}"].astype(float)
        low, high = float(decades.min()), float(decades.max())
        return Measurement(
            "holds" if high <= 0 else "fails",
            float(decades.median()),
            low,
            high,
            f"Condition ({name}) is missed by {decades.median():.1f} decades (median of "
            f"{len(decades)} cells; {low:.1f} to {high:.1f}).",
            "least and most",
        )

    return Claim(
        name=f"condition-{name}",
        source=f"{SOURCE}, Theorem {theorem}",
        statement=f"The initial weights meet condition ({name}), as Theorem {theorem} asks.",
        accepted="left side over right side is at most 1 in every cell: at most 0 decades",
        measure=measure,
    )
