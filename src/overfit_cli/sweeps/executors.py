"""Executors: joblib on this machine, a dask or a ray cluster.

Tasks go out and records with their rows come back; this process writes them. On a cluster a study
travels with the user's files that its function imports.

Dask is asked through its own client: joblib's dask backend never calls back for a task whose worker
was killed, and would wait for it for good.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import queue
import socket
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar

import cloudpickle
import joblib
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError

from overfit_cli.core.files import DATA_VARIABLE, require_extra
from overfit_cli.core.processes import (
    delaying_interrupts,
    ignoring_interrupts,
    safe_path,
    start_worker,
)
from overfit_cli.core.text import VERSION, BadValue, UserError, plural
from overfit_cli.core.training import Device, resolve_device
from overfit_cli.core.values import Backend, DeviceChoice
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


Event = TaskRecord | Lost


class Executor(ABC):
    """What trains tasks, and where.

    It is a context: what it holds on to, such as a connection, is given up at its end.
    """

    name: str
    """As `--backend` names it."""
    device: Device
    """What cells train on."""
    workers_are: str = "worker"
    """What its machines are called: a worker, or a node of a cluster."""

    @property
    @abstractmethod
    def jobs(self) -> int:
        """How many tasks run at a time; at least one."""

    @property
    @abstractmethod
    def in_words(self) -> str:
        """Its jobs and its name, for the plan: `2 jobs on loky`."""

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
        """Hand out tasks; give a record of each as it ends, and the batches of killed workers.

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


def worker_check(module: str, device: Device) -> Callable[[], str]:
    """Return a function that says what keeps its process from training; empty where nothing does.

    It travels by value and requires Python alone: the worker may have no overfit-cli.

    Args:
        module: of the study, which must be importable.
        device: what cells train on.
    """
    version, python = VERSION, sys.version_info[:2]

    def problem() -> str:
        import importlib
        import sys

        if sys.version_info[:2] != python:
            versions = (".".join(map(str, pair)) for pair in (sys.version_info[:2], python))
            return "has Python {}, and this is {}".format(*versions)
        for name in ("overfit_cli", module):
            try:
                imported = importlib.import_module(name)
                installed = imported.__version__ if name == "overfit_cli" else version
            except Exception as error:  # whatever a module raises
                shown = "overfit-cli" if name == "overfit_cli" else name
                return f"can't import {shown} ({type(error).__name__}: {error})"
            if installed != version:
                return f"has overfit {installed}, and this is {version}"
        if device == "cuda" and not importlib.import_module("torch").cuda.is_available():
            return "has no CUDA device"
        return ""

    return problem


def pickled_work(work: Work) -> bytes:
    """Return a sweep's work with its function's files and the path of its data, to be sent.

    Raises:
        Exception: whatever pickling something in the study raises.
    """
    folder = os.environ.get(DATA_VARIABLE, "")
    pickled: bytes = cloudpickle.dumps((work, folder))
    return pickled


def run_remotely(version: str, pickled: bytes, task: Task) -> TaskRecord:
    """Train a task in this process of a cluster.

    Args:
        version: of overfit in the process that sent it; a worker that joined late may have another.
        pickled: what `pickled_work` returned.
        task: its batches.
    """
    if version != VERSION:
        return unable(task, f"A worker has overfit {VERSION}, and this is {version}.")
    work, folder = _unpickled(pickled)
    os.environ[DATA_VARIABLE] = folder if folder and Path(folder).exists() else _OWN_DATA
    if not os.environ[DATA_VARIABLE]:
        del os.environ[DATA_VARIABLE]
    problem = _problem_with_data(work, task)
    return unable(task, problem) if problem else run_task(work, task)


_OWN_DATA = os.environ.get(DATA_VARIABLE, "")
"""The data folder of this process, for sweeps that name none."""


@functools.lru_cache(maxsize=4)
def _unpickled(pickled: bytes) -> tuple[Work, str]:
    unpickled: tuple[Work, str] = cloudpickle.loads(pickled)
    return unpickled


