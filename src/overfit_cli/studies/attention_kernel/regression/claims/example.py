"""Section 4.2.2's example: a gradient of exactly zero at a loss of one, and how it is escaped."""

from __future__ import annotations

import pandas as pd

from overfit_cli.claim import Claim, Measurement, not_run
from overfit_cli.claims.cells import Values, done
from overfit_cli.claims.rules import WITHOUT_EXCEPTION, without_exception
from overfit_cli.studies.attention_kernel.regression.claims.linear_rates import unless_condition
from overfit_cli.studies.attention_kernel.regression.claims.selection import (
    SOURCE,
    selection,
    zero_by_step_size,
)

_SOURCE = f"{SOURCE}, section 4.2.2, example"
_PRESET = "kernel-example"


def _cells(cells: pd.DataFrame, kernel: str, **more: object) -> pd.DataFrame:
    values: Values = {"instance": "example", "trained": "query", "kernel": kernel, **more}
    return selection(values, _PRESET).of(cells)


def _vanishing_gradient(cells: pd.DataFrame) -> Measurement:
    """Measure softmax attention's gradient and loss where both token values are equal."""
    chosen = _cells(cells, "softmax", value_gap=0.0)
    gradients = chosen[["gradient_query_start", "gradient_key_start"]].astype(float).max(axis=1)
    start, end = chosen["start_loss"].astype(float), chosen["train_loss"].astype(float)
    found = without_exception(
        (gradients != 0) | (start <= 0) | (start != end),
        chosen["seed"],
        details={
            "cells": len(chosen),
            "largest gradient": float(gradients.max()),
            "least loss at the end": float(end.min()),
            "steps": float(chosen["steps"].max()),
        },
    )
    return unless_condition("12", chosen, found)


def _gaussian_gradient(cells: pd.DataFrame) -> Measurement:
    """Measure Gaussian attention's gradient where both token values are equal."""
    chosen = _cells(cells, "gaussian", value_gap=0.0)
    gradient = chosen["gradient_query_start"].astype(float)
    return without_exception(
        gradient <= 0,
        chosen["seed"],
        details={
            "least gradient": float(gradient.min()),
            "largest gradient": float(gradient.max()),
            **zero_by_step_size(chosen),
        },
    )


def _escape(cells: pd.DataFrame) -> Measurement:
    """Measure softmax attention's gradient and final loss where the token values differ."""
    chosen = done(_cells(cells, "softmax"), 1.0)
    chosen = chosen[chosen["value_gap"] > 0]
    if chosen.empty:
        raise not_run(f"It needs cells of value_gap above 0, as in `overfit sweep {_PRESET}`.")
    gradient = chosen["gradient_query_start"].astype(float)
    loss = chosen["relative_loss"].astype(float)
    worst = loss.groupby(chosen["value_gap"]).max()
    return without_exception(
        (gradient <= 0) | (loss >= 1),
        chosen["seed"],
        details={
            "least gradient": float(gradient.min()),
            **{f"largest final loss over its start, ε {gap:g}": one for gap, one in worst.items()},
        },
    )


CLAIMS = (
    Claim(
        name="example-gradient",
        source=_SOURCE,
        statement="Where both token values are equal, softmax attention's gradient in W_Q and W_K "
        "is zero at a loss above zero, and the loss stays.",
        holds_where=f"{WITHOUT_EXCEPTION}: the gradients are exactly 0 and the loss never changes",
        measure=_vanishing_gradient,
        figure="curves",
        preset=_PRESET,
    ),
    Claim(
        name="example-gaussian",
        source=_SOURCE,
        statement="There Gaussian attention's gradient in W_Q is not zero.",
        holds_where=WITHOUT_EXCEPTION,
        measure=_gaussian_gradient,
        figure="curves",
        preset=_PRESET,
    ),
    Claim(
        name="example-escape",
        source=f"{_SOURCE}; ours",
        statement="Token values of 3 ± ε let softmax attention escape.",
        holds_where=f"{WITHOUT_EXCEPTION}: its gradient is above 0, and its loss falls",
        measure=_escape,
        figure="curves",
        preset=_PRESET,
    ),
)
