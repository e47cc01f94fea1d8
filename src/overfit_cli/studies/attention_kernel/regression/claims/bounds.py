"""Claims on Lemmas 2, 3, 7 and 8, and on the sizes that the theorems need (Remarks 1 and 4).

The lemmas are bounds with explicit constants; the details say how loose they are. The remarks say
at which sizes random weights have λ_B > 0 and δ > 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import (
    Selection,
    Values,
    finite_numbers,
    require_done,
    require_trained,
)
from overfit_cli.claims.rules import (
    FEWEST_SEEDS_OF_THEOREM,
    THEOREM_RULE,
    judge_theorem,
    mark_vacuous,
)
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.core.text import plural
from overfit_cli.studies.attention_kernel.regression.claims.rates import SOURCE, selection
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters

_PRESET = "kernel-sizes"

ZERO = 1e-10
"""Singular values up to this are zero; the largest ones are near 1."""

_SIZES = Selection(
    KernelRegressionParameters,
    at={"trained": "value", "kernel": ("softmax", "gaussian")},
    vary=("heads", "learning_rate"),
    alike=("n", "tokens", "target", "training_steps", "sigma_w", "dtype"),
    fewest={"d": 2, "d_h": 2},
    preset=_PRESET,
)


def _is_wide(cells: pd.DataFrame) -> pd.Series[bool]:
    """Whether D d ≥ N n²."""
    return cells["d"] * cells["d_h"] >= cells["n"] * cells["tokens"] ** 2


def _lambda_b(cells: pd.DataFrame) -> Measurement:
    """Measure whether λ_B is above zero wherever D ≥ N n/H."""
    chosen = require_done(_SIZES.of(cells))
    chosen = chosen[chosen["d"] * chosen["heads"] >= chosen["n"] * chosen["tokens"]]
    if chosen.empty:
        raise not_run("It needs cells with D ≥ N n/H.")
    smallest = finite_numbers(chosen, "lambda_b")
    by_heads = smallest.groupby(chosen["heads"]).min()
    return judge_theorem(
        smallest <= ZERO,
        chosen["seed"],
        details={
            "cells": len(chosen),
            **{f"least λ_B, H {heads}": float(least) for heads, least in by_heads.items()},
        },
    )


def _delta(cells: pd.DataFrame) -> Measurement:
    """Measure whether δ is above zero wherever D d ≥ N n²."""
    chosen = require_done(_SIZES.of(cells))
    chosen = chosen[_is_wide(chosen)]
    if chosen.empty:
        raise not_run("It needs cells with D d ≥ N n².")
    smallest = finite_numbers(chosen, "delta")
    narrow = chosen["d_h"] < chosen["tokens"]
    dependent = ~narrow & (chosen["d"] < chosen["n"] * chosen["tokens"])
    others = smallest[~narrow & ~dependent]
    return judge_theorem(
        smallest <= ZERO,
        chosen["seed"],
        note="A token's scores depend on its query in at most min(n, d) directions, so the rank of "
        "∂C/∂W_Q is at most N n min(n, d): below N n² where d < n.",
        details={
            "cells": len(chosen),
            "cells with δ zero": int((smallest <= ZERO).sum()),
            "cells with d < n": int(narrow.sum()),
            "of them with δ zero": int((smallest[narrow] <= ZERO).sum()),
            "cells with d ≥ n, D < N n": int(dependent.sum()),
            "of those with δ zero": int((smallest[dependent] <= ZERO).sum()),
            "least δ with d ≥ n, D ≥ N n": float(others.min()),
        },
    )


def _delta_needs(cells: pd.DataFrame) -> Measurement:
    """Measure whether δ is zero wherever D d < N n²; it can't be otherwise."""
    chosen = require_done(_SIZES.of(cells))
    chosen = chosen[~_is_wide(chosen)]
    if chosen.empty:
        raise not_run("It needs cells with D d < N n².")
    smallest = finite_numbers(chosen, "delta")
    why = (
        "A matrix of N n² rows and fewer columns can't have full row rank: this is linear algebra."
    )
    measured = judge_theorem(smallest > ZERO, chosen["seed"], details={"cells": len(chosen)})
    if measured.verdict == "fails":
        return measured
    return mark_vacuous(measured, why, {"largest δ": float(smallest.max())})


def _claim(
    name: str,
    source: str,
    statement: str,
    symbol: str,
    measure: Callable[[pd.DataFrame], Measurement],
) -> Claim:
    return Claim(
        name=f"sizes-{name}",
        source=f"{SOURCE}, {source}",
        statement=statement,
        holds_where=f"{THEOREM_RULE}; {symbol} is zero up to {ZERO:g}",
        measure=measure,
        preset=_PRESET,
    )


SIZE_CLAIMS = (
    _claim(
        "lambda-b", "Remark 1", "Where D ≥ N n/H, random weights have λ_B > 0.", "λ_B", _lambda_b
    ),
    _claim(
        "delta",
        "Remark 4, read as sufficient",
        "Where D d ≥ N n², random weights have δ > 0.",
        "δ",
        _delta,
    ),
    _claim("delta-needed", "Remark 4", "Where D d < N n², δ is 0.", "δ", _delta_needs),
)


