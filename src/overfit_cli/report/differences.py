"""Comparison of two runs, or of a run and published numbers: what changes from A to B.

Cells are paired by their parameters and seed. For each measured column a comparison has the mean
difference with its interval over seeds and the largest difference; for each claim that can be
judged on both sides, both verdicts. Every difference is B less A.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from overfit_cli.core.arrays import finite_column
from overfit_cli.core.claim import Measurement
from overfit_cli.core.parameters import Value
from overfit_cli.core.text import UserError, plural
from overfit_cli.report.interpolated import Interpolated, interpolate
from overfit_cli.report.judge import LoadedRun, judge_run
from overfit_cli.report.sides import (
    Side,
    asked_columns,
    different_settings,
    load_points,
    load_run,
    lonely_columns,
    shared_axes,
    shared_columns,
    why_no_pair,
)
from overfit_cli.stats.intervals import Estimate, difference_estimate, mean_estimate
from overfit_cli.stats.pairs import (
    Pairs,
    pair_up,
    setting_keys,
)
from overfit_cli.sweeps.store import RunDirectory


@dataclass(frozen=True)
class Point:
    """A published number beside the run's.

    Attributes:
        at: the values of the parameters.
        own: the run's mean over seeds.
        published: the published number.
        difference: published less own, with the interval of the mean over seeds.
    """

    at: Mapping[str, Value]
    own: float
    published: float
    difference: Estimate

    @property
    def is_inside(self) -> bool:
        """Whether the published number lies in the interval of the run's mean."""
        return self.difference.low <= 0 <= self.difference.high


@dataclass(frozen=True)
class Difference:
    """How two sides differ in a measured column; every difference is B less A.

    Attributes:
        column: its name.
        pairs: how many pairs of cells have a number on both sides; of means and of published
            numbers, how many places.
        lone: how many pairs that are done have a number on one side alone.
        mean_a, mean_b: over the pairs of each seed, and then over seeds.
        estimate: the mean difference, with its interval over seeds.
        largest: the difference that is the largest in absolute value; nan without pairs.
        at: where that is: the parameters, and the seed where cells are paired.
        points: every place, where B is published.
    """

    column: str
    pairs: int
    lone: int
    mean_a: float
    mean_b: float
    estimate: Estimate
    largest: float
    at: Mapping[str, Value]
    points: tuple[Point, ...] = ()

    @property
    def is_none(self) -> bool:
        """Whether every pair has the same number twice."""
        return self.pairs > 0 and self.largest == 0 and not self.lone


def difference_in(
    column: str, pairs: Pairs, names: Sequence[str], a: pd.DataFrame, b: pd.DataFrame
) -> Difference:
    """Return how two sides differ in a column.

    Seeds are independent draws, and cells of one seed aren't: the mean difference is that of each
    seed's pairs, averaged over seeds. Without a seed in common it is the mean of B's seeds less
    that of A's, each seed's numbers taken from the middle of both sides at their place.

    Args:
        column: the measured column.
        pairs: the pairs.
        names: the parameters that pairs share.
        a, b: all cells of both sides.
    """
    rows = pairs.left.assign(
        a=finite_column(pairs.left, column), b=finite_column(pairs.right, column)
    )
    done = (pairs.left["status"] == "done") & (pairs.right["status"] == "done")
    lone = int((done & (rows["a"].isna() != rows["b"].isna())).sum())
    rows = rows[rows["a"].notna() & rows["b"].notna()]
    if rows.empty:
        nothing = Estimate(np.nan, np.nan, np.nan, "", 0)
        return Difference(column, 0, lone, np.nan, np.nan, nothing, np.nan, {})
    if pairs.by == "means":
        middle = dict(zip(setting_keys(rows, names), (rows["a"] + rows["b"]) / 2, strict=True))
        first, second = (_by_seed(cells, column, names, middle) for cells in (a, b))
        estimate = difference_estimate(second, first)
    else:
        seeds = rows.groupby("seed")[["a", "b"]].mean()
        first, second = seeds["a"], seeds["b"]
        estimate = mean_estimate(second - first)
    points = _points(rows, names) if pairs.by == "point" else ()
    shown = [*names, *(["seed"] if pairs.by == "seed" else [])]
    each = np.array([one.difference.value for one in points] or (rows["b"] - rows["a"]).tolist())
    most = int(np.abs(each).argmax())
    at = points[most].at if points else _values(rows.iloc[most], shown)
    means = float(first.mean()), float(second.mean())
    largest = float(each[most])
    return Difference(column, len(each), lone, *means, estimate, largest, at, points)


