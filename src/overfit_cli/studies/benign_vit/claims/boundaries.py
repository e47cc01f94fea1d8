"""Claims of this tool on figure 1's boundary at any dimension and noise, and on its constant.

The boundary is measured at each value of another parameter, and its numbers are compared seed by
seed. That signal and noise are learned equally fast at N · SNR² = 2 ((σ̃_p/σ_p)² + M − 2) is derived
in `theory.learning_balance`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import finite_numbers, one_setting, require_done
from overfit_cli.claims.parts import Part, Statistic, factor_margin, tolerance_margin
from overfit_cli.claims.rules import judge
from overfit_cli.core.arrays import Floats
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.core.text import plural
from overfit_cli.studies.benign_vit.boundary import (
    Boundary,
    balance_at,
    boundaries,
    why_no_boundary,
)
from overfit_cli.studies.benign_vit.claims.figure_1 import MOST_FAILED
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory import (
    BALANCE_IN_WORDS,
    FIGURE_1_THRESHOLD,
    HARMFUL_LOSS,
)

SAME = factor_margin(1.0, 1.25, "as fig1-contour's", 5)

PROPORTIONAL = tolerance_margin(
    1.0, 0.15, "powers of 0.85 and 1.15 would show as a factor of 1.5 over 16", 5
)

LEAST_SPAN = {"d": 1000.0, "sigma_p_tilde": 2.0}
"""By which factor the ends of an axis must be apart."""

ON_CURVES = ("n", "snr", "max_steps")
"""Parameters that vary at one value of the axis."""

_PRESETS = {"d": "dimension", "sigma_p_tilde": "strong-noise"}

BySeed = Callable[[Boundary], "pd.Series[float]"]
"""A number of a boundary for each seed."""

OfBoundaries = Callable[[list[Boundary]], Measurement]


def _judge_boundaries(
    axis: str, of_boundaries: OfBoundaries
) -> Callable[[pd.DataFrame], Measurement]:
    """Judge the boundaries along an axis: one for each value, ascending."""
    alike = [name for name in BenignVitParameters.model_fields if name not in {*ON_CURVES, axis}]

    def measure(cells: pd.DataFrame) -> Measurement:
        cells = one_setting(cells, alike)
        span = float(cells[axis].max()) / float(cells[axis].min())
        if span < LEAST_SPAN[axis]:
            raise not_run(
                f"It needs values of {axis} that are a factor of {LEAST_SPAN[axis]:g} apart, as in "
                f"`overfit sweep {_PRESETS[axis]}`."
            )
        if why := why_no_boundary(cells, axis):
            raise not_run(f"The boundary can't be found: {why}.")
        finite_numbers(require_done(cells, MOST_FAILED), "test_loss")
        return of_boundaries(boundaries(cells, axis, FIGURE_1_THRESHOLD))

    return measure


def _constants(series: list[Boundary]) -> Measurement:
    """By which factor C changes from the smallest d; medians where one lies beyond the grid."""
    logs = seed_logarithms(series, lambda boundary: boundary.constants)
    if (outside := int(np.isinf(logs.iloc[:, 0]).sum())) > 0:
        raise inconclusive(
            f"Seeds that cross beyond the grid at the first value of the axis: {outside} of "
            f"{len(logs)}."
        )
    statistic: Statistic = "median" if np.isinf(logs.to_numpy()).any() else "geometric mean"
    measured = judge(
        [
            Part.of(
                np.exp(logs[boundary.at] - logs.iloc[:, 0]),
                SAME,
                statistic,
                called=f"change to d = {boundary.at:.3g}",
            )
            for boundary in series[1:]
        ],
        note="N·SNR² at the crossing, over that at the smallest d.",
    )
    medians = {
        f"median at d = {boundary.at:.3g}": float(boundary.constants.median())
        for boundary in series
    }
    return replace(measured, details={**measured.details, **medians, **counts(series)})


def _judge_balance(number: BySeed, words: str) -> OfBoundaries:
    def measure(series: list[Boundary]) -> Measurement:
        balances = [balance_at(boundary) for boundary in series]
        medians = {
            f"median at σ̃_p = {boundary.at:g}": float(number(boundary).median())
            for boundary in series
        }
        ratios = {
            f"that over the balance at σ̃_p = {boundary.at:g}": float(number(boundary).median())
            / balance
            for boundary, balance in zip(series, balances, strict=True)
        }
        return judge(
            [Part.of(powers_along(series, number, balances), PROPORTIONAL)],
            details={**medians, **ratios, **counts(series)},
            note=f"The power of {BALANCE_IN_WORDS} in {words}, seed by seed.",
        )

    return measure


def powers_along(series: Sequence[Boundary], number: BySeed, against: Sequence[float]) -> Floats:
    """Return the power of each seed with which a number scales with another along the axis."""
    logs = seed_logarithms(series, number)
    if (outside := int(np.isinf(logs.to_numpy()).any(axis=1).sum())) > 0:
        raise inconclusive(
            f"Seeds that cross beyond the grid at some value of the axis, and have no power: "
            f"{outside} of {len(logs)}."
        )
    return np.asarray(np.polyfit(np.log(against), logs.to_numpy().T, 1)[0])


def seed_logarithms(series: Sequence[Boundary], number: BySeed) -> pd.DataFrame:
    """Return logarithms, (seeds, values of the axis); infinite beyond the grid."""
    with np.errstate(divide="ignore"):
        logs = pd.DataFrame({boundary.at: number(boundary) for boundary in series}).transform(
            np.log
        )
    if (lacking := int(logs.isna().any(axis=1).sum())) > 0:
        raise inconclusive(
            f"{lacking} of {plural(len(logs), 'seed')} have no number at some value of the axis."
        )
    return logs


def counts(series: Sequence[Boundary]) -> dict[str, float]:
    """Return how many curves there are, and how many never cross."""
    return {
        "curves": sum(boundary.curves for boundary in series),
        "curves that never cross": sum(boundary.never for boundary in series),
    }


def _balance_claim(name: str, statement: str, judge: OfBoundaries) -> Claim:
    return Claim(
        name=name,
        kind="ours",
        source="figure 1b of Jiang et al. 2024 and its Condition 4.1 (10)",
        statement=statement,
        holds_where=PROPORTIONAL.in_words("its power of that number"),
        measure=_judge_boundaries("sigma_p_tilde", judge),
        figure="heatmap",
        preset="strong-noise",
    )


BOUNDARIES = (
    Claim(
        name="dimension-constant",
        kind="ours",
        source="figure 1b of Jiang et al. 2024, at any d",
        statement="Figure 1's constant is that of many dimensions: C of N·SNR² = C stays as d "
        "grows.",
        holds_where=SAME.in_words("C at every d over C at the smallest"),
        measure=_judge_boundaries("d", _constants),
        figure="dimension",
        preset="dimension",
    ),
    _balance_claim(
        "transition-balance",
        "As σ̃_p/σ_p changes, the transition keeps beginning where signal and noise are learned "
        f"equally fast: N·SNR² at a test loss of {HARMFUL_LOSS:g} scales with {BALANCE_IN_WORDS}.",
        _judge_balance(
            lambda boundary: boundary.onsets, f"N·SNR² at a test loss of {HARMFUL_LOSS:g}"
        ),
    ),
    _balance_claim(
        "constant-balance",
        f"As σ̃_p/σ_p changes, so does figure 1's constant: N·SNR² at a test loss of "
        f"{FIGURE_1_THRESHOLD:g} scales with {BALANCE_IN_WORDS} too.",
        _judge_balance(
            lambda boundary: boundary.constants, f"N·SNR² at a test loss of {FIGURE_1_THRESHOLD:g}"
        ),
    ),
)
