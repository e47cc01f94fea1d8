"""Grids: the product of the axes and the seeds, and the shards of a sweep.

Values come as texts from the command line and from presets, or as values from Python. Some may be
derived from others, lists may go together, and conditions may leave out points.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from overfit_cli.core.cell import Cell
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.parameters import (
    ParameterInfo,
    Value,
    build,
    describe,
    find_name,
    parameter_named,
    parse_value,
    spellings,
    unknown_parameter,
)
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import suggestion
from overfit_cli.core.values import whole_number
from overfit_cli.stats.equations import Condition, Expression, parse_condition, parse_derived_value
from overfit_cli.sweeps.points import Points, solved
from overfit_cli.sweeps.ranges import MOST_VALUES, parse_range, parse_seeds, rounded

MOST_CELLS = 5_000_000

Given = Value | Expression
"""A value of a parameter as it is given: itself, or an expression in other parameters."""


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
    only: tuple[Condition, ...] = ()

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
        columns = self._points.columns
        return {name: tuple(dict.fromkeys(columns[name])) for name in self.given}

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
    def full_points(self) -> int:
        """The number of combinations of parameters before conditions leave out some."""
        return math.prod(len(self.given[group[0]]) for group in self.groups)

    @property
    def points(self) -> int:
        """The number of combinations of parameters."""
        return self.full_points if self.is_product else self._points.count

    @property
    def size(self) -> int:
        """The number of cells."""
        return self.points * len(self.seeds)

    def check(self) -> None:
        """Refuse a grid that is too large, or has a value that its parameter doesn't take."""
        self._check_size(self.size if self.is_product else self.full_points)
        self._check_size(self.size)
        if self.is_product:
            for name, values in self.values.items():
                for value in values:
                    self._check_alone(name, value)

    def cells(self) -> list[Cell]:
        """Return every cell."""
        self.check()
        names = list(self.given)
        points = [
            build(self.study.parameters, dict(zip(names, point, strict=True)))
            for point in self.rows()
        ]
        return [
            Cell(self.study.name, self.study.version, parameters, seed)
            for seed in self.seeds
            for parameters in points
        ]

    def rows(self) -> Iterator[tuple[Value, ...]]:
        """Give the values of the parameters that were set, in their order, at every point."""
        if self.is_product:
            return itertools.product(*self.values.values())
        return self._points.rows(list(self.given))

    def some_cells(self, most: int) -> list[Cell]:
        """Return at most so many cells, chosen at random; of a full product whole rows of it."""
        if self.is_product:
            return self.thinned(most).cells()
        cells = self.cells()
        return cells if len(cells) <= most else list(_sample(tuple(cells), most, random.Random(0)))

    def thinned(self, most: int) -> Grid:
        """Return a grid of at most `most` cells: of each axis and the seeds a random selection."""
        chance = random.Random(0)
        values, seeds = dict(self.values), self.seeds
        while (thin := Grid(self.study, values, seeds)).size > most:
            name = max(values, key=lambda name: len(values[name]), default="")
            if name and len(values[name]) >= len(seeds):
                values[name] = _half(values[name], chance)
            else:
                seeds = _half(seeds, chance)
        return thin

    @functools.cached_property
    def _points(self) -> Points:
        self._check_size(self.full_points)
        infos = describe(self.study.parameters)
        factors = [
            list(zip(*(self.given[name] for name in group), strict=True)) for group in self.groups
        ]
        rows = [tuple(itertools.chain(*row)) for row in itertools.product(*factors)]
        names = [name for group in self.groups for name in group]
        columns = {name: [row[index] for row in rows] for index, name in enumerate(names)}
        points = solved(Points(infos, len(rows), columns), self.derived).distinct()
        for condition in self.only:
            points = points.chosen(condition)
        return points

    def _check_size(self, size: int) -> None:
        if size > MOST_CELLS:
            raise UserError(f"The grid has {size} cells; a sweep takes up to {MOST_CELLS}.")

    def _check_alone(self, name: str, value: Value) -> None:
        """Check one value against its own bounds before the product is made: it may be large."""
        others = {other: values[0] for other, values in self.values.items() if other != name}
        build(self.study.parameters, {**others, name: value})


_Item = TypeVar("_Item")


