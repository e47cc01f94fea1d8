"""Grids: the product of the axes and the seeds, and the shards of a sweep.

Values come as texts from the command line and from presets, or as values from Python.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from overfit_cli.core.cell import Cell
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.parameters import (
    ParameterInfo,
    Value,
    build,
    describe,
    parameter_named,
    unknown_parameter,
)
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.values import whole_number
from overfit_cli.sweeps.ranges import MOST_VALUES, parse_range, parse_seeds, rounded

MOST_CELLS = 5_000_000


@dataclass(frozen=True)
class Grid:
    """What a sweep covers.

    Attributes:
        study: the study that is swept.
        values: for each parameter that was set, its values; one value sets it, several make it an
            axis.
        seeds: the seeds of every point.
    """

    study: AnyStudy
    values: Mapping[str, tuple[Value, ...]]
    seeds: tuple[int, ...]

    @property
    def axes(self) -> dict[str, tuple[Value, ...]]:
        """The parameters that take several values."""
        return {name: values for name, values in self.values.items() if len(values) > 1}

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(len(values) for values in self.values.values()) * len(self.seeds)

    def check(self) -> None:
        """Refuse a grid that is too large, or has a value that its parameter doesn't take.

        Raises:
            UserError: with how many cells it has, or naming the value.
        """
        if self.size > MOST_CELLS:
            raise UserError(f"The grid has {self.size} cells; a sweep takes up to {MOST_CELLS}.")
        for name, values in self.values.items():
            for value in values:
                self._check_alone(name, value)

    def cells(self) -> list[Cell]:
        """Return every cell.

        Raises:
            UserError: naming the first value that its parameter doesn't take.
        """
        self.check()
        names = list(self.values)
        points = [
            build(self.study.parameters, dict(zip(names, point, strict=True)))
            for point in itertools.product(*self.values.values())
        ]
        return [
            Cell(self.study.name, self.study.version, parameters, seed)
            for seed in self.seeds
            for parameters in points
        ]

    def thinned(self, most: int) -> Grid:
        """Return a grid of at most `most` cells: of each axis and the seeds a random selection."""
        chance = random.Random(0)
        values, seeds = dict(self.values), self.seeds
        while (thin := replace(self, values=values, seeds=seeds)).size > most:
            name = max(values, key=lambda name: len(values[name]), default="")
            if name and len(values[name]) >= len(seeds):
                values[name] = _half(values[name], chance)
            else:
                seeds = _half(seeds, chance)
        return thin

    def _check_alone(self, name: str, value: Value) -> None:
        """Check one value against its own bounds before the product is made: it may be large."""
        others = {other: values[0] for other, values in self.values.items() if other != name}
        build(self.study.parameters, {**others, name: value})


_Item = TypeVar("_Item")


def _half(items: tuple[_Item, ...], chance: random.Random) -> tuple[_Item, ...]:
    """Half of the items, in their order."""
    chosen = sorted(chance.sample(range(len(items)), (len(items) + 1) // 2))
    return tuple(items[index] for index in chosen)


def check_seeds(study: AnyStudy, seeds: tuple[int, ...], name: str = "seeds") -> None:
    """Refuse seeds for a function that takes none: its cells would all be the same.

    Raises:
        UserError: if there is more than one, or another than 0.
    """
    if not study.seeded and seeds != (0,):
        raise BadValue(name, None, f"{study.name} takes no seed; give it a parameter seed: int.")


def make_grid(study: AnyStudy, texts: Mapping[str, str], seeds: tuple[int, ...]) -> Grid:
    """Read ranges into a grid.

    Args:
        study: the study to sweep.
        texts: a range for each parameter that is set; the axes have the order of their declaration.
        seeds: the seeds.

    Raises:
        UserError: for an unknown parameter or a range that can't be read.
    """
    infos = describe(study.parameters)
    for name in texts:
        if name not in infos:
            raise unknown_parameter(name, infos)
    values = {name: parse_range(info, texts[name]) for name, info in infos.items() if name in texts}
    return Grid(study, values, seeds)


MOST_SHARDS = 100_000
ACCEPTS = "I/N, such as 2/8: the second of eight parts"


@dataclass(frozen=True)
class Shard:
    """One part of several.

    Attributes:
        number: which, from 1.
        of: how many there are.
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
            cost: of a cell, in any unit.
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
        refined: whether it is a part of a refinement.

    Raises:
        UserError: if it is none, or of a refinement.
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
) -> Grid:
    """Return a grid of what Python gave.

    Args:
        study: the study.
        given: by parameter, its name or its symbol, one value, several, or a range as a text.
        seeds: how many or which, as a number, several, or a text.
        texts: the ranges of a preset, which hold where nothing is given.

    Raises:
        UserError: naming what its parameter doesn't take.
    """
    infos = describe(study.parameters)
    values = dict(make_grid(study, texts, (0,)).values)
    spelled: dict[str, str] = {}
    for written, taken in given.items():
        name = parameter_named(study.parameters, written)
        if name not in infos:
            raise unknown_parameter(name, infos)
        if name in spelled:
            raise UserError(f"{spelled[name]} and {written}: {name} is given twice; give it once.")
        spelled[name] = written
        values[name] = _values(infos[name], taken)
    chosen = _seeds(seeds)
    check_seeds(study, chosen, "seeds")
    ordered = {name: values[name] for name in infos if name in values}
    return Grid(study, ordered, chosen)


def _values(info: ParameterInfo, taken: Any) -> tuple[Value, ...]:
    """The values of one parameter."""
    if isinstance(taken, str) and info.kind not in ("literal", "text"):
        return parse_range(info, taken)
    several = isinstance(taken, Iterable) and not isinstance(taken, str | bytes | Mapping)
    if not several or getattr(taken, "ndim", 1) == 0:
        return (_value(info, taken),)
    listed = list(itertools.islice(taken, MOST_VALUES + 1))
    if not listed:
        raise BadValue(info.name, None, f"no value given; it takes {info.accepts}.")
    if len(listed) > MOST_VALUES:
        raise BadValue(info.name, None, f"it takes up to {MOST_VALUES} values.")
    return tuple(dict.fromkeys(_value(info, item) for item in listed))


def _value(info: ParameterInfo, given: Any) -> Value:
    """A value of any library as Python's, named as the command line would."""
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
    """The seeds of a count, a list or a text."""
    if isinstance(given, str):
        return parse_seeds(given)
    if isinstance(given, Iterable):
        chosen = tuple(dict.fromkeys(whole_number("seeds", seed, 0) for seed in given))
        if not chosen:
            raise BadValue("seeds", None, "none given; it takes how many, or a list of them.")
        return chosen
    return parse_seeds(str(whole_number("seeds", given, 1)))
