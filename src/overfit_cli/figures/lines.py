"""The figure `lines`: a measured column against a parameter, a line for each other setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import matplotlib.axes
import numpy as np
from matplotlib.lines import Line2D

from overfit_cli.core.arrays import finite_column
from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import MOST_PANELS, FigureOptions
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import percent, plural
from overfit_cli.figures.axes import Axis, parameter_axis
from overfit_cli.figures.curve_scale import is_log_value, least_shown, shade_below
from overfit_cli.figures.grid import mean_of_seeds
from overfit_cli.figures.inputs import (
    averaging,
    check_threshold,
    is_log,
    measured_column,
    measured_or_missed,
    misses_in_words,
    require_numbers,
    value_is_log,
)
from overfit_cli.figures.labels import (
    common_settings,
    formula_symbol,
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
from overfit_cli.figures.palette import MARKERS, LineLook, line_looks
from overfit_cli.figures.panels import (
    Panel,
    is_one_number,
    panels,
    panels_for_lines,
    panels_that_help,
)
from overfit_cli.figures.picture import Picture, label_outer, new_panels, styled, title_panels
from overfit_cli.figures.setting_line import (
    BEHIND_IN_LEGEND,
    COINCIDE,
    Line,
    Statistic,
    cross_misses,
    draw_joined,
    draw_points,
    draw_theories,
    fit_to_axis,
    hidden_bands_in_words,
    largest_gap,
    powers_in_words,
    setting_line,
    shifts,
)
from overfit_cli.figures.style import (
    HIGH,
    PALETTE,
    THRESHOLD,
    WIDE,
    Legend,
    legend_below,
    log_ticks,
    named_lines,
)
from overfit_cli.stats.bands import MEANS, Averaging, natural_bounds
from overfit_cli.stats.equations import Equation

__all__ = ["MARKERS", "draw_lines"]

_OFFSET = 0.08
"""The offset between points of several lines at one category."""

_CROSS, _ROW = 0.97, 0.05
"""The height of the first line's crosses, and how far the next line's lie below."""


@dataclass(frozen=True)
class LinesPlan:
    """The plan of the figure.

    Attributes:
        names: the parameters whose settings have a line each.
        looks: the look of each setting's line, by its text, in order.
        floor: the least number that it shows; 0 without one.
        theory: the label of the theory's column; empty without one.
        alike: which panels are left out, as they are like the first one; empty where none is.
    """

    x: Axis
    label: str
    parts: Sequence[Panel]
    names: Sequence[str]
    lines: Sequence[Sequence[Line]]
    looks: Mapping[str, LineLook]
    averaging: Averaging
    log: bool
    floor: float
    value: str
    theory: str
    alike: str = ""


@styled
def draw_lines(data: FigureData, options: FigureOptions, *, floor: float = 0.0) -> Picture:
    """Draw `options.value` against x, with panels by `by` and a line for each other setting.

    Points are medians over seeds with their quartiles, or with a line for each seed where there
    are fewer than three seeds, unless the user wants another mean or band. A seed that misses, at
    its target or by diverging, counts as beyond the others: where half of the seeds miss, the
    median of the others is an open point on no line, and a cross at the top marks values at which
    no seed arrives. In a refined sweep, whose points have different seeds, each seed has a line,
    and there is no mean. Where x is no number, points stand side by side, with bars. More settings
    than colours have panels, if those of one parameter suffice; a number with more values than
    panels has shades, and no bands. A theory's column is dashed, and so are equations in x, the
    column and constants; of those that differ between lines, each line has its curve.

    Args:
        floor: the round-off of a column that is a share of its start; 0 for the digits of the
            largest number.
    """
    plan = _gather_lines(data, options, floor)
    equations = _parse_laws(data, options, plan)
    threshold = check_threshold(options.threshold)
    figure, all_axes = new_panels(len(plan.parts), height=2.8)
    for axes, lines in zip(all_axes, plan.lines, strict=True):
        _dress(axes, plan.x, log=plan.log)
        _draw_panel(axes, lines, plan, mean=not data.refined)
        if threshold is not None:
            axes.axhline(threshold, **THRESHOLD)
        if axes.get_yscale() == "log":
            log_ticks(axes.yaxis, *axes.get_ylim())
    all_axes[0].set_ylabel(label_with_note(plan.label, _averaged(data, plan), HIGH))
    label_outer(all_axes)
    title_panels(all_axes, [part.title for part in plan.parts])
    figure.facts += [_fact(data, plan), *_narrow_in_words(all_axes, plan)]
    if plan.log and plan.x.scale == "log":
        every = [line for lines in plan.lines for line in lines]
        figure.facts += powers_in_words(every, formula_symbol(data.study, plan.x.name))
    varying = [name for name in varying_parameters(data) if name != plan.x.name]
    if tied := [name for name in varying if name not in _others(data, plan.x)]:
        figure.facts.append(f"Varying with {plan.x.name}: {', '.join(tied)}.")
    legend = _legend(plan, threshold)
    if plan.floor:
        of_share = ("start", floor) if floor else ("largest",)
        legend += shade_below(all_axes, plan.floor, *of_share)
    legend += _draw_laws(figure, all_axes, plan, equations, data)
    legend_below(figure, legend, 2 * len(plan.parts), heading(data.study, plan.names))
    return figure


def _narrow_in_words(all_axes: Sequence[matplotlib.axes.Axes], plan: LinesPlan) -> list[str]:
    sentences = list(filter(None, [plan.alike]))
    if any(shifts(lines, len(plan.looks), log=plan.log).any() for lines in plan.lines):
        sentences.append("Lines that coincide are drawn side by side.")
    is_banded = plan.averaging.band != "seeds" and len(plan.looks) <= len(PALETTE)
    if is_banded and plan.x.scale != "category":
        sentences += hidden_bands_in_words(all_axes, plan.lines)
    return sentences


def _draw_panel(
    axes: matplotlib.axes.Axes, lines: Sequence[Line], plan: LinesPlan, *, mean: bool
) -> None:
    seed_lines, count = plan.averaging.band == "seeds", len(plan.looks)
    aside = shifts(lines, count, log=plan.log)
    band = "seeds" if seed_lines else "band" if count <= len(PALETTE) else ""
    crossed = 0
    for line in lines:
        index = list(plan.looks).index(line.text)
        look = plan.looks[line.text]
        x = line.x
        if plan.x.scale == "category":
            x = x + _OFFSET * (index - (count - 1) / 2)
            draw_points(axes, line, look, x, seed_points=seed_lines)
        else:
            draw_joined(axes, line, look, shift=aside[index], band=band, mean=mean)
        cross_misses(axes, x[line.misses], look, _CROSS - _ROW * crossed)
        crossed += bool(line.misses.any())
    if plan.x.scale != "category":
        draw_theories(axes, lines, [plan.looks[line.text].colour for line in lines])
    axes.margins(y=0.05 + _ROW * crossed)  # no line passes behind a cross
    if endless := [line for line in lines if line.endless.any()]:
        axes.set_ylim(top=max(float(np.nanmax(line.high)) for line in endless))


def _gather_lines(data: FigureData, options: FigureOptions, round_off: float) -> LinesPlan:
    x = parameter_axis(data, "x", options.x, log=is_log(options, "x"))
    value, label = measured_column(data, options.value)
    numbers = require_numbers(data, value)[value].to_numpy(np.float64)
    log = is_log_value(value_is_log(options), numbers)
    largest = (1.0, round_off) if round_off else (float(numbers.max()),)
    floor = least_shown(numbers, *largest) if log else 0.0
    if options.by == x.name:
        raise BadValue("by", options.by, "it is an axis already; panels take another parameter.")
    panel_parameter = _panels(data, x, options.by)
    parts = panels(data, panel_parameter)
    names = [name for name in _others(data, x) if name != panel_parameter]
    over_seeds = _averaging(data, options)
    theory = ("", "") if options.theory is None else _theory_column(data, options.theory)
    columns = (value, theory[0])
    bounds = natural_bounds(np.asarray(finite_column(data.cells, value), dtype=np.float64))
    statistic = (over_seeds, bounds)
    lines = [_lines(part.data, names, x, columns, statistic) for part in parts]
    every = [line for panel_lines in lines for line in panel_lines]
    settings = {line.text: line.settings for line in every}
    if len(settings) > len(PALETTE) and not is_one_number(data, names):
        raise BadValue(
            "x",
            x.name,
            f"the other parameters have {len(settings)} settings here, and a figure shows up to "
            f"{len(PALETTE)} lines{_suggestion(data, x)}",
        )
    if x.scale != "category" and max(np.isfinite(line.shown).sum() for line in every) < 2:
        raise BadValue("x", x.name, f"no line of {value} has two points here.")
    looks = dict(zip(settings, line_looks(data.study, list(settings.values())), strict=True))
    fitted = iter(fit_to_axis(every, floor, log=log))
    lines = [[next(fitted) for _ in panel_lines] for panel_lines in lines]
    plan = LinesPlan(x, label, parts, names, lines, looks, over_seeds, log, floor, value, theory[1])
    return _without_alike_panels(plan)


def _without_alike_panels(plan: LinesPlan) -> LinesPlan:
    """The plan with its first panel alone, if the lines and bands of all others coincide."""
    first, *others = plan.lines
    gaps = [largest_gap(first, lines, log=plan.log) for lines in others]
    if not gaps or plan.averaging.band == "seeds" or not max(gaps) <= COINCIDE:
        return plan
    titles = [part.title for part in plan.parts]
    alike = (
        f"Drawn for {titles[0]}; for {', '.join(titles[1:])} lines and bands are the same within "
        f"{percent(COINCIDE)} of their span."
    )
    alone = replace(plan.parts[0], title="")
    return replace(plan, parts=[alone], lines=[first], alike=alike)


def _theory_column(data: FigureData, name: str) -> tuple[str, str]:
    if data.less:
        raise BadValue("theory", name, "a difference of runs has no column of a theory.")
    return measured_column(data, name, "theory")


def _parse_laws(data: FigureData, options: FigureOptions, plan: LinesPlan) -> list[Equation]:
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
    for axes in all_axes:
        axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
    places = [
        Place(axes, line.cells, plan.looks[line.text].colour, outlined=False)
        for axes, lines in zip(all_axes, plan.lines, strict=True)
        for line in lines
    ]
    names, first_dash = (plan.x.name, plan.value), 2 if plan.theory else 1
    return draw_equations(
        figure, places, equations, names, data, colour="0.15", first_dash=first_dash
    )


def _others(data: FigureData, x: Axis) -> list[str]:
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


def _suggestion(data: FigureData, x: Axis) -> str:
    names = _others(data, x)
    if name := panels_that_help(data.cells, names, len(PALETTE)):
        return f"; --by {name} makes panels of one of them."
    return "; a heatmap over two of them shows more."


def _averaging(data: FigureData, options: FigureOptions) -> Averaging:
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
        setting_line(
            short_settings(data.study, values),
            values,
            cells,
            x,
            columns,
            statistic,
            less=bool(data.less),
        )
        for values, cells in split_settings(data, names)
    ]


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


def _fact(data: FigureData, plan: LinesPlan) -> str:
    every = [line for lines in plan.lines for line in lines]
    counts = np.concatenate([_seeds_of_points(line, plan) for line in every])
    largest = int(counts.max())
    kind, band = MEANS[plan.averaging.mean], plan.averaging.band_in_words(largest)
    seed_lines, is_category = plan.averaging.band == "seeds", plan.x.scale == "category"
    if seed_lines and is_category:
        band = "a thin mark for each seed"
    if not seed_lines:
        band = f"{'bars' if is_category else 'band'}: {band}"
        band = band if len(plan.looks) <= len(PALETTE) else "without bands"
    middle = f"{mean_of_seeds(int(counts[counts > 0].min()), largest, kind)}, {band}"
    if largest == 1 or data.refined or data.averaged:
        middle = "a line for each seed" if data.refined else data.averaged or "one seed"
    beside = f" {_theory_mark(plan)}: {plan.theory}{_hidden_theory(plan)}." if plan.theory else ""
    label = f"{opening(plan.label)} against {plan.x.label}"
    return f"{label}: {middle}{_without_number(data, plan)}.{beside}{_open_in_words(every)}"


def _seeds_of_points(line: Line, plan: LinesPlan) -> np.ndarray:
    if plan.averaging.mean != "median":
        return line.count
    return np.where(line.count > 0, (~np.isnan(line.seeds)).sum(axis=1), 0)


def _without_number(data: FigureData, plan: LinesPlan) -> str:
    numbers = finite_column(data.cells, plan.value)
    missing = numbers.isna()
    beyond = np.isinf(measured_or_missed(data.cells, plan.value)) & (not data.less)
    if plan.averaging.mean != "median" or data.refined:
        beyond &= False
    words = ""
    if beyond.any():
        missed = data.cells[beyond]
        reason, settings = misses_in_words(missed), common_settings(data, missed)
        where = f" at {settings}" if settings else ""
        count = plural(len(missed), "cell")
        words = f"; {count}{where} ({reason}) taken as beyond the others"
    left = missing & ~beyond
    failed = left & (data.cells["status"] == "failed")
    if failed.any():
        reason = misses_in_words(data.cells[failed])
        words += f"; {plural(int(failed.sum()), 'cell')} ({reason}) left out"
    without = int((left & ~failed).sum())
    return words + (f"; {plural(without, 'cell')} without a number left out" if without else "")


def _open_in_words(lines: Sequence[Line]) -> str:
    words = ""
    if any(line.endless.any() for line in lines):
        words = (
            " Bands that end at the frame have no upper end; beside them, how many seeds of how "
            "many arrive."
        )
    if any(np.isfinite(line.open).any() for line in lines):
        words += (
            " Open points: half of the seeds or more miss; the median of the others, and how many "
            "of how many those are."
        )
    return words


def _hidden_theory(plan: LinesPlan) -> str:
    theories = [line.theory for lines in plan.lines for line in lines if line.theory is not None]
    hidden = sum(int((theory <= 0).sum()) for theory in theories) if plan.log else 0
    return f" ({plural(hidden, 'number')} of 0 or less not shown)" if hidden else ""


def _theory_mark(plan: LinesPlan) -> str:
    return "Bar without a point" if plan.x.scale == "category" else "Dashed"


def _averaged(data: FigureData, plan: LinesPlan) -> str:
    largest = max(int(line.count.max()) for lines in plan.lines for line in lines)
    if largest < 2 or data.refined or data.averaged:
        return ""
    if len(plan.looks) > len(PALETTE):
        return MEANS[plan.averaging.mean]
    return plan.averaging.label(largest)


def _legend(plan: LinesPlan, threshold: float | None) -> Legend:
    every = [line for lines in plan.lines for line in lines]
    texts = list(plan.looks)
    legend: Legend = []
    for text in (texts[index] for index in named_lines(len(texts)) if texts[index]):
        look, same = plan.looks[text], [line for line in every if line.text == text]
        is_drawn = any(np.isfinite(line.shown).any() for line in same)
        reason = "" if is_drawn else f" ({same[0].reason or 'no number'})"
        marker, dash = (look.marker, look.dash) if is_drawn else ("x", "")
        handle = Line2D([], [], color=look.colour, marker=marker, linestyle=dash)
        legend.append((handle, f"{text}{reason}"))
    if reasons := " or ".join(line.reason for line in every if line.misses.any()):
        text = f"every seed: {' or '.join(dict.fromkeys(reasons.split(' or ')))}"
        legend.append((Line2D([], [], color="0.3", marker="x", linestyle=""), text))
    if any(np.isfinite(line.open).any() for line in every):
        circle = Line2D([], [], color="0.3", marker="o", markerfacecolor="white", linestyle="")
        legend.append((circle, "half of the seeds or more miss"))
    if plan.theory:
        is_category = plan.x.scale == "category"
        look_of_theory = {"marker": "_", "linestyle": ""} if is_category else BEHIND_IN_LEGEND
        legend.append((Line2D([], [], color="0.3", **look_of_theory), plan.theory))
    if threshold is not None:
        legend.append((Line2D([], [], **THRESHOLD), f"threshold {tick_number(threshold)}"))
    return legend
