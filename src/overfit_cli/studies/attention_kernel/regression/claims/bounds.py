"""Claims on Lemmas 2, 3, 7 and 8, and on the sizes that the theorems need (Remarks 1 and 4).

The lemmas are bounds with explicit constants; the details say how loose they are. Those that a few
lines of algebra prove, at any weights, are checks of the code. The remarks say at which sizes
random weights have λ_B > 0 and δ > 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, Values, finite_numbers, is_unknown
from overfit_cli.claims.rules import (
    THEOREM_RULE,
    Margin,
    judge_estimate,
    judge_theorem,
    share_of_seeds,
)
from overfit_cli.core.claim import Claim, Kind, Measurement, not_run
from overfit_cli.studies.attention_kernel.regression.claims.rates import (
    ROUND_OFF,
    SOURCE,
    selection,
)
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters

_PRESET, _THEOREM_3 = "kernel-sizes", "kernel-theorem3"

OFTEN = Margin(least=0.8, because="our reading of a high probability", fewest_seeds=10)

_SIZES = Selection(
    KernelRegressionParameters,
    at={"trained": "value", "kernel": ("softmax", "gaussian")},
    vary=("heads", "learning_rate"),
    alike=("n", "tokens", "target", "training_steps", "sigma_w", "balance", "dtype"),
    fewest={"d": 2, "d_h": 2},
    preset=_PRESET,
)


def _is_wide(cells: pd.DataFrame) -> pd.Series[bool]:
    """Whether D d ≥ N n²."""
    return cells["d"] * cells["d_h"] >= cells["n"] * cells["tokens"] ** 2


def _of_sizes(cells: pd.DataFrame, column: str, fits: pd.Series[bool]) -> pd.Series[float]:
    """A singular value of the cells of some sizes; nan of cells that failed or are absent."""
    if not fits.any():
        raise not_run("It needs cells of such sizes.")
    done = fits & (cells["status"] == "done")
    return finite_numbers(cells[done], column).reindex(cells.index[fits])


def _lambda_b(cells: pd.DataFrame) -> Measurement:
    """Measure on which share of the seeds λ_B is above zero wherever D ≥ N n/H."""
    chosen = _SIZES.of(cells)
    enough = chosen["d"] * chosen["heads"] >= chosen["n"] * chosen["tokens"]
    smallest = _of_sizes(chosen, "lambda_b", enough)
    fitting = chosen.loc[smallest.index]
    by_heads = smallest.groupby(fitting["heads"]).min()
    return judge_estimate(
        share_of_seeds(smallest > ROUND_OFF, fitting["seed"], smallest.isna()),
        OFTEN,
        details={
            "cells": len(fitting),
            **{f"least λ_B, H {heads}": float(least) for heads, least in by_heads.items()},
        },
    )


def _delta(cells: pd.DataFrame) -> Measurement:
    """Measure whether δ is above zero wherever D d ≥ N n²."""
    chosen = _SIZES.of(cells)
    smallest = _of_sizes(chosen, "delta", _is_wide(chosen))
    chosen = chosen.loc[smallest.index]
    narrow = chosen["d_h"] < chosen["tokens"]
    dependent = ~narrow & (chosen["d"] < chosen["n"] * chosen["tokens"])
    others = smallest[~narrow & ~dependent]
    return judge_theorem(
        smallest <= ROUND_OFF,
        chosen["seed"],
        unknown=smallest.isna(),
        note="A token's scores depend on its query in at most min(n, d) directions, so the rank of "
        "∂C/∂W_Q is at most N n min(n, d): below N n² where d < n.",
        details={
            "cells": len(chosen),
            "cells with δ zero": int((smallest <= ROUND_OFF).sum()),
            "cells with d < n": int(narrow.sum()),
            "of them with δ zero": int((smallest[narrow] <= ROUND_OFF).sum()),
            "cells with d ≥ n, D < N n": int(dependent.sum()),
            "of those with δ zero": int((smallest[dependent] <= ROUND_OFF).sum()),
            "least δ with d ≥ n, D ≥ N n": float(others.min()),
        },
    )


def _delta_needs(cells: pd.DataFrame) -> Measurement:
    """Measure whether δ is zero wherever D d < N n²: a matrix has no more rank than columns."""
    chosen = _SIZES.of(cells)
    smallest = _of_sizes(chosen, "delta", ~_is_wide(chosen))
    return judge_theorem(
        smallest > ROUND_OFF,
        chosen.loc[smallest.index, "seed"],
        unknown=smallest.isna(),
        details={"cells": len(smallest), "largest δ": float(smallest.max())},
    )


def _claim(
    name: str,
    kind: Kind,
    source: str,
    statement: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
) -> Claim:
    return Claim(
        name=f"sizes-{name}",
        kind=kind,
        source=f"{SOURCE}, {source}",
        statement=statement,
        hypotheses="tokens, W_Q and W_K are Gaussian, with D ≥ N n/H" if kind == "paper" else "",
        holds_where=f"{holds_where}; a singular value up to {ROUND_OFF:g} is zero",
        measure=measure,
        preset=_PRESET,
    )


SIZE_CLAIMS = (
    _claim(
        "lambda-b",
        "paper",
        "Remark 1",
        "Where D ≥ N n/H, random initialization gives λ_B > 0 with high probability.",
        OFTEN.in_words("the share of seeds with λ_B > 0 in every such cell"),
        _lambda_b,
    ),
    _claim(
        "delta",
        "ours",
        "the size of Remark 4, which the paper says is necessary, read as sufficient",
        "Where D d ≥ N n², random weights have δ > 0.",
        THEOREM_RULE,
        _delta,
    ),
    _claim(
        "delta-needed",
        "identity",
        "Remark 4",
        "Where D d < N n², δ is 0.",
        THEOREM_RULE,
        _delta_needs,
    ),
)


class Lemma(NamedTuple):
    """A lemma's claim: its name, kind, source and bound, its column, and values of its cells."""

    name: str
    kind: Kind
    source: str
    statement: str
    column: str
    values: Values


