"""Executors for dask and ray clusters, and the choice of an executor by its backend.

A study travels with the user's files that its function imports. Dask is asked through its own
client: joblib's dask backend never calls back for a task whose worker was killed, and would wait
for it for good.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import queue
import socket
import time
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import cloudpickle

from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import require_extra
from overfit_cli.core.processes import delaying_interrupts
from overfit_cli.core.text import plural
from overfit_cli.core.training import Device, resolve_device
from overfit_cli.core.values import Backend, DeviceChoice
from overfit_cli.sweeps.executors import Event, Executor, Local, LostBatches, jobs_on
from overfit_cli.sweeps.worker import (
    KEPT,
    VERSIONS,
    Task,
    TaskRecord,
    Work,
    pickled_work,
    run_remotely,
)

if TYPE_CHECKING:
    from distributed import Future

Handle = TypeVar("Handle")

SECONDS_BETWEEN_COUNTS = 1.0
"""The shortest time between two counts of a cluster's workers."""

SECONDS_TO_CONNECT = 10


class Cluster(Executor, Generic[Handle]):
    """The workers of a cluster that is running already.

    A backend submits a task, waits for handles of tasks that end, and retrieves their records.

    Args:
        address: of its scheduler.
        limit: of the tasks that run at a time; None for as many as there is room for.
        device: the device that cells train on.
    """

    option: str
    """The option that names the address, as Python spells it."""

    def __init__(self, address: str, limit: int | None, device: Device) -> None:
        self.address = address
        self.device = device
        self._limit = limit
        self._slots, self._next_count = 0, 0.0

    @property
    def jobs(self) -> int:
        """The number of tasks that run at a time now."""
        return max(1, self._jobs())

    @property
    def requested_jobs(self) -> int:
        """The limit; without one, the number of tasks that run at a time now."""
        return self._limit or self.jobs

    @property
    def description(self) -> str:
        """Its jobs and its address."""
        jobs, backend = self._jobs(), f"on {self.name} at {self.address}"
        return f"{plural(jobs, 'job')} {backend}" if jobs else f"{backend}, which has no worker yet"

    def _jobs(self) -> int:
        """The number of tasks that run at a time; 0 where there is no worker."""
        if time.monotonic() >= self._next_count:
            self._slots = self._count_slots()
            self._next_count = time.monotonic() + SECONDS_BETWEEN_COUNTS
        return self._slots if self._limit is None else min(self._slots, self._limit)

    def _pickle(self, work: Work) -> None:
        pickled_work(work)

    def run(self, work: Work, tasks: Iterable[Task], ahead: int) -> Iterator[Event]:
        """Hand out tasks while there is room, and give their records; see `Executor.run`."""
        pickled, waiting = pickled_work(work), iter(tasks)
        in_flight: dict[Handle, Task] = {}
        try:
            while True:
                jobs = self.jobs  # asked for in each round, as this notices a lost cluster
                room = self._limit or ahead * jobs
                while len(in_flight) < room and (task := next(waiting, None)):
                    in_flight[self._submit(pickled, cloudpickle.dumps(task))] = task
                if not in_flight:
                    return
                for handle in self._wait(in_flight, SECONDS_BETWEEN_COUNTS):
                    batches = tuple(number for number, _ in in_flight.pop(handle))
                    yield self._retrieve(handle, batches)
        finally:
            self._cancel(in_flight)

    def _failure(self, problem: str) -> UserError:
        """The error that ends a sweep under way."""
        return BadValue(self.option, self.address, f"{problem}. {KEPT}", exit_code=1)

    def _gone(self) -> UserError:
        """The error of a cluster that doesn't answer any more."""
        return self._failure("the cluster doesn't answer any more")

    def _unable(self, error: BaseException) -> UserError:
        """The error of a worker that can't run tasks, such as one without this package."""
        if isinstance(error, UserError):
            return self._failure(str(error))
        return self._failure(
            f"a worker can't run a task ({type(error).__name__}: {error}); it needs {VERSIONS} and "
            "the package of the study"
        )

    @abstractmethod
    def _count_slots(self) -> int:
        """Return how many tasks all workers can run at a time.

        Raises:
            UserError: if the cluster is gone.
        """

    @abstractmethod
    def _submit(self, work: bytes, task: bytes) -> Handle:
        """Hand out a task: `run_remotely` takes both arguments."""

    @abstractmethod
    def _wait(self, handles: Collection[Handle], timeout: float) -> list[Handle]:
        """Return handles of tasks that have ended; none where none ends in so many seconds."""

    @abstractmethod
    def _retrieve(self, handle: Handle, batches: tuple[int, ...]) -> Event:
        """Return the record of a task that has ended, or the loss of its worker.

        Raises:
            UserError: if the cluster is gone, or a worker can't run tasks at all.
        """

    @abstractmethod
    def _cancel(self, handles: Collection[Handle]) -> None:
        """Take back tasks that wait for a worker; those that run may end."""


