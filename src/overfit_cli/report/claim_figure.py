"""Picture of claims: the seeds' numbers, the margin, and the fitted power, clause by clause.

A level or a share has its interval at every setting. A trend, a power and a contour have their
lines with the fitted power, and beside them the interval of each line. Margins are shaded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist, getp
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from overfit_cli.claims.everywhere import estimate, slack
from overfit_cli.claims.measured import Ends
from overfit_cli.claims.quantities import ContourPower, Line, Part, Power, Trend
from overfit_cli.claims.sentences import Clause
from overfit_cli.claims.stated import Measure
from overfit_cli.core.arrays import Floats
from overfit_cli.core.claim import UndecidedError
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import Figure
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import VERSION, plural
from overfit_cli.figures.caption import caption
from overfit_cli.figures.draw import commands_behind
from overfit_cli.figures.labels import axis_label, is_word, literal, short_settings, wrap_text
from overfit_cli.figures.lines import MARKERS
from overfit_cli.figures.picture import Look, Picture, looking, styled
from overfit_cli.figures.record import FigureRecord, record_of_cells, versions
from overfit_cli.figures.style import (
    COLUMN,
    HIGH,
    PAGE,
    PALETTE,
    WIDE,
    Legend,
    legend_below,
    log_ticks,
)
from overfit_cli.report.judge import Judged
from overfit_cli.report.runs import LoadedRun, load_runs
from overfit_cli.stats.intervals import Estimate, level_of_each
from overfit_cli.stats.pairs import is_log_spaced
from overfit_cli.sweeps.load import chosen_data, load_figure_data

NAME = "claim"
"""The name of the figure, in its record and its file."""

MOST_CLAUSES = 8
"""The most clauses in one picture."""

MOST_ROWS = 12
"""The most intervals below each other; of more those nearest to their margin's end."""

WEDGES = 2
"""The most lines that have the margin's slopes drawn."""

_SHADE = "#DCE9F2"  # of margins: text and points are legible on it
_STEEP = 40.0  # a power that stands for an end of a margin that is none
_DECADES = 1.5  # from which on numbers have a logarithmic axis
_ROW, _INTERVAL = 2.1, 0.17  # inches: of a clause with lines, and of an interval


Groups = Mapping[str, Sequence[tuple[float, Estimate]]]
"""Of each setting of the parameters but x, by its text, the numbers at values of x."""


@dataclass(frozen=True)
class _Judged:
    """A clause of a claim, with what it is judged on.

    Attributes:
        title: what stands above it: the sentence and its verdict, or what else it is about.
        lines: the lines that its powers or trends are those of; empty for other quantities.
        number: what lies along the lines' other axis.
    """

    title: str
    clause: Clause
    parts: Sequence[Part]
    lines: Sequence[Line]
    axis: str
    number: str

    @property
    def x(self) -> str:
        """The parameter along which its settings stand: that with the most values; empty for none.

        Settings have a line for each value of the others, so that these must be few.
        """
        if self.lines or not all(part.setting for part in self.parts):
            return ""
        values = {
            name: {part.setting[name] for part in self.parts} for name in self.parts[0].setting
        }
        numbers = {
            name: len(several)
            for name, several in values.items()
            if len(several) > 1 and all(isinstance(value, int | float) for value in several)
        }
        name = max(numbers, key=lambda name: numbers[name], default="")
        others = math.prod(len(several) for other, several in values.items() if other != name)
        return name if others <= len(PALETTE) else ""

    @property
    def height(self) -> float:
        return _ROW if self.lines or self.x else 1.0 + _INTERVAL * min(len(self.parts), MOST_ROWS)


