"""Quantities of a claim: one number per seed, at every setting.

A part is such a number with its margin: `test_error` at one setting, or the power of one line of a
grid. A number that is not known, of a cell that failed or is absent, lies between two ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.claims.cells import describe_values
from overfit_cli.claims.measured import (
    REFERENCE,
    Ends,
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

Statistic = Literal["median", "mean", "geometric mean", "share"]


@dataclass(frozen=True)
class Part:
    """One number per seed, and the margin of its median, mean or share.

    Attributes:
        place: the setting that it is measured at, such as `n=20, snr=0.5`; empty for a single one.
        low, high: the least and the most that the number of each seed may be, shape (seeds,).
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
    setting: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        is_combined = not self.quantity and " over " in self.place
        setting = f"{'the' if is_combined else 'at'} {self.place}" if self.place else ""
        return " ".join(filter(None, (self.quantity, setting)))

    @property
    def unknown(self) -> int:
        """The number of seeds whose number is not known."""
        return int((self.low != self.high).sum())


class Line(NamedTuple):
    """Numbers along x, (points,): the ends of each seed's number, (seeds, points)."""

    setting: Mapping[str, Any]
    x: Floats
    ends: Ends


@dataclass(frozen=True)
class Level:
    """A number at every setting: `test_error < 0.05`."""

    measured: Measured
    margin: Margin

    def __str__(self) -> str:
        return self.measured.text

    def parts(self, table: Table) -> list[Part]:
        """Return the number at each setting."""
        settings = self.measured.by_seed(table)
        return [_at(setting, ends, self.margin) for setting, ends in settings]


@dataclass(frozen=True)
class Share:
    """The share of seeds that meet conditions, at every setting or at all of them at once.

    Each condition is its left side less its right side, and the sign between them.
    """

    conditions: tuple[tuple[Measured, str], ...]
    margin: Margin
    everywhere: bool = False

    def __str__(self) -> str:
        return "the share"

    def parts(self, table: Table) -> list[Part]:
        """Return 1 for each seed that meets them at a setting, and 0 for others."""
        met = [self._met(excess, sign, table) for excess, sign in self.conditions]
        by_place = zip(*met, strict=True)
        settings = [(places[0][0], _all([ends for _, ends in places])) for places in by_place]
        if self.everywhere and settings:
            settings = [({}, _all([ends for _, ends in settings]))]
        return [_at(setting, ends, self.margin) for setting, ends in settings]

    def _met(
        self, excess: Measured, sign: str, table: Table
    ) -> list[tuple[Mapping[str, Any], Ends]]:
        meets: Mapping[str, Callable[[Floats], NDArray[np.bool_]]] = {
            "<": lambda excess: excess < 0,
            "<=": lambda excess: excess <= 0,
            ">": lambda excess: excess > 0,
            ">=": lambda excess: excess >= 0,
        }
        settings = []
        for setting, ends in excess.by_seed(table):
            at_ends = [meets[sign](end) for end in ends]
            low, high = np.logical_and(*at_ends), np.logical_or(*at_ends)
            settings.append((setting, Ends(low.astype(np.float64), high.astype(np.float64))))
        return settings


def _all(several: Sequence[Ends]) -> Ends:
    return Ends(*(np.min([ends[end] for ends in several], axis=0) for end in (0, 1)))


@dataclass(frozen=True)
class Trend:
    """A fall or a rise along a parameter, on every line of the grid: by the order of its values."""

    measured: Measured
    axis: str
    rises: bool

    FALLS = Margin(most=0.0, because="0 is no trend")
    RISES = Margin(least=0.0, because="0 is no trend")
    STAYS = Margin(most=0.5, because="half of the line")
    TURNS = Margin(most=0.5, because="half of the range")

    @property
    def margin(self) -> Margin:
        """The margin of the rank correlation."""
        return self.RISES if self.rises else self.FALLS

    def __str__(self) -> str:
        return self.measured.text

    def parts(self, table: Table) -> list[Part]:
        """Return, for each line, its rank correlation, the rank of its end, and how far it turns.

        A curve that falls, rises by more than half of its range and falls again does not fall.
        """
        parts = []
        for line, x, between in self.lines(table):
            values = np.where(between.known, between.low, np.nan)
            signed = -values if self.rises else values
            place = describe_values(line)
            parts += [
                Part(
                    _joined(place, WHOLE),
                    *_rank_correlations(x, values),
                    self.margin,
                    within=(-1.0, 1.0),
                ),
                Part(_joined(place, "its end"), *_end_ranks(signed), self.STAYS, within=(0.0, 1.0)),
                Part(_joined(place, "its turn"), *_turns(signed), self.TURNS, within=(-1.0, 1.0)),
            ]
        return parts

    def lines(self, table: Table) -> Iterator[Line]:
        """Return the lines of the grid along the parameter."""
        return _lines(table, self.measured, table.number_parameter(self.axis), LEAST_FOR_TREND)


