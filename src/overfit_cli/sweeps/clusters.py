"""Executors for dask and ray clusters, and the choice of an executor by its backend.

A study travels with the user's files that its function imports. Dask is asked through its own
client: joblib's dask backend never calls back for a task whose worker was killed, and would wait
for it for good.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import signal
import socket
import time
from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any

import cloudpickle
import joblib

from overfit_cli.core import files, processes
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.options import Backend, DeviceChoice, whole_number
from overfit_cli.core.training import Device, resolve_device
from overfit_cli.sweeps.executors import Executor, Local, in_thread
from overfit_cli.sweeps.worker import KEPT, VERSIONS, Task, TaskRecord, Work, run_remotely

SECONDS_BETWEEN_COUNTS = 1.0
"""The shortest time between two counts of a cluster's workers."""

SECONDS_TO_CONNECT, SECONDS_UNTIL_FROZEN = 10, 30

SECONDS_TO_ANSWER = 15
"""How long a cluster's scheduler or head may be silent in a sweep."""


class Cluster(Executor):
    """The workers of a cluster that is running already."""

    package: str
    absent: str
    """The sentence that nothing answers, after the name of an exception."""

    def __init__(self, address: str, limit: int | None = None, device: Device = "cpu") -> None:
        super().__init__(f"on {self.name} at {address}", limit, device)
        self.address = address
        self._slots, self._next_count = 0, 0.0
        files.require_extra(self.package, self.name, f"The backend {self.name}")
        try:
            self._connect()
        except (OSError, ValueError, RuntimeError, TypeError) as error:
            raise BadValue("address", address, self.absent.format(type(error).__name__)) from error

    def _count_slots(self) -> int:
        if time.monotonic() >= self._next_count:
            try:
                self._slots = self._ask_for_slots()
            except Exception as error:  # of many kinds, by what the connection was doing
                raise self._ending() from error
            self._next_count = time.monotonic() + SECONDS_BETWEEN_COUNTS
        return self._slots if self.limit is None else min(self._slots, self.limit)

    def _failure(self, error: Exception) -> Exception:
        cause = getattr(error, "cause", error)  # ray wraps what the task has raised
        problem = f"a worker can't run a task ({type(cause).__name__}: {cause}); it needs "
        problem += f"{VERSIONS} and the package of the study"
        return self._ending(str(cause) if isinstance(cause, UserError) else problem)

    def _ending(self, problem: str = "the cluster no longer answers") -> UserError:
        return BadValue("address", self.address, f"{problem.rstrip('.')}. {KEPT}", exit_code=1)

    @abstractmethod
    def _connect(self) -> None:
        """Connect to the cluster, or raise."""

    @abstractmethod
    def _ask_for_slots(self) -> int:
        """Return how many tasks all workers can run at a time; raise if the cluster is gone."""


class Dask(Cluster):
    """The workers of a dask scheduler, with a task for each of their threads.

    Dask itself runs a task again whose worker was lost, up to `allowed-failures` times (3). The
    address is such as `tcp://127.0.0.1:8786`.
    """

    name, package = "dask", "distributed"
    absent = "no dask scheduler answers there ({}); `dask scheduler` starts one."

    def _connect(self) -> None:
        import distributed

        self._dask: Any = distributed
        for name in ("distributed", "distributed.client"):
            # A lost connection is our own error, in one sentence.
            logging.getLogger(name).setLevel(logging.CRITICAL)
        how: Any = {"timeout": SECONDS_TO_CONNECT, "set_as_default": False}
        # A scheduler that is frozen answers nothing, and the client would wait for minutes.
        made = in_thread(distributed.Client, self.address, **how)
        self._client = made.result(timeout=SECONDS_UNTIL_FROZEN)

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            self._client.close()

    def _ask_for_slots(self) -> int:
        with processes.delaying_interrupts():
            threads: dict[str, int] = self._client.sync(
                self._client.scheduler.ncores, workers=None, callback_timeout=SECONDS_TO_ANSWER
            )
        if self._client.status != "running":
            raise ConnectionError("the answer is old")
        return sum(threads.values())

    def _send(self, work: Work, pickled: bytes, task: Task) -> Future[TaskRecord]:
        call = pickle.dumps(_Called((VERSIONS, pickled, cloudpickle.dumps(task))))
        sent = self._client.submit(pickle.loads, call, pure=False)
        return asyncio.run_coroutine_threadsafe(self._result(sent), self._client.loop.asyncio_loop)

    async def _result(self, sent: Any) -> TaskRecord:
        """Return a task's result, asked for again where the worker that has it is silent."""
        async for _ in self._dask.as_completed([sent], loop=self._client.loop):
            pass
        while True:
            asked = self._client.gather(sent, asynchronous=True)
            try:
                record: TaskRecord = await asyncio.wait_for(asked, SECONDS_TO_ANSWER)
            except TimeoutError:
                if sent.status == "error":
                    raise
            else:
                return record

    def _killed(self, error: Exception) -> int:
        if isinstance(error, CancelledError | OSError):  # the client has lost its scheduler
            raise self._ending() from error
        return 1 + error.allowed_failures if isinstance(error, self._dask.KilledWorker) else 0


