"""Comparison of two runs, or of a run and published numbers: B less A, with standard errors.

Cells are paired by the parameters that vary and by seed. Seeds are independent draws, and cells of
one seed are not: a difference is averaged over the pairs of each seed, and then over seeds. What is
found stands in one dictionary, which is the JSON, and from which the sentences and tables are made.

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.core import expressions, files, options, text
from overfit_cli.core.arrays import finite_column
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import Interval, number_with_interval
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.report import sides, words
from overfit_cli.stats import intervals
from overfit_cli.stats.pairs import Kind, Pairs, pair_up, setting_key, setting_keys
from overfit_cli.sweeps.manifest import provenance_in_words

Verdict = Literal["equivalent", "open", "differs"]

Conditions = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""Those on both sides, on A alone and on B alone."""

FEWEST_SEEDS = 5
"""With fewer distinct seeds on one side a place is open: there Welch's interval is too short."""


@dataclass(frozen=True)
class Comparison:
    """The changes from A to B; every difference is B − A.

    Attributes:
        pairs: cells, or means over seeds, with their counterparts.
        tolerance: the margin within which columns are judged; None without verdicts.
        content: what is compared and what is found, as JSON has it.
    """

    a: Cells
    b: Cells
    where: Conditions
    pairs: Pairs
    tolerance: Margin | None
    content: Mapping[str, Any]

    def __repr__(self) -> str:
        """Write it in a line: both sides, and what is said first."""
        a, b = map(text.visible, self.names)
        return f"<Comparison of A {a} and B {b}: {self.above()[0]}>"

    def _repr_html_(self) -> str:
        table = words.templates(autoescape=True).get_template("comparison.html")
        return table.render(above=self.above(), rows=self.rows(), below=self.below())

    @property
    def columns(self) -> list[dict[str, Any]]:
        """A record for each compared column, the first of which is drawn."""
        return list(self.content["columns"])

    @property
    def differs(self) -> bool:
        """Whether some column differs by more than the tolerance."""
        return any(record.get("verdict") == "differs" for record in self.columns)

    @property
    def names(self) -> list[str]:
        """The last part of the sides' paths, in full if they share it, and their conditions."""
        names = files.short_names([sides.path_of(side) for side in (self.a, self.b)])
        return [
            f"{name} ({', '.join(where)})" if where else name
            for name, where in zip(names, self.where[1:], strict=True)
        ]

    def table(self) -> pd.DataFrame:
        """Return a row for each compared column."""
        columns = ["column", "pairs", "mean_a", "mean_b", "difference", "low", "high", "largest"]
        return _flat(self.columns)[columns + ["verdict"] * (self.tolerance is not None)]

    def places(self) -> pd.DataFrame:
        """Return a row for each column and setting: both means, their difference and its error."""
        places = [
            {"column": record["column"], **place.pop("at"), **place}
            for record in self.columns
            for place in _places(record["column"], self.a, self.b, self.pairs, self.tolerance)
        ]
        return _flat(places, "difference.kind", "difference.seeds", "difference.inner", "lacks")

    def above(self) -> list[str]:
        """Return what is said above the table of columns: verdicts, both sides, and the pairs."""
        versions = [side.study.version for side in (self.a, self.b)]
        about = {"by": self.pairs.by, "names": self.names, "current": versions}
        functions = {"setting": _setting, "furthest": _furthest}
        return words.sentences("compare_above.txt", **self.content, **about, **functions)

    def below(self) -> list[str]:
        """Return what is said below it: intervals, and numbers that are left out."""
        return words.sentences("compare_below.txt", **self.content, by=self.pairs.by)

    def rows(self) -> list[dict[str, str]]:
        """Return the compared columns with the mean on each side and the differences, in words."""
        rows = []
        for record in self.columns:
            largest, change = record["largest"], record["difference"]
            ends = Interval(change["low"], change["high"], "")
            at = f" at {_setting(largest['at'])}" if largest["difference"] and largest["at"] else ""
            row = {
                "column": record["column"],
                "mean of A": text.three_digits(record["mean_a"]),
                "mean of B": text.three_digits(record["mean_b"]),
                "B − A": number_with_interval(change["value"], ends),
                "largest": f"{text.three_digits(largest['difference'])}{at}",
            }
            rows.append(row)
        return rows


