"""Quantities of a user's claim: one number per seed, at every setting or on average.

A part is such a number with its margin: `test_error` at one setting, or the power of one line of a
grid. A number that is not known, of a cell that failed or is absent, lies between two ends.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.claims.cells import describe_values
from overfit_cli.claims.rules import Margin
from overfit_cli.core.arrays import Floats, finite_column, varying
from overfit_cli.core.cell import taken_columns
from overfit_cli.core.claim import add_remark, inconclusive, not_run
from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import ParameterInfo, StudyParameters, describe, parse_value
from overfit_cli.core.parameters import spellings as parameter_spellings
from overfit_cli.core.text import plural, suggestion
from overfit_cli.stats.crossings import crossing_table, crossings
from overfit_cli.stats.equations import Expression, parse_condition, parse_expression

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
class Table:
    """The cells that a claim is judged on, and what their columns are called.

    Attributes:
        cells: one row per cell, failed ones too.
        model: the study's parameters.
        symbols: the names of measured columns by their symbols.
    """

    cells: pd.DataFrame
    model: type[StudyParameters]
    symbols: Mapping[str, str] = field(default_factory=dict)

    @property
    def parameters(self) -> Mapping[str, ParameterInfo]:
        """The study's parameters that the cells have a column of."""
        return {name: info for name, info in describe(self.model).items() if name in self.cells}

    @property
    def columns(self) -> list[str]:
        """The measured columns that are numbers."""
        taken = taken_columns(self.model) - {"steps", "seconds"}
        numbers = self.cells.select_dtypes("number").columns
        return [str(name) for name in numbers if name not in taken]

    def spellings(self) -> dict[str, str]:
        """Return the name of each spelling: of parameters that are numbers, and of columns."""
        numbers = {
            name: info for name, info in self.parameters.items() if info.kind in ("int", "float")
        }
        columns = {name: name for name in self.columns}
        return {**self.symbols, **parameter_spellings(numbers), **columns}

    def parameter(self, text: str) -> str:
        """Return the name of a parameter.

        Raises:
            BadValue: if there is none of this name or symbol.
        """
        spelled = parameter_spellings(self.parameters)
        if text not in spelled:
            raise BadValue("claim", text, f"it is not a parameter; {suggestion(text, spelled)}")
        return spelled[text]

    def chosen(self, conditions: Sequence[str]) -> Table:
        """Return the cells that meet all conditions on parameters.

        Raises:
            BadValue: for a condition that is none.
            UndecidedError: `not run` where no cell meets them.
        """
        keep = np.ones(len(self.cells), dtype=bool)
        for text in conditions:
            keep &= self._meets(text)
        if not keep.any():
            raise not_run(f"It needs cells where {' and '.join(conditions)}; these have none.")
        return Table(self.cells[keep], self.model, self.symbols)

    def _meets(self, text: str) -> NDArray[np.bool_]:
        """Which cells meet a condition: `snr > 2`, `n = 10,20`, `method = ridge`."""
        equality = re.fullmatch(r"\s*(\w+)\s*(=|==|!=)\s*([^<>=!]+)", text)
        spelled = parameter_spellings(self.parameters)
        if equality and (name := spelled.get(equality[1])) is not None:
            info = self.parameters[name]
            if info.kind not in ("int", "float") or "," in equality[3]:
                values = [_value(info, part) for part in equality[3].split(",")]
                same: NDArray[np.bool_] = self.cells[name].isin(values).to_numpy()
                return ~same if equality[2] == "!=" else same
        measured = [name for name in self.columns if re.search(rf"\b{name}\b", text)]
        if measured and measured[0] not in spelled:
            accepts = f"{measured[0]} is measured: to choose cells by it would choose outcomes."
            raise BadValue("where", text.strip(), accepts)
        numbers = {n: i for n, i in self.parameters.items() if i.kind in ("int", "float")}
        condition = parse_condition("where", text, parameter_spellings(numbers))
        values_by_name = {name: self.cells[name].to_numpy(float) for name in condition.names}
        return condition.holds(values_by_name)

    def places(self, without: Sequence[str] = ()) -> list[str]:
        """Return the parameters that vary, but for some."""
        return [name for name in varying(self.cells, self.parameters) if name not in without]


def _value(info: ParameterInfo, text: str) -> object:
    """A value of a parameter, refused in a sentence about the claim."""
    try:
        return parse_value(info, text.strip())
    except BadValue as error:
        raise BadValue("where", f"{info.name}={text.strip()}", error.accepts) from None


# Expressions of columns, some at chosen values of parameters

REFERENCE = re.compile(r"([^\W\d]\w*)\s*\[([^\[\]]*)\]")


