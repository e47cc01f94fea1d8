"""Progress of a sweep: its sentences, and on a screen a bar with the phase diagram."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from overfit_cli.core.failures import count_alike
from overfit_cli.core.notebook import WIDTH, NotebookPicture, in_notebook
from overfit_cli.core.processes import delaying_interrupts
from overfit_cli.core.text import duration, duration_estimate, plural, size
from overfit_cli.sweeps.diagram import SweepDiagram, diagram_of
from overfit_cli.sweeps.executors import Executor
from overfit_cli.sweeps.plan import Plan
from overfit_cli.sweeps.run import Summary
from overfit_cli.sweeps.speed import Estimate, Speed, cost_of
from overfit_cli.sweeps.store import RunDirectory

if TYPE_CHECKING:
    from overfit_cli.sweeps.grid import Grid
    from overfit_cli.sweeps.worker import TaskRecord


MOST_REASONS = 4
"""Of more reasons why cells failed, a sentence says the number."""


def plan_in_words(plan: Plan, directory: RunDirectory, executor: Executor) -> list[str]:
    """Return what a sweep covers, what is there already, and what will run."""
    grid = plan.grid
    shape = shape_in_words(grid)
    cells = plural(len(plan.cells), "cell")
    shard = "" if plan.shard is None else f" of {grid.size}, shard {plan.shard}"
    covers = f"{grid.study.name}: {cells}{shard} ({shape}), {directory.path}"
    kept = [f"{plan.done} there already"] if plan.done else []
    kept += [f"{plan.failed} there as failed (--retry-failed runs them)"] if plan.failed else []
    kept += [f"{len(plan.again)} run again"] if plan.again else []
    kept += [f"{plan.stale} stale, of another version of the study"] if plan.stale else []
    if plan.shard is not None and not plan.cells:
        return [f"{covers}.", "This shard has no cell: there are more shards than cells."]
    to_run = f"{plan.to_run} to run, {executor.description}"
    return [covers, "; ".join([*kept, to_run]) + ".", *source_in_words(plan)]


def shape_in_words(grid: Grid) -> str:
    """Return the factors of a grid, and what ties, derives or leaves out its points."""
    lengths = [(group, len(grid.given[group[0]])) for group in grid.groups]
    axes = [f"{' with '.join(group)} {length}" for group, length in lengths if length > 1]
    rules = [
        f"{name} = {', '.join(map(str, expressions))}" for name, expressions in grid.derived.items()
    ]
    if grid.only:
        conditions = " and ".join(map(str, grid.only))
        rules.append(f"{conditions} at {grid.points} of {plural(grid.full_points, 'point')}")
    return "; ".join([" × ".join([*axes, f"seeds {len(grid.seeds)}"]), *rules])


def source_in_words(plan: Plan) -> list[str]:
    """Say how many cells of other code or of other parameters there are, if there are any."""
    name, sentences = plan.grid.study.name, []
    if plan.of_other_source:
        cells = plural(plan.of_other_source, "cell")
        sentences.append(
            f"{cells} were trained by an earlier version of the code of {name}; they are kept. "
            "Add --fresh to train all again, or --out DIR to keep both."
        )
    if plan.parameters_changed:
        sentences.append(
            f"The parameters of {name} have changed since cells there were trained "
            f"({plan.parameters_changed}); those cells stay, and figures leave them out."
        )
    return sentences


def estimate_in_words(plan: Plan, executor: Executor, likely: Estimate) -> str:
    """Return what a plan with something to run would take."""
    nothing = "Nothing was run or written."
    memory = [] if likely.memory is None else [f"{size(likely.memory)} of memory"]
    if likely.seconds is None or likely.disk is None:
        needed = "".join(f"; about {words}" for words in memory)
        told = ", so how long it takes isn't known"
        if likely.seconds is not None:
            usual = f"{duration_estimate(likely.seconds)} on {jobs_in_words(executor)}"
            told = f". From the time that the preset took elsewhere: {usual}"
        return f"No probe ended within {duration(likely.within)}{told}{needed}. {nothing}"
    several = f"the mean of {likely.probes} timed probes"
    source = f"From {several if likely.probes > 1 else 'one timed probe'}"
    if likely.cut:
        source = f"From a small probe, because a typical one took over {duration(likely.within)}"
    time = f"{duration_estimate(likely.seconds)} on {jobs_in_words(executor)}"
    if len(plan.batches) > 1 and math.isclose(likely.seconds - likely.start, likely.longest or 0.0):
        time += ", as long as the longest batch"
    takes = [time, *memory, f"{size(likely.disk)} on disk"]
    return f"{source}: {', '.join(takes)}. {nothing}"


def jobs_in_words(executor: Executor) -> str:
    """Return how many jobs an estimate is for, and how many of them a cluster has now."""
    jobs = executor.jobs
    fewer = f" ({jobs} there now)" if jobs != executor.requested_jobs else ""
    return f"{plural(executor.requested_jobs, 'job')}{fewer}"


def failed_in_words(summary: Summary) -> str:
    """Say how many cells failed, and why."""
    kinds = count_alike(summary.failed)
    shown, others = kinds[:MOST_REASONS], kinds[MOST_REASONS:]
    reasons = [f"{kind.count} {kind.words}" for kind in shown]
    if others:
        count = sum(kind.count for kind in others)
        reasons.append(f"{count} for {plural(len(others), 'other reason')}")
    return f"{summary.failed.total()} failed ({', '.join(reasons)})"


def earlier_in_words(summary: Summary) -> str:
    """Say how many cells failed in earlier runs; nothing if none did."""
    if not summary.earlier:
        return ""
    again = "runs it again" if summary.earlier == 1 else "runs them again"
    return f", {summary.earlier} failed earlier; --retry-failed {again}"


def restarts_in_words(summary: Summary) -> str:
    """Say how often workers had to be started again; nothing if they hadn't."""
    if not summary.restarts:
        return ""
    return f"; workers were killed and started again {plural(summary.restarts, 'time')}"


