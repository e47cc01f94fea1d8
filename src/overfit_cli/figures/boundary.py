"""The figure `boundary`: crossings of a threshold, and the power law through them.

Studies also draw a measured column against each parameter that it scales with, with the powers that
are fitted to it (`draw_powers`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.study import AnyStudy, FigureData
from overfit_cli.core.text import BadValue, plural
from overfit_cli.figures.axes import Axis
from overfit_cli.figures.curves import logarithms
from overfit_cli.figures.inputs import (
    checked_threshold,
    measured,
    middle_of,
    two_axes,
    with_numbers,
)
from overfit_cli.figures.labels import axis_label, plain, symbol_of, typeset, wrapped
from overfit_cli.figures.laws import asked_equations, draw_equations
from overfit_cli.figures.panels import panels_of_runs
from overfit_cli.figures.picture import Picture, new_figure, styled
from overfit_cli.figures.style import (
    HIGH,
    HIGHLIGHT,
    PAGE,
    PALETTE,
    WIDE,
    Legend,
    legend_below,
    log_ticks,
    points,
)
from overfit_cli.stats.boundaries import PowerLaw, fit_power_law
from overfit_cli.stats.crossings import crossings, medians_by_row
from overfit_cli.stats.intervals import FEWEST_FOR_MEDIAN, Estimate

EXPECTED: dict[str, Any] = {"color": "0.45", "linestyle": (0, (4, 2)), "linewidth": 0.9}
"""How what a theorem says is drawn."""


@dataclass(frozen=True)
class FittedPowers:
    """One row of panels.

    Attributes:
        cells: those that the powers are fitted to.
        exponents: by axis; an axis is a panel.
        expected: the theorem's, by axis.
    """

    cells: pd.DataFrame
    exponents: Mapping[str, Estimate]
    expected: Mapping[str, float]


def draw_powers(
    data: FigureData, rows: Mapping[str, FittedPowers], value: str, label: str
) -> Picture:
    """Draw a column against each parameter, one row of panels for each fit.

    Points are geometric means over seeds, with a bar of one standard deviation, where the other
    parameters have their middle value. The line has the power that is fitted to all cells of the
    row at once; the dashed one has the theorem's.

    Args:
        data: what was run.
        rows: by name; at least one.
        value: the column, positive.
        label: the column in words.
    """
    across = max(len(row.exponents) for row in rows.values())
    figure = Picture(PAGE, 2.0 * len(rows) + 0.4, least=1.6 * across)
    grid = figure.subplots(len(rows), across, squeeze=False, sharey="row")
    for panels, (name, row) in zip(grid, rows.items(), strict=True):
        for axes, axis in zip(panels, row.exponents, strict=False):
            _draw(axes, row, axis, value)
            axes.set_xlabel(axis_label(data.study, axis))
        for spare in panels[len(row.exponents) :]:
            spare.remove()
        panels[0].set_ylabel(f"{name}: {label}")
    figure.facts.append(f"{_title(rows, data.cells)}.")
    lines = [
        (Line2D([], [], color=PALETTE[0], marker="o", linestyle=""), "measured"),
        (Line2D([], [], color="black"), "fitted power"),
        (Line2D([], [], **EXPECTED), "theorem's power"),
    ]
    legend_below(figure, lines)
    return figure


def _draw(axes: matplotlib.axes.Axes, row: FittedPowers, axis: str, value: str) -> None:
    cells, exponent, theorem = _at_middle(row, axis), row.exponents[axis], row.expected[axis]
    logs = logarithms(cells[value].astype(float)).groupby(cells[axis]).agg(["mean", "std"])
    at, mean = logs.index.to_numpy(dtype=np.float64), logs["mean"].to_numpy()
    spread = logs["std"].fillna(0.0).to_numpy()
    bars = np.exp(mean) * np.array([1 - np.exp(-spread), np.exp(spread) - 1])
    axes.errorbar(at, np.exp(mean), yerr=bars, fmt="o", color=PALETTE[0], elinewidth=0.8, zorder=3)
    centre = np.log(at).mean()
    for power, look in ((exponent.value, {"color": "black"}), (theorem, EXPECTED)):
        axes.plot(at, np.exp(mean.mean() + power * (np.log(at) - centre)), **look)
    axes.set(xscale="log", yscale="log")
    log_ticks(axes.xaxis, float(at[0]), float(at[-1]))
    low, high = row.cells[value].min(), row.cells[value].max()
    log_ticks(axes.yaxis, float(low), float(high))
    axes.margins(0.12)
    axes.set_title(
        f"power {exponent.value:.2f} [{exponent.low:.2f}, {exponent.high:.2f}]".replace("-", "−"),
        fontsize=7,
    )
    # The theorem's power stands where its line leaves room: above a falling one, below a rising.
    falls = exponent.value < 0.05
    axes.text(
        0.96,
        0.94 if falls else 0.06,
        f"theorem: {theorem:g}".replace("-", "−"),
        transform=axes.transAxes,
        ha="right",
        va="top" if falls else "bottom",
        fontsize=6.5,
        color=EXPECTED["color"],
    )


def _at_middle(row: FittedPowers, axis: str) -> pd.DataFrame:
    """The cells in which all other fitted parameters have their middle value."""
    cells = row.cells
    for name in row.exponents:
        if name != axis:
            values = np.sort(cells[name].unique())
            cells = cells[cells[name] == values[len(values) // 2]]
    return cells


def _title(rows: Mapping[str, FittedPowers], cells: pd.DataFrame) -> str:
    seeds = max(row.cells["seed"].nunique() for row in rows.values())
    failed = int((cells["status"] == "failed").sum())
    left_out = f"; {plural(failed, 'failed cell')} left out" if failed else ""
    of = f"Geometric mean of {seeds} seeds, bar of one deviation" if seeds > 1 else "One seed"
    return f"{of}{left_out}"


_BLACK = "0.15"
_ROWS_FOR_LEGEND = 8
"""Points from which on a boundary leaves room for a legend above it."""


@dataclass(frozen=True)
class Crossed:
    """One boundary.

    Attributes:
        title: which run or panel it is of; empty where it is the only one.
        colour: its own.
        rows: for each y the median crossing; see `medians_by_row`.
        beyond: the values of y whose median lies off the grid, with the side on which they stay.
        fit: the power law; None where there is none.
    """

    title: str
    colour: str
    rows: pd.DataFrame
    beyond: pd.Series[str]
    fit: PowerLaw | None


@styled
def draw_boundary(data: FigureData, options: FigureOptions) -> Picture:
    """Draw, for each y, the x at which `options.value` crosses the threshold, on log-log axes.

    Each run directory, and each value of the parameter `by`, has a colour. Points are medians over
    the seeds, with 95 % intervals (with fewer than six seeds, from the least to the greatest). A
    curve that never crosses does so beyond the grid, and counts as that: points with such curves
    are open. The power law y · x^p = C is fitted to the medians, of at least three values of y.
    Values of y whose median lies beyond the grid are named.

    Raises:
        UserError: if x or y can't be an axis or isn't positive, another parameter varies, there are
            more boundaries than colours, the column is unknown or empty, or an equation is none.
    """
    value, label = measured(data, options.value)
    x, y, threshold = _inputs(data, options, value)
    equations = asked_equations(data, options, (x, y))
    found = _boundaries(data, options, (x.name, y.name, value), threshold)
    _refuse_nothing(found, label, threshold)
    figure, axes = new_figure(height=3.0)
    _dress(axes, x, y, pd.concat([one.rows for one in found]))
    legend: Legend = []
    figure.facts.append(
        f"Where {label} crosses {plain(threshold)}, for each {y.label}: {_points_in_words(found)}."
    )
    for one in found:
        legend += _draw_points(axes, one, y)
        fit = _fit_in_words(data.study, one, x, y)
        legend.append((_draw_fit(axes, one, y), fit))
        told = ", ".join(fit.splitlines())
        of = f"{_power_law(data.study, x, y)}, " if one.title else ""
        dashed = f"Dashed: {of}{told}, with 95 % bootstrap intervals."
        figure.facts.append(dashed if one.fit else f"Not fitted: {told}.")
    colour = HIGHLIGHT if len(found) == 1 else _BLACK
    laws = draw_equations(figure, [axes], equations, x, y, data, colour=colour)
    beyond = _beyond_in_words(data.study, found, y, threshold)
    figure.facts += [f"{sentence}." for sentence in beyond]
    if len(found) == 1 and _within(found[0].rows).sum() >= _ROWS_FOR_LEGEND:
        notes: Legend = [(Line2D([], [], linestyle="none"), sentence) for sentence in beyond]
        _write_inside(axes, legend, laws + notes, found[0])
    else:
        legend_below(figure, legend + laws, columns=1)
    return figure


def _inputs(data: FigureData, options: FigureOptions, value: str) -> tuple[Axis, Axis, float]:
    """The axes, and the threshold: the middle of what was measured where none is named."""
    x, y = two_axes(data, options, panels=True)
    threshold = checked_threshold(options.threshold)
    numbers = with_numbers(data, value)[value]
    if threshold is None:
        threshold = middle_of(numbers)
    for side, axis in (("x", x), ("y", y)):
        if axis.scale == "category" or axis.positions[0] <= 0:
            raise BadValue(side, axis.name, "a boundary needs an axis of positive numbers.")
    return x, y, threshold


def _boundaries(
    data: FigureData, options: FigureOptions, columns: tuple[str, str, str], threshold: float
) -> list[Crossed]:
    x, y, value = columns
    parts = panels_of_runs(data, options.by)
    if len(parts) > len(PALETTE):
        raise BadValue(
            "by",
            options.by,
            f"it makes {len(parts)} boundaries, and a figure shows up to {len(PALETTE)}.",
        )
    found = []
    for part, colour in zip(parts, PALETTE, strict=False):
        curves = crossings(part.data.cells, x, y, value, threshold)
        rows = medians_by_row(curves, y)
        off = curves[curves[y].isin(rows.loc[~_within(rows), y]) & (curves["side"] != "crosses")]
        beyond = off.groupby(y)["side"].agg(_one_side)
        found.append(Crossed(part.title, colour, rows, beyond, fit_power_law(curves, y)))
    return found


def _refuse_nothing(found: Sequence[Crossed], label: str, threshold: float) -> None:
    """Refuse to draw a boundary that lies nowhere on the grid."""
    if any(_within(one.rows).any() for one in found):
        return
    sides = sorted({side for one in found for side in one.beyond} - {"unknown"})
    stays = f"; it stays {' or '.join(sides)} throughout" if sides else ""
    raise BadValue(
        "threshold",
        float(f"{threshold:g}"),
        f"{typeset(label)} crosses it nowhere on this grid{stays}.",
    )


def _within(rows: pd.DataFrame) -> pd.Series[bool]:
    """Where the median lies on the grid."""
    return (rows["crossing"] > 0) & (rows["crossing"] < np.inf)


def _one_side(sides: pd.Series[str]) -> str:
    known = sorted(set(sides) - {"unknown"})
    return " or ".join(known) if known else "unknown"


def _dress(axes: matplotlib.axes.Axes, x: Axis, y: Axis, rows: pd.DataFrame) -> None:
    """Set scales, limits and labels: as far as there are points."""
    ends = rows[["low", "crossing", "high"]].to_numpy(dtype=np.float64)
    ends = ends[np.isfinite(ends) & (ends > 0)]
    widths, heights = x.positions[[0, -1]] * (1 / 1.05, 1.05), y.positions[[0, -1]]
    if ends.size:
        widths = np.clip([ends.min() / 1.15, ends.max() * 1.15], *widths)
    known = rows.loc[_within(rows), y.name]
    if not known.empty:
        heights = np.array([known.min(), known.max()], dtype=np.float64)
    heights = heights * (1 / 1.12, 1.12)
    axes.set(xscale="log", yscale="log", xlabel=wrapped(x.label, WIDE))
    axes.set_ylabel(wrapped(y.label, HIGH))
    axes.set(xlim=tuple(widths), ylim=tuple(heights))
    for axis, of, ends in ((axes.xaxis, x, widths), (axes.yaxis, y, heights)):
        log_ticks(axis, *ends)
        if of.whole and ends[1] < 4 * ends[0]:
            axis.set_major_locator(MaxNLocator("auto", integer=True))


def _draw_points(axes: matplotlib.axes.Axes, one: Crossed, y: Axis) -> Legend:
    """Draw full points where all seeds cross, open ones where some don't.

    Of several boundaries, whose lines are named, points have no entry in the legend.
    """
    seen = one.rows[_within(one.rows)]
    entries: Legend = []
    for some, text, face in (
        (seen[seen["never"] == 0], _points_in_words([one]), one.colour),
        (seen[seen["never"] > 0], "some seeds cross off the grid", "white"),
    ):
        if some.empty:
            continue
        at = some["crossing"].to_numpy()
        left, right = axes.get_xlim()
        low, high = some["low"].clip(lower=left), some["high"].clip(upper=right)
        drawn = axes.errorbar(
            at,
            some[y.name],
            xerr=[at - low, high - at],
            fmt="o",
            color=one.colour,
            mfc=face,
            elinewidth=0.8,
            zorder=3,
        )
        entries.append((drawn, text))
    return [] if one.title else entries


def _points_in_words(found: Sequence[Crossed]) -> str:
    most = max(int(one.rows["seeds"].max()) for one in found)
    ends = "95 % interval" if most >= FEWEST_FOR_MEDIAN else "least to greatest"
    return f"median of {most} seeds, {ends}" if most > 1 else "one seed"


def _draw_fit(axes: matplotlib.axes.Axes, one: Crossed, y: Axis) -> Line2D:
    """Draw the fit over the values of y it is fitted to; an empty line where there is no fit."""
    if one.fit is None:
        return Line2D([], [], linestyle="none", marker="o" if one.title else "", color=one.colour)
    ends = one.rows.loc[_within(one.rows), y.name].to_numpy(dtype=np.float64)[[0, -1]]
    at = (one.fit.constant.value / ends) ** (1 / one.fit.exponent.value)
    (line,) = axes.plot(at, ends, color=one.colour if one.title else _BLACK, linestyle="--")
    return Line2D([], [], color=one.colour, linestyle="--", marker="o") if one.title else line


def _fit_in_words(study: AnyStudy, one: Crossed, x: Axis, y: Axis) -> str:
    equation = _power_law(study, x, y)
    title = f"{one.title}: " if one.title else ""
    if one.fit is None:
        return f"{title}no fit of {equation}, fewer than three points"
    exponent, constant = (_between(*found[:3]) for found in (one.fit.exponent, one.fit.constant))
    if one.title:
        return f"{one.title}\n$p$ = {exponent}, $C$ = {constant}"
    return f"{equation}\n$p$ = {exponent}\n$C$ = {constant}"


def _power_law(study: AnyStudy, x: Axis, y: Axis) -> str:
    """The law that is fitted, in mathtext."""
    return rf"${{{symbol_of(study, y.name)}}} \cdot {{{symbol_of(study, x.name)}}}^p = C$"


def _between(*numbers: float) -> str:
    value, low, high = (plain(float(f"{number:.3g}")) for number in numbers)
    return f"{value} [{low}, {high}]"


def _beyond_in_words(
    study: AnyStudy, found: Sequence[Crossed], y: Axis, threshold: float
) -> list[str]:
    """Say at which values of y the median lies beyond the grid, and on which side."""
    symbol = symbol_of(study, y.name)
    return [
        (f"{one.title}, " if one.title else "")
        + f"${symbol}$ = {listed(values.index.tolist(), y)}: "
        + ("not known" if side == "unknown" else f"{side} {plain(threshold)} throughout")
        for one in found
        for side, values in one.beyond.groupby(one.beyond)
    ]


def _write_inside(axes: matplotlib.axes.Axes, legend: Legend, notes: Legend, one: Crossed) -> None:
    """Put the legend above the boundary, and laws and notes below it: it falls or rises."""
    falls = one.fit is None or one.fit.exponent.value > 0
    places: tuple[Any, Any] = ("upper right", "lower left")
    if not falls:
        places = ("upper left", "lower right")
    for entries, place in zip((legend, notes), places, strict=True):
        if entries:
            artists, texts = zip(*entries, strict=True)
            size = 0.93 * points("legend.fontsize")
            axes.add_artist(axes.legend(artists, texts, loc=place, fontsize=size))


def listed(values: Sequence[float], axis: Axis) -> str:
    """Return values of an axis as a list, neighbours on the axis as a range: `2, 3, 7 to 12`."""
    places = [axis.values.index(value) for value in values]
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    texts = [[plain(float(f"{axis.positions[place]:.3g}")) for place in run] for run in runs]
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in texts)
