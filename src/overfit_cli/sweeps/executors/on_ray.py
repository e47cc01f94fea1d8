"""A ray cluster that is there already, as an executor."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Collection, Mapping
from typing import Any

from overfit_cli.errors import UserError
from overfit_cli.extras import require_extra
from overfit_cli.sweeps.executors.cluster import Cluster
from overfit_cli.sweeps.executors.executor import Lost
from overfit_cli.sweeps.executors.look import Asked, Seen, traveller
from overfit_cli.sweeps.executors.remote import Parcel, run_there
from overfit_cli.sweeps.tasks import Task
from overfit_cli.sweeps.worker import TaskRecord
from overfit_cli.training import Device

SECONDS_TO_CONNECT = 10
SECONDS_TO_LOOK = 60


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
