"""Executors: joblib on this machine, dask and ray clusters.

The seam between a sweep and those who train it: tasks go out, records come back.

This machine's own workers: joblib's processes or threads.

A look at a worker of a cluster. It travels by value: the worker may have nothing of ours.

A process that trains tasks of several sweeps: what is global in it belongs to one at a time.

What travels to a worker that may share no disk with this process, and what it does there.

What all clusters share: tasks that travel, and workers that come and go.

A dask cluster that is there already, as an executor.

A ray cluster that is there already, as an executor.

The executor that `--backend` names.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import os
import pickle
import queue
import socket
import sys
import threading
import time
import uuid
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Self, TypeVar

import cloudpickle
import joblib
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from overfit_cli.core.files import DATA_VARIABLE, TEMPORARY_PREFIX, require_extra
from overfit_cli.core.processes import (
    delaying_interrupts,
    ignoring_interrupts,
    safe_path,
    start_worker,
)
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import VERSION, UserError, plural
from overfit_cli.core.training import Device, DeviceChoice, resolve_device
from overfit_cli.functions.function_study import FunctionStudy, Luggage, packed
from overfit_cli.sweeps.worker import Task, TaskRecord, Work, run_task, unable

if TYPE_CHECKING:
    from distributed import Future


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


LocalBackend = Literal["loky", "threading"]
Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A function with its arguments, as `joblib.delayed` gives it."""


class Local(Executor):
    """This machine's own workers.

    Args:
        jobs: how many tasks run at a time.
        backend: the joblib backend.
        device: what cells train on.
    """

    def __init__(self, jobs: int, backend: LocalBackend = "loky", device: Device = "cpu") -> None:
        self._jobs = jobs
        self.device = device
        self.name = self.backend = backend

    @property
    def jobs(self) -> int:
        """How many tasks run at a time."""
        return self._jobs

    @property
    def in_words(self) -> str:
        """How many jobs, and on which backend where there are several."""
        return plural(self.jobs, "job") + (f" on {self.name}" if self.jobs > 1 else "")

    @property
    def has_processes(self) -> bool:
        """Whether there are worker processes."""
        return self.name == "loky" and self.jobs > 1

    def for_batches(self, batches: int) -> Local:
        """Return those of these workers that so many batches keep busy.

        At least two where two were asked for: a cell that kills its worker is then a failed row,
        and in one job would be the end of this process.
        """
        return Local(min(self.jobs, max(2, batches)), self.backend, self.device)

    def check(self, work: Work) -> None:
        """Refuse a study that worker processes can't be sent, where there are any."""
        if not self.has_processes:
            return
        try:
            cloudpickle.dumps(work.study)
        except Exception as error:  # whatever is in it may raise what it likes
            raise UserError(
                f"{work.study.name} can't be sent to worker processes ({type(error).__name__}: "
                f"{error}); --jobs 1 and --backend threading need none."
            ) from error

    def run(self, work: Work, tasks: Iterable[Task], ahead: int) -> Iterator[TaskRecord | Lost]:
        """Hand out tasks and give their records; a killed worker ends all that are handed out."""
        handed_out = set[int]()

        def calls() -> Iterator[Call]:
            for task in tasks:
                handed_out.update(number for number, _ in task)
                yield joblib.delayed(run_task)(work, task)

        try:
            for record in in_parallel(self, calls(), ahead):
                handed_out.difference_update(record.batches)
                yield record
        except TerminatedWorkerError:
            yield Lost(tuple(sorted(handed_out)))


def jobs_on(device: Device, asked: int) -> int:
    """Return how many cells to train at a time; -1 is one per core.

    On a GPU that is one: a batch fills it.
    """
    if device == "cuda" and asked < 0:
        return 1
    return max(1, int(joblib.effective_n_jobs(asked)))


def in_parallel(local: Local, calls: Iterable[Call], ahead: int) -> Iterator[Any]:
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


Seen = tuple[str, bool]
"""The end of a sentence about what keeps a worker from training, empty where nothing does; and
whether it sees the file."""


class Asked(NamedTuple):
    """What a worker must have.

    Attributes:
        version: of this package, which it must have too.
        python: the version of Python, which must be the same: functions travel as byte code.
        module: the module of the study, which it must be able to import.
        device: what it must train on.
        token: the path of a file that it may see.
    """

    version: str
    python: tuple[int, int]
    module: str
    device: str
    token: str


def traveller(asked: Asked) -> Callable[[], Seen]:
    """Return a function that looks at the process in which it is called.

    It needs Python and cloudpickle there, and nothing of this package.
    """
    this_module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(this_module)
    try:
        pickled = cloudpickle.dumps(functools.partial(look, asked))
    finally:
        cloudpickle.unregister_pickle_by_value(this_module)

    def look_there() -> Seen:
        found: Seen = pickle.loads(pickled)()
        return found

    return look_there


