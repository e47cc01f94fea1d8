"""Claims of Theorems 4.1 and 4.2 on T: how the number of steps scales with each parameter."""

from __future__ import annotations

import pandas as pd

from overfit_cli.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.claims.rules import LEAST_SEEDS, within
from overfit_cli.studies.benign_vit.theory.predictions import STEP_POWERS, THEOREMS, Regime
from overfit_cli.studies.benign_vit.theory.steps import (
    LEAST_STEPS,
    LEAST_VALUES,
    StepScaling,
    step_scaling,
)

TOLERANCE = 0.1
"""By how much a power may differ from the theorem's: T hides logarithms. A smaller one is none."""

SYMBOLS = {"snr": "‖μ‖", "epsilon": "ε", "learning_rate": "η", "n": "N"}
"""The parameters, by their names, and how they are written: ‖μ‖ is proportional to SNR."""


def _claim(regime: Regime, axis: str) -> Claim:
    theorem, symbol = STEP_POWERS[regime][axis], SYMBOLS[axis]

    def measure(cells: pd.DataFrame) -> Measurement:
        found = step_scaling(cells, regime)
        values = 0 if found is None else found.cells[axis].nunique()
        if found is None or axis not in found.exponents or values < LEAST_VALUES:
            return not_run(
                f"It needs {LEAST_VALUES} values of {axis} with N·SNR² "
                f"{'above' if regime == 'benign' else 'up to'} 1000, as in `overfit sweep "
                f"scaling-{regime}`."
            )
        return _measured(found, axis, regime)

    power = f"like {symbol}^{theorem:g}" if theorem else f"not at all with {symbol}"
    return Claim(
        name=f"steps-{regime}-{axis.replace('_', '-')}",
        source=f"Jiang et al. 2024, Theorem {THEOREMS[regime]}",
        statement=f"Where overfitting is {regime}, the number of steps to ε goes {power}.",
        accepted=f"the exponent's 95 % interval lies within {TOLERANCE:g} of {theorem:g}",
        measure=measure,
    )


def _measured(found: StepScaling, axis: str, regime: Regime) -> Measurement:
    if found.failed:
        return inconclusive(
            f"{found.failed} cells of the regime failed, and they are the slow ones; a larger "
            "max_steps tells."
        )
    if found.fewest < LEAST_STEPS:
        return inconclusive(
            f"Some cells take {found.fewest} steps, and steps are whole: fewer than "
            f"{LEAST_STEPS} are too coarse. A smaller step size tells: `overfit sweep "
            f"scaling-{regime}`."
        )
    power, theorem, symbol = found.exponents[axis], STEP_POWERS[regime][axis], SYMBOLS[axis]
    verdict = within(power.low, power.high, theorem, TOLERANCE)
    return Measurement(
        verdict if power.seeds >= LEAST_SEEDS else "inconclusive",
        f"Steps go with {symbol}^{power.value:.3f} [{power.low:.3f}, {power.high:.3f}], the "
        f"theorem's T with {symbol}^{theorem:g}; {len(found.cells)} cells of {power.seeds} "
        f"seeds, {found.fewest} to {found.cells['steps'].max()} steps, fitted over "
        f"{', '.join(found.exponents)} at once.",
        *power.estimate,
        "95 % t over seeds",
    )


STEPS = tuple(_claim(regime, axis) for regime, axes in STEP_POWERS.items() for axis in axes)
