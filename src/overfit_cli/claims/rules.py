"""Measurements of claims by the rule of `claims.parts`, theorems, and rates of error.

The rates of a claim are those of its own cells: seeds resampled in worlds of known truth. The
numbers of all seeds are moved by one amount, so that the worst part lies at the margin's end. There
the claim is as nearly false as it can be, and as nearly true: a verdict `holds` is a false one, and
so is `fails`. As measured, without the move, they give the power.

Whole seeds are resampled, with what they have in common at several settings. A resampled number
moves by a little noise (a smoothed bootstrap; Silverman 1981): a median of resampled numbers would
otherwise often lie at a margin's end exactly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from overfit_cli.claims.bounds import OUT_OF_REACH
from overfit_cli.claims.parts import SHAPE, Margin, Part, Worlds, decide, fewest_seeds
from overfit_cli.core.arrays import Floats
from overfit_cli.core.claim import Interval, Measurement, Verdict, inconclusive
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import FEW, Estimate, error_of_each, kind_of, middle

MOST_LISTED = 12
"""Of more settings than these only the worst is said."""

_INTERVALS = {"median": "by order", "share": "exact", "no exception": "exact"}
"""The kinds of intervals; those of means are Student's."""


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
    parts = [part.prepared() for part in parts]
    made = decide(Worlds.of(parts), error_of_each(among))
    verdict: Verdict = ("inconclusive", "holds", "fails")[made.verdict[0]]
    codes, ends = made.each[0], np.stack([made.value[0], made.low[0], made.high[0]], axis=1)
    worst = _worst(parts, verdict, codes, ends)
    part, count, (value, low, high) = parts[worst], len(parts[worst].low), ends[worst].tolist()
    fewest = fewest_seeds(parts) if verdict == "inconclusive" else 0
    needed = fewest if min(len(each.low) for each in parts) < fewest else 0
    words = [f"The worst is {part}." if len(parts) > 1 else "", note]
    if needed:
        words.append(f"It needs {plural(needed, 'seed')}; these cells have {count}.")
    else:
        words.append(_why_open(part, verdict, codes[worst], low, high))
    if verdict == "holds" and np.isinf([low, high]).all() and math.isfinite(value):
        inner = (float(end[0, worst]) for end in made.inner)
        words.append("The interval at twice the error, [{:.4g}, {:.4g}], decides.".format(*inner))
    kind = kind_of(_INTERVALS.get(part.statistic, "t"), count, 1 - made.alpha[0])
    is_case, strict = part.statistic == "case", part.statistic == "no exception"
    by_case = [each.statistic in ("case", "no exception") for each in parts]
    is_refuted = verdict == "fails" and codes[by_case].min(initial=0) < 0
    told = _details(parts, ends) if len(parts) > 1 else {}
    measured = Measurement(
        verdict=verdict,
        value=None if is_case and part.unknown else value,
        interval=None if is_case else Interval(low, high, kind),
        margin=None if strict else (part.margin.least, part.margin.most),
        target=part.margin.target,
        decided="case" if is_case or is_refuted else "interval",
        details={**(details or {}), **part.details, **told},
        note=" ".join(filter(None, words)),
        needed_seeds=needed,
    )
    return mark_by_far(measured, min(each.below for each in parts))


def _worst(parts: Sequence[Part], verdict: Verdict, codes: NDArray[np.int8], ends: Floats) -> int:
    """Which part is shown: the one with the least slack of those that decided."""

    def nearness(index: int) -> tuple[int, bool, float]:
        beside = parts[index].margin != parts[0].margin
        of_verdict = beside if verdict == "holds" else codes[index]
        return of_verdict, beside, parts[index].slack(ends[index, 0])

    return min(range(len(parts)), key=nearness)


def _why_open(part: Part, verdict: Verdict, code: int, low: float, high: float) -> str:
    """Why a part by itself says something else than the verdict, or nothing; else empty."""
    if code < 0 and verdict == "inconclusive":
        return "By itself it fails; of so many settings one may."
    if code < 0 and part.margin.because == SHAPE:
        return "Not a power."
    if code == 0 and part.statistic == "no exception" and part.unknown:
        return "Cells that failed, are absent or have no number may break it."
    if code or part.statistic in ("no exception", "case"):
        return ""
    if math.isinf(low) and math.isinf(high) and low != high:
        said = f", as of a mean that lacks a number, or of fewer than {FEW} equal ones"
        said = f"{said}; see their median" if "mean" in part.statistic else ""
        return f"Nothing is known of the interval's ends{said}."
    ends = part.margin.ends_between(low, high)
    where = f"contains the margin's end {ends}" if ends else "lies beyond what was measured"
    return f"The interval {where}."


def _details(parts: Sequence[Part], ends: Floats) -> dict[str, float]:
    """How many settings there are; and of a few parts the number and its interval's `ends`.

    These are of shape (parts, 3).
    """
    split = [(part.place, *part.place.rpartition(", ")[::2]) for part in parts]
    places = {place if "=" in last else before for place, before, last in split}
    details: dict[str, float] = {"settings": len(places)} if len(places) > 1 else {}
    for part, numbers in zip(parts, ends.tolist(), strict=True):
        if (part.quantity or len(parts) <= MOST_LISTED) and part.statistic != "case":
            name = re.sub("^(at|the) ", "", str(part))
            details |= zip((name, f"{name}, from", f"{name}, to"), numbers, strict=True)
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


