"""A dask cluster that is there already, as an executor."""

from __future__ import annotations

import contextlib
import logging
import queue
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from overfit_cli.errors import UserError
from overfit_cli.extras import require_extra
from overfit_cli.sweeps.executors.cluster import Cluster
from overfit_cli.sweeps.executors.executor import Lost
from overfit_cli.sweeps.executors.look import Asked, Seen, traveller
from overfit_cli.sweeps.executors.remote import Parcel, run_there
from overfit_cli.sweeps.interrupts import delaying_interrupts
from overfit_cli.sweeps.tasks import Task
from overfit_cli.sweeps.worker import TaskRecord
from overfit_cli.training import Device

if TYPE_CHECKING:
    from distributed import Future

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
