"""The figure `dimension`: the boundary's constant and exponent against d, and the test loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.text import plural
from overfit_cli.figures.axes import FEW_VALUES, log_ticks
from overfit_cli.figures.inputs import misses_in_words
from overfit_cli.figures.labels import axis_label, setting, tick_number
from overfit_cli.figures.picture import Picture, is_narrow, title_panels
from overfit_cli.figures.style import PAGE, PALETTE, Legend, shades
from overfit_cli.studies.benign_vit.boundary import Boundary, boundaries, why_no_boundary
from overfit_cli.studies.benign_vit.theory import (
    FIGURE_1_CONSTANT,
    FIGURE_1_EXPONENT,
    FIGURE_1_THRESHOLD,
)

EXPECTED: dict[str, Any] = {"color": "0.45", "linestyle": (0, (4, 2)), "linewidth": 0.9}

_PRODUCT = r"$N \cdot \mathrm{SNR}^2$"
_BINS = 24
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.5)))  # lines that coincide are all seen
_ALIKE = 0.1
"""The relative difference up to which two lines coincide."""


def has_dimensions(data: Cells) -> bool:
    """Whether d is an axis, with grids over N and the signal-to-noise ratio."""
    return data.trained["d"].nunique() > 1 and why_no_boundary(data.trained, "d") is None


def draw_dimension(data: Cells, options: FigureOptions) -> Picture:
    """Draw the boundary's constant C and exponent p against d, and the test loss against N · SNR².

    Constants are medians over the curves of all N and seeds, with quartiles; exponents have 95 %
    bootstrap intervals. Curves that never cross count as beyond the grid.
    """
    threshold = FIGURE_1_THRESHOLD if options.threshold is None else options.threshold
    single = "d takes one value only" if data.trained["d"].nunique() < 2 else None
    if why := single or why_no_boundary(data.trained, "d"):
        raise UserError(
            f"The figure `dimension` shows where overfitting turns benign over d, as in `overfit "
            f"sweep dimension`; in these cells that can't be found: {why}."
        )
    series = boundaries(data.trained, "d", threshold)
    narrow = is_narrow()
    figure = Picture(PAGE, 7.2 if narrow else 2.7)
    constants, exponents, losses = figure.subplots(3, 1) if narrow else figure.subplots(1, 3)
    _draw_reference(constants, FIGURE_1_CONSTANT, "figure 1: 1000")
    _draw_reference(exponents, FIGURE_1_EXPONENT, "theorems: 2")
    crossings = {boundary.at: (boundary.median, boundary.low, boundary.high) for boundary in series}
    _draw_intervals(constants, crossings, "median, quartiles")
    fits = {boundary.at: boundary.fit for boundary in series if boundary.fit is not None}
    powers = {value: fit.exponent[:3] for value, fit in fits.items()}
    _draw_intervals(exponents, powers, "fit, 95 % interval")
    constants.set_ylabel(f"{_PRODUCT} at the crossing")
    exponents.set_ylabel(r"$p$ of $N \cdot \mathrm{SNR}^p = C$")
    room = 1.3 * (series[-1].at / series[0].at) ** 0.08
    for axes in (constants, exponents):
        axes.set(xscale="log", xlabel=axis_label(data.schema, "d"))
        axes.set_xlim(series[0].at / room, series[-1].at * room)
        if len(series) <= FEW_VALUES:
            axes.set_xticks(
                [boundary.at for boundary in series],
                [tick_number(boundary.at) for boundary in series],
            )
    lines = _draw_across(losses, data, threshold)
    title_panels([constants, exponents, losses], [""] * 3)
    figure.facts += [f"{_numbers_in_words(series, data.trained, threshold)}.", *_coinciding(lines)]
    return figure


def _draw_reference(axes: Axes, level: float, name: str, side: float = 0.7) -> None:
    axes.axhline(level, **EXPECTED)
    axes.annotate(
        name,
        (side, level),
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
    axes: Axes, values: Mapping[float, tuple[float, float, float]], text: str
) -> None:
    """Draw each number with the ends of its interval, and the legend of both below them."""
    positions, table = np.array(list(values)), np.array(list(values.values())).reshape(-1, 3)
    high, low = np.isposinf(table).any(axis=1), (table == 0).any(axis=1)
    shown = np.isfinite(table[:, 0]) & (table[:, 0] > 0)
    middle, ends = table[shown, 0], table[shown, 1:]
    ends = np.where(np.isfinite(ends) & (ends > 0), ends, middle[:, None])
    bars = [middle - ends[:, 0], ends[:, 1] - middle]
    points = axes.errorbar(
        positions[shown], middle, yerr=bars, fmt="o", color=PALETTE[0], elinewidth=0.8, zorder=3
    )
    for marker, height, chosen in (("^", 0.96, high), ("v", 0.04, low)):
        heights = np.full(int(chosen.sum()), height)
        edge: Any = {"transform": axes.get_xaxis_transform(), "color": PALETTE[0]}
        axes.plot(positions[chosen], heights, marker, **edge)
    legend: Legend = [(points, text)]
    if high.any() or low.any():
        arrow = Line2D([], [], color=PALETTE[0], marker="^", linestyle="")
        legend.append((arrow, "beyond the grid"))
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom - 0.15 * len(legend) * (top - bottom), top)
    _draw_legend(axes, legend)


def _draw_legend(axes: Axes, legend: Legend) -> None:
    handles, texts = zip(*legend, strict=True)
    axes.legend(handles, texts, loc="lower left", borderaxespad=0.2)


Lines = Mapping[str, tuple[np.ndarray, np.ndarray]]
"""The centres of the bins of each line, and its numbers, by its text."""


def _draw_across(axes: Axes, data: Cells, threshold: float) -> Lines:
    done = data.trained[data.trained["status"] == "done"]
    values = sorted(done["d"].unique().tolist())
    shown = sorted({values[0], values[len(values) // 2], values[-1]})
    colours = shades(len(shown))
    legend: Legend = []
    lines = {}
    for value, colour, dash in zip(shown, colours, _DASHES[: len(shown)], strict=True):
        chosen = done[done["d"] == value]
        logs = np.log(chosen["n"] * chosen["snr"] ** FIGURE_1_EXPONENT)
        edges = np.linspace(logs.min(), logs.max(), _BINS + 1)
        bins = pd.Series(np.digitize(logs, edges[1:-1]), index=chosen.index)
        medians = chosen["test_loss"].groupby(bins).median()
        centres = np.exp(logs.groupby(bins).mean())
        text = setting(data.schema, "d", value)
        (line,) = axes.plot(centres, medians, color=colour, linestyle=dash)
        legend.append((line, text))
        lines[text] = (centres.to_numpy(), medians.to_numpy())
    level = f"threshold {tick_number(threshold)}"
    _draw_reference(axes, threshold, level, side=0.25)
    symbol = {column.name: column.symbol for column in data.study.columns}["test_loss"]
    axes.set(xscale="log", yscale="log", xlabel=_PRODUCT)
    axes.set_ylabel(f"median test loss ${symbol}$")
    log_ticks(axes.xaxis, *axes.get_xlim())
    log_ticks(axes.yaxis, *axes.get_ylim())
    _draw_legend(axes, legend)
    return lines


def _coinciding(lines: Lines) -> list[str]:
    names, numbers = list(lines), list(lines.values())
    return [
        f"The lines of {first} and {second} coincide."
        for first, second, (x, low), (other_x, high) in zip(
            names, names[1:], numbers, numbers[1:], strict=False
        )
        if np.all(np.abs(np.log(np.interp(x, other_x, high) / low)) < _ALIKE)
    ]


def _numbers_in_words(series: Sequence[Boundary], cells: pd.DataFrame, threshold: float) -> str:
    failed = cells[cells["status"] == "failed"]
    never, count = (
        sum(boundary.never for boundary in series),
        sum(boundary.curves for boundary in series),
    )
    parts = [
        f"Where the test loss crosses {threshold:g}: median and quartiles of {_PRODUCT}, p with "
        f"its 95 % interval; {plural(cells['seed'].nunique(), 'seed')}"
    ]
    if never:
        parts.append(f"curves that never cross: {never} of {count}")
    if len(failed):
        parts.append(f"{plural(len(failed), 'cell')} ({misses_in_words(failed)}) left out")
    return "; ".join(parts)
