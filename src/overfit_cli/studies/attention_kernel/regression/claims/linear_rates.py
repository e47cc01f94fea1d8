"""Theorems 1 and 2: linear rates with the paper's constant and the corrected one, and zero loss."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Values, numbers, trained
from overfit_cli.claims.rules import (
    FEWEST_WITHOUT_EXCEPTION,
    WITHOUT_EXCEPTION,
    vacuous,
    without_exception,
)
from overfit_cli.core.claim import Claim, Measurement, inconclusive
from overfit_cli.core.text import plural
from overfit_cli.studies.attention_kernel.kernels import KernelName
from overfit_cli.studies.attention_kernel.regression.claims.selection import (
    AT_BEST,
    SOURCE,
    selection,
    zero_loss_of,
)

BITES = 0.5
"""A bound that ends above this share of the starting loss is met by whatever halves its loss."""

_THEOREM_2 = "kernel-theorem2"
_ANALOGUE = "end of section 4.1, which says of the Gaussian, without stating it, what is similar to"

_HEADS = {"one": (1,), "several": (2, 4)}
_TRAINED = {"value": "W_V alone", "all": "W_Q, W_K and W_V"}
_CONSTANTS = {
    ("paper", "value"): "‖W_O‖² λ_B²",
    ("paper", "all"): "‖W_O‖² λ_B²",
    ("corrected", "value"): "min_h ‖W_O,h‖² λ_B²",
    ("corrected", "all"): "min_h ‖W_O,h‖² λ_B² / 4",
}


def rate_claim(kind: str, trained: str, heads: str, kernel: KernelName = "softmax") -> Claim:
    """Claim that the loss is at most (1 − ηα)^t of its start (Theorem 1, or 2 for all weights).

    Args:
        kind: `paper` or `corrected`, the constant in the rate α.
        trained: `value` or `all`.
        heads: `one` or `several`.
        kernel: `softmax`, or `gaussian`, for which the paper says the same without a theorem.
    """
    theorem = 1 if trained == "value" else 2
    corrected = ", with the constant that its proof carries" if kind == "corrected" else ""
    numbers = _HEADS[heads]
    values: Values = {"kernel": kernel, "trained": trained, "heads": numbers}
    said, name, subject = _said_of(kernel, theorem)
    return Claim(
        name=f"{name}-{kind}-{heads}",
        source=f"{SOURCE}, {said}{corrected}",
        statement=f"With {_TRAINED[trained]} trained and H = {' or '.join(map(str, numbers))}, "
        f"{subject} is at most (1 − ηα)^t of its start, α = {_CONSTANTS[kind, trained]}.",
        holds_where=f"{WITHOUT_EXCEPTION} (at step sizes small enough to descend, and where the "
        f"bound ends below {BITES:g} of the start)",
        measure=partial(_bound, kind=kind, values=values, theorem=theorem),
        figure="curves",
        preset=f"kernel-theorem{theorem}",
    )


def _said_of(kernel: KernelName, theorem: int) -> tuple[str, str, str]:
    """Where the paper bounds the loss of a kernel, the claims' name, and what is bounded."""
    if kernel == "softmax":
        return f"Theorem {theorem}", f"theorem{theorem}", "the loss"
    return f"{_ANALOGUE}, Theorem {theorem}", f"theorem{theorem}-gaussian", "the Gaussian's loss"


def _bound(cells: pd.DataFrame, kind: str, values: Values, theorem: int) -> Measurement:
    """Measure whether any step of a cell whose step size is stable lies above the bound."""
    chosen = selection(values, f"kernel-theorem{theorem}").of(cells)
    stable = trained(chosen)[numbers(chosen, "stability") <= 1]
    if theorem == 2:
        stable = meeting("8", stable)
    if stable.empty:
        raise inconclusive("No cell has a step size small enough to descend.")
    steps, rate = numbers(stable, "steps"), numbers(stable, f"rate_{kind}")
    limit = np.exp(steps * np.log1p(-(stable["learning_rate"] * rate).clip(upper=1 - 1e-16)))
    diverged = stable["status"] != "done"
    steps_above = pd.Series(0.0, index=stable.index)
    steps_above[~diverged] = numbers(stable[~diverged], f"violations_{kind}")
    broken = diverged | (steps_above > 0)
    found = without_exception(
        broken,
        stable["seed"],
        details={
            "cells": len(stable),
            "cells that break it": int(broken.sum()),
            "steps above it": float(steps_above.sum()),
            "cells whose step is too large to descend": len(chosen) - len(stable),
            "bound at the end over the start, least": float(limit.min()),
            "bound at the end over the start, most": float(limit.max()),
            "loss at the end over the start, most": float(stable["relative_loss"].max()),
        },
    )
    if theorem == 2 and numbers(stable, "condition_8").max() > 0:
        return unless_condition("8", stable, found)
    biting = stable.loc[limit <= BITES, "seed"].nunique()
    if broken.any() or biting >= FEWEST_WITHOUT_EXCEPTION:
        return found
    why = (
        f"On {plural(biting, 'seed')} the bound falls below {BITES:g} of the start: elsewhere it "
        "can't be broken."
    )
    return vacuous(found, why, {"seeds on which the bound bites": biting})


