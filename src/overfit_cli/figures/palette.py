"""Colours, markers and dashes of lines by the settings that they show.

A word, and a number with declared shades, looks the same in every figure: see `style.value_colour`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.core.parameters import ParameterInfo, Value, describe
from overfit_cli.core.study import AnyStudy
from overfit_cli.figures.picture import colours_of_user
from overfit_cli.figures.style import PALETTE, shades, value_colour

MARKERS = "os^Dvp*P"
DASHES: tuple[LineStyleType, ...] = ("-", "--", ":", "-.")

Settings = Sequence[Mapping[str, Value]]
"""The values of the parameters that vary, of each line; all lines name the same parameters."""


@dataclass(frozen=True)
class LineLook:
    """The look of a line; the marker is empty where there are more lines than markers."""

    colour: ColorType
    marker: str
    dash: LineStyleType


def line_looks(study: AnyStudy, settings: Settings) -> list[LineLook]:
    """Return the look of each line.

    A single parameter gives colours and markers. Of several, one gives the colours and the others
    together markers and dashes; where no parameter's colours are declared, or the others have more
    settings than there are dashes, each line has a colour.
    """
    name = colour_parameter(study, settings)
    if name is None:
        return _looks_by_order(len(settings))
    values = list(dict.fromkeys(line[name] for line in settings))
    colours = dict(zip(values, value_colours(study, name, values), strict=True))
    if len(values) == len(settings):  # the other parameters go with this one
        ranks = _ranks(describe(study.parameters).get(name), values)
        return [
            LineLook(colours[value], _marker(ranks[value], len(values)), dash)
            for value, dash in zip(values, _dashes(list(colours.values())), strict=True)
        ]
    others = _others(settings, name)
    ranks_of_others = {other: rank for rank, other in enumerate(dict.fromkeys(others))}
    return [
        LineLook(
            colours[line[name]], MARKERS[ranks_of_others[other]], DASHES[ranks_of_others[other]]
        )
        for line, other in zip(settings, others, strict=True)
    ]


def colour_parameter(study: AnyStudy, settings: Settings) -> str | None:
    """Return the parameter whose values have a colour each; None where each line has its own.

    A word comes before a number with declared shades.
    """
    names = list(settings[0]) if settings else []
    if len(names) == 1:
        return names[0]
    described = describe(study.parameters)
    known = [name for name in names if name in described]
    words = [name for name in known if described[name].kind == "literal"]
    for name in [*words, *(name for name in known if described[name].shades)]:
        settings_of_others = len(set(_others(settings, name)))
        if settings_of_others <= len(DASHES) or _is_unique(settings, name):
            return name
    return None


def value_colours(study: AnyStudy, name: str, values: Sequence[Value]) -> list[ColorType]:
    """Return the colours of a parameter's values.

    They are the registered ones where all have one. Other numbers have shades in their order, but
    for the colours of a user's own cycle, if it has enough. Other words, such as names of run
    directories, have the palette.
    """
    info = describe(study.parameters).get(name)
    registered = [None if info is None else value_colour(info, value) for value in values]
    colours = [colour for colour in registered if colour is not None]
    if len(colours) == len(values):
        return colours
    is_number = info is not None and info.kind in ("int", "float")
    has_shades = is_number and len(values) > 1 and len(values) > colours_of_user()
    if len(values) > len(PALETTE) or has_shades:
        return shades(len(values))
    return list(PALETTE[: len(values)])


def _looks_by_order(count: int) -> list[LineLook]:
    colours: list[ColorType] = list(PALETTE[:count])
    if count > len(PALETTE):
        colours = shades(count)
    return [LineLook(colour, _marker(rank, count), "-") for rank, colour in enumerate(colours)]


def _dashes(colours: Sequence[ColorType]) -> Sequence[LineStyleType]:
    shades = np.array([to_rgb(colour) for colour in colours])
    steps = np.linalg.norm(np.diff(shades, axis=0), axis=1)
    alike = len(colours) <= len(DASHES) and bool((steps < _ALIKE).any())
    return DASHES[: len(colours)] if alike else DASHES[:1] * len(colours)


_ALIKE = 0.25
"""The distance of two colours, of red, green and blue from 0 to 1, that are hard to tell apart."""


def _marker(rank: int, count: int) -> str:
    return MARKERS[rank] if count <= len(MARKERS) and rank < len(MARKERS) else ""


def _ranks(info: ParameterInfo | None, values: Sequence[Value]) -> dict[Value, int]:
    if info is not None and info.kind == "literal":
        return {value: info.choices.index(str(value)) for value in values}
    return {value: rank for rank, value in enumerate(values)}


def _others(settings: Settings, name: str) -> list[tuple[Value, ...]]:
    return [tuple(value for key, value in line.items() if key != name) for line in settings]


def _is_unique(settings: Settings, name: str) -> bool:
    return len({line[name] for line in settings}) == len(settings)
