"""A phase diagram in characters, for the terminal, while its cells arrive."""

from __future__ import annotations

import functools
import itertools
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from rich.color import Color
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.style import Style
from rich.text import Text

from overfit_cli.core.parameters import Value
from overfit_cli.core.text import plural
from overfit_cli.stats.equations import Equation

Table = Mapping[tuple[Value, Value], float | None]
UNICODE, ASCII = ("·░▒▓█", "×", "▒"), (".-+*#", "x", ":")  # shades by value, failed, half
TO_COME, LAW = " ", "o"
VIRIDIS = (
    (68, 1, 84),
    (65, 68, 135),
    (42, 120, 142),
    (34, 168, 132),
    (122, 209, 81),
    (253, 231, 37),
)
WIDEST = 48  # characters that few values of x are stretched to
WIDEST_POINT = 4  # and a point of more values


@dataclass(frozen=True)
class Landmarks:
    """The landmarks of a diagram: threshold, sides and law.

    Attributes:
        threshold: the value at which a point changes sides; None without one.
        sides: what a point up to the threshold is called, and one above it.
        law: the equation of a curve to draw, in these names; None without one.
    """

    threshold: float | None = None
    sides: tuple[str, str] = ("", "")
    law: Equation | None = None
    names: tuple[str, str] = ("x", "y")

    def __str__(self) -> str:
        """Return their meaning in a line; empty without any."""
        words = list[str]()
        if self.threshold is not None:
            below, above = self.sides
            named = f"{below} up to {self.threshold:.3g}, {above} above it"
            words.append(named if below and above else f"| is {self.threshold:.3g}")
        if self.law is not None:
            words.append(f"{LAW} is {self.law.text}")
        return "; ".join(words)


def phase_diagram(
    x_values: Sequence[Value],
    y_values: Sequence[Value],
    table: Table,
    *,
    title: str,
    width: int = 80,
    height: int = 24,
    log: bool = False,
    landmarks: Landmarks | None = None,
) -> RenderableType:
    """Return a diagram to print: x to the right, y upward, a character or more for each cell.

    The value is shown by colour where the terminal has at least 256, and by the shade of the
    character elsewhere. In colour a point to come looks like the nearest one, half as strong.
    Where there are more values than room, neighbours are averaged.

    Args:
        table: values by point, as (x, y); None for a point that failed, absent for one to come.
        height: the most rows of cells; title, x labels and key come on top.
        log: whether to shade and to average by ratio; heeded only if all values are positive.
    """
    axes, landmarks = (tuple(x_values), tuple(y_values)), landmarks or Landmarks()
    return _Diagram(*axes, dict(table), title, width, height, log, landmarks)


