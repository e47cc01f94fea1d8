"""Quantities of a claim: one number per seed, at every setting.

A part is such a number with its margin: `test_error` at one setting, or the power of one line of a
grid. A number that is not known, of a cell that failed or is absent, lies between two ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.claims.cells import describe_values
from overfit_cli.claims.parts import Margin, Part
from overfit_cli.core.arrays import Floats
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import add_remark, inconclusive, not_run
from overfit_cli.core.errors import BadValue
from overfit_cli.core.expressions import Expression, Names, Ref, compare, read_expression
from overfit_cli.stats.crossings import crossing_table, crossings


class Ends(NamedTuple):
    """The least and the most that the number of each seed may be, both of shape (seeds,).

    They agree where it is known, and are infinite where nothing is.
    """

    low: Floats
    high: Floats

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether the number of each seed is known."""
        return np.asarray(self.low == self.high)


Setting = Mapping[str, Any]


class Line(NamedTuple):
    """Numbers along x, (points,): the ends of each seed's number, (seeds, points)."""

    setting: Mapping[str, Any]
    x: Floats
    ends: Ends


@dataclass(frozen=True)
class OfOne:
    """A quantity of one expression of columns and parameters."""

    measured: Expression

    @property
    def refs(self) -> tuple[Ref, ...]:
        """The references in it, some at chosen values of parameters."""
        return self.measured.refs


@dataclass(frozen=True)
class AlongAxis(OfOne):
    """A quantity along a parameter, on every line of the grid."""

    axis: str

    def lines(self, cells: Cells) -> Iterator[Line]:
        """Return the lines of the grid along the parameter."""
        return _lines(cells, self.measured, number_parameter(cells, self.axis), LEAST_FOR_POWER)


@dataclass(frozen=True)
class Level(OfOne):
    """A number at every setting: `test_error < 0.05`."""

    margin: Margin

    def __str__(self) -> str:
        return self.measured.text

    def parts(self, cells: Cells) -> list[Part]:
        """Return the number at each setting."""
        return [_at(*each, self.margin) for each in _by_seed(cells, self.measured)]


@dataclass(frozen=True)
class Share:
    """The share of seeds that meet conditions, at every setting or at all of them at once.

    Each condition is its left side less its right side, and the sign between them.
    """

    conditions: tuple[tuple[Expression, str], ...]
    margin: Margin
    everywhere: bool = False

    def __str__(self) -> str:
        return "the share"

    @property
    def refs(self) -> tuple[Ref, ...]:
        """The references in its conditions."""
        return tuple(ref for excess, _ in self.conditions for ref in excess.refs)

    def parts(self, cells: Cells) -> list[Part]:
        """Return 1 for each seed that meets them at a setting, and 0 for others."""
        met = [self._met(excess, sign, cells) for excess, sign in self.conditions]
        by_place = zip(*met, strict=True)
        settings = [(places[0][0], _all([ends for _, ends in places])) for places in by_place]
        if self.everywhere and settings:
            settings = [({}, _all([ends for _, ends in settings]))]
        return [_at(setting, ends, self.margin) for setting, ends in settings]

    @staticmethod
    def _met(excess: Expression, sign: str, cells: Cells) -> list[tuple[Setting, Ends]]:
        at_ends = (
            (setting, [compare(end, sign, 0.0).astype(np.float64) for end in ends])
            for setting, ends in _by_seed(cells, excess)
        )
        return [(setting, Ends(np.minimum(*met), np.maximum(*met))) for setting, met in at_ends]


def _all(several: Sequence[Ends]) -> Ends:
    return Ends(*(np.min([ends[end] for ends in several], axis=0) for end in (0, 1)))


@dataclass(frozen=True)
class Trend(AlongAxis):
    """A fall or a rise along a parameter, on every line of the grid: by the order of its values."""

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

    def parts(self, cells: Cells) -> list[Part]:
        """Return, for each line, its rank correlation, the rank of its end, and how far it turns.

        A curve that falls, rises by more than half of its range and falls again does not fall.
        """
        parts = []
        for line, x, between in self.lines(cells):
            values = np.where(between.known, between.low, np.nan)
            signed = -values if self.rises else values
            for name, ends, margin, least in (
                (WHOLE, _rank_correlations(x, values), self.margin, -1.0),
                ("its end", _end_ranks(signed), self.STAYS, 0.0),
                ("its turn", _turns(signed), self.TURNS, -1.0),
            ):
                place = _joined(describe_values(line), name)
                parts.append(Part(place, *ends, margin, within=(least, 1.0)))
        return parts


