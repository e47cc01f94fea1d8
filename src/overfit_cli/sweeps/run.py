"""The run of a plan: tasks for an executor, part files, restarts, interruption."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from overfit_cli.core.cell import NAME_TAKEN, CellResult
from overfit_cli.core.errors import UserError
from overfit_cli.core.failures import (
    FailureKind,
    count_alike,
    is_exception,
    kind_of,
)
from overfit_cli.core.files import error_text
from overfit_cli.core.processes import answering_interrupts, delaying_interrupts
from overfit_cli.core.training import Execution, training_conditions
from overfit_cli.sweeps.executors import Executor
from overfit_cli.sweeps.plan import Plan
from overfit_cli.sweeps.speed import MOST_BATCHES, Speed, cost_of, task_size
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import (
    KEPT,
    Batch,
    Task,
    TaskInterrupted,
    TaskRecord,
    Work,
    record_of,
)

CHANCES = 3
"""The killed workers with a batch in flight after which its cells count as failed."""

MOST_LOSSES = 30
"""The losses of batches with their workers after which the sweep gives up."""

MOST_ALIKE = 20
"""The first cells after which a sweep stops, if all of them raised the same exception."""

ELSEWHERE = 10
"""How many of these are from places of the grid that are chosen at random."""


@dataclass
class Summary:
    """The outcome of a sweep.

    Attributes:
        left: how many cells weren't trained because others had failed.
        earlier: how many cells failed in earlier runs, and weren't run again.
        example: the key of a cell that raised; empty where none did.
        stopped: why the sweep stopped by itself, with `--fail-fast` aside; empty where it didn't.
    """

    trained: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    tracebacks: dict[FailureKind, str] = field(default_factory=dict)
    restarts: int = 0
    seconds: float = 0.0
    left: int = 0
    earlier: int = 0
    example: str = ""
    stopped: str = ""

    def add(self, other: Summary) -> None:
        """Count in what another run did."""
        self.trained += other.trained
        self.failed += other.failed
        self.tracebacks = other.tracebacks | self.tracebacks
        self.restarts += other.restarts
        self.seconds += other.seconds
        self.left += other.left
        self.earlier += other.earlier
        self.example = self.example or other.example
        self.stopped = self.stopped or other.stopped

    def count(self, record: TaskRecord) -> None:
        """Count in what a task did."""
        self.trained += record.trained
        self.failed.update(record.reasons)
        self.tracebacks = {**record.tracebacks, **self.tracebacks}
        if not self.example and any(map(is_exception, record.reasons)):
            self.example = next(key for key, headline in record.headlines if headline is None)


def execute(
    plan: Plan,
    directory: RunDirectory,
    execution: Execution,
    executor: Executor,
    *,
    data: Mapping[str, str] | None = None,
    speed: Speed | None = None,
    on_record: Callable[[TaskRecord], None] = lambda record: None,
) -> Summary:
    """Run the plan's batches; what is finished is on disk when this returns or raises.

    Args:
        speed: takes in the time of each task before `on_record` is called.
        on_record: called in this process after each task.
    """
    began = time.monotonic()
    # A cell that is trained in this process may change the folder.
    absolute = RunDirectory(directory.path.absolute(), directory.name)
    work = Work(plan.grid.study, execution, data or {})
    run = _Run(plan, work, executor, speed or Speed())
    problems, written = [], set[str]()

    def write(record: TaskRecord) -> str:
        """Write a record's rows; return what is wrong with it, if anything."""
        if record.problem:
            return record.problem
        try:
            with delaying_interrupts():
                written.update(absolute.write_tables(record.cells, record.steps))
        except OSError as error:
            return (
                f"{absolute.path} can't be written to ({error_text(error)}); "
                "what was written is kept, and the same command goes on from there."
            )
        return ""

    with answering_interrupts(), training_conditions():
        try:
            for record in run.records():
                if problem := write(record):
                    problems.append(problem)
                    run.stop.set()
                    continue
                run.summary.seconds = time.monotonic() - began
                on_record(record)
        except TaskInterrupted as interrupted:
            if not write(interrupted.record):
                on_record(interrupted.record)
            raise
        with contextlib.suppress(OSError):  # cells that stand twice are no loss
            directory.finish(written, replaced=bool(plan.again))
    if problems:
        raise UserError(problems[0], exit_code=1)
    run.summary.left = plan.to_run - run.summary.trained - run.summary.failed.total()
    return run.summary