class Lemma(NamedTuple):
    """A lemma's claim: its name, its source, its bound, its column, and values of its cells."""

    name: str
    source: str
    statement: str
    column: str
    values: Values


_SOFTMAX: Values = {"kernel": "softmax", "trained": "all", "heads": (1, 2, 4)}
_GAUSSIAN: Values = {"kernel": "gaussian", "trained": "all", "heads": (1, 2, 4)}
_QUERY: Values = {"kernel": "gaussian", "trained": "query"}

LOOSE = 0.01
"""A bound is taken as one that could be broken where cells come as near to it as this share: two
decades, for which constants that are added up in a proof may account."""

ROUNDING = 1e-9
"""By so much a left side may exceed its right side."""

FROM_BELOW = "lemma_least"
"""The column of the one bound from below; all others are from above."""

LEMMAS = (
    Lemma(
        "lemma2-scores",
        "Lemma 2 (1, 2)",
        "Softmax attention changes by at most φ_i per change of W_Q, and ψ_i per change of W_K.",
        "lemma_scores",
        _SOFTMAX,
    ),
    Lemma(
        "lemma2-gradients",
        "Lemma 2 (4, 5)",
        "A sample's gradients in W_Q and W_K are at most Q_i and K_i times its residual.",
        "lemma_gradients",
        _SOFTMAX,
    ),
    Lemma(
        "lemma3-outputs",
        "Lemma 3 (1), constant (90)",
        "From a step to the next the outputs change by at most Z times the change of the weights.",
        "lemma_outputs",
        _SOFTMAX,
    ),
    Lemma(
        "lemma3-gradients",
        "Lemma 3 (2), constant (98)",
        "From a step to the next the gradient changes by at most G times the change of weights.",
        "lemma_change",
        _SOFTMAX,
    ),
    Lemma(
        "lemma7-scores",
        "Lemma 7 (1, 2)",
        "The Gaussian's scores and their derivative change by at most the lemma's multiples of the "
        "change of W_Q.",
        "lemma_scores",
        _GAUSSIAN,
    ),
    Lemma(
        "lemma7-least",
        "Lemma 7 (3)",
        "The Gaussian's gradient in a sample's scores is at least min |V_i W_O| · min S_i times "
        "its residual.",
        FROM_BELOW,
        _GAUSSIAN,
    ),
    Lemma(
        "lemma7-gradients",
        "Lemma 7 (4)",
        "A sample's gradient in W_Q is at most Q'_i times its residual.",
        "lemma_gradients",
        _GAUSSIAN,
    ),
    Lemma(
        "lemma8-outputs",
        "Lemma 8 (1), constant in its proof",
        "With W_Q alone, the Gaussian's outputs change by at most Z' times the change of weights.",
        "lemma_outputs",
        _QUERY,
    ),
    Lemma(
        "lemma8-gradients",
        "Lemma 8 (2), constant in its proof",
        "With W_Q alone, the Gaussian's gradient changes by at most G' times the change of "
        "weights.",
        "lemma_change",
        _QUERY,
    ),
)


def _judge_lemma(cells: pd.DataFrame, lemma: Lemma, preset: str) -> Measurement:
    """Measure whether a left side is ever on the wrong side of its right side, and how near."""
    chosen = require_trained(selection(lemma.values, preset, any_target=True).of(cells))
    ratio = chosen[lemma.column].astype(float)
    ratio = ratio[(chosen["status"] == "done") | ratio.notna()]
    if (missing := int(ratio.isna().sum())) or ratio.empty:
        raise inconclusive(
            f"{missing} of {len(ratio)} cells don't have the numbers: too many scores, or nothing "
            "moved."
        )
    below = lemma.column == FROM_BELOW
    with np.errstate(divide="ignore"):
        near = 1 / ratio if below else ratio  # above 1 where the bound is broken
    measured = judge_theorem(
        near > 1 + ROUNDING,
        chosen.loc[ratio.index, "seed"],
        details={
            "cells": len(ratio),
            "left side over right side, least": float(ratio.min()),
            "median": float(ratio.median()),
            "most": float(ratio.max()),
        },
    )
    biting = chosen.loc[ratio.index[near > LOOSE], "seed"].nunique()
    if measured.verdict == "fails" or biting >= FEWEST_SEEDS_OF_THEOREM:
        return measured
    with np.errstate(divide="ignore"):
        decades = -float(np.log10(near.max()))
    return mark_vacuous(
        measured,
        f"The bound is too loose to be broken: on {plural(biting, 'seed')} cells come within a "
        f"factor of {1 / LOOSE:g} of it.",
        {"decades between the bound and what is nearest": decades},
    )


def _lemma_claim(lemma: Lemma) -> Claim:
    preset = "kernel-theorem3" if lemma.values is _QUERY else "kernel-theorem2"
    return Claim(
        name=lemma.name,
        source=f"{SOURCE}, appendix, {lemma.source}",
        statement=lemma.statement,
        holds_where=f"{THEOREM_RULE}, and on as many some cell comes within a factor of "
        f"{1 / LOOSE:g} of the bound",
        measure=partial(_judge_lemma, lemma=lemma, preset=preset),
        preset=preset,
    )


LEMMA_CLAIMS = tuple(map(_lemma_claim, LEMMAS))