def mark_by_far(measured: Measurement, below: float) -> Measurement:
    """Return a measurement of a bound: it holds by far where all lies decades below the bound."""
    if measured.verdict != "holds" or not below >= OUT_OF_REACH:
        return measured
    far = f"{below:.0f} decades or more" if math.isfinite(below) else "at 0,"
    note = f"{measured.note} All cells lie {far} below the bound."
    return replace(measured, verdict="holds by far", note=note)


# Rates of error

TINY = 1e-9
"""How far outside a margin a number is barely false, in its size."""

REPEATS = 2000
"""How many worlds there are."""

FEWEST_PILOT = 3
"""The fewest seeds of a pilot."""

MOST_SEEDS = 1000
"""More seeds than these are not proposed."""

MOST_NUMBERS = 4_000_000
"""The most resampled numbers that are held at a time."""

MOST_SEARCHED, FEWEST_REPEATS = 20_000_000, 200
"""In a search for seeds, the numbers of one step, and the fewest worlds of claims with more."""

WANTED = 0.9
"""The power with which the proposed seeds decide."""


@dataclass(frozen=True)
class Rates:
    """The rates at which a claim would be judged wrongly or rightly, at a number of seeds.

    `false_holds` is the share of `holds` where it is barely false, `false_fails` that of `fails`
    where it is barely true; `holds` and `fails` are those where it is as measured.
    """

    seeds: int
    false_holds: float
    false_fails: float
    holds: float
    fails: float

    def in_words(self) -> str:
        """Return the rates in a sentence; those of errors only where they are known."""
        holds, fails = 100 * self.false_holds, 100 * self.false_fails
        wrong = f"hold in {holds:.1f} % of simulated data in which it is barely false, and fail in "
        wrong += f"{fails:.1f} % of those in which it is barely true; as measured it would "
        wrong = "" if math.isnan(holds) else wrong
        power = f"hold in {100 * self.holds:.0f} % and fail in {100 * self.fails:.0f} %"
        return f"With {plural(self.seeds, 'seed')} it would {wrong}{power}."


def rates(parts: Sequence[Part], seeds: int = 0, *, repeats: int = REPEATS) -> Rates:
    """Return the rates of error and the power of a claim, by default with as many seeds as here.

    In the worlds in which it is barely false, and barely true, all parts move by one amount, so
    that the worst lies on one side of an end of its margin; those that would lie beyond theirs lie
    at that. Nan are the rates of errors where that number is a bound, which does not move.
    """
    random, pilots = np.random.default_rng(0), [*map(_Pilot, parts)]
    count, centres = seeds or len(parts[0].low), np.array([pilot.centre for pilot in pilots])
    margins = (pilot.part.margin for pilot in pilots)
    ends = np.array([(margin.least, margin.most) for margin in margins])  # (parts, 2)
    slacks = [pilot.part.slack(pilot.centre) for pilot in pilots]
    worst = slacks.index(min(slacks))
    strict = np.array([part.statistic == "no exception" for part in parts])
    errors = dict[int, list[float]]({-1: [], 1: []})  # by the side of the end, 1 is outside
    for outwards, end in zip((-1, 1), ends[worst], strict=True):
        beside = TINY * max(abs(end), abs(centres[worst]), pilots[worst].width)
        for side, found in errors.items() if math.isfinite(end) else ():
            moves = (centres + (end - centres[worst])).clip(*ends.T) - centres
            moves[worst] += side * outwards * beside
            if side < 0:  # where a claim is true there is no exception
                moves = np.where(strict, 1.0 - centres, moves)
            made = _verdicts(pilots, moves, count, repeats, random)
            found.append(float((made * side > 0).mean()))
    measured = _verdicts(pilots, np.zeros(len(parts)), count, repeats, random)
    is_bound = pilots[worst].is_bound
    return Rates(
        seeds=count,
        false_holds=math.nan if is_bound else max(errors[1]),
        false_fails=math.nan if is_bound else max(errors[-1]),
        holds=float((measured > 0).mean()),
        fails=float((measured < 0).mean()),
    )


