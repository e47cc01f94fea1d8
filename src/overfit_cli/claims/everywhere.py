"""Verdict of a claim on several parts: it holds where all do, and fails where one does.

A claim about every setting is an intersection: it may be said to hold where every part holds by its
own interval (Berger 1982), and needs no correction for their number. It fails where the interval of
one part lies outside at the level of all together (Bonferroni), or those of many at a lower one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from overfit_cli.claims.quantities import Part, Statistic
from overfit_cli.claims.rules import exponentiate, joint_verdict, judge_estimate
from overfit_cli.core.arrays import Floats
from overfit_cli.core.claim import Measurement, Verdict
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import (
    Estimate,
    level_of_each,
    mean_estimate,
    median_estimate,
    share_estimate,
)

Over = Literal["every", "average", "worst"]
"""How the numbers at several settings are judged: see `combine`."""

FEWEST: Mapping[Statistic, int] = {"median": 6, "mean": 5, "geometric mean": 5, "share": 6}
"""The fewest seeds that decide: with fewer a median has no interval, and a t interval no rate."""


def in_logarithms(part: Part) -> Part:
    """Return a part that has the mean of logarithms in the place of a geometric mean."""
    with np.errstate(divide="ignore"):
        low, high, least, most = (
            np.log(np.maximum(end, 0.0))
            for end in (part.low, part.high, part.margin.least, part.margin.most)
        )
    margin = replace(part.margin, least=float(least), most=float(most))
    return Part(part.place, low, high, margin, "mean")


def estimate(part: Part, level: float | None = None) -> Estimate:
    """Return what has a part's margin, with its interval.

    Equal numbers count as draws: copied seeds show in all columns, and are refused there.
    """
    count = len(part.low)
    if part.statistic == "median":
        return median_estimate(part.low, level, up_to=part.high)._replace(seeds=count)
    if part.statistic == "mean":
        mean = mean_estimate(part.low, level, within=part.within, up_to=part.high)
        return mean._replace(seeds=count)
    if part.statistic == "geometric mean":
        return exponentiate(estimate(in_logarithms(part), level))
    unknown = int((part.high - part.low).sum())
    return share_estimate(int(part.low.sum()), count, level, unknown=unknown)


def combine(parts: Sequence[Part], over: Over) -> list[Part]:
    """Return parts over all settings in the place of those at each, seed by seed.

    Args:
        over: `every` leaves them as they are; `average` has the average of each seed's numbers;
            `worst` the one nearest to the margin's end, or beyond it, of two ends both.
    """
    if over == "every" or len(parts) < 2:
        return list(parts)
    combined = []
    for margin in dict.fromkeys(part.margin for part in parts):
        alike = [part for part in parts if part.margin == margin]
        words = f"over {plural(len(alike), 'setting')}{_aspect(alike)}"
        if over == "average":
            combined.append(_reduced(alike, _average_of(alike[0]), f"mean {words}"))
            continue
        if math.isfinite(margin.least):
            combined.append(_reduced(alike, np.min, f"least {words}"))
        if math.isfinite(margin.most):
            combined.append(_reduced(alike, np.max, f"most {words}"))
    return combined


def _aspect(parts: Sequence[Part]) -> str:
    aspects = {part.place.rpartition(", ")[2] for part in parts}
    aspect = aspects.pop()
    return "" if aspects or "=" in aspect or not aspect else f", {aspect}"


def _reduced(parts: Sequence[Part], reduce: Callable[..., Floats], place: str) -> Part:
    low, high = (reduce([getattr(part, end) for part in parts], axis=0) for end in ("low", "high"))
    return replace(parts[0], place=place, low=low, high=high, setting={})


def _average_of(part: Part) -> Callable[..., Floats]:
    if part.statistic != "geometric mean":
        return np.mean

    def geometric(numbers: Sequence[Floats], axis: int) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(np.exp(np.mean(np.log(np.maximum(numbers, 0.0)), axis=axis)))

    return geometric


def judge_parts(parts: Sequence[Part], *, drawn: bool = True) -> Measurement:
    """Return the measurement of a claim on all parts; the worst one's number is the value.

    Of parts with one verdict those that the claim's margin is of are shown before what is judged
    beside them, such as the end of a line. Unless seeds are drawn, one number decides.
    """
    if not drawn:
        return _judge_instance(parts)
    measurements = [_judge(part, level_of_each(1)) for part in parts]
    verdict: Verdict = "inconclusive"
    if all(measured.verdict == "holds" for measured in measurements):
        verdict = "holds"
    for fewest in () if verdict == "holds" else counts_that_refute(len(parts)):
        level = level_of_each(len(parts) / fewest)
        at_level = [_judge(part, level) for part in parts]
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
            parts[index].margin != parts[0].margin,
            slack(parts[index]),
        ),
    )
    measured = measurements[worst]
    unknown = sum(part.unknown for part in parts)
    details = {**_count_settings(parts), "seeds": len(parts[0].low)}
    if unknown:
        details["numbers that are not known"] = unknown
    if 1 < len(parts) <= MOST_LISTED:
        details |= _listed(parts, measurements)
    words = [f"The worst is {parts[worst]}." if len(parts) > 1 else "", measured.note]
    if verdict == "inconclusive" and measured.verdict == "fails":
        words.append("By itself it fails; of so many settings one may.")
    note = " ".join(filter(None, words))
    return replace(measured, verdict=verdict, details=details, note=note)


def _count_settings(parts: Sequence[Part]) -> dict[str, float]:
    split = [(part.place, *part.place.rpartition(", ")[::2]) for part in parts]
    places = {place if "=" in last else before for place, before, last in split}
    return {"settings": len(places)} if len(places) > 1 else {}


def verdicts_at_extremes(parts: Sequence[Part]) -> tuple[Verdict, Verdict] | None:
    """Return the verdicts if numbers that are not known were as good as can be, and as bad.

    None where all are known, and where a mean is of one that may be anything.
    """
    unknown = [part for part in parts if part.unknown]
    ends = [end for part in unknown if "mean" in part.statistic for end in (part.low, part.high)]
    if not unknown or any(np.isinf(end).any() for end in ends):
        return None
    good, below, above = (
        judge_parts(
            [replace(part, low=number, high=number) for part, number in zip(parts, at, strict=True)]
        ).verdict
        for at in zip(*map(_extremes, parts), strict=True)
    )
    return good, joint_verdict([below, above])


def _extremes(part: Part) -> tuple[Floats, Floats, Floats]:
    """A part's numbers where those not known are as good as can be, and as bad on each side.

    What may be anything lies beyond the known numbers and the margin; the order is what counts.
    """
    least, most = part.margin.least, part.margin.most
    finite = [end for end in (*part.low, *part.high, least, most) if math.isfinite(end)]
    low = np.maximum(part.low, min(finite) - abs(min(finite)) - 1)
    high = np.minimum(part.high, max(finite) + abs(max(finite)) + 1)
    good = np.clip((least + most) / 2, low, high)
    return good, low if math.isfinite(least) else high, high if math.isfinite(most) else low


MOST_LISTED = 12
"""Of more parts than these only the worst is said."""


def _listed(parts: Sequence[Part], measurements: Sequence[Measurement]) -> dict[str, float]:
    details = dict[str, float]()
    for part, measured in zip(parts, measurements, strict=True):
        name, interval = re.sub("^(at|the) ", "", str(part)), measured.interval
        assert measured.value is not None
        assert interval is not None
        details |= {
            name: measured.value,
            f"{name}, from": interval.low,
            f"{name}, to": interval.high,
        }
    return details


def counts_that_refute(parts: int) -> list[int]:
    """Return how many of so many parts refute a claim together: one, half of them, or all.

    Where i of k parts do, each is judged at the error α·i/k (Simes 1986).
    """
    return sorted({1, math.ceil(parts / 2), parts})


def _judge(part: Part, level: float) -> Measurement:
    return judge_estimate(estimate(part, level), part.margin)


def slack(part: Part) -> float:
    """Return how far a part's number lies inside its margin: negative outside."""
    if part.statistic == "geometric mean":
        return slack(in_logarithms(part))
    number = estimate(part).value
    least, most = part.margin.least, part.margin.most
    width = most - least
    room = min(number - least, most - number)
    return room / width if np.isfinite(width) else room


def _judge_instance(parts: Sequence[Part]) -> Measurement:
    outside = [p.high[0] < p.margin.least or p.low[0] > p.margin.most for p in parts]
    inside = [p.margin.least <= p.low[0] and p.high[0] <= p.margin.most for p in parts]
    verdict: Verdict = "fails" if any(outside) else "holds" if all(inside) else "inconclusive"
    worst = parts[outside.index(True)] if any(outside) else min(parts, key=_room)
    words = f"The worst is {worst}." if len(parts) > 1 else ""
    return Measurement(
        verdict=verdict,
        value=None if worst.unknown else float(worst.low[0]),
        margin=(worst.margin.least, worst.margin.most),
        target=worst.margin.target,
        decided="case",
        details=_count_settings(parts),
        note=f"Nothing is drawn. {words}".strip(),
    )


def _room(part: Part) -> float:
    if part.unknown:
        return -math.inf
    return float(min(part.low[0] - part.margin.least, part.margin.most - part.high[0]))
