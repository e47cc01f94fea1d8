"""Executors of tasks, and the one for this machine: worker processes or threads of joblib.

Tasks go out and records with their rows come back; this process writes them.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, Self

import joblib
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.backend.process import LokyProcess
from joblib.externals.loky.backend.utils import kill_process_tree
from joblib.externals.loky.process_executor import TerminatedWorkerError

from overfit_cli.core.errors import UserError
from overfit_cli.core.processes import ignoring_interrupts, safe_path, start_worker
from overfit_cli.core.text import plural
from overfit_cli.core.training import Device
from overfit_cli.sweeps.leftovers import clear_leftovers, quiet_tracker
from overfit_cli.sweeps.worker import (
    Task,
    TaskRecord,
    Work,
    numbers_of,
    pickled_work,
    run_task,
)

GRACE = 60.0
"""The seconds beyond the time limit after which a silent task counts as one with a killed worker.

A worker ends a cell by itself, unless it is frozen or in compiled code.
"""

SECONDS_BETWEEN_LOOKS = 1.0


class Deadlines:
    """The times at which tasks in flight are lost, if a limit on the time of cells is set.

    Tasks run in the order in which they are handed out, one per job. Time in which this process
    is stopped, as by Ctrl-Z, does not count.
    """

    def __init__(self, limit: float | None) -> None:
        self._limit = limit
        self._parts: dict[tuple[int, ...], int] = {}
        self._ends: dict[tuple[int, ...], float] = {}
        self._clock, self._seen = 0.0, time.monotonic()

    def add(self, task: Task) -> None:
        """Take in a task that is handed out.

        A batch may be split, down to single cells, and each of its parts may take as long as a
        cell.
        """
        self._parts[numbers_of(task)] = sum(2 * len(batch) - 1 for _, batch in task)

    def remove(self, numbers: tuple[int, ...]) -> None:
        """Forget a task that has ended."""
        self._parts.pop(numbers, None)
        self._ends.pop(numbers, None)

    def overdue(self, jobs: int) -> list[tuple[int, ...]]:
        """Return the numbers of the tasks that are lost now."""
        if self._limit is None:
            return []
        now = time.monotonic()
        self._clock += min(now - self._seen, 2 * SECONDS_BETWEEN_LOOKS)
        self._seen = now
        for numbers, parts in list(self._parts.items())[:jobs]:
            self._ends.setdefault(numbers, self._clock + parts * self._limit + GRACE)
        return [numbers for numbers, end in list(self._ends.items()) if self._clock > end]


class Executor(ABC):
    """A set of workers that train tasks; a context, which leaves their cluster at the end.

    Args:
        location: what follows the number of jobs in a sentence, such as `on loky`.
        limit: of the tasks that run at a time; None for as many as there is room for.
    """

    name: str
    has_processes = True

    def __init__(self, location: str, limit: int | None, device: Device) -> None:
        self.location, self.limit, self.device = location, limit, device

    @abstractmethod
    def _count_slots(self) -> int:
        """Return how many tasks can run at a time now; 0 on a cluster without workers."""

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
        if not (slots := self._count_slots()):
            return f"{self.location}, which has no worker yet"
        return f"{plural(slots, 'job')} {self.location}".rstrip()

    def for_batches(self, batches: int) -> Executor:
        """Return the part of it that so many batches keep busy."""
        return self

    def check(self, work: Work) -> None:
        """Refuse a study that can't be pickled for the workers, before anything runs."""
        if not self.has_processes:
            return
        try:
            pickled_work(work)
        except UserError:
            raise
        except Exception as error:  # an object of the study may raise anything
            raise UserError(
                f"{work.study.name} can't be sent to workers ({type(error).__name__}: {error}); "
                "with one job on this machine, or with --backend threading, nothing is sent."
            ) from error

    @abstractmethod
    def run(self, work: Work, tasks: Iterable[Task], ahead: int) -> Iterator[TaskRecord]:
        """Hand out tasks, and give the record of each as it ends or its worker is killed.

        After a kill it may end, with tasks left that it hasn't taken.

        Args:
            ahead: how many tasks per job are handed out at a time.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:  # noqa: B027 (local workers have no cluster)
        """Leave the cluster, if there is one; it stays as it is."""


class Local(Executor):
    """The workers of this machine, as many as there are jobs."""

    def __init__(
        self, jobs: int, backend: Literal["loky", "threading"] = "loky", device: Device = "cpu"
    ) -> None:
        super().__init__(f"on {backend}" if jobs > 1 else "", jobs, device)
        self.name = self._backend = backend
        self._jobs = jobs
        self.has_processes = backend == "loky" and jobs > 1

    def _count_slots(self) -> int:
        return self._jobs

    def for_batches(self, batches: int) -> Local:
        """Return the workers that so many batches keep busy, at least two of several.

        A cell that kills its worker is then a failed row; in one job it would end this process.
        """
        return Local(min(self._jobs, max(2, batches)), self._backend, self.device)

    def run(self, work: Work, tasks: Iterable[Task], ahead: int) -> Iterator[TaskRecord]:
        """Hand out tasks as joblib takes them; a killed worker ends all that are handed out."""
        handed_out = set[int]()
        deadlines = Deadlines(work.execution.time_limit)

        def calls() -> Iterator[tuple[Callable[..., TaskRecord], Any, Any]]:
            for task in tasks:
                handed_out.update(numbers_of(task))
                deadlines.add(task)
                yield joblib.delayed(run_task)(work, task)

        limits, start = {}, {}
        if self.has_processes:
            limits = {"inner_max_num_threads": 1}
            start = {"initializer": start_worker, "initargs": (os.getpid(),)}
            clear_leftovers()
            quiet_tracker()
        with (
            joblib.parallel_config(backend=self._backend, **limits),
            safe_path(),
            self._killing_overdue(deadlines) as overdue,
        ):
            parallel = joblib.Parallel(
                n_jobs=self._jobs,
                return_as="generator_unordered",
                batch_size=1,
                pre_dispatch=ahead * self._jobs,
                **start,
            )
            # Workers start inside this call and inherit what it does with Ctrl-C: only this
            # process answers it.
            with ignoring_interrupts():
                records = parallel(calls())
            try:
                for record in records:
                    handed_out.difference_update(record.batches)
                    deadlines.remove(record.batches)
                    yield record
            except TerminatedWorkerError:
                yield TaskRecord(tuple(sorted(overdue or handed_out)), kills=1)
            except GeneratorExit:
                # Ctrl-C came while a record was dealt with. joblib ends its workers; it would
                # advise on the tasks that it cancels. Threads that train may reset the filters of
                # warnings meanwhile, and where warnings are errors it would be raised.
                with contextlib.suppress(UserWarning), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    records.close()
                raise
            except KeyboardInterrupt:
                if self.has_processes:
                    get_reusable_executor().shutdown(wait=False, kill_workers=True)
                raise

    @contextlib.contextmanager
    def _killing_overdue(self, deadlines: Deadlines) -> Iterator[list[int]]:
        """Kill the worker processes when a task is overdue; give the numbers of its batches."""
        overdue, ended = list[int](), threading.Event()

        def watch() -> None:
            while not overdue and not ended.wait(SECONDS_BETWEEN_LOOKS):
                overdue.extend(number for task in deadlines.overdue(self._jobs) for number in task)
            for process in multiprocessing.active_children() if overdue else ():
                if isinstance(process, LokyProcess):
                    kill_process_tree(process)

        if self.has_processes:
            threading.Thread(target=watch, daemon=True).start()
        try:
            yield overdue
        finally:
            ended.set()
