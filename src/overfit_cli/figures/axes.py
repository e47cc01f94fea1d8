"""A parameter along an axis: its values in order, their scale and their ticks."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, cast

import matplotlib.axes
import matplotlib.axis
import numpy as np
from matplotlib.ticker import AutoLocator, MaxNLocator, NullLocator, ScalarFormatter

from overfit_cli.core.arrays import Floats
from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import Value, describe
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import round_digits, suggestion
from overfit_cli.figures.labels import (
    RUN,
    axis_label,
    brief,
    literal,
    parameter_values,
    tick_number,
    varying_parameters,
    wrap_text,
)
from overfit_cli.figures.style import HIGH, WIDE, log_ticks
from overfit_cli.stats.pairs import is_log_spaced

FEW_VALUES = 8  # the largest number of values that each have a tick
_MARKUP = re.compile(r"\\[a-z]+|[${}^]")  # what mathtext doesn't draw, more or less
_ROW, _CHARACTER = 0.08, 0.026  # of an axis: the height of a label, the width of a character


@dataclass(frozen=True)
class Axis:
    """A parameter along an axis.

    Attributes:
        scale: `linear`, `log`, or `category` for values that are not numbers.
        value_labels: what ticks call categories that have a label.
    """

    name: str
    label: str
    values: tuple[Value, ...]
    scale: Literal["linear", "log", "category"]
    whole: bool
    value_labels: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def positions(self) -> Floats:
        """The positions of the values, ascending, shape (values,); categories at 0, 1, 2, ..."""
        if self.scale == "category":
            return np.arange(len(self.values), dtype=np.float64)
        return np.array(self.values, dtype=np.float64)

    @property
    def numbers(self) -> Floats:
        """The values, shape (values,); the positions of those that are no numbers."""
        if any(isinstance(value, str) for value in self.values):
            return self.positions
        return np.array(self.values, dtype=np.float64)

    @property
    def edges(self) -> Floats:
        """The borders of the values' cells, midway between neighbours, shape (values + 1,).

        The first and the last cell are whole: as wide on both sides of their values, as far as a
        positive parameter stays positive. A lone number has a cell as wide as itself.
        """
        scaled = self.scaled(self.positions)
        if scaled.size == 1:
            half = abs(scaled[0]) / 2 if self.scale == "linear" and scaled[0] else 0.5
            return self.unscaled(np.array([scaled[0] - half, scaled[0] + half]))
        middle = (scaled[1:] + scaled[:-1]) / 2
        ends = [2 * scaled[0] - middle[0], 2 * scaled[-1] - middle[-1]]
        if self.scale == "linear" and scaled[0] > 0:
            ends[0] = max(ends[0], scaled[0] / 2)
        return self.unscaled(np.concatenate([ends[:1], middle, ends[1:]]))

    def spread(self) -> Axis:
        """Return the axis with cells of one width, if its values are few and their cells differ."""
        widths = np.diff(self.scaled(self.edges))
        if len(self.values) > FEW_VALUES or widths.max() < 1.1 * widths.min():
            return self
        return replace(self, scale="category")

    def only(self, values: Collection[Value]) -> Axis:
        """Return the axis with those of its values that are among these."""
        return replace(self, values=tuple(value for value in self.values if value in values))

    def scaled(self, positions: Floats) -> Floats:
        """Return positions on the scale of the axis."""
        return np.log(positions) if self.scale == "log" else positions

    def unscaled(self, scaled: Floats) -> Floats:
        """Return the positions whose values on the scale of the axis are these."""
        return np.exp(scaled) if self.scale == "log" else scaled

    def dress(self, axes: matplotlib.axes.Axes, side: Literal["x", "y"]) -> None:
        """Set scale, limits, ticks and label of one side of `axes`."""
        scale = "log" if self.scale == "log" else "linear"
        low, *_, high = self.edges
        label = wrap_text(self.label, WIDE if side == "x" else HIGH)
        axes.set(**{f"{side}scale": scale, f"{side}lim": (low, high), f"{side}label": label})
        self.place_ticks(axes.xaxis if side == "x" else axes.yaxis, low, high)

    def place_ticks(self, axis: matplotlib.axis.Axis, low: float, high: float) -> None:
        """Put ticks at the values where they are few and stand apart, else at round numbers."""
        across = isinstance(axis, matplotlib.axis.XAxis)
        if self.scale == "category" or self._has_room_for_ticks(across):
            axis.set_ticks(list(self.positions), [self._short(value) for value in self.values])
            axis.set_minor_locator(NullLocator())
        elif shown := self._thinned_values():
            replace(self, values=shown).place_ticks(axis, low, high)
        elif self.whole and (self.scale == "linear" or high < 4 * low):
            axis.set_major_locator(MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
            axis.set_major_formatter(ScalarFormatter())
            axis.set_minor_locator(NullLocator())
        elif self.scale == "log":
            log_ticks(axis, low, high)
        else:
            axis.set_major_locator(AutoLocator())

    def _short(self, value: Value) -> str:
        if isinstance(value, float):
            return tick_number(round_digits(value, 3))
        if self.whole:
            return brief(value)
        return self.value_labels.get(str(value)) or literal(str(value))

    def _thinned_values(self) -> tuple[Value, ...]:
        """Every second value, or third, of whole numbers that double."""
        if not (self.whole and self.scale == "log" and len(self.values) > FEW_VALUES):
            return ()
        ratios = np.diff(np.log(self.positions))
        if np.ptp(ratios) > 1e-9:
            return ()
        return self.values[:: -(-len(self.values) // FEW_VALUES)]

    def _has_room_for_ticks(self, across: bool) -> bool:
        scaled = self.scaled(self.positions)
        if scaled.size > FEW_VALUES:
            return False
        labels = [_MARKUP.sub("", self._short(value)) for value in self.values]
        longest = max(map(len, labels)) if across else 0
        gap = max(_ROW, longest * _CHARACTER) * (scaled[-1] - scaled[0])
        return scaled.size == 1 or bool(np.diff(scaled).min() > gap)


def parameter_axis(
    data: FigureData, side: str, name: str | None, *, log: bool | None = None
) -> Axis:
    """Lay the parameter `name` along the axis `side`.

    Args:
        side: `x` or `y`, the option that names the parameter.
        log: whether the axis is logarithmic; None for the scale with the more even spacing.
    """
    values, varying = parameter_values(data), varying_parameters(data)
    hint = varying_in_words(varying)
    if name is None:
        raise BadValue(side, None, f"name the parameter on this axis; {hint}.")
    if name not in values:
        raise BadValue(
            side, name, f"{data.study.name} has no parameter {name!r}; {suggestion(name, values)}"
        )
    label = axis_label(data.study, name)
    if name not in varying:
        raise BadValue(side, name, f"{name} is constant in these cells; {hint}.")
    info = None if name == RUN else describe(data.study.parameters)[name]
    kind = "run" if info is None else info.kind
    scale = _scale(values[name]) if kind in ("int", "float") else "category"
    if log is not None and scale != "category":
        scale = "log" if log else "linear"
    if log and scale == "category":
        raise BadValue("log", side, f"the values of {name} aren't numbers.")
    if log and cast("float", values[name][0]) <= 0:
        raise BadValue("log", side, f"{name} isn't positive throughout.")
    value_labels = {} if info is None else info.value_labels
    return Axis(name, label, values[name], scale, whole=kind == "int", value_labels=value_labels)


def varying_in_words(varying: Sequence[str]) -> str:
    """Return which parameters vary: `only n varies`, `n and snr vary`."""
    if len(varying) < 2:
        return f"only {varying[0]} varies" if varying else "no parameter varies"
    return f"{', '.join(varying[:-1])} and {varying[-1]} vary"


def _scale(values: tuple[Value, ...]) -> Literal["linear", "log"]:
    return "log" if is_log_spaced(np.array(values, dtype=np.float64)) else "linear"
