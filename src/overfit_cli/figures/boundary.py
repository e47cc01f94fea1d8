"""The figure `boundary`: crossings of a threshold, and the power law through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.typing import ColorType

from overfit_cli.core.arrays import Floats
from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import describe
from overfit_cli.core.text import list_numbers
from overfit_cli.figures import inputs, labels, picture, style
from overfit_cli.figures.axes import (
    Axis,
    Place,
    draw_equations,
    draw_theory,
    legend_below,
    log_ticks,
)
from overfit_cli.stats import boundaries, intervals

_BLACK = "0.15"


@dataclass(frozen=True)
class DrawnBoundary:
    """A boundary to draw.

    Attributes:
        title: its run or panel; empty where it is the only one.
        cells: the cells whose crossings it has.
        rows: the median crossing for each y; see `medians_by_row`.
        curves: the crossing of each curve; see `crossings`.
        fit: the law; None without one whose constant is a number.
    """

    title: str
    colour: ColorType
    cells: pd.DataFrame
    rows: pd.DataFrame
    curves: pd.DataFrame
    fit: boundaries.PowerLaw | None

    @property
    def on_grid(self) -> pd.DataFrame:
        """The rows whose median lies on the grid."""
        return self.rows[(self.rows["crossing"] > 0) & (self.rows["crossing"] < np.inf)]

    def fit_line(self, y: str) -> tuple[Floats, Floats]:
        """The fit's line from the first to the last point, its x and its y."""
        if self.fit is None:
            return np.empty(0), np.empty(0)
        line = np.geomspace(*self.on_grid[y].to_numpy(dtype=np.float64)[[0, -1]])
        return (self.fit.constant.value / line) ** (1 / self.fit.exponent.value), line


def draw_boundary(data: Cells, options: FigureOptions) -> picture.Picture:
    """Draw, for each y, the x at which `options.value` crosses the threshold.

    Axes are logarithmic unless `options.log` names others, and `law=()` draws no fit.

    Each run directory, and each value of the parameter `by`, has a colour. Points are medians over
    the seeds, with 95 % intervals (with fewer than six seeds, from the least to the greatest), and
    arrow heads where these leave the axes. A curve that does not cross counts as one that crosses
    beyond the grid: points with such curves are open. The power law y · x^p = C is fitted to the
    medians, of at least three values of y, with its largest residual. The caption lists the values
    of y whose median lies beyond the grid.
    """
    value, label = inputs.measured_column(data, options.value)
    x, y = inputs.two_axes(data, options)
    for side, axis in (("x", x), ("y", y)):
        if axis.scale == "category" or axis.positions[0] <= 0:
            raise BadValue(side, axis.name, "a boundary needs an axis of positive numbers.")
    numbers, threshold = inputs.require_numbers(data, value)[value], options.threshold
    threshold = inputs.middle_threshold(numbers) if threshold is None else threshold
    drawn = _boundaries(data, options, (x.name, y.name, value), threshold)
    if not any(len(boundary.on_grid) for boundary in drawn):
        problem = f"{labels.typeset(label)} crosses it nowhere on this grid."
        raise BadValue("threshold", float(f"{threshold:g}"), problem)
    figure, [axes] = picture.new_panels(1, height=3.3)
    x, y = (
        replace(axis, scale="linear" if options.is_log(side) is False else "log")
        for side, axis in (("x", x), ("y", y))
    )
    _dress(axes, x, y, drawn)
    points, limit, legend = _points_text(drawn), labels.tick_number(threshold), style.Legend()
    figure.facts.append(f"Where {label} crosses {limit}, for each value of {y.label}: {points}.")
    for boundary in drawn:
        _draw_points(axes, boundary, y.name)
        if options.law != ():
            fit = _fit_text(boundary, data, x, y)
            legend.append((_draw_fit(axes, boundary, y.name), fit))
            told = f"Dashed: {fit}, with 95 % bootstrap intervals" if boundary.fit else fit
            figure.facts.append(f"{told}.")
        elif boundary.title:
            legend.append((_draw_fit(axes, replace(boundary, fit=None), y.name), boundary.title))
        figure.facts += _off_grid(boundary, data, y, limit)
    if any((boundary.on_grid["never"] > 0).any() for boundary in drawn):
        open_dot = Line2D([], [], marker="o", color=_BLACK, markerfacecolor="white", linestyle="")
        legend.append((open_dot, "some seeds cross off the grid"))
    places = [Place(axes, boundary.cells, boundary.colour) for boundary in drawn]
    colour = _BLACK if drawn[1:] else style.HIGHLIGHT
    legend += draw_equations(figure, places, data, options, (x, y), colour=colour)
    theory = inputs.theory_column(data, options, value)
    legend += draw_theory(figure, places, theory, (x, y), threshold)
    figure.table = pd.concat([_rows_of(boundary, x.name, y.name) for boundary in drawn])
    legend_below(figure, legend, columns=1, heading=f"{labels.opening(label)} of {limit}: {points}")
    return figure


