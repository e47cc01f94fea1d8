"""Grids: the product of the axes and the seeds, and the language of ranges.

Values come as texts from the command line and from presets, or as values from Python: `2:20`,
`2:20:3`, `0.1:16`, `0.1:16:100:log`, `a,b,c`, or one value. Some may be derived from others, lists
may go together, and conditions may leave out points.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, Self, cast

import numpy as np

from overfit_cli.core import parameters
from overfit_cli.core.cell import Cell
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.expressions import CLOSE, Expression, Names, read_conditions, read_expression
from overfit_cli.core.parameters import ParameterInfo, Value, describe
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import in_list, is_number, list_numbers, listed, round_digits, shorten

MOST_CELLS = 5_000_000

FARTHEST = 1e-6
"""The largest distance to a whole number that is round-off."""

Given = Value | Expression
"""A value of a parameter as it is given: itself, or an expression in other parameters."""

Infos = Mapping[str, ParameterInfo]
Columns = Mapping[str, Sequence[Any]]
"""For each parameter that was set, its value at every point."""


@dataclass(frozen=True)
class Grid:
    """The values, seeds and conditions of a sweep.

    Attributes:
        given: for each parameter that was set, its values; one value sets it, several make it an
            axis.
        together: parameters that take their first values together, their second ones, and so on.
    """

    study: AnyStudy
    given: Mapping[str, tuple[Given, ...]]
    seeds: tuple[int, ...]
    together: tuple[tuple[str, ...], ...] = ()
    only: tuple[str, ...] = ()

    @classmethod
    def read(
        cls,
        study: AnyStudy,
        given: Mapping[str, Any],
        seeds: Any,
        together: Iterable[str] = (),
        only: Iterable[str] = (),
    ) -> Self:
        """Read what a user types, a script gives, a preset sets, or a manifest records.

        Args:
            given: by parameter, a range as a text, a value, or several values and expressions; the
                axes have the order of their declaration.
            seeds: how many or which, as a number, several, or a text.
            together: parameters that go together, such as `n,d`.
            only: conditions such as `n >= d`.
        """
        infos = describe(study.parameters)
        for name in given:
            if name not in infos:
                raise parameters.unknown_parameter(name, infos)
        taken = {name: _taken(infos, name, given[name]) for name in infos if name in given}
        groups = tuple(_tied(infos, taken, text) for text in together)
        tied = [*itertools.chain(*groups)]  # their lists keep what they repeat: it has a partner
        for name in tied:
            if tied.count(name) > 1:
                raise BadValue("together", None, f"{name} is named twice; name it once.")
        conditions = dict.fromkeys(" ".join(text.split()) for text in only)
        for text in conditions:
            read_conditions(text, _names(infos), "only")
        once = {name: tuple(dict.fromkeys(taken[name])) for name in taken if name not in tied}
        return cls(study, taken | once, parse_seeds(seeds), groups, tuple(conditions))

    @property
    def is_product(self) -> bool:
        """Whether it is the full product of its values."""
        return not (self.together or self.only or self.derived)

    @functools.cached_property
    def derived(self) -> dict[str, list[Expression]]:
        """The parameters that have expressions among their values, and these."""
        found = {
            name: [item for item in items if isinstance(item, Expression)]
            for name, items in self.given.items()
        }
        return {name: expressions for name, expressions in found.items() if expressions}

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """The parameters that go together, and each other one by itself: the factors."""
        groups = {name: group for group in self.together for name in group}
        return list(dict.fromkeys(groups.get(name, (name,)) for name in self.given))

    @functools.cached_property
    def values(self) -> Mapping[str, tuple[Value, ...]]:
        """The values of each parameter that was set, as the grid's points have them."""
        if self.is_product:
            return cast("Mapping[str, tuple[Value, ...]]", self.given)
        columns = map(dict.fromkeys, zip(*self._points, strict=True))
        return dict(zip(self.given, map(tuple, columns), strict=True))

    @property
    def axes(self) -> dict[str, tuple[Value, ...]]:
        """The parameters that take several values."""
        return {name: values for name, values in self.values.items() if len(values) > 1}

    @property
    def free_axes(self) -> list[str]:
        """The axes that vary by themselves: of those that go together the first, none derived."""
        axes, derived = self.axes, self.derived
        leading = [[name for name in group if name in axes] for group in self.groups]
        return [names[0] for names in leading if names and names[0] not in derived]

    @property
    def size(self) -> int:
        """The number of cells."""
        most = math.prod(map(len, self.given.values()))
        return len(self.seeds) * (most if self.is_product else len(self._points))

    def check_seeds(self, name: str) -> None:
        """Refuse seeds for a function that takes none: its cells would all be the same."""
        if not self.study.seeded and self.seeds != (0,):
            accepts = f"{self.study.name} takes no seed; give it a parameter seed: int."
            raise BadValue(name, None, accepts)

    def cells(self) -> list[Cell]:
        """Return every cell."""
        _check_size(self.size)
        study, of = self.study, (self.study.name, self.study.version)
        points = [parameters.build(study.parameters, row) for row in self.rows()]
        return [Cell(*of, point, seed) for seed in self.seeds for point in points]

    def rows(self) -> Iterator[dict[str, Value]]:
        """Give the values of the parameters that were set, by name, at every point."""
        rows = itertools.product(*self.values.values()) if self.is_product else self._points
        return (dict(zip(self.given, row, strict=True)) for row in rows)

    @functools.cached_property
    def _points(self) -> list[tuple[Value, ...]]:
        """The distinct points of a grid that is no product, with values in the order of `given`."""
        infos, names = describe(self.study.parameters), list(self.given)
        given = self.given.__getitem__
        factors = [[*zip(*map(given, group), strict=True)] for group in self.groups]
        _check_size(math.prod(map(len, factors)))
        rows = [tuple(itertools.chain(*row)) for row in itertools.product(*factors)]
        taken = dict(zip(itertools.chain(*self.groups), zip(*rows, strict=True), strict=True))
        solved = _solved(infos, taken, self.derived)
        every = (solved[name] for name in names)
        points = list(dict.fromkeys(zip(*every, strict=True))) if names else rows
        for text in self.only:
            for test in read_conditions(text, _names(infos), "only"):
                columns = dict(zip(names, zip(*points, strict=True), strict=True))
                places = range(len(points))
                used = {ref.name: _at(infos, columns, ref.name, places) for ref in test.refs}
                holds = np.broadcast_to(test.holds(used), len(points))
                points = list(itertools.compress(points, holds))
                if not points:
                    raise BadValue("only", text, "no point of the grid meets it.")
        return points

    def texts(self) -> dict[str, str]:
        """Return what a user types for each parameter that isn't at its default, or is tied."""
        infos, tied = describe(self.study.parameters), {*itertools.chain(*self.together)}
        return {
            name: ",".join(str(getattr(item, "text", item)) for item in items)
            if name in self.derived
            else range_text(infos[name], cast("tuple[Value, ...]", items))
            for name, items in self.given.items()
            if items != (infos[name].default,) or name in tied
        }


