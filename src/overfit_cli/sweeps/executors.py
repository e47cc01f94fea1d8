"""Executors of tasks, and the loop that hands them the tasks of a plan and writes their rows.

The executor of this machine has processes, threads, or this process alone. A killed worker costs
the restart of what was in flight. The cell that kills is found by halving.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import multiprocessing
import os
import queue
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import cloudpickle
import pandas as pd
from joblib.externals.loky.process_executor import BrokenProcessPool, ProcessPoolExecutor

from overfit_cli.core import errors, files, processes, text
from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.training import Device, training_conditions
from overfit_cli.sweeps import worker
from overfit_cli.sweeps.plan import Plan
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import Summary, Task, TaskRecord, Work

GRACE = 60.0
"""The seconds beyond the time limit after which a silent task counts as one with a killed worker.

A worker ends a cell by itself, unless it is frozen or in compiled code.
"""

SECONDS_BETWEEN_LOOKS = 1.0


class Deadlines:
    """The times at which tasks in flight are lost, if a limit on the time of cells is set.

    Time in which this process is stopped, as by Ctrl-Z, does not count.
    """

    def __init__(self, limit: float | None) -> None:
        self._limit = limit
        self._ends: dict[Any, float] = {}
        self._clock, self._seen = 0.0, time.monotonic()

    def overdue(self, in_flight: Mapping[Any, Task], jobs: int) -> Any:
        """Return the key of a task that is lost now; None without one.

        Tasks run in the order in which they were handed out, one per job. A batch may be split,
        down to single cells, and each of its parts may take as long as a cell.
        """
        now = time.monotonic()
        self._clock += min(now - self._seen, 2 * SECONDS_BETWEEN_LOOKS)
        self._seen = now
        if self._limit is None:
            return None
        for key in itertools.islice(in_flight, jobs):
            parts = sum(2 * len(batch) - 1 for batch in in_flight[key].values())
            self._ends.setdefault(key, self._clock + parts * self._limit + GRACE)
        return next((key for key in in_flight if self._clock > self._ends.get(key, math.inf)), None)


class Executor(contextlib.AbstractContextManager["Executor"], ABC):
    """A set of workers that train tasks; a context, which leaves their cluster at the end.

    Args:
        location: what follows the number of jobs in a sentence, such as `on loky`.
        limit: of the tasks that run at a time; None for as many as there is room for.
    """

    name: str
    has_processes = True
    is_pool = False
    """Whether a killed worker takes all tasks in flight with it, also those that wait for one."""

    def __init__(self, location: str, limit: int | None, device: Device) -> None:
        self.location, self.limit, self.device = location, limit, device

    @abstractmethod
    def _count_slots(self) -> int:
        """Return how many tasks can run at a time now; 0 on a cluster without workers."""

    @abstractmethod
    def _send(self, work: Work, pickled: bytes, task: Task) -> Future[TaskRecord]:
        """Hand out a task.

        Args:
            pickled: the work as it is sent to a process; empty where there is none.
        """

    @abstractmethod
    def _killed(self, error: Exception) -> int:
        """Return how many workers were killed where a task has ended so; 0 at another error."""

    @abstractmethod
    def _failure(self, error: Exception) -> Exception:
        """Return what a sweep ends with where a task has raised."""

    def _drop(self, futures: Sequence[Any]) -> None:
        """Take back tasks that wait for a worker; those that run may end."""
        for future in futures:
            future.cancel()

    @property
    def jobs(self) -> int:
        """The number of tasks that run at a time now; at least one."""
        return max(1, self._count_slots())

    @property
    def requested_jobs(self) -> int:
        """The limit of `jobs`, even where workers are missing; without one, `jobs`."""
        return self.limit or self.jobs

    @property
    def description(self) -> str:
        """Its jobs and their location, for the plan: `2 jobs on loky`."""
        return f"{text.plural(self._count_slots(), 'job')} {self.location}".rstrip()

    def for_batches(self, batches: int) -> Executor:
        """Return the part of it that so many batches keep busy."""
        return self

    def check(self, work: Work) -> None:
        """Refuse a study that can't be pickled for the workers, before anything runs."""
        try:
            if self.has_processes:
                cloudpickle.dumps(work)
        except Exception as error:  # an object of the study may raise anything
            cannot = f"{work.study.name} can't be sent to workers ({type(error).__name__}: {error})"
            here = "with one job on this machine, or with the backend threading, nothing is sent"
            raise errors.UserError(f"{cannot}; {here}.") from error

    def run(self, work: Work, tasks: Iterable[Task], ahead: int) -> Iterator[TaskRecord]:
        """Hand out tasks, and give the record of each as it ends or its worker is killed.

        After a kill it may end, with tasks left that it hasn't taken.

        Args:
            ahead: how many tasks per job are handed out at a time.
        """
        pickled, waiting = cloudpickle.dumps(work) if self.has_processes else b"", iter(tasks)
        in_flight: dict[Future[TaskRecord], Task] = {}
        ended = queue.SimpleQueue[Future[TaskRecord]]()
        deadlines = Deadlines(work.execution.time_limit)
        try:
            while True:
                room = ahead * self.jobs  # asked for in each round: it notices a lost cluster
                room = room if self.is_pool else min(room, self.limit or room)
                # What is handed out by half can't be taken back.
                with processes.delaying_interrupts():
                    while len(in_flight) < room and (task := next(waiting, None)):
                        future = self._send(work, pickled, task)
                        in_flight[future] = task
                        future.add_done_callback(ended.put)
                if not in_flight:
                    return
                late = deadlines.overdue(in_flight, self.jobs) if self.has_processes else None
                try:
                    future = late or ended.get(timeout=SECONDS_BETWEEN_LOOKS)
                except queue.Empty:
                    continue
                if future not in in_flight:  # it was lost
                    continue
                task = in_flight.pop(future)
                others = in_flight if self.is_pool else {}
                try:
                    record = TaskRecord(tuple(task), kills=1) if late else future.result()
                except Exception as error:
                    if not (kills := self._killed(error)):
                        raise self._failure(error) from error
                    lost = itertools.chain(task, *others.values())
                    record = TaskRecord(tuple(sorted(lost)), kills=kills)
                self._drop([late, *others] if late else [])
                yield record
                if record.kills and self.is_pool:
                    return
        finally:
            self._drop(list(in_flight))

    def __exit__(self, *error: object) -> None:
        """Leave the cluster, if there is one; it stays as it is."""


