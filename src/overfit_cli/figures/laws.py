"""Curves of equations over a figure's axes: those that the user or the study names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.patheffects
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.core.arrays import Floats
from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import BadValue
from overfit_cli.core.expressions import Compared, read_equation
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.text import round_digits, shorten
from overfit_cli.figures.axes import Axis
from overfit_cli.figures.labels import literal, tick_number
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.style import HIGHLIGHT, Legend

Difference = Callable[[Floats, Floats], Floats]
POINTS = 400  # per axis: the error of a power law's curve is then about 1e-4
DASHES: tuple[LineStyleType, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
_DASHES_IN_WORDS = ("Line", "Dashed line", "Dotted line", "Dash-dotted line")
CEILING = 1e100  # keeps the arithmetic of contouring finite


@dataclass(frozen=True)
class Place:
    """The axes on which equations are drawn, with the cells of their constants.

    Attributes:
        axes: axes with their final scales and limits.
        colour: the colour of an equation that differs between places of the same axes.
    """

    axes: Axes
    cells: pd.DataFrame
    colour: ColorType = HIGHLIGHT
    outlined: bool = True


def equation_curve(
    equation: Compared, names: Sequence[str], axes: Axes, constants: Mapping[str, float]
) -> Floats:
    """Return the points of axes where an equation holds.

    Args:
        equation: an equation in the names along x and y, and of the constants.

    Returns:
        x and y, shape (points, 2); rows of nan separate the pieces.
    """
    logs = axes.get_xscale() == "log", axes.get_yscale() == "log"

    def difference(u: Floats, v: Floats) -> Floats:
        values: dict[str, Any] = dict(constants)
        for name, at, log in zip(names, (u, v), logs, strict=True):
            values[name] = np.exp(at) if log else at
        return np.clip(equation.difference(values), -CEILING, CEILING)

    spans = zip((axes.get_xlim(), axes.get_ylim()), logs, strict=True)
    ends = [np.log(span) if log else span for span, log in spans]
    curve = _zero_line(difference, *(np.linspace(low, high, POINTS) for low, high in ends))
    curve[:, list(logs)] = np.exp(curve[:, list(logs)])
    return curve


def _zero_line(difference: Difference, u: Floats, v: Floats) -> Floats:
    height = np.ma.masked_invalid(difference(u[None, :], v[:, None]))
    if not height.count() or height.min() >= 0 or height.max() <= 0:
        return np.empty((0, 2))
    contour = Figure().add_subplot().contour(u, v, height, levels=[0.0])
    gap = np.full((1, 2), np.nan)
    curve = np.concatenate([part for piece in contour.allsegs[0] for part in (piece, gap)])
    # At a pole the sign changes too, but there the difference is largest, not smallest.
    (x, y), step = curve.T, (u[1] - u[0], v[1] - v[0])
    sides = [(x - step[0], y), (x + step[0], y), (x, y - step[1]), (x, y + step[1])]
    around = np.fmax.reduce(np.abs([difference(*side) for side in sides]))
    curve[~(np.abs(difference(x, y)) < around / 2)] = np.nan
    return curve


def draw_equations(
    figure: Picture,
    places: Sequence[Place],
    data: Cells,
    options: FigureOptions,
    along: Sequence[Axis],
    column: str = "",
    *,
    colour: str = HIGHLIGHT,
    first_dash: int = 0,
) -> Legend:
    """Draw the equations of the options in every place, each with its own dash; return the legend.

    They are in the names of the axes that are numbers, and of constants.

    Args:
        places: where they are drawn. Places of the same axes with the same constants have one
            curve; otherwise each has a curve in its own colour.
        column: the measured column along y, if no parameter is.
    """
    legend: Legend = []
    names = [*(axis.name for axis in along), *filter(None, [column])]
    words = {axis.name for axis in along if axis.scale == "category"}
    known = {*names, *data.number_parameters} - words - data.replaced
    white = matplotlib.patheffects.withStroke(linewidth=2.0, foreground="white")
    for index, text in enumerate(options.law or (), start=first_dash):
        equation = read_equation(text, data.schema.placed.among(known))
        if not equation.names & {*names}:
            raise BadValue("law", text, f"it names none of the axes: {', '.join(names)}.")
        dash = DASHES[index % len(DASHES)]
        distinct = dict[tuple[Axes, tuple[float, ...]], tuple[Place, dict[str, float]]]()
        for place in places:
            constants = constants_of(equation, names, place.cells)
            distinct.setdefault((place.axes, tuple(constants.values())), (place, constants))
        varies = len(distinct) > len({axes for axes, _ in distinct})
        lines = []
        for place, constants in distinct.values():
            curve = equation_curve(equation, names, place.axes, constants)
            ink, outline = place.colour if varies else colour, [white] if place.outlined else []
            look: dict[str, Any] = {"color": ink, "linestyle": dash, "path_effects": outline}
            lines.append(Line2D(*curve.T, label=f"law: {equation.text}", **look))
            place.axes.add_line(lines[-1])
        said = f"${equation.mathtext(data.symbol)}$"
        right = equation.sides[1]
        if right.names and not right.names & {*names}:  # its value in each place: `= 78, 228`
            values = [float(right.value(own)) for _, own in distinct.values()]
            numbers = [tick_number(round_digits(value, 3)) for value in values]
            said += f" = {', '.join(dict.fromkeys(numbers))}"
        said += f" ({literal(shorten(equation.label))})" if equation.label else ""
        if not any(np.isfinite(line.get_xydata()).any() for line in lines):
            said += " (out of view)"
        figure.facts.append(f"{_DASHES_IN_WORDS[index % len(DASHES)]}: {said}.")
        handle = Line2D([], [], color="0.3", linestyle=dash) if varies else lines[0]
        legend.append((handle, said))
    return legend


def constants_of(equation: Compared, names: Sequence[str], cells: pd.DataFrame) -> dict[str, float]:
    """Return the number of each constant of an equation."""
    constants = {}
    for name in sorted(equation.names.difference(names)):
        values = sorted(cells[name].dropna().unique().tolist())
        if len(values) != 1:
            shown = ", ".join([*map(str, values[:4]), *["..."] * bool(values[4:])])
            accepts = f"{name} varies here ({shown}), and is neither an axis nor a constant; "
            accepts += f"choose one value (option where, {name}=VALUE)."
            raise BadValue("law", equation.text, accepts)
        constants[name] = float(values[0])
    return constants