def _problem_with_data(work: Work, task: Task) -> str:
    """How the data here differs from what the sweep has read; empty where it doesn't.

    A worker keeps what it has read, so it notices too that a file has changed since.
    """
    if not work.data:
        return ""
    try:
        read = work.study.prepare([cell for _, batch in task for cell in batch])
    except UserError as error:
        return f"A worker lacks what {work.study.name} needs: {error}"
    for name, fingerprint in read.items():
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

    @property
    def jobs(self) -> int:
        """How many tasks run at a time now."""
        return max(1, self._jobs())

    @property
    def jobs_asked(self) -> int:
        """How many tasks were asked for; without a number as many as run now."""
        return self._most or self.jobs

    @property
    def in_words(self) -> str:
        """How many jobs, and where."""
        jobs, where = self._jobs(), f"on {self.name} at {self.address}"
        if not jobs:
            return f"{where}, which has no {self.workers_are} yet"
        return f"{plural(jobs, 'job')} {where}"

    def _jobs(self) -> int:
        """How many tasks run at a time; 0 where there is no worker."""
        slots = self._slots()
        return slots if self._most is None else min(slots, self._most)

    def check(self, work: Work) -> None:
        """Refuse a study that can't travel, and workers that can't train it."""
        try:
            pickled_work(work)
        except UserError:
            raise
        except Exception as error:  # whatever is in it may raise what it likes
            raise UserError(
                f"{work.study.name} can't be sent to workers ({type(error).__name__}: {error})."
            ) from error
        problems = self._on_workers(
            worker_check(type(work.study).__module__, work.execution.device)
        )
        wrong = [f"{worker} {problem}" for worker, problem in problems.items() if problem]
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
        pickled, waiting = pickled_work(work), iter(tasks)
        in_flight: dict[Handle, tuple[int, ...]] = {}
        jobs, count_at = 1, 0.0
        try:
            while True:
                if time.monotonic() >= count_at:
                    jobs, count_at = self.jobs, time.monotonic() + SECONDS_BETWEEN_COUNTS
                room = self._most or ahead * jobs
                while len(in_flight) < room and (task := next(waiting, None)):
                    in_flight[self._submit(pickled, task)] = tuple(number for number, _ in task)
                if not in_flight:
                    return
                for handle in self._finished(in_flight, SECONDS_BETWEEN_COUNTS):
                    yield self._record(handle, in_flight.pop(handle))
        finally:
            self._take_back(in_flight)

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

    @abstractmethod
    def _slots(self) -> int:
        """How many tasks all workers can run at a time.

        Raises:
            UserError: if the cluster is gone.
        """

    @abstractmethod
    def _on_workers(self, check: Callable[[], str]) -> Mapping[str, str]:
        """What a function returns on each worker, by its name."""

    @abstractmethod
    def _submit(self, pickled: bytes, task: Task) -> Handle:
        """Hand a task out."""

    @abstractmethod
    def _finished(self, handles: Collection[Handle], timeout: float) -> list[Handle]:
        """Those that have ended, as soon as one has; none after so many seconds.

        Raises:
            UserError: if the cluster is gone.
        """

    @abstractmethod
    def _record(self, handle: Handle, batches: tuple[int, ...]) -> Event:
        """The record of a task of these batches, which has ended; or that its worker was killed.

        Raises:
            UserError: if the cluster is gone, or a worker can't run tasks at all.
        """

    @abstractmethod
    def _take_back(self, handles: Collection[Handle]) -> None:
        """Take back what waits for a worker; what runs may end."""


