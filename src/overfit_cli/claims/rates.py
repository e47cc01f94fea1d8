"""Rates of error of a claim, from its own cells: seeds resampled in worlds of known truth.

The numbers of all seeds are moved by one amount, so that the worst part lies at the margin's end.
There the claim is as nearly false as it can be, and as nearly true: a verdict `holds` is a false
one, and so is `fails`. As measured, without the move, they give the power.

Whole seeds are resampled, with what they have in common at several settings. A resampled number
moves by a little noise (a smoothed bootstrap; Silverman 1981): a median of resampled numbers would
otherwise often lie at a margin's end exactly. Each world is judged by the rule of `claims.rules`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from overfit_cli.claims.parts import Part, Worlds, prepared
from overfit_cli.claims.rules import decide
from overfit_cli.core.arrays import Floats
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import error_of_each, middle

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
        """Return the rates in a sentence."""
        return (
            f"With {plural(self.seeds, 'seed')} it would hold in {100 * self.false_holds:.1f} % of "
            f"simulated data in which it is barely false, and fail in {100 * self.false_fails:.1f} "
            f"% of those in which it is barely true; as measured it would hold in "
            f"{100 * self.holds:.0f} % and fail in {100 * self.fails:.0f} %."
        )


def rates(parts: Sequence[Part], seeds: int = 0, *, repeats: int = REPEATS, seed: int = 0) -> Rates:
    """Return the rates of error and the power of a claim, by default with as many seeds as here.

    In the worlds in which it is barely false, and barely true, all parts move by one amount, so
    that the worst lies at an end of its margin; those that would lie beyond theirs lie at that.
    """
    random = np.random.default_rng(seed)
    parts = [_in_logarithms(prepared(part)) for part in parts]
    count, centres = seeds or len(parts[0].low), [_centre(part) for part in parts]
    worst = min(range(len(parts)), key=lambda index: parts[index].slack(centres[index]))
    moves = [[0.0] * len(parts)]
    for end in (parts[worst].margin.least, parts[worst].margin.most):
        if math.isfinite(end):
            aims = np.add(centres, end - centres[worst])
            ends = np.array([(part.margin.least, part.margin.most) for part in parts])
            moves.append([*(aims.clip(*ends.T) - centres)])
    measured, *moved = (_verdicts(parts, each, count, repeats, random) for each in moves)
    return Rates(
        seeds=count,
        false_holds=max(float((made > 0).mean()) for made in moved),
        false_fails=max(float((made < 0).mean()) for made in moved),
        holds=float((measured > 0).mean()),
        fails=float((measured < 0).mean()),
    )


def seeds_to_decide(parts: Sequence[Part], *, more_than: int = 0, seed: int = 0) -> int | None:
    """Return the fewest seeds that decide a claim in `WANTED` of the worlds as measured.

    They are more than `more_than`. None where `MOST_SEEDS` do not.
    """
    random = np.random.default_rng(seed)
    parts = [_in_logarithms(prepared(part)) for part in parts]

    def decides(count: int) -> bool:
        affordable = max(MOST_SEARCHED // (len(parts) * count), FEWEST_REPEATS)
        verdicts = _verdicts(
            parts, [0.0] * len(parts), count, min(REPEATS // 2, affordable), random
        )
        return max(float((verdicts > 0).mean()), float((verdicts < 0).mean())) >= WANTED

    low = max(more_than, max(part.margin.fewest_seeds for part in parts) - 1)
    high = low + 1
    while not decides(high):
        if high >= MOST_SEEDS:
            return None
        low, high = high, min(2 * high, MOST_SEEDS)
    while high - low > 1:
        half = (low + high) // 2
        low, high = (low, half) if decides(half) else (half, high)
    return high


# Worlds


def _in_logarithms(part: Part) -> Part:
    """A part that has the mean of logarithms in the place of a geometric mean."""
    if part.statistic != "geometric mean":
        return part
    ends = (part.low, part.high, part.margin.least, part.margin.most)
    with np.errstate(divide="ignore"):
        low, high, least, most = (np.log(np.maximum(end, 0.0)) for end in ends)
    margin = replace(part.margin, least=float(least), most=float(most))
    return replace(part, low=low, high=high, margin=margin, statistic="mean")


def _verdicts(
    parts: Sequence[Part],
    moves: Sequence[float],
    count: int,
    repeats: int,
    random: np.random.Generator,
) -> NDArray[np.int8]:
    """The verdicts in worlds in which each part's number is moved, some of them at a time."""
    verdicts, smoothed = list[NDArray[np.int8]](), [_smoothed(part) for part in parts]
    at_a_time = max(1, MOST_NUMBERS // (len(parts) * count))
    for start in range(0, repeats, at_a_time):
        size = min(at_a_time, repeats - start), count
        draws = dict[int, tuple[NDArray[np.int_], Floats]]()  # parts with as many seeds share them
        low, high = list[Floats](), list[Floats]()
        for part, move, (lows, highs, width) in zip(parts, moves, smoothed, strict=True):
            if len(lows) not in draws:
                draws[len(lows)] = random.integers(len(lows), size=size), random.normal(size=size)
            drawn, noise = draws[len(lows)]
            below = lows[drawn]
            above = highs[drawn] if part.unknown else below
            if part.statistic == "share":
                below, above = _turned(below, above, _centre(part), move, random)
            elif width or move:
                more = noise * width + move
                below, above = below + more, above + more
            low.append(below)
            high.append(above if part.unknown else below)
        verdicts.append(decide(Worlds(parts, low, high), error_of_each(1)).verdict)
    return np.concatenate(verdicts)


def _turned(
    low: Floats, high: Floats, share: float, move: float, random: np.random.Generator
) -> tuple[Floats, Floats]:
    """Zeros and ones of which some are turned, so that their share moves; unknown ones stay."""
    if not move:
        return low, high
    room = 1 - share if move > 0 else share
    chance = abs(move) / room if room else 1.0
    known, turns = low == high, random.random(low.shape) < chance
    turned = np.where(turns & known, float(move > 0), low)
    return turned, np.where(known, turned, high)


def _centre(part: Part) -> float:
    """The number of the worlds that a part makes.

    Means and shares are those of the seeds whose numbers are known. A missed target counts for the
    median too, and noise on resampled numbers moves that of skewed ones towards their long tail.
    """
    if part.statistic != "median":
        known = part.low[part.low == part.high]
        return float(known.mean()) if len(known) else 0.0
    width = _smoothed(part)[2]
    ends = [_noisy_median(end, width) for end in (part.low, part.high)]
    finite = [end for end in ends if math.isfinite(end)]
    return sum(finite) / len(finite) if finite else 0.0


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


def _smoothed(part: Part) -> tuple[Floats, Floats, float]:
    """Numbers, with the deviation of their noise.

    Those of a mean shrink towards it beforehand, so that with the noise they spread as widely as
    the seeds' numbers do by the unbiased estimate.
    """
    known = part.low[(part.low == part.high) & np.isfinite(part.low)]
    count = len(known)
    if part.statistic == "median" and count:
        lower, upper = np.percentile(known, [25, 75])
        return part.low, part.high, float(0.45 * (upper - lower) / 1.349 * count**-0.2)
    if part.statistic != "mean" or count < 2:
        return part.low, part.high, 0.0
    share, mean = 0.9 * count**-0.2, known.mean()
    factor = math.sqrt((1 - share**2) * count / (count - 1))
    low, high = (mean + factor * (end - mean) for end in (part.low, part.high))
    return low, high, float(share * known.std(ddof=1))
