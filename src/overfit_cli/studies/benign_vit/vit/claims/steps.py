"""Claims on how the number of steps scales with each parameter, as T of Theorems 4.1 and 4.2 does.

The theorems require Condition 4.1. Grids that can be drawn directly don't meet it, so these claims
are the tool's own: one that fails says how far T's powers carry, and refutes no theorem.
`theorem_regime.py` judges the theorems.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import add_absent, one_setting
from overfit_cli.claims.rules import Margin, judge_estimate, tolerance_margin
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.core.parameters import map_parameters
from overfit_cli.core.text import plural
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.vit.theory import (
    AFTER_TRAINING,
    FIGURE_1_CONSTANT,
    FIGURE_1_STRONG_NOISE,
    LEAST_STEPS,
    LEAST_VALUES,
    STEP_POWERS,
    THEOREMS,
    Regime,
    StepScaling,
    boundary_product,
    condition_items,
    step_scaling,
)

TOLERANCE = 0.1
"""By how much a power may differ from the theorem's, which hides logarithms."""

SYMBOLS = {"snr": "‖μ‖", "epsilon": "ε", "learning_rate": "η", "n": "N", "output_scale": "‖w_O‖"}
"""The parameters, by their names, and how they are written: ‖μ‖ is proportional to SNR."""


def _claim(regime: Regime, axis: str) -> Claim:
    theorem, symbol = STEP_POWERS[regime][axis], SYMBOLS[axis]

    def measure(cells: pd.DataFrame) -> Measurement:
        scaling = step_scaling(_cells_of_regime(cells, regime), regime)
        values = 0 if scaling is None else scaling.cells[axis].nunique()
        if scaling is None or values < LEAST_VALUES:
            raise not_run(
                f"It needs {LEAST_VALUES} values of {axis} with N·SNR² "
                f"{'above' if regime == 'benign' else 'up to'} 1000, as in `overfit sweep "
                f"scaling-{regime}`."
            )
        return _judge_power(scaling, axis, margin, regime)

    margin = tolerance_margin(theorem, TOLERANCE, "T hides logarithms")
    scales = f"scales as {symbol}^{theorem:g}" if theorem else f"doesn't depend on {symbol}"
    return Claim(
        name=f"steps-{regime}-{axis.replace('_', '-')}",
        kind="ours",
        source=f"T of Jiang et al. 2024, Theorem {THEOREMS[regime]}, without its condition",
        statement=f"Without Condition 4.1 too, where overfitting is {regime}, the number of steps "
        f"to ε {scales}.",
        holds_where=margin.in_words(f"the power of {symbol}"),
        measure=measure,
        figure="scaling",
        preset=f"scaling-{regime}",
    )


def _cells_of_regime(cells: pd.DataFrame, regime: Regime) -> pd.DataFrame:
    """The cells of a predicted regime, at one value of what T isn't stated for."""
    is_figure_1 = np.isclose(cells["sigma_p_tilde"] / cells["sigma_p"], FIGURE_1_STRONG_NOISE)
    is_benign = boundary_product(cells["n"], cells["snr"]) > FIGURE_1_CONSTANT
    chosen: pd.DataFrame = cells[is_figure_1 & (is_benign == (regime == "benign"))]
    if chosen.empty:
        return chosen
    names = [name for name in BenignVitParameters.model_fields if name not in AFTER_TRAINING]
    alike = one_setting(chosen, [name for name in names if name not in STEP_POWERS[regime]])
    return add_absent(alike, names)


def _judge_power(scaling: StepScaling, axis: str, margin: Margin, regime: Regime) -> Measurement:
    if scaling.reasons:
        raise inconclusive(
            f"{plural(len(scaling.reasons), 'cell')} of the regime failed or are absent "
            f"({', '.join(sorted(set(scaling.reasons)))}); these may be the slow ones."
        )
    if scaling.fewest < LEAST_STEPS:
        raise inconclusive(
            f"Some cells take {plural(scaling.fewest, 'step')}. Step counts are integers; below "
            f"{LEAST_STEPS} they are too coarse to fit a power. A smaller step size decides: "
            f"`overfit sweep scaling-{regime}`."
        )
    if axis not in scaling.exponents:
        raise inconclusive("No seed has cells that tell the axes apart.")
    return judge_estimate(
        scaling.exponents[axis],
        margin,
        details={
            "cells": len(scaling.cells),
            "fewest steps": scaling.fewest,
            "most steps": float(scaling.cells["steps"].max()),
            "decades by which Condition 4.1 is missed, least": _least_missed(scaling.cells),
        },
        note=f"The power of {axis} in the steps, fitted seed by seed over "
        f"{', '.join(scaling.exponents)} at once.",
    )


def _least_missed(cells: pd.DataFrame) -> float:
    """By how many decades the nearest cell misses the item that it misses by most."""

    def worst(cell: BenignVitParameters) -> float:
        return max(item.decades for item in condition_items(cell, cell.output_scale))

    return float(min(map_parameters(BenignVitParameters, cells, worst)))


STEPS = tuple(_claim(regime, axis) for regime, axes in STEP_POWERS.items() for axis in axes)