SECONDS_TO_CONNECT = 10
SECONDS_TO_CHECK = 60


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

    def _slots(self) -> int:
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
        return sum(threads.values())

    def _on_workers(self, check: Callable[[], str]) -> Mapping[str, str]:
        try:
            answers: dict[str, Any] = self._client.run(
                check, on_error="return", callback_timeout=SECONDS_TO_CHECK
            )
        except TimeoutError as error:
            raise UserError(
                f"--scheduler {self.address}: not all of its workers answer within "
                f"{SECONDS_TO_CHECK} s."
            ) from error
        return {
            worker: f"fails ({answer})" if isinstance(answer, Exception) else answer
            for worker, answer in answers.items()
        }

    def _submit(self, pickled: bytes, task: Task) -> Future:
        future: Future = self._client.submit(run_remotely, VERSION, pickled, task, pure=False)
        future.add_done_callback(self._ended.put)
        return future

    def _finished(self, handles: Collection[Future], timeout: float) -> list[Future]:
        try:
            ended = self._ended.get(timeout=timeout)
        except queue.Empty:
            return []
        return [ended] if ended in handles else []

    def _record(self, handle: Future, batches: tuple[int, ...]) -> Event:
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
        self._run = ray.remote(num_cpus=1, max_retries=0)(run_remotely)

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

    def _slots(self) -> int:
        try:
            _knock(self._head)
        except OSError as error:  # ray itself would wait for it, and then end this process
            raise self._gone() from error
        return sum(_cpus(node) for node in self._nodes())

    def _nodes(self) -> list[Any]:
        """The nodes that can train."""
        return [node for node in self._ray.nodes() if node["Alive"] and _cpus(node)]

    def _on_workers(self, check: Callable[[], str]) -> Mapping[str, str]:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        task = self._ray.remote(num_cpus=0, max_retries=0)(check)
        answers = {
            node["NodeName"]: task.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            ).remote()
            for node in self._nodes()
        }
        return {name: self._answer(reference) for name, reference in answers.items()}

    def _answer(self, reference: Any) -> str:
        """What a node says of itself."""
        try:
            return str(self._ray.get(reference, timeout=SECONDS_TO_CHECK))
        except Exception as error:  # whatever a node does
            return f"fails ({type(error).__name__})"

    def _submit(self, pickled: bytes, task: Task) -> Any:
        return self._run.remote(VERSION, pickled, task)

    def _finished(self, handles: Collection[Any], timeout: float) -> list[Any]:
        done, _ = self._ray.wait(list(handles), timeout=timeout)
        return list(done)

    def _record(self, handle: Any, batches: tuple[int, ...]) -> Event:
        from ray.exceptions import RayError, RayTaskError

        try:
            record: TaskRecord = self._ray.get(handle)
        except RayTaskError as error:
            raise self._unable(error.cause) from error
        except RayError:  # its worker or its node is gone
            return Lost(batches)
        return record

    def _take_back(self, handles: Collection[Any]) -> None:
        # A task that ends while ray cancels it can abort this process ("unexpected system state").
        # A connection of our own takes its tasks back when `close` shuts it down.
        if self._connected_here:
            return
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


ADDRESSES = {"dask": "scheduler", "ray": "address"}
"""What names the cluster of a backend that has one."""


def executor_of(
    backend: Backend,
    jobs: int,
    device: DeviceChoice,
    *,
    scheduler: str | None = None,
    address: str | None = None,
) -> Executor:
    """Return the executor of a backend, connected to its cluster where it has one.

    Args:
        backend: the kind of executor.
        jobs: how many tasks to run at a time, on a cluster at most; -1 for as many as there is
            room for.
        device: what cells train on. `auto` is this machine's GPU where it has one, and the
            processor on a cluster.
        scheduler, address: where the cluster of dask, of ray answers; None where it isn't given.

    Raises:
        UserError: if an address is missing, or of another backend, or nothing answers there, or
            this machine should have a GPU and has none.
    """
    given = {"scheduler": scheduler, "address": address}
    own = ADDRESSES.get(backend)
    for other, name in ADDRESSES.items():
        if name != own and given[name] is not None:
            raise BadValue(name, given[name], f"it requires --backend {other}.")
    if own is None:
        here = resolve_device(device)
        return Local(jobs_on(here, jobs), "loky" if backend == "loky" else "threading", here)
    cluster = given[own]
    if not cluster:
        raise BadValue("backend", backend, f"it requires {own}=ADDRESS, the cluster's.")
    most, there = None if jobs < 0 else jobs, resolve_device(device, local=False)
    if backend == "dask":
        return Dask(cluster, most, there)
    return Ray(cluster, most, there)
