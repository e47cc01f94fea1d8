"""The figure `lines`: a measured column against a parameter, a line for each other setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

from overfit_cli.core.arrays import finite_column
from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import MOST_PANELS, FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import plural
from overfit_cli.figures.axes import Axis, parameter_axis
from overfit_cli.figures.heatmap import mean_of_seeds
from overfit_cli.figures.inputs import (
    averaging,
    check_threshold,
    choose_scale,
    is_log,
    measured_column,
    require_numbers,
    value_is_log,
)
from overfit_cli.figures.labels import (
    free_parameters,
    heading,
    label_with_note,
    opening,
    parameter_values,
    short_settings,
    split_settings,
    tick_number,
    varying_parameters,
    wrap_text,
)
from overfit_cli.figures.laws import Place, draw_equations, parse_equations
from overfit_cli.figures.panels import (
    Panel,
    is_one_number,
    panels,
    panels_for_lines,
    panels_that_help,
)
from overfit_cli.figures.picture import Picture, label_outer, new_panels, styled, title_panels
from overfit_cli.figures.style import (
    HIGH,
    PALETTE,
    THRESHOLD,
    WIDE,
    Legend,
    legend_below,
    line_colours,
    log_ticks,
    named_lines,
)
from overfit_cli.stats.bands import MEANS, Averaging, natural_bounds
from overfit_cli.stats.equations import Equation

MARKERS = "os^Dvp*P"
_OFFSET = 0.08
"""The offset between points of several lines at one category."""

_CROSS, _ROW = 0.97, 0.05
"""The height of the first line's crosses, and how far the next line's lie below."""


@dataclass(frozen=True)
class Line:
    """The line of a setting of the parameters other than x; arrays have shape (values of x,).

    Attributes:
        text: the setting.
        x: the values of x.
        mean, low, high: the mean and band over the seeds that are done; nan without one.
        failed: whether every seed failed.
        seeds: the values of each seed, shape (values of x, seeds).
        count: the number of seeds of the mean.
        theory: the median over seeds of the column of a theory where that is the statistic, else
            the arithmetic mean, over the cells with a number; None without one.
        cells: the cells.
    """

    text: str
    x: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    failed: np.ndarray
    seeds: np.ndarray
    count: np.ndarray
    theory: np.ndarray | None
    cells: pd.DataFrame


@dataclass(frozen=True)
class LinesPlan:
    """The plan of the figure.

    Attributes:
        x: the parameter along the axis.
        label: the label of the column.
        parts: the panels.
        names: the parameters whose settings have a line each.
        lines: the lines of each panel.
        texts: the settings, in order.
        averaging: the statistic over seeds, and its band.
        log: whether the column's axis is logarithmic.
        value: the name of the column.
        theory: the label of the theory's column; empty without one.
    """

    x: Axis
    label: str
    parts: Sequence[Panel]
    names: Sequence[str]
    lines: Sequence[Sequence[Line]]
    texts: Sequence[str]
    averaging: Averaging
    log: bool
    value: str
    theory: str


_BEHIND: dict[str, Any] = {
    "linestyle": (0, (1.8, 0.7)),
    "linewidth": 3.0,
    "alpha": 0.45,
    "zorder": 1.5,
}
"""The look of a theory's column: wide and pale, so that it is seen where the line lies on it."""


