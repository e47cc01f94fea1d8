"""Rules that turn a number's interval and a claim's margin into a verdict.

A claim holds where the whole interval lies inside the margin and fails where it lies outside.
A theorem fails at one exception; it is judged on the cells that meet its hypotheses.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from overfit_cli.core.claim import BY_CELL, IN_MARGIN, Interval, Measurement, Verdict
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import Estimate, level_of_each, share_estimate

FEWEST_SEEDS_OF_THEOREM = 10
THEOREM_RULE = (
    f"{BY_CELL}; at least {FEWEST_SEEDS_OF_THEOREM} seeds, enough to rule out a violation "
    "on a third of all draws"
)

INSTANCE_RULE = "nothing is drawn, so that one cell decides"


@dataclass(frozen=True)
class Margin:
    """The range in which a number must lie for a claim to hold; fixed before any cell is seen.

    Two finite ends make a claim of equivalence, or of an order of magnitude; one end makes a
    one-sided claim. Equivalence holds by two one-sided tests, each at half the error of the whole
    interval: the 90 % interval lies inside. It fails where the 95 % interval lies outside.

    Attributes:
        because: the origin of the ends, in words.
        fewest_seeds: with fewer seeds the claim is inconclusive: the interval's error rate is known
            from this number on.
        target: the number that the claim states, where it is no end: the margin leaves room there.
    """

    least: float = -math.inf
    most: float = math.inf
    because: str = ""
    fewest_seeds: int = 5
    target: float | None = None

    def verdict(self, estimate: Estimate) -> Verdict:
        """Return the verdict: `holds` inside, `fails` outside, `inconclusive` across an end.

        An interval that is a single infinity lies beyond the measured range, and fails nothing.
        """
        if (
            estimate.seeds < self.fewest_seeds
            or math.isnan(estimate.low)
            or math.isnan(estimate.high)
        ):
            return "inconclusive"
        if estimate.low == estimate.high and estimate.low in (self.least, self.most):
            return "inconclusive"
        has_two_ends = math.isfinite(self.most - self.least)
        low, high = (has_two_ends and estimate.inner) or (estimate.low, estimate.high)
        if self.least <= low and high <= self.most:
            return "holds"
        is_below = -math.inf < estimate.high < self.least
        return "fails" if is_below or self.most < estimate.low < math.inf else "inconclusive"

    def why_open(self, estimate: Estimate) -> str:
        """Say why an estimate of enough seeds is neither inside nor outside."""
        if math.isnan(estimate.low) or math.isnan(estimate.high):
            return "The number has no interval."
        if math.isinf(estimate.low) and math.isinf(estimate.high):
            return "Nothing is known of an end of the interval."
        ends = [
            _end(end) for end in (self.least, self.most) if estimate.low <= end <= estimate.high
        ]
        if ends:
            return f"The interval contains the margin's end {' and '.join(ends)}."
        return "The interval lies beyond what was measured."

    def __str__(self) -> str:
        if math.isinf(self.least):
            return f"below {_end(self.most)}"
        if math.isinf(self.most):
            return f"above {_end(self.least)}"
        return f"from {_end(self.least)} to {_end(self.most)}"

    def in_words(self, number: str) -> str:
        """Write the condition on the interval of a number, and the origin of the margin."""
        origin = f" ({self.because})" if self.because else ""
        seeds = plural(self.fewest_seeds, "seed")
        return f"{number}{IN_MARGIN}{self}{origin}; at least {seeds}"


def _end(number: float) -> str:
    return "0" if abs(number) < sys.float_info.min else f"{number:g}"


def judge_estimate(
    estimate: Estimate,
    margin: Margin,
    *,
    note: str = "",
    details: Mapping[str, float] | None = None,
) -> Measurement:
    """Return the measurement of a claim that one number decides."""
    needed = 0
    if estimate.seeds < margin.fewest_seeds:
        needed = margin.fewest_seeds + estimate.copies
        count = plural(estimate.seeds + estimate.copies, "seed")
        if estimate.copies:
            count += f", of which {estimate.seeds} differ{'s' * (estimate.seeds == 1)}"
        fewest = plural(margin.fewest_seeds, "seed")
        note = f"{note} It needs {fewest}; these cells have {count}.".strip()
    verdict = margin.verdict(estimate)
    if verdict == "inconclusive" and estimate.seeds >= margin.fewest_seeds:
        note = f"{note} {margin.why_open(estimate)}".strip()
    if verdict == "holds" and not estimate.bounded and estimate.inner is not None:
        low, high = estimate.inner
        note = f"{note} The interval at twice the error, [{low:.4g}, {high:.4g}], decides.".strip()
    return Measurement(
        verdict=verdict,
        value=estimate.value,
        interval=Interval(estimate.low, estimate.high, estimate.kind),
        margin=(margin.least, margin.most),
        target=margin.target,
        details=details or {},
        note=note,
        needed_seeds=needed,
    )


def judge_estimates(
    estimates: Mapping[str, tuple[Estimate, Margin]],
    *,
    note: str = "",
    details: Mapping[str, float] | None = None,
) -> Measurement:
    """Return the measurement of a claim that several numbers decide, each with its own margin.

    It holds where all hold and fails where one fails, so each interval must have the level of all
    together: see `level_of_each`. The value is that of the decisive number: of several, the one
    closest to its margin's ends. The details have all of them.
    """
    measurements = {name: judge_estimate(*number) for name, number in estimates.items()}
    verdict = joint_verdict(measurement.verdict for measurement in measurements.values())
    candidates = [
        name for name, measurement in measurements.items() if measurement.verdict == verdict
    ]
    decisive = min(candidates, key=lambda name: _slack(*estimates[name]))
    details = dict(details or {})
    for name, (number, _) in estimates.items():
        details |= {name: number.value, f"{name}, from": number.low, f"{name}, to": number.high}
    words = " ".join(part for part in (f"{decisive}:", note, measurements[decisive].note) if part)
    return replace(measurements[decisive], details=details, note=words)


def _slack(estimate: Estimate, margin: Margin) -> float:
    low, high = float(estimate.low), float(estimate.high)
    if not math.isfinite(high - low):
        return -math.inf
    room = min(low - margin.least, margin.most - high)
    return room / max(high - low, math.ulp(abs(float(estimate.value)) or 1.0))


def exponentiate(estimate: Estimate) -> Estimate:
    """Return the estimate of a positive number from that of its logarithm."""
    return estimate.transformed(math.exp)


def share_of_seeds(
    correct: pd.Series[bool], seeds: pd.Series[int], unknown: pd.Series[bool] | None = None
) -> Estimate:
    """Return the share of the seeds of which all cells are correct, with its exact interval.

    Where it is `unknown` of a cell, the interval allows for both.
    """
    by_seed = seeds.to_numpy()
    right = correct.groupby(by_seed).all()
    if unknown is None:
        return share_estimate(int(right.sum()), len(right))
    possible = (correct | unknown).groupby(by_seed).all()
    certain = (correct & ~unknown).groupby(by_seed).all()
    open_seeds = int((possible & ~certain).sum())
    return share_estimate(int(certain.sum()), len(right), unknown=open_seeds)


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
        flags = pd.DataFrame({name: amounts <= 0 for name, amounts in self.missed.items()})
        met: pd.Series[bool] = flags.all(axis=1)
        return met

    def may_be_met(self) -> pd.Series[bool]:
        """Return which cells do not miss any of them, as far as is known."""
        flags = pd.DataFrame({name: amounts > 0 for name, amounts in self.missed.items()})
        missed: pd.Series[bool] = flags.any(axis=1)
        return ~missed

    def judged(self, unknown: pd.Series[bool]) -> pd.Series[bool]:
        """Return the cells that a theorem is judged on: those that meet all, and those that may.

        A cell of which it is unknown whether it breaks the theorem may have met the hypotheses too.
        """
        return self.met() | (unknown & self.may_be_met())

    def distances(self) -> dict[str, float]:
        """Return the least and the largest distance to each of them."""
        return {
            f"{words}, {end}": float(number)
            for words, amounts in self.missed.items()
            for end, number in (("least", amounts.min()), ("most", amounts.max()))
        }


MET = "cells that meet its hypotheses"
"""The detail with the number of those cells."""

LOST = "cells that failed or are absent"
"""Which cells are unknown, where nothing else is said."""

OUT_OF_REACH = 3.0
"""The decades below a bound from which on it could not have been broken."""


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
    where none does. It is vacuous too where all lie `OUT_OF_REACH` decades or more below a bound.
    It holds where no cell of `FEWEST_SEEDS_OF_THEOREM` seeds breaks it: if it were broken on a
    third of all draws, so many seeds without a break would have a probability below 1/50.

    Args:
        unknown: whether a cell failed or is absent: it refutes nothing, and with it nothing holds.
        decades_over: the decades by which each cell lies above a bound; negative below it.
    """
    details = dict(details or {})
    cells = pd.DataFrame({"broken": broken, "seed": seeds, "unknown": False, "decades": math.inf})
    if unknown is not None:
        cells["unknown"] = unknown
    if decades_over is not None:
        cells["decades"] = decades_over
        details["decades over the bound, most"] = float(decades_over.max())
    if requirements is not None:
        judged = requirements.judged(cells["unknown"])
        count = int(requirements.met().sum())
        details |= requirements.distances() | {MET: count}
        if not judged.any():
            why = f"No cell meets its hypotheses: {requirements.in_words}."
            return mark_vacuous(Measurement(verdict="vacuous", note=note), why, details)
        cells = cells[judged]
    measured = _judge_without_exception(cells, unknown_because, note, details)
    below = -float(cells["decades"].max())  # nan where no cell has a number
    if measured.verdict == "fails" or not below >= OUT_OF_REACH:
        return measured
    return mark_vacuous(measured, f"The bound is out of reach by {below:.0f} decades or more.", {})