def summary_in_words(plan: Plan, directory: RunDirectory, summary: Summary) -> list[str]:
    """Return what a sweep did, where it lies, and what it left."""
    done = f"{summary.trained} trained in {duration(summary.seconds)}, {plan.done} reused"
    if summary.failed:
        done += f", {failed_in_words(summary)}"
    done += earlier_in_words(summary) + restarts_in_words(summary)
    sentences = [f"Done: {done}. The cells are in {directory.path}/cells."]
    return sentences + left_in_words(summary)


def left_in_words(summary: Summary) -> list[str]:
    """Return lines that show where failed cells raised, and how many cells were left for it."""
    sentences = list[str]()
    for kind in count_alike(summary.failed, summary.tracebacks)[:MOST_REASONS]:
        if kind.traceback:
            sentences.append(f"Failed ({plural(kind.count, 'cell')}):")
            sentences += [f"  {line}" for line in kind.traceback.splitlines()]
    if summary.left:
        left = f"{plural(summary.left, 'cell')} {'was' if summary.left == 1 else 'were'} not run."
        if summary.stopped:
            again = "Correct the function and repeat the command with --retry-failed."
            sentences.append(f"Stopped: {summary.stopped}. {left} {again}")
        else:
            sentences.append(f"Stopped after a failed cell (--fail-fast): {left}")
    return sentences


SECONDS_BETWEEN_LINES = 5.0


_SMALLEST_WIDTH_OF_DIAGRAM = 60


_LINES_AROUND_DIAGRAM = 6


