"""Expressions of measured columns on the cells of a run, by the names that a user writes.

`test_error[method=ridge] - 2*d/n` has a number for each setting and seed, or two ends of it where
a cell failed, is absent, or was stopped too early.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.claims.cells import describe_values
from overfit_cli.claims.ranges import Range
from overfit_cli.core.arrays import Floats, finite_column, varying
from overfit_cli.core.cell import taken_columns
from overfit_cli.core.claim import inconclusive, not_run
from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import ParameterInfo, StudyParameters, describe, parse_value
from overfit_cli.core.parameters import spellings as parameter_spellings
from overfit_cli.core.text import suggestion
from overfit_cli.stats.equations import Expression, parse_condition, parse_expression


@dataclass(frozen=True)
class Table:
    """The cells that a claim is judged on, failed ones too, and what their columns are called.

    Attributes:
        symbols: the names of measured columns by their symbols.
        between: of some measured columns the two columns with the least and the most that a number
            may be which a cell lacks: that of steps is at least those that were taken.
    """

    cells: pd.DataFrame
    model: type[StudyParameters]
    symbols: Mapping[str, str] = field(default_factory=dict)
    between: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def parameters(self) -> Mapping[str, ParameterInfo]:
        """The study's parameters that the cells have a column of."""
        return {name: info for name, info in describe(self.model).items() if name in self.cells}

    @property
    def numbers(self) -> Mapping[str, ParameterInfo]:
        """Those of its parameters that are numbers."""
        return {n: info for n, info in self.parameters.items() if info.kind in ("int", "float")}

    @property
    def columns(self) -> list[str]:
        """The measured columns that are numbers."""
        taken = taken_columns(self.model) - {"steps", "seconds"}
        numbers = self.cells.select_dtypes("number").columns
        return [str(name) for name in numbers if name not in taken]

    def spellings(self) -> dict[str, str]:
        """Return the name of each spelling: of parameters that are numbers, and of columns."""
        columns = {name: name for name in self.columns}
        return {**self.symbols, **parameter_spellings(self.numbers), **columns}

    def parameter(self, text: str) -> str:
        """Return the name of a parameter."""
        spelled = parameter_spellings(self.parameters)
        if text not in spelled:
            raise BadValue("claim", text, f"it is not a parameter; {suggestion(text, spelled)}")
        return spelled[text]

    def number_parameter(self, text: str) -> str:
        """Return the name of a parameter that is a number, which has an order and logarithms."""
        name = self.parameter(text)
        if name not in self.numbers:
            known = ", ".join(sorted(self.numbers)) or "none"
            raise BadValue("claim", text, f"it takes a parameter that is a number; known: {known}.")
        return name

    def chosen(self, conditions: Sequence[str]) -> Table:
        """Return the cells that meet all conditions on parameters, `n is largest` the last."""
        extremes = [text for text in conditions if EXTREME.fullmatch(text.strip())]
        keep = np.ones(len(self.cells), dtype=bool)
        for text in (text for text in conditions if text not in extremes):
            keep &= self._meets(text)
        if not keep.any():
            raise not_run(f"It needs cells where {' and '.join(conditions)}; these have none.")
        chosen = replace(self, cells=self.cells[keep])
        for text in extremes:
            name, value = chosen.extreme(text.strip())
            chosen = replace(chosen, cells=chosen.cells[chosen.cells[name] == value])
        return chosen

    def extreme(self, text: str) -> tuple[str, object]:
        """Return the parameter and its value that a text such as `n is largest` names."""
        match = EXTREME.fullmatch(text)
        assert match is not None
        name = self.parameter(match[1])
        if name not in self.numbers:
            raise BadValue("where", text, f"{name} is no number: none of its values is largest.")
        values = self.cells[name]
        return name, values.max() if match[2] == "largest" else values.min()

    def _meets(self, text: str) -> NDArray[np.bool_]:
        """Return which cells meet a condition: `snr > 2`, `n = 10,20`, `method = ridge`."""
        equality = re.fullmatch(r"\s*(\w+)\s*(=|==|!=)\s*([^<>=!]+)", text)
        spelled = parameter_spellings(self.parameters)
        if equality and (name := spelled.get(equality[1])) is not None:
            info = self.parameters[name]
            if name not in self.numbers or "," in equality[3]:
                values = [_value(info, part) for part in equality[3].split(",")]
                same: NDArray[np.bool_] = self.cells[name].isin(values).to_numpy()
                return ~same if equality[2] == "!=" else same
        measured = [name for name in self.columns if re.search(rf"\b{name}\b", text)]
        if measured and measured[0] not in spelled:
            accepts = f"{measured[0]} is measured: choosing cells by it would choose outcomes."
            raise BadValue("where", text.strip(), accepts)
        condition = parse_condition("where", text, parameter_spellings(self.numbers))
        values_by_name = {name: self.cells[name].to_numpy(float) for name in condition.names}
        return condition.holds(values_by_name)

    def places(self, without: Sequence[str] = ()) -> list[str]:
        """Return the parameters that vary, but for some."""
        return [name for name in varying(self.cells, self.parameters) if name not in without]


