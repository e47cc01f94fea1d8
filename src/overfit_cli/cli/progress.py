"""Progress of a sweep: on a terminal a bar and the phase diagram, elsewhere lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from overfit_cli.cli.sweep_diagram import SweepDiagram, diagram_of
from overfit_cli.cli.time_left import TimeLeft
from overfit_cli.sweeps.interrupts import delaying_interrupts
from overfit_cli.words import duration, plural

if TYPE_CHECKING:
    from overfit_cli.sweeps.executors.executor import Executor, Staffed
    from overfit_cli.sweeps.plan import Plan
    from overfit_cli.sweeps.store import RunDirectory
    from overfit_cli.sweeps.worker import TaskRecord

SECONDS_BETWEEN_LINES = 5.0
_SMALLEST_WIDTH_OF_DIAGRAM = 60
_LINES_AROUND_DIAGRAM = 6


class Progress:
    """The state of a running sweep, fed with one record per task.

    Args:
        plan: what runs.
        executor: who trains it.
        directory: where the cells are that don't run again.
        output: where to show it.
        of_all: says what is left of several sweeps, after a share of this one's work; None where
            there is no other.

    Attributes:
        cells: how many have been finished.
    """

    def __init__(
        self,
        plan: Plan,
        executor: Executor,
        directory: RunDirectory,
        output: Console,
        of_all: Callable[[float], str] | None = None,
    ) -> None:
        self._plan, self._executor, self._of_all = plan, executor, of_all
        self._directory, self._output = directory, output
        self._began = time.monotonic()
        self._next_line = self._began + SECONDS_BETWEEN_LINES
        self.cells = self._failed = self._batches = 0
        cells = [cell for batch in plan.batches for cell in batch]
        self._cell_of = {cell.key: cell for cell in cells}
        self._work = sum(plan.grid.study.cost(cell) for cell in cells)
        self._work_done = 0.0
        self._staff: Staffed | None = None
        self._time_left = TimeLeft(executor.jobs)
        self._diagram: SweepDiagram | None = None
        self._live: Live | None = None

    @contextmanager
    def shown(self) -> Iterator[Progress]:
        """Show the progress while inside; at the end, however it comes, the diagram stays."""
        if not self._plan.batches or not self._output.is_terminal:
            yield self
            return
        if self._output.width >= _SMALLEST_WIDTH_OF_DIAGRAM:
            self._diagram = diagram_of(self._plan, self._directory)
        try:
            with delaying_interrupts():
                self._begin()
            yield self
        finally:
            with delaying_interrupts():
                self._end()

    def add(self, record: TaskRecord) -> None:
        """Take in a finished task, and show it."""
        cells = [self._cell_of[key] for key, _ in record.headlines]
        work = sum(self._plan.grid.study.cost(cell) for cell in cells)
        self.cells += len(cells)
        self._failed += record.reasons.total()
        self._batches += len(record.batches)
        self._work_done += work
        if record.seconds:  # none, where workers were killed before they could tell
            self._time_left.learn(work, record.seconds)
        if self._diagram is not None:
            self._diagram.headline = record.headline or self._diagram.headline
            for cell, (_, headline) in zip(cells, record.headlines, strict=True):
                self._diagram.add(cell, headline)
        self._show()

    def count_workers(self, staff: Staffed) -> None:
        """Take in how many workers a cluster has now, and say so at once where some are gone."""
        gone = self._staff is not None and staff.workers < self._staff.workers
        self._staff = staff
        self._time_left.jobs = max(1, staff.jobs)
        self._show(now=gone or not staff.workers)

    def count(self) -> str:
        """Return how many of the cells are finished, in words."""
        return f"{self.cells} of {plural(self._plan.to_run, 'cell')}"

    def _begin(self) -> None:
        """Show a picture that changes with each record, where the terminal can take it back."""
        if not self._output.is_dumb_terminal:
            self._live = Live(
                console=self._output,
                auto_refresh=False,
                transient=True,
                redirect_stderr=sys.stderr.isatty(),  # what goes to a file stays out of the picture
            )
            self._live.update(self._picture())
            self._live.start(refresh=True)

    def _end(self) -> None:
        """Take the picture back, and leave the diagram."""
        if self._live is not None:
            self._live.stop()
        if self.cells and (diagram := self._drawn()) is not None:
            self._output.print(diagram)

    def _show(self, *, now: bool = False) -> None:
        if self._live is not None:
            with delaying_interrupts():
                self._live.update(self._picture(), refresh=True)
        elif now or time.monotonic() >= self._next_line:
            # Fewer lines as time goes on: an hour's log stays readable.
            elapsed = time.monotonic() - self._began
            self._next_line = time.monotonic() + max(SECONDS_BETWEEN_LINES, 0.1 * elapsed)
            self._output.print(self._sentence())

    def _sentence(self) -> str:
        failed = f", {self._failed} failed" if self._failed else ""
        now = self._time() if self.cells else self._waits_for()
        if self._staff is not None and not self._staff.workers:
            now = f"waiting for a {self._executor.workers_are}: there is none"
        elif self._staff is not None:
            now += f"; {self._workers(self._staff)}"
        of_all = f"; {self._of_all(self._work_done / self._work)}" if self._of_all else ""
        return f"{self.count()}{failed}; {now}{of_all}"

    def _workers(self, staff: Staffed) -> str:
        """How many workers there are, and how many tasks they run where that is another number."""
        jobs = "" if staff.jobs == staff.workers else f"{plural(staff.jobs, 'job')} on "
        return f"{jobs}{plural(staff.workers, self._executor.workers_are)}"

    def _waits_for(self) -> str:
        """What comes before the first record: workers start, each job trains a batch."""
        batches = self._plan.batches[: self._executor.jobs]
        count = sum(len(batch) for batch in batches)
        first = "the first cell" if count == 1 else f"the first {plural(count, 'cell')}"
        if not self._executor.has_processes:
            return f"waiting for {first}"
        return f"waiting for {plural(self._executor.jobs, 'worker')} to start and train {first}"

    def _time(self) -> str:
        """The time so far, and about how much is left once that is known."""
        so_far = f"{duration(time.monotonic() - self._began)} so far"
        batches = len(self._plan.batches) - self._batches
        left = self._time_left.seconds(self._work - self._work_done, batches)
        if left is None or not batches:
            return so_far
        about = f"about {duration(left)}" if left >= 1 else "less than 1 s"
        return f"{so_far}, {about} left"

    def _picture(self) -> RenderableType:
        line = Table.grid(padding=(0, 1))
        sentence = Text(self._sentence())
        if self.cells:
            bar = ProgressBar(total=self._work, completed=self._work_done, width=20)
            line.add_row(bar, sentence)
        else:
            line.add_row(sentence)
        diagram = self._drawn()
        return line if diagram is None else Group(diagram, line)

    def _drawn(self) -> RenderableType | None:
        if self._diagram is None:
            return None
        height = max(4, min(24, self._output.height - _LINES_AROUND_DIAGRAM))
        return self._diagram.drawn(min(self._output.width, 80), height)
