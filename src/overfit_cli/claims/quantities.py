"""Quantities of a user's claim: one number per seed, at every setting or on average.

A part is such a number with its margin: `test_error` at one setting, or the power of one line of a
grid. A number that is not known, of a cell that failed or is absent, lies between two ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.claims.cells import describe_values
from overfit_cli.claims.measured import (
    REFERENCE,
    Measured,
    Table,
    read_expression,
    settings_of,
)
from overfit_cli.claims.rules import Margin
from overfit_cli.core.arrays import Floats, finite_column
from overfit_cli.core.claim import add_remark, inconclusive, not_run
from overfit_cli.core.errors import BadValue
from overfit_cli.stats.crossings import crossing_table, crossings

Statistic = Literal["median", "mean", "share"]

UNKNOWN = (-math.inf, math.inf)


@dataclass(frozen=True)
class Part:
    """One number per seed, and the margin of its median, mean or share.

    Attributes:
        place: the setting that it is measured at, such as `n=20, snr=0.5`; empty for a single one.
        low, high: the least and the most that the number of each seed may be, shape (seeds,).
        margin: the margin.
    """

    place: str
    low: Floats
    high: Floats
    margin: Margin

    @property
    def unknown(self) -> int:
        """The number of seeds whose number is not known."""
        return int((self.low != self.high).sum())


@dataclass(frozen=True)
class Level:
    """A number at every setting: `test_error < 0.05`.

    Attributes:
        measured: the expression.
        margin: the margin of its median or mean over seeds.
    """

    measured: Measured
    margin: Margin

    def parts(self, table: Table) -> list[Part]:
        """Return the number at each setting."""
        return [
            _part(place, numbers, self.margin) for place, numbers in self.measured.by_seed(table)
        ]


@dataclass(frozen=True)
class Share:
    """The share of seeds that meet a condition, at every setting.

    Attributes:
        text: the condition, as the user wrote it.
        excess: left side minus right side of the condition.
        sign: the sign between them.
        margin: the margin of the share.
    """

    excess: Measured
    sign: str
    margin: Margin

    def parts(self, table: Table) -> list[Part]:
        """Return 1 for each seed that meets the condition at a setting, and 0 for others."""
        meets: Mapping[str, Callable[[Floats], NDArray[np.bool_]]] = {
            "<": lambda excess: excess < 0,
            "<=": lambda excess: excess <= 0,
            ">": lambda excess: excess > 0,
            ">=": lambda excess: excess >= 0,
        }
        parts = []
        for place, excess in self.excess.by_seed(table):
            right = meets[self.sign](excess).astype(float)
            unknown = np.isnan(excess)
            low, high = np.where(unknown, 0.0, right), np.where(unknown, 1.0, right)
            parts.append(Part(describe_values(place), low, high, self.margin))
        return parts


@dataclass(frozen=True)
class Trend:
    """A fall or a rise along a parameter, on every line of the grid.

    Attributes:
        measured: the expression.
        axis: the parameter, as the user wrote it.
        rises: whether it rises.
    """

    measured: Measured
    axis: str
    rises: bool

    FALLS = Margin(most=0.0, because="0 is no trend")
    STAYS = Margin(most=0.5, because="half of what it fell")

    def parts(self, table: Table) -> list[Part]:
        """Return, for each line, the rank correlation and how far its end runs back."""
        parts = []
        axis = table.parameter(self.axis)
        for line, x, values in _lines(table, self.measured, axis, LEAST_FOR_TREND):
            signed = -values if self.rises else values
            place = describe_values(line)
            correlations = _with_unknown(_rank_correlations(x, signed), (-1.0, 1.0))
            parts.append(Part(place, *correlations, self.FALLS))
            end = f"{place}, its end" if place else "its end"
            parts.append(Part(end, *_with_unknown(_run_back(signed), (0.0, 1.0)), self.STAYS))
        return parts


@dataclass(frozen=True)
class Power:
    """The power p of a quantity ∝ parameter^p, on every line of the grid.

    Attributes:
        measured: the expression, positive.
        axis: the parameter, as the user wrote it.
        margin: the margin of p.
    """

    measured: Measured
    axis: str
    margin: Margin

    def parts(self, table: Table) -> list[Part]:
        """Return the power on each line: least squares of logarithms, seed by seed."""
        parts = []
        axis = table.parameter(self.axis)
        for line, x, values in _lines(table, self.measured, axis, LEAST_FOR_POWER):
            if (x <= 0).any() or (values <= 0).any():
                raise inconclusive(f"{axis} or {self.measured.text} is 0 or less: no logarithm.")
            slopes = _slopes(np.log(x), np.log(values))
            parts.append(_part(line, slopes, self.margin))
        return parts


@dataclass(frozen=True)
class ContourPower:
    """The power p of x ∝ y^p along the contour on which a quantity has a value.

    Attributes:
        x, y: the parameters, as the user wrote them.
        measured: the quantity.
        threshold: its value on the contour.
        margin: the margin of p.
    """

    x: str
    y: str
    measured: Measured
    threshold: float
    margin: Margin

    def parts(self, table: Table) -> list[Part]:
        """Return the power of each seed's contour, at each setting of the other parameters."""
        x, y = table.parameter(self.x), table.parameter(self.y)
        parts = []
        column = "claimed"
        for place, rows in settings_of(table.cells, table.places(without=(x, y))):
            seeds = np.sort(rows["seed"].unique())
            local = Table(rows, table.model, table.symbols)
            claimed = _column(local, self.measured)
            points = crossings(rows.assign(**{column: claimed}), x, y, column, self.threshold)
            logs = crossing_table(points, y).reindex(columns=seeds)  # (y, seeds)
            known = claimed.where(rows["status"] == "done").notna()
            whole = known.groupby([rows[y], rows["seed"]]).all().unstack()
            logs = logs.where(whole.reindex(logs.index, columns=seeds).eq(True))
            crossed = (~np.isinf(logs.to_numpy())).sum(axis=1) * 2 > len(seeds)
            if not crossed.all():
                left = ", ".join(f"{value:.6g}" for value in logs.index[~crossed])
                add_remark(
                    f"Left out: {y}={left}, where at most half of the seeds cross "
                    f"{self.threshold:g}."
                )
            if crossed.sum() < LEAST_FOR_POWER:
                raise inconclusive(
                    f"It needs {LEAST_FOR_POWER} values of {y} at which most seeds cross "
                    f"{self.threshold:g}; there are {int(crossed.sum())}."
                )
            log_y = np.log(logs.index.to_numpy(dtype=np.float64)[crossed])
            log_x = np.where(np.isfinite(logs), logs, np.nan)[crossed].T
            parts.append(_part(place, _slopes(log_y, log_x), self.margin))
        return parts


