"""Figures of a study: their options, how they are drawn, and those that any grid can have.

A figure is drawn from `core.study.FigureData`, by a function that is imported when it first draws:
naming a figure costs no import of matplotlib.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from overfit_cli.core.parameters import describe

MOST_AXES = 3
"""The largest number of parameters that may vary in a figure: two axes, and panels."""

MOST_PANELS = 12
"""The largest number of panels that fit on a page."""


@dataclass(frozen=True)
class FigureOptions:
    """The options of a figure; None leaves the choice to the figure.

    Attributes:
        x, y, value, theory: names, or expressions such as `n / d` and `test_error - train_error`.
        threshold: the value at which a cell changes sides.
        law: equations to draw as curves, in the names of the axes and of constants: `n * snr**2 =
            1000`; an empty tuple draws none.
        by: name of the parameter whose values have a panel each; a study's own options may name
            several, separated by commas: the first that varies is taken.
        log: those of `x`, `y` and `value` that are logarithmic; the others are then linear.
        mean: the statistic over seeds: `arithmetic`, `geometric` or `median`.
        band: the band around it: `interval` (95 %), `sd`, `quartiles`, or `seeds` for a line for
            each seed.
    """

    x: str | None = None
    y: str | None = None
    value: str | None = None
    threshold: float | None = None
    law: tuple[str, ...] | None = None
    by: str | None = None
    log: frozenset[str] | None = None
    mean: str | None = None
    band: str | None = None
    theory: str | None = None


Draw = Callable[[Any, FigureOptions], Any]
"""From `core.study.FigureData` and options to a `figures.picture.Picture`."""


def _import_object(location: str) -> Any:
    module, name = location.split(":")
    return getattr(importlib.import_module(module), name)


def lazy_check(location: str) -> Callable[[Any], bool]:
    """Return the test at `location`, `module:function`, imported when it is first called."""

    def fits(data: Any) -> bool:
        return bool(_import_object(location)(data))

    return fits


def lazy_drawing(location: str) -> Draw:
    """Return the drawing function at `location`, `module:function`, imported when it is called."""

    def draw(data: Any, options: FigureOptions) -> Any:
        drawing: Draw = _import_object(location)
        return drawing(data, options)

    return draw


@dataclass(frozen=True)
class Figure:
    """A picture of a study's results.

    Attributes:
        reads: whether it needs a sweep's `cells` or logged `trajectories`.
        draw: makes the picture; raises `UserError` where the data do not suffice.
        source: the figure of the paper that it reproduces; empty where it is our own.
        accepts: the names of the options that it takes; `from` stands for several run directories,
            and `minus` for their difference.
        axes: the number of axes that it needs; a parameter that varies is taken for one left open.
        equation_of: the equation to draw for these cells, where it depends on more than the axes.
        fits: whether a run directory has the data that it needs beside its axes.
        reproduces: whether cells have the settings of the source's figure.
        labels: what the figure calls an expression among its options, by its text.
    """

    name: str
    title: str
    reads: Literal["cells", "trajectories"]
    draw: Draw
    source: str = ""
    options: FigureOptions = FigureOptions()
    accepts: frozenset[str] = frozenset()
    axes: int = 0
    equation_of: Callable[[Any], str | None] | None = None
    equation_note: Callable[[Any], str] = lambda data: ""
    fits: Callable[[Any], bool] = lambda data: True
    reproduces: Callable[[Any], bool] = lambda data: True
    labels: Mapping[str, str] = field(default_factory=dict)


def defaults_but(*free: str) -> Callable[[Any], bool]:
    """Return a test for `reproduces`: whether all parameters but some have the paper's values."""

    def have_defaults(data: Any) -> bool:
        return all(
            bool((data.cells[name] == info.default).all())
            for name, info in describe(data.study.parameters).items()
            if name not in free and name in data.cells
        )

    return have_defaults


_GRID = frozenset({"x", "y", "value", "threshold", "law", "log", "from"})
_LINES = frozenset({"value", "threshold", "by", "log", "mean", "band", "theory", "from"})

HEATMAP = Figure(
    name="heatmap",
    title="The headline over two parameters, averaged over seeds",
    reads="cells",
    draw=lazy_drawing("overfit_cli.figures.heatmap:draw_heatmap"),
    accepts=_GRID | {"by", "mean", "minus"},
    axes=2,
)
CUTOFF = replace(
    HEATMAP,
    name="cutoff",
    accepts=_GRID | {"by", "mean"},
    title="Which side of a threshold the headline is on, over two parameters",
    draw=lazy_drawing("overfit_cli.figures.cutoff:draw_cutoff"),
)
BOUNDARY = Figure(
    name="boundary",
    title="Where the headline crosses a threshold, and the power law fitted to it",
    reads="cells",
    draw=lazy_drawing("overfit_cli.figures.boundary:draw_boundary"),
    accepts=_GRID | {"by"},
    axes=2,
)
LINES = Figure(
    name="lines",
    title="A measured column against a parameter, a line for each setting of the others",
    reads="cells",
    draw=lazy_drawing("overfit_cli.figures.lines:draw_lines"),
    accepts=_LINES | {"x", "law", "minus"},
    axes=1,
)
CURVES = Figure(
    name="curves",
    title="Logged columns against the step of training",
    reads="trajectories",
    draw=lazy_drawing("overfit_cli.figures.curves:draw_curves"),
    accepts=_LINES,
)


def grid_figures(threshold: float | None = None) -> Mapping[str, Figure]:
    """Return the figures that every study has."""
    cut = FigureOptions(threshold=threshold)
    return collect_figures(
        HEATMAP, replace(CUTOFF, options=cut), replace(BOUNDARY, options=cut), LINES, CURVES
    )


def learning_figures(
    compared: str, source: str, columns: str = "test_loss,test_accuracy"
) -> Mapping[str, Figure]:
    """Return the figures of a classifier's training: curves at best step sizes, and the sweep.

    `columns` are the logged columns of the curves, commas between; each has a panel.
    """
    losses = "Losses and test" if "train_loss" in columns else "Test loss and"
    return collect_figures(
        replace(
            CURVES,
            title=f"{losses} accuracy against steps, {compared} at its best step size",
            source=source,
            options=FigureOptions(value=columns),
            draw=lazy_drawing("overfit_cli.figures.best_curves:draw_learning"),
        ),
        replace(
            LINES,
            name="learning-rates",
            title=f"Test loss, averaged over the steps, against the step size, for {compared}",
            options=FigureOptions(x="learning_rate", value="mean_test_loss"),
            axes=0,
            draw=lazy_drawing("overfit_cli.figures.best_curves:draw_learning_rates"),
        ),
    )


def collect_figures(*figures: Figure) -> dict[str, Figure]:
    """Return figures by their names."""
    return {figure.name: figure for figure in figures}
