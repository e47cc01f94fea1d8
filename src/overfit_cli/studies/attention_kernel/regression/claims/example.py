"""Section 4.2.2's example: a gradient of zero at a loss above zero, and the escape from it."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Values, finite_numbers, is_unknown
from overfit_cli.claims.rules import mark_vacuous
from overfit_cli.core.claim import Claim, Measurement, Verdict, not_run
from overfit_cli.studies.attention_kernel.regression.claims.rates import SOURCE, selection

_SOURCE = f"{SOURCE}, section 4.2.2, example"
_PRESET = "kernel-example-condition"

_SOFTMAX: Values = {"instance": "example", "trained": "query", "kernel": "softmax"}
_WEIGHTS: Values = {"label": 2.995, "weights": "identity", "sigma_w": 0.1}
"""With these softmax attention meets condition (12)."""


INSTANCE_RULE = "nothing is drawn, so that one cell decides"


def judge_instance(
    correct: bool, value: float, note: str, details: Mapping[str, float]
) -> Measurement:
    """Return the measurement of an instance without random draws; nan decides nothing."""
    verdict: Verdict = "holds" if correct else "fails"
    return Measurement(
        verdict="inconclusive" if math.isnan(value) else verdict,
        value=value,
        details=details,
        note=f"Nothing is drawn. {note}",
    )


def _unless_12(cells: pd.DataFrame, measured: Measurement) -> Measurement:
    decades = finite_numbers(cells, "condition_12")
    if decades.max() <= 0:
        return measured
    why = "Condition (12) is not met."
    return mark_vacuous(measured, why, {"decades by which it is missed": float(decades.max())})


def _vanishing_gradient(cells: pd.DataFrame) -> Measurement:
    chosen = selection({**_SOFTMAX, "value_gap": 0.0, **_WEIGHTS}, _PRESET).of(cells)
    known = chosen[~is_unknown(chosen)]
    in_query, in_key = (
        finite_numbers(known, f"gradient_{name}_start") for name in ("query", "key")
    )
    gradients = np.maximum(in_query, in_key)
    start, end = finite_numbers(known, "start_loss"), finite_numbers(known, "train_loss")
    right = (gradients == 0) & (start > 0) & (start == end)
    numbers = {
        "cells": len(chosen),
        "largest gradient": float(gradients.max()),
        "least loss at the end": float(end.min()),
        "steps": float(chosen["steps"].max()),
        "decades by which (12) is missed, most": float(chosen["condition_12"].max()),
    }
    note = "The largest gradient in W_Q or W_K, at the start."
    measured = judge_instance(
        bool(right.all()), numbers["largest gradient"], note=note, details=numbers
    )
    return _unless_12(chosen, measured)


def _escape(cells: pd.DataFrame) -> Measurement:
    chosen = selection({**_SOFTMAX, **_WEIGHTS}, _PRESET).of(cells)
    unknown = is_unknown(chosen)
    judged = (chosen["value_gap"] > 0) & (unknown | (chosen["status"] == "done"))
    chosen, unknown = chosen[judged], unknown[judged]
    if chosen.empty:
        raise not_run(f"It needs cells of value_gap above 0, as in `overfit sweep {_PRESET}`.")
    gradient, loss = (
        finite_numbers(chosen[~unknown], name).reindex(chosen.index)
        for name in ("gradient_query_start", "relative_loss")
    )
    right = (gradient > 0) & (loss < 1)
    least = (1 - loss).groupby(chosen["value_gap"]).min()
    details = {
        "least gradient": float(gradient.min()),
        **{f"least fall as a share of the start, ε {gap:g}": fall for gap, fall in least.items()},
    }
    note = "The least fall of the loss, as a share of its start."
    all_right = bool(right[~unknown].all())
    lost = all_right and unknown.any()  # what is lost may decide
    value = math.nan if lost else float(least.min())
    measured = judge_instance(all_right, value, note=note, details=details)
    return _unless_12(chosen[~unknown], measured)


CLAIMS = (
    Claim(
        name="example-gradient",
        kind="paper",
        source=_SOURCE,
        statement="Where condition (12) is met and both token values are equal, softmax's gradient "
        "in W_Q is zero at a loss above zero.",
        hypotheses="condition (12) is met with W_Q = W_K = 0.1 I and label 2.995, which the paper "
        "leaves open",
        holds_where=f"the gradients are exactly 0 and the loss never changes; {INSTANCE_RULE}",
        measure=_vanishing_gradient,
        figure="curves",
        preset=_PRESET,
    ),
    Claim(
        name="example-escape",
        kind="ours",
        source=f"{_SOURCE}, with values set apart",
        statement="Where condition (12) is met, token values of 3 ± ε let softmax escape.",
        holds_where=f"its gradient is above 0, and its loss falls; {INSTANCE_RULE}",
        measure=_escape,
        figure="curves",
        preset=_PRESET,
    ),
)
