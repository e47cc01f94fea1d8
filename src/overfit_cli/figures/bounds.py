"""The figure `bounds`: a point for each cell, at what was measured over a bound, a row per bound.

A row is the sentence of a claim on all seeds: `drift <= 10 * bound if movement <= 0.01 where sigma
= 0.03`. Its left side is drawn over its right side. Cells that don't meet the `if` have open
markers, and a bound whose `if` no cell meets is called vacuous, with the decades that are missing.
Cells outside of the `where` are left out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from overfit_cli.claims.bounds import Bound
from overfit_cli.claims.sentences import read
from overfit_cli.core.cells import Cells, NoCellsError
from overfit_cli.core.errors import UserError
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.text import plural
from overfit_cli.figures import labels, style
from overfit_cli.figures.axes import legend_below, log_ticks
from overfit_cli.figures.picture import Picture

_FARTHEST = 300.0
"""The most decades over a bound, or under it, that are drawn."""

_MANY = 50
"""The number of points of a line from which they are pale."""


@dataclass(frozen=True)
class Row:
    """A bound, with numbers of its cells by their index.

    Attributes:
        over: decades over the bound; −∞ of a number that is 0 or less.
        missed: decades over each hypothesis, by its text; above 0 a cell doesn't meet it.
    """

    label: str
    over: pd.Series[float]
    missed: Mapping[str, pd.Series[float]]

    @property
    def met(self) -> pd.Series[bool]:
        """Which cells meet all hypotheses."""
        met: pd.Series[bool] = (pd.DataFrame({**self.missed}, self.over.index) <= 0).all(axis=1)
        return met

    def note(self) -> str:
        """The largest number, and how far the bound is vacuous."""
        largest = 10.0 ** min(self.over.max(), _FARTHEST)
        digits = 3 if 0.95 < largest < 1 else 2
        written = labels.tick_number(float(f"{largest:.{digits}g}"))
        return written if self.met.any() else f"{written}, vacuous"

    def facts(self) -> list[str]:
        """Sentences on what is vacuous, and on what is not shown."""
        name, hidden = " ".join(self.label.split()), int((self.over == -np.inf).sum())
        told = [f"{name}: {plural(hidden, 'number')} at 0 or less not shown."] if hidden else []
        if not self.met.any():
            missing = (f"{text} by {far.median():.2g}" for text, far in self.missed.items())
            vacuous = f"{name} is vacuous: no cell meets its hypotheses; decades missing"
            told.append(f"{vacuous}, in the median: {'; '.join(missing)}.")
        return told


def read_rows(rows: Mapping[str, str], data: Cells) -> list[Row]:
    """Return the bounds of which cells have numbers; sentences are given by their labels."""
    found = []
    for label, text in rows.items():
        sentence = read(re.sub(" if | where |$", r" on all seeds\g<0>", text, count=1))
        bound = sentence.clauses[0].quantity
        assert isinstance(bound, Bound)
        unknown = {ref.name for ref in bound.refs} - {*data.frame}
        if unknown and not unknown - {*data.schema.named("measured")}:  # an older run
            continue
        try:
            cells = data.where(*sentence.where)
        except NoCellsError:
            continue
        over = bound.bound.decades(cells).fillna(-np.inf)  # of 0 or less there are none
        over = over[bound.bound.states(cells)["known"]]
        missed = {str(one): one.decades(cells).loc[over.index] for one in bound.conditions}
        if len(over):
            found.append(Row(label, over, missed))
    return found


def has_bounds(rows: Mapping[str, str], data: Cells) -> bool:
    """Return whether cells have the numbers of a bound."""
    return bool(read_rows(rows, data))


def draw_bounds(
    rows: Mapping[str, str], told: Sequence[str], data: Cells, options: FigureOptions
) -> Picture:
    """Draw a point for each cell over each bound, left of the line at 1 where it is within it.

    Of the parameters `told` the first that varies gives points colours and lines of their own, the
    second markers; without any all have one colour.
    """
    drawn, cells = read_rows(rows, data), data.trained
    if not drawn:
        raise UserError("No cell here has a number over one of these bounds.")
    names = [name for name in told or data.varying() if name in data.varying()][:2]
    settings = [values for values, _ in data.settings(names)] if names else [{}]
    first, second = (*names, "", "")[:2]
    lines, shapes = (
        list(dict.fromkeys(values.get(name, "") for values in settings)) for name in (first, second)
    )
    colours = style.value_colours(data.study, names[0], lines) if names else style.PALETTE
    height = 0.13 + 0.14 * max(2 * len(lines) / 3, *(row.label.count("\n") + 1 for row in drawn))
    figure = Picture(1.5 * style.COLUMN, height * len(drawn) + 1.4, least=4.2)
    axes, random, step = figure.add_subplot(), np.random.default_rng(0), 0.7 / len(lines)
    legend: style.Legend = []
    marks = itertools.cycle(style.MARKERS)
    inks, marked = dict(zip(lines, colours, strict=False)), dict(zip(shapes, marks, strict=False))
    for values in settings:
        line, shape = values.get(first, ""), values.get(second, "")
        index = cells.index[(cells[list(values)] == pd.Series(values, dtype=object)).all(axis=1)]
        how: dict[str, Any] = {"color": inks[line], "marker": marked[shape], "linestyle": ""}
        middle = step * (lines.index(line) - (len(lines) - 1) / 2)
        for place, row in enumerate(drawn):
            over = row.over[row.over.index.isin(index) & (row.over > -np.inf)]
            heights = place + middle + step * random.uniform(-0.3, 0.3, len(over))
            _draw_points(axes, over, heights, row.met, how)
    _dress(axes, drawn)
    looks: Any = [(inks[line], "o") for line in lines], [("0.3", marked[shape]) for shape in shapes]
    for name, told_apart, each in zip(names, (lines, shapes), looks, strict=False):
        for value, (ink, mark) in zip(told_apart, each, strict=True):
            handle = Line2D([], [], color=ink, marker=mark, linestyle="")
            legend.append((handle, labels.short_setting(data.schema, name, value)))
    if any(not row.met.all() for row in drawn):
        hollow: dict[str, Any] = {"color": "0.3", "marker": "o", "mfc": "none", "linestyle": ""}
        legend.append((Line2D([], [], **hollow), "hypotheses not met"))
    legend.append((Line2D([], [], **style.BOUND), "the bound"))
    legend_below(figure, legend, columns=5, heading=labels.heading(data.schema, names))
    points = plural(len(cells), "cell")
    figure.facts.append(f"Measured over each bound: a point for each of {points}.")
    figure.facts += [fact for row in drawn for fact in row.facts()]
    return figure


def _draw_points(
    axes: Axes, over: pd.Series[float], heights: Any, met: pd.Series[bool], how: Mapping[str, Any]
) -> None:
    alpha, is_met = 0.6 if len(over) <= _MANY else 0.4, met[over.index].to_numpy(bool)
    x = 10 ** over.clip(-_FARTHEST, _FARTHEST).to_numpy(float)
    for hollow in (False, True):
        shown = is_met != hollow
        look = {**how, "mfc": "none" if hollow else how["color"], "alpha": alpha}
        axes.plot(x[shown], heights[shown], **look, markersize=2.5, markeredgewidth=0.5 * hollow)


def _dress(axes: Axes, drawn: Sequence[Row]) -> None:
    axes.axvline(1, **style.BOUND)
    axes.set_xscale("log")
    log_ticks(axes.xaxis, *axes.get_xlim())
    axes.set_xlabel("measured over its bound; above 1 breaks it")
    axes.set_yticks(range(len(drawn)), [row.label for row in drawn])
    axes.set_ylim(len(drawn) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    for place, text in enumerate(["largest", *(row.note() for row in drawn)], start=-1):
        at, slant = (place, "normal") if place >= 0 else (-0.7, "italic")
        where: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center", "size": 7}
        axes.text(1.01, at, text, style=slant, **where)