@styled
def draw_lines(data: FigureData, options: FigureOptions) -> Picture:
    """Draw `options.value` against x, with panels by `by` and a line for each other setting.

    Points are means over seeds with their 95 % intervals, or with a line for each seed where there
    are fewer than three seeds, unless the user wants another mean or band. In a refined sweep,
    whose points have different seeds, each seed has a line, and there is no mean. Where x is no
    number, points stand side by side, with bars. A cross at the top marks values at which every
    seed failed. More settings than colours have panels, if those of one parameter suffice; a
    number with more values than panels has shades. A theory's column is dashed, and so are
    equations in x, the column and constants; of those that differ between lines, each line has its
    curve.

    Raises:
        UserError: if x does not vary, there are more lines than colours in any case, a column is
            unknown or empty, an equation is invalid, or the threshold is not finite.
    """
    plan = _gather_lines(data, options)
    equations = _parse_laws(data, options, plan)
    threshold = check_threshold(options.threshold)
    seed_lines, looks = plan.averaging.band == "seeds", _looks(len(plan.texts))
    figure, all_axes = new_panels(len(plan.parts), height=2.8)
    for axes, lines in zip(all_axes, plan.lines, strict=True):
        _dress(axes, plan.x, log=plan.log)
        shown, row = (_positive_bands(lines) if plan.log else lines), 0
        for line in shown:
            index = plan.texts.index(line.text)
            offset = 0.0
            if plan.x.scale == "category":
                offset = _OFFSET * (index - (len(plan.texts) - 1) / 2)
                _draw_points(axes, line, looks[index], offset, seed_points=seed_lines)
            else:
                _draw_joined(axes, line, looks[index], seed_lines=seed_lines, mean=not data.refined)
            _mark_failed(axes, line.x[line.failed] + offset, looks[index], _CROSS - _ROW * row)
            row += bool(line.failed.any())
        if threshold is not None:
            axes.axhline(threshold, **THRESHOLD)
        if any(np.any(line.low <= 0) for line in lines) and plan.log and not seed_lines:
            axes.set_ylim(bottom=np.nanmin(np.concatenate([line.low for line in shown])))
        if axes.get_yscale() == "log":
            log_ticks(axes.yaxis, *axes.get_ylim())
    all_axes[0].set_ylabel(label_with_note(plan.label, _averaged(data, plan), HIGH))
    label_outer(all_axes)
    title_panels(all_axes, [part.title for part in plan.parts])
    figure.facts.append(_fact(data, plan, seed_lines=seed_lines))
    varying = [name for name in varying_parameters(data) if name != plan.x.name]
    if tied := [name for name in varying if name not in _others(data, plan.x)]:
        figure.facts.append(f"Varying with {plan.x.name}: {', '.join(tied)}.")
    legend = _legend(plan, threshold)
    legend += _draw_laws(figure, all_axes, plan, equations, data)
    legend_below(figure, legend, 2 * len(plan.parts), heading(data.study, plan.names))
    return figure


Statistic = tuple[Averaging, tuple[float, float]]
"""A statistic over seeds, and the bounds of its band."""


def _gather_lines(data: FigureData, options: FigureOptions) -> LinesPlan:
    """The lines of every panel.

    Raises:
        UserError: see `draw_lines`.
    """
    x = parameter_axis(data, "x", options.x, log=is_log(options, "x"))
    value, label = measured_column(data, options.value)
    numbers = require_numbers(data, value)[value]
    log = choose_scale(value_is_log(options), numbers, factor=10)
    if options.by == x.name:
        raise BadValue("by", options.by, "it is an axis already; panels take another parameter.")
    panel_parameter = _panels(data, x, options.by)
    parts = panels(data, panel_parameter)
    names = [name for name in _others(data, x) if name != panel_parameter]
    over_seeds = _averaging(data, options)
    theory = ("", "") if options.theory is None else _theory_column(data, options.theory)
    columns = (value, theory[0])
    bounds = natural_bounds(np.asarray(finite_column(data.cells, value), dtype=np.float64))
    lines = [_lines(part.data, names, x, columns, (over_seeds, bounds)) for part in parts]
    texts = list(dict.fromkeys(line.text for panel_lines in lines for line in panel_lines))
    if len(texts) > len(PALETTE) and not is_one_number(data, names):
        raise BadValue(
            "x",
            x.name,
            f"the other parameters have {len(texts)} settings here, and a figure shows up to "
            f"{len(PALETTE)} lines{_suggestion(data, x)}",
        )
    return LinesPlan(x, label, parts, names, lines, texts, over_seeds, log, value, theory[1])


def _theory_column(data: FigureData, name: str) -> tuple[str, str]:
    """The name and the label of a theory's column.

    Raises:
        UserError: if it is unknown, or means or cells are subtracted.
    """
    if data.less:
        raise BadValue("theory", name, "a difference of runs has no column of a theory.")
    return measured_column(data, name, "theory")


def _parse_laws(data: FigureData, options: FigureOptions, plan: LinesPlan) -> list[Equation]:
    """The equations to draw.

    Raises:
        UserError: if x is no number, or one is not in x, the column and constants.
    """
    if options.law and plan.x.scale == "category":
        accepts = f"it takes a figure along a number, and {plan.x.name} is none."
        raise BadValue("law", options.law[0], accepts)
    return parse_equations(data, options, [plan.x], plan.value)


def _draw_laws(
    figure: Picture,
    all_axes: Sequence[matplotlib.axes.Axes],
    plan: LinesPlan,
    equations: Sequence[Equation],
    data: FigureData,
) -> Legend:
    """Draw equations within the limits of the lines; return their legend."""
    looks = _looks(len(plan.texts))
    for axes in all_axes:
        axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
    places = [
        Place(axes, line.cells, looks[plan.texts.index(line.text)]["color"], outlined=False)
        for axes, lines in zip(all_axes, plan.lines, strict=True)
        for line in lines
    ]
    names, first_dash = (plan.x.name, plan.value), 2 if plan.theory else 1
    return draw_equations(
        figure, places, equations, names, data, colour="0.15", first_dash=first_dash
    )


