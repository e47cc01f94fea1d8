"""Crossings of a threshold, row by row, and the power law through them."""

from __future__ import annotations

import matplotlib.axes
import matplotlib.figure
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from overfit_cli.analysis.crossings import crossings, medians_by_row
from overfit_cli.analysis.equation import parse_equation
from overfit_cli.analysis.intervals import FEWEST_FOR_MEDIAN
from overfit_cli.analysis.power_law import PowerLaw, fit_power_law
from overfit_cli.errors import UserError
from overfit_cli.figure import FigureData, FigureOptions
from overfit_cli.figures.axis import Axis
from overfit_cli.figures.equation_curve import draw_equation
from overfit_cli.figures.inputs import (
    checked_threshold,
    measured,
    middle_of,
    two_axes,
    with_numbers,
)
from overfit_cli.figures.style import (
    HIGH,
    PALETTE,
    WIDE,
    Legend,
    legend_below,
    log_ticks,
    new_figure,
    plain,
    styled,
    wrapped,
)
from overfit_cli.parameters import describe
from overfit_cli.study import AnyStudy


@styled
def draw_boundary(data: FigureData, options: FigureOptions) -> matplotlib.figure.Figure:
    """Draw, for each y, the x at which `options.value` crosses the threshold, on log-log axes.

    Points are medians over the seeds, with 95 % intervals (with fewer than six seeds, from the
    least to the greatest). A curve that never crosses does so beyond the grid, and counts as that:
    points with such curves are open. The power law y · x^p = C is fitted to the medians, of at
    least three values of y. Values of y whose median lies beyond the grid are counted in the title.

    Raises:
        UserError: if x or y can't be an axis or isn't positive, another parameter varies, the
            column is unknown or empty, or the equation is none.
    """
    value, label = measured(data, options.value)
    x, y, threshold = _inputs(data, options, value)
    equation = None if options.law is None else parse_equation(options.law, (x.name, y.name))
    found = crossings(data.cells, x.name, y.name, value, threshold)
    rows, fit = medians_by_row(found, y.name), fit_power_law(found, y.name)
    figure, axes = new_figure(height=3.4)
    _dress(axes, x, y, rows)
    title = f"where {label} crosses {plain(threshold)}{_never(found, rows, y.name)}"
    axes.set_title(wrapped(title, WIDE))
    legend = _draw_points(axes, rows, y)
    legend.append((_draw_fit(axes, fit, rows, y), _fit_in_words(data.study, fit, x, y)))
    if equation is not None:
        legend.append(draw_equation(axes, equation, x.name, y.name))
    legend_below(figure, legend, columns=1)
    return figure


def _inputs(data: FigureData, options: FigureOptions, value: str) -> tuple[Axis, Axis, float]:
    """The axes, and the threshold: the middle of what was measured where none is named."""
    x, y = two_axes(data, options)
    threshold = checked_threshold(options.threshold)
    numbers = with_numbers(data, value)[value]
    if threshold is None:
        threshold = middle_of(numbers)
    for flag, axis in (("--x", x), ("--y", y)):
        if axis.scale == "category" or axis.positions[0] <= 0:
            raise UserError(f"{flag} {axis.name}: a boundary needs an axis of positive numbers.")
    return x, y, threshold


def _dress(axes: matplotlib.axes.Axes, x: Axis, y: Axis, rows: pd.DataFrame) -> None:
    ends = rows[["low", "crossing", "high"]].to_numpy(dtype=np.float64)
    widths = x.positions[[0, -1]] * (1 / 1.05, 1.05)
    heights = y.positions[[0, -1]] * (1 / 1.12, 1.12)
    ends = ends[np.isfinite(ends) & (ends > 0)]
    if ends.size:
        widths = np.clip([ends.min() / 1.15, ends.max() * 1.15], *widths)
    axes.set(xscale="log", yscale="log", xlabel=wrapped(x.label, WIDE))
    axes.set_ylabel(wrapped(y.label, HIGH))
    axes.set(xlim=tuple(widths), ylim=tuple(heights))
    log_ticks(axes.xaxis, *widths)
    log_ticks(axes.yaxis, *heights)


def _draw_points(axes: matplotlib.axes.Axes, rows: pd.DataFrame, y: Axis) -> Legend:
    """Draw full points where all seeds cross, open ones where some don't; return legend entries."""
    seen, most = rows[_within(rows)], int(rows["seeds"].max())
    ends = "95 % interval" if most >= FEWEST_FOR_MEDIAN else "least to greatest"
    full = f"median of {most} seeds, {ends}" if most > 1 else "one seed"
    entries: Legend = []
    for some, text, face in (
        (seen[seen["never"] == 0], full, PALETTE[0]),
        (seen[seen["never"] > 0], "some seeds cross beyond the grid", "white"),
    ):
        if some.empty:
            continue
        at = some["crossing"].to_numpy()
        left, right = axes.get_xlim()
        low, high = some["low"].clip(lower=left), some["high"].clip(upper=right)
        points = axes.errorbar(
            at,
            some[y.name],
            xerr=[at - low, high - at],
            fmt="o",
            color=PALETTE[0],
            mfc=face,
            elinewidth=0.8,
            zorder=3,
        )
        entries.append((points, text))
    return entries


def _within(rows: pd.DataFrame) -> pd.Series[bool]:
    """Where the median lies on the grid."""
    return (rows["crossing"] > 0) & (rows["crossing"] < np.inf)


def _draw_fit(
    axes: matplotlib.axes.Axes, fit: PowerLaw | None, rows: pd.DataFrame, y: Axis
) -> Line2D:
    """Draw the fit over the values of y it is fitted to; an empty line where there is no fit."""
    if fit is None:
        return Line2D([], [], linestyle="none")
    ends = rows.loc[_within(rows), y.name].to_numpy(dtype=np.float64)[[0, -1]]
    at = (fit.constant.value / ends) ** (1 / fit.exponent.value)
    (line,) = axes.plot(at, ends, color="black", linestyle="--")
    return line


def _fit_in_words(study: AnyStudy, fit: PowerLaw | None, x: Axis, y: Axis) -> str:
    equation = rf"${_symbol(study, y.name)} \cdot {_symbol(study, x.name)}^p = C$"
    if fit is None:
        return f"no fit of {equation}:\nfewer than three points"
    exponent, constant = (_between(*found[:3]) for found in (fit.exponent, fit.constant))
    return f"fit of {equation}:\n$p$ = {exponent}\n$C$ = {constant}"


def _symbol(study: AnyStudy, name: str) -> str:
    symbol = describe(study.parameters)[name].symbol
    word = name.replace("_", r"\_")
    return f"{{{symbol}}}" if symbol else rf"\mathrm{{{word}}}"


def _between(*numbers: float) -> str:
    value, low, high = (plain(float(f"{number:.3g}")) for number in numbers)
    return f"{value} [{low}, {high}]"


def _never(found: pd.DataFrame, rows: pd.DataFrame, y: str) -> str:
    """Say at how many values of y the median lies beyond the grid, and on which side."""
    silent = found[found[y].isin(rows.loc[~_within(rows), y]) & (found["side"] != "crosses")]
    if silent.empty:
        return ""
    sides = silent.groupby(y)["side"].agg(_one_side).value_counts(sort=False)
    parts = ", ".join(f"{count} {side}" for side, count in sides.items())
    return f"\noff the grid at {sides.sum()} of {len(rows)} values of {y} ({parts})"


def _one_side(sides: pd.Series[str]) -> str:
    known = sorted(set(sides) - {"unknown"})
    return " or ".join(known) if known else "unknown"
