"""Curves of equations over a figure's axes: those that the user or the study names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import matplotlib.patheffects
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.typing import LineStyleType

from overfit_cli.core.arrays import Floats
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.figures.axes import Axis
from overfit_cli.figures.labels import formula_symbol, spellings
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.style import HIGHLIGHT, Legend
from overfit_cli.stats.equations import Equation, equation_in_mathtext, parse_equation

Difference = Callable[[Floats, Floats], Floats]
POINTS = 400  # per axis: the error of a power law's curve is then about 1e-4
DASHES: tuple[LineStyleType, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
FURTHER_COLOURS = ("0.15", "#CC79A7")  # colours of equations beyond the number of dashes
CEILING = 1e100  # keeps the arithmetic of contouring finite


def draw_equation(
    axes: Axes, equation: Equation, x: str, y: str, index: int = 0, colour: str = HIGHLIGHT
) -> tuple[Line2D, bool]:
    """Draw the equation within the limits of `axes`; return the line, and whether it is visible.

    Args:
        axes: axes with their final scales and limits.
        equation: an equation in the names `x` and `y`.
        x: the parameter to the right.
        y: the parameter upward.
        index: the index among several equations, which selects the dash.
        colour: the colour of the first equations.
    """
    log_x, log_y = axes.get_xscale() == "log", axes.get_yscale() == "log"
    curve = equation_curve(
        equation, x, y, axes.get_xlim(), axes.get_ylim(), log_x=log_x, log_y=log_y
    )
    dash = DASHES[index % len(DASHES)]
    colour = (colour, *FURTHER_COLOURS)[index // len(DASHES) % (1 + len(FURTHER_COLOURS))]
    line = Line2D(curve[:, 0], curve[:, 1], color=colour, linestyle=dash)
    white = matplotlib.patheffects.withStroke(linewidth=2.4, foreground="white")
    line.set_path_effects([white])  # keeps it readable on any colour
    axes.add_line(line)
    return line, bool(np.isfinite(curve).any())


def equation_curve(
    equation: Equation,
    x: str,
    y: str,
    x_span: tuple[float, float],
    y_span: tuple[float, float],
    *,
    log_x: bool,
    log_y: bool,
) -> Floats:
    """Return the points where the equation holds.

    Args:
        equation: an equation in the names `x` and `y`.
        x: the parameter to the right.
        y: the parameter upward.
        x_span: the lowest and highest x.
        y_span: the lowest and highest y.
        log_x: whether to interpolate x logarithmically.
        log_y: whether to interpolate y logarithmically.

    Returns:
        x and y, shape (points, 2); rows of nan separate the pieces.
    """

    def difference(u: Floats, v: Floats) -> Floats:
        values = {x: np.exp(u) if log_x else u, y: np.exp(v) if log_y else v}
        return np.clip(equation.difference(values), -CEILING, CEILING)

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
    data: FigureData, options: FigureOptions, axes: Sequence[Axis]
) -> list[Equation]:
    """Return the equations to draw, in the names of the axes that are numbers.

    Raises:
        UserError: if a text is no equation in them.
    """
    names = spellings(data.study, [axis.name for axis in axes if axis.scale != "category"])
    return [parse_equation(text, names) for text in options.law or ()]


def draw_equations(
    figure: Picture,
    panels: Sequence[Axes],
    equations: Sequence[Equation],
    x: Axis,
    y: Axis,
    data: FigureData,
    *,
    colour: str = HIGHLIGHT,
) -> Legend:
    """Draw equations in every panel, each with its own dash; return their legend."""
    legend: Legend = []
    symbols = {axis.name: formula_symbol(data.study, axis.name) for axis in (x, y)}
    for index, equation in enumerate(equations):
        lines = [draw_equation(axes, equation, x.name, y.name, index, colour) for axes in panels]
        text = equation_in_mathtext(equation, symbols)
        visible = any(is_visible for _, is_visible in lines)
        figure.facts.append(f"Line: {text}.")
        legend.append((lines[0][0], text if visible else f"{text} (out of view)"))
    return legend