def look(asked: Asked) -> Seen:
    """Return what keeps this process from training, and whether it sees the file."""
    return _problem(asked), Path(asked.token).exists()


def _problem(asked: Asked) -> str:
    if sys.version_info[:2] != asked.python:
        found, wanted = (".".join(map(str, one)) for one in (sys.version_info[:2], asked.python))
        return f"has Python {found}, and this is {wanted}"
    try:
        installed = importlib.import_module("overfit_cli").VERSION
    except Exception as error:  # whatever a module raises
        return f"can't import overfit-cli ({type(error).__name__}: {error})"
    if installed != asked.version:
        return f"has overfit {installed}, and this is {asked.version}"
    try:
        importlib.import_module(asked.module)
    except Exception as error:  # whatever a module raises
        return f"can't import {asked.module} ({type(error).__name__}: {error})"
    if asked.device == "cuda" and not importlib.import_module("torch").cuda.is_available():
        return "has no CUDA device"
    return ""


class Stage:
    """Sets a process up for one sweep at a time.

    Threads that train tasks of the same sweep go on side by side. A task of another one waits until
    they have ended.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sweep: Hashable = None
        self._acting = 0

    @contextlib.contextmanager
    def set_for(self, sweep: Hashable, prepare: Callable[[], None]) -> Iterator[None]:
        """Be set up for a sweep while inside.

        Args:
            sweep: which; equal ones share what is set up.
            prepare: sets the process up, when it wasn't for this sweep.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._acting or self._sweep == sweep)
            if self._sweep != sweep:
                self._sweep = None  # where preparing fails
                prepare()
                self._sweep = sweep
            self._acting += 1
        try:
            yield
        finally:
            with self._changed:
                self._acting -= 1
                self._changed.notify_all()


@dataclass(frozen=True)
class Parcel:
    """What all tasks of a sweep share, as it travels.

    Attributes:
        version: of this package.
        work: pickled; a function's files travel along.
        token: a file in the run directory, by which a worker knows that it sees the directory.
        data: the data folder; empty where none was named.
    """

    version: str
    work: bytes
    token: str
    data: str


def parcel_of(work: Work, token: Path) -> Parcel:
    """Return a sweep's work as it travels.

    Raises:
        Exception: whatever pickling something in the study raises.
    """
    study = packed(work.study) if isinstance(work.study, FunctionStudy) else work.study
    pickled = cloudpickle.dumps((study, work.directory, work.execution, work.data))
    return Parcel(VERSION, pickled, str(token), os.environ.get(DATA_VARIABLE, ""))


def run_there(parcel: Parcel, task: Task) -> TaskRecord:
    """Train a task in this process; the record carries the rows if the directory isn't seen here.

    A worker that joined late may have another version of this package.
    """
    if parcel.version != VERSION:
        return unable(task, f"A worker has overfit {VERSION}, and this is {parcel.version}.")
    with _STAGE.set_for(parcel, lambda: _prepare(parcel)):
        work = _opened(parcel)
        if problem := _problem_with_data(work, task):
            return unable(task, problem)
        return run_task(work, task, writes=Path(parcel.token).exists())


_STAGE = Stage()
_OWN_DATA = os.environ.get(DATA_VARIABLE, "")
"""Where this process has data, if nobody says so."""


def _prepare(parcel: Parcel) -> None:
    """Set this process up for a sweep: its data folder, and where its function imports from."""
    there = parcel.data and Path(parcel.data).exists()
    os.environ[DATA_VARIABLE] = parcel.data if there else _OWN_DATA
    if not os.environ[DATA_VARIABLE]:
        del os.environ[DATA_VARIABLE]
    study, *_ = cloudpickle.loads(parcel.work)
    if isinstance(study, Luggage):
        study.import_from()
    _opened(parcel)  # here, where no other thread does it too


@functools.lru_cache(maxsize=4)
def _opened(parcel: Parcel) -> Work:
    study, directory, execution, data = cloudpickle.loads(parcel.work)
    opened: AnyStudy = study.unpacked() if isinstance(study, Luggage) else study
    return Work(opened, directory, execution, data)


def _problem_with_data(work: Work, task: Task) -> str:
    """How the data here isn't what the sweep has read; empty where it is, or where it reads none.

    A worker keeps what it has read, so it notices too that a file has changed since.
    """
    if not work.data:
        return ""
    try:
        found = work.study.prepare([cell for _, batch in task for cell in batch])
    except UserError as error:
        return f"A worker lacks what {work.study.name} needs: {error}"
    for name, fingerprint in found.items():
        if work.data.get(name) != fingerprint:
            return (
                f"A worker has other data than this process: its {name} held something else when "
                "it was read."
            )
    return ""


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
                VERSION, sys.version_info[:2], module, work.execution.device, str(token.path)
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
                f"{VERSION}."
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


