"""Section 4.2.2's example: a gradient of exactly zero at a loss above zero, and the escape from it.

The paper leaves the label and W_Q and W_K open. With some of them condition (12) is met and nothing
is drawn; with weights drawn and a label further away it isn't met, and the gradient is zero too.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Values, finite_numbers, is_unknown
from overfit_cli.claims.rules import (
    INSTANCE_RULE,
    THEOREM_RULE,
    judge_instance,
    judge_theorem,
    mark_vacuous,
)
from overfit_cli.core.claim import Claim, Measurement, not_run
from overfit_cli.studies.attention_kernel.regression.claims.rates import (
    SOURCE,
    selection,
    zero_by_step_size,
)

_SOURCE = f"{SOURCE}, section 4.2.2, example"
_MET, _DRAWN = "kernel-example-condition", "kernel-example"

_WEIGHTS: Values = {"label": 2.995, "weights": "identity", "sigma_w": 0.1}
"""With these softmax attention meets condition (12)."""


def _cells(cells: pd.DataFrame, preset: str, kernel: str, **more: object) -> pd.DataFrame:
    values: Values = {"instance": "example", "trained": "query", "kernel": kernel, **more}
    return selection({**values, **(_WEIGHTS if preset == _MET else {})}, preset).of(cells)


def _unless_12(cells: pd.DataFrame, measured: Measurement) -> Measurement:
    """Return a measurement; a vacuous one where the cells miss condition (12)."""
    decades = finite_numbers(cells, "condition_12")
    if decades.max() <= 0:
        return measured
    why = "Condition (12) is not met."
    return mark_vacuous(measured, why, {"decades by which it is missed": float(decades.max())})


def _is_stuck(chosen: pd.DataFrame) -> tuple[pd.Series[bool], dict[str, float]]:
    """Whether gradients are exactly zero and the loss stays above zero; and by which numbers."""
    known = chosen[~is_unknown(chosen)]
    in_query, in_key = (
        finite_numbers(known, f"gradient_{name}_start") for name in ("query", "key")
    )
    gradients = np.maximum(in_query, in_key)
    start, end = finite_numbers(known, "start_loss"), finite_numbers(known, "train_loss")
    return (gradients == 0) & (start > 0) & (start == end), {
        "cells": len(chosen),
        "largest gradient": float(gradients.max()),
        "least loss at the end": float(end.min()),
        "steps": float(chosen["steps"].max()),
        "decades by which (12) is missed, most": float(chosen["condition_12"].max()),
    }


def _vanishing_gradient(cells: pd.DataFrame) -> Measurement:
    """Measure softmax's gradient and loss where token values are equal and (12) is met."""
    chosen = _cells(cells, _MET, "softmax", value_gap=0.0)
    right, numbers = _is_stuck(chosen)
    note = "The largest gradient in W_Q or W_K, at the start."
    measured = judge_instance(
        bool(right.all()), numbers["largest gradient"], note=note, details=numbers
    )
    return _unless_12(chosen, measured)


def _vanishing_gradient_far(cells: pd.DataFrame) -> Measurement:
    """Measure the same with drawn weights and label 2."""
    chosen = _cells(cells, _DRAWN, "softmax", value_gap=0.0)
    right, numbers = _is_stuck(chosen)
    return judge_theorem(
        ~right.reindex(chosen.index, fill_value=True),
        chosen["seed"],
        unknown=is_unknown(chosen),
        details=numbers,
    )


def _gaussian(cells: pd.DataFrame, preset: str) -> Measurement:
    chosen = _cells(cells, preset, "gaussian", value_gap=0.0)
    unknown = is_unknown(chosen)
    gradient = finite_numbers(chosen[~unknown], "gradient_query_start").reindex(chosen.index)
    details = {
        "least gradient": float(gradient.min()),
        "largest gradient": float(gradient.max()),
        "least δ": float(chosen["delta"].min()),
        **zero_by_step_size(chosen),
    }
    if preset == _DRAWN:
        return judge_theorem(gradient <= 0, chosen["seed"], unknown=unknown, details=details)
    note = "The gradient in W_Q. As W_Q = W_K, δ is 0 and Theorem 3 says nothing of the Gaussian."
    right = bool((gradient[~unknown] > 0).all())
    lost = right and unknown.any()  # what is lost may decide
    value = math.nan if lost else float(gradient.min())
    return judge_instance(right, value, note=note, details=details)