def _half(items: tuple[_Item, ...], chance: random.Random) -> tuple[_Item, ...]:
    return _sample(items, (len(items) + 1) // 2, chance)


def _sample(items: tuple[_Item, ...], count: int, chance: random.Random) -> tuple[_Item, ...]:
    return tuple(items[index] for index in sorted(chance.sample(range(len(items)), count)))


def check_seeds(study: AnyStudy, seeds: tuple[int, ...], name: str = "seeds") -> None:
    """Refuse seeds for a function that takes none: its cells would all be the same."""
    if not study.seeded and seeds != (0,):
        raise BadValue(name, None, f"{study.name} takes no seed; give it a parameter seed: int.")


def make_grid(
    study: AnyStudy,
    texts: Mapping[str, str],
    seeds: tuple[int, ...],
    together: Sequence[str] = (),
    only: Sequence[str] = (),
) -> Grid:
    """Read ranges into a grid.

    Args:
        texts: a range for each parameter that is set; the axes have the order of their declaration.
        only: conditions such as `n >= d`.
    """
    infos = describe(study.parameters)
    for name in texts:
        if name not in infos:
            raise unknown_parameter(name, infos)
    given = {name: _read(infos, name, texts[name]) for name in infos if name in texts}
    return _with_rules(Grid(study, given, seeds), together, only)


def recorded_grid(
    study: AnyStudy,
    values: Mapping[str, Sequence[Value]],
    together: Sequence[Sequence[str]],
    only: Sequence[str],
) -> Grid:
    """The grid of one seed that a manifest has: a number given as a text is an expression."""
    infos = describe(study.parameters)
    names = spellings(infos)

    def read(name: str, item: Value) -> Given:
        is_number = name in infos and infos[name].kind in ("int", "float")
        return (
            parse_derived_value(name, item, names) if is_number and isinstance(item, str) else item
        )

    given = {name: tuple(read(name, item) for item in items) for name, items in values.items()}
    return _with_rules(Grid(study, given, (0,)), [",".join(group) for group in together], only)


def _with_rules(grid: Grid, together: Sequence[str], only: Sequence[str]) -> Grid:
    infos = describe(grid.study.parameters)
    groups = tuple(_tied(grid, text) for text in together)
    for name, times in Counter(itertools.chain(*groups)).items():
        if times > 1:
            raise BadValue("together", None, f"{name} is named twice; name it once.")
    conditions = tuple(parse_condition("only", text, spellings(infos)) for text in only)
    tied = {*itertools.chain(*groups)}  # their lists keep what they repeat: it has a partner
    given = {
        name: items if name in tied else tuple(dict.fromkeys(items))
        for name, items in grid.given.items()
    }
    return replace(grid, given=given, together=groups, only=tuple(dict.fromkeys(conditions)))


def _tied(grid: Grid, text: str) -> tuple[str, ...]:
    """The parameters that a text such as `n,d` names, if their lists are of one length."""
    infos = describe(grid.study.parameters)
    names = tuple(find_name(infos, part.strip()) for part in text.split(","))
    if len(names) < 2:
        raise BadValue("together", text, "it takes two parameters or more, such as n,d.")
    for name in names:
        if name not in infos:
            hint = suggestion(name, infos)
            raise BadValue("together", text, f"the study has no parameter {name!r}; {hint}")
        if name not in grid.given:
            raise BadValue("together", text, f"{name} has no list of values; give one.")
    lengths = [f"{len(grid.given[name])} of {name}" for name in names]
    if len({len(grid.given[name]) for name in names}) > 1:
        counts = f"{', '.join(lengths[:-1])} and {lengths[-1]}"
        raise BadValue("together", text, f"it takes lists of equal length, not {counts}.")
    return names


def _read(infos: Mapping[str, ParameterInfo], name: str, text: str) -> tuple[Given, ...]:
    info, names, items = infos[name], spellings(infos), text.split(",")
    arithmetic = [_is_arithmetic(item, names) for item in items]
    is_number = info.kind in ("int", "float") and ":" not in text
    if not is_number or not any(arithmetic) or not all(item.strip() for item in items):
        return parse_range(info, text, distinct=False)
    read = [
        parse_derived_value(name, item, names) if formula else parse_value(info, item)
        for item, formula in zip(items, arithmetic, strict=True)
    ]
    return tuple(read)


def _is_arithmetic(text: str, names: Mapping[str, str]) -> bool:
    """Whether a text is an expression: it has a name, or an operator that no number has."""
    words = re.findall(r"(?<![\w.])[^\W\d]\w*", text)
    return any(word in names for word in words) or any(sign in text for sign in "*/(")


MOST_SHARDS = 100_000
ACCEPTS = "I/N, such as 2/8: the second of eight parts"


@dataclass(frozen=True)
class Shard:
    """One part of several.

    Attributes:
        number: which, from 1.
    """

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def cells_of(self, cells: Sequence[Cell], cost: Callable[[Cell], float]) -> list[Cell]:
        """Return this shard's cells, in their order.

        Cells are dealt out by falling cost, one to each shard and then back again, whether they are
        finished or not: so each machine finds the same parts whenever it looks. Of the same cost,
        neighbours in the grid go to different shards; who is first is drawn anew each time. So what
        is missing falls to all alike, and so do costs that nobody knows, such as a function's.

        Args:
            cells: of the whole sweep, in the same order for all shards.
        """
        costs = [cost(cell) for cell in cells]
        falling = sorted(range(len(cells)), key=lambda index: -costs[index])
        ranks = list[int]()
        for start in range(0, len(falling), 2 * self.of):
            index = self._place(start)
            ranks += [start + index, start + 2 * self.of - 1 - index]
        chosen = sorted(falling[rank] for rank in ranks if rank < len(falling))
        return [cells[rank] for rank in chosen]

    def _place(self, turn: int) -> int:
        """Its place from 0 in a turn, drawn by a hash: the same with every version of Python."""
        drawn = [
            hashlib.sha256(f"{number}/{self.of} {turn}".encode()).digest()
            for number in range(1, self.of + 1)
        ]
        return sorted(drawn).index(drawn[self.number - 1])


def parse_shard(text: str | None, *, refined: bool = False) -> Shard | None:
    """Return the shard that a text names; None for no text.

    Args:
        text: such as `2/8`.
    """
    if text is None:
        return None
    number, slash, count = text.partition("/")
    # `isdecimal` alone takes digits of other scripts, and `int` would take thousands of them.
    plain = all(part.isascii() and part.isdecimal() and len(part) < 9 for part in (number, count))
    if not slash or not plain or not 1 <= int(number) <= int(count) <= MOST_SHARDS:
        raise BadValue("shard", text, f"it takes {ACCEPTS}.")
    if refined:
        raise BadValue("shard", text, "refinement chooses cells from all of them.")
    return Shard(int(number), int(count))


def grid_of_values(
    study: AnyStudy,
    given: Mapping[str, Any],
    seeds: Any,
    texts: Mapping[str, str],
    together: Sequence[str] = (),
    only: Sequence[str] = (),
) -> Grid:
    """Return a grid of what Python gave.

    Args:
        given: by parameter, its name or its symbol, one value, several, or a range as a text.
        seeds: how many or which, as a number, several, or a text.
        texts: the ranges of a preset, which hold where nothing is given.
    """
    infos = describe(study.parameters)
    values = dict(make_grid(study, texts, (0,)).given)
    spelled: dict[str, str] = {}
    for written, taken in given.items():
        name = parameter_named(study.parameters, written)
        if name not in infos:
            raise unknown_parameter(name, infos)
        if name in spelled:
            raise UserError(f"{spelled[name]} and {written}: {name} is given twice; give it once.")
        spelled[name] = written
        values[name] = _values(infos, name, taken)
    chosen = _seeds(seeds)
    check_seeds(study, chosen, "seeds")
    ordered = {name: values[name] for name in infos if name in values}
    return _with_rules(Grid(study, ordered, chosen), together, only)


def _values(infos: Mapping[str, ParameterInfo], name: str, taken: Any) -> tuple[Given, ...]:
    info = infos[name]
    if isinstance(taken, str) and info.kind not in ("literal", "text"):
        return _read(infos, name, taken)
    several = isinstance(taken, Iterable) and not isinstance(taken, str | bytes | Mapping)
    if not several or getattr(taken, "ndim", 1) == 0:
        return (_value(info, taken),)
    listed = list(itertools.islice(taken, MOST_VALUES + 1))
    if not listed:
        raise BadValue(info.name, None, f"no value given; it takes {info.accepts}.")
    if len(listed) > MOST_VALUES:
        raise BadValue(info.name, None, f"it takes up to {MOST_VALUES} values.")
    return tuple(_value_or_expression(infos, name, item) for item in listed)


def _value_or_expression(infos: Mapping[str, ParameterInfo], name: str, item: Any) -> Given:
    if isinstance(item, str) and infos[name].kind in ("int", "float"):
        names = spellings(infos)
        if _is_arithmetic(item, names):
            return parse_derived_value(name, item, names)
    return _value(infos[name], item)


def _value(info: ParameterInfo, given: Any) -> Value:
    of_numpy = isinstance(given, np.generic | np.ndarray) and given.ndim == 0
    plain = given.item() if of_numpy else given
    is_number = isinstance(plain, int | float) and not isinstance(plain, bool)
    if info.kind in ("int", "float"):
        fits = is_number
    else:
        fits = isinstance(plain, bool if info.kind == "bool" else str)
    if not fits:
        if isinstance(given, np.ndarray):
            accepts = f"it is an array of {given.ndim} axes; it takes {info.accepts}."
            raise BadValue(info.name, None, accepts)
        raise BadValue(info.name, plain, f"{info.name} takes {info.accepts}.")
    if info.kind == "float":
        return rounded(float(plain)) + 0.0
    if info.kind == "int" and abs(plain) >= 2**63:
        raise BadValue(info.name, plain, f"{info.name} takes {info.accepts} below 2**63.")
    value: Value = int(plain) if info.kind == "int" and plain == plain // 1 else plain
    return value


def _seeds(given: Any) -> tuple[int, ...]:
    if isinstance(given, str):
        return parse_seeds(given)
    if isinstance(given, Iterable):
        chosen = tuple(dict.fromkeys(whole_number("seeds", seed, 0) for seed in given))
        if not chosen:
            raise BadValue("seeds", None, "none given; it takes how many, or a list of them.")
        return chosen
    return parse_seeds(str(whole_number("seeds", given, 1)))