class Local(Executor):
    """The workers of this machine, as many as there are jobs; one job is this process itself."""

    def __init__(
        self, jobs: int, backend: Literal["loky", "threading"] = "loky", device: Device = "cpu"
    ) -> None:
        super().__init__(f"on {backend}" if jobs > 1 else "", jobs, device)
        self.name = self._backend = backend
        self._jobs = jobs
        self.has_processes = self.is_pool = backend == "loky" and jobs > 1

    def _count_slots(self) -> int:
        return self._jobs

    def for_batches(self, batches: int) -> Local:
        """Return the workers that so many batches keep busy, at least two of several.

        A cell that kills its worker is then a failed row; in one job it would end this process.
        """
        return Local(min(self._jobs, max(2, batches)), self._backend, self.device)

    def run(self, work: Work, tasks: Iterable[Task], ahead: int) -> Iterator[TaskRecord]:
        """Hand out tasks; see `Executor.run`. In one job they are trained in this thread."""
        if self._jobs > 1:
            return super().run(work, tasks, ahead)
        return (worker.run_task(work, task) for task in tasks)

    def _send(self, work: Work, pickled: bytes, task: Task) -> Future[TaskRecord]:
        if not self.has_processes:
            return in_thread(worker.run_task, work, task)
        with processes.starting_workers():
            self._workers, sent = _pool(self._jobs), Future[TaskRecord]()
            try:
                sent = self._workers.submit(worker.run_sent, pickled, cloudpickle.dumps(task))
            except BrokenProcessPool as error:
                sent.set_exception(error)
        return sent

    def _killed(self, error: Exception) -> int:
        if is_killed := isinstance(error, BrokenProcessPool):
            _pool.cache_clear()
        return int(is_killed)

    def _failure(self, error: Exception) -> Exception:
        is_users = isinstance(error, errors.UserError)
        return errors.UserError(f"{error} {worker.KEPT}", exit_code=1) if is_users else error

    def _drop(self, futures: Sequence[Any]) -> None:
        if futures and self.has_processes:
            _pool.cache_clear()
            # Its thread would look for what it has dropped; and that may wait for a half result,
            # of a worker that was killed or frozen, so that it never hands on what waits.
            with contextlib.suppress(queue.Empty):
                while True:
                    self._workers._work_ids.get_nowait()
            self._workers.shutdown(wait=False, kill_workers=True)


