"""Claims on steps of the proofs of Theorems 1 to 3: (27) and (50), and inductions (45) and (67).

(27) of Lemma 1, which is (50) of Lemma 6 for the Gaussian, is the gradient of an unrestricted W_V.
Where W_V is block-diagonal, as in (5), it is too large, which is the slip behind Theorems 1 and 2.
The inductions' own conditions are (46) and (68). (46) is met only where W_Q and W_K keep every bit,
and (68) nowhere: where they move, what is asked of the inductions is a question of this tool.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import (
    Values,
    finite_numbers,
    is_unknown,
    one_setting,
    select_values,
)
from overfit_cli.claims.rules import (
    THEOREM_RULE,
    Requirements,
    judge_estimate,
    judge_theorem,
    share_of_seeds,
)
from overfit_cli.core.claim import Claim, Kind, Measurement, inconclusive, not_run
from overfit_cli.studies.attention_kernel.parameters import KernelName
from overfit_cli.studies.attention_kernel.regression.claims.rates import (
    GOES_TO_ZERO,
    ON_MOST_DRAWS,
    ROUND_OFF,
    SOURCE,
    cells_under,
    judge_zero,
    selection,
)
from overfit_cli.studies.attention_kernel.regression.data import draw_problem
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters
from overfit_cli.studies.attention_kernel.regression.theory import log10_kappa

HALF = 0.5
"""The share of λ_B or δ that the inductions keep."""

SLACK = 1e-9
"""By this share a number may lie below its bound."""

_SEVERAL = (2, 4)
_OF_ALL_HEADS = "The share of seeds on which it does with every number of heads."
_VALUE_ALONE = {"softmax": "kernel-theorem1", "gaussian": "kernel-theorem1-gaussian"}
_NEAR = "kernel-theorem2-near"
_WEIGHTS = "largest_weight"


def _judge_gradient(cells: pd.DataFrame, *, kernel: KernelName, several: bool) -> Measurement:
    """Judge whether ‖∇f‖² / 2f in W_V is ever below ‖W_O‖² λ_B², as (27) and (50) rule out."""
    values: Values = {"kernel": kernel, "trained": "value", "heads": _SEVERAL if several else 1}
    chosen = selection(values, _VALUE_ALONE[kernel]).of(cells)
    done = chosen["status"] == "done"
    for name in ("pl_ratio_min", "rate_paper", "lambda_b"):
        finite_numbers(chosen[done], name)
    ratio = chosen["pl_ratio_min"].astype(float) / chosen["rate_paper"].astype(float)
    unknown = is_unknown(chosen)
    vanishing = (ROUND_OFF - chosen["lambda_b"].astype(float)).mask(unknown, -np.inf)
    below = ratio < 1 - SLACK
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


def _judge_zero_in_values(cells: pd.DataFrame) -> Measurement:
    """Judge whether W_V alone reaches zero loss at some step size."""
    chosen = selection({"kernel": "softmax", "trained": "value", "heads": 4}, "kernel-theorem1").of(
        cells
    )
    vanishing = (ROUND_OFF - chosen["lambda_b"].astype(float)).mask(is_unknown(chosen), -np.inf)
    return judge_zero(chosen, {"λ_B below round-off, by": vanishing})


def _least_shares(
    rows: pd.DataFrame, column: Literal["lambda_b", "delta"], values: Values
) -> pd.DataFrame:
    """Return a singular value's least share of its start, one row for each seed and heads.

    Of several step sizes the smallest counts: the proofs take one that is small enough. A cell with
    a step that has no number is unknown: its share is nan.
    """
    chosen = select_values(rows, values)
    if chosen.empty:
        raise not_run("It needs logged steps of such cells.")
    free = {"heads", "learning_rate"}
    chosen = one_setting(
        chosen, [n for n in KernelRegressionParameters.model_fields if n not in free]
    )
    chosen = chosen[chosen["learning_rate"] == chosen["learning_rate"].min()].sort_values("step")
    by_cell = chosen.groupby(["heads", "seed"])
    known = by_cell[column].apply(lambda numbers: numbers.notna().all())
    known &= by_cell["status"].first() == "done"
    start = by_cell[column].first()
    shares = pd.DataFrame(
        {
            "share": (by_cell[column].min() / start).where(known),
            "start": start.where(known),
            "attention": by_cell["smallest_attention"].min().where(known),
        }
    )
    return shares.reset_index()


def _details(shares: pd.DataFrame, words: str) -> dict[str, float]:
    by_heads = shares.groupby("heads")["share"]
    return {
        "cells": len(shares),
        **{f"{words}, least, H {heads}": float(value) for heads, value in by_heads.min().items()},
        **{f"{words}, median, H {heads}": float(v) for heads, v in by_heads.median().items()},
    }


def _judge_45(rows: pd.DataFrame) -> Measurement:
    """Judge whether λ_B stays above half its start where (8) is met."""
    values: Values = {"kernel": "softmax", "trained": "all", "balance": 1e20}
    shares = _least_shares(rows, "lambda_b", values)
    return judge_theorem(
        shares["share"] < HALF,
        shares["seed"],
        unknown=shares["share"].isna(),
        requirements=Requirements(
            {"λ_B below round-off, by": (ROUND_OFF - shares["start"]).fillna(-np.inf)},
            "λ_B is above zero",
        ),
        details=_details(shares, "λ_B over its start"),
    )


def _judge_45_free(rows: pd.DataFrame, *, kernel: KernelName) -> Measurement:
    """Measure on which share of the seeds λ_B stays above half its start, from drawn weights."""
    values: Values = {"kernel": kernel, "trained": "all", "balance": 1.0, "target": "below"}
    shares = _least_shares(rows, "lambda_b", values)
    unknown = shares["share"].isna()
    return judge_estimate(
        share_of_seeds(shares["share"] >= HALF, shares["seed"], unknown),
        ON_MOST_DRAWS,
        details=_details(shares, "λ_B over its start"),
        note=_OF_ALL_HEADS,
    )


def _judge_45_near(rows: pd.DataFrame) -> Measurement:
    """Judge whether λ_B stays above half its start where near labels meet (8)."""
    values: Values = {"kernel": "softmax", "trained": "all", "target": "near", "heads": 4}
    shares = _least_shares(rows, "lambda_b", values)
    return judge_theorem(
        shares["share"] < HALF,
        shares["seed"],
        unknown=shares["share"].isna(),
        requirements=Requirements(
            {"λ_B below round-off, by": (ROUND_OFF - shares["start"]).fillna(-np.inf)},
            "λ_B is above zero",
        ),
        details=_details(shares, "λ_B over its start"),
    )


def _judge_weights(
    cells: pd.DataFrame, *, values: Values, preset: str, condition: str = ""
) -> Measurement:
    """Judge whether σ_max of every trained weight matrix stays below its induction's bound.

    Of several step sizes the smallest counts. Without a condition the share of seeds is measured.
    """
    if condition:
        chosen, decades = cells_under(condition, cells, values, preset)
    else:
        chosen = selection(values, preset).of(cells)
    chosen = chosen[chosen["learning_rate"] == chosen["learning_rate"].min()]
    if _WEIGHTS not in chosen:
        raise inconclusive(f"No cell has a number of {_WEIGHTS}: sweep again.")
    finite_numbers(chosen[chosen["status"] == "done"], _WEIGHTS)
    ratio = chosen[_WEIGHTS].astype(float)
    unknown = ratio.isna()
    by_heads = ratio.groupby(chosen["heads"])
    details = {
        "cells": len(chosen),
        **{
            f"σ_max over its bound, most, H {count}": float(v)
            for count, v in by_heads.max().items()
        },
    }
    if not condition:
        kept = share_of_seeds(ratio <= 1 + SLACK, chosen["seed"], unknown)
        return judge_estimate(kept, ON_MOST_DRAWS, details=details, note=_OF_ALL_HEADS)
    missed = {f"decades by which ({condition}) is missed": decades[chosen.index]}
    return judge_theorem(
        ratio > 1 + SLACK,
        chosen["seed"],
        unknown=unknown,
        requirements=Requirements(missed, ", ".join(missed)),
        decades_over=ratio.map(np.log10).fillna(np.inf),
        details=details,
    )


def _judge_67(rows: pd.DataFrame) -> Measurement:
    """Judge whether δ stays above half its start, and S above κ, where (12) is met."""
    values: Values = {
        "kernel": "gaussian",
        "trained": "query",
        "target": "near",
        "heads": 1,
        "sigma_w": 0.02,
    }
    shares = _least_shares(rows, "delta", values)
    first = select_values(rows, values).iloc[0]
    sizes = {name: int(first[name]) for name in ("n", "tokens", "d", "d_h")}
    parameters = KernelRegressionParameters.model_validate({**values, **sizes})
    kappa = shares["seed"].map(lambda seed: 10 ** log10_kappa(draw_problem(parameters, int(seed))))
    broken = (shares["share"] < HALF) | (shares["attention"] < kappa)
    over = pd.DataFrame([HALF / shares["share"], kappa / shares["attention"]]).max()
    return judge_theorem(
        broken,
        shares["seed"],
        unknown=shares["share"].isna(),
        requirements=Requirements(
            {"δ below round-off, by": (ROUND_OFF - shares["start"]).fillna(-np.inf)},
            "δ is above zero",
        ),
        decades_over=over.map(np.log10),
        details={
            **_details(shares, "δ over its start"),
            "smallest attention, least": float(shares["attention"].min()),
            "κ, most": float(kappa.max()),
        },
    )


def _claim(
    name: str,
    kind: Kind,
    source: str,
    statement: str,
    hypotheses: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
    preset: str,
    **further: Any,
) -> Claim:
    return Claim(
        name=name,
        kind=kind,
        source=f"{SOURCE}, {source}",
        statement=statement,
        hypotheses=hypotheses,
        holds_where=holds_where,
        measure=measure,
        figure="curves",
        preset=preset,
        **further,
    )


_POSITIVE = "λ_B is above zero"
_NEAR_MEETS_8 = "condition (8) is met by near labels; (46), the induction's own, is missed"
_LAST_STEPS = "the last steps of appendix 1.3"
_BOUND = "‖∇f‖² is at least 2f ‖W_O‖² λ_B²"
_GRADIENTS: tuple[tuple[str, KernelName, Kind, str, str], ...] = (
    (
        "lemma1",
        "softmax",
        "paper",
        f"Lemma 1, (27), and {_LAST_STEPS}",
        f"softmax attention's gradient in W_V is Bᵀ (MH − y) W_Oᵀ, so that {_BOUND}.",
    ),
    (
        "lemma6",
        "gaussian",
        "ours",
        f"Lemma 6, (50), with {_LAST_STEPS}, which are about softmax",
        f"{_BOUND} in W_V for Gaussian attention too, as (50) would have it.",
    ),
)
_BOUNDED = (
    "the largest singular values of W_Q and W_K stay below 3/2 of their start, and that of W_V "
    "below 1 plus its start"
)

CLAIMS = (
    *(
        _claim(
            f"{lemma}-value-{'several' if several else 'one'}",
            kind if several else "identity",
            source,
            f"With {'2 or 4 heads' if several else 'one head'} {statement}",
            f"{_POSITIVE}; W_V is block-diagonal over heads, as in (5)",
            f"{THEOREM_RULE}; a cell breaks it where the ratio of the two is below 1 at a logged "
            "step",
            partial(_judge_gradient, kernel=kernel, several=several),
            _VALUE_ALONE[kernel],
        )
        for lemma, kernel, kind, source, statement in _GRADIENTS
        for several in (False, True)
    ),
    _claim(
        "theorem1-zero",
        "identity",
        "Theorem 1",
        "With W_V alone trained there is a step size with which softmax attention reaches zero "
        "loss, the global optimum (H = 4).",
        f"{_POSITIVE}; least squares can't stop above zero then",
        GOES_TO_ZERO,
        _judge_zero_in_values,
        "kernel-theorem1",
        profile="paper",
    ),
    _claim(
        "induction-45",
        "identity",
        "appendix 1.3, (45)",
        "Where (8) is met, the smallest singular value of B stays above half its start.",
        f"{_POSITIVE}; condition (8) is met by a balance of 1e20, with which W_Q and W_K keep "
        "every bit",
        f"{THEOREM_RULE}; at the smallest step size, at logged steps",
        _judge_45,
        "kernel-theorem2-balanced",
        reads="trajectories",
    ),
    *(
        _claim(
            f"induction-45-{kernel}-free",
            "ours",
            "appendix 1.3, (45), without condition (8)",
            f"From drawn weights, which miss (8), the smallest singular value of B stays above "
            f"half its start with {kernel} attention.",
            "",
            ON_MOST_DRAWS.in_words(
                "the share of seeds on which it does, with every number of heads,"
            ),
            partial(_judge_45_free, kernel=kernel),
            "kernel-theorem2",
            reads="trajectories",
        )
        for kernel in ("softmax", "gaussian")
    ),
    _claim(
        "induction-45-near",
        "ours",
        "appendix 1.3, (45), where (8) is met and (46) is not",
        "From near the optimum the smallest singular value of B stays above half its start, at "
        "H = 4.",
        f"{_POSITIVE}; {_NEAR_MEETS_8}",
        f"{THEOREM_RULE}; at the smallest step size, at logged steps",
        _judge_45_near,
        _NEAR,
        reads="trajectories",
    ),
    _claim(
        "induction-45-weights-near",
        "ours",
        "appendix 1.3, (45), where (8) is met and (46) is not",
        f"From near the optimum {_BOUNDED}.",
        _NEAR_MEETS_8,
        f"{THEOREM_RULE}; at the smallest step size, at logged steps, for every head",
        partial(
            _judge_weights,
            values={"kernel": "softmax", "trained": "all", "target": "near", "heads": (1, 2, 4)},
            preset=_NEAR,
            condition="8",
        ),
        _NEAR,
    ),
    _claim(
        "induction-45-weights-free",
        "ours",
        "appendix 1.3, (45), without condition (8)",
        f"From drawn weights, which miss (8), {_BOUNDED}.",
        "",
        ON_MOST_DRAWS.in_words("the share of seeds on which they do, at the smallest step size,"),
        partial(
            _judge_weights,
            values={
                "kernel": "softmax",
                "trained": "all",
                "target": "below",
                "balance": 1.0,
                "heads": (1, 2, 4),
            },
            preset="kernel-theorem2",
        ),
        "kernel-theorem2",
    ),
    _claim(
        "induction-67-weights",
        "ours",
        "appendix 1.5, (67), where (12) is met and (68) is not",
        "With W_Q alone trained, Gaussian attention keeps the largest singular value of W_Q below "
        "3/2 of its start.",
        "condition (12) is met by small W_Q and W_K and near labels; (68) is missed",
        f"{THEOREM_RULE}; at the smallest step size, at logged steps",
        partial(
            _judge_weights,
            values={"kernel": "gaussian", "trained": "query", "target": "near", "sigma_w": 0.02},
            preset="kernel-theorem3-near",
            condition="12",
        ),
        "kernel-theorem3-near",
    ),
    _claim(
        "induction-67",
        "ours",
        "appendix 1.5, (67), where (12) is met and (68) is not",
        "With W_Q alone trained, Gaussian attention keeps δ above half its start, and every "
        "attention above κ.",
        "condition (12) is met by small W_Q and W_K and near labels, and (68), the induction's "
        "own, is missed; δ is above zero",
        f"{THEOREM_RULE}; at the smallest step size, at logged steps",
        _judge_67,
        "kernel-theorem3-near",
        reads="trajectories",
    ),
)
