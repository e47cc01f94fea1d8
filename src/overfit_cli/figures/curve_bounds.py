"""Columns of a theory beside curves: bounds that a loss stays below, and floors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from overfit_cli.core.study import FigureData
from overfit_cli.figures.curve_data import Curve
from overfit_cli.figures.labels import brief
from overfit_cli.figures.palette import LineLook
from overfit_cli.figures.panels import Panel
from overfit_cli.figures.style import BOUND, Legend

BOUNDS = [{**BOUND, "linestyle": dash} for dash in (BOUND["linestyle"], (0, (1, 1.2)), "-.")]
"""The looks of a theory's columns, in order: dashed, dotted, dash-dotted."""

CROSSING: dict[str, Any] = {"color": "black", "marker": "X", "markersize": 5, "linestyle": ""}
"""The look of the step at which a curve comes above a theory's column."""

_DASHES = ("Dashed", "Dotted", "Dash-dotted")
_NEARBY = 1e-9
"""A loss is above a bound where it is by more than this share: less is round-off."""

_ALIKE = 0.01
"""Lines within this share of the curves' span of each other cannot be told apart."""


@dataclass(frozen=True)
class CurveBounds:
    """The columns of a theory beside the curves of several panels.

    Attributes:
        labels: what each column of the theory is called, by its name.
        floor: the least number that is shown; 0 without one.
        statistic: what curves and bounds are over seeds, such as `median`; empty of single cells.
    """

    panels: Sequence[Sequence[Curve]]
    data: Sequence[FigureData]
    column: str
    labels: Mapping[str, str]
    floor: float
    log: bool
    statistic: str

    def draw(self, all_axes: Sequence[Axes], looks: Mapping[str, LineLook]) -> Legend:
        """Draw the columns and where curves come above them; return their legend."""
        for axes, curves in zip(all_axes, self.panels, strict=True):
            _draw_theory(axes, curves, list(self.labels), looks)
            for name in self.labels:
                for crossing in self._crossings(curves, name):
                    axes.plot(*crossing, **CROSSING)
        entries = zip(BOUNDS, self.labels, strict=False)
        legend: Legend = [(Line2D([], [], **look), self._called(name)) for look, name in entries]
        for name, label in self.labels.items():
            if any(self._crossings(curves, name) for curves in self.panels):
                legend.append((Line2D([], [], **CROSSING), f"first step above {label}"))
        return legend

    def facts(self) -> list[str]:
        """Return the caption's sentences: what is drawn how, over which seeds, and where not."""
        if not self.labels:
            return []
        names = list(self.labels)
        told = [
            f"{dash}: {self._called(name)}{self._absent(name)}"
            for dash, name in zip(_DASHES, names, strict=False)
        ]
        facts = [f"{'. '.join(told)}."]
        if len(names) > 1 and (equal := self._where(self._coincide)):
            facts.append(f"Both lines lie together{equal}.")
        counts = {name: self._seeds_above(name) for name in names}
        over = {name: count for name, count in counts.items() if any(above for above, _ in count)}
        if self.statistic:
            pairs = [(curves, name) for curves in self.panels for name in names]
            crossed = any(self._crossings(*pair) for pair in pairs)
            crosses = f", and crosses where {self.statistic}s cross" if crossed else ""
            facts.append(f"These lines are {self.statistic}s too{crosses}.")
            facts += [self._count_in_words(self.labels[name], counts[name]) for name in over]
        return facts

    def _crossings(self, curves: Sequence[Curve], name: str) -> list[tuple[float, float]]:
        places = [_crossing(curve, self.column, name, self.floor) for curve in curves]
        return [place for place in places if place is not None]

    def _called(self, name: str) -> str:
        curves = [curve for panel in self.panels for curve in panel]
        texts = {curve.text for curve in curves}
        having = {curve.text for curve in curves if (curve.mean[name] > 0).any()}
        return f"{self.labels[name]}{f' of {min(having)}' if len(having) == 1 < len(texts) else ''}"

    def _absent(self, name: str) -> str:
        numbers = [
            pd.concat([curve.mean[name] for curve in panel]).dropna() for panel in self.panels
        ]
        zero = self._where(lambda i: self.log and len(numbers[i]) > 0 and not numbers[i].any())
        none = self._where(lambda i: numbers[i].empty)
        told = [f"{words}{panels}" for words, panels in (("0", zero), ("none", none)) if panels]
        return f" ({', '.join(told)})" if told else ""

    def _coincide(self, index: int) -> bool:
        names = list(self.labels)[:2]
        pairs = pd.concat([curve.mean[names] for curve in self.panels[index]]).dropna()
        numbers = pd.concat([curve.mean[self.column] for panel in self.panels for curve in panel])
        pairs = pairs[(pairs > self.floor).any(axis=1)]
        if self.log:
            numbers = numbers[numbers > self.floor].map(np.log)
            pairs = pairs[pairs > 0].apply(np.log)
        gaps = (pairs[names[0]] - pairs[names[1]]).abs()
        return len(gaps) > 0 and bool(gaps.max() < _ALIKE * np.ptp(numbers.dropna()))

    def _where(self, holds: Callable[[int], bool]) -> str:
        letters = [ascii_lowercase[i] for i in range(len(self.panels)) if holds(i)]
        if len(self.panels) == 1:
            return " here" if letters else ""
        return f" in {', '.join(f'({letter})' for letter in letters)}" if letters else ""

    def _seeds_above(self, name: str) -> list[tuple[int, int]]:
        counts = []
        for data in self.data:
            logged = data.trajectories[data.trajectories["key"].isin(data.cells["key"])]
            steps = logged[["key", "step", self.column, name]].dropna().sort_values("step")
            above = steps[self.column] > steps[name] * (1 + _NEARBY)
            above &= steps[self.column] > self.floor
            by_key = above.groupby(steps["key"])
            counts.append((int((by_key.any() & ~by_key.first()).sum()), len(by_key)))
        return counts

    def _count_in_words(self, label: str, counts: Sequence[tuple[int, int]]) -> str:
        sizes = {size for _, size in counts}
        if len(counts) == 1:
            text = f"{counts[0][0]} of {counts[0][1]}"
        else:
            text = ", ".join(
                f"{above}{f' of {size}' if len(sizes) > 1 else ''} in ({letter})"
                for letter, (above, size) in zip(ascii_lowercase, counts, strict=False)
                if above
            )
            text += f", of {sizes.pop()} each" if len(sizes) == 1 else ""
        return f"Seeds above the {label} at some logged step: {text}."


