"""Rates of error of a claim, from its own cells: seeds resampled in worlds of known truth.

The numbers of all seeds are moved by one amount, so that the worst setting lies at the margin's
end. There the claim is as nearly false as it can be, and as nearly true: a verdict `holds` is a
false one, and so is `fails`. As measured, without the move, they give the power.

Whole seeds are resampled, with what they have in common at several settings. A resampled number
moves by a little noise (a smoothed bootstrap; Silverman 1981): a median of resampled numbers would
otherwise often lie at a margin's end exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from overfit_cli.claims.everywhere import counts_that_refute, estimate, in_logarithms, slack
from overfit_cli.claims.quantities import Part, Statistic
from overfit_cli.core.arrays import Floats
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import inner_level, level_of_each, ordered_tail, t_half_width

REPEATS = 2000
"""How many times seeds are resampled."""

FEWEST_PILOT = 3
"""The fewest seeds of a pilot."""

MOST_SEEDS = 1000
"""More seeds than these are not proposed."""

MOST_NUMBERS = 4_000_000
"""The most resampled numbers that are held at a time."""

MOST_SEARCHED, FEWEST_REPEATS = 20_000_000, 200
"""In a search for seeds, the numbers of one step, and the fewest repeats of claims with more."""

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
    repeats: int

    def in_words(self) -> str:
        """Return the rates in a sentence."""
        return (
            f"With {plural(self.seeds, 'seed')} it would hold in {100 * self.false_holds:.1f} % of "
            f"simulated data in which it is barely false, and fail in {100 * self.false_fails:.1f} "
            f"% of those in which it is barely true; as measured it would hold in "
            f"{100 * self.holds:.0f} % and fail in {100 * self.fails:.0f} %."
        )


def rates(
    parts: Sequence[Part],
    seeds: int | None = None,
    *,
    repeats: int = REPEATS,
    seed: int = 0,
) -> Rates:
    """Return the rates of error and the power of a claim on parts, one for each setting.

    The number of seeds is by default that of the parts.
    """
    count = seeds or len(parts[0].low)
    random = np.random.default_rng(seed)
    parts = _with_means(parts)
    measured = _judged(parts, count, repeats, random)
    at_ends = [_judged(moved, count, repeats, random) for moved in _moved_to_ends(parts)]
    return Rates(
        seeds=count,
        false_holds=max(float((verdicts > 0).mean()) for verdicts in at_ends),
        false_fails=max(float((verdicts < 0).mean()) for verdicts in at_ends),
        holds=float((measured > 0).mean()),
        fails=float((measured < 0).mean()),
        repeats=repeats,
    )


def fewest_seeds(parts: Sequence[Part]) -> int:
    """Return the fewest seeds that can decide at the level in force: a median needs an interval."""
    count = max(part.margin.fewest_seeds for part in parts)
    while any(part.statistic == "median" for part in parts) and not ordered_tail(
        count, level_of_each(1)
    ):
        count += 1
    return count


def seeds_to_decide(parts: Sequence[Part], *, more_than: int = 0, seed: int = 0) -> int | None:
    """Return the fewest seeds that decide a claim in `WANTED` of the worlds as measured.

    They are more than `more_than`. None where `MOST_SEEDS` do not.
    """
    random = np.random.default_rng(seed)
    parts = _with_means(parts)

    def decides(count: int) -> bool:
        affordable = MOST_SEARCHED // (len(parts) * count)
        repeats = min(REPEATS // 2, max(affordable, FEWEST_REPEATS))
        verdicts = _judged(parts, count, repeats, random)
        return max(float((verdicts > 0).mean()), float((verdicts < 0).mean())) >= WANTED

    low = max(more_than, max(part.margin.fewest_seeds for part in parts) - 1)
    high = low + 1
    while not decides(high):
        if high >= MOST_SEEDS:
            return None
        low, high = high, min(2 * high, MOST_SEEDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    return high


def _with_means(parts: Sequence[Part]) -> list[Part]:
    return [in_logarithms(part) if part.statistic == "geometric mean" else part for part in parts]


# Worlds


@dataclass(frozen=True)
class _Drawn:
    """Resampled numbers, each of shape (repeats, parts, seeds)."""

    low: Floats
    high: Floats

    def mapped(self, function: Callable[[Floats], Floats]) -> _Drawn:
        low = function(self.low)
        return _Drawn(low, low if self.high is self.low else function(self.high))


def _moved_to_ends(parts: Sequence[Part]) -> list[list[Part]]:
    """The worlds in which the worst part lies at each end of its margin that is finite.

    All parts move by the same amount; those that would lie outside lie at their own end.
    """
    worlds = []
    worst = min(parts, key=slack)
    for end in ("least", "most"):
        if not math.isfinite(getattr(worst.margin, end)):
            continue
        shift = getattr(worst.margin, end) - _centre(worst)
        worlds.append([_moved(part, shift) for part in parts])
    return worlds


def _moved(part: Part, shift: float) -> Part:
    centre = _centre(part)
    target = min(max(centre + shift, part.margin.least), part.margin.most)
    if part.statistic == "share":
        return _with_share(part, target)
    move = target - centre
    return replace(part, low=part.low + move, high=part.high + move)


def _centre(part: Part) -> float:
    """A part's number, of the seeds whose numbers are known; that of the worlds that they make.

    The noise on resampled numbers moves the median of skewed ones towards their long tail.
    """
    known = part.low == part.high
    if not known.any():
        return 0.0
    numbers = part.low[known]
    if part.statistic == "median":
        (width,) = _bandwidths(part.low[None], part.high[None])
        return _noisy_median(numbers, float(width))
    return float(estimate(replace(part, low=numbers, high=numbers)).value)


def _noisy_median(numbers: Floats, width: float) -> float:
    from scipy.special import ndtr

    if not width > 0:
        return float(np.median(numbers))
    low, high = float(numbers.min()) - 9 * width, float(numbers.max()) + 9 * width
    for _ in range(60):
        middle = (low + high) / 2
        below = float(ndtr((middle - numbers) / width).mean())
        low, high = (middle, high) if below < 0.5 else (low, middle)
    return (low + high) / 2


def _with_share(part: Part, share: float) -> Part:
    count = 1000
    right = (np.arange(count) < round(share * count)).astype(float)
    unknown = np.arange(count) % len(part.low) < part.unknown
    random = np.random.default_rng(0)
    random.shuffle(right)
    low, high = np.where(unknown, 0.0, right), np.where(unknown, 1.0, right)
    return replace(part, low=low, high=high)


def _judged(
    parts: Sequence[Part], count: int, repeats: int, random: np.random.Generator
) -> NDArray[np.int8]:
    at_a_time = max(1, MOST_NUMBERS // (len(parts) * count))
    sizes = [min(at_a_time, repeats - start) for start in range(0, repeats, at_a_time)]
    return np.concatenate(
        [_verdicts(parts, _resampled(parts, count, size, random)) for size in sizes]
    )


def _resampled(
    parts: Sequence[Part], count: int, repeats: int, random: np.random.Generator
) -> _Drawn:
    """Seeds drawn with replacement, whole, with a little noise on numbers that differ.

    Numbers that have a mean shrink towards it beforehand, so that with the noise they spread as
    widely as the seeds' numbers do by the unbiased estimate.
    """
    low, high = (np.stack([getattr(part, end) for part in parts]) for end in ("low", "high"))
    is_median, is_mean = (
        np.array([part.statistic == name for part in parts]) for name in ("median", "mean")
    )
    widths = np.where(is_median, _bandwidths(low, high), 0.0)
    if is_mean.any():
        low[is_mean], high[is_mean], widths[is_mean] = _shrunk(low[is_mean], high[is_mean])
    seeds = low.shape[1]
    drawn = random.integers(seeds, size=(repeats, count))
    lows = np.moveaxis(low[:, drawn], 0, 1)
    highs = lows if (low == high).all() else np.moveaxis(high[:, drawn], 0, 1)
    if not widths.any():
        return _Drawn(lows, highs)
    noise = random.standard_normal((repeats, 1, count)) * widths[None, :, None]
    return _Drawn(lows, highs).mapped(lambda numbers: numbers + noise)


def _shrunk(low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
    """Numbers of parts nearer to their means, and the deviation of the noise that makes up for it.

    That is Silverman's rule for normal numbers, with the deviation of the known ones.
    """
    known = np.where(low == high, low, np.nan)
    counts = np.isfinite(known).sum(axis=1)
    several = counts > 1
    means, deviations = np.zeros(len(low)), np.zeros(len(low))
    means[several] = np.nanmean(known[several], axis=1)
    deviations[several] = np.nanstd(known[several], axis=1, ddof=1)
    shares = 0.9 * np.maximum(counts, 2) ** -0.2
    factors = np.sqrt((1 - shares**2) * counts / np.maximum(counts - 1, 1))
    factors = np.where(several, factors, 1.0)[:, None]
    centres = means[:, None]
    ends = (centres + factors * (numbers - centres) for numbers in (low, high))
    return next(ends), next(ends), shares * deviations


def _bandwidths(low: Floats, high: Floats) -> Floats:
    known = np.where(low == high, low, np.nan)
    counts = np.isfinite(known).sum(axis=1)
    quartiles = np.full((2, len(low)), 0.0)
    some = counts > 0
    quartiles[:, some] = np.nanpercentile(known[some], [25, 75], axis=1)
    spread = (quartiles[1] - quartiles[0]) / 1.349
    return np.asarray(0.45 * spread * np.maximum(counts, 1) ** -0.2)


# Verdicts of many worlds at once


def _verdicts(parts: Sequence[Part], drawn: _Drawn) -> NDArray[np.int8]:
    count = drawn.low.shape[2]
    if count < max(part.margin.fewest_seeds for part in parts):
        return np.zeros(len(drawn.low), dtype=np.int8)
    least, most = (
        np.array([getattr(part.margin, end) for part in parts]) for end in ("least", "most")
    )
    drawn = _with_medians_sorted(parts, drawn)
    level = level_of_each(1)
    two_ends = np.isfinite(most - least)
    outer = _ends(parts, drawn, level)
    inner = _ends(parts, drawn, inner_level(level))
    low, high = (
        np.where(two_ends, ends_inner, ends) for ends_inner, ends in zip(inner, outer, strict=True)
    )
    at_end = (low == high) & ((low == least) | (low == most))
    holds = ((least <= low) & (high <= most) & ~at_end).all(axis=1)
    fails = np.zeros(len(holds), dtype=bool)
    for fewest in counts_that_refute(len(parts)):
        below, above = _ends(parts, drawn, level_of_each(len(parts) / fewest))
        fails |= ((above < least) | (most < below)).sum(axis=1) >= fewest
    fails &= ~holds
    verdicts: NDArray[np.int8] = holds.astype(np.int8) - fails.astype(np.int8)
    return verdicts


def _with_medians_sorted(parts: Sequence[Part], drawn: _Drawn) -> _Drawn:
    is_median = np.array([part.statistic == "median" for part in parts])
    if is_median.all():
        return drawn.mapped(lambda numbers: np.sort(numbers, axis=2))

    def some_sorted(numbers: Floats) -> Floats:
        ordered = numbers.copy()
        ordered[:, is_median] = np.sort(numbers[:, is_median], axis=2)
        return ordered

    return drawn.mapped(some_sorted)


def _ends(parts: Sequence[Part], drawn: _Drawn, level: float) -> tuple[Floats, Floats]:
    low, high = np.empty(drawn.low.shape[:2]), np.empty(drawn.low.shape[:2])
    for statistic in {part.statistic for part in parts}:
        alike = np.array([part.statistic == statistic for part in parts])
        some = drawn if alike.all() else drawn.mapped(itemgetter((slice(None), alike)))
        low[:, alike], high[:, alike] = _ends_of(statistic, some, level)
    return low, high


def _ends_of(statistic: Statistic, drawn: _Drawn, level: float) -> tuple[Floats, Floats]:
    count = drawn.low.shape[2]
    if statistic == "median":
        excluded = ordered_tail(count, level)
        if not excluded:
            infinite = np.full(drawn.low.shape[:2], np.inf)
            return -infinite, infinite
        return drawn.low[:, :, excluded - 1], drawn.high[:, :, count - excluded]
    if statistic == "mean":
        with np.errstate(invalid="ignore"):  # of numbers that are not known
            centre = (drawn.low.mean(axis=2) + drawn.high.mean(axis=2)) / 2
            squares = np.maximum(
                (drawn.low - centre[..., None]) ** 2, (drawn.high - centre[..., None]) ** 2
            )
            deviation = np.sqrt(squares.sum(axis=2) / (count - 1))
            half = t_half_width(deviation, count, level)
            low, high = drawn.low.mean(axis=2) - half, drawn.high.mean(axis=2) + half
        return np.nan_to_num(low, nan=-np.inf), np.nan_to_num(high, nan=np.inf)
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    fewest, most = drawn.low.sum(axis=2), drawn.high.sum(axis=2)
    with np.errstate(invalid="ignore"):
        low = np.where(fewest > 0, betaincinv(fewest, count - fewest + 1, tail), 0.0)
        high = np.where(most < count, betaincinv(most + 1, count - most, 1 - tail), 1.0)
    return low, high
