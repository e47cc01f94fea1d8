"""Lemmas 2, 3, 7 and 8 of the appendix: bounds with explicit constants, and how loose they are."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Values, trained
from overfit_cli.claims.rules import (
    FEWEST_WITHOUT_EXCEPTION,
    WITHOUT_EXCEPTION,
    vacuous,
    without_exception,
)
from overfit_cli.core.claim import Claim, Measurement, inconclusive
from overfit_cli.core.text import plural
from overfit_cli.studies.attention_kernel.regression.claims.selection import SOURCE, selection


class Place(NamedTuple):
    """Cells that bear on lemmas, and the preset that has them."""

    values: Values
    preset: str


class Lemma(NamedTuple):
    """A lemma's claim: its name and its place in the paper, what it bounds, and the column."""

    name: str
    place: str
    statement: str
    column: str
    cells: Place


_SOFTMAX = Place({"kernel": "softmax", "trained": "all", "heads": (1, 2, 4)}, "kernel-theorem2")
_GAUSSIAN = Place({"kernel": "gaussian", "trained": "all", "heads": (1, 2, 4)}, "kernel-theorem2")
_QUERY = Place({"kernel": "gaussian", "trained": "query"}, "kernel-theorem3")

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


def _within(cells: pd.DataFrame, column: str, place: Place) -> Measurement:
    """Measure whether a left side is ever on the wrong side of its right side, and how near."""
    chosen = trained(selection(place.values, place.preset, any_target=True).of(cells))
    ratio = chosen[column].astype(float)[(chosen["status"] == "done") | chosen[column].notna()]
    if (missing := int(ratio.isna().sum())) or ratio.empty:
        raise inconclusive(
            f"{missing} of {len(ratio)} cells don't have the numbers: too many scores, or nothing "
            "moved."
        )
    below = column == FROM_BELOW
    with np.errstate(divide="ignore"):
        near = 1 / ratio if below else ratio  # above 1 where the bound is broken
    found = without_exception(
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
    if found.verdict == "fails" or biting >= FEWEST_WITHOUT_EXCEPTION:
        return found
    with np.errstate(divide="ignore"):
        decades = -float(np.log10(near.max()))
    return vacuous(
        found,
        f"The bound is too loose to be broken: on {plural(biting, 'seed')} cells come within a "
        f"factor of {1 / LOOSE:g} of it.",
        {"decades between the bound and what is nearest": decades},
    )


CLAIMS = tuple(
    Claim(
        name=lemma.name,
        source=f"{SOURCE}, appendix, {lemma.place}",
        statement=lemma.statement,
        holds_where=f"{WITHOUT_EXCEPTION}, and on as many some cell comes within a factor of "
        f"{1 / LOOSE:g} of the bound",
        measure=partial(_within, column=lemma.column, place=lemma.cells),
        preset=lemma.cells.preset,
    )
    for lemma in LEMMAS
)