def meeting(name: str, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that meet condition (8) or (12); all of them where none does.

    Args:
        name: `8` or `12`.
        cells: one row per cell.
    """
    met = numbers(cells, f"condition_{name}") <= 0
    return cells[met] if met.any() else cells


def unless_condition(name: str, cells: pd.DataFrame, measured: Measurement) -> Measurement:
    """Return a theorem's measurement; a vacuous one where the cells miss its condition.

    Args:
        name: `8` or `12`.
        cells: those that were measured, see `meeting`.
        measured: what there is.
    """
    decades = numbers(cells, f"condition_{name}")
    if decades.max() <= 0:
        return measured
    return vacuous(
        measured,
        f"Condition ({name}) isn't met, so the theorem says nothing of these cells.",
        {f"decades by which ({name}) is missed, median": float(decades.median())},
    )


def condition_claim(name: str, theorem: int, values: Values, preset: str) -> Claim:
    """Claim that condition (8) or (12) holds at the initial weights of the cells with `values`."""

    def measure(cells: pd.DataFrame) -> Measurement:
        chosen = selection(values, preset, any_target=True).of(cells)
        decades = numbers(chosen, f"condition_{name}")
        return without_exception(
            decades > 0,
            chosen["seed"],
            details={
                "decades by which it is missed, least": float(decades.min()),
                "median": float(decades.median()),
                "most": float(decades.max()),
            },
        )

    return Claim(
        name=f"condition-{name}",
        source=f"{SOURCE}, Theorem {theorem}",
        statement=f"The initial weights meet condition ({name}), which Theorem {theorem} requires.",
        holds_where=WITHOUT_EXCEPTION,
        measure=measure,
        preset=preset,
    )


def zero_where(name: str, chosen: pd.DataFrame) -> Measurement:
    """Measure on how many seeds the loss goes to zero; vacuous where condition `name` isn't met."""
    met = meeting(name, chosen)
    return unless_condition(name, met, zero_loss_of(met))


def _zero_loss(cells: pd.DataFrame, values: Values) -> Measurement:
    return zero_loss_of(selection(values, _THEOREM_2).of(cells))


def _zero_by_theorem(cells: pd.DataFrame, values: Values) -> Measurement:
    return zero_where("8", selection(values, _THEOREM_2).of(cells))


def zero_claims(kernel: KernelName) -> list[Claim]:
    """The claims that a kernel reaches zero loss with all weights trained: Theorem 2's, and ours.

    Args:
        kernel: `softmax`, or `gaussian`, for which the paper says the same without a theorem.
    """
    values: Values = {"kernel": kernel, "trained": "all"}
    said, name, _ = _said_of(kernel, 2)
    subject = "softmax" if kernel == "softmax" else "Gaussian"
    return [
        Claim(
            name=f"{name}-zero",
            source=f"{SOURCE}, {said}",
            statement="Where condition (8) is met and W_Q, W_K and W_V are trained, "
            f"{subject} attention reaches zero loss.",
            holds_where=AT_BEST,
            measure=partial(_zero_by_theorem, values=values),
            figure="curves",
            preset=_THEOREM_2,
        ),
        Claim(
            name=f"zero-{kernel}-all",
            source=f"{SOURCE}, {said}; without condition (8), ours",
            statement=f"With W_Q, W_K and W_V trained, {subject} attention reaches zero loss.",
            holds_where=AT_BEST,
            measure=partial(_zero_loss, values=values),
            figure="curves",
            preset=_THEOREM_2,
        ),
    ]


CLAIMS = (
    *(
        rate_claim(kind, trained, heads)
        for trained in _TRAINED
        for kind in ("paper", "corrected")
        for heads in _HEADS
    ),
    *zero_claims("softmax"),
    condition_claim("8", 2, {"kernel": "softmax", "trained": "all"}, _THEOREM_2),
    *(
        rate_claim(kind, "all", heads, "gaussian")
        for kind in ("paper", "corrected")
        for heads in _HEADS
    ),
    *zero_claims("gaussian"),
)