def draw_claims(
    path: Path,
    judged: Sequence[Judged],
    conditions: Sequence[str] = (),
    *,
    command: str = "",
    out: Path | None = None,
    look: Look | None = None,
) -> Picture:
    """Draw sentences on a run's cells, with the caption and the record of the picture.

    Those that do not bear on these cells are left out, as the caption says.
    """
    (run,) = load_runs([path], path, conditions)
    with run.looks_level(), looking(look or Look()):
        clauses, left_out = list[_Judged](), list[str]()
        for each in judged:
            try:
                clauses += _clauses(run, each)
            except UndecidedError as error:
                left_out.append(f"{each.name}: {error}")
        if not clauses:
            raise UserError(" ".join(left_out) or "There is no claim to draw.")
        if len(clauses) > MOST_CLAUSES:
            raise UserError(
                f"A picture shows up to {MOST_CLAUSES} quantities, and these claims have "
                f"{len(clauses)}; name some of them."
            )
        picture = _draw(clauses, run.study)
    picture.facts += [
        f"{each.name}: {each.headline}, {each.measurement.number}." for each in judged
    ]
    if left_out:
        picture.facts.append(f"Not drawn: {' '.join(left_out)}")
    data = chosen_data(load_figure_data(run.directory, run.every_cell), conditions)
    figure = Figure(NAME, "Claims with what they are judged on", "cells", draw=lambda *_: None)
    picture.caption = caption(figure, picture, data, commands_behind([path], command), usual=True)
    known = {claim.name for claim in run.claims()}
    names = [each.claim.name for each in judged]
    texts = [
        name if name in known else str(each.claim.measure.sentence)
        for name, each in zip(names, judged, strict=True)
        if isinstance(each.claim.measure, Measure)
    ]
    picture.metadata = FigureRecord(
        schema=1,
        overfit=VERSION,
        packages=versions(),
        command=command,
        title=f"Claims: {'; '.join(names)}",
        figure=NAME,
        where=tuple(conditions),
        claims=tuple(texts),
        runs=(record_of_cells(path, run.study.name, run.cells, out=out),),
    ).metadata()
    return picture


def _clauses(run: LoadedRun, judged: Judged) -> list[_Judged]:
    measure = judged.claim.measure
    if not isinstance(measure, Measure) or not run.study.seeded:
        raise UserError(f"{judged.name} is no sentence about seeds, and has no drawing.")
    sentence, clauses = measure.sentence, []
    table = sentence.chosen(measure.table(run.table(judged.claim).rows))
    for clause in sentence.clauses:
        quantity, lines, axis = clause.quantity, list[Line](), ""
        several = f", {quantity}" if len(sentence.clauses) > 1 else ""
        called = judged.claim.name if judged.claim.source or several else sentence.text
        parts = clause.parts(table, sentence.seeds)
        if isinstance(quantity, Trend | Power):
            lines, axis = list(quantity.lines(table)), table.parameter(quantity.axis)
            number = quantity.measured.text
        elif isinstance(quantity, ContourPower):
            lines = [_out_of_logs(line) for line in quantity.lines(table)]
            axis, number = table.parameter(quantity.y), table.parameter(quantity.x)
        else:
            number = f"{clause.statistic} of {quantity}" if str(quantity) != "the share" else ""
        if len(lines) > len(PALETTE) and clause.over == "every":
            lines, parts = _nearest_first(lines, parts)
        title = f"{called}{several}: {judged.headline}"
        clauses.append(_Judged(title, clause, parts, lines, axis, number or "share of seeds"))
    return clauses


def _nearest_first(lines: Sequence[Line], parts: Sequence[Part]) -> tuple[list[Line], list[Part]]:
    each = len(parts) // len(lines)
    groups = [parts[each * index : each * (index + 1)] for index in range(len(lines))]
    order = sorted(range(len(lines)), key=lambda index: min(map(slack, groups[index])))
    return [lines[index] for index in order], [part for index in order for part in groups[index]]


def _out_of_logs(line: Line) -> Line:
    with np.errstate(over="ignore"):
        return line._replace(ends=Ends(*map(np.exp, line.ends)))