def _escape(cells: pd.DataFrame, preset: str) -> Measurement:
    chosen = _cells(cells, preset, "softmax")
    unknown = is_unknown(chosen)
    judged = (chosen["value_gap"] > 0) & (unknown | (chosen["status"] == "done"))
    chosen, unknown = chosen[judged], unknown[judged]
    if chosen.empty:
        raise not_run(f"It needs cells of value_gap above 0, as in `overfit sweep {preset}`.")
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
    if preset == _DRAWN:
        return judge_theorem(~right, chosen["seed"], unknown=unknown, details=details)
    note = "The least fall of the loss, as a share of its start."
    all_right = bool(right[~unknown].all())
    lost = all_right and unknown.any()  # what is lost may decide
    value = math.nan if lost else float(least.min())
    measured = judge_instance(all_right, value, note=note, details=details)
    return _unless_12(chosen[~unknown], measured)


_ZERO_GRADIENT = "the gradients are exactly 0 and the loss never changes"

CLAIMS = (
    Claim(
        name="example-gradient",
        kind="paper",
        source=_SOURCE,
        statement="Where condition (12) is met and both token values are equal, softmax's gradient "
        "in W_Q is zero at a loss above zero.",
        hypotheses="condition (12) is met with W_Q = W_K = 0.1 I and label 2.995, which the paper "
        "leaves open",
        holds_where=f"{_ZERO_GRADIENT}; {INSTANCE_RULE}",
        measure=_vanishing_gradient,
        figure="curves",
        preset=_MET,
    ),
    Claim(
        name="example-gradient-far",
        kind="identity",
        source=_SOURCE,
        statement="Where both token values are equal, softmax's gradient in W_Q and W_K is zero, "
        "whatever W_Q, W_K and the label.",
        holds_where=f"{THEOREM_RULE}: {_ZERO_GRADIENT}",
        measure=_vanishing_gradient_far,
        figure="curves",
        preset=_DRAWN,
    ),
    Claim(
        name="example-gaussian",
        kind="ours",
        source=f"{_SOURCE}, the other kernel",
        statement="At the weights where softmax meets condition (12) Gaussian attention's gradient "
        "in W_Q is not zero.",
        holds_where=f"it is above 0; {INSTANCE_RULE}",
        measure=partial(_gaussian, preset=_MET),
        figure="curves",
        preset=_MET,
    ),
    Claim(
        name="example-gaussian-far",
        kind="ours",
        source=f"{_SOURCE}, the other kernel",
        statement="With drawn weights and label 2 the Gaussian's gradient in W_Q is not zero.",
        holds_where=f"{THEOREM_RULE}: it is above 0",
        measure=partial(_gaussian, preset=_DRAWN),
        figure="curves",
        preset=_DRAWN,
    ),
    Claim(
        name="example-escape",
        kind="ours",
        source=f"{_SOURCE}, with values set apart",
        statement="Where condition (12) is met, token values of 3 ± ε let softmax escape.",
        holds_where=f"its gradient is above 0, and its loss falls; {INSTANCE_RULE}",
        measure=partial(_escape, preset=_MET),
        figure="curves",
        preset=_MET,
    ),
    Claim(
        name="example-escape-far",
        kind="ours",
        source=f"{_SOURCE}, with values set apart",
        statement="With drawn weights and label 2, token values of 3 ± ε let softmax attention "
        "escape.",
        holds_where=f"{THEOREM_RULE}: its gradient is above 0, and its loss falls",
        measure=partial(_escape, preset=_DRAWN),
        figure="curves",
        preset=_DRAWN,
    ),
)