_SOFTMAX: Values = {"kernel": "softmax", "trained": "all", "heads": (1, 2, 4)}
_GAUSSIAN: Values = {"kernel": "gaussian", "trained": "all", "heads": (1, 2, 4)}
_QUERY: Values = {"kernel": "gaussian", "trained": "query"}

ROUNDING = 1e-9
"""By so much a left side may exceed its right side."""

FROM_BELOW = "lemma_least"
"""The column of the one bound from below; all others are from above."""

LEMMAS = (
    Lemma(
        "lemma2-scores",
        "identity",
        "Lemma 2 (1, 2)",
        "Softmax attention changes by at most φ_i per change of W_Q, and ψ_i per change of W_K.",
        "lemma_scores",
        _SOFTMAX,
    ),
    Lemma(
        "lemma2-gradients",
        "paper",
        "Lemma 2 (4, 5)",
        "A sample's gradients in W_Q and W_K are at most Q_i and K_i times its residual.",
        "lemma_gradients",
        _SOFTMAX,
    ),
    Lemma(
        "lemma3-outputs",
        "paper",
        "Lemma 3 (1), constant (90)",
        "From a step to the next the outputs change by at most Z times the change of the weights.",
        "lemma_outputs",
        _SOFTMAX,
    ),
    Lemma(
        "lemma3-gradients",
        "paper",
        "Lemma 3 (2), constant (98)",
        "From a step to the next the gradient changes by at most G times the change of weights.",
        "lemma_change",
        _SOFTMAX,
    ),
    Lemma(
        "lemma7-scores",
        "identity",
        "Lemma 7 (1, 2)",
        "The Gaussian's scores and their derivative change by at most the lemma's multiples of the "
        "change of W_Q.",
        "lemma_scores",
        _GAUSSIAN,
    ),
    Lemma(
        "lemma7-least",
        "identity",
        "Lemma 7 (3)",
        "The Gaussian's gradient in a sample's scores is at least min |V_i W_O| · min S_i times "
        "its residual.",
        FROM_BELOW,
        _GAUSSIAN,
    ),
    Lemma(
        "lemma7-gradients",
        "paper",
        "Lemma 7 (4)",
        "A sample's gradient in W_Q is at most Q'_i times its residual.",
        "lemma_gradients",
        _GAUSSIAN,
    ),
    Lemma(
        "lemma8-outputs",
        "paper",
        "Lemma 8 (1), constant in its proof",
        "With W_Q alone, the Gaussian's outputs change by at most Z' times the change of weights.",
        "lemma_outputs",
        _QUERY,
    ),
    Lemma(
        "lemma8-gradients",
        "paper",
        "Lemma 8 (2), constant in its proof",
        "With W_Q alone, the Gaussian's gradient changes by at most G' times the change of "
        "weights.",
        "lemma_change",
        _QUERY,
    ),
)


def _judge_lemma(cells: pd.DataFrame, lemma: Lemma, preset: str) -> Measurement:
    chosen = selection(lemma.values, preset, any_target=True).of(cells)
    finite_numbers(chosen[chosen["status"] == "done"], lemma.column)
    ratio = chosen[lemma.column].astype(float)
    at_start = (chosen["status"] == "done") | ratio.notna() | is_unknown(chosen)
    chosen, ratio = chosen[at_start], ratio[at_start]  # a diverged cell has no path to judge
    with np.errstate(divide="ignore"):
        near = 1 / ratio if lemma.column == FROM_BELOW else ratio  # above 1 where it is broken
        decades = near.map(np.log10)
    return judge_theorem(
        near > 1 + ROUNDING,
        chosen["seed"],
        unknown=ratio.isna(),
        decades_over=decades.fillna(np.inf),
        details={
            "cells": len(ratio),
            "left side over right side, least": float(ratio.min()),
            "median": float(ratio.median()),
            "most": float(ratio.max()),
        },
    )


def _lemma_claim(lemma: Lemma) -> Claim:
    preset = _THEOREM_3 if lemma.values is _QUERY else "kernel-theorem2"
    return Claim(
        name=lemma.name,
        kind=lemma.kind,
        source=f"{SOURCE}, appendix, {lemma.source}",
        statement=lemma.statement,
        hypotheses="the weights are bounded: by their start, and by the length of their path",
        holds_where=THEOREM_RULE,
        measure=partial(_judge_lemma, lemma=lemma, preset=preset),
        preset=preset,
    )


LEMMA_CLAIMS = tuple(map(_lemma_claim, LEMMAS))