def _check_size(size: int) -> None:
    if size > MOST_CELLS:
        raise UserError(f"The grid has {size} cells; a sweep takes up to {MOST_CELLS}.")


def _tied(infos: Infos, taken: Mapping[str, tuple[Given, ...]], text: str) -> tuple[str, ...]:
    """The parameters that a text such as `n,d` names, if their lists are of one length."""
    known = parameters.spellings(infos)
    names = tuple(known.get(part.strip(), part.strip()) for part in text.split(","))
    for name in names:
        if name not in infos:
            raise BadValue("together", text, parameters.unknown_parameter(name, infos).accepts)
    counts = {name: len(taken.get(name, ())) for name in names}
    if len(names) < 2 or 0 in counts.values() or len({*counts.values()}) > 1:
        given = " and ".join(f"{count} of {name}" for name, count in counts.items())
        accepts = f"it takes two lists or more of equal length, not {given}."
        raise BadValue("together", text, accepts)
    return names


def _taken(infos: Infos, name: str, given: Any) -> tuple[Given, ...]:
    """The values of a parameter that a text names, or that Python or a manifest gives."""
    info, names = infos[name], _names(infos)
    if isinstance(given, str):
        is_expression = any(_is_arithmetic(item, names) for item in given.split(","))
        if not is_expression or ":" in given or not info.is_number:
            return parse_range(info, given)
        given = given.split(",")
    several = isinstance(given, Iterable) and not isinstance(given, bytes | Mapping)
    if not several or getattr(given, "ndim", 1) == 0:
        return (_plain(info, given),)
    listed = list(itertools.islice(given, MOST_VALUES + 1))
    if not listed:
        raise BadValue(name, None, f"no value given; it takes {info.accepts}.")
    if len(listed) > MOST_VALUES:
        raise BadValue(name, None, f"it takes up to {MOST_VALUES} values.")
    return tuple(_item(info, names, item) for item in listed)