def _flat(records: Sequence[dict[str, Any]], *unsaid: str) -> pd.DataFrame:
    """A row for each record, whose numbers are called by their last names."""
    named = {"difference.value": "difference", "largest.difference": "largest"}
    named |= {f"seeds.{side}": f"seeds_{side}" for side in "ab"}
    frame = pd.json_normalize([*records]).drop(columns=[*unsaid], errors="ignore")
    return frame.rename(columns=lambda name: named.get(name, name.rpartition(".")[2]))


def _setting(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {text.brief(value)}" for name, value in values.items())


def _furthest(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The points that differ, the furthest first; those without a known error lead."""
    differing = [point for point in points if point["verdict"] == "differs"]
    return sorted(differing, key=lambda point: -np.nan_to_num(abs(point["z"]), nan=np.inf))


def compare_sides(
    path_a: Path,
    path_b: Path,
    values: Sequence[str] = (),
    where: Sequence[str] = (),
    where_a: Sequence[str] = (),
    where_b: Sequence[str] = (),
    *,
    tolerance: object = None,
) -> Comparison:
    """Compare a run directory with another, or with a file of published numbers.

    The arguments and the errors are those of `overfit_cli.compare`.
    """
    margin = None if tolerance is None else Margin.read(tolerance)
    conditions = (tuple(where), tuple(where_a), tuple(where_b))
    a, b = _load(path_a, path_b, conditions, values)
    in_a, in_b = _measured(a, b, values)
    columns = list(dict.fromkeys(values)) or [name for name in in_a if name in in_b]
    if not columns:
        lack = f"it has numbers of none of A's columns: {', '.join(in_a)}."
        raise UserError(f"B {sides.path_of(b)}: {lack}")
    pairs, settings = _pair(a, b, columns)
    published = sides.is_published(b)
    lost_a, lost_b = (rows["status"] == "failed" for rows in (pairs.left, pairs.right))
    content = {
        "schema": 2,
        "difference": "B - A",
        "a": _facts(a, where_a),
        "b": _facts(b, where_b),
        "settings": settings,
        "notes": provenance_in_words({"A": a} if published else {"A": a, "B": b}),
        "paired_by": list(pairs.keys),
        "pairs": pairs.both,
        "alone": {"a": pairs.here - pairs.both, "b": pairs.there - pairs.both},
        "failed_on_one_side": {
            "a": int((lost_a & ~lost_b).sum()),
            "b": int((lost_b & ~lost_a & (not published)).sum()),
        },
        "means_over_seeds": pairs.by != "seed",
        "tolerance": None if margin is None else str(margin),
        "columns": [_compare_column(name, a, b, pairs, margin) for name in columns],
        "columns_on_one_side": {
            "a": [name for name in in_a if not (name in in_b or values or published)],
            "b": [name for name in in_b if not (name in in_a or values)],
        },
    }
    return Comparison(a, b, conditions, pairs, margin, content)


def _load(
    path_a: Path, path_b: Path, conditions: Conditions, values: Sequence[str]
) -> tuple[Cells, Cells]:
    where, where_a, where_b = conditions
    is_file = [
        path.suffix.lower() in sides.ENDINGS and not path.is_dir() for path in (path_a, path_b)
    ]
    if is_file[0]:
        raise UserError(f"A {path_a}: A is a run directory; name the published file second.")
    a = sides.load_side(path_a, "A", where, where_a, values)
    return a, sides.load_side(path_b, "B", where, where_b, values, a if is_file[1] else None)


def _measured(a: Cells, b: Cells, values: Sequence[str]) -> list[list[str]]:
    """The measured columns of each side, among which all of those to compare are."""
    steps = [finite_column(side.trained, "steps") for side in (a, b) if "steps" in side.frame]
    took_steps = "steps" in values or any(numbers.any() for numbers in steps)
    both = [sides.measured_columns(side, values, steps=took_steps) for side in (a, b)]
    for name in values:
        for letter, measured in zip("AB", both, strict=True):
            if name not in measured:
                lack = f"{letter} has no such numbers; {text.suggestion(name, measured)}"
                raise BadValue("value", name, lack)
    return both


def _facts(side: Cells, where: Sequence[str]) -> dict[str, Any]:
    counts = side.counts()
    return {
        "path": str(sides.path_of(side)),
        "where": list(where),
        "published": sides.is_published(side),
        "study": side.study.name,
        "version": None if sides.is_published(side) else int(side.trained["version"].iloc[0]),
        "cells": len(side.trained),
        "failed": counts["failed"],
        "missing": counts["missing"],
    }


def _pair(a: Cells, b: Cells, columns: Sequence[str]) -> tuple[Pairs, dict[str, Any]]:
    """Pair by the parameters that vary; and those with one value on each side that differs."""
    names, apart, settings = list[str](), list[str](), dict[str, Any]()
    for name in dict.fromkeys([*a.parameters, *b.parameters]):
        here, there = (sides.values_of(side, name) for side in (a, b))
        keys, others = ({setting_key(value) for value in values} for values in (here, there))
        if max(len(keys), len(others)) > 1:
            names.append(name)
            apart += [name] if keys.isdisjoint(others) else []
        elif keys and others and keys != others:
            settings[name] = {"a": here[0], "b": there[0]}
    is_in_both = {*a.frame} & {*b.frame} >= {*names}
    pairs = pair_up(a.trained, b.trained, names, columns) if is_in_both else None
    if pairs is None or not pairs.both:
        lack = f"no cell of {sides.path_of(b)} has a counterpart in A with the same"
        choose = f"choose one value of {', '.join(apart or names)} on each side."
        raise BadValue("where_b", None, f"{lack} {', '.join(names)}; {choose}")
    return pairs, settings


# Differences


@dataclass(frozen=True)
class Contrast:
    """The mean of B less that of A.

    Attributes:
        a: the numbers of A's seeds.
        b: those of B's, or a published mean with its error.
        paired: whether numbers at one position are of one seed.
    """

    a: NDArray[np.floating[Any]]
    b: NDArray[np.floating[Any]] | intervals.Summary
    paired: bool = False

    @property
    def mean_of_b(self) -> intervals.Summary:
        """The mean of B with its error."""
        return self.b if isinstance(self.b, intervals.Summary) else intervals.summarise(self.b)

    @property
    def mean_of_a(self) -> intervals.Summary:
        """The mean of A with its error."""
        return intervals.summarise(self.a)

    def estimate(self, scale: float = 1.0, shift: float = 0.0) -> intervals.Estimate:
        """Return a multiple of B's mean, plus a shift, less A's mean."""
        if self.paired:
            return intervals.mean_estimate(scale * np.asarray(self.b) + shift - self.a)
        return intervals.difference_of_means(self.mean_of_b.scaled(scale, shift), self.mean_of_a)

    @property
    def error(self) -> float:
        """The standard error of the difference."""
        if self.paired:
            return intervals.summarise(self.b - self.a).error
        return math.hypot(self.mean_of_b.error, self.mean_of_a.error)


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
        number, is_share = given, False
        if isinstance(given, str):
            number, is_share = given.strip().removesuffix("%"), given.strip().endswith("%")
        try:
            read = expressions.read_number(number, "tolerance")
            size = options.finite_number("tolerance", read, above=0)
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


def _compare_column(
    column: str, a: Cells, b: Cells, pairs: Pairs, margin: Margin | None
) -> dict[str, Any]:
    """How two sides differ in a column: over all pairs, most, and at published points."""
    left, right = (finite_column(side, column) for side in (pairs.left, pairs.right))
    done = (pairs.left["status"] == "done") & (pairs.right["status"] == "done")
    one_sided, both = left.isna() != right.isna(), left.notna() & right.notna()
    whole = _whole(column, a, b, pairs, both)
    changes, points = (right - left)[both].to_numpy(), list[dict[str, Any]]()
    if pairs.by == "point":
        points = _places(column, a, b, pairs, margin)
        changes = np.array([point["difference"]["value"] for point in points])
        means = np.array([point["b"] for point in points])
        changes[np.abs(changes) <= 1e-12 * np.abs(means)] = 0.0  # as rounded sums they are equal
    largest: dict[str, Any] = {"difference": math.nan, "at": {}}
    if len(changes):
        most = int(np.abs(changes).argmax())
        at = points[most]["at"] if points else _at(pairs.left[both].iloc[[most]], pairs.keys)
        largest = {"difference": float(changes[most]), "at": at}
    record: dict[str, Any] = {
        "column": column,
        "pairs": len(changes),
        "equal": int((changes == 0).sum()),
        "numbers_on_one_side": int((done & one_sided).sum()),
        "mean_a": whole.mean_of_a.value,
        "mean_b": whole.mean_of_b.value,
        "difference": whole.estimate()._asdict(),
        "largest": largest,
        **({"points": points} if points else {}),
    }
    if margin is None:
        return record
    if pairs.by == "point":
        given = Counter(point["verdict"] for point in points)
        verdicts = {verdict: given[verdict] for verdict in get_args(Verdict)}
        is_open = given["open"] or not given
        verdict = "differs" if given["differs"] else "open" if is_open else "equivalent"
        return record | {"verdicts": verdicts, "verdict": verdict, "lacks": ""}
    if one_sided.any() or not both.any() or (pairs.left["status"] != pairs.right["status"]).any():
        cells = text.plural(int(one_sided.sum()), "cell" if pairs.by == "seed" else "point")
        lacks = f"{cells} with a number on one side only" if one_sided.any() else ""
        return record | {"verdict": "open", "lacks": lacks}
    if sides.is_published(b) and pairs.left[both]["seed"].nunique() < FEWEST_SEEDS:
        return record | {"verdict": "open", "lacks": f"{FEWEST_SEEDS} seeds on each side"}
    verdict = "equivalent" if (changes == 0).all() else margin.verdict(whole)
    return record | {"verdict": verdict, "lacks": ""}


def _whole(column: str, a: Cells, b: Cells, pairs: Pairs, both: pd.Series[bool]) -> Contrast:
    """The contrast of both sides over all pairs with numbers: of each seed the mean over these.

    Without a common seed, a seed may lack some places: its numbers are taken relative to the middle
    of both sides at their place.
    """
    rows, others = pairs.left[both], pairs.right[both]
    left, right = (finite_column(side, column) for side in (rows, others))
    first, second = (numbers.groupby(rows["seed"]).mean() for numbers in (left, right))
    keys = setting_keys(rows, pairs.keys)
    if pairs.by == "means" and both.any():
        middle = dict(zip(keys, (left + right) / 2, strict=True))
        means = []
        for cells in (a.trained, b.trained):
            centre = setting_keys(cells, pairs.keys).map(middle).astype(float)
            relative = (finite_column(cells, column) - centre).groupby(cells["seed"]).mean()
            means.append(relative.dropna().to_numpy() + np.mean(list(middle.values())))
        return Contrast(means[0], means[1])
    if pairs.by == "point" and both.any():
        # Seeds that lack points shift no mean: that of A is over points, as that of B is.
        at_points, once = left.groupby(keys).transform("mean"), ~keys.duplicated()
        scatter = (left - at_points).groupby(rows["seed"]).mean()
        means = [float(numbers[once].mean()) for numbers in (at_points, right)]
        means[0] = means[1] if math.isclose(*means, rel_tol=1e-12) else means[0]
        first = scatter - scatter.mean() + means[0]
        if sides.error_column(column) in others:
            mean = sides.mean_of_points(others[once], column)
            return Contrast(first.to_numpy(), mean._replace(value=means[1]))
        second = pd.Series(means[1], first.index)
    return Contrast(first.to_numpy(), second.to_numpy(), paired=True)


def _places(
    column: str, a: Cells, b: Cells, pairs: Pairs, margin: Margin | None
) -> list[dict[str, Any]]:
    """The difference at each setting that has a number on both sides.

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
    both = [side.set_index("seed") if "seed" in side else side for side in (rows, others)]
    numbers = [finite_column(side, column) for side in both]
    first, second = (side.dropna() for side in numbers)
    if by == "seed":
        first, second = first.align(second, join="inner")
    if first.empty or second.empty:
        return {}
    contrast = Contrast(first.to_numpy(), second.to_numpy(), paired=by == "seed")
    distinct = [intervals.count_distinct(side) for side in (first, second)]
    seeds_of_b, is_exact = len(second), False
    if by == "point":
        mean = sides.summary_of_point(others.iloc[0], column)
        seeds_of_b, is_exact = mean.seeds, math.isnan(mean.error)
        exactly = Contrast(contrast.a, np.full(len(first), mean.value), paired=True)
        contrast = exactly if is_exact else Contrast(contrast.a, mean)
        distinct[1] = mean.seeds or len(first)
    change, error = contrast.estimate(), contrast.error
    place: dict[str, Any] = {
        "a": contrast.mean_of_a.value,
        "b": contrast.mean_of_b.value,
        "difference": change._asdict(),
        "error": error,
        "z": change.value / error if error else math.nan,
        "seeds": {"a": len(first), "b": seeds_of_b or None},
    }
    if margin is None:
        return place
    is_lost = any(side.isna().any() for side in numbers) or sides.has_failed(others)
    lacking = {
        "a published uncertainty": is_exact,
        "the number of a cell": is_lost,
        f"{FEWEST_SEEDS} distinct seeds on each side": min(distinct) < FEWEST_SEEDS,
    }
    lacks = next((said for said, is_so in lacking.items() if is_so), "")
    return place | {"lacks": lacks, "verdict": "open" if lacks else margin.verdict(contrast)}
