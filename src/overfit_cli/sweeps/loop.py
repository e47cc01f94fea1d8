"""The loop over the tasks of a plan: it hands them out, writes their rows, and knows when to stop.

A killed worker costs the restart of what was in flight. The cell that kills is found by halving.
"""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from overfit_cli.core.cell import NAME_TAKEN, CellResult
from overfit_cli.core.errors import UserError
from overfit_cli.core.failures import count_alike, is_exception
from overfit_cli.core.files import error_text
from overfit_cli.core.processes import answering_interrupts, delaying_interrupts
from overfit_cli.core.training import training_conditions
from overfit_cli.sweeps.executors import Executor
from overfit_cli.sweeps.plan import MOST_BATCHES, Plan, Speed, task_size
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import KEPT, Summary, Task, TaskRecord, Work, record_of

CHANCES = 3
"""The killed workers with a batch in flight after which its cells count as failed."""

MOST_LOSSES = 30
"""The losses of batches with their workers after which the sweep gives up."""

MOST_ALIKE = 20
"""The first cells after which a sweep stops, if all of them raised the same exception."""

ELSEWHERE = 10
"""How many of these are from places of the grid that are chosen at random."""


@contextlib.contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """Say in one sentence, inside, that a run directory can't be written to."""
    try:
        yield
    except OSError as error:
        problem = f"{path} can't be written to ({error_text(error)}). {KEPT}"
        raise UserError(problem, exit_code=1) from error