def _item(info: ParameterInfo, names: Names, item: Any) -> Given:
    """One of several values; a number that is given as a text may be an expression."""
    if not isinstance(item, str) or not info.is_number:
        return _plain(info, item)
    if _is_arithmetic(item, names):
        return read_expression(item, names, info.name)
    return _parsed(info, item)


def _names(infos: Infos) -> Names:
    return Names({spelling: infos[name] for spelling, name in parameters.spellings(infos).items()})


def _is_arithmetic(text: str, names: Names) -> bool:
    """Whether a text is an expression: it has a name, or an operator that no number has."""
    words = re.findall(r"(?<![\w.])[^\W\d]\w*", text)
    return any(word in names for word in words) or any(sign in text for sign in "*/(")


def _solved(infos: Infos, columns: Columns, derived: Mapping[str, Sequence[Expression]]) -> Columns:
    """Return the points with a value in place of each expression."""
    needed = {
        name: {other for expression in expressions for other in expression.names} & derived.keys()
        for name, expressions in derived.items()
    }
    try:
        order = list(TopologicalSorter(needed).static_order())
    except CycleError as error:
        name, *others = error.args[1]
        turn = ", which depends on ".join(others)
        raise BadValue(name, None, f"it depends on {turn}; give one of them numbers.") from None
    for name in order:
        column = list(columns[name])
        for expression in dict.fromkeys(derived[name]):
            indices = [index for index, item in enumerate(column) if item == expression]
            used = {other: _at(infos, columns, other, indices) for other in expression.names}
            results = np.zeros(len(indices)) + expression.value(used)
            for place, index in enumerate(indices):
                setting = {other: values[place] for other, values in sorted(used.items())}
                column[index] = _of_expression(infos[name], expression, results[place], setting)
        columns = {**columns, name: column}
    return columns


def _at(infos: Infos, columns: Columns, name: str, indices: Sequence[int]) -> Any:
    """A parameter's values at some points: its default where it was not set."""
    info, column = infos[name], columns.get(name)
    if column is None and info.default is None:
        raise BadValue(name, None, f"it has no default; give {info.accepts}.")
    values = [info.default if column is None else column[index] for index in indices]
    return np.array(values, dtype=np.float64 if info.is_number else object)


def _of_expression(
    info: ParameterInfo, expression: Expression, result: float, setting: Mapping[str, float]
) -> Value:
    number = float(result)
    if info.kind == "int" and math.isfinite(number):
        farthest = min(FARTHEST, CLOSE * max(1.0, abs(number)))
        number = round(number) if abs(number - round(number)) <= farthest else number
    try:
        return _plain(info, number)
    except BadValue:
        at = "".join(f" at {name} = {value:g}" for name, value in setting.items())
        accepts = f"it is {number:g}{at}, and {info.name} takes {info.accepts}."
        raise BadValue(info.name, expression.text, accepts) from None


