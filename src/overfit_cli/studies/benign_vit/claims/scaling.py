"""The claims that Theorems 4.1 and 4.2 make by their T: how steps go with each parameter."""

from __future__ import annotations

import pandas as pd

from overfit_cli.claim import Claim, Measurement
from overfit_cli.studies.benign_vit.claims.powers import SYMBOLS, TOLERANCE, within
from overfit_cli.studies.benign_vit.claims.verdicts import LEAST_SEEDS
from overfit_cli.studies.benign_vit.scaling import LEAST_STEPS, LEAST_VALUES, step_law
from overfit_cli.studies.benign_vit.theory import STEP_LAWS, THEOREMS, Regime


def _claim(regime: Regime, axis: str) -> Claim:
    theorem = STEP_LAWS[regime][axis]
    symbol, preset = SYMBOLS[axis], f"scaling-{regime}"

    def measure(cells: pd.DataFrame) -> Measurement:
        law = step_law(cells, regime)
        values = 0 if law is None else law.cells[axis].nunique()
        if law is None or axis not in law.exponents or values < LEAST_VALUES:
            return Measurement.without_value(
                "not run",
                f"It needs {LEAST_VALUES} values of {axis} with N·SNR² "
                f"{'above' if regime == 'benign' else 'up to'} 1000, as in `overfit sweep "
                f"{preset}`.",
            )
        found = law.exponents[axis]
        if law.failed:
            return Measurement.without_value(
                "inconclusive",
                f"{law.failed} cells of the regime failed, and they are the slow ones; a larger "
                "max_steps tells.",
            )
        if law.fewest < LEAST_STEPS:
            return Measurement.without_value(
                "inconclusive",
                f"Some cells take {law.fewest} steps, and steps are whole: fewer than "
                f"{LEAST_STEPS} are too coarse. A smaller step size tells: `overfit sweep "
                f"{preset}`.",
            )
        return Measurement(
            within(found, theorem) if found.seeds >= LEAST_SEEDS else "inconclusive",
            found.value,
            found.low,
            found.high,
            f"Steps go with {symbol}^{found.value:.3f} [{found.low:.3f}, {found.high:.3f}], the "
            f"theorem's T with {symbol}^{theorem:g}; {len(law.cells)} cells of {found.seeds} "
            f"seeds, {law.fewest} to {law.cells['steps'].max()} steps, fitted over "
            f"{', '.join(law.exponents)} at once.",
            "95 % t over seeds",
        )

    power = f"like {symbol}^{theorem:g}" if theorem else f"not at all with {symbol}"
    return Claim(
        name=f"steps-{regime}-{axis.replace('_', '-')}",
        source=f"Jiang et al. 2024, Theorem {THEOREMS[regime]}",
        statement=f"Where overfitting is {regime}, the number of steps to ε goes {power}.",
        accepted=f"the exponent's 95 % interval lies within {TOLERANCE:g} of {theorem:g}",
        measure=measure,
    )


SCALING = tuple(_claim(regime, axis) for regime, axes in STEP_LAWS.items() for axis in axes)
