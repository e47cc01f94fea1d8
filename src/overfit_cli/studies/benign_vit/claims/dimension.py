"""The claims on figure 1's boundary at any dimension."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from overfit_cli.analysis.intervals import mean_interval
from overfit_cli.claim import Claim, Measurement
from overfit_cli.studies.benign_vit.boundaries import HARMFUL_LOSS, Boundary
from overfit_cli.studies.benign_vit.claims.along import (
    Judge,
    Numbers,
    along,
    counts_in_words,
    logarithms,
)
from overfit_cli.studies.benign_vit.claims.verdicts import (
    ACCEPTED,
    between,
    exponent_in_words,
    exponent_measurement,
    worst,
)
from overfit_cli.studies.benign_vit.theory import FIGURE_1_THRESHOLD

SAME = 1.25
"""By which factor two numbers may differ and still be called the same."""

LEAST_SPAN = 1000.0
"""By which factor the ends of d must be apart."""


def _stays(of: Numbers, words: Callable[[list[Boundary]], str]) -> Judge:
    """Judge whether a number is the same at every value of the axis as at the first, seed by seed.

    The intervals are 95 % together (Bonferroni); the value is the one farthest from 1.
    """

    def judge(found: list[Boundary]) -> Measurement:
        logs = logarithms(found, of)
        if isinstance(logs, Measurement):
            return logs
        changes = logs.iloc[:, 1:].sub(logs.iloc[:, 0], axis=0)
        level = 1 - 0.05 / len(changes.columns)
        ends = {at: np.exp(mean_interval(changes[at], level)).tolist() for at in changes}
        at = changes.mean().abs().idxmax()
        ratio, (low, high) = float(np.exp(changes[at].mean())), ends[at]
        return Measurement(
            worst(between(first, last, 1 / SAME, SAME) for first, last in ends.values()),
            ratio,
            low,
            high,
            f"{words(found)}. Farthest from the first is that at {at:.3g}: {ratio:.3f} "
            f"[{low:.3f}, {high:.3f}] times as much, seed by seed. {counts_in_words(found)}",
            "95 % t over seeds, for all values together",
        )

    return judge


def _constants_in_words(found: list[Boundary]) -> str:
    each = " and ".join(
        f"{one.median:.0f} (quartiles {one.low:.0f}, {one.high:.0f}) at d = {one.at:.3g}"
        for one in (found[0], found[-1])
    )
    return f"The median of N·SNR² at the crossing is {each}"


def _widths_in_words(found: list[Boundary]) -> str:
    each = " and ".join(
        f"{one.widths.median():.2f} at d = {one.at:.3g}" for one in (found[0], found[-1])
    )
    return (
        f"The test loss falls from {HARMFUL_LOSS:g} to {FIGURE_1_THRESHOLD:g} while N·SNR² grows "
        f"by a factor of {each}"
    )


def _exponent(found: list[Boundary]) -> Measurement:
    last = found[-1]
    return exponent_measurement(
        last.law,
        lambda law: (
            f"At d = {last.at:.3g}, {exponent_in_words(law)}, over the {law.rows} values of n "
            f"where all of {law.seeds} seeds cross."
        ),
    )


_along_d = functools.partial(along, "d", LEAST_SPAN, "dimension")

DIMENSION = (
    Claim(
        name="dimension-constant",
        source="Jiang et al. 2024, figure 1b, at any d",
        statement="Figure 1's constant is that of many dimensions: C of N·SNR² = C stays as d "
        "grows.",
        accepted="C at every d over C at the smallest: the intervals lie within "
        f"{1 / SAME:g} and {SAME:g}",
        measure=_along_d(_stays(lambda one: one.constants, _constants_in_words)),
    ),
    Claim(
        name="dimension-exponent",
        source="Jiang et al. 2024, Theorems 4.1 and 4.2",
        statement="At the largest d the boundary is N·SNR² = C: the exponent is 2.",
        accepted=ACCEPTED,
        measure=_along_d(_exponent),
    ),
    Claim(
        name="dimension-sharpness",
        source="figure 1b of Jiang et al. 2024, at any d; our own question",
        statement="Dimensions alone make the transition neither sharper nor wider.",
        accepted="its width in N·SNR² at every d over that at the smallest: the intervals lie "
        f"within {1 / SAME:g} and {SAME:g}",
        measure=_along_d(_stays(lambda one: one.widths, _widths_in_words)),
    ),
)
