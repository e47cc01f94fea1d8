"""Executors of tasks, and the one for this machine: worker processes or threads of joblib.

Tasks go out and records with their rows come back; this process writes them.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self

import cloudpickle
import joblib
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from overfit_cli.core.errors import UserError
from overfit_cli.core.processes import ignoring_interrupts, safe_path, start_worker
from overfit_cli.core.text import plural
from overfit_cli.core.training import Device
from overfit_cli.sweeps.worker import Task, TaskRecord, Work, run_task


@dataclass(frozen=True)
class LostBatches:
    """Batches whose workers were killed; no record of them will come.

    Attributes:
        batches: their numbers.
        kills: how many workers were killed with them, one after another.
    """

    batches: tuple[int, ...]
    kills: int = 1


Event = TaskRecord | LostBatches


class Executor(ABC):
    """A set of workers that train tasks.

    It is a context, and closes its connection at the end.
    """

    name: str
    """The backend, as `--backend` names it."""
    device: Device
    """The device that cells train on."""

    @property
    @abstractmethod
    def jobs(self) -> int:
        """The number of tasks that run at a time; at least one."""

    @property
    def requested_jobs(self) -> int:
        """The number of tasks that it is to run at a time, even where workers are still missing."""
        return self.jobs

    @property
    @abstractmethod
    def description(self) -> str:
        """Its jobs and its name, for the plan: `2 jobs on loky`."""

    @property
    def has_processes(self) -> bool:
        """Whether cells are trained in other processes than this one."""
        return True

    def for_batches(self, batches: int) -> Executor:
        """Return the part of it that so many batches keep busy."""
        return self

    def check(self, work: Work) -> None:
        """Refuse a study that can't be pickled for the workers, before anything runs.

        Raises:
            UserError: with the reason.
        """
        if not self.has_processes:
            return
        try:
            self._pickle(work)
        except UserError:
            raise
        except Exception as error:  # an object of the study may raise anything
            raise UserError(
                f"{work.study.name} can't be sent to workers ({type(error).__name__}: {error}); "
                "one job on this machine and --backend threading send nothing."
            ) from error

    def _pickle(self, work: Work) -> None:
        cloudpickle.dumps(work.study)

    @abstractmethod
    def run(self, work: Work, tasks: Iterable[Task], ahead: int) -> Iterator[Event]:
        """Hand out tasks; give a record of each as it ends, and the batches of killed workers.

        It may end after workers were lost, with tasks left that it hasn't taken.

        Args:
            work: what all tasks share.
            tasks: taken as they are handed out.
            ahead: how many tasks per job are handed out at a time.

        Raises:
            UserError: with exit code 1, if the workers can't be reached any more.
            KeyboardInterrupt: when interrupted; tasks that wait for a worker are cancelled then.
        """

    def close(self) -> None:  # noqa: B027 (local workers have no connection)
        """Close its connection."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


LocalBackend = Literal["loky", "threading"]
Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A function with its arguments, as `joblib.delayed` gives it."""


class Local(Executor):
    """The workers of this machine.

    Args:
        jobs: the number of tasks that run at a time.
        backend: the joblib backend.
        device: the device that cells train on.
    """

    def __init__(self, jobs: int, backend: LocalBackend = "loky", device: Device = "cpu") -> None:
        self._jobs = jobs
        self.device = device
        self.name = self.backend = backend

    @property
    def jobs(self) -> int:
        """The number of tasks that run at a time."""
        return self._jobs

    @property
    def description(self) -> str:
        """Its jobs, and the backend where there are several."""
        return plural(self.jobs, "job") + (f" on {self.name}" if self.jobs > 1 else "")

    @property
    def has_processes(self) -> bool:
        """Whether there are worker processes."""
        return self.name == "loky" and self.jobs > 1

    def for_batches(self, batches: int) -> Local:
        """Return the workers that so many batches keep busy.

        At least two where two were asked for: a cell that kills its worker is then a failed row,
        and in one job would be the end of this process.
        """
        return Local(min(self.jobs, max(2, batches)), self.backend, self.device)

    def run(
        self, work: Work, tasks: Iterable[Task], ahead: int
    ) -> Iterator[TaskRecord | LostBatches]:
        """Hand out tasks and give their records; a killed worker ends all that are handed out."""
        handed_out = set[int]()

        def calls() -> Iterator[Call]:
            for task in tasks:
                handed_out.update(number for number, _ in task)
                yield joblib.delayed(run_task)(work, task)

        try:
            for record in run_parallel(self, calls(), ahead):
                handed_out.difference_update(record.batches)
                yield record
        except TerminatedWorkerError:
            yield LostBatches(tuple(sorted(handed_out)))


def jobs_on(device: Device, asked: int) -> int:
    """Return the number of cells to train at a time; -1 is one per core.

    On a GPU that is one: a batch fills it.
    """
    if device == "cuda" and asked < 0:
        return 1
    return max(1, int(joblib.effective_n_jobs(asked)))


def run_parallel(local: Local, calls: Iterable[Call], ahead: int) -> Iterator[Any]:
    """Make the calls and give their results as they come; no process outlives an interrupt.

    Args:
        local: jobs and backend.
        calls: taken as they are handed out.
        ahead: how many calls per job are handed out at a time.

    Raises:
        TerminatedWorkerError: when a worker process is killed.
        KeyboardInterrupt: when interrupted; worker processes are gone then.
    """
    limits, start = {}, {}
    if local.has_processes:
        limits = {"inner_max_num_threads": 1}
        start = {"initializer": start_worker, "initargs": (os.getpid(),)}
    with joblib.parallel_config(backend=local.backend, **limits), safe_path():
        parallel = joblib.Parallel(
            n_jobs=local.jobs,
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch=ahead * local.jobs,
            **start,
        )
        # Workers start inside this call and inherit what it does with Ctrl-C: only this process
        # answers it.
        with ignoring_interrupts():
            results = parallel(calls)
        try:
            for result in results:  # noqa: UP028 (`yield from` would pass GeneratorExit on)
                yield result
        except GeneratorExit:
            # Ctrl-C came while a result was dealt with. joblib ends its workers; it would advise
            # on the tasks that it cancels.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results.close()
            raise
        except KeyboardInterrupt:
            if local.has_processes:
                get_reusable_executor().shutdown(wait=False, kill_workers=True)
            raise