def train_again(
    executor: Executor, work: Work, cells: Iterable[Cell], *, anew: bool
) -> pd.DataFrame:
    """Train cells one by one, and return their rows without keeping them.

    Args:
        anew: whether by workers of this machine that have trained nothing yet.
    """
    if anew:
        _pool.cache_clear()
    with processes.answering_interrupts(), training_conditions():
        records = executor.run(work, ({number: [cell]} for number, cell in enumerate(cells)), 1)
        tables = [record.cells.to_pandas() for record in records if record.cells is not None]
    return pd.concat(tables) if tables else pd.DataFrame(columns=["key"])


_ONE_THREAD = ("BLIS_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_KEEPING_MEMORY = {f"MALLOC_{name}_": f"{2**32}" for name in ("MMAP_THRESHOLD", "TRIM_THRESHOLD")}
"""glibc hands large freed arrays back; to get pages anew takes as long as a small training."""
SECONDS_UNTIL_IDLE_WORKERS_END = 300


@functools.lru_cache(maxsize=1)
def _pool(jobs: int) -> ProcessPoolExecutor:
    """Worker processes, which wait for a next sweep for a while.

    They import nothing from the working folder.
    """
    method = multiprocessing.get_start_method(allow_none=True)
    return ProcessPoolExecutor(
        jobs,
        timeout=SECONDS_UNTIL_IDLE_WORKERS_END,
        initializer=processes.start_worker,
        initargs=(os.getpid(), os.environ.get(processes.SAFE_PATH), method),
        env=_KEEPING_MEMORY
        | dict.fromkeys((*_ONE_THREAD, "VECLIB_MAXIMUM_THREADS", processes.SAFE_PATH), "1"),
    )


def in_thread(function: Callable[..., Any], *given: Any, **named: Any) -> Future[Any]:
    """Call a function in a thread of its own, and return the future of what it returns."""
    future = Future[Any]()

    def call() -> None:
        try:
            future.set_result(function(*given, **named))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return future


# The loop over the tasks of a plan

CHANCES = 3
"""The killed workers with a batch in flight after which its cells count as failed."""

MOST_LOSSES = 30
"""The losses of batches with their workers after which the sweep gives up."""

MOST_ALIKE = 20
"""The first cells after which a sweep stops, if all of them had the same error."""

ELSEWHERE = 10
"""How many batches begin a new sweep of many, from places of the grid that are chosen at random."""


@contextlib.contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """Say in one sentence, inside, that a run directory can't be written to."""
    try:
        yield
    except OSError as error:
        problem = f"{path} can't be written to ({files.error_text(error)}). {worker.KEPT}"
        raise errors.UserError(problem, exit_code=1) from error


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
        self.summary, self.speed = summary or Summary(), worker.Speed()
        self.cells, self.failed, self.stop = 0, 0, False
        batches, count = dict(enumerate(plan.batches)), min(ELSEWHERE, len(plan.batches))
        # Before all of these have ended a sweep doesn't stop: an early region may fail by itself.
        self._first = {*random.Random(0).sample(range(len(batches)), count)}
        first = self._first if len(batches) > MOST_ALIKE and not plan.done else ()
        self.waiting = {number: batches[number] for number in first} | batches
        self._costs, self.cost, self.cost_done = plan.costs, sum(plan.costs), 0.0
        self._strikes: Counter[int] = Counter()
        self._losses = 0

    def execute(self, on_record: Callable[[TaskRecord], None] = lambda record: None) -> Summary:
        """Run the batches; what is finished is on disk when this returns or raises.

        Args:
            on_record: called in this process after each task.
        """
        summary, directory = self.summary, self.directory
        began = time.monotonic() - summary.seconds
        with (
            processes.answering_interrupts(),
            training_conditions(),
            contextlib.closing(self._records()) as records,
        ):
            for record in records:
                if record.cells is not None:
                    with processes.delaying_interrupts(), writing_to(directory.path):
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
        summary.trained += ended.count - len(ended.failed)
        summary.failed.update(ended.failed.values())
        summary.tracebacks = {**ended.tracebacks, **summary.tracebacks}
        cells = [cell for number in ended.batches for cell in self.waiting.pop(number)]
        if summary.example is None:
            raised = (cell for cell in cells if errors.is_exception(ended.failed.get(cell.key, "")))
            summary.example = next(raised, None)
        is_enough = summary.failed.total() >= MOST_ALIKE and self._first.isdisjoint(self.waiting)
        if is_enough and not (summary.trained or self.plan.done):
            first, *others = errors.count_alike(summary.failed)
            if not others and first.example.startswith("error: "):
                words = first.words.removeprefix("error: ")
                summary.stopped = f"the first {first.count} cells all failed alike: {words}"
        # Before its rows are written, as tasks are handed out meanwhile.
        self.stop |= bool(summary.stopped or (self.work.execution.fail_fast and ended.failed))

    def _records(self) -> Generator[TaskRecord]:
        """Give a record for each task; after a killed worker go on with what is missing."""
        # Tasks that wait for a worker couldn't be taken back.
        ahead = 1 if self.work.execution.fail_fast else 2
        while self.waiting and not self.stop:
            tasks = ({number: self.waiting[number] for number in one} for one in self._tasks())
            for record in self.executor.run(self.work, tasks, ahead):
                ended = self._fail_after_kills(record) if record.kills else record
                if ended is not None:
                    self.take(ended)
                    yield ended

    def _tasks(self) -> Iterator[Sequence[int]]:
        """The numbers of the batches that wait, a task at a time.

        A batch that was with a killed worker may be the culprit: half of those that were so most
        often go alone.
        """
        strikes = max(self._strikes[number] for number in self.waiting)
        if strikes:
            suspects = [number for number in self.waiting if self._strikes[number] == strikes]
            yield suspects[: (len(suspects) + 1) // 2]
            return
        numbers, start = list(self.waiting), 0
        left = self.cost - self.cost_done
        while start < len(numbers) and not self.stop:
            finished = len(self._costs) - len(self.waiting)
            coming = [self._costs[one] for one in numbers[start : start + worker.MOST_BATCHES]]
            end = start + self.speed.task_size(coming, left, self.executor.jobs, finished)
            left -= sum(coming[: end - start])
            yield numbers[start:end]
            start = end

    def _fail_after_kills(self, lost: TaskRecord) -> TaskRecord | None:
        """Count a kill against the batches in flight; fail one that had its chances alone."""
        self._losses += 1
        self.summary.restarts += lost.kills
        if self._losses > MOST_LOSSES:
            words = f"Workers were killed {self.summary.restarts} times; is memory short?"
            raise errors.UserError(f"{words} {worker.KEPT}", exit_code=1)
        self._strikes.update(lost.batches)
        if len(lost.batches) != 1 or self._strikes[lost.batches[0]] < CHANCES:
            return None
        cells = self.waiting[lost.batches[0]]
        failures = [CellResult(cell, reason="worker killed") for cell in cells]
        record = worker.record_of(self.work.study, lost.batches, failures)
        return replace(record, is_cold=True)  # its time says nothing of others
