"""Claims on how the number of steps scales with each parameter, as T of Theorems 4.1 and 4.2 does.

The theorems require Condition 4.1. Grids that can be drawn directly don't meet it, so a claim that
fails here says how far T's powers carry and refutes no theorem. `theorem_regime.py` judges the
theorems, on the cells that `meeting_the_condition` and `cells_of_side` pick.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import positive_numbers, require_done
from overfit_cli.claims.rules import Margin, judge_estimate, tolerance_margin
from overfit_cli.core.arrays import varying
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.core.parameters import map_parameters
from overfit_cli.core.text import plural
from overfit_cli.stats.boundaries import scaling_exponents
from overfit_cli.stats.intervals import Estimate, level_of_each
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.vit.theory import (
    LEAST_STEPS,
    LEAST_VALUES,
    STEP_POWERS,
    THEOREMS,
    Regime,
    StepScaling,
    all_met,
    boundary_product,
    condition_items,
    learning_balance,
    step_scaling,
)

TOLERANCE = 0.1
"""By how much a power may differ from the theorem's, which hides logarithms."""

SYMBOLS = {"snr": "‖μ‖", "epsilon": "ε", "learning_rate": "η", "n": "N"}
"""The parameters, by their names, and how they are written: ‖μ‖ is proportional to SNR."""

BENIGN_FROM, HARMFUL_UP_TO = 3.0, 0.25
"""N · SNR² over the balance of learning: from where "large" and "small" are taken to begin."""

MAY_VARY = frozenset({"max_steps", "test_samples", "leap", "dtype"})
"""Parameters that no theorem or lemma is about: cells may differ in them."""

LEAST_EPSILONS = 2
"""The fewest values of ε in a grid that the theorems are judged on."""


def fitted_powers(
    cells: pd.DataFrame, value: str, axes: Iterable[str], needed: Sequence[str]
) -> dict[str, Estimate]:
    """Return the power of each axis: the mean of the seeds' own fits.

    The intervals of all of them hold together 95 times of 100. All axes are fitted at once: where a
    grid has holes, one axis may change with another.

    Raises:
        UndecidedError: `not run` where a needed axis doesn't vary; `inconclusive`, where cells
            failed, have no positive value, or don't tell the axes apart.
    """
    fitted = require_done(cells)
    positive_numbers(fitted, value)
    varied = varying(fitted, axes)
    constant = [name for name in needed if name not in varied]
    if constant:
        raise not_run(
            f"These cells have one value of {' and one of '.join(constant)}; it needs several."
        )
    powers = scaling_exponents(fitted, varied, value, level_of_each(len(varied)))
    if powers is None:
        raise inconclusive("No seed has cells that tell the axes apart.")
    return powers


@dataclass(frozen=True)
class TheoremRegime:
    """Cells that meet the condition."""

    cells: pd.DataFrame
    sides: Mapping[Regime, pd.DataFrame]  # those that are far enough on either side of the boundary


def theorem_regime(cells: pd.DataFrame) -> TheoremRegime | None:
    """Return the cells of the theorems' regime; None where a side has none, or ε one value."""
    chosen = meeting_the_condition(cells)
    sides: dict[Regime, pd.DataFrame] = {
        "benign": cells_of_side(chosen, "benign"),
        "harmful": cells_of_side(chosen, "harmful"),
    }
    lacking = any(side.empty for side in sides.values())
    if lacking or chosen["epsilon"].nunique() < LEAST_EPSILONS:
        return None
    return TheoremRegime(chosen, sides)


def meeting_the_condition(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells that meet all items of Condition 4.1."""
    drawn = cells[cells["initialisation"] == "condition"]
    meets = map_parameters(
        BenignVitParameters, drawn, lambda cell: all_met(condition_items(cell, cell.output_scale))
    )
    chosen: pd.DataFrame = drawn[np.array(meets, dtype=bool)]
    return chosen


def cells_of_side(cells: pd.DataFrame, side: Regime) -> pd.DataFrame:
    """Return the cells that are far enough on one side of the boundary."""
    balance = learning_balance(cells["sigma_p_tilde"] / cells["sigma_p"], cells["tokens"])
    distance = boundary_product(cells["n"], cells["snr"]) / balance
    return cells[distance >= BENIGN_FROM if side == "benign" else distance <= HARMFUL_UP_TO]


def _claim(regime: Regime, axis: str) -> Claim:
    theorem, symbol = STEP_POWERS[regime][axis], SYMBOLS[axis]

    def measure(cells: pd.DataFrame) -> Measurement:
        scaling = step_scaling(cells, regime)
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
        source=f"T of Jiang et al. 2024, Theorem {THEOREMS[regime]}; ours, without its condition",
        statement=f"Without Condition 4.1 too, where overfitting is {regime}, the number of steps "
        f"to ε {scales}.",
        holds_where=margin.in_words(f"the power of {symbol}"),
        measure=measure,
        figure="scaling",
        preset=f"scaling-{regime}",
    )


def _judge_power(scaling: StepScaling, axis: str, margin: Margin, regime: Regime) -> Measurement:
    if scaling.failed:
        raise inconclusive(
            f"{plural(scaling.failed, 'cell')} of the regime failed, and slow cells fail first; a "
            "larger max_steps decides."
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
