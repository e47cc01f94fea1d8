"""The numbers that a claim is judged on, one for each seed of each part, and their intervals.

What a failed or missing cell lacks lies between `low` and `high`, and so do a target that was
missed and a crossing beyond the grid, between an edge and infinity. An interval runs from that of
the lowest numbers to that of the highest: a verdict that it gives is that of every number in
between, the worst and the best.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.core.arrays import Floats
from overfit_cli.core.claim import IN_MARGIN
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import exact_ends, medians, order_ends, t_half_width

Statistic = Literal["median", "mean", "geometric mean", "share", "no exception", "given", "case"]
"""What of the seeds' numbers has the margin.

The ends of an interval may be `given`; a `case` is a single number, and nothing is drawn.
"""

FEWEST: Mapping[Statistic, int] = {
    "median": 6,
    "mean": 5,
    "geometric mean": 5,
    "share": 6,
    "no exception": 10,
    "given": 5,
    "case": 1,
}
"""The fewest seeds that decide: with fewer a median has no interval, and a t interval no rate."""

UNBROKEN = 2 / 3
"""Where nothing breaks a theorem, it is said of more than this share of all draws."""

FEW = 30
"""Fewer equal numbers bound a mean by the limits of what they can be, if they have any."""


@dataclass(frozen=True)
class Margin:
    """The range in which a number must lie for a claim to hold; fixed before any cell is seen.

    Two finite ends make a claim of equivalence, or of an order of magnitude; one end makes a
    one-sided claim.

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

    def __str__(self) -> str:
        if math.isinf(self.least):
            return f"below {end_in_words(self.most)}"
        if math.isinf(self.most):
            return f"above {end_in_words(self.least)}"
        return f"from {end_in_words(self.least)} to {end_in_words(self.most)}"

    def in_words(self, number: str) -> str:
        """Write the condition on the interval of a number, and the origin of the margin."""
        origin = f" ({self.because})" if self.because else ""
        seeds = plural(self.fewest_seeds, "seed")
        return f"{number}{IN_MARGIN}{self}{origin}; at least {seeds}"


def end_in_words(number: float) -> str:
    """Write the end of a margin; the number next to 0 is 0."""
    return "0" if abs(number) < sys.float_info.min else f"{number:g}"


def tolerance_margin(
    value: float, tolerance: float, because: str = "", fewest_seeds: int = 5
) -> Margin:
    """Return the margin of a number claimed to be `value`, up to a tolerance."""
    return Margin(value - tolerance, value + tolerance, because, fewest_seeds, value)


def factor_margin(value: float, factor: float, because: str = "", fewest_seeds: int = 5) -> Margin:
    """Return the margin of a positive number claimed to be `value`, up to a factor."""
    return Margin(value / factor, value * factor, because, fewest_seeds, value)


@dataclass(frozen=True)
class Part:
    """A place at which a claim must hold: one number per seed, and the margin of their statistic.

    Attributes:
        place: the setting that it is measured at, such as `n=20, snr=0.5`; empty for a single one.
        low, high: the least and the most that the number of each seed may be, shape (seeds,). They
            agree where it is known. Of `no exception` it is 1 for a seed that breaks nothing.
        quantity: what it is a number of, where a claim has several quantities.
        within: the least and the largest number that there can be, such as −1 and 1.
    """

    place: str
    low: Floats
    high: Floats
    margin: Margin
    statistic: Statistic = "median"
    quantity: str = ""
    within: tuple[float, float] = (-math.inf, math.inf)

    @classmethod
    def of(
        cls,
        numbers: Any,
        margin: Margin,
        statistic: Statistic = "mean",
        *,
        up_to: Any = None,
        within: tuple[float, float] = (-math.inf, math.inf),
        called: str = "",
    ) -> Part:
        """Return the part of numbers, one per seed; with `up_to` they are the least of each."""
        low = np.asarray(numbers, dtype=np.float64)
        high = low if up_to is None else np.asarray(up_to, dtype=np.float64)
        return cls("", low, high, margin, statistic, called, within)

    @classmethod
    def of_cells(
        cls,
        right: pd.Series[bool],
        unknown: pd.Series[bool],
        seeds: pd.Series[int],
        margin: Margin,
        statistic: Statistic = "share",
    ) -> Part:
        """Return the part of seeds of which all cells are right, or may be where it is unknown."""
        flags = pd.DataFrame({"least": right & ~unknown, "most": right | unknown})
        ends = flags.groupby(seeds.to_numpy()).all()
        return cls.of(ends["least"], margin, statistic, up_to=ends["most"])

    def __str__(self) -> str:
        is_combined = not self.quantity and " over " in self.place
        setting = f"{'the' if is_combined else 'at'} {self.place}" if self.place else ""
        return " ".join(filter(None, (self.quantity, setting)))

    @property
    def unknown(self) -> int:
        """The number of seeds whose number is not known."""
        return int((self.low != self.high).sum())

    def slack(self, value: float) -> float:
        """How far a number lies inside the margin, in its width if it has one; negative outside."""
        number, least, most = float(value), self.margin.least, self.margin.most
        if self.statistic == "geometric mean":
            number, least, most = (
                math.log(x) if x > 0 else -math.inf for x in (number, least, most)
            )
        sides = ((number - least, least), (most - number, most))
        room = min((side for side, end in sides if math.isfinite(end)), default=math.inf)
        return room / (most - least) if math.isfinite(most - least) else room


