"""Claims on figure 1's boundary at any dimension, and on what its constant is.

That signal and noise are learned equally fast at N · SNR² = 2 ((σ̃_p/σ_p)² + M − 2) is derived in
`theory/predictions.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from overfit_cli.analysis.boundaries import Boundary
from overfit_cli.claim import Claim, Measurement, not_run
from overfit_cli.claims.boundaries import BySeed, is_proportional, stays_the_same
from overfit_cli.claims.rules import accepted_exponent, exponent_measurement
from overfit_cli.studies.benign_vit.theory.boundaries import (
    balance_at,
    boundaries,
    exponent_in_words,
    why_no_boundary,
)
from overfit_cli.studies.benign_vit.theory.predictions import (
    BALANCE_IN_WORDS,
    FIGURE_1_EXPONENT,
    FIGURE_1_THRESHOLD,
    HARMFUL_LOSS,
)

SAME = 1.25
"""By which factor two numbers may differ and still be called the same."""

TOLERANCE = 0.15
"""By how much the power of the balance may differ from 1."""

LEAST_SPAN = {"d": 1000.0, "sigma_p_tilde": 2.0}
"""By which factor the ends of an axis must be apart."""

_PRESETS = {"d": "dimension", "sigma_p_tilde": "strong-noise"}
Judge = Callable[[list[Boundary]], Measurement]


def _along(axis: str, judge: Judge) -> Callable[[pd.DataFrame], Measurement]:
    """Judge the boundaries along an axis: one for each value, ascending."""

    def measure(cells: pd.DataFrame) -> Measurement:
        span = float(cells[axis].max()) / float(cells[axis].min())
        if span < LEAST_SPAN[axis]:
            return not_run(
                f"It needs values of {axis} that are a factor of {LEAST_SPAN[axis]:g} apart, as in "
                f"`overfit sweep {_PRESETS[axis]}`."
            )
        if why := why_no_boundary(cells, axis):
            return not_run(f"The boundary can't be found: {why}.")
        return judge(boundaries(cells, axis, FIGURE_1_THRESHOLD))

    return measure


def _constant(found: list[Boundary]) -> Measurement:
    each = " and ".join(
        f"{one.median:.0f} (quartiles {one.low:.0f}, {one.high:.0f}) at d = {one.at:.3g}"
        for one in (found[0], found[-1])
    )
    sentence = f"The median of N·SNR² at the crossing is {each}"
    return stays_the_same(found, lambda one: one.constants, SAME, sentence)


def _exponent(found: list[Boundary]) -> Measurement:
    last = found[-1]
    return exponent_measurement(
        last.fit,
        FIGURE_1_EXPONENT,
        lambda fit: (
            f"At d = {last.at:.3g}, {exponent_in_words(fit)}, over the {fit.rows} values of n "
            f"where all of {fit.seeds} seeds cross."
        ),
    )


def _sharpness(found: list[Boundary]) -> Measurement:
    each = " and ".join(
        f"{one.widths.median():.2f} at d = {one.at:.3g}" for one in (found[0], found[-1])
    )
    sentence = (
        f"The test loss falls from {HARMFUL_LOSS:g} to {FIGURE_1_THRESHOLD:g} while N·SNR² grows "
        f"by a factor of {each}"
    )
    return stays_the_same(found, lambda one: one.widths, SAME, sentence)


def _balance(of: BySeed, words: str) -> Judge:
    """Judge whether a number is proportional to the balance of learning."""

    def judge(found: list[Boundary]) -> Measurement:
        balances = [balance_at(one) for one in found]
        each = ", ".join(f"{of(one).median():.0f} at σ̃_p = {one.at:g}" for one in found)
        over = ", ".join(
            f"{of(one).median() / balance:.2f}"
            for one, balance in zip(found, balances, strict=True)
        )
        sentence = f"{words} {each}: {over} times {BALANCE_IN_WORDS}."
        return is_proportional(found, of, balances, TOLERANCE, sentence)

    return judge


def _balance_claim(name: str, statement: str, judge: Judge) -> Claim:
    return Claim(
        name=name,
        source="figure 1b of Jiang et al. 2024 and its Condition 4.1 (10); ours",
        statement=statement,
        accepted=f"the 95 % interval of its power of that number lies within {TOLERANCE:g} of 1",
        measure=_along("sigma_p_tilde", judge),
    )


BOUNDARIES = (
    Claim(
        name="dimension-constant",
        source="Jiang et al. 2024, figure 1b, at any d",
        statement="Figure 1's constant is that of many dimensions: C of N·SNR² = C stays as d "
        "grows.",
        accepted="C at every d over C at the smallest: the intervals lie within "
        f"{1 / SAME:g} and {SAME:g}",
        measure=_along("d", _constant),
    ),
    Claim(
        name="dimension-exponent",
        source="Jiang et al. 2024, Theorems 4.1 and 4.2",
        statement="At the largest d the boundary is N·SNR² = C: the exponent is 2.",
        accepted=accepted_exponent(FIGURE_1_EXPONENT),
        measure=_along("d", _exponent),
    ),
    Claim(
        name="dimension-sharpness",
        source="figure 1b of Jiang et al. 2024, at any d; ours",
        statement="Dimensions alone make the transition neither sharper nor wider.",
        accepted="its width in N·SNR² at every d over that at the smallest: the intervals lie "
        f"within {1 / SAME:g} and {SAME:g}",
        measure=_along("d", _sharpness),
    ),
    _balance_claim(
        "transition-balance",
        "As σ̃_p/σ_p changes, the transition keeps beginning where signal and noise are learned "
        f"equally fast: N·SNR² at a test loss of {HARMFUL_LOSS:g} scales with {BALANCE_IN_WORDS}.",
        _balance(lambda one: one.onsets, "The transition begins at N·SNR² ="),
    ),
    _balance_claim(
        "constant-balance",
        f"As σ̃_p/σ_p changes, so does figure 1's constant: N·SNR² at a test loss of "
        f"{FIGURE_1_THRESHOLD:g} scales with {BALANCE_IN_WORDS} too.",
        _balance(
            lambda one: one.constants, f"The test loss crosses {FIGURE_1_THRESHOLD:g} at N·SNR² ="
        ),
    ),
)