EXTREME = re.compile(r"([^\W\d]\w*) is (largest|smallest)")
"""A condition that the largest value of a parameter meets, or the smallest."""


def _value(info: ParameterInfo, text: str) -> object:
    try:
        return parse_value(info, text.strip())
    except BadValue as error:
        raise BadValue("where", f"{info.name}={text.strip()}", error.accepts) from None


# Expressions of columns, some at chosen values of parameters

REFERENCE = re.compile(r"([^\W\d]\w*)\s*\[([^\[\]]*)\]")


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


@dataclass(frozen=True)
class Measured:
    """An expression of columns and parameters: `test_error[method=ridge] - 2*d/n`."""

    text: str

    def by_seed(self, table: Table) -> Iterator[tuple[Mapping[str, Any], Ends]]:
        """Return each setting with the ends of the expression's number for each seed.

        The settings are of the parameters that vary, but for those that brackets choose.
        """
        references = [(match[0], *match.groups()) for match in REFERENCE.finditer(self.text)]
        chosen = [(whole, name, _chosen(table, inside)) for whole, name, inside in references]
        pinned = {name for _, _, values in chosen for name in values}
        for whole, _, given in chosen:
            if given.keys() != pinned:
                lacking = ", ".join(sorted(pinned - given.keys()))
                raise BadValue("claim", whole, f"its brackets must also name {lacking}.")
        plain, spelled, columns = self.text, table.spellings(), table.columns
        names = dict(spelled)
        for number, (whole, name, _) in enumerate(chosen):
            if spelled.get(name) not in columns:
                accepts = f"{name!r} is no measured column; {suggestion(name, columns)}"
                raise BadValue("claim", whole, accepts)
            plain = plain.replace(whole, f"reference_{number}")
            names[f"reference_{number}"] = f"reference_{number}"
        expression = read_expression(plain, names, self.text)
        self._check_pinned(expression, table, pinned)
        places = table.places(without=sorted(pinned))
        seeds = np.sort(table.cells["seed"].unique())
        for place, rows in settings_of(table.cells, places):
            values: dict[str, Ends] = {}
            for name in expression.names:
                if name.startswith("reference_"):
                    _, column, selected = chosen[int(name.removeprefix("reference_"))]
                    keep = np.logical_and.reduce([rows[p] == v for p, v in selected.items()])
                    values[name] = _of_seeds(table, rows[keep], spelled[column], seeds)
                elif name in columns:
                    values[name] = _of_seeds(table, rows, name, seeds)
                else:
                    values[name] = Ends(*[np.full(len(seeds), float(rows[name].iloc[0]))] * 2)
            ends = _ends_of(expression, values)
            known = np.logical_and.reduce([value.known for value in values.values()])
            if (known & ~np.isfinite(ends.low)).any():
                raise inconclusive(f"{self.text} is not a number at {describe_values(place)}.")
            yield place, ends

    def _check_pinned(self, expression: Expression, table: Table, pinned: set[str]) -> None:
        loose = expression.names & (pinned | (set(table.columns) if pinned else set()))
        if loose:
            name = min(loose)
            where = ", ".join(f"{parameter}=..." for parameter in sorted(pinned))
            raise BadValue("claim", name, f"say where it is taken: {name}[{where}].")


