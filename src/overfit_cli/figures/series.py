"""Lines with their bands, marks and theories: what the figures `lines` and `curves` share.

A curve is a line along the step. A line is of one setting of the other parameters, and what it
shows of its seeds is what `seed_statistics` says.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.typing import ColorType

from overfit_cli.core.arrays import Floats
from overfit_cli.core.figure import FigureOptions
from overfit_cli.figures import inputs, labels, picture, style
from overfit_cli.figures.axes import Axis, log_steps, log_ticks, whole_steps
from overfit_cli.figures.seed_statistics import Line, Lines

WIDE_SPAN = 1e6
"""The span from which y is logarithmic although some are 0, and steps are if they go beyond."""

ROUND_OFF = 1e-12
"""A squared loss below this share of its start is round-off."""

LEAST_SHARE = 1e-16
"""The share of a start, or of the largest number, below which a logarithmic axis ends.

What lies below changes no double-precision number of that size; 30 decades of it would squeeze
what is measured.
"""

_SHADE = "0.9"
_OFFSET = 0.08
"""The offset between points of several lines at one category."""

_CROSS, _ROW = 0.97, 0.05
"""The height of the first line's crosses, and how far the next line's lie below."""

THEORY: Mapping[str, Mapping[str, Any]] = {
    "Dashed": style.BOUND,
    "Dotted": {**style.BOUND, "linestyle": (0, (1, 1.2))},
    "Dash-dotted": {**style.BOUND, "linestyle": "-."},
}
"""The looks of a theory's columns, in order, by what a caption calls them."""

_BEHIND: Mapping[str, Any] = {"linewidth": 3.0, "alpha": 0.45, "zorder": 1.5}
"""Of a theory that differs between lines: wide and pale, so that it is seen below its line."""

_ABOVE: Mapping[str, Any] = {"color": "black", "marker": "X", "markersize": 5, "linestyle": ""}
"""The mark of the step at which a curve comes above a theory's column."""

_NEARBY = 1e-9
"""A loss is above a bound where it is by more than this share: less is round-off."""


