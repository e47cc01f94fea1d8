"""Rules that turn a number's interval and a claim's margin into a verdict.

A claim holds where the whole interval lies inside the margin and fails where it lies outside.
Theorems fail at one exception. A trend along an axis of a grid is a rank correlation of each line,
averaged within each seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pandas as pd

from overfit_cli.claims.cells import numbers
from overfit_cli.core.claim import Interval, Measurement, Verdict, inconclusive
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import Estimate, level_of_each, mean_estimate, share_estimate

FEWEST_WITHOUT_EXCEPTION = 10
WITHOUT_EXCEPTION = (
    f"no cell breaks it; {FEWEST_WITHOUT_EXCEPTION} seeds or more, so that a third of all draws "
    "can't"
)

EXACTLY = "nothing is drawn, so that one cell decides"


@dataclass(frozen=True)
class Margin:
    """Where a number must lie for a claim to hold; fixed before any cell is seen.

    Two finite ends make a claim of equivalence, or of an order of magnitude; one makes a claim of
    one side.

    Attributes:
        least, most: its ends.
        because: where they come from, in words.
        fewest_seeds: with fewer the claim is left open: the interval's rate of error is known from
            so many on.
    """

    least: float = -math.inf
    most: float = math.inf
    because: str = ""
    fewest_seeds: int = 5

    def verdict(self, found: Estimate) -> Verdict:
        """Return the verdict: inside it holds, outside it fails, across or on an end it is open.

        An interval that is nothing but infinity lies beyond what was measured, and fails nothing.
        """
        if found.seeds < self.fewest_seeds or math.isnan(found.low) or math.isnan(found.high):
            return "inconclusive"
        if found.low == found.high and found.low in (self.least, self.most):
            return "inconclusive"
        if self.least <= found.low and found.high <= self.most:
            return "holds"
        below = -math.inf < found.high < self.least
        return "fails" if below or self.most < found.low < math.inf else "inconclusive"

    def __str__(self) -> str:
        """Say where the interval must lie."""
        if math.isinf(self.least):
            return f"below {self.most:g}"
        if math.isinf(self.most):
            return f"above {self.least:g}"
        return f"from {self.least:g} to {self.most:g}"

    def in_words(self, number: str) -> str:
        """Say with which numbers a claim holds, and where the margin comes from.

        Args:
            number: what is measured, such as `the exponent`.
        """
        why = f" ({self.because})" if self.because else ""
        return f"{number} has its whole interval {self}{why}; {self.fewest_seeds} seeds or more"


def judged(
    found: Estimate, margin: Margin, *, note: str = "", details: Mapping[str, float] | None = None
) -> Measurement:
    """Return the measurement of a claim that one number decides."""
    if found.seeds < margin.fewest_seeds:
        there = plural(found.seeds, "seed")
        note = f"{note} It needs {margin.fewest_seeds} seeds; these cells have {there}.".strip()
    return Measurement(
        verdict=margin.verdict(found),
        value=found.value,
        interval=Interval(found.low, found.high, found.kind),
        details=details or {},
        note=note,
    )


def judged_together(found: Mapping[str, tuple[Estimate, Margin]], *, note: str = "") -> Measurement:
    """Return the measurement of a claim that several numbers decide, each with its own margin.

    It holds where all do and fails where one does, so each interval's level must be that of all
    together: see `level_of_each`. The value is that of the number that decides, of several the one
    with the least room to its margin's ends; all stand among the details.

    Args:
        found: the numbers by name.
        note: what else a reader must know.
    """
    each = {name: judged(*number) for name, number in found.items()}
    verdict = worst(one.verdict for one in each.values())
    alike = [name for name, one in each.items() if one.verdict == verdict]
    decisive = min(alike, key=lambda name: _slack(*found[name]))
    details: dict[str, float] = {}
    for name, (number, _) in found.items():
        details |= {name: number.value, f"{name}, from": number.low, f"{name}, to": number.high}
    words = " ".join(part for part in (f"{decisive}:", note, each[decisive].note) if part)
    return replace(each[decisive], details=details, note=words)


def _slack(found: Estimate, margin: Margin) -> float:
    """How far an interval lies from the nearer end of its margin, in its own width; signed."""
    low, high = float(found.low), float(found.high)
    if not math.isfinite(high - low):
        return -math.inf
    room = min(low - margin.least, margin.most - high)
    return room / max(high - low, math.ulp(abs(float(found.value)) or 1.0))


def from_logarithms(found: Estimate) -> Estimate:
    """Return the estimate of a positive number from that of its logarithm."""
    value, low, high = (math.exp(number) for number in found[:3])
    return found._replace(value=value, low=low, high=high)


def share_of_seeds(right: pd.Series[bool], seeds: pd.Series[int]) -> Estimate:
    """Return the share of the seeds on which all cells are right, with its exact interval.

    Args:
        right: whether a cell is.
        seeds: its seed.
    """
    whole = right.groupby(seeds.to_numpy()).all()
    return share_estimate(int(whole.sum()), len(whole))


def without_exception(
    broken: pd.Series[bool],
    seeds: pd.Series[int],
    *,
    note: str = "",
    details: Mapping[str, float] | None = None,
) -> Measurement:
    """Return the measurement of a theorem: one cell that breaks it refutes it.

    It holds where no cell of `FEWEST_WITHOUT_EXCEPTION` seeds breaks it: were it broken on a third
    of all draws, so many without one would be rarer than one time in fifty.

    Args:
        broken: whether a cell breaks it, though its hypothesis is met.
        seeds: its seed.
        note: what else a reader must know.
        details: further numbers.
    """
    found = share_of_seeds(~broken, seeds)
    fewest = max(FEWEST_WITHOUT_EXCEPTION, math.log(1 - level_of_each(1)) / math.log(2 / 3))
    verdict: Verdict = "holds" if found.seeds >= fewest else "inconclusive"
    return Measurement(
        verdict="fails" if broken.any() else verdict,
        decided="case" if broken.any() else "interval",
        value=found.value,
        interval=Interval(found.low, found.high, found.kind),
        details=details or {},
        note=f"The share of seeds without an exception. {note}".strip(),
    )


def exactly(
    right: bool,
    value: float,
    *,
    note: str = "",
    details: Mapping[str, float] | None = None,
) -> Measurement:
    """Return the measurement of an instance in which nothing is drawn: it decides by itself.

    There is no interval: another seed would give the same number.

    Args:
        right: whether it is as claimed.
        value: the number that says so; nan where it isn't known, which decides nothing.
        note: what else a reader must know.
        details: further numbers.
    """
    verdict: Verdict = "holds" if right else "fails"
    return Measurement(
        verdict="inconclusive" if math.isnan(value) else verdict,
        value=value,
        details=details or {},
        note=f"Nothing is drawn. {note}".strip(),
    )


def vacuous(measured: Measurement, why: str, details: Mapping[str, float]) -> Measurement:
    """Return a measurement that says nothing: what is claimed could not have been otherwise.

    Args:
        measured: what there is.
        why: the hypothesis that isn't met, or the bound that can't be broken, as a sentence.
        details: by how much.
    """
    note = f"{measured.note} {why}".strip()
    return replace(measured, verdict="vacuous", details={**measured.details, **details}, note=note)


def vacuous_where_missed(
    measured: Measurement, missed: Mapping[str, pd.Series[float]], why: str
) -> Measurement:
    """Return the measurement of a theorem, which says nothing where its requirements aren't met.

    Args:
        measured: what there is.
        missed: by how much each cell misses each requirement, by words such as `decades of heads
            missing`; above 0 it isn't met.
        why: what is missing, after a colon.
    """
    each = [(one > 0).to_numpy() for one in missed.values()]
    by_cell = [any(of_cell) for of_cell in zip(*each, strict=True)]
    if not any(by_cell):
        return measured
    count = f"{sum(by_cell)} of {len(by_cell)} cells"
    details = {
        f"{words}, {end}": float(number)
        for words, one in missed.items()
        for end, number in (("least", one.min()), ("most", one.max()))
    }
    return vacuous(measured, f"Its requirements aren't met by {count}: {why}.", details)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict on all of several: one that fails decides."""
    found = set(verdicts)
    order: tuple[Verdict, ...] = ("fails", "inconclusive", "vacuous", "not run", "holds")
    return next(one for one in order if one in found)


