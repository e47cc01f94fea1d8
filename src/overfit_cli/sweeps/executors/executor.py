"""The seam between a sweep and those who train it: tasks go out, records come back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from overfit_cli.sweeps.tasks import Task
from overfit_cli.sweeps.worker import TaskRecord, Work
from overfit_cli.training import Device


@dataclass(frozen=True)
class Lost:
    """Workers that were killed.

    Attributes:
        batches: the numbers of the batches that were with them; no record of these will come.
        kills: how many workers were killed with these batches, one after another.
    """

    batches: tuple[int, ...]
    kills: int = 1


@dataclass(frozen=True)
class Staffed:
    """How many workers a cluster has now.

    Attributes:
        workers: how many; 0 where none is there yet, or none is left.
        jobs: how many tasks run on them at a time.
    """

    workers: int
    jobs: int


Event = TaskRecord | Lost | Staffed


class Executor(ABC):
    """Who trains tasks, and where.

    It is a context: what it holds on to, such as a connection, is given up at its end.
    """

    name: str
    """As `--backend` names it."""
    device: Device
    """What cells train on."""
    workers_are: str = "worker"
    """What those who train are called: a worker, or a node of a cluster."""

    @property
    @abstractmethod
    def jobs(self) -> int:
        """How many tasks run at a time; at least one."""

    @property
    @abstractmethod
    def in_words(self) -> str:
        """Who trains, for the plan: `2 jobs on loky`."""

    @property
    def jobs_asked(self) -> int:
        """How many tasks it is to run at a time, whether its workers are there yet or not."""
        return self.jobs

    @property
    def has_processes(self) -> bool:
        """Whether cells are trained in other processes than this one."""
        return True

    def for_batches(self, batches: int) -> Executor:
        """Return the part of it that so many batches keep busy."""
        return self

    @abstractmethod
    def check(self, work: Work) -> None:
        """Refuse a sweep that the workers can't train, before anything runs.

        Raises:
            UserError: with the reason.
        """

    @abstractmethod
    def run(self, work: Work, tasks: Iterable[Task], ahead: int) -> Iterator[Event]:
        """Hand out tasks, and give a record of each as it ends; tell of those that never will.

        It may end after workers were lost, with tasks left that it hasn't taken.

        Args:
            work: what all tasks are of.
            tasks: taken as they are handed out.
            ahead: how many tasks per job are handed out at a time.

        Raises:
            UserError: with exit code 1, if the workers can't be reached any more.
            KeyboardInterrupt: when interrupted; what waits for a worker is taken back then.
        """

    def close(self) -> None:  # noqa: B027 (most have nothing to give up)
        """Give up what it holds on to."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