@dataclass(frozen=True)
class Series:
    """What a figure of lines shows.

    Attributes:
        columns, theory: the labels of what is drawn, by name; the first column is the main one.
        x: the parameter along x; None where it is the step.
        log: whether y is logarithmic, and `log_steps` whether steps are.
        floor: the least number that is shown; 0 where all are.
        floor_of: the share of what the floor is, and what that is.
        solid: whether dashes are left to columns, here or in other rows.
    """

    parts: Sequence[inputs.Panel]
    lines: Lines
    columns: Mapping[str, str]
    theory: Mapping[str, str]
    x: Axis | None = None
    log: bool = False
    log_steps: bool = False
    floor: float = 0.0
    floor_of: tuple[float, str] = (LEAST_SHARE, "largest")
    solid: bool = False

    @functools.cached_property
    def looks(self) -> dict[str, style.LineLook]:
        """The look of each setting's line, by its text, in order."""
        settings = {line.text: line.settings for line in self.lines.every}
        looks = style.line_looks(self.parts[0].data.study, list(settings.values()))
        return dict(zip(settings, looks, strict=True))

    @property
    def value(self) -> str:
        """The main column."""
        return next(iter(self.columns))

    @property
    def is_category(self) -> bool:
        """Whether x is no number."""
        return self.x is not None and self.x.scale == "category"

    def numbers(self, *ends: str) -> Floats:
        """The finite numbers of the drawn columns' tables."""
        tables = [line[name][list(ends)] for line in self.lines.every for name in self.columns]
        numbers: Floats = np.concatenate([table.to_numpy(np.float64).ravel() for table in tables])
        return numbers[np.isfinite(numbers)]

    def steps(self) -> Floats:
        """The places along x, each once."""
        steps = [line[self.value].index.to_numpy(np.float64) for line in self.lines.every]
        return np.unique(np.concatenate(steps))

    def scaled(self, log: bool | None, start: float, share: float, of: str) -> Series:
        """Return it with the scale of y: the user's, or logarithmic where the numbers span decades.

        Zeros, such as an underflowed loss, don't prevent it where the others span `WIDE_SPAN`, and
        lines that are 0 throughout never do.
        """
        some = [line for line in self.lines.every if not self._is_zero(line)] or self.lines.every
        seen = replace(self, lines=replace(self.lines, panels=[some]))
        middles, low, floor = seen.numbers("middle"), seen.numbers("low"), share * start
        least, positive = middles.min(), middles[middles > 0]
        if log is None and positive.size and middles.min() == 0:
            middles = positive if positive.max() / positive.min() > WIDE_SPAN else middles
        is_log = inputs.choose_scale(log, pd.Series(middles), factor=10)
        is_cut = is_log and min(least, low[low > 0].min(initial=np.inf)) < floor
        return replace(self, log=is_log, floor=floor if is_cut else 0.0, floor_of=(share, of))

    def _is_zero(self, line: Line) -> bool:
        return bool(line[self.value]["middle"].eq(0).all())

    @functools.cached_property
    def span(self) -> tuple[float, float]:
        """The least and the largest end of a band that is drawn."""
        shown = itertools.product(self.lines.every, self.columns)
        seeds = [line.seeds[name].to_numpy().ravel() for line, name in shown]
        every = np.concatenate([self.numbers("middle", "low", "high"), *seeds])
        every = every[np.isfinite(every)]
        if not self.log:
            return -np.inf, every.max() + 0.1 * float(np.ptp(every))
        return self.floor or every[every > 0].min(initial=3.0) / 3, 1.5 * every.max()

    def look(self, line: Line, column: str, colour: ColorType) -> style.LineLook:
        """The look of a line: columns differ by dashes, or by colours where settings do not."""
        look, number = self.looks[line.text], list(self.columns).index(column)
        if self.x is not None:
            return look
        if len(self.looks) > 1:
            dash = style.DASHES[number] if len(self.columns) > 1 or self.solid else look.dash
            return style.LineLook(look.colour, "", dash)
        return style.LineLook(style.PALETTE[number] if number else colour, "", "-")

    def draw(self, options: FigureOptions) -> tuple[picture.Picture, list[Axes], style.Legend]:
        """Draw all panels; the caller adds what else there is, and the legend."""
        figure, all_axes = picture.new_panels(len(self.parts), height=2.8)
        legend = self.draw_on(all_axes, options)
        legend = self.columns_legend() + legend
        picture.label_outer(all_axes)
        picture.title_panels(all_axes, [part.title for part in self.parts])
        along = self.parts[0].data.study.step if self.x is None else self.x.label
        shown = labels.opening(", ".join(self.columns.values()))
        figure.facts.append(f"{shown} against {along}: {self.lines.kind(self.value)}.")
        told = zip(THEORY, self.theory.values(), strict=False)
        figure.facts += [f"{look}: {label}." for look, label in told]
        return figure, all_axes, legend

    def draw_on(self, all_axes: Sequence[Axes], options: FigureOptions) -> style.Legend:
        """Draw panels on axes that share y; return the legend but for that of the columns."""
        threshold = options.threshold
        for axes, lines, part in zip(all_axes, self.lines.panels, self.parts, strict=True):
            self.dress(axes, threshold)
            for line in lines:
                self.draw_line(axes, line, part.colour)
            self._cross_misses(axes, lines)
            self._draw_theory(axes, lines)
            if threshold is not None:
                axes.axhline(threshold, **style.THRESHOLD)
        for axes in all_axes:
            if any(np.isinf(line[self.value]["high"]).any() for line in self.lines.every):
                axes.set_ylim(top=self.span[1])  # a band without an upper end leaves the frame
            if self.log:
                log_ticks(axes.yaxis, *axes.get_ylim())
        legend = self.legend()
        if threshold is not None:
            handle = Line2D([], [], **style.THRESHOLD)
            legend.append((handle, f"threshold {labels.tick_number(threshold)}"))
        if self.floor:
            legend.append(self._shade(all_axes))
        for name, label in self.theory.items() if self.x is None else ():
            if any(self.first_above(line, name) for line in self.lines.every):
                legend.append((Line2D([], [], **_ABOVE), f"first step above {label}"))
        note = self.lines.label(self.value)
        all_axes[0].set_ylabel(labels.label_with_note(self.label(), note, style.HIGH))
        return legend

    def label(self) -> str:
        """The label of y: the first word that the labels of all columns share, or the only one."""
        first, *others = (label.split() for label in self.columns.values())
        shared = [word for word in first if all(word in label for label in others)]
        return shared[0] if others and shared else self.columns[self.value]

    def dress(self, axes: Axes, threshold: float | None = None) -> None:
        """Set the scales, and the ticks along x."""
        axes.set_yscale("log" if self.log else "linear")
        if self.x is None:
            axes.set_xlabel(self.parts[0].data.study.step)
            axes.margins(x=0.02)
            last = self.steps().max(initial=1.0)
            if self.log_steps:
                log_steps(axes, last)
            else:
                whole_steps(axes, last)
            if self.log:  # ends at what is measured: a bound squeezes nothing
                low = [line[self.value]["low"] for line in self.lines.every]
                seen = np.concatenate([self.numbers("middle"), *low, [threshold or 0.0]])
                seen = seen[seen > 0]
                axes.set_ylim(max(seen.min(), self.floor) / 1.5, 1.3 * seen.max())
                log_ticks(axes.yaxis, *axes.get_ylim())
            return
        axes.set_xlabel(labels.wrap_text(self.x.label, style.WIDE))
        if self.is_category:
            self.x.dress(axes, "x")
        else:
            axes.set_xscale(self.x.scale)
            self.x.place_ticks(axes.xaxis, *self.x.positions[[0, -1]].tolist())
        axes.margins(x=0.04)

    def draw_line(
        self, axes: Axes, line: Line, colour: ColorType = style.PALETTE[0], *, banded: bool = True
    ) -> None:
        """Draw a setting's columns: the statistic with its band, or with each seed, and misses.

        Args:
            colour: that of a line without another one of the same column.
        """
        has_seeds = self.lines.over_seeds.band == "seeds"
        for name in self.columns:
            table, look = line[name], self.look(line, name, colour)
            x = table.index.to_numpy(np.float64) + self._aside(line)
            if self.is_category:
                how: dict[str, Any] = {"color": look.colour, "marker": look.marker}
                bars = [table["middle"] - table["low"], table["high"] - table["middle"]]
                yerr = None if has_seeds else bars
                axes.errorbar(x, table["middle"], yerr, linestyle="", capsize=2, **how)
            else:
                how = {"color": look.colour, "marker": look.marker, "linestyle": look.dash}
                if line.ends_early:
                    how |= {"marker": "o", "markersize": 2.5, "markevery": [-1]}
                axes.plot(x, table["middle"].clip(lower=self.floor or None), **how)
            if has_seeds:
                self._draw_seeds(axes, line, name, look)
            banded = banded and not (self.log and self._is_zero(line))
            if banded and not (self.is_category or has_seeds) and self.lines.has_bands:
                low, high = table["low"].clip(*self.span), table["high"].clip(*self.span)
                axes.fill_between(x, low, high, **style.band_look(look.colour))

    def _aside(self, line: Line) -> float:
        """How far a line's points stand from a category, so that none hides another."""
        place = list(self.looks).index(line.text) - (len(self.looks) - 1) / 2
        return _OFFSET * place if self.is_category else 0.0

    def _draw_seeds(self, axes: Axes, line: Line, name: str, look: style.LineLook) -> None:
        how: dict[str, Any] = {"color": look.colour, "alpha": 0.6, "linewidth": 0.5}
        if self.is_category:
            how |= {"linestyle": "", "marker": "_", "markersize": 4}
        for _, seed in line.seeds[name].items():  # joined across values of x without a cell
            shown = seed[np.isfinite(seed)].clip(lower=self.floor or None)
            axes.plot(shown.index.to_numpy() + self._aside(line), shown, **how)

    def _cross_misses(self, axes: Axes, lines: Sequence[Line]) -> None:
        """Cross values of x at which half of the seeds or more miss, a row for each line."""
        missing = [line for line in lines if line.reason]
        for row, line in enumerate(missing):
            table = line[self.value]
            x = table.index[table["missed"]].to_numpy(np.float64) + self._aside(line)
            top, colour = axes.get_xaxis_transform(), self.looks[line.text].colour
            axes.plot(x, np.full(x.size, _CROSS - _ROW * row), "x", color=colour, transform=top)
        axes.margins(y=0.05 + _ROW * len(missing))  # no line passes behind a cross

    def _draw_theory(self, axes: Axes, lines: Sequence[Line]) -> None:
        """Draw a theory: black, or in each line's colour where several lines have others."""
        for name, look in zip(self.theory, THEORY.values(), strict=False):
            known, differs = _known(lines, name), _differs(lines, name)
            for line in lines if differs or len(known) < len(lines) else lines[:1]:
                own = {**_BEHIND, "color": self.looks[line.text].colour} if differs else {}
                own |= {"linestyle": "", "marker": "_"} if self.is_category else {}
                middle = line[name]["middle"]  # along a parameter a gap stays one
                middle = middle.dropna() if self.x is None else middle
                axes.plot(middle.index + self._aside(line), middle, **{**look, **own})
        for line, name in itertools.product(lines, self.theory if self.x is None else ()):
            for above in self.first_above(line, name):
                axes.plot(*above, **_ABOVE)

    def first_above(self, line: Line, name: str) -> list[tuple[float, float]]:
        """Where a curve first comes above a theory's column, unless it begins there."""
        columns = {"at": line[self.value]["middle"], "bound": line[name]["middle"]}
        pair = pd.DataFrame(columns).dropna()
        above = pair[(pair["at"] > pair["bound"] * (1 + _NEARBY)) & (pair["at"] > self.floor)]
        if above.empty or above.index[0] == pair.index[0]:
            return []
        return [(float(above.index[0]), float(above["at"].iloc[0]))]

    def seeds_above(self) -> list[str]:
        """Sentences on how many cells come above each column of a theory at a logged step."""
        sentences, logged = [], pd.concat([part.data.steps for part in self.parts])
        for name, label in self.theory.items():
            steps = logged.sort_values("step")[["key", self.value, name]].dropna()
            bound = (steps[name] * (1 + _NEARBY)).clip(lower=self.floor)
            by_key = (steps[self.value] > bound).groupby(steps["key"])
            later = by_key.any() & ~by_key.first()
            if count := int(later.sum()):
                share = f"{count} of {len(later)}"
                sentences.append(f"Cells above the {label} at a later step: {share}.")
        return sentences

    def _shade(self, all_axes: Sequence[Axes]) -> tuple[Patch, str]:
        """Shade what a logarithmic axis doesn't resolve."""
        for axes in all_axes:
            axes.set_ylim(bottom=self.floor / 30)
            axes.axhspan(self.floor / 30, self.floor, color=_SHADE, linewidth=0, zorder=0)
        share, of = self.floor_of
        words = f"below {labels.power(share)} of the {of}"
        return Patch(color=_SHADE), f"round-off, {words}" if share == ROUND_OFF else words

    def columns_legend(self) -> style.Legend:
        """The legend of several columns."""
        legend: style.Legend = []
        for number, label in enumerate(self.columns.values() if len(self.columns) > 1 else ()):
            is_one = len(self.looks) == 1
            own = (style.PALETTE[number], "-") if is_one else ("0.3", style.DASHES[number])
            legend.append((_handle(*own), label))
        return legend

    def legend(self) -> style.Legend:
        """The legend of settings, of what misses, and of a theory."""
        every, texts = self.lines.every, list(self.looks)
        several, legend = self.solid or len(self.columns) > 1, style.Legend()
        count = len(texts) if len(texts) <= len(style.PALETTE) else 5  # of shades a few are named
        named = np.unique(np.linspace(0, len(texts) - 1, count).round().astype(int))
        for text in (texts[index] for index in named if texts[index]):
            look, same = self.looks[text], [line for line in every if line.text == text]
            if any(line[self.value]["middle"].notna().any() for line in same):
                marker = look.marker if self.x is not None else ""
                known = f"{text} (0)" if self.log and all(map(self._is_zero, same)) else text
                legend.append((_handle(look.colour, "-" if several else look.dash, marker), known))
            else:
                reason = same[0].reason or "no number"
                legend.append((_handle(look.colour, "", "x"), f"{text} ({reason})"))
        if any(line.ends_early for line in every):
            legend.append((_handle("0.3", "", "o", markersize=2.5), "first seed ends"))
        named_reasons = (line.reason.split(" or ") for line in every if line.reason)
        if reasons := dict.fromkeys(itertools.chain(*named_reasons)):
            legend.append((_handle("0.3", "", "x"), f"half or more: {' or '.join(reasons)}"))
        for (name, label), dashed in zip(self.theory.items(), THEORY.values(), strict=False):
            differs = any(_differs(lines, name) for lines in self.lines.panels)
            how = {**dashed, **_BEHIND, "color": "0.3"} if differs else dashed
            legend.append((Line2D([], [], **how), label))
        return legend


def _known(lines: Sequence[Line], name: str) -> list[pd.Series[float]]:
    middles = [line[name]["middle"].dropna() for line in lines]
    return [middle for middle in middles if middle.any()]


def _differs(lines: Sequence[Line], name: str) -> bool:
    """Whether lines have numbers of a theory that are not the same."""
    known = _known(lines, name)
    return not all(middle.equals(known[0]) for middle in known)


def _handle(colour: Any, dash: Any, marker: str = "", **look: Any) -> Line2D:
    return Line2D([], [], color=colour, linestyle=dash, marker=marker, **look)