def _judge_without_exception(
    cells: pd.DataFrame, unknown_because: str, note: str, details: Mapping[str, float]
) -> Measurement:
    is_broken = bool((cells["broken"] & ~cells["unknown"]).any())
    estimate = share_of_seeds(~cells["broken"], cells["seed"], cells["unknown"])
    missing = int(cells["unknown"].sum())
    fewest = max(FEWEST_SEEDS_OF_THEOREM, math.log(1 - level_of_each(1)) / math.log(2 / 3))
    verdict: Verdict = "holds" if not missing and estimate.seeds >= fewest else "inconclusive"
    needed = math.ceil(fewest) if estimate.seeds < fewest and not is_broken else 0
    if missing:
        details = {**details, unknown_because: missing}
        note = f"{note} {unknown_because[0].upper()}{unknown_because[1:]} may break it."
    elif verdict == "inconclusive" and not is_broken:
        note = f"{note} It needs {math.ceil(fewest)} seeds; these cells have {estimate.seeds}."
    return Measurement(
        verdict="fails" if is_broken else verdict,
        decided="case" if is_broken else "interval",
        value=estimate.value,
        interval=Interval(estimate.low, estimate.high, estimate.kind),
        target=1.0,
        details=details,
        note=f"The share of seeds without an exception. {note.strip()}".strip(),
        needed_seeds=needed,
    )


