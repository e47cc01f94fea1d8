"""Points of a grid that is no full product: derived values, and conditions that leave out some."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from overfit_cli.core.arrays import Floats
from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import ParameterInfo, Value
from overfit_cli.stats.equations import CLOSE, Condition, Expression
from overfit_cli.sweeps.ranges import rounded

FARTHEST = 1e-6
"""The largest distance to a whole number that is round-off."""


@dataclass(frozen=True)
class Points:
    """Combinations of parameters.

    Attributes:
        columns: for each parameter that was set, its value at every point.
    """

    infos: Mapping[str, ParameterInfo]
    count: int
    columns: Mapping[str, Sequence[Any]]

    def rows(self, names: Sequence[str]) -> Iterator[tuple[Value, ...]]:
        """Give the values of these parameters at each point."""
        if not names:
            return itertools.repeat((), self.count)
        return zip(*(self.columns[name] for name in names), strict=True)

    def distinct(self) -> Points:
        """Return the points without those that repeat another."""
        rows = list(dict.fromkeys(self.rows(list(self.columns))))
        columns = {name: [row[index] for row in rows] for index, name in enumerate(self.columns)}
        return replace(self, count=len(rows), columns=columns) if columns else self

    def chosen(self, condition: Condition) -> Points:
        """Return the points at which a condition holds."""
        numbers = {
            name: self.numbers(name, range(self.count), "only", condition.text)
            for name in condition.names
        }
        holds = condition.holds(numbers).tolist()
        if not any(holds):
            raise BadValue("only", condition.text, "no point of the grid meets it.")
        columns = {
            name: list(itertools.compress(column, holds)) for name, column in self.columns.items()
        }
        return replace(self, count=sum(holds), columns=columns)

    def numbers(self, name: str, indices: Sequence[int], user: str, text: str) -> Floats:
        """Return a parameter's values at some points: its default where it wasn't set."""
        info = self.infos[name]
        if info.kind not in ("int", "float"):
            raise BadValue(user, text, f"{name} is no number; it takes {info.accepts}.")
        if name in self.columns:
            return np.array([self.columns[name][index] for index in indices], dtype=np.float64)
        if info.default is None:
            raise BadValue(name, None, f"it has no default; give {info.accepts}.")
        return np.full(len(indices), info.default, dtype=np.float64)


def solved(points: Points, derived: Mapping[str, Sequence[Expression]]) -> Points:
    """Return the points with a value in place of each expression."""
    for name in _order(derived):
        column = list(points.columns[name])
        for expression in dict.fromkeys(derived[name]):
            indices = [index for index, item in enumerate(column) if item == expression]
            numbers = {
                other: points.numbers(other, indices, name, expression.text)
                for other in expression.names
            }
            results = np.zeros(len(indices)) + expression.value(numbers)
            for turn, (index, result) in enumerate(zip(indices, results.tolist(), strict=True)):
                setting = {other: float(values[turn]) for other, values in numbers.items()}
                column[index] = _value(points.infos[name], expression, result, setting)
        points = replace(points, columns={**points.columns, name: column})
    return points


def _order(derived: Mapping[str, Sequence[Expression]]) -> list[str]:
    needed = {
        name: {other for expression in expressions for other in expression.names} & derived.keys()
        for name, expressions in derived.items()
    }
    order = list[str]()
    while left := [name for name in derived if name not in order]:
        ready = [name for name in left if needed[name] <= set(order)]
        if not ready:
            name = _circular(left, needed)
            text = ",".join(map(str, derived[name]))
            others = sorted(needed[name] & set(left) - {name})
            turn = f"{' and '.join(others)}, which depends on {name}" if others else "itself"
            raise BadValue(name, text, f"{name} depends on {turn}; give one of them numbers.")
        order += ready
    return order


def _circular(left: Sequence[str], needed: Mapping[str, set[str]]) -> str:
    seen, name = list[str](), left[0]
    while name not in seen:
        seen.append(name)
        name = next(other for other in left if other in needed[name])
    return name


def _value(
    info: ParameterInfo, expression: Expression, number: float, setting: Mapping[str, float]
) -> Value:
    whole = info.kind == "int"
    if math.isfinite(number):
        if not whole:
            return rounded(number) + 0.0
        near = round(number)
        is_near = abs(number - near) <= min(FARTHEST, CLOSE * max(1.0, abs(number)))
        if is_near and abs(near) < 2**63:
            return near
    places = ", ".join(f"{name} = {value:g}" for name, value in sorted(setting.items()))
    where = f" at {places}" if places else ""
    hint = "; round(…), floor(…) or ceil(…) makes it whole" if whole else ""
    accepts = f"it is {number:g}{where}, and {info.name} takes {info.accepts}{hint}."
    raise BadValue(info.name, expression.text, accepts)