def _by_seed(
    cells: pd.DataFrame, column: str, names: Sequence[str], middle: Mapping[Any, float]
) -> pd.Series[float]:
    """The mean of each seed at the places that both sides have.

    A seed may lack some of the places: its numbers are taken from the middle at their place, so
    that it doesn't count which.
    """
    at = setting_keys(cells, names).map(lambda place: middle.get(place, np.nan)).astype(float)
    apart = (finite_column(cells, column) - at).groupby(cells["seed"]).mean().dropna()
    found: pd.Series[float] = apart + float(np.mean(list(middle.values())))
    return found


def _points(rows: pd.DataFrame, names: Sequence[str]) -> tuple[Point, ...]:
    """Every place with the run's mean over seeds and the published number."""
    found = []
    for _, cells in rows.groupby(setting_keys(rows, names), sort=False):
        own, published = float(cells["a"].mean()), float(cells["b"].iloc[0])
        difference = mean_estimate(published - cells["a"])
        found.append(Point(_values(cells.iloc[0], names), own, published, difference))
    return tuple(found)


def _values(row: pd.Series[Any], names: Sequence[str]) -> dict[str, Value]:
    """Values of a row as Python's own numbers and texts."""
    return {name: row[name].item() if hasattr(row[name], "item") else row[name] for name in names}


@dataclass(frozen=True)
class Verdicts:
    """A claim as it was judged on each side."""

    claim: str
    a: Measurement
    b: Measurement

    @property
    def changed(self) -> bool:
        """Whether the two verdicts differ."""
        return self.a.verdict != self.b.verdict


def verdicts_of(a: Side, b: Side) -> list[Verdicts]:
    """Return every claim that can be measured on both sides; none where they can't be judged so."""
    if why_not_judged(a, b) or b.is_published or a.study.name != b.study.name:
        return []
    first, second = (
        {
            one.claim.name: one.measurement
            for one in judge_run(LoadedRun(RunDirectory(side.path), side.study, side.cells))
            if one.measurement.verdict != "not run"
        }
        for side in (a, b)
    )
    return [Verdicts(name, first[name], second[name]) for name in first if name in second]


def why_not_judged(a: Side, b: Side) -> str:
    """Return why claims aren't judged on cells of another version; empty where all are of this."""
    if b.is_published or not (a.study.claims() or b.study.claims()):
        return ""
    old = [one for one in (a, b) if one.is_of_another_version]
    if not old:
        return ""
    which = " and ".join(f"{one.letter}'s of {one.version}" for one in old)
    return (
        f"Verdicts aren't compared: cells are of another version than the claims, {which} and the "
        f"claims of {a.study.version}."
    )


@dataclass(frozen=True)
class Comparison:
    """What changes from A to B; every difference is B less A.

    Attributes:
        a, b: the two sides.
        settings: parameters with one value on each side that isn't the same: A's and B's.
        names: the parameters in whose values pairs agree.
        pairs: cells, or means over seeds, with their counterparts.
        between: what was interpolated of A at B's points; None where nothing was asked for.
        alone_in_a, alone_in_b: how many cells, or places, have no counterpart.
        differences: of each column that is compared.
        only_in_a, only_in_b: the measured columns of which one side alone has numbers.
        verdicts: of each claim that can be measured on both sides.
    """

    a: Side
    b: Side
    settings: Mapping[str, tuple[Value, Value]]
    names: tuple[str, ...]
    pairs: Pairs
    between: Interpolated | None
    alone_in_a: int
    alone_in_b: int
    differences: tuple[Difference, ...]
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    verdicts: tuple[Verdicts, ...]

    @property
    def unit(self) -> str:
        """What has its counterpart: a `cell`, or a `place` where means over seeds are compared."""
        return "cell" if self.pairs.by == "seed" else "place"

    @property
    def failed_in_b(self) -> int:
        """How many pairs of cells, or of means, failed in B and are done in A."""
        if self.pairs.by == "point":
            return 0
        failed = self.pairs.right["status"] == "failed"
        return int((failed & (self.pairs.left["status"] == "done")).sum())

    @property
    def failed_in_a(self) -> int:
        """How many failed in A and are done in B."""
        failed = self.pairs.left["status"] == "failed"
        return int((failed & (self.pairs.right["status"] == "done")).sum())

    @property
    def changed(self) -> list[Verdicts]:
        """The claims whose verdicts differ."""
        return [one for one in self.verdicts if one.changed]

    def table(self) -> pd.DataFrame:
        """Return a row for each compared column."""
        return pd.DataFrame(
            {
                "column": one.column,
                "pairs": one.pairs,
                "mean_a": one.mean_a,
                "mean_b": one.mean_b,
                "difference": one.estimate.value,
                "low": one.estimate.low,
                "high": one.estimate.high,
                "largest": one.largest,
            }
            for one in self.differences
        )

    def beyond(self, tolerance: float) -> list[str]:
        """Return in words what differs by more than a tolerance; nothing where all agrees.

        Published numbers may be of fewer points than the run, and of fewer columns: what they lack
        is no difference. Two runs must have the same cells, done or failed, and the same verdicts.

        Args:
            tolerance: how large a difference of a pair may be, in the unit of its column.
        """
        found = [
            f"{one.column} by up to {abs(one.largest):.4g}"
            for one in self.differences
            if abs(one.largest) > tolerance
        ]
        if self.b.is_published:
            return found
        found += [f"{name}, of which B has no number" for name in self.only_in_a]
        found += [
            f"{plural(one.lone, 'number')} of {one.column} on one side alone"
            for one in self.differences
            if one.lone
        ]
        if changed := self.failed_in_a + self.failed_in_b:
            found.append(f"{plural(changed, self.unit)} failed on one side alone")
        # Whoever interpolates compares at B's points, and A's own may be others.
        alone = self.alone_in_b + (self.alone_in_a if self.between is None else 0)
        if alone:
            found.append(f"{plural(alone, self.unit)} without a counterpart")
        if self.changed:
            found.append(plural(len(self.changed), "verdict"))
        return found