SECONDS_TO_CONNECT = 10
SECONDS_TO_LOOK = 60


class Dask(Cluster["Future"]):
    """The workers of a dask scheduler.

    Dask itself runs a task again whose worker was lost, up to `allowed-failures` times (3).

    Args:
        address: the scheduler's, such as `tcp://127.0.0.1:8786`.
        most: how many tasks to run at a time at most; None for as many as workers have threads.
        device: what cells train on.

    Raises:
        UserError: if there is no scheduler.
    """

    name, flag = "dask", "--scheduler"

    def __init__(self, address: str, most: int | None = None, device: Device = "cpu") -> None:
        super().__init__(address, most, device)
        require_extra("distributed", "dask", "--backend dask")
        from distributed import Client

        for name in ("distributed", "distributed.client"):
            # A connection that is lost is said in our own words.
            logging.getLogger(name).setLevel(logging.CRITICAL)
        try:
            self._client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
        except (OSError, ValueError, RuntimeError, TypeError) as error:
            raise UserError(
                f"--scheduler {address}: no dask scheduler answers there ({type(error).__name__}); "
                "`dask scheduler` starts one and says its address."
            ) from error
        self._ended: queue.SimpleQueue[Future] = queue.SimpleQueue()

    def close(self) -> None:
        """Leave the cluster; it stays as it is."""
        with contextlib.suppress(Exception):  # the scheduler may be gone
            self._client.close()

    def _slots(self) -> list[int]:
        try:
            # Ctrl-C in the midst of a call would have dask log an error of its own.
            with delaying_interrupts():
                threads: dict[str, int] = self._client.sync(
                    self._client.scheduler.ncores, workers=None, callback_timeout=SECONDS_TO_CONNECT
                )
        except Exception as error:  # of many kinds, by what the connection was doing
            raise self._gone() from error
        if self._client.status != "running":  # what it says is old then
            raise self._gone()
        return list(threads.values())

    def _look(self, asked: Asked) -> Mapping[str, Seen]:
        try:
            found: dict[str, Any] = self._client.run(
                traveller(asked), on_error="return", callback_timeout=SECONDS_TO_LOOK
            )
        except TimeoutError as error:
            raise UserError(
                f"--scheduler {self.address}: not all of its workers answer within "
                f"{SECONDS_TO_LOOK} s."
            ) from error
        return {
            worker: (f"fails ({one})", False) if isinstance(one, Exception) else one
            for worker, one in found.items()
        }

    def _submit(self, parcel: Parcel, task: Task) -> Future:
        future: Future = self._client.submit(run_there, parcel, task, pure=False)
        future.add_done_callback(self._ended.put)
        return future

    def _finished(self, handles: Collection[Future], within: float) -> list[Future]:
        try:
            ended = self._ended.get(timeout=within)
        except queue.Empty:
            return []
        return [ended] if ended in handles else []

    def _record(self, handle: Future, batches: tuple[int, ...]) -> TaskRecord | Lost:
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        try:
            with delaying_interrupts():
                record: TaskRecord = handle.result(timeout=SECONDS_TO_CONNECT)
        except KilledWorker as error:  # dask has tried it again so often
            return Lost(batches, kills=1 + error.allowed_failures)
        except (FutureCancelledError, OSError) as error:
            raise self._gone() from error
        except Exception as error:
            raise self._unable(error) from error
        return record

    def _take_back(self, handles: Collection[Future]) -> None:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            self._client.cancel(list(handles))


