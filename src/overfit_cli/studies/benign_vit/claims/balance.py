"""The claims on what figure 1's constant is: that signal and noise are learned equally fast."""

from __future__ import annotations

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
from overfit_cli.studies.benign_vit.claims.verdicts import between
from overfit_cli.studies.benign_vit.theory import BALANCE_IN_WORDS, FIGURE_1_THRESHOLD

TOLERANCE = 0.15
LEAST_SPAN = 2.0
"""By which factor the ends of σ̃_p must be apart."""


def _goes_with_balance(of: Numbers, words: str) -> Judge:
    """Judge whether a number goes with the balance of learning."""

    def judge(found: list[Boundary]) -> Measurement:
        logs = logarithms(found, of)
        if isinstance(logs, Measurement):
            return logs
        powers = np.polyfit(np.log([one.balance for one in found]), logs.to_numpy().T, 1)[0]
        low, high = mean_interval(powers)
        each = ", ".join(f"{of(one).median():.0f} at σ̃_p = {one.at:g}" for one in found)
        over = ", ".join(f"{of(one).median() / one.balance:.2f}" for one in found)
        return Measurement(
            between(low, high, 1 - TOLERANCE, 1 + TOLERANCE),
            float(powers.mean()),
            low,
            high,
            f"{words} {each}: {over} times {BALANCE_IN_WORDS}. It goes with that number to the "
            f"power {powers.mean():.2f} [{low:.2f}, {high:.2f}]. {counts_in_words(found)}",
            "95 % t over seeds",
        )

    return judge


def _claim(name: str, statement: str, judge: Judge) -> Claim:
    return Claim(
        name=name,
        source="figure 1b of Jiang et al. 2024 and its Condition 4.1 (10); our own question",
        statement=statement,
        accepted=f"the 95 % interval of its power of that number lies within {TOLERANCE:g} of 1",
        measure=along("sigma_p_tilde", LEAST_SPAN, "strong-noise", judge),
    )


BALANCE = (
    _claim(
        "transition-balance",
        "As σ̃_p/σ_p changes, the transition keeps beginning where signal and noise are learned "
        f"equally fast: N·SNR² at a test loss of {HARMFUL_LOSS:g} goes with {BALANCE_IN_WORDS}.",
        _goes_with_balance(lambda one: one.onsets, "The transition begins at N·SNR² ="),
    ),
    _claim(
        "constant-balance",
        f"As σ̃_p/σ_p changes, so does figure 1's constant: N·SNR² at a test loss of "
        f"{FIGURE_1_THRESHOLD:g} goes with {BALANCE_IN_WORDS} too.",
        _goes_with_balance(
            lambda one: one.constants, f"The test loss crosses {FIGURE_1_THRESHOLD:g} at N·SNR² ="
        ),
    ),
)
