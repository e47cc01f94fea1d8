"""The figure `boundary`: crossings of a threshold, and the power law through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import matplotlib
import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType

from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.parameters import describe
from overfit_cli.core.study import AnyStudy, FigureData
from overfit_cli.core.text import list_runs, plural, round_digits
from overfit_cli.figures.axes import Axis
from overfit_cli.figures.boundary_law import (
    DrawnBoundary,
    bend_in_words,
    can_be_written,
    fit_ends,
    fit_in_words,
    fit_text,
    grid_in_words,
    is_on_grid,
    on_a_line,
    power_law,
    spacing_in_words,
)
from overfit_cli.figures.caption import mixed_directions, repeated_crossings
from overfit_cli.figures.grid import mean_of_seeds
from overfit_cli.figures.inputs import (
    check_threshold,
    measured_column,
    middle_threshold,
    require_numbers,
    two_axes,
)
from overfit_cli.figures.labels import (
    formula_symbol,
    opening,
    tick_number,
    typeset,
    wrap_text,
)
from overfit_cli.figures.laws import Place, draw_equations, parse_equations
from overfit_cli.figures.panels import panels_of_runs
from overfit_cli.figures.picture import Picture, new_figure, styled
from overfit_cli.figures.style import (
    HIGH,
    HIGHLIGHT,
    PALETTE,
    WIDE,
    Legend,
    legend_below,
    log_ticks,
    points,
    value_colour,
)
from overfit_cli.stats.boundaries import fit_power_law
from overfit_cli.stats.crossings import SIDES, crossings, medians_by_row
from overfit_cli.stats.intervals import FEWEST_FOR_MEDIAN

T = TypeVar("T")

_BLACK = "0.15"
_COUNT = r" \(.*"
"""How many seeds do what a sentence says, at its end."""
_ROWS_FOR_LEGEND = 8
"""The number of points from which a boundary has room for a legend above it."""


@styled
def draw_boundary(data: FigureData, options: FigureOptions) -> Picture:
    """Draw, for each y, the x at which `options.value` crosses the threshold, on log-log axes.

    Each run directory, and each value of the parameter `by`, has a colour. Points are medians over
    the seeds, with 95 % intervals (with fewer than six seeds, from the least to the greatest), and
    arrow heads where these leave the axes. A curve that does not cross counts as one that crosses
    beyond the grid: points with such curves are open. The power law y · x^p = C is fitted to the
    medians, of at least three values of y, with its largest residual. Where every boundary rises,
    the law is x ∝ y^q, and x is drawn upward. A text lists the values of y whose median lies
    beyond the grid.
    """
    value, label = measured_column(data, options.value)
    x, y, threshold = _inputs(data, options, value)
    equations = parse_equations(data, options, (x, y))
    drawn_boundaries = _boundaries(data, options, (x.name, y.name, value), threshold)
    _refuse_nothing(drawn_boundaries, label, threshold)
    points_on_grid = int(is_on_grid(drawn_boundaries[0].rows).sum())
    is_inside = len(drawn_boundaries) == 1 and points_on_grid >= _ROWS_FOR_LEGEND
    figure, axes = new_figure(height=3.0 if is_inside else 3.3)
    rises = _all_rise(drawn_boundaries)
    _dress(axes, x, y, drawn_boundaries, rises=rises)
    legend: Legend = []
    figure.facts.append(
        f"Where {label} crosses {tick_number(threshold)}, for each value of {y.label}: "
        f"{_points_text(drawn_boundaries)}."
    )
    figure.facts += [] if data.refined else [spacing_in_words(x)]
    named = [boundary for boundary in drawn_boundaries if boundary.title]
    if any((part.rows[is_on_grid(part.rows)]["never"] > 0).any() for part in named):
        open_dot = Line2D([], [], marker="o", color=_BLACK, markerfacecolor="white", linestyle="")
        legend.append((open_dot, "some seeds cross off the grid"))
    for boundary in drawn_boundaries:
        legend += _draw_points(axes, boundary, y, rises=rises)
        grid = "" if data.refined else grid_in_words(boundary, x, y, rises=rises)
        law = power_law(data.study, x, y, rises=rises)
        fit = fit_text(boundary, y, law, rises=rises)
        noted = f"{fit}\n{grid}" if grid and not is_inside else fit
        legend.append((_draw_fit(axes, boundary, y, rises=rises), noted))
        figure.facts.append(fit_in_words(boundary, fit, law))
        figure.facts += bend_in_words(boundary, data.study, y, rises=rises)
        name = f" ({boundary.title})" if boundary.title else ""
        wherever = "wherever in its step of the grid each median lies"
        figure.facts += [f"{grid.capitalize()}, {wherever}{name}."] if grid else []
    figure.facts += _narrow_in_words(axes, drawn_boundaries, rises=rises)
    colour = HIGHLIGHT if len(drawn_boundaries) == 1 else _BLACK
    places = [
        Place(axes, part.data.cells, boundary.colour)
        for part, boundary in zip(panels_of_runs(data, options.by), drawn_boundaries, strict=True)
    ]
    names = (y.name, x.name) if rises else (x.name, y.name)
    laws = draw_equations(figure, places, equations, names, data, colour=colour)
    off_grid = _off_grid_sentences(data.study, drawn_boundaries, y)
    figure.facts += [f"{sentence}." for sentence in off_grid]
    figure.facts += repeated_crossings([boundary.curves for boundary in drawn_boundaries])
    figure.facts += mixed_directions([boundary.curves for boundary in drawn_boundaries])
    if is_inside:
        brief = _off_grid_sentences(data.study, drawn_boundaries, y, counted=False)
        sentences = [f"{label} = {tick_number(threshold)}", *brief]
        notes: Legend = [(Line2D([], [], linestyle="none"), sentence) for sentence in sentences]
        _write_inside(axes, legend, laws + notes, rises=rises)
    else:
        points = _points_text(drawn_boundaries)
        heading = f"{opening(label)} of {tick_number(threshold)}: {points}"
        entries = [(artist, on_a_line(text)) for artist, text in legend if text != points]
        legend_below(figure, entries + laws, columns=1, heading=heading)
    return figure


def _inputs(data: FigureData, options: FigureOptions, value: str) -> tuple[Axis, Axis, float]:
    x, y = two_axes(data, options, panels=True)
    threshold = check_threshold(options.threshold)
    numbers = require_numbers(data, value)[value]
    if threshold is None:
        threshold = middle_threshold(numbers)
    for side, axis in (("x", x), ("y", y)):
        if axis.scale == "category" or axis.positions[0] <= 0:
            raise BadValue(side, axis.name, "a boundary needs an axis of positive numbers.")
    return x, y, threshold


def _boundaries(
    data: FigureData, options: FigureOptions, columns: tuple[str, str, str], threshold: float
) -> list[DrawnBoundary]:
    x, y, value = columns
    parts = panels_of_runs(data, options.by)
    if len(parts) > len(PALETTE):
        raise BadValue(
            "by",
            options.by,
            f"it makes {len(parts)} boundaries, and a figure shows up to {len(PALETTE)}.",
        )
    drawn_boundaries = []
    for part, spare in zip(parts, PALETTE, strict=False):
        colour = _colour_of(part.data, options.by) or spare
        curves = crossings(part.data.cells, x, y, value, threshold)
        rows = medians_by_row(curves, y)
        off_curves = curves[curves[y].isin(rows.loc[~is_on_grid(rows), y])]
        off_grid = pd.Series(
            {
                y_value: _off_grid_words(group, threshold, refined=part.data.refined)
                for y_value, group in off_curves.groupby(y)
            },
            dtype=object,
        )
        drawn_boundaries.append(
            DrawnBoundary(part.title, colour, rows, curves, off_grid, fit_power_law(curves, y))
        )
    return drawn_boundaries


def _colour_of(data: FigureData, by: str | None) -> ColorType | None:
    info = describe(data.study.parameters).get(by or "")
    return None if info is None else value_colour(info, data.cells[by].iloc[0])


def _refuse_nothing(
    drawn_boundaries: Sequence[DrawnBoundary], label: str, threshold: float
) -> None:
    if any(is_on_grid(boundary.rows).any() for boundary in drawn_boundaries):
        return
    sides = {side for boundary in drawn_boundaries for side in boundary.curves["side"]} & {*SIDES}
    words = list(dict.fromkeys(word for side in sorted(sides) for word in side.split(" or ")))
    words = ["at or below" if word == "below" else word for word in words]
    stays = f"; it stays {' or '.join(words)} throughout" if sides else ""
    raise BadValue(
        "threshold",
        float(f"{threshold:g}"),
        f"{typeset(label)} crosses it nowhere on this grid{stays}.",
    )


def _off_grid_words(curves: pd.DataFrame, threshold: float, *, refined: bool) -> str:
    sides = set(curves["side"]) - {"unknown"}
    if not sides:
        return "not known"
    if len(sides) > 1 or "crosses" in sides:
        crossed = int((curves["side"] == "crosses").sum())
        seeds = plural(len(curves), "seed")
        return f"median beyond the grid ({crossed} of {seeds} cross on it)"
    side = f"{sides.pop()} {tick_number(threshold)}"
    if (curves["passes"] > 0).any():
        return f"the monotone fits stay {side}"
    return f"{side} on all samples" if refined else f"{side} throughout"


def _all_rise(drawn_boundaries: Sequence[DrawnBoundary]) -> bool:
    fits = [boundary.fit for boundary in drawn_boundaries if can_be_written(boundary.fit)]
    return bool(fits) and all(fit.slope.value > 0 for fit in fits)


def _dress(
    axes: matplotlib.axes.Axes,
    x: Axis,
    y: Axis,
    drawn_boundaries: Sequence[DrawnBoundary],
    *,
    rises: bool,
) -> None:
    rows = pd.concat([boundary.rows for boundary in drawn_boundaries])
    fits = [fit_ends(boundary, y)[0] for boundary in drawn_boundaries]
    points = rows[["low", "crossing", "high"]].to_numpy(dtype=np.float64)
    ends = np.concatenate([points.ravel(), *fits])
    ends = ends[np.isfinite(ends) & (ends > 0)]
    spans = [x.positions[[0, -1]] * (1 / 1.05, 1.05), y.positions[[0, -1]]]
    if ends.size:
        spans[0] = np.clip([ends.min() / 1.15, ends.max() * 1.15], *spans[0])
    rows_on_grid = rows.loc[is_on_grid(rows), y.name]
    if not rows_on_grid.empty:
        spans[1] = np.array([rows_on_grid.min(), rows_on_grid.max()], dtype=np.float64)
    spans[1] = spans[1] * (1 / 1.12, 1.12)
    (across, width), (up, height) = _oriented((x, spans[0]), (y, spans[1]), rises=rises)
    axes.set(xscale="log", yscale="log", xlabel=wrap_text(across.label, WIDE))
    axes.set_ylabel(wrap_text(up.label, HIGH))
    axes.set(xlim=tuple(width), ylim=tuple(height))
    x_axis, y_axis = _oriented(axes.xaxis, axes.yaxis, rises=rises)
    log_ticks(x_axis, *spans[0])
    if x.whole and spans[0][1] < 4 * spans[0][0]:
        x_axis.set_major_locator(MaxNLocator("auto", integer=True))
    shown = y.only(rows_on_grid.tolist()) if not rows_on_grid.empty else y
    replace(shown, scale="log").place_ticks(y_axis, *spans[1])


def _oriented(across: T, up: T, *, rises: bool) -> tuple[T, T]:
    return (up, across) if rises else (across, up)


def _draw_points(
    axes: matplotlib.axes.Axes, boundary: DrawnBoundary, y: Axis, *, rises: bool
) -> Legend:
    """Draw full points where all seeds cross, and open points where some do not."""
    on_grid = boundary.rows[is_on_grid(boundary.rows)]
    entries: Legend = []
    for group, text, face in (
        (on_grid[on_grid["never"] == 0], _points_text([boundary]), boundary.colour),
        (on_grid[on_grid["never"] > 0], "some seeds cross off the grid", "white"),
    ):
        if group.empty:
            continue
        medians = group["crossing"].to_numpy()
        ends = axes.get_ylim() if rises else axes.get_xlim()
        low, high = (group[end].clip(*ends) for end in ("low", "high"))
        right, upward = _oriented(medians, group[y.name].to_numpy(), rises=rises)
        lengths = np.array([medians - low, high - medians])
        artist = axes.errorbar(
            right,
            upward,
            xerr=None if rises else lengths,
            yerr=lengths if rises else None,
            fmt="o",
            color=boundary.colour,
            mfc=face,
            elinewidth=0.8,
            zorder=3,
        )
        artist.lines[0].set_label("crossings")
        for interval in artist.lines[2]:
            interval.set_label("interval of a crossing")
        entries.append((artist, text))
        _draw_arrow_heads(axes, boundary, group, y, rises=rises)
    return [] if boundary.title else entries


def _draw_arrow_heads(
    axes: matplotlib.axes.Axes, boundary: DrawnBoundary, rows: pd.DataFrame, y: Axis, *, rises: bool
) -> None:
    least, most = axes.get_ylim() if rises else axes.get_xlim()
    for leaves, limit, marker in (
        (rows["low"] < least, least, "<v"),
        (rows["high"] > most, most, ">^"),
    ):
        ends = rows.loc[leaves, y.name].to_numpy(dtype=np.float64)
        if ends.size:
            right, upward = _oriented(np.full(ends.size, limit), ends, rises=rises)
            look: dict[str, Any] = {"color": boundary.colour, "markersize": 3, "clip_on": False}
            axes.plot(right, upward, linestyle="none", marker=marker[rises], **look)


def _narrow_in_words(
    axes: matplotlib.axes.Axes, drawn_boundaries: Sequence[DrawnBoundary], *, rises: bool
) -> list[str]:
    length = (axes.bbox.height if rises else axes.bbox.width) * 72 / axes.figure.dpi
    low, high = np.log(axes.get_ylim() if rises else axes.get_xlim())
    size, hidden = float(matplotlib.rcParams["lines.markersize"]), list[str]()
    for boundary in drawn_boundaries:
        rows = boundary.rows[is_on_grid(boundary.rows)]
        spans = np.log(rows["high"] / rows["low"].clip(lower=1e-300)) / (high - low)
        if len(rows) and (rows["seeds"] > 1).all() and (spans * length < size).all():
            hidden.append(boundary.title)
    if not hidden:
        return []
    whose = f" of {', '.join(hidden)}" if len(hidden) < len(drawn_boundaries) else ""
    return [f"The intervals{whose} are narrower than the markers."]


def _points_text(drawn_boundaries: Sequence[DrawnBoundary]) -> str:
    counts = pd.concat([boundary.rows["seeds"] for boundary in drawn_boundaries])
    least, greatest = int(counts[counts > 0].min()), int(counts.max())
    ends = "95 % interval" if greatest >= FEWEST_FOR_MEDIAN else "least to greatest"
    seeds = mean_of_seeds(least, greatest, "median")
    return f"{seeds}, {ends}" if greatest > 1 else seeds


def _draw_fit(
    axes: matplotlib.axes.Axes, boundary: DrawnBoundary, y: Axis, *, rises: bool
) -> Line2D:
    if not can_be_written(boundary.fit):
        return Line2D(
            [], [], linestyle="none", marker="o" if boundary.title else "", color=boundary.colour
        )
    x_ends, ends = fit_ends(boundary, y)
    colour = boundary.colour if boundary.title else _BLACK
    (line,) = axes.plot(*_oriented(x_ends, ends, rises=rises), color=colour, linestyle="--")
    line.set_label("fit")
    return (
        Line2D([], [], color=boundary.colour, linestyle="--", marker="o")
        if boundary.title
        else line
    )


def _off_grid_sentences(
    study: AnyStudy, drawn_boundaries: Sequence[DrawnBoundary], y: Axis, *, counted: bool = True
) -> list[str]:
    """The values of y at which the median lies beyond the grid, with what curves do, in words."""
    symbol = formula_symbol(study, y.name)
    return [
        (f"{boundary.title}, " if boundary.title else "")
        + f"${symbol}$ = {list_values(values.index.tolist(), y)}: {words}"
        for boundary in drawn_boundaries
        for words, values in boundary.off_grid.groupby(
            boundary.off_grid if counted else boundary.off_grid.str.replace(_COUNT, "", regex=True),
            sort=False,
        )
    ]


def _write_inside(
    axes: matplotlib.axes.Axes, legend: Legend, notes: Legend, *, rises: bool
) -> None:
    corners: tuple[Any, Any] = ("upper right", "lower left")
    if rises:
        corners = ("upper left", "lower right")
    for entries, corner in zip((legend, notes), corners, strict=True):
        if entries:
            artists, texts = zip(*entries, strict=True)
            size = 0.93 * points("legend.fontsize")
            axes.add_artist(axes.legend(artists, texts, loc=corner, fontsize=size))


def list_values(values: Sequence[float], axis: Axis) -> str:
    """Write values of an axis as a list, with ranges of neighbours: `2, 3, 7 to 12`."""
    indices = [axis.values.index(value) for value in values]
    return list_runs(indices, lambda index: tick_number(round_digits(axis.positions[index], 3)))
