"""Progress: a line now and then, a bar with the phase diagram, or the steps of a training.

The diagram shows the mean headline at each point of the two axes with the most numbers, over the
seeds and all other axes. A character is two points, one above the other: the colours of a half
block. A point to come looks like the nearest one, but pale.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from overfit_cli.core import processes, text
from overfit_cli.core.arrays import Floats, finite_column
from overfit_cli.core.cell import TRACEBACK, CellResult
from overfit_cli.core.study import MOST_PROGRESS_COLUMNS, AnyStudy
from overfit_cli.core.training import Execution
from overfit_cli.sweeps.executors import Run
from overfit_cli.sweeps.plan import Plan, diagram_axes
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import TaskRecord

SECONDS_BETWEEN_LINES = 5.0
_SMALLEST_WIDTH_OF_DIAGRAM = 60


class Progress:
    """What is shown of a run while it lasts."""

    def __init__(self, run: Run, output: Console) -> None:
        self._run, self._output = run, output
        self._began = time.monotonic()
        self._next_line = self._began + SECONDS_BETWEEN_LINES
        self._diagram: Diagram | None = None
        self._picture: Live | None = None

    @contextmanager
    def shown(self) -> Iterator[Progress]:
        """Show the progress while inside; at the end, however it comes, the diagram stays."""
        output, batches = self._output, self._run.plan.batches
        has_colours = output.is_terminal and output.color_system in ("256", "truecolor")
        if has_colours and output.width >= _SMALLEST_WIDTH_OF_DIAGRAM:
            self._diagram = diagram_of(self._run.plan, self._run.directory)
        if output.is_terminal and not output.is_dumb_terminal and batches:
            to_terminal = sys.stderr.isatty()  # what goes to a file stays out of the picture
            self._picture = Live(
                console=output, auto_refresh=False, transient=True, redirect_stderr=to_terminal
            )
        try:
            if self._picture is not None:
                with processes.delaying_interrupts():
                    self._picture.start()
                self._show()
            yield self
        finally:
            with processes.delaying_interrupts():
                if self._picture is not None:
                    self._picture.stop()
                if self._diagram is not None and (self._run.cells or not batches):
                    output.print(self._diagram)

    def add(self, record: TaskRecord) -> None:
        """Show a task that has ended."""
        if self._diagram is not None and record.cells is not None:
            self._diagram.add(record.cells.to_pandas())
        self._show()

    def _show(self) -> None:
        if self._picture is not None:
            line = Table.grid(padding=(0, 1))
            bar = ProgressBar(self._run.cost, self._run.cost_done, width=20)
            line.add_row(*([bar] if self._run.cells else []), Text(self._sentence()))
            shown = line if self._diagram is None else Group(self._diagram, line)
            with processes.delaying_interrupts():
                self._picture.update(shown, refresh=True)
        elif time.monotonic() >= self._next_line:
            # Fewer lines as time goes on: an hour's log stays readable.
            elapsed = time.monotonic() - self._began
            self._next_line = time.monotonic() + max(SECONDS_BETWEEN_LINES, 0.1 * elapsed)
            self._output.print(self._sentence())

    def _sentence(self) -> str:
        run = self._run
        count = f"{run.cells} of {text.plural(run.plan.to_run, 'cell')}"
        if not run.cells:
            return f"{count}; waiting for the first"
        failed = f", {run.failed} failed" if run.failed else ""
        so_far = f"{text.duration(time.monotonic() - self._began)} so far"
        left = run.seconds_left()
        if left is not None:
            so_far += f", {f'about {text.duration(left)}' if left >= 1 else 'less than 1 s'} left"
        return f"{count}{failed}; {so_far}"


# The phase diagram

RED = np.array((200.0, 40.0, 40.0))
WIDEST, WIDEST_POINT = 48, 4
"""The characters that few points of a line are stretched to, and that one of many may have."""

MOST_LINES, LINES_AROUND = 24, 6


class Diagram:
    """The means that arrived so far; rich prints it as high and wide as the console allows."""

    def __init__(self, plan: Plan, y: str, x: str) -> None:
        grid = plan.grid
        # A function's headline isn't known before its first result.
        self._headline, self._names = grid.study.headline, [y, x]
        self._others = [name for name in grid.axes if name not in self._names]
        self._values: list[list[Any]] = [sorted(grid.axes[name]) for name in self._names]
        settings = (cell.parameters for cell in plan.cells)
        self.points = {tuple(getattr(one, name) for name in self._names) for one in settings}
        # The sum of the headlines at each point, of how many cells, and how many cells arrived.
        self._sums, self._numbers, self._arrived = np.zeros((3, *map(len, self._values)))

    def add(self, cells: pd.DataFrame) -> None:
        """Take in rows of cells; failed ones do not have the headline."""
        measured = [*cells.columns.drop(TRACEBACK, errors="ignore"), ""]
        self._headline = self._headline or measured[measured.index("seconds") + 1]
        pairs = zip(self._names, self._values, strict=True)
        up, across = (np.searchsorted(values, cells[name]) for name, values in pairs)
        np.add.at(self._arrived, (up, across), 1)
        if self._headline in cells:  # where all fail, a function's declared one has no column
            numbers = finite_column(cells, self._headline).to_numpy()
            known = np.isfinite(numbers)
            np.add.at(self._sums, (up[known], across[known]), numbers[known])
            np.add.at(self._numbers, (up[known], across[known]), 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Give the title, lines of two rows of points each, the ends of x, and the key."""
        (y, x), (ys, xs) = self._names, self._values
        mean = f", mean over {', '.join(self._others)}" if self._others else ""
        yield _line(f"{self._headline or 'result'} over {x} (across) and {y} (up){mean}")
        labels = [f"{value:.4g}" for value in ys]
        margin = max(map(len, labels)) + 1
        room = max(1, options.max_width - margin)
        most = max(4, min(MOST_LINES, console.height - LINES_AROUND))
        up, across = _starts(len(ys), 2 * most), _starts(len(xs), room)
        stretch = max(1, min(room, max(WIDEST, WIDEST_POINT * len(across))) // len(across))
        colours, low, high = self._colours(up, across)
        tops = range(len(up) - 1, -1, -2)
        for number, top in enumerate(tops):
            label = labels[up[top]] if number % math.ceil(len(tops) / 6) == 0 else ""
            below = colours[top - 1] if top else np.full((len(across), 3), np.nan)
            points = zip(colours[top], below, strict=True)
            yield _line(f"{label:>{margin - 1}} ", *(_points(*each, stretch) for each in points))
        first, last = f"{xs[0]:.4g}", f"{xs[-1]:.4g}"
        yield _line(" " * margin + first + last.rjust(stretch * len(across) - len(first)))
        key = list[str | tuple[str, str]]()
        if low <= high:
            scale = (_points(colour, colour) for colour in _viridis(np.linspace(0, 1, 10)))
            key += [f"{low:.3g} ", *scale, f" {high:.3g}   "]
        if failed := int(((self._arrived > 0) & (self._numbers == 0)).sum()):
            key += [_points(RED, RED), f" {text.plural(failed, 'point')} failed   "]
        if coming := len(self.points) - int((self._arrived > 0).sum()):
            key.append(f"{text.plural(coming, 'point')} to come, pale as the nearest")
        yield _line(*key)

    def _colours(self, up: list[int], across: list[int]) -> tuple[Floats, float, float]:
        """The colours of the means in bins, nan where nothing arrived; and the range of the means.

        It is divided by ratio if all are positive.
        """
        from matplotlib.colors import LogNorm, Normalize
        from scipy.ndimage import distance_transform_edt

        def binned(values: Any) -> Floats:
            return np.add.reduceat(np.add.reduceat(values, up, axis=0), across, axis=1)

        has_number = self._numbers > 0
        means = self._sums / np.maximum(self._numbers, 1)
        low = means.min(where=has_number, initial=math.inf)
        high = means.max(where=has_number, initial=-math.inf)
        counts = binned(has_number.astype(float))
        scale = (LogNorm if low > 0 else Normalize)(low, max(low, high))
        colours = _viridis(scale(binned(means) / np.maximum(counts, 1)))
        colours[counts == 0] = RED
        to_come = binned(self._arrived) == 0
        if to_come.all():
            return np.full_like(colours, np.nan), low, high
        nearest = distance_transform_edt(to_come, return_distances=False, return_indices=True)
        pale = (0.5 * colours + 64)[tuple(nearest)]
        pale[(counts == 0)[tuple(nearest)]] = np.nan
        return np.where(to_come[..., None], pale, colours), low, high


def diagram_of(plan: Plan, directory: RunDirectory) -> Diagram | None:
    """Return a plan's diagram, with the cells that are there already.

    None where there are no two axes of numbers, or where the plan's cells aren't at the points of
    its grid: those of a later round of a refinement lie between them.
    """
    axes = diagram_axes(plan.grid)
    if axes is None:
        return None
    diagram = Diagram(plan, *axes)
    if not diagram.points <= {*itertools.product(*(plan.grid.axes[name] for name in axes))}:
        return None
    kept = {cell.key for cell in plan.cells} - {c.key for batch in plan.batches for c in batch}
    if kept:
        with warnings.catch_warnings(action="ignore"):  # the load after it says them
            cells = directory.load_cells()
        diagram.add(cells[cells["key"].isin(kept)])
    return diagram


def _viridis(shares: Floats) -> Floats:
    from matplotlib import colormaps

    colours: Floats = np.rint(255 * np.asarray(colormaps["viridis"](shares))[..., :3])
    return colours


def _points(upper: Floats, lower: Floats, times: int = 1) -> tuple[str, str]:
    halves = [
        "default" if np.isnan(half[0]) else "rgb({},{},{})".format(*map(int, half))
        for half in (upper, lower)
    ]
    if halves == ["default", "default"]:
        return " " * times, ""
    return "▀" * times, " on ".join(halves)


def _starts(count: int, most: int) -> list[int]:
    bins = min(most, count)
    return [place * count // bins for place in range(bins)]


def _line(*parts: str | tuple[str, str]) -> Text:
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


# The steps of a training

_WIDTH = 12
_THINNING = 1.1


class Watch:
    """Prints steps of a cell: the first ones, then ever fewer, and the last.

    Columns are those that the study shows; of a study that declares none, those of its steps.

    Attributes:
        result: of the cell, once it has been trained.
        error: what the study raised.
        path: the run directory that the cell is kept in.
    """

    result: CellResult

    def __init__(self, study: AnyStudy, output: Console, path: Path) -> None:
        self.path = path
        self.error: BaseException | None = None
        self._output, self._next = output, 0
        self._columns, self._open = [*study.progress_columns], not study.trajectory_columns
        self._held: Mapping[str, float] | None = None

    def seeing(self, execution: Execution) -> Execution:
        """Return an execution in this process that it sees."""
        seen = replace(execution, on_step=self._add, on_task=self._say)
        return replace(seen, on_error=self._keep, on_result=self._end)

    def _say(self, task: str) -> None:
        self._output.print(f"{task} ...")

    def _keep(self, error: BaseException) -> None:
        self.error = error

    def _end(self, result: CellResult) -> None:
        self.result = result
        self._print()

    def _add(self, row: Mapping[str, float]) -> None:
        """Take in a logged step."""
        logged = [name for name in row if name != "step"]
        names = [*dict.fromkeys([*self._columns, *logged])][:MOST_PROGRESS_COLUMNS]
        if self._open and names != self._columns:
            self._columns, self._next = names, 0
        if not row.keys().isdisjoint(self._columns):
            self._held = row
            if row["step"] >= self._next:
                self._print()

    def _print(self) -> None:
        """Print the step that is held, if one is; the first one below the names of the columns."""
        if self._held is None:
            return
        row, self._held = self._held, None
        if not self._next:
            words = [name.split("_") for name in self._columns]
            height = max(map(len, words), default=1)
            stacked = zip(*([""] * (height - len(each)) + each for each in words), strict=True)
            for number, line in enumerate(stacked, 1):
                self._line("step" if number == height else "", line)
        self._next = max(int(row["step"]) + 1, math.ceil(row["step"] * _THINNING))
        self._line(str(int(row["step"])), [_number(row.get(name)) for name in self._columns])

    def _line(self, step: str, words: Iterable[str]) -> None:
        self._output.print("  ".join([step.rjust(6), *(word.rjust(_WIDTH) for word in words)]))


def _number(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.4g}"