class _Run:
    """One sweep under way.

    Setting `stop` hands out no further task; those in flight end and are kept.
    """

    def __init__(self, plan: Plan, work: Work, executor: Executor, speed: Speed) -> None:
        self.summary = Summary(earlier=plan.failed)
        self.stop = threading.Event()
        self._work, self._executor = work, executor
        self._waiting: dict[int, Batch] = dict(enumerate(plan.batches))
        self._costs = [cost_of(work.study, batch) for batch in plan.batches]
        self._speed = speed
        self._strikes: Counter[int] = Counter()
        self._losses = 0
        self._sizes = [len(batch) for batch in plan.batches]
        self._any_done, self._alike = plan.done > 0, False
        self._elsewhere = 0

    def records(self) -> Iterator[TaskRecord]:
        """Give a record for each task; after a killed worker go on with what is missing."""
        # Tasks that wait for a worker couldn't be taken back.
        ahead = 1 if self._work.execution.fail_fast else 2
        while self._waiting and not self.stop.is_set():
            for record in self._executor.run(self._work, self._tasks(), ahead):
                ended = self._fail_after_kills(record) if record.kills else record
                if ended is None:
                    continue
                for number in ended.batches:
                    del self._waiting[number]
                if ended is record:
                    cost = sum(self._costs[number] for number in record.batches)
                    self._speed.add(cost, record.seconds, is_cold=record.is_cold)
                self.summary.count(ended)
                self.summary.stopped = self._why_to_stop()
                # Before its rows are written, as tasks are handed out meanwhile.
                if self.summary.stopped or (self._work.execution.fail_fast and ended.reasons):
                    self.stop.set()
                yield ended

    def _why_to_stop(self) -> str:
        """Return the failure of all cells so far, for which a sweep stops; empty if none."""
        failed, trained = self.summary.failed, self.summary.trained
        taken = next((reason for reason in failed if NAME_TAKEN in reason), "")
        if taken and not trained:
            return taken.removeprefix("error: ")
        raised = all(map(is_exception, failed)) and len({*map(kind_of, failed)}) == 1
        self._alike = raised and not trained and not self._any_done
        if not self._alike or not 0 < self._elsewhere <= failed.total() >= MOST_ALIKE:
            return ""
        [alike] = count_alike(failed)
        words = alike.words.removeprefix("error: ")
        return f"the first {failed.total()} cells all failed alike: {words}"

    def _tasks(self) -> Iterator[Task]:
        """The batches that wait, a task at a time.

        A batch that was with a killed worker may be the culprit: half of those that were so most
        often go alone.
        """
        strikes = max(self._strikes[number] for number in self._waiting)
        if strikes:
            suspects = [number for number in self._waiting if self._strikes[number] == strikes]
            yield self._task(suspects[: (len(suspects) + 1) // 2])
            return
        numbers, start = list(self._waiting), 0
        costs = [self._costs[number] for number in numbers]
        left = sum(costs)
        while start < len(numbers) and not self.stop.is_set():
            if self._alike and not self._elsewhere:
                numbers[start:] = self._from_elsewhere(numbers[:start], numbers[start:])
                costs = [self._costs[number] for number in numbers]
            finished = len(self._costs) - len(self._waiting)
            coming = costs[start : start + MOST_BATCHES]
            end = start + task_size(coming, left, self._executor.jobs, self._speed, finished)
            left -= sum(costs[start:end])
            yield self._task(numbers[start:end])
            start = end

    def _from_elsewhere(self, handed_out: Sequence[int], rest: Sequence[int]) -> list[int]:
        """The rest of the batches, some from anywhere first: an early region may fail by itself."""
        chosen = random.Random(0).sample(rest, min(ELSEWHERE, len(rest)))
        self._elsewhere = sum(self._sizes[number] for number in (*handed_out, *chosen))
        return [*chosen, *(number for number in rest if number not in chosen)]

    def _task(self, numbers: Sequence[int]) -> Task:
        return [(number, self._waiting[number]) for number in numbers]

    def _fail_after_kills(self, lost: TaskRecord) -> TaskRecord | None:
        """Count a kill against the batches in flight; fail one that had its chances alone."""
        self._losses += 1
        self.summary.restarts += lost.kills
        if self._losses > MOST_LOSSES:
            raise UserError(
                f"Workers were killed {self.summary.restarts} times; is memory short? Fewer "
                f"--jobs need less. {KEPT}",
                exit_code=1,
            )
        self._strikes.update(lost.batches)
        if len(lost.batches) != 1 or self._strikes[lost.batches[0]] < CHANCES:
            return None
        [(_, batch)] = self._task(lost.batches)
        failures = [CellResult(cell, reason="worker killed") for cell in batch]
        return record_of(self._work.study, lost.batches, failures)
