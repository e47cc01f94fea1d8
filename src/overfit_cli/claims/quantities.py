"""Quantities of a claim: one number per seed, at every setting.

A part is such a number with its margin: `test_error` at one setting, or the power of one line of a
grid. A number that is not known, of a cell that failed or is absent, lies between two ends.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from overfit_cli.claims.bounds import Bound
from overfit_cli.claims.cells import describe_values
from overfit_cli.claims.parts import SHAPE, Margin, Part, tolerance_margin
from overfit_cli.core.arrays import Floats, finite_column
from overfit_cli.core.cells import Cells, records
from overfit_cli.core.claim import IN_MARGIN, UndecidedError, add_remark, inconclusive, not_run
from overfit_cli.core.errors import BadValue
from overfit_cli.core.expressions import Expression, Ref, compare
from overfit_cli.stats.boundaries import crossings
from overfit_cli.stats.intervals import LEVEL, order_tail


class Line(NamedTuple):
    """Numbers along x, (points,): the ends of each seed's number, (seeds, points).

    They agree where it is known, and are infinite where nothing is.
    """

    place: str
    x: Floats
    low: Floats
    high: Floats


Ends = tuple[Floats, Floats]
"""The least and the most that the number of each seed may be, both of shape (seeds,)."""


@dataclass(frozen=True)
class Level:
    """A number at every setting: `test_error < 0.05`."""

    measured: Expression
    margin: Margin

    def __str__(self) -> str:
        return self.measured.text

    def parts(self, cells: Cells) -> list[Part]:
        """Return the number at each setting."""
        found = cells.by_seed(self.measured.text)
        return _at_settings(found.settings, found.low, found.high, self.margin)


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

    def parts(self, cells: Cells) -> list[Part]:
        """Return 1 for each seed that meets them at a setting, and 0 for others."""
        found = [(cells.by_seed(excess.text), sign) for excess, sign in self.conditions]
        settings = found[0][0].settings
        ends = [[compare(end, sign, 0.0) for end in (one.low, one.high)] for one, sign in found]
        met: Floats = np.array(ends, np.float64)  # (conditions, ends, settings, seeds)
        for index, (one, sign) in enumerate(found):
            if sign == "=":
                met[index] = (one.low == 0) & (one.high == 0), (one.low <= 0) & (one.high >= 0)
        low, high = met.min(axis=(0, 1)), met.max(axis=1).min(axis=0)
        if self.everywhere and settings:
            settings, low, high = [{}], low.min(axis=0)[None], high.min(axis=0)[None]
        return _at_settings(settings, low, high, self.margin)


@dataclass(frozen=True)
class Trend:
    """A fall or a rise along a parameter, on every line of the grid: by the order of its values.

    A jump at one end of a line decides none: it falls without its first and its last value, too.

    Attributes:
        size: of the rank correlation at the margin's end.
    """

    measured: Expression
    axis: str
    rises: bool
    size: float = 0.0

    STAYS = Margin(most=0.5, because="half of the line")
    TURNS = Margin(most=0.5, because="half of the range")

    @property
    def margin(self) -> Margin:
        """The margin of the rank correlation."""
        return Margin(least=self.size) if self.rises else Margin(most=0.0 - self.size)

    def __str__(self) -> str:
        return self.measured.text

    def parts(self, cells: Cells) -> list[Part]:
        """Return, for each line, its rank correlation, the rank of its end, and how far it turns.

        A curve that falls, rises by more than half of its range and falls again does not fall.
        Lines of more than three values have their rank correlation without either end, too.
        """
        parts = []
        side = (0.0, math.inf) if self.rises else (-math.inf, 0.0)
        for place, x, low, high in _lines(cells, self.measured, self.axis):
            values = np.where(low == high, low, np.nan)
            signed = -values if self.rises else values
            told = [
                (WHOLE, _rank_correlations(x, values), self.margin, -1.0),
                ("its end", _end_ranks(signed), self.STAYS, 0.0),
                ("its turn", _turns(signed), self.TURNS, -1.0),
            ]
            if len(x) > LEAST_FOR_POWER:
                for end, at in (("first", slice(1, None)), ("last", slice(-1))):
                    rest = f"all but the {end} value"
                    ends = _rank_correlations(x[at], values[:, at])
                    told.append((rest, ends, Margin(*side, because=rest), -1.0))
            for name, ends, margin, least in told:
                parts.append(Part(_joined(place, name), *ends, margin, within=(least, 1.0)))
        return parts


@dataclass(frozen=True)
class Power:
    """The power p of a quantity ∝ parameter^p, on every line of the grid.

    With `throughout` a single value must not decide, and the quantity not turn at the end of the
    line. Between the last two values it does not run the other way half as fast as along the whole
    line; and without the last value p, where it can be told, is on the same side of 0.

    Attributes:
        contour: a parameter x and a number: it is the power p of x ∝ parameter^p along the contour
            on which the quantity has that number.
    """

    measured: Expression
    axis: str
    margin: Margin
    throughout: bool = False
    contour: tuple[str, float] | None = None

    def __str__(self) -> str:
        return f"power of {self.axis} in {self.contour[0] if self.contour else self.measured.text}"

    def parts(self, cells: Cells) -> list[Part]:
        """Return the power on each line: least squares of logarithms, seed by seed."""
        parts = []
        falls = math.isinf(self.margin.least)
        side = Margin(*((-math.inf, 0.0) if falls else (0.0, math.inf)), because=SHAPE)
        for place, x, *logs in self._in_logs(cells):
            weights = _slope_weights(np.log(x))
            whole = _joined(place, WHOLE) if self.throughout else place
            parts.append(Part(whole, *_weighted(weights, *logs), self.margin))
            others = _parts_of_slope(np.log(x), weights) if self.throughout else {}
            for name, part in others.items():
                parts.append(Part(_joined(place, name), *_weighted(part, *logs), side))
        return parts

    def local(self, cells: Cells) -> list[list[Part]]:
        """Return the powers between neighbours: of up to `MOST_PIECES` pieces, those on all lines.

        Lines may have fewer pieces than others.
        """
        pieces = [list[Part]() for _ in range(MOST_PIECES)]
        for place, x, *logs in self._in_logs(cells):
            for parts, (first, last) in zip(pieces, _pieces(x), strict=False):
                at = slice(first, last + 1)
                where = _joined(place, f"{self.axis}={x[first]:.6g} to {x[last]:.6g}")
                local = _weighted(_slope_weights(np.log(x[at])), *(each[:, at] for each in logs))
                parts.append(Part(where, *local, self.margin, "mean"))
        return [parts for parts in pieces if parts]

    def _in_logs(self, cells: Cells) -> Iterator[Line]:
        for place, x, low, high in _lines(cells, self.measured, self.axis, self.contour):
            if (x <= 0).any() or (high <= 0).any():
                axis = number_parameter(cells, self.axis)
                raise inconclusive(f"{axis} or {self.measured.text} is 0 or less: no logarithm.")
            with np.errstate(divide="ignore"):
                yield Line(place, x, np.log(np.maximum(low, 0.0)), np.log(high))


@dataclass(frozen=True)
class Crossing:
    """Where a quantity along a parameter x has a number, at every setting of the others."""

    measured: Expression
    x: str
    threshold: float
    margin: Margin

    def __str__(self) -> str:
        return f"{self.x} at {self.measured.text} = {self.threshold:g}"

    def parts(self, cells: Cells) -> list[Part]:
        """Return the x at each setting; one beyond the grid lies between its end and infinity."""
        settings, low, high = _crossings(cells, self.measured.text, self.x, self.threshold)
        return [
            Part(describe_values(setting), below, above, self.margin)
            for setting, below, above in zip(settings, low, high, strict=True)
        ]


def _crossings(
    cells: Cells, column: str, x: str, threshold: float
) -> tuple[list[dict[str, Any]], Floats, Floats]:
    """The settings, and the two ends, (settings, seeds), of the x where a quantity has a number."""
    x = number_parameter(cells, x)
    place, table = cells.places(cells.free_parameters((x,)))
    settings, rows = records(table), cells.with_column(column, option="claim").frame
    rows = rows.assign(**{PLACE: place})
    named = [describe_values(setting) for setting in settings]
    curves = [each for _, each in rows.groupby(PLACE)]
    twice = [_crosses_twice(curve, x, column, threshold) for curve in curves]
    if any(twice):
        those = f" ({'; '.join(itertools.compress(named, twice))})" if any(named) else ""
        crosses = f"{column} crosses {threshold:g} more than once along {x}{those}"
        raise inconclusive(f"{crosses}: choose a part of the grid behind `where`.")
    points = crossings(rows, x, PLACE, column, threshold)
    whole = finite_column(rows, column).notna().groupby([rows[PLACE], rows["seed"]]).all()
    known = points.set_index([PLACE, "seed"])["crossing"].reindex(whole.index).where(whole)
    found = known.unstack().to_numpy()  # (settings, seeds); nan: unknown
    beyond = np.isinf(found).mean(axis=1) >= 1 / 2
    if beyond.any():
        those = f" at {'; '.join(itertools.compress(named, beyond))}" if len(named) > 1 else ""
        bound = f"cross {threshold:g}{those}: there the end of {x} is a bound."
        add_remark(f"At most half of the seeds {bound}")
    first, last = rows.groupby(PLACE)[x].agg(["min", "max"]).to_numpy().T[:, :, None]
    low = np.where(np.isposinf(found), last, np.where(np.isnan(found), -np.inf, found))
    high = np.where(np.isneginf(found), first, np.where(np.isnan(found), np.inf, found))
    return settings, low, high


@dataclass(frozen=True)
class Powers:
    """The powers of several causes in a quantity, fitted together over all settings of each seed.

    Attributes:
        stated: the power of each cause; None where it is fitted beside the others alone.
    """

    measured: Expression
    causes: tuple[Expression, ...]
    stated: tuple[float | None, ...]
    tolerance: float

    def __str__(self) -> str:
        return f"powers of {', '.join(map(str, self.causes))} in {self.measured.text}"

    @property
    def margin(self) -> Margin:
        """The margin of the first power that is stated."""
        return next(self.margins())[1]

    def margins(self) -> Iterator[tuple[int, Margin]]:
        """Yield the place and the margin of each power that is stated."""
        for index, power in enumerate(self.stated):
            if power is not None:
                yield index, tolerance_margin(power, self.tolerance)

    def holds_where(self, statistic: str) -> str:
        """Return the condition on the powers in words."""
        powers = (f"{margin.target:g} of {self.causes[at]}" for at, margin in self.margins())
        each = f"the {statistic} over seeds of each power"
        return f"{each}{IN_MARGIN}within {self.tolerance:g} of {', '.join(powers)}"

    def parts(self, cells: Cells) -> list[Part]:
        """Return each power that is stated: least squares of logarithms, seed by seed.

        A setting of which a seed has no row, as the claim excludes it, is no point of that seed.
        """
        found, causes = cells.by_seed(self.measured.text), []
        is_there = np.zeros(found.numbers.shape, dtype=bool)  # (settings, seeds)
        place = cells.places(cells.varying())[0]
        is_there[place, np.searchsorted(found.seeds, cells.frame["seed"])] = True
        for cause in self.causes:
            numbers = cells.by_seed(cause.text).numbers  # (settings, seeds)
            if not (numbers > 0)[is_there].all():
                raise inconclusive(f"{cause} is not above 0, or not known, in every cell.")
            causes.append(np.log(numbers))
        if (found.high <= 0)[is_there].any():
            raise inconclusive(f"{self.measured} is 0 or less: no logarithm.")
        with np.errstate(divide="ignore"):
            low, high = np.log(np.maximum(found.low, 0.0)).T, np.log(found.high).T
        ends = list[Floats]()  # of each seed (causes + 1, ends)
        for seed, logs in enumerate(np.stack(causes, axis=-1).swapaxes(0, 1)):
            at = is_there[:, seed]
            design = np.column_stack([logs[at], np.ones(at.sum())])  # (settings, causes + 1)
            if np.linalg.matrix_rank(design) < design.shape[1]:
                raise not_run(f"It needs cells that tell {', '.join(map(str, self.causes))} apart.")
            weights = np.linalg.pinv(design)  # (causes + 1, settings)
            rows = low[seed][None, at], high[seed][None, at]
            ends.append(np.concatenate([np.stack(_weighted(w, *rows), axis=-1) for w in weights]))
        table = np.stack(ends)  # (seeds, causes + 1, ends)
        return [
            Part(f"power of {self.causes[index]}", table[:, index, 0], table[:, index, 1], margin)
            for index, margin in self.margins()
        ]

    def local(self, cells: Cells) -> list[list[Part]]:
        """Return the power of each cause on pieces of the grid along it, where it has these.

        A cause that is measured, and one that a piece does not tell from the others, has none.
        """
        pieces = []
        for place, (index, margin) in enumerate(self.margins()):
            numbers = cells.by_seed(self.causes[index].text).numbers  # (settings, seeds)
            if (numbers != numbers[:, :1]).any():
                continue
            at, x = numbers[cells.places(cells.varying())[0], 0], np.unique(numbers)
            for first, last in _pieces(x) if len(x) >= LEAST_FOR_POWER else ():
                inside = (at >= x[first]) & (at <= x[last])
                with suppress(UndecidedError):
                    part = self.parts(replace(cells, frame=cells.frame[inside]))[place]
                    where = f"{self.causes[index]}={x[first]:.6g} to {x[last]:.6g}"
                    pieces.append([replace(part, place=where, margin=margin, statistic="mean")])
        return pieces


def _pieces(x: Floats) -> list[tuple[int, int]]:
    """The first and the last value of up to `MOST_PIECES` pieces of a line, end to end."""
    ends = np.linspace(0, len(x) - 1, min(MOST_PIECES, len(x) - 1) + 1).round().astype(int)
    return [*itertools.pairwise(ends.tolist())]


def _parts_of_slope(log_x: Floats, weights: Floats) -> dict[str, Floats]:
    end = np.append(np.zeros(len(weights) - 2), _slope_weights(log_x[-2:]))
    parts = {"its end": end + weights / 2}
    if len(log_x) > LEAST_FOR_POWER:
        parts["all but the last value"] = np.append(_slope_weights(log_x[:-1]), 0.0)
    return parts


Curve = Trend | Power | Powers | Crossing
Quantity = Level | Share | Curve

WHOLE = "the whole line"
"""What a line is called beside its end."""

PLACE = "its place"
"""A column of settings, whose name no parameter has."""

MOST_PIECES = 4
"""The most pieces of a line, each with its own power."""

LEAST_FOR_POWER = 3
"""The fewest values of a parameter along which a trend or a power can be told."""


def references(quantity: Quantity | Bound) -> tuple[Ref, ...]:
    """Return the references in a quantity, some at chosen values of parameters."""
    if isinstance(quantity, Bound):
        return quantity.refs
    if isinstance(quantity, Powers):
        return tuple(ref for each in (quantity.measured, *quantity.causes) for ref in each.refs)
    if isinstance(quantity, Share):
        return tuple(ref for excess, _ in quantity.conditions for ref in excess.refs)
    return quantity.measured.refs


def axes_of(quantity: Quantity | Bound) -> dict[str, int]:
    """Return the parameters along which a quantity is told, with the fewest values of each."""
    if isinstance(quantity, Crossing):
        return {quantity.x: 2}
    if not isinstance(quantity, Power | Trend):
        return {}
    contour = quantity.contour if isinstance(quantity, Power) else None
    return {quantity.axis: LEAST_FOR_POWER} | ({contour[0]: 2} if contour else {})


def _at_settings(
    settings: Sequence[Mapping[str, Any]], low: Floats, high: Floats, margin: Margin
) -> list[Part]:
    """The part at each setting, of ends of shape (settings, seeds)."""
    places = map(describe_values, settings)
    return [Part(*each, margin) for each in zip(places, low, high, strict=True)]


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


def _lines(
    cells: Cells, measured: Expression, along: str, contour: tuple[str, float] | None = None
) -> Iterator[Line]:
    """The lines of the grid along a parameter, with the values that are there.

    Args:
        contour: a parameter x and a number: the values are those of x where the quantity has it.
    """
    axis = number_parameter(cells, along)
    if contour is None:
        settings, *_, low, high = cells.by_seed(measured.text)
        free = cells.free_parameters([axis])
    else:
        settings, low, high = _crossings(cells, measured.text, *contour)
        free = cells.free_parameters([axis, number_parameter(cells, contour[0])])
    lines = dict[str, list[int]]()
    for index, setting in enumerate(settings):
        place = describe_values({name: setting[name] for name in setting if name in free})
        lines.setdefault(place, []).append(index)
    if not any(len(at) >= LEAST_FOR_POWER for at in lines.values()):
        needs = f"It needs {LEAST_FOR_POWER} values of {axis} on a line"
        raise not_run(f"{needs}; these cells have fewer.")
    for place, at in lines.items():
        if len(at) < LEAST_FOR_POWER:
            add_remark(f"Left out: {place}, with fewer than {LEAST_FOR_POWER} values of {axis}.")
            continue
        x = np.array([float(settings[index][axis]) for index in at])
        yield Line(place, x, *(np.ascontiguousarray(end[at].T) for end in (low, high)))


def _rank_correlations(x: Floats, values: Floats) -> Ends:
    """The ends of the rank correlation of each row, (seeds, points), with x; 0 of a constant row.

    A value that is nan may be any number.
    """
    from scipy.stats import rankdata

    order = rankdata(x) - (len(x) + 1) / 2
    ranks = rankdata(values, axis=1, nan_policy="omit")
    low, high = np.array([_correlations(order, row) for row in ranks]).T
    return low, high


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
    return low, low + unknown.mean(axis=1)


def _turns(values: Floats) -> Ends:
    """The rise of each row between two points over the range of the median row, −1 to 1, (seeds,).

    They are the points between which the median row rises most: single rows turn by noise too.
    """
    known = np.isfinite(values)
    if not known.any(axis=0).all():
        return np.full(len(values), -1.0), np.full(len(values), 1.0)
    middle = np.nanmedian(np.where(known, values, np.nan), axis=0)  # (points,)
    first, last = np.unravel_index(np.argmax(np.triu(middle - middle[:, None])), (len(middle),) * 2)
    range_ = np.ptp(middle)
    rises = values[:, last] - values[:, first]
    shares = np.clip(rises / range_, -1.0, 1.0) if range_ > 0 else 0.0 * rises  # nan: unknown
    return np.nan_to_num(shares, nan=-1.0), np.nan_to_num(shares, nan=1.0)


def _crosses_twice(rows: pd.DataFrame, x: str, column: str, threshold: float) -> bool:
    """Whether the median along x is on one side of a threshold, the other, and the first again.

    It is on a side where its interval is; a single draw is where it is.
    """
    signs = list[float]()
    for _, values in rows.groupby(x)[column]:
        numbers = np.sort(values.dropna().to_numpy(dtype=np.float64))
        tail = order_tail(len(numbers), 1 - LEVEL) or int(len(numbers) == 1)
        if tail:
            ends = np.sign(numbers[[tail - 1, -tail]] - threshold)
            signs += [ends[0]] * bool(ends[0] == ends[1] != 0 and signs[-1:] != [ends[0]])
    return len(signs) > 2


def _slope_weights(x: Floats) -> Floats:
    centred = x - x.mean()
    return np.asarray(centred / (centred @ centred))


def _weighted(weights: Floats, low: Floats, high: Floats) -> Ends:
    """The ends of weighted sums of the rows of numbers, (seeds, points)."""
    used = np.abs(weights) >= 1e-12 * np.abs(weights).max()
    low, high, weights = low[:, used], high[:, used], weights[used]
    rising = weights > 0
    return np.where(rising, low, high) @ weights, np.where(rising, high, low) @ weights
