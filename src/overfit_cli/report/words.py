"""Verdicts and what was measured for them, in words."""

from __future__ import annotations

from collections.abc import Sequence

from overfit_cli.analysis.intervals import LEVEL, level_of_each
from overfit_cli.claim import Measurement
from overfit_cli.report.judged import Judged
from overfit_cli.words import plural


def sentences(judged: Sequence[Judged]) -> list[str]:
    """Return what was measured for each claim, in words, and what it takes to hold."""
    return [
        f"{one.name}: {in_words(one.measurement)} Holds where {one.claim.holds_where}."
        for one in judged
    ]


def families(judged: Sequence[Judged]) -> list[str]:
    """Return a sentence on each study's claims together: their level, and which verdicts change."""
    found = []
    for study in dict.fromkeys(one.study for one in judged if one.family):
        own = [one for one in judged if one.study == study and one.family]
        changed = [
            f"{one.name} is {one.together}"
            for one in own
            if one.together != one.measurement.verdict
        ]
        but = f" but {', '.join(changed)}" if changed else ""
        found.append(
            f"{study}: seeds decide {plural(own[0].family, 'verdict')}, at {LEVEL:.0%} each. At "
            f"{LEVEL:.0%} for all together (Holm, from {level_of_each(own[0].family):.2%} each) "
            f"every verdict stays{but}."
        )
    return found


def number_in_words(measurement: Measurement) -> str:
    """Return the measured value with its interval: `2.03 [1.95, 2.11] 95 % t over 10 seeds`."""
    if measurement.value is None:
        return "–"
    found = measurement.interval
    if found is None:
        return f"{measurement.value:.4g}"
    return f"{measurement.value:.4g} [{found.low:.4g}, {found.high:.4g}] {found.kind}".strip()


def in_words(measurement: Measurement) -> str:
    """Return what must be known of a number, and further numbers: `N·SNR² …; curves 640`."""
    details = "; ".join(f"{name} {number:.4g}" for name, number in measurement.details.items())
    return f"{measurement.note} {details[:1].upper()}{details[1:]}{'.' if details else ''}".strip()
