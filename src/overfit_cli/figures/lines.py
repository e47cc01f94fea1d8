"""A measured column against a parameter: a line for each setting of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.axes
import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from overfit_cli.errors import UserError
from overfit_cli.figure import MOST_PANELS, FigureData, FigureOptions
from overfit_cli.figures.axis import Axis, parameter_axis, parameter_values
from overfit_cli.figures.geometric import logarithms, spans_widely
from overfit_cli.figures.inputs import checked_threshold, measured, with_numbers
from overfit_cli.figures.panels import panels
from overfit_cli.figures.style import (
    HIGH,
    PALETTE,
    WIDE,
    Legend,
    legend_below,
    log_ticks,
    new_panels,
    plain,
    styled,
    title_panels,
    wrapped,
)
from overfit_cli.words import plural

MARKERS = "os^Dvp*P"
_BESIDE = 0.08
"""How far apart the points of several lines stand that have one x, which isn't a number."""


@dataclass(frozen=True)
class Line:
    """One setting of the parameters other than x; the arrays have a value for each x.

    Attributes:
        text: the setting.
        at: the values of x.
        mean, low, high: over the seeds that are done; nan where none is.
        failed: whether every seed failed.
    """

    text: str
    at: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    failed: np.ndarray


@styled
def draw_lines(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw `options.value` against x, with panels by `by` and a line for each other setting.

    Points are means over seeds, with a band of one standard deviation; geometric where the column
    is positive and spans a factor of a million. Where x isn't a number, points stand side by side,
    with bars. Where every seed failed there is a cross on top.

    Raises:
        UserError: if x doesn't vary, there are more lines than colours, the column is unknown or
            empty, or the threshold isn't finite.
    """
    x = parameter_axis(data, "--x", options.x)
    value, label = measured(data, options.value)
    threshold = checked_threshold(options.threshold)
    numbers = with_numbers(data, value)[value]
    log = bool(numbers.min() > 0 and numbers.max() / numbers.min() > 10)
    geometric = spans_widely(numbers)
    parts = panels(data, options.by)
    varying = [name for name, values in parameter_values(data).items() if len(values) > 1]
    others = [name for name in varying if name != x.name]
    names = [name for name in others if name != options.by]
    gathered = [_lines(part.data, names, x, value, geometric) for part in parts]
    texts = list(dict.fromkeys(line.text for lines in gathered for line in lines))
    if len(texts) > len(PALETTE):
        raise UserError(
            f"--x {x.name}: the other parameters have {len(texts)} settings here, and a figure "
            f"shows up to {len(PALETTE)} lines{_way_out(data.cells, others)}"
        )
    figure, all_axes = new_panels(len(parts), height=2.8)
    for axes, lines in zip(all_axes, gathered, strict=True):
        _dress(axes, x, log=log or geometric)
        for line in lines:
            place = texts.index(line.text)
            look = {"color": PALETTE[place], "marker": MARKERS[place]}
            if x.scale == "category":
                _draw_apart(axes, line, look, _BESIDE * (place - (len(texts) - 1) / 2))
            else:
                _draw_joined(axes, line, look)
        if threshold is not None:
            axes.axhline(threshold, color="0.4", linestyle=(0, (4, 2)), linewidth=0.8)
    all_axes[0].set_ylabel(wrapped(label, HIGH))
    title_panels(figure, all_axes, [part.title for part in parts], _title(data, x, geometric))
    legend_below(figure, _legend(texts, gathered, threshold), columns=2 * len(parts))
    return figure


def _way_out(cells: pd.DataFrame, others: Sequence[str]) -> str:
    """The end of a sentence on too many lines: the panels that help, if any do."""
    settings = cells[list(others)].drop_duplicates()
    for name in others:
        lines = settings.drop(columns=name).drop_duplicates()
        if settings[name].nunique() <= MOST_PANELS and len(lines) <= len(PALETTE):
            return f"; --by {name} makes panels of one of them."
    return "; a heatmap over two of them shows more."


def _lines(data: FigureData, names: list[str], x: Axis, value: str, geometric: bool) -> list[Line]:
    groups = data.cells.groupby(names, sort=True) if names else [((), data.cells)]
    found = []
    for at, cells in groups:
        values = at if isinstance(at, tuple) else (at,)
        text = ", ".join(f"{name} = {one}" for name, one in zip(names, values, strict=True))
        found.append(_line(text, cells, x, value, geometric))
    return found


def _line(text: str, cells: pd.DataFrame, x: Axis, value: str, geometric: bool) -> Line:
    where = cells[x.name].map(dict(zip(x.values, x.positions, strict=True)))
    at = np.array(sorted(where.unique()), dtype=np.float64)
    numbers = pd.Series(cells[value].to_numpy(dtype=np.float64, na_value=np.nan), cells.index)
    usable = numbers.where((cells["status"] == "done") & np.isfinite(numbers))
    if geometric:
        usable = logarithms(usable)
    groups = usable.groupby(where)
    mean, deviation = groups.mean().to_numpy(), groups.std().fillna(0.0).to_numpy()
    low, high = mean - deviation, mean + deviation
    if geometric:
        mean, low, high = np.exp(mean), np.exp(low), np.exp(high)
    failed = (cells["status"] == "failed").groupby(where).all().to_numpy()
    return Line(text, at, mean, low, high, failed)


def _dress(axes: matplotlib.axes.Axes, x: Axis, *, log: bool) -> None:
    axes.set_xlabel(wrapped(x.label, WIDE))
    if x.scale == "category":
        x.dress(axes, "x")
    if x.scale == "log":
        axes.set_xscale("log")
        log_ticks(axes.xaxis, float(x.positions[0]), float(x.positions[-1]))
    if log:
        axes.set_yscale("log")
    axes.margins(x=0.04)


def _draw_joined(axes: matplotlib.axes.Axes, line: Line, look: Mapping[str, Any]) -> None:
    """A line with a band."""
    axes.plot(line.at, line.mean, **look)
    axes.fill_between(line.at, line.low, line.high, color=look["color"], alpha=0.2, linewidth=0)
    _mark_failed(axes, line.at[line.failed], look)


def _draw_apart(
    axes: matplotlib.axes.Axes, line: Line, look: Mapping[str, Any], beside: float
) -> None:
    """Points with bars, moved aside by so much of the distance between values."""
    at, bars = line.at + beside, [line.mean - line.low, line.high - line.mean]
    axes.errorbar(at, line.mean, bars, linestyle="", capsize=2, **look)
    _mark_failed(axes, at[line.failed], look)


def _mark_failed(axes: matplotlib.axes.Axes, at: np.ndarray, look: Mapping[str, Any]) -> None:
    if at.size:
        top = axes.get_xaxis_transform()
        axes.plot(at, np.full(at.size, 0.97), "x", color=look["color"], transform=top)


def _title(data: FigureData, x: Axis, geometric: bool) -> str:
    failed = int((data.cells["status"] == "failed").sum())
    kind = "geometric mean" if geometric else "mean"
    spread = "bars" if x.scale == "category" else "band"
    seeds = plural(data.cells["seed"].nunique(), "seed")
    text = f"{kind} of {seeds}, {spread} of one deviation"
    return text + (f"\n{plural(failed, 'failed cell')} left out" if failed else "")


def _legend(texts: list[str], gathered: Sequence[list[Line]], threshold: float | None) -> Legend:
    legend: Legend = [
        (Line2D([], [], color=PALETTE[place], marker=MARKERS[place]), text)
        for place, text in enumerate(texts)
        if text
    ]
    if any(line.failed.any() for lines in gathered for line in lines):
        legend.append((Line2D([], [], color="0.3", marker="x", linestyle=""), "every seed failed"))
    if threshold is not None:
        line = Line2D([], [], color="0.4", linestyle=(0, (4, 2)), linewidth=0.8)
        legend.append((line, f"threshold {plain(threshold)}"))
    return legend
