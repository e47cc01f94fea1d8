"""A measured column against a parameter: a line for each setting of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.axes
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from overfit_cli.core.figure import MOST_PANELS, FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import BadValue, plural
from overfit_cli.figures.axes import Axis, parameter_axis
from overfit_cli.figures.curves import BAND, logarithms, spans_widely
from overfit_cli.figures.heatmap import mean_of_seeds
from overfit_cli.figures.inputs import (
    checked_scale,
    checked_threshold,
    is_log,
    measured,
    value_is_log,
    with_numbers,
)
from overfit_cli.figures.labels import (
    heading,
    opening,
    parameter_values,
    plain,
    short_settings,
    split_by,
    varying_parameters,
    wrapped,
)
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
    colours_of_map,
    legend_below,
    log_ticks,
    named_of,
)

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
        seeds: each seed's own values, one column per seed.
        count: how many seeds the mean is over.
    """

    text: str
    at: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    failed: np.ndarray
    seeds: np.ndarray
    count: np.ndarray


@dataclass(frozen=True)
class Drawn:
    """What lines are drawn from.

    Attributes:
        x: the parameter along the axis.
        label: of the column.
        parts: the panels.
        names: the parameters of whose settings each is a line.
        lines: of each panel.
        texts: the settings, in their order.
        geometric: whether means are.
        log: whether the column's axis is logarithmic.
    """

    x: Axis
    label: str
    parts: Sequence[Panel]
    names: Sequence[str]
    lines: Sequence[Sequence[Line]]
    texts: Sequence[str]
    geometric: bool
    log: bool


@styled
def draw_lines(data: FigureData, options: FigureOptions) -> Picture:
    """Draw `options.value` against x, with panels by `by` and a line for each other setting.

    Points are means over seeds, with a band of one standard deviation, or with each seed's own line
    where they are fewer than three or the user wants it. Of a sweep that refined, whose points have
    different seeds, each seed has a line, and there is no mean. Means are geometric on a
    logarithmic axis, and where the column spans a factor of a million. Where x isn't a
    number, points stand side by side, with bars. Where every seed failed there is a cross on top.
    More settings than colours get panels, if those of one parameter suffice; a number with more
    values than panels fit has shades.

    Raises:
        UserError: if x doesn't vary, there are more lines than colours in any case, the column is
            unknown or empty, or the threshold isn't finite.
    """
    drawn = _gathered(data, options)
    threshold = checked_threshold(options.threshold)
    each, looks = _each_seed(data, options), _looks(len(drawn.texts))
    figure, all_axes = new_panels(len(drawn.parts), height=2.8)
    for axes, lines in zip(all_axes, drawn.lines, strict=True):
        _dress(axes, drawn.x, log=drawn.log)
        for line in lines:
            place = drawn.texts.index(line.text)
            if drawn.x.scale == "category":
                beside = _BESIDE * (place - (len(drawn.texts) - 1) / 2)
                _draw_apart(axes, line, looks[place], beside)
            else:
                _draw_joined(axes, line, looks[place], each=each, mean=not data.refined)
        if threshold is not None:
            axes.axhline(threshold, **THRESHOLD)
        if axes.get_yscale() == "log":
            log_ticks(axes.yaxis, *axes.get_ylim())
    all_axes[0].set_ylabel(wrapped(drawn.label, HIGH))
    label_outer(all_axes)
    title_panels(all_axes, [part.title for part in drawn.parts])
    figure.facts.append(_fact(data, drawn, each=each))
    legend = _legend(drawn, threshold)
    legend_below(figure, legend, 2 * len(drawn.parts), heading(data.study, drawn.names))
    return figure


def _gathered(data: FigureData, options: FigureOptions) -> Drawn:
    """The lines of every panel.

    Raises:
        UserError: see `draw_lines`.
    """
    x = parameter_axis(data, "x", options.x, log=is_log(options, "x"))
    value, label = measured(data, options.value)
    numbers = with_numbers(data, value)[value]
    log = checked_scale(value_is_log(options), numbers, factor=10)
    geometric = log or (spans_widely(numbers) and not data.less)
    by = _panels(data, x, options.by)
    parts = panels(data, by)
    names = [name for name in varying_parameters(data) if name not in (x.name, by)]
    lines = [_lines(part.data, names, x, value, geometric) for part in parts]
    texts = list(dict.fromkeys(line.text for of_panel in lines for line in of_panel))
    if len(texts) > len(PALETTE) and not is_one_number(data, names):
        raise BadValue(
            "x",
            x.name,
            f"the other parameters have {len(texts)} settings here, and a figure shows up to "
            f"{len(PALETTE)} lines{_way_out(data, x)}",
        )
    log = log or (geometric and options.log is None)
    return Drawn(x, label, parts, names, lines, texts, geometric, log)


def _panels(data: FigureData, x: Axis, by: str | None) -> str | None:
    """The parameter that makes panels: the user's, or one that leaves fewer lines than colours.

    A number of the user's that has more values than panels fit makes lines, in shades.
    """
    names = [name for name in varying_parameters(data) if name != x.name]
    if by is not None:
        many = len(parameter_values(data).get(by, ())) > MOST_PANELS
        return None if many and is_one_number(data, names) else by
    return panels_for_lines(data, names, len(PALETTE))


