"""The equations that a figure was asked to draw."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from overfit_cli.analysis.equation import Equation, parse_equation
from overfit_cli.analysis.equation_text import equation_in_mathtext
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.axis import Axis
from overfit_cli.figures.equation_curve import draw_equation
from overfit_cli.figures.labels import spellings, symbol_of
from overfit_cli.figures.picture import Picture
from overfit_cli.figures.style import HIGHLIGHT, Legend


def asked_equations(
    data: FigureData, options: FigureOptions, axes: Sequence[Axis]
) -> list[Equation]:
    """Return the equations to draw, in the names of the axes that are numbers.

    Raises:
        UserError: if one is no equation in them.
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
    """Draw equations in every panel, each with a dash of its own; return their legend."""
    legend: Legend = []
    symbols = {axis.name: symbol_of(data.study, axis.name) for axis in (x, y)}
    for place, equation in enumerate(equations):
        drawn = [draw_equation(axes, equation, x.name, y.name, place, colour) for axes in panels]
        text = equation_in_mathtext(equation, symbols)
        seen = any(in_view for _, in_view in drawn)
        figure.facts.append(f"Line: {text}.")
        legend.append((drawn[0][0], text if seen else f"{text} (out of view)"))
    return legend