class Run:
    """The batches of a plan under way.

    Args:
        summary: of what was done before, to be counted on.

    Attributes:
        cells, failed: how many cells have ended, and how many of them have failed.
        waiting: the batches that have not ended, by number.
        cost_done: of `cost`, which all batches have, the cost of those that have ended.
        stop: whether no further task is handed out; those in flight end and are kept.
    """

    def __init__(
        self,
        plan: Plan,
        directory: RunDirectory,
        work: Work,
        executor: Executor,
        summary: Summary | None = None,
    ) -> None:
        self.plan, self.directory, self.executor, self.work = plan, directory, executor, work
        self.summary, self.speed = summary or Summary(), Speed()
        self.cells, self.failed, self.stop = 0, 0, False
        self.waiting = dict(enumerate(plan.batches))
        self._costs, self.cost, self.cost_done = plan.costs, sum(plan.costs), 0.0
        self._strikes: Counter[int] = Counter()
        self._losses = 0
        self._alike, self._enough = False, math.inf
        """The failures alike that are enough to stop: some of them from anywhere in the grid."""

    def execute(self, on_record: Callable[[TaskRecord], None] = lambda record: None) -> Summary:
        """Run the batches; what is finished is on disk when this returns or raises.

        Args:
            on_record: called in this process after each task.
        """
        summary, directory = self.summary, self.directory
        began = time.monotonic() - summary.seconds
        with (
            answering_interrupts(),
            training_conditions(),
            contextlib.closing(self._records()) as records,
        ):
            for record in records:
                if record.cells is not None:
                    with delaying_interrupts(), writing_to(directory.path):
                        source = self.work.study.identity.source
                        directory.append(record.cells, record.steps, source)
                summary.seconds = time.monotonic() - began
                on_record(record)
            with contextlib.suppress(OSError, MemoryError):  # many parts are no loss
                if self.cells:
                    directory.compact()
        summary.reused += self.plan.done
        summary.earlier += self.plan.failed
        summary.left += self.plan.to_run - self.cells
        return summary

    def seconds_left(self) -> float | None:
        """Return how long the rest takes; None where there is none, or before one was timed."""
        jobs = max(1, min(self.executor.jobs, len(self.waiting)))
        return self.speed.time(self.cost - self.cost_done, jobs) if self.waiting else None

    def take(self, ended: TaskRecord) -> None:
        """Take in what a task did; a sweep stops where all cells so far have failed alike."""
        summary, cost = self.summary, sum(self._costs[number] for number in ended.batches)
        self.speed.add(cost, ended.seconds, is_cold=ended.is_cold)
        self.cost_done += cost
        self.cells += ended.count
        self.failed += len(ended.failed)
        summary.count(ended)
        cells = [cell for number in ended.batches for cell in self.waiting.pop(number)]
        if summary.example is None:
            raised = (cell for cell in cells if is_exception(ended.failed.get(cell.key, "")))
            summary.example = next(raised, None)
        kinds = [] if summary.trained else count_alike(summary.failed)
        taken = next((each.example for each in kinds if NAME_TAKEN in each.example), "")
        self._alike = len(kinds) == 1 and is_exception(kinds[0].example) and not self.plan.done
        if taken:
            summary.stopped = taken.removeprefix("error: ")
        elif self._alike and self._enough <= kinds[0].count >= MOST_ALIKE:
            words = kinds[0].words.removeprefix("error: ")
            summary.stopped = f"the first {kinds[0].count} cells all failed alike: {words}"
        # Before its rows are written, as tasks are handed out meanwhile.
        self.stop |= bool(summary.stopped or (self.work.execution.fail_fast and ended.failed))

    def _records(self) -> Generator[TaskRecord]:
        """Give a record for each task; after a killed worker go on with what is missing."""
        # Tasks that wait for a worker couldn't be taken back.
        ahead = 1 if self.work.execution.fail_fast else 2
        while self.waiting and not self.stop:
            for record in self.executor.run(self.work, self._tasks(), ahead):
                ended = self._fail_after_kills(record) if record.kills else record
                if ended is not None:
                    self.take(ended)
                    yield ended

    def _tasks(self) -> Iterator[Task]:
        """The batches that wait, a task at a time.

        A batch that was with a killed worker may be the culprit: half of those that were so most
        often go alone.
        """
        strikes = max(self._strikes[number] for number in self.waiting)
        if strikes:
            suspects = [number for number in self.waiting if self._strikes[number] == strikes]
            yield self._task(suspects[: (len(suspects) + 1) // 2])
            return
        numbers, start = list(self.waiting), 0
        left = self.cost - self.cost_done
        while start < len(numbers) and not self.stop:
            if self._alike and self._enough == math.inf:
                numbers[start:] = self._from_elsewhere(numbers[:start], numbers[start:])
            finished = len(self._costs) - len(self.waiting)
            coming = [self._costs[number] for number in numbers[start : start + MOST_BATCHES]]
            end = start + task_size(coming, left, self.executor.jobs, self.speed, finished)
            left -= sum(coming[: end - start])
            yield self._task(numbers[start:end])
            start = end

    def _from_elsewhere(self, handed_out: Sequence[int], rest: Sequence[int]) -> list[int]:
        """The rest of the batches, some from anywhere first: an early region may fail by itself."""
        chosen = random.Random(0).sample(rest, min(ELSEWHERE, len(rest)))
        early = [number for number in (*handed_out, *chosen) if number in self.waiting]
        waiting = sum(len(self.waiting[number]) for number in early)
        self._enough = self.summary.failed.total() + waiting
        return [*chosen, *(number for number in rest if number not in chosen)]

    def _task(self, numbers: Sequence[int]) -> Task:
        return {number: self.waiting[number] for number in numbers}

    def _fail_after_kills(self, lost: TaskRecord) -> TaskRecord | None:
        """Count a kill against the batches in flight; fail one that had its chances alone."""
        self._losses += 1
        self.summary.restarts += lost.kills
        if self._losses > MOST_LOSSES:
            raise UserError(
                f"Workers were killed {self.summary.restarts} times; is memory short? Fewer "
                f"jobs need less. {KEPT}",
                exit_code=1,
            )
        self._strikes.update(lost.batches)
        if len(lost.batches) != 1 or self._strikes[lost.batches[0]] < CHANCES:
            return None
        cells = self.waiting[lost.batches[0]]
        failures = [CellResult(cell, reason="worker killed") for cell in cells]
        record = record_of(self.work.study, lost.batches, failures)
        return replace(record, is_cold=True)  # its time says nothing of others
