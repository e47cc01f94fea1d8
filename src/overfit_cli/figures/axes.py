"""A parameter along an axis: its values in order, their scale and their ticks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import matplotlib.axes
import matplotlib.axis
import numpy as np
from matplotlib.ticker import AutoLocator, MaxNLocator, NullLocator, ScalarFormatter

from overfit_cli.core.arrays import Floats
from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import Value
from overfit_cli.core.text import round_digits, suggestion
from overfit_cli.figures.labels import (
    axis_label,
    brief,
    literal,
    tick_number,
    typeset,
    wrap_text,
)
from overfit_cli.figures.style import HIGH, WIDE, letters_across, log_ticks
from overfit_cli.stats.pairs import is_log_spaced

FEW_VALUES = 8  # the largest number of values that each have a tick


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

    def within(self, share: float) -> Floats:
        """The positions at this share of the values' cells, shape (values,)."""
        ends = self.scaled(self.edges)
        return self.unscaled(ends[:-1] + share * np.diff(ends))

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
        is_across = isinstance(axis, matplotlib.axis.XAxis)
        if self.scale == "category" or self._has_room_for_ticks():
            texts = [self._short(value) for value in self.values]
            letters = sum(len(typeset(text)) + 2 for text in texts)
            is_long = is_across and letters > letters_across(axis.axes, "xtick.labelsize")
            axis.set_ticks(list(self.positions), texts, rotation=90.0 * is_long)
            axis.set_minor_locator(NullLocator())
        elif (
            self.whole and self.scale == "log" and len(self.values) > FEW_VALUES and self._is_even()
        ):
            every = -(-len(self.values) // FEW_VALUES)
            replace(self, values=self.values[::every]).place_ticks(axis, low, high)
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

    def _is_even(self) -> bool:
        return bool(np.ptp(np.diff(self.scaled(self.positions))) < 1e-9)

    def _has_room_for_ticks(self) -> bool:
        scaled = self.scaled(self.positions)
        gaps = np.diff(scaled) / max(float(np.ptp(scaled)), 1e-12)
        return scaled.size <= FEW_VALUES and bool((gaps > 0.11).all())


def parameter_axis(data: Cells, side: str, name: str | None, *, log: bool | None = None) -> Axis:
    """Lay the parameter `name` along the axis `side`.

    Args:
        side: `x` or `y`, the option that names the parameter.
        log: whether the axis is logarithmic; None for the scale with the more even spacing.
    """
    values, varying = data.values, data.varying()
    hint = f"here varies: {', '.join(varying) or 'nothing'}."
    if name is None:
        raise BadValue(side, None, f"name the parameter on this axis; {hint}")
    if name not in values:
        hint = suggestion(name, values)
        raise BadValue(side, name, f"{data.study.name} has no parameter {name!r}; {hint}")
    if name not in varying:
        raise BadValue(side, name, f"{name} is constant in these cells; {hint}")
    field, label = data.schema[name], axis_label(data.schema, name)
    scale: Literal["linear", "log", "category"] = "category"
    if field.is_number:
        numbers = np.array(values[name], dtype=np.float64)
        scale = "log" if (is_log_spaced(numbers) if log is None else log) else "linear"
    if log and (scale == "category" or numbers[0] <= 0):
        raise BadValue("log", side, f"the values of {name} aren't all positive numbers.")
    return Axis(
        name, label, values[name], scale, whole=field.kind == "int", value_labels=field.value_labels
    )