class Dask(Cluster["Future"]):
    """The workers of a dask scheduler, with a task for each of their threads.

    Dask itself runs a task again whose worker was lost, up to `allowed-failures` times (3).

    Args:
        address: of the scheduler, such as `tcp://127.0.0.1:8786`.
        limit: of the tasks that run at a time; None for as many as workers have threads.
        device: the device that cells train on.

    Raises:
        UserError: if there is no scheduler.
    """

    name, option = "dask", "scheduler"

    def __init__(self, address: str, limit: int | None = None, device: Device = "cpu") -> None:
        super().__init__(address, limit, device)
        require_extra("distributed", "dask", "The backend dask")
        from distributed import Client

        for name in ("distributed", "distributed.client"):
            # A lost connection is our own error, in one sentence.
            logging.getLogger(name).setLevel(logging.CRITICAL)
        try:
            self._client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
        except (OSError, ValueError, RuntimeError, TypeError) as error:
            raise BadValue(
                self.option,
                address,
                f"no dask scheduler answers there ({type(error).__name__}); `dask scheduler` "
                "starts one and says its address.",
            ) from error
        self._ended: queue.SimpleQueue[Future] = queue.SimpleQueue()

    def close(self) -> None:
        """Leave the cluster; it stays as it is."""
        with contextlib.suppress(Exception):  # the scheduler may be gone
            self._client.close()

    def _count_slots(self) -> int:
        try:
            # Ctrl-C in the midst of a call would have dask log an error of its own.
            with delaying_interrupts():
                threads: dict[str, int] = self._client.sync(
                    self._client.scheduler.ncores, workers=None, callback_timeout=SECONDS_TO_CONNECT
                )
        except Exception as error:  # of many kinds, by what the connection was doing
            raise self._gone() from error
        if self._client.status != "running":  # the answer is old then
            raise self._gone()
        return sum(threads.values())

    def _submit(self, work: bytes, task: bytes) -> Future:
        call = pickle.dumps(_Call((VERSIONS, work, task)))
        future: Future = self._client.submit(pickle.loads, call, pure=False)
        future.add_done_callback(self._ended.put)
        return future

    def _wait(self, handles: Collection[Future], timeout: float) -> list[Future]:
        try:
            ended = self._ended.get(timeout=timeout)
        except queue.Empty:
            return []
        return [ended] if ended in handles else []

    def _retrieve(self, handle: Future, batches: tuple[int, ...]) -> Event:
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        try:
            with delaying_interrupts():
                record: TaskRecord = handle.result(timeout=SECONDS_TO_CONNECT)
        except KilledWorker as error:  # dask has tried it again so often
            return LostBatches(batches, kills=1 + error.allowed_failures)
        except (FutureCancelledError, OSError) as error:
            raise self._gone() from error
        except Exception as error:
            raise self._unable(error) from error
        return record

    def _cancel(self, handles: Collection[Future]) -> None:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            self._client.cancel(list(handles))


@dataclass(frozen=True)
class _Call:
    """A call of `run_remotely` that is made where this is unpickled, as the task itself.

    A worker without this package would end when it unpickles a task that refers to it, and the
    sweep would wait for another worker.
    """

    arguments: tuple[str, bytes, bytes]

    def __reduce__(self) -> tuple[Any, ...]:
        return run_remotely, self.arguments