@dataclass(frozen=True)
class Measured:
    """An expression of columns and parameters: `test_error[method=ridge] - 2*d/n`."""

    text: str

    def by_seed(self, table: Table) -> Iterator[tuple[Mapping[str, Any], Floats]]:
        """Return each setting with the expression's number for each seed, nan where not known.

        The settings are of the parameters that vary, but for those that brackets choose.

        Raises:
            BadValue: for a name that is neither a column nor a parameter.
        """
        references = [(match[0], *match.groups()) for match in REFERENCE.finditer(self.text)]
        chosen = [(whole, name, _chosen(table, inside)) for whole, name, inside in references]
        pinned = {name for _, _, values in chosen for name in values}
        for whole, _, values in chosen:
            if values.keys() != pinned:
                lacking = ", ".join(sorted(pinned - values.keys()))
                raise BadValue("claim", whole, f"say in its brackets too: {lacking}.")
        plain, spelled = self.text, table.spellings()
        names = dict(spelled)
        for number, (whole, name, _) in enumerate(chosen):
            if spelled.get(name) not in table.columns:
                accepts = f"{name!r} is no measured column; {suggestion(name, table.columns)}"
                raise BadValue("claim", whole, accepts)
            plain = plain.replace(whole, f"reference_{number}")
            names[f"reference_{number}"] = f"reference_{number}"
        expression = _expression(plain, names, self.text)
        self._check_pinned(expression, table, pinned)
        places = table.places(without=sorted(pinned))
        seeds = np.sort(table.cells["seed"].unique())
        for place, rows in _settings(table.cells, places):
            values: dict[str, Floats] = {}
            for name in expression.names:
                if name.startswith("reference_"):
                    _, column, selected = chosen[int(name.removeprefix("reference_"))]
                    keep = np.logical_and.reduce([rows[p] == v for p, v in selected.items()])
                    values[name] = _of_seeds(rows[keep], spelled[column], seeds)
                elif name in table.columns:
                    values[name] = _of_seeds(rows, name, seeds)
                else:
                    values[name] = np.full(len(seeds), float(rows[name].iloc[0]))
            numbers = expression.value(values)
            known = np.logical_and.reduce([np.isfinite(column) for column in values.values()])
            if (known & ~np.isfinite(numbers)).any():
                raise inconclusive(f"{self.text} is not a number at {describe_values(place)}.")
            yield place, np.where(known, numbers, np.nan)

    def _check_pinned(self, expression: Expression, table: Table, pinned: set[str]) -> None:
        """Refuse names that have several values where brackets choose some."""
        loose = expression.names & (pinned | (set(table.columns) if pinned else set()))
        if loose:
            name = min(loose)
            where = ", ".join(f"{parameter}=..." for parameter in sorted(pinned))
            raise BadValue("claim", name, f"say where it is taken: {name}[{where}].")


def _expression(text: str, names: Mapping[str, str], shown: str) -> Expression:
    try:
        return parse_expression("claim", text, names, "columns and parameters")
    except BadValue as error:
        known = {name: meant for name, meant in names.items() if meant[:10] != "reference_"}
        if len(known) == len(names):
            raise
        raise BadValue("claim", shown, error.accepts) from None


def _chosen(table: Table, inside: str) -> dict[str, object]:
    """The values in brackets: `method=ridge, d=20`."""
    values: dict[str, object] = {}
    for part in inside.split(","):
        name, sign, text = part.partition("=")
        if not sign:
            raise BadValue("claim", f"[{inside}]", "write [NAME=VALUE], or several with commas.")
        parameter = table.parameter(name.strip())
        value = _value(table.parameters[parameter], text)
        present = sorted(table.cells[parameter].unique().tolist())
        if value not in present:
            some = ", ".join(map(str, present[:6]))
            raise not_run(f"It needs cells of {parameter}={value}; these have {some}.")
        values[parameter] = value
    return values


def _settings(
    cells: pd.DataFrame, names: Sequence[str]
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Each setting of these parameters, with its rows."""
    if not names:
        yield {}, cells
        return
    for values, rows in cells.groupby(list(names), sort=True, dropna=False):
        yield dict(zip(names, values, strict=True)), rows


def _of_seeds(rows: pd.DataFrame, column: str, seeds: NDArray[Any]) -> Floats:
    """A column of one setting by seed, nan where the cell is absent or not done."""
    if column == "steps":
        numbers = rows[column].astype(float).where(rows["status"] == "done")
    else:
        numbers = finite_column(rows, column)
    by_seed = pd.Series(numbers.to_numpy(), rows["seed"].to_numpy())
    if not by_seed.index.is_unique:
        raise inconclusive("Several cells of a seed have the same setting.")
    return by_seed.reindex(seeds).to_numpy(dtype=np.float64)


# Quantities


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
        for place, rows in _settings(table.cells, table.places(without=(x, y))):
            seeds = np.sort(rows["seed"].unique())
            local = Table(rows, table.model, table.symbols)
            claimed = _column(local, self.measured)
            points = crossings(rows.assign(**{column: claimed}), x, y, column, self.threshold)
            logs = crossing_table(points, y).reindex(columns=seeds)  # (y, seeds)
            crossed = np.isfinite(logs.to_numpy()).sum(axis=1) * 2 > len(seeds)
            if left := int((~crossed).sum()):
                add_remark(
                    f"Of {plural(len(logs), 'value')} of {y}, {left} are left out: at most half "
                    f"of their seeds cross {self.threshold:g}."
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
    expression = _expression(measured.text, table.spellings(), measured.text)
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
    """Each line along an axis: its other parameters, the axis's values, and numbers (seeds, points).

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
            place = describe_values(dict(others))
            add_remark(f"At {place} there are fewer than {fewest} values of {axis}: left out.")
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
    """The rise from a row's least value to its end, as a share of its range; 0 of a constant row."""
    least, range_ = values.min(axis=1), np.ptp(values, axis=1)
    return np.divide(
        values[:, -1] - least,
        range_,
        out=np.where(np.isnan(range_), np.nan, 0.0),
        where=range_ > 0,
    )


def _slopes(x: Floats, values: Floats) -> Floats:
    """The least-squares slope of each row of values, (seeds, points), on x; nan where one is."""
    centred = x - x.mean()
    return np.asarray(values @ centred / (centred @ centred))
