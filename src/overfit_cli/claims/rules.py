"""Rules that turn intervals into verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from overfit_cli.analysis.power_law import PowerLaw
from overfit_cli.claim import Measurement, Verdict, inconclusive

LEAST_SEEDS = 3
"""Fewer seeds leave a claim open."""

WIDEST_EXPONENT = 1.0
"""An exponent's interval that is wider and holds the expected value decides nothing."""


def between(low: float, high: float, least: float, most: float) -> Verdict:
    """Return whether a number lies between two others; what its interval leaves open is open.

    Args:
        low, high: the ends of its interval.
        least, most: what it should lie between.
    """
    if least <= low and high <= most:
        return "holds"
    return "fails" if high < least or low > most else "inconclusive"


def within(low: float, high: float, expected: float, tolerance: float) -> Verdict:
    """Return whether a number lies within a tolerance of an expected one, given its interval."""
    return between(low, high, expected - tolerance, expected + tolerance)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on all of several."""
    found = set(verdicts)
    order: tuple[Verdict, ...] = ("fails", "inconclusive", "holds")
    return next(one for one in order if one in found)


def accepted_exponent(expected: float) -> str:
    """Return in words with which intervals `exponent_measurement` holds."""
    return (
        f"{expected:g} lies in the fitted exponent's 95 % interval, and that is at most "
        f"{WIDEST_EXPONENT:g} wide"
    )


def exponent_measurement(
    fit: PowerLaw | None, expected: float, in_words: Callable[[PowerLaw], str]
) -> Measurement:
    """Return whether the exponent of a fitted boundary is the expected one.

    Args:
        fit: the fit; None where there is none.
        expected: the exponent that is claimed.
        in_words: says the fit in a sentence.
    """
    if fit is None:
        return inconclusive("All seeds cross the threshold at fewer than three values of n.")
    low, high = fit.exponent_low, fit.exponent_high
    holds, wide = low <= expected <= high, high - low > WIDEST_EXPONENT
    verdict: Verdict = "holds" if holds else "fails"
    if fit.seeds < LEAST_SEEDS or (holds and wide):
        verdict = "inconclusive"
    return Measurement(verdict, in_words(fit), fit.exponent, low, high, "95 % bootstrap")