class Ray(Cluster[Any]):
    """The CPUs of a ray cluster, with a task for each.

    Where this process is connected to it already, that connection is used, and stays.

    Args:
        address: of the head, such as `127.0.0.1:6379`, or `auto` for the one on this machine.
        limit: of the tasks that run at a time; None for as many as there are CPUs.
        device: the device that cells train on.

    Raises:
        UserError: if there is no cluster, or this process is connected to another one.
    """

    name, option = "ray", "address"

    def __init__(self, address: str, limit: int | None = None, device: Device = "cpu") -> None:
        super().__init__(address, limit, device)
        require_extra("ray", "ray", "The backend ray")
        import ray

        self._ray: Any = ray
        self._connected_here = not ray.is_initialized()
        if self._connected_here:
            self._connect()
        self._head: str = ray.get_runtime_context().gcs_address
        if address not in ("auto", self._head) and not self._connected_here:
            raise BadValue(
                self.option,
                address,
                f"this process is connected to the ray cluster at {self._head}; name that one or "
                "auto, or call ray.shutdown().",
            )
        self._run = ray.remote(num_cpus=1, max_retries=0)(run_remotely)

    def _connect(self) -> None:
        """Connect this process to the cluster."""
        try:
            if self.address != "auto":
                _knock(self.address)  # ray itself would try for minutes
        except (OSError, ValueError) as error:
            raise BadValue(
                self.option,
                self.address,
                f"no ray cluster answers there ({type(error).__name__}); it takes HOST:PORT or "
                "auto, and `ray start --head` starts a cluster and says its address.",
            ) from error
        try:
            self._ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise BadValue(
                self.option,
                self.address,
                f"ray can't connect to a cluster there ({type(error).__name__}); a cluster with "
                "tokens needs RAY_AUTH_MODE=token.",
            ) from error

    def close(self) -> None:
        """Leave the cluster; it stays as it is."""
        if self._connected_here:
            self._ray.shutdown()

    def _count_slots(self) -> int:
        try:
            _knock(self._head)
        except OSError as error:  # ray itself would wait for it, and then end this process
            raise self._gone() from error
        return int(self._ray.cluster_resources().get("CPU", 0))

    def _submit(self, work: bytes, task: bytes) -> Any:
        return self._run.remote(VERSIONS, work, task)

    def _wait(self, handles: Collection[Any], timeout: float) -> list[Any]:
        ended, _ = self._ray.wait(list(handles), timeout=timeout)
        return list(ended)

    def _retrieve(self, handle: Any, batches: tuple[int, ...]) -> Event:
        from ray.exceptions import RayError, RayTaskError

        try:
            record: TaskRecord = self._ray.get(handle)
        except RayTaskError as error:
            raise self._unable(error.cause) from error
        except RayError:  # its worker or its node is gone
            return LostBatches(batches)
        return record

    def _cancel(self, handles: Collection[Any]) -> None:
        # A task that ends while ray cancels it can abort this process ("unexpected system state").
        # A connection of our own takes its tasks back when `close` shuts it down.
        if self._connected_here:
            return
        for handle in handles:
            with contextlib.suppress(Exception):  # the cluster may be gone
                self._ray.cancel(handle)


def _knock(address: str) -> None:
    """Connect to HOST:PORT and leave again.

    Raises:
        OSError: if nothing listens there.
        ValueError: if it isn't such an address.
    """
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=SECONDS_TO_CONNECT):
        pass


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
        backend: its name.
        jobs: how many tasks to run at a time, on a cluster at most; -1 for as many as there is
            room for.
        device: what cells train on. `auto` is this machine's GPU where it has one, and the
            processor on a cluster.
        scheduler: the address of dask's scheduler.
        address: the address of ray's head.

    Raises:
        UserError: if an address is missing, or of another backend, or nothing answers there, or
            this machine should have a GPU and has none.
    """
    addresses = {"scheduler": (scheduler, "dask"), "address": (address, "ray")}
    for option, (given, owner) in addresses.items():
        if owner != backend and given is not None:
            raise BadValue(option, given, f"it requires the backend {owner}.")
        if owner == backend and not given:
            raise BadValue("backend", backend, f"it requires {option}, the address of the cluster.")
    limit, remote_device = None if jobs < 0 else jobs, resolve_device(device, local=False)
    if backend == "dask" and scheduler:
        return Dask(scheduler, limit, remote_device)
    if backend == "ray" and address:
        return Ray(address, limit, remote_device)
    here = resolve_device(device)
    return Local(jobs_on(here, jobs), "threading" if backend == "threading" else "loky", here)