def _rows_of(boundary: DrawnBoundary, x: str, y: str) -> pd.DataFrame:
    """The crossings of each y as a table: infinite beyond the grid, and 0 before it."""
    named = {"crossing": x, "low": f"{x}_low", "high": f"{x}_high", "never": "off_grid"}
    rows = boundary.rows.rename(columns=named)
    if boundary.title:
        rows.insert(0, "boundary", labels.typeset(boundary.title))
    return rows


def _boundaries(
    data: Cells, options: FigureOptions, columns: tuple[str, str, str], threshold: float
) -> list[DrawnBoundary]:
    parts, by, drawn = inputs.panels_of_runs(data, options.by), options.by, list[DrawnBoundary]()
    if len(parts) > (most := len(style.PALETTE)):
        problem = f"it makes {len(parts)} boundaries, and a figure shows up to {most}."
        raise BadValue("by", by, problem)
    info = describe(data.study.parameters).get(by or "")
    for part, spare in zip(parts, style.PALETTE, strict=False):
        cells = part.data.trained
        colour = None if info is None else style.value_colour(info, cells[by].iloc[0])
        curves = boundaries.crossings(cells, *columns, threshold)
        rows = boundaries.medians_by_row(curves, columns[1])
        fit = boundaries.fit_power_law(curves, columns[1])
        if fit is not None and not (0 < fit.constant.value < np.inf > fit.exponent.value):
            fit = None
        drawn.append(DrawnBoundary(part.title, colour or spare, cells, rows, curves, fit))
    return drawn


def _dress(axes: Axes, x: Axis, y: Axis, drawn: Sequence[DrawnBoundary]) -> None:
    """Give the axes limits around the points, their intervals and the fits, within the grid."""
    rows = pd.concat([boundary.rows for boundary in drawn])
    on_grid = pd.concat([boundary.on_grid[y.name] for boundary in drawn])
    found = rows[["low", "crossing", "high"]].to_numpy(dtype=np.float64)
    ends = np.concatenate([found.ravel(), *[boundary.fit_line(y.name)[0] for boundary in drawn]])
    ends = ends[np.isfinite(ends) & (ends > 0)]
    grid = x.positions[[0, -1]] * (1 / 1.05, 1.05)
    left, right = np.clip([ends.min() / 1.15, ends.max() * 1.15], *grid).tolist()
    low, high = on_grid.min() / 1.12, on_grid.max() * 1.12
    axes.set(xscale=x.scale, yscale=y.scale, xlim=(left, right), ylim=(low, high))
    axes.set_xlabel(labels.wrap_text(x.label, style.WIDE))
    axes.set_ylabel(labels.wrap_text(y.label, style.HIGH))
    if x.scale == "log":
        log_ticks(axes.xaxis, left, right)
    y.only(on_grid.tolist()).place_ticks(axes.yaxis, low, high)