@styled
def _draw(clauses: Sequence[_Judged], study: AnyStudy) -> Picture:
    wide = any(clause.lines for clause in clauses)
    heights = [clause.height for clause in clauses]
    figure = Picture(PAGE if wide else COLUMN, sum(heights) + 0.5)
    grid = figure.add_gridspec(len(clauses), 2 if wide else 1, height_ratios=heights)
    legend: Legend = [(Patch(color=_SHADE), "where the claim holds")]
    looks = dict[str, int]()
    for row, judged in enumerate(clauses):
        first = figure.add_subplot(grid[row, 0] if judged.lines else grid[row, :])
        if judged.lines:
            entries = _draw_lines(first, judged, study, looks)
            second = figure.add_subplot(grid[row, 1])
            _draw_intervals(second, judged)
        elif judged.x:
            entries = _draw_settings(first, judged, study, looks)
        else:
            entries = []
            _draw_intervals(first, judged)
        letters = int((2 if wide else 1) * WIDE / (2 if judged.lines else 1))
        first.set_title(wrap_text(literal(judged.title), letters))
        legend += [entry for entry in entries if not _is_known(entry, legend)]
    legend_below(figure, legend)
    level = 100 * level_of_each(1)
    figure.facts.append(
        f"Points: over seeds, with {level:.4g} % intervals; a bar without an end reaches beyond "
        "what was measured. Shaded: where the claim's interval must lie."
    )
    longest = max(clauses, key=lambda clause: len(clause.lines))
    nearest = "nearest to their margin's end"
    if (count := len(longest.lines)) > (most := len(PALETTE)):
        which = f"{most} {nearest}" if longest.clause.over == "every" else f"first {most}"
        figure.facts.append(f"Of {plural(count, 'line')} the {which} are drawn.")
    if (count := max(0 if clause.x else len(clause.parts) for clause in clauses)) > MOST_ROWS:
        figure.facts.append(f"Of {plural(count, 'interval')} the {MOST_ROWS} {nearest} are drawn.")
    return figure


# Panels


def _draw_settings(axes: Axes, judged: _Judged, study: AnyStudy, looks: dict[str, int]) -> Legend:
    name, groups = judged.x, dict[str, list[tuple[float, Estimate]]]()
    for part in judged.parts:
        others = {key: value for key, value in part.setting.items() if key != name}
        text = short_settings(study, others)
        groups.setdefault(text, []).append((float(part.setting[name]), estimate(part)))
    margin = judged.parts[0].margin
    _dress(axes, judged, study, groups, name, [margin.least, margin.most])
    low, high = axes.get_ylim()
    axes.axhspan(max(margin.least, low), min(margin.most, high), color=_SHADE, zorder=0)
    return _draw_groups(axes, groups, _choose(looks, groups), joined=False)


def _draw_lines(axes: Axes, judged: _Judged, study: AnyStudy, looks: dict[str, int]) -> Legend:
    lines = judged.lines[: len(PALETTE)]
    groups = {
        short_settings(study, line.setting): [
            (float(x), estimate(Part("", low, high, judged.clause.margin)))
            for x, low, high in zip(line.x, line.ends.low.T, line.ends.high.T, strict=True)
        ]
        for line in lines
    }
    is_power = not isinstance(judged.clause.quantity, Trend)
    _dress(axes, judged, study, groups, judged.axis, log=is_power)
    chosen = _choose(looks, groups)
    legend = _draw_groups(axes, groups, chosen, joined=not is_power)
    if is_power:
        legend += _draw_fits(axes, judged, lines, chosen)
    return legend


def _choose(looks: dict[str, int], groups: Iterable[str]) -> list[int]:
    """The place of each group in the palette, the same in all panels where that can be."""
    chosen = list[int]()
    kept = {looks[text] for text in groups if text in looks}
    for text in groups:
        if text not in looks or looks[text] in chosen:
            free = [place for place in range(len(PALETTE)) if place not in {*chosen, *kept}]
            unused = [place for place in free if place not in looks.values()]
            looks[text] = (unused or free)[0]
        chosen.append(looks[text])
    return chosen