def _looks(count: int) -> list[dict[str, Any]]:
    """How each of so many lines is drawn: in a colour and with a marker, or in a shade."""
    if count <= len(PALETTE):
        pairs = zip(PALETTE, MARKERS, strict=False)
        return [{"color": colour, "marker": marker} for colour, marker in pairs]
    return [{"color": one} for one in colours_of_map(np.linspace(0, 0.95, count).tolist())]


def _way_out(data: FigureData, x: Axis) -> str:
    """The end of a sentence on too many lines: the panels that help, if any do."""
    names = [name for name in varying_parameters(data) if name != x.name]
    if by := panels_that_help(data.cells, names, len(PALETTE)):
        return f"; --by {by} makes panels of one of them."
    return "; a heatmap over two of them shows more."


def _each_seed(data: FigureData, options: FigureOptions) -> bool:
    """Whether each seed has a line of its own."""
    if data.averaged or data.refined:
        return data.refined
    if options.each_seed is not None:
        return options.each_seed
    return data.cells["seed"].nunique() < BAND


def _lines(data: FigureData, names: list[str], x: Axis, value: str, geometric: bool) -> list[Line]:
    return [
        _line(short_settings(data.study, values), cells, x, value, geometric)
        for values, cells in split_by(data, names)
    ]


def _line(text: str, cells: pd.DataFrame, x: Axis, value: str, geometric: bool) -> Line:
    where = cells[x.name].map(dict(zip(x.values, x.positions, strict=True)))
    at = np.array(sorted(where.unique()), dtype=np.float64)
    numbers = pd.Series(cells[value].to_numpy(dtype=np.float64, na_value=np.nan), cells.index)
    done = numbers.where((cells["status"] == "done") & np.isfinite(numbers))
    usable = logarithms(done) if geometric else done
    groups = usable.groupby(where)
    mean, deviation = groups.mean().to_numpy(), groups.std().fillna(0.0).to_numpy()
    low, high = mean - deviation, mean + deviation
    if geometric:
        mean, low, high = np.exp(mean), np.exp(low), np.exp(high)
    failed = (cells["status"] == "failed").groupby(where).all().to_numpy()
    seeds = done.groupby([where, cells["seed"]]).mean().unstack().to_numpy()
    return Line(text, at, mean, low, high, failed, seeds, groups.count().to_numpy())


def _dress(axes: matplotlib.axes.Axes, x: Axis, *, log: bool) -> None:
    axes.set_xlabel(wrapped(x.label, WIDE))
    if x.scale == "category":
        x.dress(axes, "x")
    if x.scale == "log":
        axes.set_xscale("log")
        log_ticks(axes.xaxis, float(x.positions[0]), float(x.positions[-1]))
    elif x.whole:
        axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    axes.margins(x=0.04)
    if log:
        axes.set_yscale("log")


def _draw_joined(
    axes: matplotlib.axes.Axes, line: Line, look: Mapping[str, Any], *, each: bool, mean: bool
) -> None:
    """A line, with a band or with each seed's own."""
    if mean:
        axes.plot(line.at, line.mean, **look)
    if each:
        for seed in line.seeds.T:  # joined over places at which it has no cell
            known = np.isfinite(seed)
            axes.plot(line.at[known], seed[known], color=look["color"], linewidth=0.5, alpha=0.6)
    else:
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


def _fact(data: FigureData, drawn: Drawn, *, each: bool) -> str:
    """What a caption says."""
    counts = np.concatenate([line.count for lines in drawn.lines for line in lines])
    kind = "geometric mean" if drawn.geometric else "mean"
    apart = drawn.x.scale == "category"
    spread = f"{'bars' if apart else 'band'} of one standard deviation"
    if each and not apart:
        spread = "a thin line for each seed"
    most = int(counts.max())
    of = f"{mean_of_seeds(int(counts[counts > 0].min()), most, kind)}, {spread}"
    if most == 1 or data.refined or data.averaged:
        of = "a line for each seed" if data.refined else data.averaged or "one seed"
    failed = int((data.cells["status"] == "failed").sum())
    left_out = f"; {plural(failed, 'failed cell')} left out" if failed else ""
    return f"{opening(drawn.label)} against {drawn.x.label}: {of}{left_out}."


def _legend(drawn: Drawn, threshold: float | None) -> Legend:
    looks = _looks(len(drawn.texts))
    legend: Legend = [
        (Line2D([], [], **looks[place]), drawn.texts[place])
        for place in named_of(len(drawn.texts))
        if drawn.texts[place]
    ]
    if any(line.failed.any() for lines in drawn.lines for line in lines):
        legend.append((Line2D([], [], color="0.3", marker="x", linestyle=""), "every seed failed"))
    if threshold is not None:
        legend.append((Line2D([], [], **THRESHOLD), f"threshold {plain(threshold)}"))
    return legend