def _draw_points(axes: Axes, boundary: DrawnBoundary, y: str) -> None:
    """Draw full points where all seeds cross, and open points where some do not."""
    rows, limits, colour = boundary.on_grid, axes.get_xlim(), boundary.colour
    for is_open, face in ((False, colour), (True, "white")):
        group = rows[(rows["never"] > 0) == is_open]
        if group.empty:
            continue
        medians, ends = group["crossing"].to_numpy(), group[["low", "high"]].clip(*limits)
        look: dict[str, Any] = {"color": colour, "mfc": face, "elinewidth": 0.8, "zorder": 3}
        bars = np.array([medians - ends["low"], ends["high"] - medians])
        artist = axes.errorbar(medians, group[y].to_numpy(), xerr=bars, fmt="o", **look)
        artist.lines[0].set_label("crossings")
        for interval in artist.lines[2]:
            interval.set_label("interval of a crossing")
    leaving = rows["low"] < limits[0], rows["high"] > limits[1]
    for limit, leaves, marker in zip(limits, leaving, "<>", strict=True):
        at = rows.loc[leaves, y].to_numpy(dtype=np.float64)
        if at.size:
            look = {"color": colour, "markersize": 3, "clip_on": False, "linestyle": "none"}
            axes.plot(np.full(at.size, limit), at, marker=marker, **look)


def _points_text(drawn: Sequence[DrawnBoundary]) -> str:
    counts = pd.concat([boundary.rows["seeds"] for boundary in drawn])
    seeds, greatest = intervals.mean_of_seeds(counts[counts > 0], "median"), int(counts.max())
    return f"{seeds}, {intervals.MEDIAN.band_in_words(greatest)}" if greatest > 1 else seeds


def _draw_fit(axes: Axes, boundary: DrawnBoundary, y: str) -> Line2D:
    """Draw a boundary's law; return what stands for it and for its points in the legend."""
    colour = boundary.colour if boundary.title else _BLACK
    dash: Any = "none" if boundary.fit is None else "--"
    axes.plot(*boundary.fit_line(y), color=colour, linestyle=dash, label="fit")
    point: dict[str, Any] = {"marker": "o", "mfc": boundary.colour, "mec": boundary.colour}
    return Line2D([], [], color=colour, linestyle=dash, **point)


def _fit_text(boundary: DrawnBoundary, data: Cells, x: Axis, y: Axis) -> str:
    """The fitted law, its numbers, and its lack of fit, on one line."""
    x_symbol, y_symbol = (data.symbol(axis.name) for axis in (x, y))
    law = rf"${{{y_symbol}}} \cdot {{{x_symbol}}}^p = C$"
    title, fit = f"{boundary.title}: " if boundary.title else "", boundary.fit
    if fit is None:
        return f"{title}no fit of {law}: too few points, or it hardly changes with {y.label}"
    numbers = []
    for name, estimate in (("p", fit.exponent), ("C", fit.constant)):
        number, low, high = map(labels.three_digits, estimate[:3])
        numbers.append(f"${name}$ = {number} [{low}, {high}]".replace(" ", "\N{NO-BREAK SPACE}"))
    return f"{title}{', '.join([law, *numbers])}, largest residual {share_in_words(fit.residual)}"


def share_in_words(share: float) -> str:
    """Write by how much a number is off another: `12 %`, `below 1 %`, `a factor of 2.3`."""
    if share >= 1:
        return f"a factor of {1 + share:.2g}"
    return f"{100 * share:.0f} %" if share >= 0.01 else "below 1 %"


def _off_grid(boundary: DrawnBoundary, data: Cells, y: Axis, limit: str) -> list[str]:
    """The values of y at which the median lies beyond the grid, with what curves do there."""
    words, texts = dict[str, list[int]](), [*map(labels.three_digits, y.positions)]
    for at in boundary.rows.drop(boundary.on_grid.index)[y.name].tolist():
        sides = {*boundary.curves.loc[boundary.curves[y.name] == at, "side"]} - {"unknown"}
        whole = f"{min(sides)} {limit} throughout" if sides < {*boundaries.SIDES} and sides else ""
        known = whole or ("median beyond the grid" if sides else "not known")
        words.setdefault(known, []).append(y.values.index(at))
    title = f"{boundary.title}, " if boundary.title else ""
    listed = {told: list_numbers(at, texts.__getitem__) for told, at in words.items()}
    return [f"{title}${data.symbol(y.name)}$ = {at}: {told}." for told, at in listed.items()]
