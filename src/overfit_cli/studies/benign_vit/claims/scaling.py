"""The claims that Theorems 4.1 and 4.2 make by their T: how steps go with each parameter."""

from __future__ import annotations

import pandas as pd

from overfit_cli.claim import Claim, Measurement, Verdict
from overfit_cli.studies.benign_vit.scaling import LEAST_STEPS, LEAST_VALUES, step_law
from overfit_cli.studies.benign_vit.theory import STEP_LAWS, Regime

TOLERANCE = 0.1
"""By how much an exponent may differ from the theorem's, whose T hides logarithms."""

LEAST_SEEDS = 3
_SYMBOLS = {"snr": "‖μ‖", "epsilon": "ε", "learning_rate": "η", "n": "N"}


def _claim(regime: Regime, axis: str) -> Claim:
    theorem = STEP_LAWS[regime][axis]
    symbol, preset = _SYMBOLS[axis], f"scaling-{regime}"

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
            _verdict(found.low - theorem, found.high - theorem, found.seeds),
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
        source=f"Jiang et al. 2024, Theorem {'4.1' if regime == 'benign' else '4.2'}",
        statement=f"Where overfitting is {regime}, the number of steps to ε goes {power}.",
        accepted=f"the exponent's 95 % interval lies within {TOLERANCE:g} of {theorem:g}",
        measure=measure,
    )


def _verdict(low: float, high: float, seeds: int) -> Verdict:
    """The verdict on an exponent's difference from the theorem's."""
    if seeds < LEAST_SEEDS:
        return "inconclusive"
    if low >= -TOLERANCE and high <= TOLERANCE:
        return "holds"
    return "fails" if low > TOLERANCE or high < -TOLERANCE else "inconclusive"


SCALING = tuple(_claim(regime, axis) for regime, axes in STEP_LAWS.items() for axis in axes)
