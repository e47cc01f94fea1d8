"""What intervals say: of any number, and of the exponent p of a fitted N · SNR^p = C."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from overfit_cli.analysis.power_law import PowerLaw
from overfit_cli.claim import Measurement, Verdict
from overfit_cli.studies.benign_vit.theory import FIGURE_1_EXPONENT

LEAST_SEEDS = 3
WIDEST = 1.0
ACCEPTED = (
    f"{FIGURE_1_EXPONENT:g} lies in the fitted exponent's 95 % interval, and that is at most "
    f"{WIDEST:g} wide"
)


def between(low: float, high: float, least: float, most: float) -> Verdict:
    """Return whether a number lies between two others; what its interval leaves open is open.

    Args:
        low, high: the ends of its interval.
        least, most: what it should lie between.
    """
    if least <= low and high <= most:
        return "holds"
    return "fails" if high < least or low > most else "inconclusive"


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on all of several."""
    found = set(verdicts)
    order: tuple[Verdict, ...] = ("fails", "inconclusive", "holds")
    return next(one for one in order if one in found)


def exponent_measurement(law: PowerLaw | None, words: Callable[[PowerLaw], str]) -> Measurement:
    """Return what a fitted boundary says of its exponent.

    Args:
        law: the fit; None where there is none.
        words: says it in a sentence.
    """
    if law is None:
        return Measurement.without_value(
            "inconclusive", "All seeds cross the threshold at fewer than three values of n."
        )
    return Measurement(
        _verdict_on_exponent(law),
        law.exponent,
        law.exponent_low,
        law.exponent_high,
        words(law),
        "95 % bootstrap",
    )


def _verdict_on_exponent(law: PowerLaw) -> Verdict:
    """The verdict: an interval that holds 2 because it is wide decides nothing."""
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
