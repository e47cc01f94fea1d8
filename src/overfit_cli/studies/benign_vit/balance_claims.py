"""The claim on where the transition begins: where signal and noise are learned equally fast."""

from __future__ import annotations

import numpy as np

from overfit_cli.analysis.intervals import mean_interval
from overfit_cli.claim import Claim, Measurement, Verdict
from overfit_cli.studies.benign_vit.along import (
    along,
    counts_in_words,
    logarithms,
    missing_numbers,
)
from overfit_cli.studies.benign_vit.boundaries import HARMFUL_LOSS, Boundary
from overfit_cli.studies.benign_vit.theory import FIGURE_1_THRESHOLD

TOLERANCE = 0.15
LEAST_SPAN = 2.0
"""By which factor the ends of σ̃_p must be apart."""


def _power(found: list[Boundary]) -> Measurement:
    logs = logarithms(found, lambda one: one.onsets)
    missing = missing_numbers(logs)
    if missing is not None:
        return missing
    powers = np.polyfit(np.log([one.balance for one in found]), logs.to_numpy().T, 1)[0]
    low, high = mean_interval(powers)
    verdict: Verdict = "inconclusive"
    if low >= 1 - TOLERANCE and high <= 1 + TOLERANCE:
        verdict = "holds"
    elif low > 1 + TOLERANCE or high < 1 - TOLERANCE:
        verdict = "fails"
    each = "; ".join(
        f"{one.onsets.median():.0f} at σ̃_p = {one.at:g}, {one.onsets.median() / one.balance:.2f} "
        f"of the balance"
        for one in found
    )
    crossings = ", ".join(f"{one.median:.0f}" for one in found)
    return Measurement(
        verdict,
        float(powers.mean()),
        low,
        high,
        f"The transition begins at N·SNR² = {each}: it goes with the balance to the power "
        f"{powers.mean():.2f} [{low:.2f}, {high:.2f}]. The test loss is down to "
        f"{FIGURE_1_THRESHOLD:g} at {crossings}. {counts_in_words(found)}",
        "95 % t over seeds",
    )


BALANCE = (
    Claim(
        name="transition-balance",
        source="figure 1b of Jiang et al. 2024 and its Condition 4.1 (10); our own question",
        statement="Figure 1's constant is its tokens': the transition begins, at a test loss of "
        f"{HARMFUL_LOSS:g}, where signal and noise are learned equally fast, "
        "N·SNR² = 2 ((σ̃_p/σ_p)² + M − 2) times a constant.",
        accepted=f"the 95 % interval of its power of that number lies within {TOLERANCE:g} of 1",
        measure=along("sigma_p_tilde", LEAST_SPAN, "strong-noise", _power),
    ),
)
