"""Figures of a study: their options, how they are drawn, and those that any grid can have.

A figure is drawn from `core.cells.Cells`, by a function that is imported when it first draws:
naming a figure, or its options, costs no import of a library.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.options import Band, Mean, checked, option, read_options
from overfit_cli.core.text import shorten

MOST_PANELS = 12
"""The largest number of panels that fit on a page."""

LOG_NAMES = ("x", "y", "value")
"""The axes that may be logarithmic."""


@dataclass(frozen=True)
class FigureOptions:
    """The options of a figure; None leaves the choice to the figure.

    What each takes and means is told here once: the command line has its options from it. A study's
    own options may name several parameters for `by`, separated by commas: the first that varies is
    taken. An empty `law` draws none.
    """

    x: str | None = option(
        "NAME", "Parameter on the horizontal axis, or an expression such as 'n / d'."
    )
    y: str | None = option("NAME", "Parameter on the vertical axis, or an expression.")
    value: str | None = option(
        "COLUMN",
        "Measured column to draw, or an expression such as 'test_error - train_error'. `curves` "
        "takes several, with commas between, and lists of them, with semicolons, for rows.",
    )
    threshold: float | None = option("T", "Value that separates the two sides.", typed=str | None)
    law: tuple[str, ...] | None = option(
        "EQUATION",
        "Equation of a curve to draw, such as 'N * SNR**2 = 1000', or with a label 'threshold: "
        "m = n'; may be repeated. With none, the study's own are left out.",
    )
    by: str | None = option(
        "NAME", "Parameter that has a panel for each value; in `boundary`, a colour for each."
    )
    log: frozenset[str] | None = option(
        "x,y,value|none", "Which axes are logarithmic; the others are linear.", typed=str | None
    )
    mean: Mean | None = option(
        "arithmetic|geometric|median", "Statistic over seeds.  [default: the median]"
    )
    band: Band | None = option(
        "interval|sd|quartiles|seeds",
        "Band around it; seeds draws a line for each seed.  [default: quartiles of a median, "
        "the interval of a mean]",
    )
    theory: str | None = option(
        "COLUMN",
        "Column with a prediction: dashed beside the value in `lines` and `curves`; on a map or a "
        "boundary the place on an axis, such as a transition, or where it is the threshold.",
    )

    @classmethod
    def read(cls, **given: Any) -> FigureOptions:
        """Return options of a user: numbers and lists as texts, `none` for none."""
        from overfit_cli.core.expressions import read_number

        asked = read_options(cls, given)
        cut, law, log = asked.threshold, asked.law, checked("log", asked.log, str)
        axes = frozenset(map(str.strip, ("none" if log is None else log).split(","))) - {"none"}
        if not axes <= {*LOG_NAMES}:
            accepts = f"it takes some of {', '.join(LOG_NAMES)}, separated by commas, or none."
            raise BadValue("log", shorten(str(log)), accepts)
        return replace(
            asked,
            threshold=None if cut is None else read_number(cut, "threshold"),
            law=None if law is None else tuple(text for text in law if text != "none"),
            log=None if log is None else axes,
        )

    def given(self) -> dict[str, Any]:
        """Return the options that are not left to the figure, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def is_log(self, *axes: str) -> bool | None:
        """Return whether the user wants one of some axes logarithmic; None without a choice."""
        return None if self.log is None else not self.log.isdisjoint(axes)


Draw = Callable[[Any, FigureOptions], Any]
"""From `core.cells.Cells` and options to a `figures.picture.Picture`."""


def lazily(location: str) -> Callable[..., Any]:
    """Return the function at `location`, `module:function`, imported when it is first called."""

    def call(*given: Any, **named: Any) -> Any:
        module, name = location.split(":")
        return getattr(importlib.import_module(module), name)(*given, **named)

    return call


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
        equation_of: the equation to draw for these cells, where it depends on more than the axes,
            and a sentence for the caption on where it comes from, or none.
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
    equation_of: Callable[[Any], tuple[str, str]] | None = None
    fits: Callable[[Any], bool] = lambda data: True
    reproduces: Callable[[Any], bool] = lambda data: True
    labels: Mapping[str, str] = field(default_factory=dict)

    def showing(self, name: str = "", title: str = "", **given: Any) -> Figure:
        """Return the figure with another name, title, and fields or options by their names."""
        named = {"name": name or self.name, "title": title or self.title}
        own = {key: given.pop(key) for key in [*given] if key in Figure.__dataclass_fields__}
        return replace(self, **named | own, options=replace(self.options, **given))