@dataclass(frozen=True)
class Power:
    """The power p of a quantity ∝ parameter^p, on every line of the grid.

    With `throughout` a single value must not decide, and the quantity not turn at the end of the
    line. Between the last two values it does not run the other way half as fast as along the whole
    line; and without the last value p, where it can be told, is on the same side of 0.
    """

    measured: Measured
    axis: str
    margin: Margin
    throughout: bool = False

    def __str__(self) -> str:
        return f"power of {self.axis} in {self.measured.text}"

    def parts(self, table: Table) -> list[Part]:
        """Return the power on each line: least squares of logarithms, seed by seed."""
        parts = []
        axis = table.number_parameter(self.axis)
        for line, x, ends in self.lines(table):
            if (x <= 0).any() or (ends.high <= 0).any():
                raise inconclusive(f"{axis} or {self.measured.text} is 0 or less: no logarithm.")
            with np.errstate(divide="ignore"):
                logs = Ends(np.log(np.maximum(ends.low, 0.0)), np.log(ends.high))
            weights, name_of_line = _slope_weights(np.log(x)), describe_values(line)
            whole = _joined(name_of_line, WHOLE) if self.throughout else name_of_line
            parts.append(Part(whole, *_weighted(weights, logs), self.margin))
            if self.throughout:
                parts += [
                    Part(_joined(name_of_line, name), *_weighted(part, logs), self._side)
                    for name, part in _parts_of_slope(np.log(x), weights).items()
                ]
        return parts

    def lines(self, table: Table) -> Iterator[Line]:
        """Return the lines of the grid along the parameter."""
        return _lines(table, self.measured, table.number_parameter(self.axis), LEAST_FOR_POWER)

    @property
    def _side(self) -> Margin:
        return Margin(most=0.0) if math.isinf(self.margin.least) else Margin(least=0.0)


def _parts_of_slope(log_x: Floats, weights: Floats) -> dict[str, Floats]:
    end = np.append(np.zeros(len(weights) - 2), _slope_weights(log_x[-2:]))
    parts = {"its end": end + weights / 2}
    if len(log_x) > LEAST_FOR_POWER:
        parts["all but the last value"] = np.append(_slope_weights(log_x[:-1]), 0.0)
    return parts


@dataclass(frozen=True)
class ContourPower:
    """The power p of x ∝ y^p along the contour on which a quantity has a value."""

    x: str
    y: str
    measured: Measured
    threshold: float
    margin: Margin

    def __str__(self) -> str:
        return f"power of {self.y} in {self.x}"

    def parts(self, table: Table) -> list[Part]:
        """Return the power of each seed's contour, at each setting of the other parameters."""
        return [
            Part(describe_values(setting), *_weighted(_slope_weights(np.log(y)), logs), self.margin)
            for setting, y, logs in self.lines(table)
        ]

    def lines(self, table: Table) -> Iterator[Line]:
        """Return the logarithm of x on the contour along y, at each setting of the others."""
        x, y = table.number_parameter(self.x), table.number_parameter(self.y)
        column = "claimed"
        for place, rows in settings_of(table.cells, table.places(without=(x, y))):
            seeds = np.sort(rows["seed"].unique())
            local = Table(rows, table.model, table.symbols)
            claimed = _column(local, self.measured)
            points = crossings(rows.assign(**{column: claimed}), x, y, column, self.threshold)
            logs = crossing_table(points, y).reindex(columns=seeds)  # (y, seeds)
            known = claimed.where(rows["status"] == "done").notna()
            whole = known.groupby([rows[y], rows["seed"]]).all().unstack()
            logs = logs.where(whole.reindex(logs.index, columns=seeds).eq(True))  # nan: unknown
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
            log_x = logs.to_numpy()[crossed].T  # infinite where a seed crosses beyond the grid
            known = np.isfinite(log_x)
            ends = Ends(np.where(known, log_x, -np.inf), np.where(known, log_x, np.inf))
            yield Line(place, logs.index.to_numpy(dtype=np.float64)[crossed], ends)


Quantity = Level | Share | Trend | Power | ContourPower

WHOLE = "the whole line"
"""What a line is called beside its end."""

LEAST_FOR_TREND = 3
LEAST_FOR_POWER = 3
"""The fewest values of a parameter along which a trend or a power can be told."""


def _at(setting: Mapping[str, Any], ends: Ends, margin: Margin) -> Part:
    return Part(describe_values(setting), ends.low, ends.high, margin, setting=setting)


def _joined(place: str, part: str) -> str:
    return f"{place}, {part}" if place else part


def _column(table: Table, measured: Measured) -> pd.Series[float]:
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


