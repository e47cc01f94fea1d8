"""Whether a fitted boundary N · SNR^p = C has the exponent of the theorems."""

from __future__ import annotations

from overfit_cli.analysis.power_law import PowerLaw
from overfit_cli.claim import Verdict
from overfit_cli.studies.benign_vit.theory import FIGURE_1_EXPONENT

LEAST_SEEDS = 3
WIDEST = 1.0
ACCEPTED = (
    f"{FIGURE_1_EXPONENT:g} lies in the fitted exponent's 95 % interval, and that is at most "
    f"{WIDEST:g} wide"
)


def verdict_on_exponent(law: PowerLaw) -> Verdict:
    """Return the verdict: an interval that holds 2 because it is wide decides nothing."""
    holds = law.exponent_low <= FIGURE_1_EXPONENT <= law.exponent_high
    wide = law.exponent_high - law.exponent_low > WIDEST
    if law.seeds < LEAST_SEEDS or (holds and wide):
        return "inconclusive"
    return "holds" if holds else "fails"


def exponent_in_words(law: PowerLaw) -> str:
    """Say p with its interval."""
    return (
        f"N·SNR^p = C with p = {law.exponent:.2f} [{law.exponent_low:.2f}, {law.exponent_high:.2f}]"
    )