def _ends_of(expression: Expression, values: Mapping[str, Ends]) -> Ends:
    numbers = expression.value({name: ends.low for name, ends in values.items()})
    if all(ends.known.all() for ends in values.values()):
        return Ends(numbers, numbers)
    with np.errstate(all="ignore"):
        term = cast("Callable[[Mapping[str, Range]], Range]", expression.term)
        ranges = term({name: Range(*ends) for name, ends in values.items()})
    nothing = np.logical_or.reduce([ends.low == -np.inf for ends in values.values()])
    return Ends(np.where(nothing, -np.inf, ranges.low), np.where(nothing, np.inf, ranges.high))


def read_expression(text: str, names: Mapping[str, str], shown: str) -> Expression:
    """Return the expression of a text in columns and parameters."""
    try:
        return parse_expression("claim", text, names, "columns and parameters")
    except BadValue as error:
        known = {name: meant for name, meant in names.items() if meant[:10] != "reference_"}
        if len(known) == len(names):
            raise
        raise BadValue("claim", shown, error.accepts) from None


def in_brackets(table: Table, inside: str) -> dict[str, object]:
    """Return the values in brackets by parameter: `method=ridge, d=20`, or `n is largest`."""
    values: dict[str, object] = {}
    for part in map(str.strip, inside.split(",")):
        if EXTREME.fullmatch(part):
            parameter, extreme = table.extreme(part)
            values[parameter] = extreme
            continue
        name, sign, text = part.partition("=")
        if not sign:
            raise BadValue("claim", f"[{inside}]", "write [NAME=VALUE], or several with commas.")
        parameter = table.parameter(name.strip())
        values[parameter] = _value(table.parameters[parameter], text)
    return values


def _chosen(table: Table, inside: str) -> dict[str, object]:
    values = in_brackets(table, inside)
    for parameter, value in values.items():
        present = sorted(table.cells[parameter].unique().tolist())
        if value not in present:
            near = _nearest(present, value)
            raise not_run(f"It needs cells of {parameter}={value}; these have {near}.")
    return values


_SHOWN = 6
"""The most values of a parameter that a message names."""


def _nearest(present: Sequence[Any], value: object) -> str:
    if len(present) <= _SHOWN:
        return ", ".join(map(str, present))
    if isinstance(value, str | bool):
        return f"{len(present)} values, such as {present[0]}"
    number = float(str(value))
    lower, upper = sorted(sorted(present, key=lambda each: abs(each - number))[:2])
    return f"{len(present)} values, the nearest {lower:.6g} and {upper:.6g}"


def settings_of(
    cells: pd.DataFrame, names: Sequence[str]
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Return each setting of these parameters, with its rows."""
    if not names:
        yield {}, cells
        return
    for values, rows in cells.groupby(list(names), sort=True, dropna=False):
        yield dict(zip(names, values, strict=True)), rows


def _of_seeds(table: Table, rows: pd.DataFrame, column: str, seeds: NDArray[Any]) -> Ends:
    if column == "steps":
        numbers = rows[column].astype(float).where(rows["status"] == "done")
    else:
        numbers = finite_column(rows, column)
    low, high = numbers, numbers
    if column in table.between:
        low, high = (numbers.fillna(rows[end].astype(float)) for end in table.between[column])
    seeds_here = rows["seed"].to_numpy()
    if len(np.unique(seeds_here)) < len(seeds_here):
        raise inconclusive("Several cells of a seed have the same setting.")
    at_seed = np.searchsorted(seeds, seeds_here)
    ends = np.full((2, len(seeds)), [[-np.inf], [np.inf]])  # low and high of each seed
    for side, values in enumerate((low, high)):
        given = values.to_numpy(np.float64)
        known = ~np.isnan(given)
        ends[side, at_seed[known]] = given[known]
    return Ends(*ends)