def _lines(table: Table, measured: Measured, axis: str, fewest: int) -> Iterator[Line]:
    settings = list(measured.by_seed(table))
    if settings and axis not in settings[0][0]:
        raise not_run(f"It needs {fewest} values of {axis}; these cells have one.")
    lines: dict[tuple[Any, ...], list[tuple[float, Ends]]] = {}
    for place, ends in settings:
        others = tuple((name, value) for name, value in place.items() if name != axis)
        lines.setdefault(others, []).append((float(place[axis]), ends))
    if not any(len(points) >= fewest for points in lines.values()):
        raise not_run(f"It needs {fewest} values of {axis} on a line; these cells have fewer.")
    for others, points in lines.items():
        if len(points) < fewest:
            others_in_words = describe_values(dict(others))
            add_remark(f"Left out: {others_in_words}, with fewer than {fewest} values of {axis}.")
            continue
        x = np.array([position for position, _ in points])
        low, high = (np.stack([ends[end] for _, ends in points], axis=1) for end in (0, 1))
        yield Line(dict(others), x, Ends(low, high))


def _rank_correlations(x: Floats, values: Floats) -> Ends:
    """The ends of the rank correlation of each row, (seeds, points), with x; 0 of a constant row.

    A value that is nan may be any number.
    """
    from scipy.stats import rankdata

    ranks = rankdata(values, axis=1, nan_policy="omit")
    order = rankdata(x) - (len(x) + 1) / 2
    known = np.isfinite(values).all(axis=1)
    low, high = np.empty(len(values)), np.empty(len(values))
    low[known] = high[known] = _correlation(ranks[known], order)
    for row in np.flatnonzero(~known):
        low[row], high[row] = _correlation_between(order, ranks[row])
    return Ends(low, high)


def _correlation(ranks: Floats, order: Floats, more: float = 0.0) -> Floats:
    centred = ranks - ranks.mean(axis=-1, keepdims=True)
    norms = np.sqrt((centred**2).sum(axis=-1) * (order**2).sum())
    products = np.asarray(centred @ order + more)
    shares = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    return np.asarray(shares.clip(-1, 1))


def _correlation_between(order: Floats, ranks: Floats) -> tuple[Floats, Floats]:
    """The least and the most that the correlation of a row can be, of which some ranks are nan.

    All unknown values begin below the others, in the order of x. One that rises past a value adds
    the difference of their places to the products; so each is taken as high as adds the most.
    """
    unknown = np.isnan(ranks)
    places, count = order[unknown], int(unknown.sum())
    from_below = np.where(unknown, np.cumsum(unknown), ranks + count)
    by_value = order[~unknown][np.argsort(ranks[~unknown])]
    risen = np.cumsum(places[:, None] - by_value[None, :], axis=1)  # (unknown, known)
    swapped = np.triu(places[None, :] - places[:, None]).sum()
    least = float(risen.min(axis=1, initial=0.0).sum() - swapped)
    most = float(risen.max(axis=1, initial=0.0).sum())
    return _correlation(from_below, order, least), _correlation(from_below, order, most)


def _end_ranks(values: Floats) -> Ends:
    last, others = values[:, -1:], values[:, :-1]
    unknown = np.isnan(others) | np.isnan(last)
    low = (others < last).mean(axis=1)
    return Ends(low, low + unknown.mean(axis=1))


def _turns(values: Floats) -> Ends:
    """The rise of each row between two points over the range of the median row, −1 to 1, (seeds,).

    They are the points between which the median row rises most: single rows turn by noise too.
    """
    known = np.isfinite(values)
    if not known.any(axis=0).all():
        return Ends(np.full(len(values), -1.0), np.full(len(values), 1.0))
    middle = np.nanmedian(np.where(known, values, np.nan), axis=0)  # (points,)
    first, last = np.unravel_index(np.argmax(np.triu(middle - middle[:, None])), (len(middle),) * 2)
    range_ = np.ptp(middle)
    rises = values[:, last] - values[:, first]
    shares = np.clip(rises / range_, -1.0, 1.0) if range_ > 0 else np.zeros(len(values))
    unknown = ~(known[:, first] & known[:, last])
    return Ends(np.where(unknown, -1.0, shares), np.where(unknown, 1.0, shares))


def _slope_weights(x: Floats) -> Floats:
    centred = x - x.mean()
    return np.asarray(centred / (centred @ centred))


def _weighted(weights: Floats, ends: Ends) -> Ends:
    """The ends of weighted sums of the rows of numbers, (seeds, points)."""
    weights = np.where(np.abs(weights) < 1e-12 * np.abs(weights).max(), 0.0, weights)
    used, rising = weights != 0, weights[weights != 0] > 0
    low, high = ends.low[:, used], ends.high[:, used]
    sums = [np.where(rising, *pair) @ weights[used] for pair in ((low, high), (high, low))]
    return Ends(sums[0], sums[1])
