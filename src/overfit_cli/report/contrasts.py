"""Contrasts of a column of two runs: differences with standard errors, verdicts within a margin.

Within a margin two means are equivalent where the 90 % interval of their difference lies inside
(two one-sided tests at 5 %, Schuirmann 1987), and they differ where the 95 % interval lies outside;
otherwise they are open. The ends of a margin in per cent of a mean are as uncertain as that mean:
each end is tested by the difference of the one mean from a multiple of the other (Hauschke et al.
1999).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.core.arrays import finite_column
from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import BadValue
from overfit_cli.core.expressions import read_number
from overfit_cli.core.options import finite_number
from overfit_cli.core.text import plural
from overfit_cli.report import published
from overfit_cli.stats import intervals
from overfit_cli.stats.intervals import Estimate, Summary, summarise
from overfit_cli.stats.pairs import Kind, Pairs, setting_keys

Verdict = Literal["equivalent", "open", "differs"]

FEWEST_SEEDS = 5
"""With fewer distinct seeds on one side a place is open: there Welch's interval is too short."""


@dataclass(frozen=True)
class Contrast:
    """The mean of B less that of A.

    Attributes:
        a: the numbers of A's seeds.
        b: those of B's, or a published mean with its error.
        paired: whether numbers at one position are of one seed.
    """

    a: NDArray[np.floating[Any]]
    b: NDArray[np.floating[Any]] | Summary
    paired: bool = False

    @property
    def mean_of_b(self) -> Summary:
        """The mean of B with its error."""
        return self.b if isinstance(self.b, Summary) else summarise(self.b)

    def estimate(self, scale: float = 1.0, shift: float = 0.0) -> Estimate:
        """Return a multiple of B's mean, plus a shift, less A's mean."""
        if self.paired:
            return intervals.mean_estimate(scale * np.asarray(self.b) + shift - self.a)
        mean = self.mean_of_b.scaled(scale, shift)
        return intervals.difference_of_means(mean, summarise(self.a))

    @property
    def error(self) -> float:
        """The standard error of the difference."""
        if self.paired:
            return summarise(self.b - self.a).error
        return math.hypot(self.mean_of_b.error, summarise(self.a).error)


@dataclass(frozen=True)
class Margin:
    """The largest difference of equivalent means.

    Attributes:
        size: the distance, in the unit of the column, or as a share of the mean of B.
    """

    size: float
    is_share: bool

    @classmethod
    def read(cls, given: object) -> Margin:
        """Read what a user names: `5%` of the mean of B, or a number in its unit."""
        text, is_share = given, False
        if isinstance(given, str):
            text, is_share = given.strip().removesuffix("%"), given.strip().endswith("%")
        try:
            size = finite_number("tolerance", read_number(text, "tolerance"), above=0)
        except BadValue:
            accepts = "it takes a share of the mean of B, such as 5%, or a number above 0."
            raise BadValue("tolerance", given, accepts) from None
        return cls(size / (100 if is_share else 1), is_share)

    def __str__(self) -> str:
        """Write it: `10 %` or `0.01`."""
        return f"{100 * self.size:.12g} %" if self.is_share else f"{self.size:.12g}"

    def verdict(self, contrast: Contrast) -> Verdict:
        """Return the verdict on two means."""
        share = math.copysign(self.size, contrast.mean_of_b.value) if self.is_share else 0.0
        shift = 0.0 if self.is_share else self.size
        # The difference less each end of the margin: inside, the first is below 0, the other above.
        upper, lower = contrast.estimate(1 - share, -shift), contrast.estimate(1 + share, shift)
        if upper.inner is None or lower.inner is None:
            return "open"
        if upper.inner[1] < 0 < lower.inner[0]:
            return "equivalent"
        return "differs" if upper.low > 0 or lower.high < 0 else "open"


