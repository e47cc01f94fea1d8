"""The run of a plan: tasks for workers that write their own parts, restarts, interruption."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from overfit_cli.errors import UserError
from overfit_cli.study import AnyStudy, CellResult
from overfit_cli.sweeps.interrupts import answering_interrupts
from overfit_cli.sweeps.plan import Plan
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.tasks import MOST_BATCHES, Batch, TaskSize
from overfit_cli.sweeps.worker import TaskRecord, run_task, write_results
from overfit_cli.sweeps.workers import Workforce, in_parallel
from overfit_cli.training import Execution, training_conditions

CHANCES = 3
"""How often a batch may be in flight when a worker is killed before its cells count as failed."""

MOST_RESTARTS = 30
"""How often workers are started again before the sweep gives up."""


@dataclass
class Summary:
    """What a sweep did.

    Attributes:
        trained: cells done by this run.
        failed: reasons of the cells that failed in this run, counted.
        restarts: how often workers were killed and started again.
        seconds: wall time.
        left: how many cells weren't trained because another one had failed.
    """

    trained: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    seconds: float = 0.0
    left: int = 0

    def add(self, other: Summary) -> None:
        """Count in what another run did."""
        self.trained += other.trained
        self.failed += other.failed
        self.restarts += other.restarts
        self.seconds += other.seconds
        self.left += other.left


def execute(
    plan: Plan,
    directory: RunDirectory,
    execution: Execution,
    workforce: Workforce,
    *,
    on_record: Callable[[TaskRecord], None] = lambda record: None,
) -> Summary:
    """Run the plan's batches; what is finished is on disk when this returns or raises.

    Args:
        plan: what to run.
        directory: where to write; it is prepared.
        execution: device, logging, and whether the first failed cell ends it.
        workforce: jobs and backend.
        on_record: called in this process after each task.

    Raises:
        UserError: with exit code 1, if a part can't be written (a full disk), or if workers are
            killed over and over.
        KeyboardInterrupt: when interrupted; the workers are gone then.
    """
    began = time.monotonic()
    run = _Run(plan, directory, execution, workforce)
    problems, written = [], set[str]()
    with answering_interrupts(), training_conditions():
        for record in run.records():
            if record.problem:
                problems.append(record.problem)
                run.stop.set()
                continue
            written.update(record.parts)
            run.summary.trained += record.trained
            run.summary.failed.update(record.reasons)
            run.summary.seconds = time.monotonic() - began
            on_record(record)
            if execution.fail_fast and record.reasons:
                run.stop.set()
        with contextlib.suppress(OSError):  # cells that stand twice are no loss
            directory.finish(written, replaced=bool(plan.again))
    if problems:
        raise UserError(problems[0], exit_code=1)
    run.summary.left = plan.to_run - run.summary.trained - run.summary.failed.total()
    return run.summary


def check_sendable(study: AnyStudy, workforce: Workforce) -> None:
    """Refuse a study that worker processes can't be sent, where there are any.

    Raises:
        UserError: with the reason.
    """
    if not workforce.has_processes:
        return
    try:
        cloudpickle.dumps(study)
    except Exception as error:  # whatever is in it may raise what it likes
        raise UserError(
            f"{study.name} can't be sent to worker processes ({type(error).__name__}: {error}); "
            "--jobs 1 and --backend threading need none."
        ) from error


class _Run:
    """One sweep under way.

    Setting `stop` hands out no further task; those in flight end and are kept.
    """

    def __init__(
        self, plan: Plan, directory: RunDirectory, execution: Execution, workforce: Workforce
    ) -> None:
        self.summary = Summary()
        self.stop = threading.Event()
        self._study = plan.grid.study
        self._directory = directory.path.absolute()  # a cell may change the folder
        self._execution = execution
        self._workforce = workforce
        self._waiting: dict[int, Batch] = dict(enumerate(plan.batches))
        self._costs = [sum(self._study.cost(cell) for cell in batch) for batch in plan.batches]
        self._size = TaskSize(workforce.jobs)
        self._started: set[int] = set()
        self._strikes: Counter[int] = Counter()

    def records(self) -> Iterator[TaskRecord]:
        """Give a record for each task; after a killed worker go on with what is missing."""
        while self._waiting and not self.stop.is_set():
            # A batch that was in flight at a kill may be the culprit: half of those that were so
            # most often go alone.
            most = max(self._strikes[index] for index in self._waiting)
            suspects = [index for index in self._waiting if most and self._strikes[index] == most]
            half = suspects[: (len(suspects) + 1) // 2]
            try:
                # Tasks that wait for a worker couldn't be taken back.
                ahead = 1 if self._execution.fail_fast else 2
                tasks = [half] if half else self._tasks()
                for record in in_parallel(self._workforce, map(self._call, tasks), ahead):
                    for index in record.batches:
                        del self._waiting[index]
                    work = sum(self._costs[index] for index in record.batches)
                    self._size.learn(work, record.seconds)
                    yield record
            except TerminatedWorkerError:
                yield from self._after_a_kill()

    def _tasks(self) -> Iterator[list[int]]:
        """The batches that wait, by their numbers, a task at a time."""
        waiting, at = list(self._waiting), 0
        costs = [self._costs[index] for index in waiting]
        left = sum(costs)
        while at < len(waiting) and not self.stop.is_set():
            end = at + self._size.choose(costs[at : at + MOST_BATCHES], left)
            left -= sum(costs[at:end])
            yield waiting[at:end]
            at = end

    def _call(self, task: Sequence[int]) -> Any:
        """The call of a task, noting that it is handed out."""
        self._started.update(task)
        batches = [(index, self._waiting[index]) for index in task]
        return joblib.delayed(run_task)(self._study, batches, self._directory, self._execution)

    def _after_a_kill(self) -> Iterator[TaskRecord]:
        """Count the kill against the batches in flight; give up one that had its chances alone."""
        self.summary.restarts += 1
        if self.summary.restarts > MOST_RESTARTS:
            raise UserError(
                f"Workers were killed {self.summary.restarts} times; is memory short? Fewer "
                "--jobs need less. What is finished is kept, and the same command goes on from "
                "there.",
                exit_code=1,
            )
        in_flight = self._started & self._waiting.keys()
        self._started.clear()
        self._strikes.update(in_flight)
        if len(in_flight) == 1:
            [index] = in_flight
            if self._strikes[index] >= CHANCES:
                batch = self._waiting.pop(index)
                failures = [CellResult(cell, reason="worker killed") for cell in batch]
                yield write_results(self._study, [index], failures, self._directory)
