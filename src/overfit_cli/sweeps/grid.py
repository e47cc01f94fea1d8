"""The product of the axes and the seeds: which cells a sweep is made of."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from overfit_cli.errors import UserError
from overfit_cli.functions.study import FunctionStudy
from overfit_cli.parameter_values import build, unknown_parameter
from overfit_cli.parameters import Value, describe
from overfit_cli.study import AnyStudy, Cell
from overfit_cli.sweeps.ranges import parse_range

MOST_CELLS = 5_000_000


@dataclass(frozen=True)
class Grid:
    """What a sweep covers.

    Attributes:
        study: the study that is swept.
        values: for each parameter that was set, its values; one value sets it, several make it an
            axis.
        seeds: the seeds of every point.
        flags: how the user wrote each parameter, for messages.
    """

    study: AnyStudy
    values: Mapping[str, tuple[Value, ...]]
    seeds: tuple[int, ...]
    flags: Mapping[str, str]

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
            build(self.study.parameters, dict(zip(names, point, strict=True)), self.flags)
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
        build(self.study.parameters, {**others, name: value}, self.flags)


_Item = TypeVar("_Item")


def _half(items: tuple[_Item, ...], chance: random.Random) -> tuple[_Item, ...]:
    """Half of the items, in their order."""
    chosen = sorted(chance.sample(range(len(items)), (len(items) + 1) // 2))
    return tuple(items[index] for index in chosen)


def check_seeds(study: AnyStudy, seeds: tuple[int, ...], flag: str = "--seeds") -> None:
    """Refuse seeds for a function that takes none: its cells would all be the same.

    Raises:
        UserError: if there is more than one, or another than 0.
    """
    if isinstance(study, FunctionStudy) and not study.record.seeded and seeds != (0,):
        raise UserError(f"{flag}: {study.name} takes no seed; give it a parameter seed: int.")


def make_grid(
    study: AnyStudy, texts: Mapping[str, str], seeds: tuple[int, ...], flags: Mapping[str, str]
) -> Grid:
    """Read ranges into a grid.

    Args:
        study: the study to sweep.
        texts: a range for each parameter that is set; the axes have the order of their declaration.
        seeds: the seeds.
        flags: how the user wrote each parameter.

    Raises:
        UserError: for an unknown parameter or a range that can't be read.
    """
    known = describe(study.parameters)
    for name in texts:
        if name not in known:
            raise unknown_parameter(name, known, flags.get(name))
    values = {
        name: parse_range(info, texts[name], flags.get(name, f"--{name}"))
        for name, info in known.items()
        if name in texts
    }
    return Grid(study, values, seeds, flags)