@dataclass(frozen=True)
class Power(AlongAxis):
    """The power p of a quantity ∝ parameter^p, on every line of the grid.

    With `throughout` a single value must not decide, and the quantity not turn at the end of the
    line. Between the last two values it does not run the other way half as fast as along the whole
    line; and without the last value p, where it can be told, is on the same side of 0.
    """

    margin: Margin
    throughout: bool = False

    def __str__(self) -> str:
        return f"power of {self.axis} in {self.measured.text}"

    def parts(self, cells: Cells) -> list[Part]:
        """Return the power on each line: least squares of logarithms, seed by seed."""
        parts = []
        axis = number_parameter(cells, self.axis)
        for line, x, ends in self.lines(cells):
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
class ContourPower(OfOne):
    """The power p of x ∝ y^p along the contour on which a quantity has a value."""

    x: str
    y: str
    threshold: float
    margin: Margin

    def __str__(self) -> str:
        return f"power of {self.y} in {self.x}"

    def parts(self, cells: Cells) -> list[Part]:
        """Return the power of each seed's contour, at each setting of the other parameters."""
        return [
            Part(describe_values(setting), *_weighted(_slope_weights(np.log(y)), logs), self.margin)
            for setting, y, logs in self.lines(cells)
        ]

    def lines(self, cells: Cells) -> Iterator[Line]:
        """Return the logarithm of x on the contour along y, at each setting of the others."""
        x, y = number_parameter(cells, self.x), number_parameter(cells, self.y)
        column = "claimed"
        for place, local in cells.settings(cells.varying((x, y))):
            rows, claimed = local.frame, _column(local, self.measured)
            seeds = np.sort(rows["seed"].unique())
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
            log_x = logs.to_numpy()[crossed].T  # (seeds, y); infinite beyond the grid, nan: unknown
            grid = np.log(rows.groupby(y)[x].agg(["min", "max"]).reindex(logs.index)[crossed])
            first, last = grid.to_numpy().T
            low = np.where(np.isposinf(log_x), last, np.where(np.isnan(log_x), -np.inf, log_x))
            high = np.where(np.isneginf(log_x), first, np.where(np.isnan(log_x), np.inf, log_x))
            yield Line(place, logs.index.to_numpy(dtype=np.float64)[crossed], Ends(low, high))


Quantity = Level | Share | Trend | Power | ContourPower

WHOLE = "the whole line"
"""What a line is called beside its end."""

LEAST_FOR_POWER = 3
"""The fewest values of a parameter along which a trend or a power can be told."""


def _at(setting: Mapping[str, Any], ends: Ends, margin: Margin) -> Part:
    return Part(describe_values(setting), ends.low, ends.high, margin)


def _joined(place: str, part: str) -> str:
    return f"{place}, {part}" if place else part


def number_parameter(cells: Cells, text: str) -> str:
    """Return the name of a parameter that is a number, which has an order and logarithms."""
    named = cells.schema.placed.get(text)
    numbers = [name for name in cells.parameters if cells.schema[name].is_number]
    if named is None or named.name not in numbers:
        known = ", ".join(sorted(numbers)) or "none"
        raise BadValue("claim", text, f"it takes a parameter that is a number; known: {known}.")
    return named.name


def _by_seed(cells: Cells, measured: Expression) -> list[tuple[Setting, Ends]]:
    """Each setting with the ends of an expression's number for each seed."""
    found = cells.by_seed(measured.text)
    ends = map(Ends, found.low, found.high)
    return list(zip(found.settings, ends, strict=True))


def _column(cells: Cells, measured: Expression) -> pd.Series[float]:
    expression = read_expression(measured.text, Names(cells.schema.names), "claim")
    values = {
        name: cells.numbers(name, missed=False).to_numpy(np.float64) for name in expression.names
    }
    return pd.Series(expression.value(values), cells.frame.index)


def _lines(cells: Cells, measured: Expression, axis: str, fewest: int) -> Iterator[Line]:
    settings = _by_seed(cells, measured)
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
            where = describe_values(dict(others))
            add_remark(f"Left out: {where}, with fewer than {fewest} values of {axis}.")
            continue
        x = np.array([position for position, _ in points])
        low, high = (np.stack([ends[end] for _, ends in points], axis=1) for end in (0, 1))
        yield Line(dict(others), x, Ends(low, high))


def _rank_correlations(x: Floats, values: Floats) -> Ends:
    """The ends of the rank correlation of each row, (seeds, points), with x; 0 of a constant row.

    A value that is nan may be any number.
    """
    from scipy.stats import rankdata

    order = rankdata(x) - (len(x) + 1) / 2
    ranks = rankdata(values, axis=1, nan_policy="omit")
    low, high = np.array([_correlations(order, row) for row in ranks]).T
    return Ends(low, high)


def _correlations(order: Floats, ranks: Floats) -> Floats:
    """The least and the most that the correlation of a row can be, of which some ranks are nan.

    All unknown values begin below the others, in the order of x. One that rises past a value adds
    the difference of their places to the products; so each is taken as high as adds the most.
    """
    unknown = np.isnan(ranks)
    places = order[unknown]
    ranks = np.where(unknown, np.cumsum(unknown), ranks + unknown.sum())
    by_value = order[~unknown][np.argsort(ranks[~unknown])]
    risen = np.cumsum(places[:, None] - by_value[None, :], axis=1)  # (unknown, known)
    swapped = np.triu(places[None, :] - places[:, None]).sum()
    more = [risen.min(axis=1, initial=0.0).sum() - swapped, risen.max(axis=1, initial=0.0).sum()]
    centred = ranks - ranks.mean()
    norm = np.sqrt((centred @ centred) * (order @ order))
    return np.clip((centred @ order + more) / norm, -1.0, 1.0) if norm > 0 else np.zeros(2)


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