def judge_instance(
    correct: bool,
    value: float,
    *,
    note: str = "",
    details: Mapping[str, float] | None = None,
) -> Measurement:
    """Return the measurement of an instance without random draws, which decides by itself.

    There is no interval: another seed would give the same number. A value of nan decides nothing.
    """
    verdict: Verdict = "holds" if correct else "fails"
    return Measurement(
        verdict="inconclusive" if math.isnan(value) else verdict,
        value=value,
        details=details or {},
        note=f"Nothing is drawn. {note}".strip(),
    )


def mark_vacuous(measured: Measurement, reason: str, details: Mapping[str, float]) -> Measurement:
    """Return a measurement as vacuous, for a reason, as a sentence: it could not be broken."""
    note = f"{measured.note} {reason}".strip()
    return replace(measured, verdict="vacuous", details={**measured.details, **details}, note=note)


def joint_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the joint verdict of several claims: `fails` where one fails."""
    present = set(verdicts)
    order: tuple[Verdict, ...] = ("fails", "inconclusive", "vacuous", "not run", "holds")
    return next(verdict for verdict in order if verdict in present)


def tolerance_margin(value: float, tolerance: float, because: str, fewest_seeds: int = 5) -> Margin:
    """Return the margin of a number claimed to be `value`, up to a tolerance."""
    return Margin(value - tolerance, value + tolerance, because, fewest_seeds, value)


def factor_margin(value: float, factor: float, because: str, fewest_seeds: int = 5) -> Margin:
    """Return the margin of a positive number claimed to be `value`, up to a factor."""
    return Margin(value / factor, value * factor, because, fewest_seeds, value)


LEAST_VALUES = 3
"""The least number of values of an axis that show a trend."""
