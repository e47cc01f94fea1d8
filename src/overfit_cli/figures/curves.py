"""Logged columns against the step of training."""

from __future__ import annotations

import matplotlib
import matplotlib.axes
import matplotlib.figure
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType, LineStyleType

from overfit_cli.errors import UserError, nearest
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.question import checked_threshold
from overfit_cli.figures.runs import Curve, gather_curves
from overfit_cli.figures.style import (
    COLOUR_MAP,
    HIGH,
    PALETTE,
    Legend,
    legend_below,
    log_ticks,
    new_figure,
    plain,
    styled,
    wrapped,
)
from overfit_cli.study import axis_label

DASHES: tuple[LineStyleType, ...] = ("-", "--", ":", "-.")
NAMED = 6  # of more curves than the palette has colours, so many are in the legend


@styled
def draw_curves(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw logged columns against the step.

    The column is `options.value`; by default the study's losses (`..._loss`), or its headline.
    Up to eight cells are a curve each. More are averaged over seeds, with a band of one standard
    deviation, up to the last step that all seeds of a curve have reached.

    Raises:
        UserError: if nothing was logged, the column is unknown, or the threshold isn't finite.
    """
    columns = _columns(data, options.value)
    threshold = checked_threshold(options.threshold)
    labels = [axis_label(data.study, column) for column in columns]
    curves, title = gather_curves(data, columns, few=len(PALETTE))
    figure, axes = new_figure(height=2.9)
    _scale(axes, curves, threshold)
    legend = _draw(axes, curves, columns, labels)
    if threshold is not None:
        line = axes.axhline(threshold, color="0.4", linestyle=(0, (4, 2)), linewidth=0.8)
        legend.append((line, f"threshold {plain(threshold)}"))
    ylabel = labels[0] if len(labels) == 1 else "loss"
    axes.set(xlabel="gradient steps", ylabel=wrapped(ylabel, HIGH), title=title)
    legend_below(figure, legend, columns=2)
    return figure


def _columns(data: FigureData, value: str | None) -> list[str]:
    if data.trajectories.empty:
        raise UserError("No steps were logged here; `overfit train` logs a cell's steps.")
    names = [column.name for column in data.study.trajectory_columns]
    logged = [name for name in names if name in data.trajectories]
    losses = [name for name in logged if name.endswith("_loss")]
    chosen = [value] if value is not None else losses or [data.study.headline]
    for name in chosen:
        if name not in logged:
            raise UserError(
                f"--value {name}: {data.study.name} logs no {name!r}; {nearest(name, logged)}"
            )
    return chosen


def _scale(axes: matplotlib.axes.Axes, curves: list[Curve], threshold: float | None) -> None:
    """Make y logarithmic where all that is drawn is positive and spans more than a factor of 10."""
    drawn = np.concatenate([curve.mean.to_numpy().ravel() for curve in curves])
    low, high = np.nanmin([*drawn, threshold or np.nan]), np.nanmax([*drawn, threshold or np.nan])
    if low > 0 and high / low > 10:
        axes.set_yscale("log")
        axes.set_ylim(low / 1.5, high * 1.3)
        log_ticks(axes.yaxis, low, high)
    axes.margins(x=0.02)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _draw(
    axes: matplotlib.axes.Axes, curves: list[Curve], columns: list[str], labels: list[str]
) -> Legend:
    """Draw the curves, and return the legend: which cell by colour, which column by dash."""
    if len(curves) == 1:
        for column, own in zip(columns, PALETTE, strict=False):
            _draw_one(axes, curves[0], column, own, "-")
        entries = list(zip(labels, PALETTE, strict=False)) if len(columns) > 1 else []
        return [(Line2D([], [], color=own), label) for label, own in entries]
    colours = _colours(len(curves))
    for curve, colour in zip(curves, colours, strict=True):
        for column, dash in zip(columns, DASHES, strict=False):
            _draw_one(axes, curve, column, colour, dash)
    dashes = zip(DASHES, labels, strict=False) if len(columns) > 1 else ()
    count = len(curves) if len(curves) <= len(PALETTE) else NAMED
    named = np.unique(np.linspace(0, len(curves) - 1, count).round().astype(int))
    cells = [(Line2D([], [], color=colours[i]), curves[i].text) for i in named]
    columns_ = [(Line2D([], [], color="0.3", linestyle=dash), text) for dash, text in dashes]
    return [*columns_, *cells]


def _draw_one(
    axes: matplotlib.axes.Axes, curve: Curve, column: str, colour: ColorType, dash: LineStyleType
) -> None:
    mean, deviation = curve.mean[column].dropna(), curve.deviation[column].dropna()
    axes.plot(mean.index, mean, color=colour, linestyle=dash)
    low, high = mean - deviation, mean + deviation
    axes.fill_between(mean.index, low, high, color=colour, alpha=0.2, linewidth=0)


def _colours(count: int) -> list[ColorType]:
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    return [tuple(rgb) for rgb in matplotlib.colormaps[COLOUR_MAP](np.linspace(0, 0.95, count))]
