"""A phase diagram in characters, for the terminal, while its cells arrive."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from rich.color import Color
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.style import Style
from rich.text import Text

from overfit_cli.core.parameters import Value
from overfit_cli.core.text import plural

Table = Mapping[tuple[Value, Value], float | None]
UNICODE, ASCII = (" ░▒▓█", "×", "·"), (" -+*#", "x", ".")  # shades by value, failed, to come
VIRIDIS = (
    (68, 1, 84),
    (65, 68, 135),
    (42, 120, 142),
    (34, 168, 132),
    (122, 209, 81),
    (253, 231, 37),
)
WIDEST = 48  # characters that few values of x are stretched to


def phase_diagram(
    x_values: Sequence[Value],
    y_values: Sequence[Value],
    table: Table,
    *,
    title: str,
    width: int = 80,
    height: int = 24,
    log: bool = False,
) -> RenderableType:
    """Return a diagram to print: x to the right, y upward, a character or more for each cell.

    The value is shown by colour where the terminal has at least 256, and by the shade of the
    character everywhere. Where there are more values than room, neighbours are averaged.

    Args:
        x_values: ascending, at least one.
        y_values: ascending, at least one.
        table: values by point, as (x, y); None for a point that failed, absent for one to come.
        title: one line above the diagram.
        width: the most characters in a line.
        height: the most rows of cells; title, x labels and key come on top.
        log: whether to shade and to average by ratio; heeded only if all values are positive.
    """
    return _Diagram(tuple(x_values), tuple(y_values), dict(table), title, width, height, log)


@dataclass(frozen=True)
class _Diagram:
    x_values: tuple[Value, ...]
    y_values: tuple[Value, ...]
    table: Table
    title: str
    width: int
    height: int
    log: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        coloured = console.color_system in ("256", "truecolor")
        brush = _Brush(*self._scale, *(ASCII if options.ascii_only else UNICODE), coloured)
        margin = max(len(_short(y)) for y in self.y_values) + 1
        room = max(1, min(self.width, options.max_width) - margin)
        columns, rows = _bins(self.x_values, room), _bins(self.y_values, self.height)
        stretch = max(1, min(WIDEST, room) // len(columns))
        yield _line(self.title)
        labelled = range(0, len(rows), math.ceil(len(rows) / 6))
        for index in reversed(range(len(rows))):
            label = _short(rows[index][0]) if index in labelled else ""
            line = _line(label.rjust(margin - 1) + " ")
            for column in columns:
                brush.paint(line, self._mean(column, rows[index]), stretch)
            yield line
        first, last = _short(self.x_values[0]), _short(self.x_values[-1])
        gap = max(1, stretch * len(columns) - len(first) - len(last))
        yield _line(" " * margin + first + " " * gap + last)
        yield self._key(brush)

    @functools.cached_property
    def _scale(self) -> tuple[float, float, bool]:
        numbers = [value for value in self.table.values() if _is_number(value)]
        low, high = (min(numbers), max(numbers)) if numbers else (0.0, 0.0)
        return low, high, self.log and low > 0

    def _mean(self, xs: Sequence[Value], ys: Sequence[Value]) -> float | None:
        """Return the mean over a bin; None if all that arrived failed, nan if nothing arrived."""
        values = [self.table[x, y] for x in xs for y in ys if (x, y) in self.table]
        numbers = [value for value in values if _is_number(value)]
        if not numbers:
            return None if values else math.nan
        if self._scale[2]:
            return math.exp(sum(map(math.log, numbers)) / len(numbers))
        return sum(numbers) / len(numbers)

    def _key(self, brush: _Brush) -> Text:
        low, high, _ = self._scale
        failed = sum(not _is_number(value) for value in self.table.values())
        coming = len(self.x_values) * len(self.y_values) - len(self.table)
        key = _line("")
        if failed < len(self.table):
            key.append(f"{low:.3g} ")
            for step in range(len(brush.shades)):
                brush.shade(key, (step + 0.5) / len(brush.shades), 2)
            key.append(f" {high:.3g}   ")
        if failed:
            brush.paint(key, None, 1)
            key.append(f" {plural(failed, 'point')} failed   ")
        if coming > 0:
            brush.paint(key, math.nan, 1)
            key.append(f" {plural(coming, 'point')} to come")
        return key


@dataclass(frozen=True)
class _Brush:
    """Turns values into characters."""

    low: float
    high: float
    log: bool
    shades: str
    failed: str
    pending: str
    coloured: bool

    def paint(self, line: Text, value: float | None, times: int) -> None:
        """Append a cell: a value, None for failed, or nan for one to come."""
        if value is None:
            line.append(self.failed * times, Style(color="red", bold=True))
        elif math.isnan(value):
            line.append(self.pending * times, Style(dim=True))
        elif self.high <= self.low:
            self.shade(line, 0.5, times)
        else:
            ends = (self.low, value, self.high)
            low, middle, high = map(math.log, ends) if self.log else ends
            self.shade(line, (middle - low) / (high - low), times)

    def shade(self, line: Text, fraction: float, times: int) -> None:
        """Append a cell whose value lies at `fraction`, 0 to 1, of the scale."""
        glyph = self.shades[min(int(fraction * len(self.shades)), len(self.shades) - 1)]
        line.append(glyph * times, _viridis(round(fraction * 64)) if self.coloured else Style())


@functools.cache
def _viridis(step: int) -> Style:
    """Return a character of one colour, its shade hidden, for step 0 to 64 of the scale."""
    position = step / 64 * (len(VIRIDIS) - 1)
    below = min(int(position), len(VIRIDIS) - 2)
    part = position - below
    rgb = (a + part * (b - a) for a, b in zip(VIRIDIS[below], VIRIDIS[below + 1], strict=True))
    colour = Color.from_rgb(*rgb)
    return Style(color=colour, bgcolor=colour)


def _bins(values: Sequence[Value], most: int) -> list[Sequence[Value]]:
    """Split `values` into at most `most` runs of about the same length."""
    count = min(most, len(values))
    ends = [len(values) * i // count for i in range(count + 1)]
    return [values[start:end] for start, end in itertools.pairwise(ends)]


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _short(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _line(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")