class Progress:
    """The state of a running sweep, fed with one record per task."""

    def __init__(
        self,
        plan: Plan,
        executor: Executor,
        directory: RunDirectory,
        output: Console,
        speed: Speed,
    ) -> None:
        self._plan, self._executor = plan, executor
        self._speed = speed
        self._directory, self._output = directory, output
        self._began = time.monotonic()
        self._next_line = self._began + SECONDS_BETWEEN_LINES
        self.cells = self._failed = self._batches = 0
        cells = [cell for batch in plan.batches for cell in batch]
        self._cell_of = {cell.key: cell for cell in cells}
        self._cost, self._cost_done = cost_of(plan.grid.study, cells), 0.0
        self._diagram: SweepDiagram | None = None
        self._live: Live | None = None
        self._notebook = NotebookPicture() if in_notebook() and not output.quiet else None

    @contextmanager
    def shown(self) -> Iterator[Progress]:
        """Show the progress while inside; at the end, however it comes, the diagram stays."""
        if not self._output.is_terminal and self._notebook is None:
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
        self.cells += len(cells)
        self._failed += record.reasons.total()
        self._batches += len(record.batches)
        self._cost_done += cost_of(self._plan.grid.study, cells)
        if self._diagram is not None:
            self._diagram.headline = record.headline or self._diagram.headline
            for cell, (_, headline) in zip(cells, record.headlines, strict=True):
                self._diagram.add(cell, headline)
        self._show()

    def count(self) -> str:
        """Return how many of the cells are finished, in words."""
        return f"{self.cells} of {plural(self._plan.to_run, 'cell')}"

    def _begin(self) -> None:
        if not self._plan.batches:
            return
        if self._notebook is not None:
            self._notebook.show(self._picture())
        elif not self._output.is_dumb_terminal:
            self._live = Live(
                console=self._output,
                auto_refresh=False,
                transient=True,
                redirect_stderr=sys.stderr.isatty(),  # what goes to a file stays out of the picture
            )
            self._live.update(self._picture())
            self._live.start(refresh=True)

    def _end(self) -> None:
        if self._live is not None:
            self._live.stop()
        has_cells = bool(self.cells) or not self._plan.batches
        diagram = self._render_diagram() if has_cells else None
        if self._notebook is None:
            if diagram is not None:
                self._output.print(diagram)
        elif diagram is not None:
            self._notebook.show(diagram, is_last=True)
        elif self._plan.batches:
            self._notebook.show(Text(f"{self.count()}."), is_last=True)

    def _show(self) -> None:
        if self._live is not None:
            with delaying_interrupts():
                self._live.update(self._picture(), refresh=True)
        elif self._notebook is not None:
            with delaying_interrupts():
                self._notebook.show(self._picture())
        elif time.monotonic() >= self._next_line:
            # Fewer lines as time goes on: an hour's log stays readable.
            elapsed = time.monotonic() - self._began
            self._next_line = time.monotonic() + max(SECONDS_BETWEEN_LINES, 0.1 * elapsed)
            self._output.print(self._sentence())

    def _sentence(self) -> str:
        failed = f", {self._failed} failed" if self._failed else ""
        now = self._time() if self.cells else self._waits_for()
        return f"{self.count()}{failed}; {now}"

    def _waits_for(self) -> str:
        """Return what comes before the first record: workers start, each job trains a batch."""
        batches = self._plan.batches[: self._executor.jobs]
        count = sum(len(batch) for batch in batches)
        first = "the first cell" if count == 1 else f"the first {plural(count, 'cell')}"
        if not self._executor.has_processes:
            return f"waiting for {first}"
        return f"waiting for {plural(self._executor.jobs, 'worker')} to start and train {first}"

    def _time(self) -> str:
        so_far = f"{duration(time.monotonic() - self._began)} so far"
        batches = len(self._plan.batches) - self._batches
        if not batches:
            return so_far
        cost = max(0.0, self._cost - self._cost_done)
        left = self._speed.time(cost, min(self._executor.jobs, batches))
        if left is None:
            return so_far
        return f"{so_far}, {f'about {duration(left)}' if left >= 1 else 'less than 1 s'} left"

    def _picture(self) -> RenderableType:
        line = Table.grid(padding=(0, 1))
        sentence = Text(self._sentence())
        if self.cells:
            bar = ProgressBar(total=self._cost, completed=self._cost_done, width=20)
            line.add_row(bar, sentence)
        else:
            line.add_row(sentence)
        diagram = self._render_diagram()
        return line if diagram is None else Group(diagram, line)

    def _render_diagram(self) -> RenderableType | None:
        if self._diagram is None:
            return None
        width = self._output.width if self._notebook is None else WIDTH
        height = max(4, min(24, self._output.height - _LINES_AROUND_DIAGRAM))
        return self._diagram.render(width, height)
