"""Verdicts and what was measured for them, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from overfit_cli.analysis.intervals import LEVEL, level_of_each
from overfit_cli.claim import Interval, Measurement
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
    found = measurement.interval
    kind = found.kind if found is not None and measurement.value is not None else ""
    return f"{with_interval(measurement.value, found)} {kind}".strip()


def with_interval(value: float | None, interval: Interval | None) -> str:
    """Return a number with its interval: `2.03 [1.95, 2.11]`; a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:.4g} [{interval.low:.4g}, {interval.high:.4g}]" if interval else f"{value:.4g}"


def details_in_words(details: Mapping[str, float]) -> list[str]:
    """Return further numbers, a line each; `…, from` and `…, to` are the interval of `…`."""
    lines = []
    for name, value in details.items():
        of, _, end = name.rpartition(", ")
        if end in ("from", "to") and of in details:
            continue
        ends = [details[f"{name}, {end}"] for end in ("from", "to") if f"{name}, {end}" in details]
        interval = Interval(ends[0], ends[1], "") if len(ends) == 2 else None
        lines.append(f"{name} {with_interval(value, interval)}")
    return lines


def in_words(measurement: Measurement) -> str:
    """Return what must be known of a number, and further numbers: `N·SNR² …; curves 640`."""
    details = "; ".join(f"{name} {number:.4g}" for name, number in measurement.details.items())
    if len(details.split(" ", 1)[0]) > 1:  # d and D are different symbols
        details = details[:1].upper() + details[1:]
    return f"{measurement.note} {details}{'.' if details else ''}".strip()