def compare_column(
    column: str, a: Cells, b: Cells, pairs: Pairs, margin: Margin | None
) -> dict[str, Any]:
    """Return how two sides differ in a column: over all pairs, most, and at published points."""
    left, right = finite_column(pairs.left, column), finite_column(pairs.right, column)
    done = (pairs.left["status"] == "done") & (pairs.right["status"] == "done")
    one_sided, both = left.isna() != right.isna(), left.notna() & right.notna()
    rows, left, right = pairs.left[both], left[both], right[both]
    first, second = (numbers.groupby(rows["seed"]).mean() for numbers in (left, right))
    if pairs.by == "means" and len(rows):
        middle = dict(zip(setting_keys(rows, pairs.keys), (left + right) / 2, strict=True))
        first, second = (_relative_means(s.trained, column, pairs.keys, middle) for s in (a, b))
    whole = Contrast(first.to_numpy(), second.to_numpy(), paired=pairs.by != "means" or rows.empty)
    estimate, changes = whole.estimate(), (right - left).to_numpy()
    points = list[dict[str, Any]]()
    if pairs.by == "point":
        points = places_of(column, a, b, pairs, margin)
        rounded = [abs(p["difference"]["value"]) <= 1e-12 * abs(p["b"]) for p in points]
        changes = np.array([point["difference"]["value"] for point in points])
        changes[rounded] = 0.0  # both means agree to 12 digits, as rounded sums
        if published.error_column(column) in pairs.right and points:
            each_once = pairs.right[both][~setting_keys(rows, pairs.keys).duplicated()]
            error = published.error_of_mean(each_once, column)
            estimate = Contrast((first - second).to_numpy(), error).estimate()
    largest: dict[str, Any] = {"difference": math.nan, "at": {}}
    if len(changes):
        most = int(np.abs(changes).argmax())
        largest["difference"] = float(changes[most])
        largest["at"] = points[most]["at"] if points else _at(rows.iloc[[most]], pairs.keys)
    record: dict[str, Any] = {
        "column": column,
        "pairs": len(changes),
        "equal": int((changes == 0).sum()),
        "numbers_on_one_side": int((done & one_sided).sum()),
        "mean_a": float(first.mean()),
        "mean_b": float(second.mean()),
        "difference": estimate._asdict(),
        "largest": largest,
        **({"points": points} if points else {}),
    }
    if margin is None:
        return record
    lacks = ""
    if pairs.by == "point":
        given = Counter(point["verdict"] for point in points)
        record["verdicts"] = {verdict: given[verdict] for verdict in get_args(Verdict)}
        is_equivalent = given["equivalent"] and not given["open"]
        verdict = "differs" if given["differs"] else "equivalent" if is_equivalent else "open"
    elif one_sided.any() or rows.empty or (pairs.left["status"] != pairs.right["status"]).any():
        count, noun = int(one_sided.sum()), "cell" if pairs.by == "seed" else "point"
        has = "has" if count == 1 else "have"
        verdict, lacks = "open", f"{plural(count, noun)} {has} no number on one side" * bool(count)
    else:
        verdict = "equivalent" if (changes == 0).all() else margin.verdict(whole)
    return record | {"verdict": verdict, "lacks": lacks}


def _relative_means(
    cells: pd.DataFrame, column: str, names: Sequence[str], middle: Mapping[Any, float]
) -> pd.Series[float]:
    """Return the mean of each seed at the places that both sides have.

    A seed may lack some places. So its numbers are taken relative to the middle of both sides at
    their place.
    """
    centre = setting_keys(cells, names).map(middle).astype(float)
    relative = (finite_column(cells, column) - centre).groupby(cells["seed"]).mean().dropna()
    means: pd.Series[float] = relative + float(np.mean(list(middle.values())))
    return means


def places_of(
    column: str, a: Cells, b: Cells, pairs: Pairs, margin: Margin | None
) -> list[dict[str, Any]]:
    """Return the difference at each setting that has a number on both sides.

    Each has its settings `at`, both means `a` and `b`, their `difference` with its interval, its
    standard `error` and `z`, the `seeds`, and with a margin the `verdict` and what it `lacks`.
    """
    names = [name for name in pairs.keys if name != "seed"]
    of_a, of_b = (
        dict(iter(side.groupby(setting_keys(side, names), sort=False)))
        for side in (a.trained, b.trained)
    )
    shared = [key for key in (of_b if pairs.by == "point" else of_a) if key in of_a and key in of_b]
    places = ((key, _place(column, of_a[key], of_b[key], pairs.by, margin)) for key in shared)
    return [{"at": _at(of_a[key], names), **place} for key, place in places if place]


def _at(rows: pd.DataFrame, names: Sequence[str]) -> dict[str, Any]:
    """The values of the first of some rows."""
    return {name: rows[name].iloc[:1].tolist()[0] for name in names}


def _place(
    column: str, rows: pd.DataFrame, others: pd.DataFrame, by: Kind, margin: Margin | None
) -> dict[str, Any]:
    """What is compared at a setting; nothing where one side has no number."""
    sides = [side.set_index("seed") if "seed" in side else side for side in (rows, others)]
    numbers = [finite_column(side, column) for side in sides]
    first, second = (side.dropna() for side in numbers)
    if by == "seed":
        first, second = first.align(second, join="inner")
    if first.empty or second.empty:
        return {}
    contrast, seeds, lacks = Contrast(first.to_numpy(), second.to_numpy(), by == "seed"), 0, ""
    if by == "point":
        mean = published.summary_of_point(others.iloc[0], column)
        seeds, contrast = mean.seeds, replace(contrast, b=mean)
        if math.isnan(mean.error):  # it counts as exact
            lacks = "a published uncertainty"
            contrast = Contrast(contrast.a, np.full(len(first), mean.value), paired=True)
    distinct = [intervals.count_distinct(side) for side in (first, second)]
    if by == "point":
        distinct[1] = seeds or len(first)
    if not lacks and (any(side.isna().any() for side in numbers) or published.has_failed(others)):
        lacks = "the number of a cell"
    if not lacks and min(distinct) < FEWEST_SEEDS:
        lacks = f"{FEWEST_SEEDS} distinct seeds on each side"
    change, error = contrast.estimate(), contrast.error
    place: dict[str, Any] = {
        "a": float(contrast.a.mean()),
        "b": float(second.mean()),
        "difference": change._asdict(),
        "error": error,
        "z": change.value / error if error else math.nan,
        "seeds": {"a": len(first), "b": (seeds or None) if by == "point" else len(second)},
    }
    if margin is None:
        return place
    return place | {"lacks": lacks, "verdict": "open" if lacks else margin.verdict(contrast)}