def prepared(part: Part) -> Part:
    """Return a part; a mean of zeros and ones is a share, with an exact interval."""
    known = part.low[part.low == part.high]
    is_share = (
        part.statistic == "mean"
        and len(known) > 0
        and np.isin(known, (0.0, 1.0)).all()
        and not -math.inf < part.within[0] < 0
        and part.low.min() >= 0
        and part.high.max() <= 1
    )
    if not is_share:
        return part
    fewest = max(part.margin.fewest_seeds, FEWEST["share"])
    return replace(part, statistic="share", margin=replace(part.margin, fewest_seeds=fewest))


# Intervals


class Numbers:
    """The numbers of a part in all worlds, (worlds, seeds), and their intervals at any level.

    Args:
        low, high: the least and the most that they may be; one object where all are known.
    """

    def __init__(self, part: Part, low: Floats, high: Floats) -> None:
        self.part, self.count = part, low.shape[-1]
        self.in_logs, self.statistic = part.statistic == "geometric mean", part.statistic
        if self.statistic == "median":
            self.low, self.high = _both(lambda end: np.sort(end, axis=-1), low, high)
            below, above = _both(medians, self.low, self.high)
        elif self.statistic in ("share", "no exception"):
            self.low, self.high = _both(lambda end: end.sum(axis=-1), low, high)
            below, above = self.low / self.count, self.high / self.count
        elif self.statistic in ("given", "case"):
            below, above = self.low, self.high = low[..., 0], high[..., 0]
        else:
            if self.in_logs:
                low, high = _both(lambda end: np.log(np.maximum(end, 0.0)), low, high)
            below, above = self.low, self.high = _both(lambda end: end.mean(axis=-1), low, high)
            centre = (below + above)[..., None] / 2
            squares = _both(lambda end: (end - centre) ** 2, low, high)
            summed = np.maximum(*squares).sum(axis=-1)
            self.deviation = np.sqrt(summed / max(self.count - 1, 1))
            # Whether all are one number, up to round-off: their spread is that of no interval.
            equal = self.deviation <= 4 * np.finfo(float).eps * np.abs(centre[..., 0])
            self.equal = equal & (self.count < FEW)
        self.value: Floats = np.where(below == above, below, (below + above) / 2)  # (worlds,)
        self.value = np.exp(self.value) if self.in_logs else self.value

    def ends(self, alpha: float) -> tuple[Floats, Floats]:
        """The ends of intervals that miss their number with this probability, (worlds,)."""
        if self.statistic in ("given", "case"):
            return self.low, self.high
        if self.statistic == "median":
            return order_ends(self.low, self.high, alpha)
        if self.statistic in ("share", "no exception"):
            return exact_ends(self.low, self.high, self.count, alpha)
        least, most = (-np.inf, np.inf) if self.in_logs else self.part.within
        half = t_half_width(self.deviation, self.count if self.count > 1 else np.nan, 1 - alpha)
        # Of n equal numbers, others may have so large a share that they are not seen.
        others = 1 - (alpha / 2) ** (1 / self.count)
        low = np.where(self.equal, self.low - others * (self.low - least), self.low - half)
        high = np.where(self.equal, self.high + others * (most - self.high), self.high + half)
        low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
        ends = np.exp((low, high)) if self.in_logs else np.clip((low, high), least, most)
        return ends[0], ends[1]


def _both(function: Callable[[Floats], Any], low: Floats, high: Floats) -> tuple[Any, Any]:
    """A function of both ends, computed once where all numbers are known."""
    of_low = function(low)
    return of_low, of_low if low is high else function(high)


class Worlds:
    """The numbers of all parts in all worlds, with their intervals at any level: (worlds, parts).

    Args:
        low, high: of each part, (worlds, seeds); one object where all are known.
    """

    @np.errstate(invalid="ignore", divide="ignore")  # between infinities
    def __init__(
        self, parts: Sequence[Part], low: Sequence[Floats], high: Sequence[Floats]
    ) -> None:
        self.parts = parts
        self.numbers = [*map(Numbers, parts, low, high)]
        self.counts = np.array([each.count for each in self.numbers])
        self.value = np.stack([each.value for each in self.numbers], axis=1)

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Worlds:
        """Return a run's own numbers: a single world."""
        low = [part.low[None] for part in parts]
        return cls(
            parts, low, [p.high[None] if p.unknown else n for p, n in zip(parts, low, strict=True)]
        )

    @np.errstate(invalid="ignore")
    def ends(self, alpha: float) -> tuple[Floats, Floats]:
        """The ends of the intervals that miss their number with this probability."""
        low, high = np.stack([each.ends(alpha) for each in self.numbers], axis=-1)
        return low, high

    def exceptions(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether a seed breaks a part without exception, and whether one may; False of others."""
        broken, may_be = np.zeros((2, *self.value.shape), dtype=bool)
        for index, each in enumerate(self.numbers):
            if each.statistic == "no exception":
                broken[:, index], may_be[:, index] = each.high < each.count, each.low < each.count
        return broken, may_be
