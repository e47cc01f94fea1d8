"""The verdict of a claim: one rule, on arrays of shape (worlds, parts, seeds).

A run is one world; the error rates of a claim are the verdicts of the same rule in thousands. A
claim on several parts is an intersection: it holds where each part holds at the level of one
(Berger 1982), and fails where i of k parts lie outside at the error α·i/k (Bonferroni, Simes 1986).
A margin with two ends holds by two one-sided tests, each at half the error of the whole interval
(Schuirmann 1987). A theorem is refuted by a single exception.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.claims.parts import (
    FEW,
    FEWEST,
    UNBROKEN,
    Margin,
    Part,
    Statistic,
    Worlds,
    end_in_words,
    prepared,
)
from overfit_cli.core.arrays import Floats
from overfit_cli.core.claim import BY_CELL, Interval, Measurement, Verdict, inconclusive
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import Estimate, error_of_each, order_tail

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Verdicts:
    """Verdicts: 1 holds, −1 fails, 0 neither. Shapes (worlds,) and (worlds, parts).

    Attributes:
        low, high: the intervals at the error `alpha` of each world that decided.
        inner: the intervals that miss their number twice as often as one does.
    """

    verdict: NDArray[np.int8]
    each: NDArray[np.int8]
    value: Floats
    low: Floats
    high: Floats
    inner: tuple[Floats, Floats]
    alpha: Floats


def decide(worlds: Worlds, alpha: float) -> Verdicts:
    """The verdict in each world."""
    parts = worlds.parts
    least, most = (np.array([getattr(p.margin, end) for p in parts]) for end in ("least", "most"))
    case, sole = (np.array([p.statistic == s for p in parts]) for s in ("case", "no exception"))
    broken, may_be_broken = worlds.exceptions()
    enough = worlds.counts >= [part.margin.fewest_seeds for part in parts]

    def out_at(error: float) -> tuple[Flags, tuple[Floats, Floats]]:
        low, high = worlds.ends(error)  # a single infinity is beyond what was measured
        outside = ((-np.inf < high) & (high < least)) | ((most < low) & (low < np.inf))
        return np.where(sole, broken, outside & enough), (low, high)

    inner = worlds.ends(2 * alpha)
    out, (below, above) = out_at(alpha)
    two_ends = np.isfinite(most - least) | sole
    low, high = (np.where(two_ends, *ends) for ends in zip(inner, (below, above), strict=True))
    # One number at an end lies inside only as a case.
    at_end = (low == high) & ((low == least) | (low == most)) & ~case
    inside = (least <= low) & (high <= most) & ~at_end & enough & ~may_be_broken
    verdict: NDArray[np.int8] = np.asarray(inside.all(axis=1), np.int8)
    errors = np.full(len(inside), alpha)
    each = inside.astype(np.int8) - (out & ~inside)
    for fewest in counts_that_refute(len(parts)):
        error = alpha * fewest / len(parts)
        out, ends = out_at(error)
        refuted = (verdict == 0) & ((out.sum(axis=1) >= fewest) | (out & (sole | case)).any(axis=1))
        verdict[refuted], errors[refuted] = -1, error
        each[refuted] = np.where(out, -1, inside)[refuted]
        below[refuted], above[refuted] = (end[refuted] for end in ends)
    return Verdicts(verdict, each, worlds.value, below, above, inner, errors)


def counts_that_refute(parts: int) -> list[int]:
    """Return how many of so many parts refute a claim together: one, half of them, or all."""
    return sorted({1, math.ceil(parts / 2), parts})


def fewest_seeds(parts: Sequence[Part]) -> int:
    """Return the fewest seeds that can decide at the level in force."""
    alpha, count = error_of_each(1), max(part.margin.fewest_seeds for part in parts)
    statistics = {part.statistic for part in parts}
    while "median" in statistics and not order_tail(count, alpha):
        count += 1
    unbroken = math.ceil(math.log(alpha, UNBROKEN)) if "no exception" in statistics else 0
    return max(count, unbroken)


# A run: one world


MOST_LISTED = 12
"""Of more settings than these only the worst is said."""

_INTERVALS: Mapping[Statistic, str] = {
    "median": "by order",
    "mean": "t",
    "geometric mean": "t",
    "share": "exact",
    "no exception": "exact",
}


def judge(
    parts: Sequence[Part],
    *,
    note: str = "",
    details: Mapping[str, float] | None = None,
    among: int = 1,
) -> Measurement:
    """Return the measurement of a claim on parts; the value is that of the worst one.

    Of parts with one verdict those that the claim's margin is of are shown before what is judged
    beside them, such as the end of a line.

    Args:
        among: of how many choices, on the same seeds, what is judged was the best: the level is
            that of so many.
    """
    if not all(len(part.low) for part in parts):
        raise inconclusive("There is no seed with a number.")
    parts, alpha = [prepared(part) for part in parts], error_of_each(among)
    made = decide(Worlds.of(parts), alpha)
    verdict: Verdict = ("inconclusive", "holds", "fails")[made.verdict[0]]
    code, rank = made.each[0], {-1: 0, 0: 1, 1: 2}

    def nearness(index: int) -> tuple[int, bool, float]:
        beside = parts[index].margin != parts[0].margin
        of_verdict = int(beside) if verdict == "holds" else rank[code[index]]
        return of_verdict, beside, parts[index].slack(made.value[0, index])

    worst = min(range(len(parts)), key=nearness)
    part, count, alone = parts[worst], len(parts[worst].low), code[worst]
    value, low, high = (float(numbers[0, worst]) for numbers in (made.value, made.low, made.high))
    fewest = fewest_seeds(parts) if verdict == "inconclusive" else 0
    needed = fewest if min(len(each.low) for each in parts) < fewest else 0
    words = [f"The worst is {part}." if len(parts) > 1 else "", note]
    if needed:
        words.append(f"It needs {plural(needed, 'seed')}; these cells have {count}.")
    elif alone == 0 and part.statistic != "no exception":
        words.append(_why_open(low, high, part))
    elif alone < 0 and verdict == "inconclusive":
        words.append("By itself it fails; of so many settings one may.")
    if verdict == "holds" and np.isinf([low, high]).all() and math.isfinite(value):
        inner = (float(end[0, worst]) for end in made.inner)
        words.append("The interval at twice the error, [{:.4g}, {:.4g}], decides.".format(*inner))
    kind = f"{100 * (1 - made.alpha[0]):.4g} % {_INTERVALS.get(part.statistic)} over {count} seeds"
    shown = _details(parts, made) if len(parts) > 1 else {}
    is_case = part.statistic == "case"
    by_case = [each.statistic in ("case", "no exception") for each in parts]
    return Measurement(
        verdict=verdict,
        value=None if is_case and part.unknown else value,
        interval=None if is_case else Interval(low, high, kind),
        margin=(part.margin.least, part.margin.most),
        target=part.margin.target,
        decided="case"
        if is_case or (verdict == "fails" and code[by_case].min(initial=0) < 0)
        else "interval",
        details={**(details or {}), **shown},
        note=" ".join(filter(None, words)),
        needed_seeds=needed,
    )


def _why_open(low: float, high: float, part: Part) -> str:
    least, most = part.margin.least, part.margin.most
    if part.statistic == "case":
        return ""
    if math.isinf(low) and math.isinf(high) and low != high:
        if np.allclose(np.append(part.low, part.high), part.low[0], rtol=1e-14, atol=0.0):
            return (
                f"Of fewer than {FEW} equal numbers nothing is known of a mean; see their median."
            )
        return "Nothing is known of an end of the interval."
    ends = [end_in_words(end) for end in (least, most) if low <= end <= high]
    if ends:
        return f"The interval contains the margin's end {' and '.join(ends)}."
    return "The interval lies beyond what was measured."


def _details(parts: Sequence[Part], made: Verdicts) -> dict[str, float]:
    """How many settings there are; and of a few parts the number and the interval of each."""
    split = [(part.place, *part.place.rpartition(", ")[::2]) for part in parts]
    places = {place if "=" in last else before for place, before, last in split}
    details: dict[str, float] = {"settings": len(places)} if len(places) > 1 else {}
    for part, *numbers in zip(parts, made.value[0], made.low[0], made.high[0], strict=True):
        if (part.quantity or len(parts) <= MOST_LISTED) and part.statistic != "case":
            name = re.sub("^(at|the) ", "", str(part))
            names = (name, f"{name}, from", f"{name}, to")
            details |= zip(names, map(float, numbers), strict=True)
    return details


def judge_estimate(
    estimate: Estimate,
    margin: Margin,
    *,
    note: str = "",
    details: Mapping[str, float] | None = None,
) -> Measurement:
    """Return the measurement of a claim that one number decides, whose interval is given."""
    low, high = (np.full(estimate.seeds, end) for end in (estimate.low, estimate.high))
    measured = judge([Part("", low, high, margin, "given")], note=note, details=details)
    interval = Interval(estimate.low, estimate.high, estimate.kind)
    return replace(measured, value=estimate.value, interval=interval)


# Theorems: judged on the cells that meet their hypotheses, and refuted by one exception

FEWEST_SEEDS_OF_THEOREM = FEWEST["no exception"]
THEOREM_RULE = (
    f"{BY_CELL}; at least {FEWEST_SEEDS_OF_THEOREM} seeds, enough to rule out a violation "
    "on a third of all draws"
)


@dataclass(frozen=True)
class Requirements:
    """The hypotheses of a theorem, by the distance of each cell to them.

    Attributes:
        missed: the distance of each cell to each hypothesis by its name; above 0, and without a
            number, the cell does not meet it.
        in_words: the hypotheses that are missed, for the sentence after its colon.
    """

    missed: Mapping[str, pd.Series[float]]
    in_words: str

    def met(self) -> pd.Series[bool]:
        """Return which cells meet all of them."""
        met: pd.Series[bool] = (pd.DataFrame({**self.missed}) <= 0).all(axis=1)
        return met

    def judged(self, unknown: pd.Series[bool]) -> pd.Series[bool]:
        """Return the cells that a theorem is judged on: those that meet all, and those that may.

        A cell of which it is unknown whether it breaks the theorem may have met the hypotheses too.
        """
        return self.met() | (unknown & ~(pd.DataFrame({**self.missed}) > 0).any(axis=1))

    def distances(self) -> dict[str, float]:
        """Return the least and the largest distance to each of them."""
        return {
            f"{words}, {end}": float(number)
            for words, amounts in self.missed.items()
            for end, number in (("least", amounts.min()), ("most", amounts.max()))
        }


OUT_OF_REACH = 3.0
"""The decades below a bound from which on it could not have been broken."""

MET = "cells that meet its hypotheses"
"""The detail with the number of those cells."""

LOST = "cells that failed or are absent"
"""Which cells are unknown, where nothing else is said."""

WITHOUT_EXCEPTION = Margin(least=UNBROKEN, fewest_seeds=FEWEST_SEEDS_OF_THEOREM, target=1.0)


def judge_theorem(
    broken: pd.Series[bool],
    seeds: pd.Series[int],
    *,
    unknown: pd.Series[bool] | None = None,
    unknown_because: str = LOST,
    requirements: Requirements | None = None,
    decades_over: pd.Series[float] | None = None,
    note: str = "",
    details: Mapping[str, float] | None = None,
) -> Measurement:
    """Return the measurement of a theorem: one cell that breaks it refutes it.

    It is judged on the cells that meet its hypotheses, however many others there are, and vacuous
    where none does. It holds where no cell of `FEWEST_SEEDS_OF_THEOREM` seeds breaks it: if it were
    broken on a third of all draws, so many seeds without a break would have a probability below
    1/50. It holds by far where all cells lie `OUT_OF_REACH` decades or more below a bound.

    Args:
        unknown: whether a cell failed or is absent: it refutes nothing, and with it nothing holds.
        decades_over: the decades by which each cell lies above a bound; negative below it.
    """
    details, all_known = dict(details or {}), pd.Series(False, broken.index)
    unknown = all_known if unknown is None else unknown.astype(bool)
    judged = ~all_known
    if decades_over is not None:
        details["decades over the bound, most"] = float(decades_over.max())
    if requirements is not None:
        judged, met = requirements.judged(unknown), requirements.met()
        details |= requirements.distances() | {MET: int(met.sum())}
        if not judged.any():
            why = f"No cell meets its hypotheses: {requirements.in_words}."
            return mark_vacuous(Measurement(verdict="vacuous", note=note), why, details)
    lost = int(unknown[judged].sum())
    words = f"The share of seeds without an exception. {note}".strip()
    if lost:
        details[unknown_because] = lost
        words += f" {unknown_because[0].upper()}{unknown_because[1:]} may break it."
    measured = judge(
        [
            Part.of_cells(
                ~broken[judged], unknown[judged], seeds[judged], WITHOUT_EXCEPTION, "no exception"
            )
        ],
        note=words,
        details=details,
    )
    measured = replace(measured, margin=None)
    return measured if decades_over is None else mark_by_far(measured, -decades_over[judged].max())


def mark_by_far(measured: Measurement, below: float) -> Measurement:
    """Return a measurement of a bound: it holds by far where all lies decades below the bound."""
    if measured.verdict != "holds" or not below >= OUT_OF_REACH:
        return measured
    note = f"{measured.note} All cells lie {below:.0f} decades or more below the bound."
    return replace(measured, verdict="holds by far", note=note)


def mark_vacuous(measured: Measurement, reason: str, details: Mapping[str, float]) -> Measurement:
    """Return a measurement as vacuous, for a reason, as a sentence: it could not be broken."""
    note = f"{measured.note} {reason}".strip()
    return replace(measured, verdict="vacuous", details={**measured.details, **details}, note=note)
