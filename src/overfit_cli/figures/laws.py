"""Curves of equations over a figure's axes: those that the user or the study names."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import matplotlib.patheffects
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.core.arrays import Floats
from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import round_digits, shorten
from overfit_cli.figures.axes import Axis
from overfit_cli.figures.labels import (
    formula_symbol,
    literal,
    number_parameters,
    spellings,
    tick_number,
)
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.style import HIGHLIGHT, Legend
from overfit_cli.stats.equations import Equation, equation_in_mathtext, parse_equation

Difference = Callable[[Floats, Floats], Floats]
POINTS = 400  # per axis: the error of a power law's curve is then about 1e-4
DASHES: tuple[LineStyleType, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
_DASHES_IN_WORDS = ("Line", "Dashed line", "Dotted line", "Dash-dotted line")
FURTHER_COLOURS = ("0.15", "#CC79A7")  # colours of equations beyond the number of dashes
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


def draw_equation(
    axes: Axes,
    equation: Equation,
    names: tuple[str, str],
    constants: Mapping[str, float],
    colour: ColorType,
    dash: LineStyleType,
) -> tuple[Line2D, str]:
    """Draw the equation within the limits of `axes`.

    Returns:
        The line, and why it is not visible; empty where it is.
    """
    log_x, log_y = axes.get_xscale() == "log", axes.get_yscale() == "log"
    spans = axes.get_xlim(), axes.get_ylim()
    curve = equation_curve(equation, *names, *spans, constants, log_x=log_x, log_y=log_y)
    line = Line2D(curve[:, 0], curve[:, 1], color=colour, linestyle=dash)
    line.set_label(f"law: {equation.text}")
    axes.add_line(line)
    if np.isfinite(curve).any():
        return line, ""
    grid = np.meshgrid(*(_sample_points(span, log=False) for span in spans))
    values = {**dict(zip(names, grid, strict=True)), **_arrays(constants)}
    exists = np.isfinite(equation.difference(values)).any()
    return line, "out of view" if exists else "not a finite number anywhere here"


def _arrays(constants: Mapping[str, float]) -> dict[str, Floats]:
    return {name: np.asarray(number) for name, number in constants.items()}


def equation_curve(
    equation: Equation,
    x: str,
    y: str,
    x_span: tuple[float, float],
    y_span: tuple[float, float],
    constants: Mapping[str, float] = MappingProxyType({}),
    *,
    log_x: bool,
    log_y: bool,
) -> Floats:
    """Return the points where the equation holds.

    Args:
        equation: an equation in the names `x` and `y`, and of the constants.

    Returns:
        x and y, shape (points, 2); rows of nan separate the pieces.
    """
    fixed = _arrays(constants)

    def difference(u: Floats, v: Floats) -> Floats:
        values = {x: np.exp(u) if log_x else u, y: np.exp(v) if log_y else v}
        return np.clip(equation.difference({**values, **fixed}), -CEILING, CEILING)

    curve = _zero_line(difference, _sample_points(x_span, log_x), _sample_points(y_span, log_y))
    for column, log in enumerate((log_x, log_y)):
        curve[:, column] = np.exp(curve[:, column]) if log else curve[:, column]
    return curve


def _sample_points(span: tuple[float, float], log: bool) -> Floats:
    ends = np.log(span) if log else np.asarray(span, dtype=np.float64)
    return np.linspace(ends[0], ends[1], POINTS)


def _zero_line(difference: Difference, u: Floats, v: Floats) -> Floats:
    height = np.ma.masked_invalid(difference(u[None, :], v[:, None]))
    if not height.count() or height.min() >= 0 or height.max() <= 0:
        return np.empty((0, 2))
    contour = Figure().add_subplot().contour(u, v, height, levels=[0.0])
    gap = np.full((1, 2), np.nan)
    curve = np.concatenate([part for piece in contour.allsegs[0] for part in (piece, gap)])
    # At a pole the sign changes too, but there the difference is largest, not smallest.
    points, step = (curve[:, 0], curve[:, 1]), (u[1] - u[0], v[1] - v[0])
    neighbours = [difference(points[0] + sign * step[0], points[1]) for sign in (-1, 1)]
    neighbours += [difference(points[0], points[1] + sign * step[1]) for sign in (-1, 1)]
    is_zero = np.abs(difference(*points)) < np.fmax.reduce(np.abs(neighbours)) / 2
    curve[~is_zero] = np.nan
    return curve


def parse_equations(
    data: FigureData, options: FigureOptions, axes: Sequence[Axis], column: str = ""
) -> list[Equation]:
    """Return the equations to draw, in the names of the axes that are numbers, and of constants.

    Args:
        column: the measured column along y, if it has an axis.
    """
    names = [axis.name for axis in axes if axis.scale != "category"]
    names += [column] if column else []
    constants = set(number_parameters(data)) - {axis.name for axis in axes} - data.replaced
    spelled = spellings(data.study, names), spellings(data.study, constants)
    return [parse_equation(text, *spelled) for text in options.law or ()]


def draw_equations(
    figure: Picture,
    places: Sequence[Place],
    equations: Sequence[Equation],
    names: tuple[str, str],
    data: FigureData,
    *,
    colour: str = HIGHLIGHT,
    first_dash: int = 0,
) -> Legend:
    """Draw equations in every place, each with its own dash; return their legend.

    Args:
        places: where they are drawn. Places of the same axes with the same constants have one
            curve; otherwise each has a curve in its own colour.
    """
    legend: Legend = []
    for index, equation in enumerate(equations, start=first_dash):
        dash = DASHES[index % len(DASHES)]
        shared = (colour, *FURTHER_COLOURS)[index // len(DASHES) % (1 + len(FURTHER_COLOURS))]
        drawn: dict[tuple[Axes, tuple[float, ...]], Place] = {}
        for place in places:
            constants = constants_of(equation, names, place.cells)
            drawn.setdefault((place.axes, tuple(constants.values())), place)
        varies = len(drawn) > len({axes for axes, _ in drawn})
        lines = [
            draw_equation(
                axes,
                equation,
                names,
                constants_of(equation, names, place.cells),
                place.colour if varies else shared,
                dash,
            )
            for (axes, _), place in drawn.items()
        ]
        white = matplotlib.patheffects.withStroke(linewidth=2.0, foreground="white")
        for (line, _), place in zip(lines, drawn.values(), strict=True):
            line.set_path_effects([white] if place.outlined else [])
        text = equation_in_mathtext(equation, functools.partial(formula_symbol, data.study))
        text += values_in_words([constant_side(equation, names, place.cells) for place in places])
        text += f" ({literal(shorten(equation.label))})" if equation.label else ""
        hidden = {problem for _, problem in lines}
        problem = "" if "" in hidden else f" ({min(hidden)})"
        stroke = _DASHES_IN_WORDS[index % len(DASHES)]
        figure.facts.append(f"{stroke}: {text}{problem}.")
        handle = Line2D([], [], color="0.3", linestyle=dash) if varies else lines[0][0]
        legend.append((handle, f"{text}{problem}"))
    return legend


def constant_side(equation: Equation, names: tuple[str, str], cells: pd.DataFrame) -> float | None:
    """Return the value of a right side that has names of constants alone; None of another."""
    named = equation.right.names
    if not named or named & {*names}:
        return None
    return float(equation.right.value(_arrays(constants_of(equation, names, cells))))


def values_in_words(values: Sequence[float | None]) -> str:
    """Return the values of a right side of constants, if it has some: `= 204`, `= 78, 228, 828`."""
    known = list(dict.fromkeys(value for value in values if value is not None))
    numbers = [tick_number(round_digits(value, 3)) for value in known]
    return f" = {', '.join(numbers)}" if numbers else ""


def constants_of(
    equation: Equation, names: tuple[str, str], cells: pd.DataFrame
) -> dict[str, float]:
    """Return the number of each constant of an equation."""
    constants = {}
    for name in sorted(equation.names.difference(names)):
        values = sorted(cells[name].dropna().unique().tolist())
        if len(values) != 1:
            excerpt = f"{', '.join(map(str, values[:4]))}{', ...' if len(values) > 4 else ''}"
            raise BadValue(
                "law",
                equation.text,
                f"{name} varies here ({excerpt}), and is neither an axis nor a constant; choose "
                f"one value (option where, {name}=VALUE).",
            )
        constants[name] = float(values[0])
    return constants