def seeds_to_decide(parts: Sequence[Part], *, more_than: int = 0) -> int | None:
    """Return the fewest seeds that decide a claim in `WANTED` of the worlds as measured.

    They are more than `more_than`. None where `MOST_SEEDS` do not.
    """
    random, pilots = np.random.default_rng(0), [*map(_Pilot, parts)]

    def decides(count: int) -> bool:
        affordable = max(MOST_SEARCHED // (len(parts) * count), FEWEST_REPEATS)
        repeats = min(REPEATS // 2, affordable)
        verdicts = _verdicts(pilots, np.zeros(len(parts)), count, repeats, random)
        return max(float((verdicts > 0).mean()), float((verdicts < 0).mean())) >= WANTED

    low = max(more_than, *(pilot.part.margin.fewest_seeds - 1 for pilot in pilots))
    high = low + 1
    while not decides(high):
        if high >= MOST_SEEDS:
            return None
        low, high = high, min(2 * high, MOST_SEEDS)
    while high - low > 1:
        half = (low + high) // 2
        low, high = (low, half) if decides(half) else (half, high)
    return high


class _Pilot:
    """A part whose seeds are resampled, the deviation of the noise, and the number of the worlds.

    A geometric mean is a mean of logarithms. Numbers of a mean shrink towards it beforehand, so
    that with the noise they spread as widely as the seeds' numbers do by the unbiased estimate.

    The number of means and shares is that of the seeds whose numbers are known. A missed target
    counts for the median too, and noise moves that of skewed numbers towards their long tail.
    """

    def __init__(self, part: Part) -> None:
        part = part.prepared()
        if part.statistic == "geometric mean":
            ends = (part.low, part.high, part.margin.least, part.margin.most)
            with np.errstate(divide="ignore"):
                low, high, least, most = (np.log(np.maximum(end, 0.0)) for end in ends)
            margin = replace(part.margin, least=float(least), most=float(most))
            part = replace(part, low=low, high=high, margin=margin, statistic="mean")
        known = part.low[part.low == part.high]
        self.part, self.low, self.high, self.width = part, part.low, part.high, 0.0
        self.centre = float(known.mean()) if len(known) else 0.0
        known = known[np.isfinite(known)]
        count, share = len(known), 0.9 * max(len(known), 1) ** -0.2
        if part.statistic == "mean" and count > 1:
            self.width, mean = float(share * known.std(ddof=1)), known.mean()
            factor = math.sqrt((1 - share**2) * count / (count - 1))
            self.low, self.high = (mean + factor * (end - mean) for end in (part.low, part.high))
        if part.statistic == "median":
            lower, upper = np.percentile(known, [25, 75]) if count else (0.0, 0.0)
            self.width = float(0.45 * (upper - lower) / 1.349 * max(count, 1) ** -0.2)
            both = [_noisy_median(end, self.width) for end in (part.low, part.high)]
            finite = [end for end in both if math.isfinite(end)]
            self.centre = sum(finite) / len(finite) if finite else 0.0

    @property
    def is_bound(self) -> bool:
        """Whether its median is not known, or is that of targets that were missed."""
        is_median = self.part.statistic == "median"
        return is_median and not math.isfinite(middle(self.low) + middle(self.high))

    def turned(
        self, low: Floats, high: Floats, move: float, random: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Two values of which some are turned, so that their share moves; unknown ones stay."""
        if not move:
            return low, high
        ends = self.part.within if math.isfinite(self.part.within[0]) else (0.0, 1.0)
        end = ends[int(move > 0)]
        room = abs(end - self.centre)
        chance = abs(move) / room if room else 1.0
        known, turns = low == high, random.random(low.shape) < chance
        turned = np.where(turns & known, end, low)
        return turned, np.where(known, turned, high)


def _noisy_median(numbers: Floats, width: float) -> float:
    from scipy.special import ndtr

    plain, finite = middle(numbers), numbers[np.isfinite(numbers)]
    if not (width > 0 and math.isfinite(plain)):
        return plain
    low, high = float(finite.min()) - 9 * width, float(finite.max()) + 9 * width
    for _ in range(60):
        half = (low + high) / 2
        below = float(ndtr((half - numbers) / width).mean())
        low, high = (half, high) if below < 0.5 else (low, half)
    return (low + high) / 2


def _verdicts(
    pilots: Sequence[_Pilot], moves: Floats, count: int, repeats: int, random: np.random.Generator
) -> NDArray[np.int8]:
    """The verdicts in worlds in which each part's number is moved, some of them at a time."""
    verdicts, at_a_time = list[NDArray[np.int8]](), max(1, MOST_NUMBERS // (len(pilots) * count))
    for start in range(0, repeats, at_a_time):
        size = min(at_a_time, repeats - start), count
        draws = dict[int, tuple[NDArray[np.int_], Floats]]()  # parts with as many seeds share them
        low, high = list[Floats](), list[Floats]()
        for pilot, move in zip(pilots, moves, strict=True):
            seeds = len(pilot.low)
            if seeds not in draws:
                draws[seeds] = random.integers(seeds, size=size), random.normal(size=size)
            drawn, noise = draws[seeds]
            below = pilot.low[drawn]
            above = pilot.high[drawn] if pilot.part.unknown else below
            if pilot.part.statistic in ("share", "no exception"):
                below, above = pilot.turned(below, above, move, random)
            elif pilot.width or move:
                more = noise * pilot.width + move
                below, above = below + more, above + more
            low.append(below)
            high.append(above if pilot.part.unknown else below)
        worlds = Worlds([pilot.part for pilot in pilots], low, high)
        verdicts.append(decide(worlds, error_of_each(1)).verdict)
    return np.concatenate(verdicts)
