"""A boundary's constant and exponent against another parameter, and a column across it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from overfit_cli.core.figure import FigureData
from overfit_cli.core.text import plural
from overfit_cli.figures.axes import axis_label, setting
from overfit_cli.figures.boundary import EXPECTED
from overfit_cli.figures.picture import Picture, is_narrow
from overfit_cli.figures.style import (
    PAGE,
    PALETTE,
    Legend,
    colours_of_map,
    legend_below,
    log_ticks,
    plain,
)
from overfit_cli.stats.boundaries import Boundary, Curves

_BINS = 24


@dataclass(frozen=True)
class BoundaryWords:
    """What a boundary y · x^p = C is called, and what is expected of it.

    Attributes:
        product: y · x^p at the expected p, such as `N·SNR²`.
        equation: the equation with an open p, in mathtext.
        value: the measured column in words.
        constant, exponent: those that are expected.
        expected_constant, expected_exponent: what these are, for beside their lines.
    """

    product: str
    equation: str
    value: str
    constant: float
    exponent: float
    expected_constant: str
    expected_exponent: str


def draw_boundary_numbers(
    data: FigureData, found: Sequence[Boundary], axis: str, curves: Curves, words: BoundaryWords
) -> Picture:
    """Draw C and p against a parameter, and the measured column against y · x^p.

    Constants are medians over the curves of all y and seeds, with quartiles; exponents have 95 %
    bootstrap intervals. Curves that never cross count as beyond the grid.

    Args:
        data: what was run.
        found: a boundary for each value of the parameter, ascending.
        axis: the parameter.
        curves: what crosses what.
        words: how it is called.
    """
    narrow = is_narrow()
    figure = Picture(PAGE, 6.6 if narrow else 2.5)
    constants, exponents, losses = figure.subplots(3, 1) if narrow else figure.subplots(1, 3)
    beyond = _draw_intervals(constants, {one.at: (one.median, one.low, one.high) for one in found})
    fits = {one.at: one.fit for one in found if one.fit is not None}
    _draw_intervals(exponents, {at: fit.exponent[:3] for at, fit in fits.items()})
    _draw_reference(constants, words.constant, words.expected_constant)
    _draw_reference(exponents, words.exponent, words.expected_exponent)
    constants.set_ylabel(f"{words.product} at the crossing")
    exponents.set_ylabel(f"$p$ of {words.equation}")
    for axes in (constants, exponents):
        axes.set(xscale="log", xlabel=axis_label(data.study, axis))
        axes.set_xlim(found[0].at / 2, found[-1].at * 2)
    across = _draw_across(losses, data, axis, curves, words)
    figure.facts.append(f"{_title(found, data.cells, curves, words)}.")
    legend_below(figure, [*_legend(beyond), *across], columns=4)
    return figure


def _legend(beyond: bool) -> Legend:
    arrow = Line2D([], [], color=PALETTE[0], marker="^", linestyle="")
    return [
        (Line2D([], [], color=PALETTE[0], marker="o", linestyle=""), "measured"),
        *([(arrow, "beyond the grid")] if beyond else []),
    ]


def _draw_reference(axes: matplotlib.axes.Axes, level: float, name: str) -> None:
    """Draw a horizontal line, with its name on it at the right end."""
    axes.axhline(level, **EXPECTED)
    axes.annotate(
        name,
        (0.7, level),
        xycoords=axes.get_yaxis_transform(),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=6.5,
        color=EXPECTED["color"],
        path_effects=[withStroke(linewidth=2, foreground="white")],
    )


def _draw_intervals(
    axes: matplotlib.axes.Axes, values: Mapping[float, tuple[float, float, float]]
) -> bool:
    """Draw each number with the ends of its interval; return whether any lies beyond the grid.

    What does is an arrowhead at the edge of the panel: up where a number is infinite, down where
    it is 0.
    """
    at, table = np.array(list(values)), np.array(list(values.values())).reshape(-1, 3)
    high, low = np.isposinf(table).any(axis=1), (table == 0).any(axis=1)
    shown = np.isfinite(table[:, 0]) & (table[:, 0] > 0)
    middle, ends = table[shown, 0], table[shown, 1:]
    ends = np.where(np.isfinite(ends) & (ends > 0), ends, middle[:, None])
    bars = [middle - ends[:, 0], ends[:, 1] - middle]
    axes.errorbar(at[shown], middle, yerr=bars, fmt="o", color=PALETTE[0], elinewidth=0.8, zorder=3)
    for marker, place, some in (("^", 0.96, high), ("v", 0.04, low)):
        heights = np.full(int(some.sum()), place)
        edge: Any = {"transform": axes.get_xaxis_transform(), "color": PALETTE[0]}
        axes.plot(at[some], heights, marker, **edge)
    return bool(high.any() or low.any())


def _draw_across(
    axes: matplotlib.axes.Axes, data: FigureData, axis: str, curves: Curves, words: BoundaryWords
) -> Legend:
    """Draw the column's mean against y · x^p for the ends and the middle of the parameter."""
    done = data.cells[data.cells["status"] == "done"]
    values = sorted(done[axis].unique().tolist())
    shown = sorted({values[0], values[len(values) // 2], values[-1]})
    colours = colours_of_map(np.linspace(0, 0.85, len(shown)).tolist())
    handles: Legend = []
    dashes = ("-", (0, (4, 1.5)), (0, (1, 1.5)))  # lines that coincide are all seen
    for value, colour, dash in zip(shown, colours, dashes[: len(shown)], strict=True):
        some = done[done[axis] == value]
        logs = np.log(some[curves.y] * some[curves.x] ** curves.power)
        edges = np.linspace(logs.min(), logs.max(), _BINS + 1)
        bins = pd.Series(np.digitize(logs, edges[1:-1]), index=some.index)
        means = some[curves.value].groupby(bins).mean()
        centres = np.exp(logs.groupby(bins).mean())
        (line,) = axes.plot(centres, means, color=colour, linestyle=dash)
        handles.append((line, setting(data.study, axis, value)))
    _draw_reference(axes, curves.threshold, f"threshold {plain(curves.threshold)}")
    symbol = {column.name: column.symbol for column in data.study.columns}[curves.value]
    axes.set(xscale="log", yscale="log", xlabel=words.product)
    axes.set_ylabel(f"mean {words.value} ${symbol}$")
    log_ticks(axes.xaxis, *axes.get_xlim())
    log_ticks(axes.yaxis, *axes.get_ylim())
    return handles


def _title(
    found: Sequence[Boundary], cells: pd.DataFrame, curves: Curves, words: BoundaryWords
) -> str:
    failed = int((cells["status"] == "failed").sum())
    never, count = sum(one.never for one in found), sum(one.curves for one in found)
    parts = [
        f"Where the {words.value} crosses {curves.threshold:g}: median and quartiles of "
        f"{words.product}, p with its 95 % interval; {plural(cells['seed'].nunique(), 'seed')}"
    ]
    if never:
        parts.append(f"curves that never cross: {never} of {count}")
    if failed:
        parts.append(f"{plural(failed, 'failed cell')} left out")
    return "; ".join(parts)
