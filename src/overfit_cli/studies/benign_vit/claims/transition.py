"""The claim that, in the theorems' regime, N · SNR² alone decides."""

from __future__ import annotations

from overfit_cli.claim import Claim, Measurement
from overfit_cli.studies.benign_vit.boundaries import (
    HARMFUL_LOSS,
    boundaries,
    obstacle,
)
from overfit_cli.studies.benign_vit.claims.regime import InRegime, judged
from overfit_cli.studies.benign_vit.claims.verdicts import (
    ACCEPTED,
    exponent_in_words,
    exponent_measurement,
)
from overfit_cli.studies.benign_vit.theory import BALANCE_IN_WORDS, FIGURE_1_THRESHOLD


def _transition(regime: InRegime) -> Measurement:
    """Whether the boundary is N · SNR² = C, at the smallest ε."""
    if why := obstacle(regime.cells, "epsilon"):
        return Measurement.without_value("inconclusive", f"The boundary can't be found: {why}.")
    found = boundaries(regime.cells, "epsilon", FIGURE_1_THRESHOLD)
    one = found[0]  # the smallest ε
    if 2 * one.never > one.curves:
        return Measurement.without_value(
            "fails",
            f"{one.never} of {one.curves} curves never cross {FIGURE_1_THRESHOLD:g}.",
        )
    where = "; ".join(
        f"at ε = {at.at:g} {at.onsets.median():.0f}, {at.onsets.median() / at.balance:.2f} "
        f"times {BALANCE_IN_WORDS}, and {at.median:.0f} (quartiles {at.low:.0f}, "
        f"{at.high:.0f}), {at.widths.median():.2f} times as much as that"
        for at in found
    )
    return exponent_measurement(
        one.law,
        lambda law: (
            f"{exponent_in_words(law)} over {law.rows} values of n and {law.seeds} seeds; "
            f"{one.never} of {one.curves} curves never cross. N·SNR² where the test loss falls "
            f"below {HARMFUL_LOSS:g} and {FIGURE_1_THRESHOLD:g}: {where}."
        ),
    )


TRANSITION = (
    Claim(
        name="theorem-transition",
        source="Jiang et al. 2024, Theorems 4.1 and 4.2",
        statement="Where Condition 4.1 holds, the boundary between the two is N·SNR² = C.",
        accepted=f"most curves cross {FIGURE_1_THRESHOLD:g}, and {ACCEPTED}",
        measure=judged(_transition),
    ),
)