def _plain(info: ParameterInfo, given: Any) -> Value:
    """A value that Python gives, of any library, in the kind of its parameter."""
    plain = given.item() if isinstance(given, np.generic | np.ndarray) and not given.ndim else given
    kinds: Any = {"int": int | float, "float": int | float, "bool": bool}.get(info.kind, str)
    if not isinstance(plain, kinds) or (isinstance(plain, bool) and info.is_number):
        shown = None if isinstance(plain, np.ndarray) else plain
        raise BadValue(info.name, shown, f"{info.name} takes {info.accepts}.")
    text = f"{plain:.12g}" if info.kind == "float" else str(plain)
    try:
        return info.parse(text) if info.is_number else cast("Value", plain)
    except BadValue as error:
        raise BadValue(info.name, plain, error.accepts) from None


# Ranges

DEFAULT_POINTS = 40
MOST_VALUES = 100_000

DIGITS = 12
"""The digits of a value in a range: a point has one name, however its range was spaced."""

_SPACED = re.compile(r"([^:]+):([^:]+)(?:: *([0-9]{1,18}) *(?:: *(log|linear) *)?)?")
"""A range: its ends, then a step or a number of points, then how these are spaced."""


def parse_range(info: ParameterInfo, text: str) -> tuple[Value, ...]:
    """Return the values that `text` names, in the order given."""
    if ":" in text and info.kind != "text":
        return tuple(dict.fromkeys(_spaced(info, text)))
    items = listed(text) if info.kind == "text" else text.split(",")
    is_split = info.kind == "text" and "," in text and '"' not in text
    if is_split and (len({*items}) < len(items) or "," in str(info.default)):
        quoted = f"{info.name} {shorten(text)}: {len(items)} values; one with a comma in it stands"
        warnings.warn(f"{quoted} in double quotes, '\"{text}\"'", UserWarning, stacklevel=2)
    if len(items) > MOST_VALUES:
        raise _refusal(info, text, f"it names more than {MOST_VALUES} values")
    if not all(item.strip() for item in items):
        raise _refusal(info, text, "a value is empty")
    return tuple(_value(info, item) for item in items)


def parse_seeds(given: Any) -> tuple[int, ...]:
    """Return the seeds: `5` is five of them, 0 to 4; `3:7`, `0,4:9` and a list name them."""
    info = ParameterInfo("seeds", "int", accepts="a whole number")
    texts = given.split(",") if isinstance(given, str) else ()
    read: Sequence[Any] = [seed for text in texts for seed in parse_range(info, text)]
    read = read or _taken({info.name: info}, info.name, given)
    names_them = {":", ","} & set(given) if texts else isinstance(given, Iterable)
    least, most = (0, math.inf) if names_them else (1, MOST_VALUES)
    for seed in read:  # a text in a list may be arithmetic, for other parameters
        if not isinstance(seed, int) or not least <= seed <= most:
            accepts = f"it takes a number of seeds from 1 to {MOST_VALUES}, or seeds from 0 up"
            shown = getattr(seed, "text", seed)
            raise BadValue("seeds", shown, f"{accepts}, such as 3:7 or 0,4,9.")
    seeds = cast("tuple[int, ...]", tuple(dict.fromkeys(read)))
    return seeds if names_them else tuple(range(seeds[0]))


