"""Progress of a sweep: on a terminal a bar and the phase diagram, elsewhere lines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from overfit_cli.figures.terminal import phase_diagram
from overfit_cli.words import duration, plural

if TYPE_CHECKING:
    from overfit_cli.parameters import Value
    from overfit_cli.sweeps.plan import Plan
    from overfit_cli.sweeps.worker import TaskRecord

SECONDS_BETWEEN_LINES = 5.0
_SMALLEST_WIDTH_OF_DIAGRAM = 60
_LINES_AROUND_DIAGRAM = 6


class Progress:
    """The state of a running sweep, fed with one record per task.

    Args:
        plan: what runs.
        output: where to show it.
    """

    def __init__(self, plan: Plan, output: Console) -> None:
        self._plan = plan
        self._output = output
        self._study = plan.grid.study
        self._began = time.monotonic()
        self._next_line = self._began + SECONDS_BETWEEN_LINES
        self._cells = self._failed = 0
        self._work_done = 0.0
        self._work = sum(self._study.cost(cell) for batch in plan.batches for cell in batch)
        self._cell_of = {cell.key: cell for batch in plan.batches for cell in batch}
        self._values: dict[tuple[float, float], list[float | None]] = {}
        self._on_grid = all(
            getattr(cell.parameters, name) in values
            for name, values in plan.grid.axes.items()
            for cell in self._cell_of.values()
        )
        self._live: Live | None = None

    @contextmanager
    def shown(self) -> Iterator[Progress]:
        """Show the progress while inside."""
        if not self._output.is_terminal or not self._plan.batches:
            yield self
            return
        with Live(console=self._output, auto_refresh=False, transient=True) as self._live:
            self._live.update(self._picture(), refresh=True)
            yield self

    def add(self, record: TaskRecord) -> None:
        """Take in a finished task, and show it."""
        self._failed += record.reasons.total()
        for key, headline in record.headlines:
            cell = self._cell_of[key]
            self._cells += 1
            self._work_done += self._study.cost(cell)
            if len(self._plan.grid.axes) == 2:
                y, x = (getattr(cell.parameters, name) for name in self._plan.grid.axes)
                self._values.setdefault((x, y), []).append(headline)
        if self._live is not None:
            self._live.update(self._picture(), refresh=True)
        elif time.monotonic() >= self._next_line:
            # Fewer lines as time goes on: an hour's log stays readable.
            elapsed = time.monotonic() - self._began
            self._next_line = time.monotonic() + max(SECONDS_BETWEEN_LINES, 0.1 * elapsed)
            self._output.print(self._sentence())

    def count(self) -> str:
        """Return how many of the cells are finished, in words."""
        return f"{self._cells} of {plural(self._plan.to_run, 'cell')}"

    def _sentence(self) -> str:
        failed = f", {self._failed} failed" if self._failed else ""
        return f"{self.count()}{failed}; {self._time_left()}"

    def _time_left(self) -> str:
        elapsed = time.monotonic() - self._began
        if not self._work_done:
            return "starting"
        left = elapsed * (self._work - self._work_done) / self._work_done
        return f"{duration(elapsed)} so far, about {duration(left)} left"

    def _picture(self) -> RenderableType:
        line = Table.grid(padding=(0, 1))
        done = self._work_done / self._work
        line.add_row(ProgressBar(total=1.0, completed=done, width=20), Text(self._sentence()))
        diagram = self._diagram()
        return line if diagram is None else Group(diagram, line)

    def _diagram(self) -> RenderableType | None:
        axes = self._plan.grid.axes
        if len(axes) != 2 or not self._on_grid or self._output.width < _SMALLEST_WIDTH_OF_DIAGRAM:
            return None
        (y_name, y_values), (x_name, x_values) = axes.items()
        if any(isinstance(value, (str, bool)) for value in (*x_values, *y_values)):
            return None
        table: dict[tuple[Value, Value], float | None] = {
            point: (sum(numbers) / len(numbers) if numbers else None)
            for point, values in self._values.items()
            for numbers in [[value for value in values if value is not None]]
        }
        return phase_diagram(
            cast("tuple[float, ...]", x_values),
            cast("tuple[float, ...]", y_values),
            table,
            title=f"{self._study.headline or 'result'} over {x_name} (across) and {y_name} (up)",
            width=min(self._output.width, 80),
            height=max(4, min(24, self._output.height - _LINES_AROUND_DIAGRAM)),
            log=True,
        )