@dataclass(frozen=True)
class _Called:
    """A call of `run_remotely` that is made where this is unpickled, as the task itself.

    A worker without this package would end when it unpickles a task that refers to it, and the
    sweep would wait for another worker.
    """

    arguments: tuple[str, bytes, bytes]

    def __reduce__(self) -> tuple[Any, ...]:
        return run_remotely, self.arguments


class Ray(Cluster):
    """The CPUs of a ray cluster, with a task for each.

    Ray notices a lost worker or machine by itself, and no frozen worker.

    The address is such as `127.0.0.1:6379`, or `auto` for the cluster of this machine. Where this
    process is connected to it already, that connection is used, and stays.
    """

    name, package = "ray", "ray"
    absent = "no ray cluster answers there ({}); `ray start --head` starts one."

    def _connect(self) -> None:
        import ray

        self._ray: Any = ray
        self._is_ours = not ray.is_initialized()
        if self._is_ours:
            if self.address != "auto":
                _knock(self.address)  # ray itself would try for minutes
            with processes.holding_back(signal.SIGTERM):
                ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
        self._head: str = ray.get_runtime_context().gcs_address
        if not self._is_ours and self.address not in ("auto", self._head):
            problem = f"this process is connected to the ray cluster at {self._head}"
            accepts = f"{problem}; name that one or auto, or call ray.shutdown()."
            raise BadValue("address", self.address, accepts)
        self._run = ray.remote(num_cpus=1, max_retries=0)(run_remotely)

    def __exit__(self, *error: object) -> None:
        if self._is_ours:
            self._ray.shutdown()

    def _ask_for_slots(self) -> int:
        _knock(self._head)  # ray itself would wait for it, and then end this process
        return int(self._ray.cluster_resources().get("CPU", 0))

    def _send(self, work: Work, pickled: bytes, task: Task) -> Future[TaskRecord]:
        sent = self._run.remote(VERSIONS, pickled, cloudpickle.dumps(task))
        future: Future[TaskRecord] = sent.future()
        return future

    def _killed(self, error: Exception) -> int:
        kinds = self._ray.exceptions
        # A RayTaskError was raised by the task itself; otherwise its worker or its node is gone.
        return int(isinstance(error, kinds.RayError) and not isinstance(error, kinds.RayTaskError))

    def _drop(self, futures: Sequence[Any]) -> None:
        # A task that ends while ray cancels it can abort this process ("unexpected system state").
        # A connection of our own takes its tasks back when it is shut down.
        for future in () if self._is_ours else futures:
            with contextlib.suppress(Exception):  # the cluster may be gone
                self._ray.cancel(future.object_ref)


def _knock(address: str) -> None:
    """Connect to HOST:PORT or [IPV6]:PORT and leave again, or raise OSError or ValueError."""
    host, _, port = address.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    socket.create_connection((bare, int(port)), timeout=SECONDS_TO_CONNECT).close()


def executor_of(
    backend: Backend, jobs: int, device: DeviceChoice, address: str | None = None
) -> Executor:
    """Return the executor of a backend, connected to its cluster where it has one.

    Args:
        jobs: the limit of the tasks that run at a time; -1 for as many as there is room for.
        device: the device that cells train on. `auto` is this machine's GPU where it has one, and
            the processor on a cluster.
    """
    jobs = -1 if jobs == -1 else whole_number("jobs", jobs, 1, ", or -1 for one per core")
    cluster = {Dask.name: Dask, Ray.name: Ray}.get(backend)
    if cluster is not None:
        if not address:
            raise BadValue("backend", backend, "it requires address, that of the cluster.")
        remote: Device = "cuda" if device == "cuda" else "cpu"
        return cluster(address, None if jobs < 0 else jobs, remote)
    if address is not None:
        raise BadValue("address", address, "it requires the backend dask or ray.")
    here = resolve_device(device)
    fills_a_gpu = here == "cuda" and jobs < 0  # one batch does
    number = 1 if fills_a_gpu else max(1, int(joblib.effective_n_jobs(jobs)))
    return Local(number, "threading" if backend == "threading" else "loky", here)
