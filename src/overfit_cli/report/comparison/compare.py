"""Comparison of two runs, or of a run and published numbers: what changes from A to B."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from overfit_cli.analysis.pairs import Pairs, pair_up
from overfit_cli.errors import UserError
from overfit_cli.parameters import Value, describe
from overfit_cli.report.comparison.between import Interpolated, interpolate
from overfit_cli.report.comparison.columns import Difference, difference_in
from overfit_cli.report.comparison.measured import (
    asked_columns,
    lonely_columns,
    shared_columns,
)
from overfit_cli.report.comparison.no_pair import why_no_pair
from overfit_cli.report.comparison.sides import (
    Side,
    different_settings,
    load_points,
    load_run,
    shared_axes,
)
from overfit_cli.report.comparison.verdicts import Verdicts, verdicts_of
from overfit_cli.words import plural


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
    between = _between(first, second, names, columns) if interpolated else None
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


def _between(a: Side, b: Side, names: Sequence[str], columns: Sequence[str]) -> Interpolated:
    """A's cells, and what lies between them at B's points."""
    kinds = describe(a.study.parameters)
    axes = [
        name
        for name in names
        if name in kinds and kinds[name].kind in ("int", "float") and len(a.values(name)) > 1
    ]
    if not axes:
        raise UserError("--interpolate: no number varies in A, so nothing lies between its cells.")
    known = a.cells[[*a.parameters, "seed", "status", *columns]]
    return interpolate(known, b.cells, names, axes, columns)