def compare_sides(
    a: Path,
    b: Path,
    values: Sequence[str] = (),
    where: Sequence[str] = (),
    where_a: Sequence[str] = (),
    where_b: Sequence[str] = (),
    *,
    interpolated: bool = False,
) -> Comparison:
    """Compare a run directory with another, or with a CSV file of published numbers.

    Args:
        a: a run directory.
        b: another, or a file whose name ends in `.csv`.
        values: the measured columns to compare; empty for all that both have numbers of.
        where: conditions that choose cells of both, such as `n=5:20`.
        where_a, where_b: conditions that choose cells of one of the two.
        interpolated: whether to interpolate A's cells at those points of B where A has none.

    Raises:
        UserError: if one of both can't be read, they share no cell and no column, or a column is
            unknown.
    """
    if is_csv(a):
        raise UserError(f"A {a}: A is a run directory; name the CSV file second.")
    first = load_run(a, "A", where, where_a)
    load = partial(load_points, b, first) if is_csv(b) else partial(load_run, b, "B")
    return compare_loaded(first, load(where, where_b), values, interpolated=interpolated)


def compare_loaded(
    first: Side, second: Side, values: Sequence[str] = (), *, interpolated: bool = False
) -> Comparison:
    """Compare two sides that are loaded.

    Args:
        first: a run.
        second: another, or published points.
        values: the measured columns to compare; empty for all that both have numbers of.
        interpolated: whether to interpolate the first at those points where it has none.

    Raises:
        UserError: if they share no cell and no column, or a column is unknown.
    """
    names = shared_axes(first, second)
    columns = asked_columns(first, second, values) if values else shared_columns(first, second)
    between = interpolate(first, second, names, columns) if interpolated else None
    own = pair_up(first.cells, second.cells, names, columns)
    cells = first.cells if between is None else between.cells
    pairs = own if between is None else pair_up(cells, second.cells, names, columns)
    if not pairs.both:
        raise UserError(why_no_pair(first, second, names, pairs, interpolated=interpolated))
    return Comparison(
        a=first,
        b=second,
        settings=different_settings(first, second),
        names=tuple(names),
        pairs=pairs,
        between=between,
        alone_in_a=own.here - own.both,
        alone_in_b=pairs.there - pairs.both,
        differences=tuple(difference_in(one, pairs, names, cells, second.cells) for one in columns),
        only_in_a=tuple(
            lonely_columns(first, second) if not (values or second.is_published) else ()
        ),
        only_in_b=tuple(lonely_columns(second, first) if not values else ()),
        verdicts=tuple(verdicts_of(first, second)),
    )


def is_csv(path: Path) -> bool:
    """Whether a path names a file of published numbers, by its ending."""
    return path.suffix.lower() == ".csv" and not path.is_dir()
