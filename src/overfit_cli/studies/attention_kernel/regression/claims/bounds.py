"""Claims on Lemmas 1, 2, 3, 7 and 8, and on the sizes that the theorems need (Remarks 1 and 4).

(27) of Lemma 1 is the gradient of an unrestricted W_V. Where W_V is block-diagonal, as in (5), it
is too large, which is the slip behind Theorems 1 and 2. The other lemmas are bounds with explicit
constants; the details say how loose they are. The remarks say at which sizes random weights have
λ_B > 0 and δ > 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, Values, finite_numbers, is_unknown
from overfit_cli.claims.parts import Margin, Part
from overfit_cli.claims.rules import THEOREM_RULE, Requirements, judge, judge_theorem
from overfit_cli.core.claim import Claim, Kind, Measurement, not_run
from overfit_cli.studies.attention_kernel.regression.claims.rates import (
    ROUND_OFF,
    SOURCE,
    selection,
)
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters

_PRESET, _VALUE_ALONE, _THEOREM_3 = "kernel-sizes", "kernel-theorem1", "kernel-theorem3"

ROUNDING = 1e-9
"""By this share a number may lie beyond its bound."""

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
    return judge(
        [Part.of_cells(smallest > ROUND_OFF, smallest.isna(), fitting["seed"], OFTEN)],
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
)


def _judge_gradient(cells: pd.DataFrame) -> Measurement:
    """Judge whether ‖∇f‖² / 2f in W_V is ever below ‖W_O‖² λ_B², as (27) rules out."""
    values: Values = {"kernel": "softmax", "trained": "value", "heads": (2, 4)}
    chosen = selection(values, _VALUE_ALONE).of(cells)
    done = chosen["status"] == "done"
    for name in ("pl_ratio_min", "rate_paper", "lambda_b"):
        finite_numbers(chosen[done], name)
    ratio = chosen["pl_ratio_min"].astype(float) / chosen["rate_paper"].astype(float)
    unknown = is_unknown(chosen)
    vanishing = (ROUND_OFF - chosen["lambda_b"].astype(float)).mask(unknown, -np.inf)
    below = ratio < 1 - ROUNDING
    by_heads = ratio.groupby(chosen["heads"])
    return judge_theorem(
        below,
        chosen["seed"],
        unknown=ratio.isna(),
        requirements=Requirements({"λ_B below round-off, by": vanishing}, "λ_B is above zero"),
        note="The ratio is that of ‖∇f‖² to 2f ‖W_O‖² λ_B², least over logged steps.",
        details={
            "cells": len(chosen),
            **{
                f"cells with a ratio below 1, H {count}": int(number)
                for count, number in below.groupby(chosen["heads"]).sum().items()
            },
            **{
                f"least ratio, median, H {count}": float(v)
                for count, v in by_heads.median().items()
            },
            **{f"least ratio, least, H {count}": float(v) for count, v in by_heads.min().items()},
        },
    )


LEMMA_1 = Claim(
    name="lemma1-value-several",
    kind="paper",
    source=f"{SOURCE}, Lemma 1, (27), and the last steps of appendix 1.3",
    statement="With 2 or 4 heads softmax attention's gradient in W_V is Bᵀ (MH − y) W_Oᵀ, so that "
    "‖∇f‖² is at least 2f ‖W_O‖² λ_B².",
    hypotheses="λ_B is above zero; W_V is block-diagonal over heads, as in (5)",
    holds_where=f"{THEOREM_RULE}; a cell breaks it where the ratio of the two is below 1 at a "
    "logged step",
    measure=_judge_gradient,
    figure="curves",
    preset=_VALUE_ALONE,
)


class Lemma(NamedTuple):
    """A lemma's claim: its name, source and bound, its column, and values of its cells."""

    name: str
    source: str
    statement: str
    column: str
    values: Values


_SOFTMAX: Values = {"kernel": "softmax", "trained": "all", "heads": (1, 2, 4)}
_GAUSSIAN: Values = {"kernel": "gaussian", "trained": "all", "heads": (1, 2, 4)}
_QUERY: Values = {"kernel": "gaussian", "trained": "query"}

LEMMAS = (
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
    chosen = selection(lemma.values, preset, any_target=True).of(cells)
    finite_numbers(chosen[chosen["status"] == "done"], lemma.column)
    ratio = chosen[lemma.column].astype(float)
    at_start = (chosen["status"] == "done") | ratio.notna() | is_unknown(chosen)
    chosen, ratio = chosen[at_start], ratio[at_start]  # a diverged cell has no path to judge
    with np.errstate(divide="ignore"):
        decades = ratio.map(np.log10)
    return judge_theorem(
        ratio > 1 + ROUNDING,
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
        kind="paper",
        source=f"{SOURCE}, appendix, {lemma.source}",
        statement=lemma.statement,
        hypotheses="the weights are bounded: by their start, and by the length of their path",
        holds_where=THEOREM_RULE,
        measure=partial(_judge_lemma, lemma=lemma, preset=preset),
        preset=preset,
    )


LEMMA_CLAIMS = (LEMMA_1, *map(_lemma_claim, LEMMAS))
