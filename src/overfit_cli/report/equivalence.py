"""Equivalence of two runs, or of a run and published means: differences, z-scores and verdicts.

Within a margin two means are equivalent where the 90 % interval of their difference lies inside
(two one-sided tests at 5 %, Schuirmann 1987), and they differ where the 95 % interval lies outside;
otherwise they are open. The ends of a margin in per cent of a mean are as uncertain as that mean
is: each end is tested by the difference of the one mean from the multiple of the other (Hauschke et
al. 1999). Published means are judged place by place, by Welch's t.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from overfit_cli.core.arrays import Floats
from overfit_cli.core.errors import BadValue
from overfit_cli.core.values import finite_number
from overfit_cli.report.uncertainty import (
    FAILED,
    SEEDS,
    count_column,
    error_column,
    freedom_column,
    has_uncertainty,
    summary_of_point,
    uncertainty_columns,
)
from overfit_cli.stats.intervals import (
    Estimate,
    Summary,
    count_distinct,
    difference_of_means,
    mean_estimate,
    summarise,
)
from overfit_cli.stats.pairs import Pairs, setting_keys

EquivalenceVerdict = Literal["equivalent", "open", "differs"]

FEWEST_SEEDS = 5
"""With fewer distinct seeds on one side a place is open: there Welch's interval is too short."""


@dataclass(frozen=True)
class EquivalenceMargin:
    """The largest difference of equivalent means.

    Attributes:
        size: the distance, in the unit of the column, or as a share of the mean of B.
    """

    size: float
    is_share: bool

    def __str__(self) -> str:
        """Write it: `10 %` or `0.01`."""
        return f"{100 * self.size:.12g} %" if self.is_share else f"{self.size:.12g}"

    def verdict(self, published: Summary, run: Summary) -> EquivalenceVerdict:
        """Return the verdict on a place, by a published mean and that of the run's seeds."""

        def difference(scale: float, shift: float) -> Estimate:
            return difference_of_means(published.scaled(scale, shift), run)

        return self.verdict_on(published.value, difference)

    def verdict_on(
        self, mean: float, difference: Callable[[float, float], Estimate]
    ) -> EquivalenceVerdict:
        """Return the verdict on two means.

        Args:
            mean: that of B.
            difference: the estimate of a multiple of B's mean plus a shift, less A's mean.
        """
        share = math.copysign(self.size, mean) if self.is_share else 0.0
        shift = 0.0 if self.is_share else self.size
        # The difference less each end of the margin: inside, the first is below 0, the other above.
        upper, lower = difference(1 - share, -shift), difference(1 + share, shift)
        if upper.inner is None or lower.inner is None:
            return "open"
        if upper.inner[1] < 0 < lower.inner[0]:
            return "equivalent"
        return "differs" if upper.low > 0 or lower.high < 0 else "open"


def read_tolerance(given: object) -> EquivalenceMargin:
    """Return the margin that a user names: `5%` of the mean of B, or a number in its unit."""
    text = given.strip() if isinstance(given, str) else ""
    is_share = text.endswith("%")
    accepts = "it takes a share of the mean of B, such as 5%, or a number above 0."
    if isinstance(given, str) and not _NUMBER.fullmatch(text.removesuffix("%").rstrip()):
        raise BadValue("tolerance", given, accepts)
    try:
        number = float(text.removesuffix("%")) if isinstance(given, str) else given
        size = finite_number("tolerance", number, above=0) / (100 if is_share else 1)
    except BadValue:
        raise BadValue("tolerance", given, accepts) from None
    return EquivalenceMargin(size, is_share)


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def compare_places(
    column: str,
    pairs: Pairs,
    run: pd.Series[float],
    published: pd.Series[float],
    margin: EquivalenceMargin | None,
) -> list[dict[str, Any]]:
    """Return the difference of a column at each published point, B less A.

    Args:
        pairs: the cells of the run, and beside each its published point.
        run, published: their numbers; nan where there is none.

    Returns:
        Of each point that has a number on both sides: `at`, the run's mean `a`, the published `b`,
        their `difference` with its interval: Welch's where the point has an error, and else that of
        the run's mean. Where it has one also `z`, the difference in standard errors, and with a
        margin the `verdict`, and what it `lacks`: a place is open at which cells failed on either
        side, as their numbers could change the verdict, and one with few seeds.
    """
    keys = setting_keys(pairs.left, pairs.keys)
    is_first = ~keys.duplicated()
    located = pairs.left.loc[is_first, list(pairs.keys)].to_dict("records")
    besides = [name for name in uncertainty_columns(column) if name in pairs.right]
    printed = pairs.right.loc[is_first, besides].assign(**{column: published[is_first]})
    points = list[dict[str, Any]]()
    for at, row, (_, numbers) in zip(
        located, printed.to_dict("records"), run.groupby(keys, sort=False), strict=True
    ):
        point = _compare_place(column, row, np.asarray(numbers, np.float64), margin)
        if point is not None:
            points.append({"at": at, **point})
    return points