def _others(data: FigureData, x: Axis) -> list[str]:
    """The parameters that vary besides x, except those that each x has one value of."""
    return free_parameters(data, [x.name])


def _panels(data: FigureData, x: Axis, panel_parameter: str | None) -> str | None:
    """The parameter of the panels: the user's, or one with at most as many lines as colours.

    The user's parameter, if it is a number with more values than panels, makes lines in shades.
    """
    names = _others(data, x)
    if panel_parameter is not None:
        too_many = len(parameter_values(data).get(panel_parameter, ())) > MOST_PANELS
        return None if too_many and is_one_number(data, names) else panel_parameter
    return panels_for_lines(data, names, len(PALETTE))


def _looks(count: int) -> list[dict[str, Any]]:
    """The style of each line: a colour and a marker, or a shade."""
    colours = line_colours(count)
    if count > len(PALETTE):
        return [{"color": colour} for colour in colours]
    return [{"color": c, "marker": m} for c, m in zip(colours, MARKERS, strict=False)]


def _suggestion(data: FigureData, x: Axis) -> str:
    """The end of a sentence on too many lines: the panels that would suffice."""
    names = _others(data, x)
    if name := panels_that_help(data.cells, names, len(PALETTE)):
        return f"; --by {name} makes panels of one of them."
    return "; a heatmap over two of them shows more."


def _averaging(data: FigureData, options: FigureOptions) -> Averaging:
    """The statistic over seeds; a refined sweep has a line for each seed."""
    if data.refined:
        for name in ("mean", "band"):
            if (asked := getattr(options, name)) not in (None, "seeds"):
                accepts = "points of a refined sweep have different seeds; each seed has a line."
                raise BadValue(name, asked, accepts)
        options = replace(options, mean=None, band="seeds")
    if data.averaged:  # by the means that are subtracted
        options = replace(options, mean=None, band="interval")
    return averaging(options, data.cells["seed"].nunique())


def _lines(
    data: FigureData, names: list[str], x: Axis, columns: tuple[str, str], statistic: Statistic
) -> list[Line]:
    return [
        _line(short_settings(data.study, values), cells, x, columns, statistic)
        for values, cells in split_settings(data, names)
    ]


def _line(
    text: str, cells: pd.DataFrame, x: Axis, columns: tuple[str, str], statistic: Statistic
) -> Line:
    """The line of some cells, of a column and, unless its name is empty, of a theory's column."""
    (value, theory), (over_seeds, bounds) = columns, statistic
    positions = cells[x.name].map(dict(zip(x.values, x.positions, strict=True)))
    x_values = np.array(sorted(positions.unique()), dtype=np.float64)
    done = finite_column(cells, value)
    failed = (cells["status"] == "failed").groupby(positions).all().to_numpy()
    seeds = done.groupby([positions, cells["seed"]]).mean().unstack().to_numpy()
    mean, low, high = over_seeds.summarise(seeds, bounds)
    count = np.isfinite(seeds).sum(axis=1)
    expected = _expected(cells, theory, done, positions, over_seeds) if theory else None
    return Line(text, x_values, mean, low, high, failed, seeds, count, expected, cells)


def _expected(
    cells: pd.DataFrame,
    theory: str,
    done: pd.Series[float],
    positions: pd.Series[float],
    over_seeds: Averaging,
) -> np.ndarray:
    """The theory at each x, of the cells with a number there; of all where none has one."""
    has_none = done.isna().groupby(positions).transform("all")
    numbers = finite_column(cells, theory).where(done.notna() | has_none).groupby(positions)
    expected = numbers.median() if over_seeds.mean == "median" else numbers.mean()
    return np.asarray(expected, dtype=np.float64)


def _positive_bands(lines: Sequence[Line]) -> list[Line]:
    """Lines for a logarithmic axis: bands down to 0 end below the least mean and positive end."""
    ends = np.concatenate([np.concatenate([line.mean, line.low]) for line in lines])
    least = min(ends[ends > 0], default=0.0) / 3
    return [replace(line, low=np.maximum(line.low, least)) for line in lines]


def _dress(axes: matplotlib.axes.Axes, x: Axis, *, log: bool) -> None:
    axes.set_xlabel(wrap_text(x.label, WIDE))
    if x.scale == "category":
        x.dress(axes, "x")
    else:
        axes.set_xscale(x.scale)
        x.place_ticks(axes.xaxis, float(x.positions[0]), float(x.positions[-1]))
    axes.margins(x=0.04)
    if log:
        axes.set_yscale("log")