def around(value: float, tolerance: float, because: str, fewest_seeds: int = 5) -> Margin:
    """Return the margin of a number that is claimed to be `value`, up to a tolerance."""
    return Margin(value - tolerance, value + tolerance, because, fewest_seeds)


def within_a_factor(value: float, factor: float, because: str, fewest_seeds: int = 5) -> Margin:
    """Return the margin of a positive number that is claimed to be `value`, up to a factor."""
    return Margin(value / factor, value * factor, because, fewest_seeds)


LEAST_VALUES = 3
"""The fewest values of an axis that tell a trend."""

FALLING = Margin(most=0.0, because="0 is no trend", fewest_seeds=5)


def rank_correlation(grid: pd.DataFrame, value: str, axis: str, other: str) -> Estimate:
    """Return the mean rank correlation of a column with an axis, over the lines of a grid.

    The lines of a seed share its draws: each seed counts once, with the mean over its lines. A line
    along which the column doesn't change has no trend, and counts as 0.

    Args:
        grid: cells that are done.
        value: the column.
        axis: the parameter along which the lines run.
        other: the grid's other parameter; with a seed it names a line.

    Raises:
        UndecidedError: `inconclusive`, where no line tells a trend, or a cell has no number.
    """
    numbers(grid, value)
    line = grid.groupby([other, "seed"])
    ranks = line[[axis, value]].rank()  # all lines at once: there are hundreds
    ranks -= ranks.groupby([grid[other], grid["seed"]]).transform("mean")
    products = pd.DataFrame(
        {
            "both": ranks[axis] * ranks[value],
            "along": ranks[axis] ** 2,
            "of_value": ranks[value] ** 2,
        }
    )
    sums = products.groupby([grid[other], grid["seed"]]).sum()
    spread = (sums["along"] * sums["of_value"]) ** 0.5
    lines = (sums["both"] / spread).where(sums["of_value"] > 0, 0.0)[sums["along"] > 0]
    if lines.empty:
        raise inconclusive(f"No line along {axis} tells a trend.")
    return mean_estimate(lines.groupby(level="seed").mean())


def falls(grid: pd.DataFrame, value: str, axis: str, other: str) -> Measurement:
    """Measure whether a column falls along an axis; see `rank_correlation`."""
    found = rank_correlation(grid, value, axis, other)
    return judged(
        found,
        FALLING,
        details={f"values of {other}": grid[other].nunique()},
        note=f"The rank correlation of {value.replace('_', ' ')} with {axis} at one value of "
        f"{other}, averaged over those values, seed by seed.",
    )