def _is_known(entry: tuple[Artist, str], legend: Legend) -> bool:
    handle, text = entry
    return any(
        called == text and getp(known, "color") == getp(handle, "color")
        for known, called in legend
        if isinstance(known, Line2D)
    )


def _draw_groups(
    axes: Axes,
    groups: Groups,
    looks: Sequence[int],
    *,
    joined: bool,
) -> Legend:
    """Draw points with intervals, a colour for each group, side by side; return their legend.

    The groups at one x take up to 70 % of the least gap, so that none seems to lie at another x.
    """
    legend: Legend = []
    xs, limits = _positions(groups), axes.get_ylim()
    log = axes.get_xscale() == "log"
    scaled = np.log(xs) if log else xs
    gap = float(np.diff(scaled).min()) if len(scaled) > 1 else 0.0
    step = min(0.02 * (scaled[-1] - scaled[0]), 0.7 * gap / max(len(groups) - 1, 1))
    for number, (index, (text, group)) in enumerate(zip(looks, groups.items(), strict=True)):
        shift = step * (number - (len(groups) - 1) / 2)
        x = np.array([position for position, _ in group])
        x = x * np.exp(shift) if log else x + shift
        value, low, high = _clipped([number for _, number in group], *limits)
        look: dict[str, Any] = {"color": PALETTE[index], "marker": MARKERS[index]}
        axes.plot(x, value, **look, linestyle="-" if joined else "")
        axes.vlines(x, low, high, color=PALETTE[index], linewidth=0.9)
        if text:
            legend.append((Line2D([], [], **look, linestyle=""), text))
    return legend


def _draw_fits(axes: Axes, judged: _Judged, lines: Sequence[Line], looks: Sequence[int]) -> Legend:
    every = len(judged.parts) // len(judged.lines) if judged.clause.over == "every" else 0
    margin = judged.clause.margin
    for index, line in enumerate(lines):
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = np.log(np.median((line.ends.low + line.ends.high) / 2, axis=0))  # (points,)
        known = np.isfinite(logs)
        if known.sum() < 2:
            continue
        log_x = np.log(line.x)
        slope = float(np.polyfit(log_x[known], logs[known], 1)[0])
        if every:
            slope = estimate(judged.parts[every * index]).value
        middle, height = log_x[known].mean(), logs[known].mean()
        ends = np.linspace(log_x[0], log_x[-1], 50)
        axes.plot(
            np.exp(ends), np.exp(height + slope * (ends - middle)), color=PALETTE[looks[index]]
        )
        if len(lines) <= WEDGES:
            slopes = [np.clip(end, -_STEEP, _STEEP) for end in (margin.least, margin.most)]
            with np.errstate(over="ignore"):
                rays = [np.exp(height + power * (ends - middle)) for power in slopes]
            axes.fill_between(
                np.exp(ends), np.minimum(*rays), np.maximum(*rays), color=_SHADE, zorder=0
            )
    return [(Line2D([], [], color="0.3"), "fitted power")]