def range_text(info: ParameterInfo, values: Sequence[Value]) -> str:
    """Return the text that `parse_range` reads as these values: a range where one gives them."""
    if info.is_number and len(values) > 3:
        ends, (first, second) = f"{_text(values[0])}:{_text(values[-1])}", values[:2]
        step = len(values) if info.kind == "float" else cast("int", second) - cast("int", first)
        for form in (f"{ends}:{step}", f"{ends}:{len(values)}:log"):
            with contextlib.suppress(BadValue), warnings.catch_warnings(action="ignore"):
                if parse_range(info, form) == tuple(values):
                    return form.removesuffix(":1")
    return ",".join(map(in_list if info.kind == "text" else _text, values))


def _text(value: Value) -> str:
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def seeds_text(seeds: Sequence[int]) -> str:
    """Return the text that `parse_seeds` reads as these seeds."""
    first, last = seeds[0], seeds[-1]
    if (*seeds,) != (*range(first, last + 1),):
        return list_numbers(seeds).replace(" to ", ":").replace(", ", ",")
    return f"{first}:{last}" if first else str(last + 1)


def _refusal(info: ParameterInfo, text: str, problem: str = "") -> BadValue:
    """The error for a text that names no values: what is wrong, and every form that is read."""
    ranges = {
        "int": "; a range 2:20, 2:20:3 (step 3) or 2:200:8:log (8 points); or a list 2,5,9",
        "float": f"; a range 0.1:16 ({DEFAULT_POINTS} points), 0.1:16:100 (100 points) or "
        "0.1:16:100:log; or a list 0.1,1,16",
    }
    forms = f"{info.name} takes {info.accepts}{ranges.get(info.kind, ', or a list of them')}."
    return BadValue(info.name, shorten(text), f"{problem}; {forms}" if problem else forms)


def _value(info: ParameterInfo, text: str) -> Value:
    """A value of a list or a range; where a number can't be read, the message shows every form."""
    if info.is_number and not is_number(text):
        raise _refusal(info, text.strip())
    return _parsed(info, text)


def _parsed(info: ParameterInfo, text: str) -> Value:
    """A value; a number of more than 15 digits, which arithmetic left, has `DIGITS` as Python's."""
    value = info.parse(text)
    is_long = isinstance(value, float) and round_digits(value, 15) != value
    return round_digits(float(value), DIGITS) if is_long else value


def _spaced(info: ParameterInfo, text: str) -> Sequence[Value]:
    """The values of `2:20`, `2:20:3`, `0.1:16`, `0.1:16:100` and `0.1:16:100:log`."""
    found, is_whole = _SPACED.fullmatch(text), info.kind == "int"
    if not found or not info.is_number or (is_whole and found[4] == "linear"):
        raise _refusal(info, text)
    start, stop = (cast("float", _value(info, end)) for end in found.group(1, 2))
    spacing, by_step = found[4], is_whole and not found[4]
    count = int(found[3] or (1 if by_step else DEFAULT_POINTS))
    many = (stop - start) // max(1, count) + 1 if by_step else count
    is_step = not by_step or 1 <= count <= max(1, stop - start)
    problems = {
        "the range runs backwards": stop < start,
        "its step is 0, or larger than the range": not is_step,
        "it has fewer points than ends": not by_step and count < 1 + (start < stop),
        f"it names more than {MOST_VALUES} values": many > MOST_VALUES,
        "spacing by ratio needs a start above 0": spacing == "log" and start <= 0,
    }
    for problem, is_so in problems.items():
        if is_so:
            raise _refusal(info, text, problem)
    if by_step:
        return range(int(start), int(stop) + 1, count)
    between = (np.geomspace if spacing == "log" else np.linspace)(start, stop, count)
    spaced = [round_digits(value, DIGITS) for value in between.tolist()]
    if not is_whole:
        return spaced
    inner = (min(max(round(value), int(start)), int(stop)) for value in spaced[1:-1])
    values = tuple(dict.fromkeys([int(start), *inner, int(stop)]))
    if len(values) < count:
        words = f"{count} log-spaced points round to {len(values)} distinct whole numbers"
        warnings.warn(f"{info.name} {shorten(text)}: {words}", UserWarning, stacklevel=2)
    return values
