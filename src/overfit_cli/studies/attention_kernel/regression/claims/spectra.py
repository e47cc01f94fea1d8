"""Claims of ours that decide Theorems 1 and 2 by an eigenvalue, without training.

The column `rate_margin` is 2 λ_min(Σ_h ‖W_O,h‖² B_h B_hᵀ)/α at the initial weights. Where it is
below 1 the loss lies above (1 − ηα)^t in the end, at every small step size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, finite_numbers, is_unknown, require_trained
from overfit_cli.claims.rules import THEOREM_RULE, Requirements, judge_theorem
from overfit_cli.claims.stated import joined, stated_claim
from overfit_cli.core.claim import Claim, Measurement
from overfit_cli.studies.attention_kernel.regression.claims.rates import PROVED, ROUND_OFF, SOURCE
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters

PRESETS = {1: "kernel-eigenvalue", 2: "kernel-eigenvalue-balanced"}
"""The preset of each theorem."""

SEVERAL = (3, 4, 6, 8, 12, 16)
"""Numbers of heads of which 2/H is below 1."""

WIDEST = 32
"""The width d of a head from which on 2/H is claimed as an equality."""


def _cells(cells: pd.DataFrame, theorem: Literal[1, 2], heads: Sequence[int]) -> pd.DataFrame:
    return Selection(
        KernelRegressionParameters,
        at={
            "kernel": "softmax",
            "trained": "value" if theorem == 1 else "all",
            "heads": tuple(heads),
        },
        vary=("d", "learning_rate"),
        alike=("n", "tokens", "target", "training_steps", "sigma_w", "balance", "dtype"),
        fewest={"d_h": 2},
        preset=PRESETS[theorem],
    ).of(cells)


def _judge_too_fast(
    cells: pd.DataFrame, *, theorem: Literal[1, 2], heads: Sequence[int], share: float = 1.0
) -> Measurement:
    chosen = _cells(cells, theorem, heads)
    unknown = is_unknown(chosen)
    for name in ("lambda_b", "condition_8"):
        finite_numbers(chosen[~unknown], name)
    missed = {
        "λ_B below round-off, by": (ROUND_OFF - chosen["lambda_b"].astype(float)).mask(
            unknown, -np.inf
        )
    }
    if theorem == 2:
        missed["decades by which (8) is missed"] = (
            chosen["condition_8"].astype(float).mask(unknown, -np.inf)
        )
    margin = chosen["rate_margin"].astype(float)
    by_heads = margin.groupby(chosen["heads"])
    return judge_theorem(
        margin >= share,
        chosen["seed"],
        unknown=margin.isna(),
        requirements=Requirements(missed, ", ".join(missed)),
        details={
            "cells": len(chosen),
            **{f"median, H {count}": float(value) for count, value in by_heads.median().items()},
            **{f"most, H {count}": float(value) for count, value in by_heads.max().items()},
        },
    )


def _draws(cells: pd.DataFrame) -> pd.DataFrame:
    return require_trained(_cells(cells, 1, (2, *SEVERAL)))


OVER_HALF_OF_H = "rate_margin * heads / 2"
"""The ratio over 2/H."""


_RATIO = "2 λ_min(Σ_h ‖W_O,h‖² B_h B_hᵀ)"
_DECIDES = (
    "λ_B is above zero; r_0 has a component in the slowest direction, as almost every draw has; "
    "the ratio is that at the initial weights, and nothing is trained"
)

_TOO_FAST = Claim(
    name="eigenvalue-theorem1",
    kind="ours",
    source=f"{SOURCE}, Theorem 1",
    statement="With 4 to 16 heads Theorem 1's rate α is too fast on every draw, with d = 2, 8 and "
    "32, D = 16, 24 and 96 and N n = 16: every small step size breaks its bound in the end.",
    hypotheses=_DECIDES,
    holds_where=f"{THEOREM_RULE}; a cell breaks it where {_RATIO}/α is 1 or more",
    measure=partial(_judge_too_fast, theorem=1, heads=SEVERAL[1:]),
    figure="eigenvalue",
    preset=PRESETS[1],
)
_TOO_FAST_OF_2 = replace(
    _TOO_FAST,
    name="eigenvalue-proved",
    source=f"{SOURCE}, Theorem 2, and the rate of its proof, (45)",
    statement="Where (8) is met, with d = 2, 8 and 32, Theorem 2's rate β is too fast on every "
    "draw with 4 to 16 heads, and with 16 heads even a quarter of it, the rate of the proof.",
    hypotheses=f"{_DECIDES}; condition (8) is met by a balance of 1e20, so that W_Q and W_K stay",
    holds_where=f"{THEOREM_RULE}; a cell breaks it where {_RATIO}/β is 1 or more, or with 16 heads "
    f"{PROVED:g} or more",
    preset=PRESETS[2],
)
_OF_2 = {
    "β, 4 to 16 heads": partial(_judge_too_fast, theorem=2, heads=SEVERAL[1:]),
    "β/4, 16 heads": partial(_judge_too_fast, theorem=2, heads=SEVERAL[-1:], share=PROVED),
}

CLAIMS = (
    _TOO_FAST,
    joined({label: replace(_TOO_FAST_OF_2, measure=part) for label, part in _OF_2.items()}),
    stated_claim(
        _draws,
        KernelRegressionParameters,
        f"geometric mean of {OVER_HALF_OF_H} is 1 within a factor of 1.25 on average "
        f"with at least 10 seeds where d_h >= {WIDEST}",
        number="the geometric mean of the ratio over 2/H",
        because="‖W_O,h‖² has a relative deviation of √(2/d), a quarter at d = 32",
        name="eigenvalue-law",
        kind="ours",
        source=f"{SOURCE}, Theorem 1",
        statement=f"With heads of width d = {WIDEST} the slowest rate is 2/H of "
        "Theorem 1's rate α.",
        figure="eigenvalue",
        preset=PRESETS[1],
    ),
)
