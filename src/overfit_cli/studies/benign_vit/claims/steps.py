"""Claims on how the number of steps scales with each parameter, as T of Theorems 4.1 and 4.2 does.

The theorems require Condition 4.1. Grids that can be drawn don't meet it, so a claim that fails
here says how far T's powers carry and refutes no theorem. `theorem_regime.py` judges the theorems.
"""

from __future__ import annotations

import pandas as pd

from overfit_cli.claims.rules import Margin, around, judged
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.core.parameters import of_rows
from overfit_cli.core.text import plural
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory.condition import condition_items
from overfit_cli.studies.benign_vit.theory.predictions import STEP_POWERS, THEOREMS, Regime
from overfit_cli.studies.benign_vit.theory.steps import (
    LEAST_STEPS,
    LEAST_VALUES,
    StepScaling,
    step_scaling,
)

TOLERANCE = 0.1
"""By how much a power may differ from the theorem's, which hides logarithms."""

SYMBOLS = {"snr": "‖μ‖", "epsilon": "ε", "learning_rate": "η", "n": "N"}
"""The parameters, by their names, and how they are written: ‖μ‖ is proportional to SNR."""


def _claim(regime: Regime, axis: str) -> Claim:
    theorem, symbol = STEP_POWERS[regime][axis], SYMBOLS[axis]

    def measure(cells: pd.DataFrame) -> Measurement:
        found = step_scaling(cells, regime)
        values = 0 if found is None else found.cells[axis].nunique()
        if found is None or values < LEAST_VALUES:
            raise not_run(
                f"It needs {LEAST_VALUES} values of {axis} with N·SNR² "
                f"{'above' if regime == 'benign' else 'up to'} 1000, as in `overfit sweep "
                f"scaling-{regime}`."
            )
        return _judged_power(found, axis, margin, regime)

    margin = around(theorem, TOLERANCE, "T hides logarithms")
    scales = f"scales as {symbol}^{theorem:g}" if theorem else f"doesn't depend on {symbol}"
    return Claim(
        name=f"steps-{regime}-{axis.replace('_', '-')}",
        source=f"T of Jiang et al. 2024, Theorem {THEOREMS[regime]}; ours, without its condition",
        statement=f"Without Condition 4.1 too, where overfitting is {regime}, the number of steps "
        f"to ε {scales}.",
        holds_where=margin.in_words(f"the power of {symbol}"),
        measure=measure,
        figure="scaling",
        preset=f"scaling-{regime}",
    )


def _judged_power(found: StepScaling, axis: str, margin: Margin, regime: Regime) -> Measurement:
    if found.failed:
        raise inconclusive(
            f"{plural(found.failed, 'cell')} of the regime failed, and slow cells fail first; a "
            "larger max_steps decides."
        )
    if found.fewest < LEAST_STEPS:
        raise inconclusive(
            f"Some cells take {plural(found.fewest, 'step')}, and steps are whole: fewer than "
            f"{LEAST_STEPS} are too coarse. A smaller step size decides: `overfit sweep "
            f"scaling-{regime}`."
        )
    if axis not in found.exponents:
        raise inconclusive("No seed has cells that tell the axes apart.")
    return judged(
        found.exponents[axis],
        margin,
        details={
            "cells": len(found.cells),
            "fewest steps": found.fewest,
            "most steps": float(found.cells["steps"].max()),
            "decades by which Condition 4.1 is missed, least": _missed(found.cells),
        },
        note=f"The power of {axis} in the steps, fitted seed by seed over "
        f"{', '.join(found.exponents)} at once.",
    )


def _missed(cells: pd.DataFrame) -> float:
    """By how many decades the nearest cell misses the item that it misses by most."""

    def most(one: BenignVitParameters) -> float:
        return max(item.decades for item in condition_items(one, one.output_scale))

    return float(min(of_rows(BenignVitParameters, cells, most)))


STEPS = tuple(_claim(regime, axis) for regime, axes in STEP_POWERS.items() for axis in axes)