def drawn_in(module: str, name: str, title: str, preset: str = "", **other: Any) -> Figure:
    """Return the figure that `draw_NAME` of a module draws, of data that `has_NAME` accepts.

    It reads cells, unless `reads` says otherwise. Without such a test it fits any data; with one it
    needs cells as those of the preset.
    """
    underlined = name.replace("-", "_")

    def fits(data: Any) -> bool:
        test = getattr(importlib.import_module(module), f"has_{underlined}", None)
        return test is None or test(data)

    def draw(data: Any, options: FigureOptions) -> Any:
        if not fits(data):
            raise UserError(f"The figure `{name}` needs cells as in `overfit sweep {preset}`.")
        return getattr(importlib.import_module(module), f"draw_{underlined}")(data, options)

    return Figure(name, title, **{"reads": "cells", "draw": draw, "fits": fits, **other})


def defaults_but(*free: str) -> Callable[[Any], bool]:
    """Return a test for `reproduces`: whether all parameters but some have the paper's values."""

    def have_defaults(data: Any) -> bool:
        return all(
            bool((data.trained[name] == declared.default).all())
            for name, declared in data.study.parameters.model_fields.items()
            if name not in free and name in data.trained
        )

    return have_defaults


_GRID = frozenset({"x", "y", "value", "threshold", "law", "log", "from"})
_LINES = frozenset({"value", "threshold", "by", "log", "mean", "band", "theory", "from"})

HEATMAP = Figure(
    name="heatmap",
    title="The headline over two parameters, averaged over seeds",
    reads="cells",
    draw=lazily("overfit_cli.figures.map:draw_map"),
    accepts=_GRID | {"by", "mean", "minus", "theory"},
    axes=2,
)
CUTOFF = replace(
    HEATMAP,
    name="cutoff",
    accepts=_GRID | {"by", "mean", "theory"},
    title="Which side of a threshold the headline is on, over two parameters",
    draw=lazily("overfit_cli.figures.map:draw_cutoff"),
)
BOUNDARY = replace(
    HEATMAP,
    name="boundary",
    title="Where the headline crosses a threshold, and the power law fitted to it",
    draw=lazily("overfit_cli.figures.boundary:draw_boundary"),
    accepts=_GRID | {"by", "theory"},
)
LINES = replace(
    HEATMAP,
    name="lines",
    title="A measured column against a parameter, a line for each setting of the others",
    draw=lazily("overfit_cli.figures.lines:draw_lines"),
    accepts=_LINES | {"x", "law", "minus"},
    axes=1,
)
CURVES = Figure(
    name="curves",
    title="Logged columns against the step of training",
    reads="trajectories",
    draw=lazily("overfit_cli.figures.lines:draw_curves"),
    accepts=_LINES,
)


def grid_figures(threshold: float | None = None) -> Mapping[str, Figure]:
    """Return the figures that every study has."""
    options = FigureOptions(threshold=threshold)
    cut = (replace(figure, options=options) for figure in (CUTOFF, BOUNDARY))
    return collect_figures(HEATMAP, *cut, LINES, CURVES)


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
            draw=lazily("overfit_cli.figures.lines:draw_learning"),
        ),
        replace(
            LINES,
            name="learning-rates",
            title=f"Test loss, averaged over the steps, against the step size, for {compared}",
            options=FigureOptions(x="learning_rate", value="mean_test_loss"),
            axes=0,
            draw=lazily("overfit_cli.figures.lines:draw_learning_rates"),
        ),
    )


def bounds_figure(rows: Mapping[str, str], told: tuple[str, ...] = (), **of: Any) -> Figure:
    """Return a figure of what was measured over bounds, a row for each sentence by its label.

    Args:
        rows: as `figures.bounds` reads them.
        told: parameters that points tell apart where they vary, the first two of them.
        of: other fields of the figure.
    """
    module = "overfit_cli.figures.bounds"
    usual: dict[str, Any] = {
        "name": "bounds",
        "title": "What is measured over each bound, cell by cell",
        "reads": "cells",
        "draw": partial(lazily(f"{module}:draw_bounds"), rows, told),
        "fits": partial(lazily(f"{module}:has_bounds"), rows),
    }
    return Figure(**usual | of)


def collect_figures(*figures: Figure) -> dict[str, Figure]:
    """Return figures by their names."""
    return {figure.name: figure for figure in figures}