@dataclass(frozen=True)
class _Diagram:
    x_values: tuple[Value, ...]
    y_values: tuple[Value, ...]
    table: Table
    title: str
    width: int
    height: int
    log: bool
    landmarks: Landmarks

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        coloured = console.color_system in ("256", "truecolor")
        brush = _Brush(*self._scale, *(ASCII if options.ascii_only else UNICODE), coloured)
        margin = max(len(_short(y)) for y in self.y_values) + 1
        room = max(1, min(self.width, options.max_width) - margin)
        columns, rows = _bins(self.x_values, room), _bins(self.y_values, self.height)
        stretch = max(1, min(room, max(WIDEST, WIDEST_POINT * len(columns))) // len(columns))
        values = [[self._mean(column, row) for column in columns] for row in rows]
        nearest = _nearest(values) if coloured else values
        # Where a point is one character, a curve of characters would hide it.
        law = self._law(columns, rows, stretch) if coloured or stretch > 1 else set()
        yield _line(self.title)
        labelled = range(0, len(rows), math.ceil(len(rows) / 6))
        for index in reversed(range(len(rows))):
            label = _short(rows[index][0]) if index in labelled else ""
            points = [
                brush.point(value, known=not _is_to_come(own))
                for value, own in zip(nearest[index], values[index], strict=True)
            ]
            characters = [
                brush.on_law(point) if (column * stretch + step, index) in law else point
                for column, point in enumerate(points)
                for step in range(stretch)
            ]
            line = _line(label.rjust(margin - 1) + " ")
            for (glyph, style), run in itertools.groupby(characters):
                line.append(glyph * len(list(run)), style)
            yield line
        first, last = _short(self.x_values[0]), _short(self.x_values[-1])
        gap = max(1, stretch * len(columns) - len(first) - len(last))
        yield _line(" " * margin + first + " " * gap + last)
        yield self._key(brush)
        if meaning := str(self.landmarks):
            yield _line(meaning)

    def _law(
        self, columns: Sequence[Sequence[Value]], rows: Sequence[Sequence[Value]], stretch: int
    ) -> set[tuple[int, int]]:
        if self.landmarks.law is None:
            return set()
        x, y = (np.array([float(run[len(run) // 2]) for run in runs]) for runs in (columns, rows))
        characters = (np.arange(len(x) * stretch) + 0.5) / stretch - 0.5  # in columns
        across, up = np.meshgrid(np.interp(characters, np.arange(len(x)), x), y)
        values = dict(zip(self.landmarks.names, (across, up), strict=True))
        above = self.landmarks.law.difference(values) > 0  # (rows, characters)
        turns = np.zeros_like(above)
        turns[:, :-1] |= above[:, :-1] != above[:, 1:]
        turns[:-1] |= above[:-1] != above[1:]
        return {(character, row) for row, character in np.argwhere(turns).tolist()}

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
            steps, threshold = 2 * len(brush.shades), self.landmarks.threshold
            fraction = math.nan if threshold is None else brush.fraction(threshold)
            for step in range(steps):
                if 0 < fraction < 1 and step == round(steps * fraction):
                    key.append("|")
                key.append(*brush.shade((step // 2 + 0.5) / len(brush.shades)))
            key.append(f" {high:.3g}   ")
        if failed:
            key.append(*brush.point(None))
            key.append(f" {plural(failed, 'point')} failed   ")
        if coming > 0:
            points = f"{plural(coming, 'point')} to come"
            guessed = brush.coloured and self.table
            key.append(f"{brush.half} {points}, as the nearest" if guessed else f"blank: {points}")
        return key


@dataclass(frozen=True)
class _Brush:
    low: float
    high: float
    log: bool
    shades: str
    failed: str
    half: str
    coloured: bool

    def point(self, value: float | None, *, known: bool = True) -> tuple[str, Style]:
        """Return a character: of a value, None for failed, nan for one to come.

        Args:
            value: the point's, or where it isn't known the nearest one's.
            known: whether it is the point's own.
        """
        if value is None:
            return self.failed, Style(color="red", bold=known, dim=not known)
        if math.isnan(value):
            return TO_COME, Style()
        glyph, style = self.shade(self.fraction(value) if self.low < self.high else 0.5)
        return (glyph, style) if known else (self.half, Style(color=style.color))

    def fraction(self, value: float) -> float:
        """Return where a value lies on the scale, 0 to 1 between its ends; nan on none."""
        ends = (self.low, value, self.high)
        if self.low >= self.high or (self.log and value <= 0):
            return math.nan
        low, middle, high = map(math.log, ends) if self.log else ends
        return (middle - low) / (high - low)

    def shade(self, fraction: float) -> tuple[str, Style]:
        """Return a character whose value lies at `fraction`, 0 to 1, of the scale."""
        glyph = self.shades[min(int(fraction * len(self.shades)), len(self.shades) - 1)]
        return glyph, _viridis(round(fraction * 64)) if self.coloured else Style()

    def on_law(self, point: tuple[str, Style]) -> tuple[str, Style]:
        background = point[1].bgcolor
        if background is None:
            return LAW, Style(bold=True)
        red, green, blue = background.triplet or (0, 0, 0)
        is_light = 0.3 * red + 0.6 * green + 0.1 * blue > 110
        return LAW, Style(color="black" if is_light else "white", bgcolor=background, bold=True)


@functools.cache
def _viridis(step: int) -> Style:
    position = step / 64 * (len(VIRIDIS) - 1)
    below = min(int(position), len(VIRIDIS) - 2)
    part = position - below
    rgb = (a + part * (b - a) for a, b in zip(VIRIDIS[below], VIRIDIS[below + 1], strict=True))
    colour = Color.from_rgb(*rgb)
    return Style(color=colour, bgcolor=colour)


def _bins(values: Sequence[Value], most: int) -> list[Sequence[Value]]:
    count = min(most, len(values))
    ends = [len(values) * i // count for i in range(count + 1)]
    return [values[start:end] for start, end in itertools.pairwise(ends)]


def _nearest(values: Sequence[Sequence[float | None]]) -> list[list[float | None]]:
    filled = [list(line) for line in values]
    spots = itertools.product(range(len(filled)), range(len(filled[0])))
    reached = deque(spot for spot in spots if not _is_to_come(filled[spot[0]][spot[1]]))
    while reached:
        row, column = reached.popleft()
        beside = ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1))
        for r, c in beside:
            if 0 <= r < len(filled) and 0 <= c < len(filled[0]) and _is_to_come(filled[r][c]):
                filled[r][c] = filled[row][column]
                reached.append((r, c))
    return filled


def _is_to_come(value: float | None) -> bool:
    return value is not None and math.isnan(value)


def _is_number(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _short(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _line(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")