def _draw_joined(
    axes: matplotlib.axes.Axes, line: Line, look: Mapping[str, Any], *, seed_lines: bool, mean: bool
) -> None:
    """Draw a line, with a band or with a line for each seed."""
    if mean:
        axes.plot(line.x, line.mean, **look)
    if line.theory is not None:
        axes.plot(line.x, line.theory, color=look["color"], **_BEHIND)
    if seed_lines:
        for seed in line.seeds.T:  # joined across values of x without a cell
            valid = np.isfinite(seed)
            axes.plot(line.x[valid], seed[valid], color=look["color"], linewidth=0.5, alpha=0.6)
    else:
        axes.fill_between(line.x, line.low, line.high, color=look["color"], alpha=0.2, linewidth=0)


def _draw_points(
    axes: matplotlib.axes.Axes,
    line: Line,
    look: Mapping[str, Any],
    offset: float,
    *,
    seed_points: bool,
) -> None:
    """Draw points with bars or each seed, moved by an offset in units of the values' distance."""
    x, bars = line.x + offset, [line.mean - line.low, line.high - line.mean]
    if seed_points:
        seeds = np.repeat(x, line.seeds.shape[1])
        axes.plot(seeds, line.seeds.ravel(), "_", color=look["color"], markersize=4, alpha=0.6)
        axes.plot(x, line.mean, linestyle="", **look)
    else:
        axes.errorbar(x, line.mean, bars, linestyle="", capsize=2, **look)
    if line.theory is not None:
        axes.plot(x, line.theory, "_", color=look["color"], markersize=9)


def _mark_failed(
    axes: matplotlib.axes.Axes, x: np.ndarray, look: Mapping[str, Any], height: float
) -> None:
    """Mark values of x at a height, a share of the axes; lines have one each, so none is hidden."""
    if x.size:
        top = axes.get_xaxis_transform()
        axes.plot(x, np.full(x.size, height), "x", color=look["color"], transform=top)


def _fact(data: FigureData, plan: LinesPlan, *, seed_lines: bool) -> str:
    """The sentence of the caption."""
    counts = np.concatenate([line.count for lines in plan.lines for line in lines])
    largest = int(counts.max())
    kind, band = MEANS[plan.averaging.mean], plan.averaging.band_in_words(largest)
    if seed_lines and plan.x.scale == "category":
        band = "a thin mark for each seed"
    if not seed_lines:
        band = f"{'bars' if plan.x.scale == 'category' else 'band'}: {band}"
    middle = f"{mean_of_seeds(int(counts[counts > 0].min()), largest, kind)}, {band}"
    if largest == 1 or data.refined or data.averaged:
        middle = "a line for each seed" if data.refined else data.averaged or "one seed"
    failed = int((data.cells["status"] == "failed").sum())
    left_out = f"; {plural(failed, 'failed cell')} left out" if failed else ""
    numbers = finite_column(data.cells, plan.value)
    without = int((numbers.isna() & (data.cells["status"] == "done")).sum())
    left_out += f"; {plural(without, 'cell')} without a number left out" if without else ""
    beside = f" {_theory_mark(plan)}: {plan.theory}{_hidden_theory(plan)}." if plan.theory else ""
    return f"{opening(plan.label)} against {plan.x.label}: {middle}{left_out}.{beside}"


def _hidden_theory(plan: LinesPlan) -> str:
    """How many of a theory's numbers a logarithmic axis has no place for, in words."""
    theories = [line.theory for lines in plan.lines for line in lines if line.theory is not None]
    hidden = sum(int((theory <= 0).sum()) for theory in theories) if plan.log else 0
    return f" ({plural(hidden, 'number')} of 0 or less not shown)" if hidden else ""


def _theory_mark(plan: LinesPlan) -> str:
    """How a theory's column is drawn."""
    return "Bar without a point" if plan.x.scale == "category" else "Dashed"


def _averaged(data: FigureData, plan: LinesPlan) -> str:
    """The statistic over seeds and its band; empty where nothing is averaged."""
    largest = max(int(line.count.max()) for lines in plan.lines for line in lines)
    if largest < 2 or data.refined or data.averaged:
        return ""
    return plan.averaging.label(largest)


def _legend(plan: LinesPlan, threshold: float | None) -> Legend:
    looks = _looks(len(plan.texts))
    legend: Legend = [
        (Line2D([], [], **looks[index]), plan.texts[index])
        for index in named_lines(len(plan.texts))
        if plan.texts[index]
    ]
    if any(line.failed.any() for lines in plan.lines for line in lines):
        legend.append((Line2D([], [], color="0.3", marker="x", linestyle=""), "every seed failed"))
    if plan.theory:
        is_category = plan.x.scale == "category"
        look = {"marker": "_", "linestyle": ""} if is_category else _BEHIND
        legend.append((Line2D([], [], color="0.3", **look), plan.theory))
    if threshold is not None:
        legend.append((Line2D([], [], **THRESHOLD), f"threshold {tick_number(threshold)}"))
    return legend
