"""The numbers that a claim is judged on, one for each seed of each part, and the rule of verdicts.

The rule is one, on arrays of shape (worlds, parts, seeds): a run is one world, and the error rates
of a claim are its verdicts in thousands. A claim on several parts is an intersection: it holds
where each part holds at the level of one (Berger 1982), and fails where i of k parts lie outside at
the error α·i/k (Bonferroni, Simes 1986). A margin with two ends holds by two one-sided tests, each
at half the error of the whole interval (Schuirmann 1987). A theorem is refuted by a single
exception.

What a failed or missing cell lacks lies between `low` and `high`, and so do a target that was
missed and a crossing beyond the grid, between an edge and infinity. An interval runs from that of
the lowest numbers to that of the highest: a verdict that it gives is that of every number in
between, the worst and the best.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.core.arrays import Floats
from overfit_cli.core.claim import IN_MARGIN
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import Samples, error_of_each, order_tail

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

SHAPE = "the shape of a power"
"""The origin of the margin of what a power's line is judged on beside the power itself."""

UNBROKEN = 2 / 3
"""Where nothing breaks a theorem, it is said of more than this share of all draws."""


@dataclass(frozen=True)
class Margin:
    """The range in which a number must lie for a claim to hold.

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
            return f"below {_in_words(self.most)}"
        if math.isinf(self.most):
            return f"above {_in_words(self.least)}"
        return f"from {_in_words(self.least)} to {_in_words(self.most)}"

    def in_words(self, number: str) -> str:
        """Write the condition on the interval of a number, and the origin of the margin."""
        origin = f" ({self.because})" if self.because else ""
        seeds = plural(self.fewest_seeds, "seed")
        return f"{number}{IN_MARGIN}{self}{origin}; at least {seeds}"

    def ends_between(self, low: float, high: float) -> str:
        """Write the ends that an interval contains; empty where it contains none."""
        return " and ".join(_in_words(end) for end in (self.least, self.most) if low <= end <= high)


def _in_words(number: float) -> str:
    """The end of a margin; the number next to 0 is 0."""
    return "0" if abs(number) < sys.float_info.min else f"{number:g}"


def tolerance_margin(
    value: float, tolerance: float, because: str = "", fewest_seeds: int = 5
) -> Margin:
    """Return the margin of a number claimed to be `value`, up to a tolerance."""
    return Margin(value - tolerance, value + tolerance, because, fewest_seeds, value)


@dataclass(frozen=True)
class Part:
    """A place at which a claim must hold: one number per seed, and the margin of their statistic.

    Attributes:
        place: the setting that it is measured at, such as `n=20, snr=0.5`; empty for a single one.
        low, high: the least and the most that the number of each seed may be, shape (seeds,). They
            agree where it is known. Of `no exception` it is 1 for a seed that breaks nothing.
        quantity: what it is a number of, where a claim has several quantities.
        within: the least and the largest number that there can be, such as −1 and 1.
        below: by how many decades all cells lie below a bound; nan where nobody knows.
        details: further numbers by their meanings.
        signed: whether it is a difference, so that it may lie on both sides of 0.
    """

    place: str
    low: Floats
    high: Floats
    margin: Margin
    statistic: Statistic = "median"
    quantity: str = ""
    within: tuple[float, float] = (-math.inf, math.inf)
    below: float = math.nan
    details: Mapping[str, float] = field(default_factory=dict, compare=False)
    signed: bool = False

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

    def as_case(self) -> Part:
        """Return the part of a single number, which decides where nothing is drawn."""
        margin = replace(self.margin, fewest_seeds=FEWEST["case"])
        return replace(self, low=self.low[:1], high=self.high[:1], margin=margin, statistic="case")

    @property
    def unknown(self) -> int:
        """The number of seeds whose number is not known."""
        return int((self.low != self.high).sum())

    def slack(self, value: float) -> float:
        """How far a number lies inside the margin, in its width if it has one; negative outside."""
        ends = [float(value), self.margin.least, self.margin.most]
        if self.statistic == "geometric mean":
            ends = [math.log(end) if end > 0 else -math.inf for end in ends]
        number, least, most = ends
        sides = ((number - least, least), (most - number, most))
        room = min((side for side, end in sides if math.isfinite(end)), default=math.inf)
        return room / (most - least) if math.isfinite(most - least) else room

    def prepared(self) -> Part:
        """Return the part; the mean of two values is a share, with an exact interval.

        Those are the least and the largest that there can be. Where nobody knows these, they are 0
        and 1 if the margin ends between them: equal numbers 0 may be per cent, or a difference.
        """
        known, (least, most) = self.low[self.low == self.high], self.within
        ends = [end for end in (self.margin.least, self.margin.most) if math.isfinite(end)]
        is_free = not (self.signed or math.isfinite(most - least))
        if is_free and all(0 <= end <= 1 for end in ends):
            least, most = 0.0, 1.0
        is_share = (
            self.statistic == "mean"
            and len(known) > 0
            and np.isin(known, (least, most)).all()
            and self.low.min() >= least
            and self.high.max() <= most
        )
        if not is_share:
            return self
        margin = replace(self.margin, fewest_seeds=max(self.margin.fewest_seeds, FEWEST["share"]))
        return replace(self, statistic="share", margin=margin, within=(least, most))


# Verdicts in worlds

_SAMPLED: Mapping[str, str] = {"no exception": "share", "case": "given"}


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
        self.samples = [
            Samples(_SAMPLED.get(part.statistic, part.statistic), least, most, part.within)
            for part, least, most in zip(parts, low, high, strict=True)
        ]
        self.counts = np.array([each.count for each in self.samples])
        self.value = np.stack([each.value for each in self.samples], axis=1)

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Worlds:
        """Return a run's own numbers: a single world."""
        return cls(parts, [part.low[None] for part in parts], [part.high[None] for part in parts])

    @np.errstate(invalid="ignore")
    def ends(self, alpha: float) -> tuple[Floats, Floats]:
        """The ends of the intervals that miss their number with this probability."""
        low, high = np.stack([each.ends(alpha) for each in self.samples], axis=-1)
        return low, high


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
    broken, may_be_broken = np.zeros((2, *worlds.value.shape), dtype=bool)
    for index in np.flatnonzero(sole):
        seeds = worlds.samples[index]
        broken[:, index], may_be_broken[:, index] = np.less([seeds.high, seeds.low], seeds.count)
    enough = worlds.counts >= [part.margin.fewest_seeds for part in parts]

    def out_at(error: float) -> tuple[NDArray[np.bool_], tuple[Floats, Floats]]:
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