def _compare_place(
    column: str, row: Mapping[Any, Any], numbers: Floats, margin: EquivalenceMargin | None
) -> dict[str, Any] | None:
    published, seeds = summary_of_point(row, column), numbers[~np.isnan(numbers)]
    if math.isnan(published.value) or not seeds.size:
        return None
    mean = summarise(seeds)
    point: dict[str, Any] = {"a": mean.value, "b": published.value}
    if error_column(column) not in row:
        return point | {"difference": mean_estimate(published.value - seeds)._asdict()}
    change, error = difference_of_means(published, mean), math.hypot(published.error, mean.error)
    point |= {"difference": change._asdict(), "z": change.value / error if error else math.nan}
    point["seeds"] = {"a": mean.seeds, "b": published.seeds or None}
    if margin is not None:
        has_lost = len(seeds) < len(numbers) or row.get(count_column(FAILED), 0) > 0
        point["lacks"] = _what_a_place_lacks(published, seeds, has_lost=has_lost)
        point["verdict"] = "open" if point["lacks"] else margin.verdict(published, mean)
    return point


def _what_a_place_lacks(published: Summary, seeds: Floats, *, has_lost: bool) -> str:
    if math.isnan(published.error):
        return "a published uncertainty"
    if has_lost:
        return "the number of a cell"
    is_few = min(count_distinct(seeds), published.seeds or len(seeds)) < FEWEST_SEEDS
    return f"{FEWEST_SEEDS} distinct seeds on each side" if is_few else ""


def rounded_difference(point: Mapping[str, Any]) -> float:
    """Return the difference at a point; 0 where both means agree to 12 digits, as rounded sums."""
    value: float = point["difference"]["value"]
    return value if abs(value) > 1e-12 * abs(point["b"]) else 0.0


def mean_difference(column: str, points: pd.DataFrame, change: pd.Series[float]) -> Estimate:
    """Return the mean difference over places, with the interval of both sides.

    Whether published means share their seeds is not known. So their errors count as if they all
    went the same way, which makes the interval too wide rather than too short.

    Args:
        points: the published points, each once.
        change: of each seed of the run, the mean over places of the published less its number.
    """
    error, freedom = points[error_column(column)], points[freedom_column(column)]
    seeds = points.get(count_column(SEEDS), pd.Series(np.nan, points.index)).min()
    published = Summary(
        0.0,
        float(error.mean(skipna=False)),
        float(freedom.min()),
        0 if np.isnan(seeds) else int(seeds),
    )
    return difference_of_means(published, summarise(-change))


def count_verdicts(points: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many places have each verdict."""
    verdicts = [point["verdict"] for point in points]
    return {verdict: verdicts.count(verdict) for verdict in get_args(EquivalenceVerdict)}


def verdict_on_places(counts: Mapping[str, int]) -> EquivalenceVerdict:
    """Return the verdict on a column: equivalent at all of its places, or different at one."""
    if counts["differs"]:
        return "differs"
    return "equivalent" if counts["equivalent"] and not counts["open"] else "open"


def what_places_lack(points: Sequence[Mapping[str, Any]]) -> str:
    """Return why places are open, beside an interval across an end: `3 lack 5 distinct seeds`."""
    lacks = [point["lacks"] for point in points if point["lacks"]]
    return "; ".join(
        f"{lacks.count(lack)} {'lacks' if lacks.count(lack) == 1 else 'lack'} {lack}"
        for lack in dict.fromkeys(lacks)
    )


def places_that_differ(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the places that differ, those of the largest z-scores first."""
    differing = [point for point in points if point["verdict"] == "differs"]
    return sorted(differing, key=lambda point: -np.nan_to_num(abs(point["z"]), nan=np.inf))


def seeds_in_words(points: Sequence[Mapping[str, Any]]) -> str:
    """Return the numbers of seeds on both sides: `6 seeds against 24`."""
    of_run, published = (
        sorted({point["seeds"][side] for point in points} - {None}) for side in ("a", "b")
    )
    texts = [f"{n[0]}" if n[0] == n[-1] else f"{n[0]}–{n[-1]}" for n in (of_run, published) if n]
    return f"{texts[0]} seeds against {texts[1] if published else 'a published error'}"


def require_uncertainty(path: Path, points: pd.DataFrame, columns: Sequence[str]) -> None:
    """Refuse points without an uncertainty of any column."""
    if not any(has_uncertainty(points, name) for name in columns):
        first = columns[0]
        lack = (
            f"{path} has no uncertainty; beside {first} it takes {first}_sd and seeds, {first}_se, "
            f"or {first}_low and {first}_high."
        )
        raise BadValue("tolerance", None, lack)