Quantity = Level | Share | Trend | Power | ContourPower

LEAST_FOR_TREND = 3
LEAST_FOR_POWER = 3
"""The fewest values of a parameter along which a trend or a power can be told."""


def _part(place: Mapping[str, Any], numbers: Floats, margin: Margin) -> Part:
    """A part of numbers of which those that are nan may be anything."""
    return Part(describe_values(place), *_with_unknown(numbers, UNKNOWN), margin)


def _with_unknown(numbers: Floats, ends: tuple[float, float]) -> tuple[Floats, Floats]:
    """The least and the most that numbers may be, of which some are nan."""
    unknown = np.isnan(numbers)
    return np.where(unknown, ends[0], numbers), np.where(unknown, ends[1], numbers)


def _column(table: Table, measured: Measured) -> pd.Series[float]:
    """An expression as a column of the cells."""
    if REFERENCE.search(measured.text):
        raise BadValue("claim", measured.text, "a contour takes columns without brackets.")
    expression = read_expression(measured.text, table.spellings(), measured.text)
    values = {
        name: (
            finite_column(table.cells, name) if name in table.columns else table.cells[name]
        ).to_numpy(dtype=np.float64)
        for name in expression.names
    }
    return pd.Series(expression.value(values), table.cells.index)


def _lines(
    table: Table, measured: Measured, axis: str, fewest: int
) -> Iterator[tuple[dict[str, Any], Floats, Floats]]:
    """Each line along an axis: its other parameters, the axis's values, numbers (seeds, points).

    Raises:
        UndecidedError: `not run` where no line has enough points.
    """
    settings = list(measured.by_seed(table))
    if settings and axis not in settings[0][0]:
        raise not_run(f"It needs {fewest} values of {axis}; these cells have one.")
    lines: dict[tuple[Any, ...], list[tuple[float, Floats]]] = {}
    for place, numbers in settings:
        others = tuple((name, value) for name, value in place.items() if name != axis)
        lines.setdefault(others, []).append((float(place[axis]), numbers))
    if not any(len(points) >= fewest for points in lines.values()):
        raise not_run(f"It needs {fewest} values of {axis} on a line; these cells have fewer.")
    for others, points in lines.items():
        if len(points) < fewest:
            others_in_words = describe_values(dict(others))
            add_remark(f"Left out: {others_in_words}, with fewer than {fewest} values of {axis}.")
            continue
        x = np.array([position for position, _ in points])
        yield dict(others), x, np.stack([numbers for _, numbers in points], axis=1)


def _rank_correlations(x: Floats, values: Floats) -> Floats:
    """The rank correlation of each row of values, (seeds, points), with x; 0 of a constant row."""
    from scipy.stats import rankdata

    known = np.isfinite(values).all(axis=1)
    result = np.full(len(values), np.nan)
    ranks = rankdata(values[known], axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    order = rankdata(x) - (len(x) + 1) / 2
    norms = np.sqrt((ranks**2).sum(axis=1) * (order**2).sum())
    products = ranks @ order
    result[known] = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    return result


def _run_back(values: Floats) -> Floats:
    """The rise from a row's least value to its end, a share of its range; 0 of a constant row."""
    least, range_ = values.min(axis=1), np.ptp(values, axis=1)
    shares = np.where(np.isnan(range_), np.nan, 0.0)
    np.divide(values[:, -1] - least, range_, out=shares, where=range_ > 0)
    return shares


def _slopes(x: Floats, values: Floats) -> Floats:
    """The least-squares slope of each row of values, (seeds, points), on x; nan where one is."""
    centred = x - x.mean()
    return np.asarray(values @ centred / (centred @ centred))