def drawn_columns(names: Sequence[str], curves: Sequence[Curve], *, log: bool) -> list[str]:
    """Return the columns that have a number to draw: one above 0 on a logarithmic axis."""
    return [
        name
        for name in names
        if any(
            (curve.mean[name] > 0 if log else curve.mean[name].notna()).any() for curve in curves
        )
    ]


def seeds_above_floor(
    panels: Sequence[Sequence[Curve]], parts: Sequence[Panel], column: str, floor: float
) -> list[str]:
    """Return a sentence on seeds that stay above the floor where most of their curve's do not."""
    counts, largest = [], 0.0
    for letter, curves, part in zip(ascii_lowercase, panels, parts, strict=False):
        steps = part.data.trajectories.sort_values("step")
        for curve in curves:
            if curve.mean[column].dropna().iloc[-1:].gt(floor).any():
                continue
            cells = part.data.cells
            for name, value in curve.settings.items():
                cells = cells[cells[name] == value]
            by_key = steps[steps["key"].isin(cells["key"])].groupby("key")[column]
            ends, starts = by_key.last(), by_key.first()
            if late := int((ends > floor).sum()):
                panel = f" in ({letter})" if len(panels) > 1 else ""
                of_curve = f" of {curve.text}" if len(curves) > 1 else ""
                counts.append(f"{late} of {len(ends)}{of_curve}{panel}")
                largest = max(largest, float((ends / starts).max()))
    if not counts:
        return []
    most = brief(float(f"{largest:.2g}"))
    return [
        f"Seeds that end above the grey: {', '.join(counts)}; at most at {most} of their start."
    ]


def _draw_theory(
    axes: Axes,
    curves: Sequence[Curve],
    theory: Sequence[str],
    looks: Mapping[str, LineLook],
) -> None:
    theories = (curve.mean[list(theory)].fillna(0) for curve in curves)
    several = sum(bool(frame.ne(0).any(axis=None)) for frame in theories) > 1
    for curve in curves:
        for column, bound in zip(theory, BOUNDS, strict=False):
            mean = curve.mean[column].dropna()
            colour = looks[curve.text].colour if several else bound["color"]
            axes.plot(mean.index, mean, **{**bound, "color": colour})


def _crossing(curve: Curve, column: str, name: str, floor: float) -> tuple[float, float] | None:
    pair = curve.mean[[column, name]].dropna()
    above = pair[(pair[column] > pair[name] * (1 + _NEARBY)) & (pair[column] > floor)]
    if above.empty or above.index[0] == pair.index[0]:
        return None
    return float(above.index[0]), float(above[column].iloc[0])