def _draw_intervals(axes: Axes, judged: _Judged) -> None:
    parts = list(judged.parts)
    if len(parts) > MOST_ROWS:
        nearest = sorted(range(len(parts)), key=lambda index: slack(parts[index]))[:MOST_ROWS]
        parts = [parts[index] for index in sorted(nearest)]
    estimates = [estimate(part) for part in parts]
    ends = [end for part in parts for end in (part.margin.least, part.margin.most)]
    low, high = _limits(estimates, ends, log=False)
    value, left, right = _clipped(estimates, low, high)
    rows = np.arange(len(parts), dtype=np.float64)
    for row, part in zip(rows, parts, strict=True):
        shaded = (max(part.margin.least, low), min(part.margin.most, high))
        axes.fill_betweenx([row - 0.5, row + 0.5], *shaded, color=_SHADE, zorder=0, linewidth=0)
    axes.hlines(rows, left, right, color=PALETTE[0], linewidth=0.9)
    axes.plot(value, rows, "o", color=PALETTE[0])
    names = [str(replace(part, quantity="")).removeprefix("at ") for part in parts]
    axes.set_yticks(rows if any(names) else [], [literal(name) for name in names if any(names)])
    axes.set(xlim=(low, high), ylim=(len(parts) - 0.5, -0.5))
    quantity = judged.clause.quantity
    label = str(quantity) if isinstance(quantity, Power | ContourPower) else judged.number
    if isinstance(quantity, Trend):
        label = "rank correlation; of its end and turn, a share"
    axes.set_xlabel(wrap_text(literal(label), WIDE))


def _dress(
    axes: Axes,
    judged: _Judged,
    study: AnyStudy,
    groups: Groups,
    x: str,
    ends: Sequence[float] = (),
    *,
    log: bool = False,
) -> None:
    """Give both axes their scales, ticks and labels, and the y axis its limits.

    Args:
        ends: further numbers that the y axis holds.
        log: whether both axes are logarithmic, whatever lies along them.
    """
    xs, estimates = _positions(groups), [each for group in groups.values() for _, each in group]
    if log or is_log_spaced(xs):
        axes.set_xscale("log")
        log_ticks(axes.xaxis, float(xs[0]), float(xs[-1]))
    axes.margins(x=0.06)
    axes.set_xlabel(wrap_text(axis_label(study, x), WIDE))
    log = log or _is_log(estimates, judged)
    low, high = _limits(estimates, ends, log=log)
    axes.set_ylim(low, high)
    if log:
        axes.set_yscale("log")
        log_ticks(axes.yaxis, low, high)
    axes.set_ylabel(wrap_text(_label(study, judged.number), HIGH))


def _positions(groups: Groups) -> Floats:
    return np.unique([x for group in groups.values() for x, _ in group])


def _label(study: AnyStudy, number: str) -> str:
    name = number.rpartition(" of ")[2]
    names = {column.name for column in study.columns} | set(study.parameters.model_fields)
    if name not in names or is_word(study, name):
        return literal(number)
    return f"{number.removesuffix(name)}{axis_label(study, name)}"


def _is_log(estimates: Sequence[Estimate], judged: _Judged) -> bool:
    values = np.array([number.value for number in estimates])
    values = values[np.isfinite(values)]
    if judged.clause.statistic == "share" or not len(values) or values.min() <= 0:
        return False
    return bool(np.log10(values.max() / values.min()) > _DECADES)


def _limits(
    estimates: Sequence[Estimate], ends: Sequence[float], *, log: bool
) -> tuple[float, float]:
    several = [*ends, *(end for number in estimates for end in (number.value, *number[1:3]))]
    finite = np.array([end for end in several if math.isfinite(end) and (end > 0 or not log)])
    if not len(finite):
        return (0.1, 10.0) if log else (-1.0, 1.0)
    scaled = np.log(finite) if log else finite
    room = 0.08 * (np.ptp(scaled) or abs(scaled[0]) or 1.0)
    low, high = scaled.min() - room, scaled.max() + room
    return (math.exp(low), math.exp(high)) if log else (float(low), float(high))


def _clipped(
    estimates: Sequence[Estimate], low: float, high: float
) -> tuple[Floats, Floats, Floats]:
    value, left, right = (
        np.array([number[index] for number in estimates], dtype=np.float64) for index in range(3)
    )
    value = np.where(np.isfinite(value), value, np.nan)
    left, right = (np.where(np.isnan(end), value, end) for end in (left, right))
    return value, np.clip(left, low, high), np.clip(right, low, high)
