"""Verdict of a claim on several parts: it holds where all do, and fails where one does.

A claim about every setting is an intersection: it may be said to hold where every part holds by its
own interval (Berger 1982), and needs no correction for their number. It fails where the interval of
one part lies outside at the level of all together (Bonferroni), or those of many at a lower one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from overfit_cli.claims.quantities import Part, Statistic
from overfit_cli.claims.rules import judge_estimate
from overfit_cli.core.claim import Measurement, Verdict
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import (
    Estimate,
    level_of_each,
    mean_estimate,
    median_estimate,
    share_estimate,
)

FEWEST: Mapping[Statistic, int] = {"median": 6, "mean": 5, "share": 6}
"""The fewest seeds that decide: with fewer a median has no interval, and a t interval no rate."""


def estimate(part: Part, statistic: Statistic, level: float | None = None) -> Estimate:
    """Return the median, mean or share of a part over seeds, with its interval.

    Equal numbers count as draws: copied seeds show in all columns, and are refused there.
    """
    count = len(part.low)
    if statistic == "median":
        return median_estimate(part.low, level, up_to=part.high)._replace(seeds=count)
    if statistic == "mean":
        return mean_estimate(part.low, level, up_to=part.high)._replace(seeds=count)
    unknown = int((part.high - part.low).sum())
    return share_estimate(int(part.low.sum()), count, level, unknown=unknown)


def average(parts: Sequence[Part]) -> list[Part]:
    """Return the average of parts over places, seed by seed, for each margin."""
    margins = list(dict.fromkeys(part.margin for part in parts))
    averaged = []
    for margin in margins:
        alike = [part for part in parts if part.margin == margin]
        low, high = (
            np.mean([getattr(part, end) for part in alike], axis=0) for end in ("low", "high")
        )
        averaged.append(Part(f"mean over {plural(len(alike), 'setting')}", low, high, margin))
    return averaged


def judge_parts(parts: Sequence[Part], statistic: Statistic, *, drawn: bool = True) -> Measurement:
    """Return the measurement of a claim on all parts; the worst one's number is the value.

    Args:
        parts: one for each setting, at least one.
        statistic: what is judged of each part's seeds.
        drawn: whether seeds change anything; otherwise one number decides.
    """
    if not drawn:
        return _judge_instance(parts)
    measurements = [_judge(part, statistic, level_of_each(1)) for part in parts]
    verdict: Verdict = "inconclusive"
    if all(measured.verdict == "holds" for measured in measurements):
        verdict = "holds"
    for fewest in () if verdict == "holds" else counts_that_refute(len(parts)):
        level = level_of_each(len(parts) / fewest)
        at_level = [_judge(part, statistic, level) for part in parts]
        if sum(measured.verdict == "fails" for measured in at_level) >= fewest:
            verdict, measurements = "fails", at_level
            break
    order = ("fails", "inconclusive", "holds")
    shown = [
        i for i in range(len(parts)) if verdict != "holds" or parts[i].margin == parts[0].margin
    ]
    worst = min(
        shown,
        key=lambda index: (
            order.index(measurements[index].verdict),
            slack(parts[index], statistic),
        ),
    )
    measured = measurements[worst]
    unknown = sum(part.unknown for part in parts)
    details: dict[str, float] = {"settings": len(parts), "seeds": len(parts[0].low)}
    if unknown:
        details["numbers that are not known"] = unknown
    words = [f"The worst is at {parts[worst].place}." if len(parts) > 1 else "", measured.note]
    if verdict == "inconclusive" and measured.verdict == "fails":
        words.append("By itself it fails; of so many settings one may.")
    note = " ".join(filter(None, words))
    return replace(measured, verdict=verdict, details=details, note=note)


def counts_that_refute(parts: int) -> list[int]:
    """Return how many of so many parts refute a claim together: one, half of them, or all.

    Where i of k parts do, each is judged at the error α·i/k (Simes 1986).
    """
    return sorted({1, math.ceil(parts / 2), parts})


def _judge(part: Part, statistic: Statistic, level: float) -> Measurement:
    margin = replace(part.margin, fewest_seeds=FEWEST[statistic])
    return judge_estimate(estimate(part, statistic, level), margin)


def slack(part: Part, statistic: Statistic) -> float:
    """Return how far a part's number lies inside its margin: negative outside."""
    number = estimate(part, statistic).value
    least, most = part.margin.least, part.margin.most
    width = most - least
    room = min(number - least, most - number)
    return room / width if np.isfinite(width) else room


def _judge_instance(parts: Sequence[Part]) -> Measurement:
    """Judge numbers that no seed changes."""
    outside = [p.high[0] < p.margin.least or p.low[0] > p.margin.most for p in parts]
    inside = [p.margin.least <= p.low[0] and p.high[0] <= p.margin.most for p in parts]
    verdict: Verdict = "fails" if any(outside) else "holds" if all(inside) else "inconclusive"
    worst = parts[outside.index(True)] if any(outside) else min(parts, key=_room)
    place = f"The worst is at {worst.place}." if len(parts) > 1 else ""
    return Measurement(
        verdict=verdict,
        value=None if worst.unknown else float(worst.low[0]),
        decided="case",
        details={"settings": len(parts)},
        note=f"Nothing is drawn. {place}".strip(),
    )


def _room(part: Part) -> float:
    """How far inside its margin a number lies that no seed changes, at its worst."""
    return float(min(part.low[0] - part.margin.least, part.margin.most - part.high[0]))
