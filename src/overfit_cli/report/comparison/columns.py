"""The difference of two sides in one measured column: its mean over seeds, and the largest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from overfit_cli.analysis.intervals import Estimate, difference_estimate, mean_estimate
from overfit_cli.analysis.pairs import Pairs, finite, places
from overfit_cli.parameters import Value


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
    rows = pairs.left.assign(a=finite(pairs.left, column), b=finite(pairs.right, column))
    done = (pairs.left["status"] == "done") & (pairs.right["status"] == "done")
    lone = int((done & (rows["a"].isna() != rows["b"].isna())).sum())
    rows = rows[rows["a"].notna() & rows["b"].notna()]
    if rows.empty:
        nothing = Estimate(np.nan, np.nan, np.nan, "", 0)
        return Difference(column, 0, lone, np.nan, np.nan, nothing, np.nan, {})
    if pairs.by == "means":
        middle = dict(zip(places(rows, names), (rows["a"] + rows["b"]) / 2, strict=True))
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
    at = places(cells, names).map(lambda place: middle.get(place, np.nan)).astype(float)
    apart = (finite(cells, column) - at).groupby(cells["seed"]).mean().dropna()
    found: pd.Series[float] = apart + float(np.mean(list(middle.values())))
    return found


def _points(rows: pd.DataFrame, names: Sequence[str]) -> tuple[Point, ...]:
    """Every place with the run's mean over seeds and the published number."""
    found = []
    for _, cells in rows.groupby(places(rows, names), sort=False):
        own, published = float(cells["a"].mean()), float(cells["b"].iloc[0])
        difference = mean_estimate(published - cells["a"])
        found.append(Point(_values(cells.iloc[0], names), own, published, difference))
    return tuple(found)


def _values(row: pd.Series[Any], names: Sequence[str]) -> dict[str, Value]:
    """Values of a row as Python's own numbers and texts."""
    return {name: row[name].item() if hasattr(row[name], "item") else row[name] for name in names}