class Ray(Cluster[Any]):
    """The nodes of a ray cluster that have CPUs; a task takes one of these.

    Where this process is connected to it already, that connection is used, and stays.

    Args:
        address: the head's, such as `127.0.0.1:6379`, or `auto` for the one on this machine.
        most: how many tasks to run at a time at most; None for as many as there are CPUs.
        device: what cells train on.

    Raises:
        UserError: if there is no cluster, or this process is connected to another one.
    """

    name, flag, workers_are = "ray", "--address", "node"

    def __init__(self, address: str, most: int | None = None, device: Device = "cpu") -> None:
        super().__init__(address, most, device)
        require_extra("ray", "ray", "--backend ray")
        import ray

        self._ray: Any = ray
        self._connected_here = not ray.is_initialized()
        if self._connected_here:
            self._connect()
        self._head: str = ray.get_runtime_context().gcs_address
        if not self._connected_here and address not in ("auto", self._head):
            raise UserError(
                f"--address {address}: this process is connected to the ray cluster at "
                f"{self._head}; name that one or auto, or call ray.shutdown()."
            )
        self._run = ray.remote(num_cpus=1, max_retries=0)(run_there)

    def close(self) -> None:
        """Leave the cluster; it stays as it is."""
        if self._connected_here:
            self._ray.shutdown()

    def _connect(self) -> None:
        """Connect this process to the cluster."""
        if self.address != "auto":
            self._check_address()
        try:
            self._ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UserError(
                f"--address {self.address}: ray can't connect to a cluster there "
                f"({type(error).__name__}); a cluster with tokens needs RAY_AUTH_MODE=token."
            ) from error

    def _check_address(self) -> None:
        """Refuse an address where nobody listens: ray itself would try for minutes."""
        try:
            _knock(self.address)
        except (OSError, ValueError) as error:
            raise UserError(
                f"--address {self.address}: no ray cluster answers there "
                f"({type(error).__name__}); it takes HOST:PORT or auto, and `ray start --head` "
                "starts a cluster and says its address."
            ) from error

    def _slots(self) -> list[int]:
        try:
            _knock(self._head)
        except OSError as error:  # ray itself would wait for it, and then end this process
            raise self._gone() from error
        return [_cpus(node) for node in self._nodes()]

    def _nodes(self) -> list[Any]:
        """The nodes that can train."""
        return [node for node in self._ray.nodes() if node["Alive"] and _cpus(node)]

    def _look(self, asked: Asked) -> Mapping[str, Seen]:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        task = self._ray.remote(num_cpus=0, max_retries=0)(traveller(asked))
        looks = {
            node["NodeName"]: task.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            ).remote()
            for node in self._nodes()
        }
        return {name: self._seen(one) for name, one in looks.items()}

    def _seen(self, reference: Any) -> Seen:
        """What a node says of itself."""
        try:
            found: Seen = self._ray.get(reference, timeout=SECONDS_TO_LOOK)
        except Exception as error:  # whatever a node does
            return f"fails ({type(error).__name__})", False
        return found

    def _submit(self, parcel: Parcel, task: Task) -> Any:
        return self._run.remote(parcel, task)

    def _finished(self, handles: Collection[Any], within: float) -> list[Any]:
        done, _ = self._ray.wait(list(handles), timeout=within)
        return list(done)

    def _record(self, handle: Any, batches: tuple[int, ...]) -> TaskRecord | Lost:
        from ray.exceptions import RayError, RayTaskError

        try:
            record: TaskRecord = self._ray.get(handle)
        except RayTaskError as error:
            raise self._unable(error.cause) from error
        except RayError:  # its worker or its node is gone
            return Lost(batches)
        return record

    def _take_back(self, handles: Collection[Any]) -> None:
        for handle in handles:
            with contextlib.suppress(Exception):  # the cluster may be gone
                self._ray.cancel(handle)


def _cpus(node: Any) -> int:
    """How many tasks a node can run at a time."""
    return int(node["Resources"].get("CPU", 0))


def _knock(address: str) -> None:
    """Connect to HOST:PORT and leave again.

    Raises:
        OSError: if nobody listens there.
        ValueError: if it isn't such an address.
    """
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=SECONDS_TO_CONNECT):
        pass


Backend = Literal["loky", "threading", "dask", "ray"]
ADDRESSES = {"dask": "--scheduler", "ray": "--address"}
"""The option that names the cluster of a backend that has one."""


def executor_of(
    backend: Backend, jobs: int, device: DeviceChoice, addresses: Mapping[str, str | None]
) -> Executor:
    """Return the executor of a backend, connected to its cluster where it has one.

    Args:
        backend: which.
        jobs: how many tasks to run at a time, on a cluster at most; -1 for as many as there is
            room for.
        device: what cells train on. `auto` is this machine's GPU where it has one, and the
            processor on a cluster.
        addresses: by option; None for those that aren't given.

    Raises:
        UserError: if an address is missing, or of another backend, or nothing answers there, or
            this machine should have a GPU and has none.
    """
    own = ADDRESSES.get(backend)
    for one, flag in ADDRESSES.items():
        if flag != own and addresses.get(flag) is not None:
            raise UserError(f"{flag} {addresses[flag]}: it requires --backend {one}.")
    if own is None:
        here = resolve_device(device)
        return Local(jobs_on(here, jobs), "loky" if backend == "loky" else "threading", here)
    address = addresses.get(own)
    if not address:
        raise UserError(f"--backend {backend}: it requires {own} ADDRESS, the cluster's.")
    most, there = None if jobs < 0 else jobs, resolve_device(device, here=False)
    if backend == "dask":
        return Dask(address, most, there)

    return Ray(address, most, there)
