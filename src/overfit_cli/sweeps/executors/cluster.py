"""What all clusters share: tasks that travel, and workers that come and go."""

from __future__ import annotations

import contextlib
import sys
import time
import uuid
from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from overfit_cli import __version__
from overfit_cli.errors import UserError
from overfit_cli.files import TEMPORARY_PREFIX
from overfit_cli.sweeps.executors.executor import Event, Executor, Lost, Staffed
from overfit_cli.sweeps.executors.look import Asked, Seen
from overfit_cli.sweeps.executors.remote import Parcel, parcel_of
from overfit_cli.sweeps.tasks import Task
from overfit_cli.sweeps.worker import TaskRecord, Work
from overfit_cli.training import Device
from overfit_cli.words import plural

Handle = TypeVar("Handle")

SECONDS_BETWEEN_COUNTS = 1.0
"""How often the workers are counted."""

MOST_NAMED = 3


class Cluster(Executor, Generic[Handle]):
    """Workers of a cluster that somebody else runs.

    Args:
        address: where its scheduler answers.
        most: how many tasks to run at a time at most; None for as many as there is room for.
        device: what cells train on.
    """

    flag: str
    """The option that names the address."""

    def __init__(self, address: str, most: int | None, device: Device) -> None:
        self.address = address
        self.device = device
        self._most = most
        self._seeing: Counter[bool] = Counter()

    @property
    def jobs(self) -> int:
        """How many tasks run at a time now."""
        return max(1, self._staff().jobs)

    @property
    def jobs_asked(self) -> int:
        """How many tasks were asked for; without a number as many as run now."""
        return self._most or self.jobs

    @property
    def in_words(self) -> str:
        """How many jobs, where, and who writes the rows."""
        jobs, where = self._staff().jobs, f"on {self.name} at {self.address}"
        if not jobs:
            return f"{where}, which has no {self.workers_are} yet"
        return f"{plural(jobs, 'job')} {where}{self._who_writes()}"

    def _who_writes(self) -> str:
        """Who writes the rows, once that is known."""
        seeing, blind = self._seeing[True], self._seeing[False]
        if seeing and blind:
            return (
                f", where {seeing} of {seeing + blind} {self.workers_are}s share the disk; the "
                "rows of the others are written by this process"
            )
        if blind:
            return (
                f", whose {self.workers_are}s share no disk with this process, which writes their "
                "rows"
            )
        return f", whose {self.workers_are}s write their rows themselves" if seeing else ""

    def check(self, work: Work) -> None:
        """Refuse a study that can't travel, and workers that can't train it."""
        with _token_in(work.directory) as token:
            try:
                parcel_of(work, token.path)
            except UserError:
                raise
            except Exception as error:  # whatever is in it may raise what it likes
                raise UserError(
                    f"{work.study.name} can't be sent to workers ({type(error).__name__}: {error})."
                ) from error
            module = type(work.study).__module__
            asked = Asked(
                __version__, sys.version_info[:2], module, work.execution.device, str(token.path)
            )
            looks = self._look(asked)
        self._seeing = Counter(sees for _, sees in looks.values())
        wrong = [f"{worker} {what}" for worker, (what, _) in looks.items() if what]
        if wrong:
            others = len(wrong) - MOST_NAMED
            more = f"; so it is with {plural(others, 'other')}" if others > 0 else ""
            raise UserError(
                f"{self.flag} {self.address}: {'; '.join(wrong[:MOST_NAMED])}{more}. Workers need "
                f"Python {sys.version_info.major}.{sys.version_info.minor} and overfit "
                f"{__version__}."
            )

    def run(self, work: Work, tasks: Iterable[Task], ahead: int) -> Iterator[Event]:
        """Hand out tasks while there is room, and give their records; see `Executor.run`."""
        with _token_in(work.directory) as token:
            parcel, waiting = parcel_of(work, token.path), iter(tasks)
            out: dict[Handle, tuple[int, ...]] = {}
            staff, counts_again = Staffed(-1, 0), 0.0
            try:
                while True:
                    if time.monotonic() >= counts_again:
                        counts_again = time.monotonic() + SECONDS_BETWEEN_COUNTS
                        token.keep()
                        if staff != (staff := self._staff()):
                            yield staff
                    most = self._most or ahead * max(1, staff.jobs)
                    while len(out) < most and (task := next(waiting, None)):
                        out[self._submit(parcel, task)] = tuple(number for number, _ in task)
                    if not out:
                        return
                    for handle in self._finished(out, SECONDS_BETWEEN_COUNTS):
                        yield self._record(handle, out.pop(handle))
            finally:
                self._take_back(out)

    def _gone(self) -> UserError:
        """The error of a cluster that doesn't answer any more."""
        return UserError(
            f"{self.flag} {self.address}: the cluster doesn't answer any more. What is finished is "
            "kept, and the same command goes on from there.",
            exit_code=1,
        )

    def _unable(self, error: BaseException) -> UserError:
        """The error of a worker that can't take tasks at all, such as one that joined late."""
        return UserError(
            f"{self.flag} {self.address}: a worker can't run a task ({type(error).__name__}: "
            f"{error}). What is finished is kept, and the same command goes on from there.",
            exit_code=1,
        )

    def _staff(self) -> Staffed:
        slots = self._slots()
        jobs = sum(slots)
        return Staffed(len(slots), jobs if self._most is None else min(jobs, self._most))

    @abstractmethod
    def _slots(self) -> Sequence[int]:
        """How many tasks each worker that is there can run at a time.

        Raises:
            UserError: if the cluster is gone.
        """

    @abstractmethod
    def _look(self, asked: Asked) -> Mapping[str, Seen]:
        """What is found on each worker, by its name."""

    @abstractmethod
    def _submit(self, parcel: Parcel, task: Task) -> Handle:
        """Hand a task out."""

    @abstractmethod
    def _finished(self, handles: Collection[Handle], within: float) -> list[Handle]:
        """Those that have ended, as soon as one has; none where none has in time.

        Raises:
            UserError: if the cluster is gone.
        """

    @abstractmethod
    def _record(self, handle: Handle, batches: tuple[int, ...]) -> TaskRecord | Lost:
        """The record of a task of these batches, which has ended; or that its worker was killed.

        Raises:
            UserError: if the cluster is gone, or a worker can't run tasks at all.
        """

    @abstractmethod
    def _take_back(self, handles: Collection[Handle]) -> None:
        """Take back what waits for a worker; what runs may end."""


@contextlib.contextmanager
def _token_in(directory: Path) -> Iterator[_Token]:
    """A token in a run directory, or in the nearest folder around it that there is."""
    folder = next(one for one in (directory, *directory.parents) if one.is_dir())
    token = _Token(folder / f"{TEMPORARY_PREFIX}seen-{uuid.uuid4().hex}")
    token.keep()
    try:
        yield token
    finally:
        with contextlib.suppress(OSError):
            token.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class _Token:
    """An empty file by which workers know that they see its folder; its name is nobody else's."""

    path: Path

    def keep(self) -> None:
        """Have it there: another sweep that puts the directory in order clears it away.

        Where it can't be written, nobody sees it, and this process writes the rows.
        """
        with contextlib.suppress(OSError):
            self.path.touch()
