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
    """The nodes of a ray cluster; a task takes one of their CPUs.

    Args:
        address: the head's, such as `127.0.0.1:6379`, or `auto` for the one on this machine.
        most: how many tasks to run at a time at most; None for as many as there are CPUs.
        device: what cells train on.

    Raises:
        UserError: if there is no cluster.
    """

    name, flag = "ray", "--address"

    def __init__(self, address: str, most: int | None = None, device: Device = "cpu") -> None:
        super().__init__(address, most, device)
        require_extra("ray", "ray", "--backend ray")
        import ray

        if address != "auto":
            self._check_address()
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UserError(
                f"--address {address}: ray can't connect to a cluster there "
                f"({type(error).__name__}); one that asks for a token takes RAY_AUTH_MODE=token."
            ) from error
        self._ray: Any = ray
        self._head: str = ray.get_runtime_context().gcs_address
        self._run = ray.remote(num_cpus=1, max_retries=0)(run_there)

    def close(self) -> None:
        """Leave the cluster; it stays as it is."""
        self._ray.shutdown()

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
        return [int(node["Resources"].get("CPU", 0)) for node in self._ray.nodes() if node["Alive"]]

    def _look(self, asked: Asked) -> Mapping[str, Seen]:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        task = self._ray.remote(num_cpus=0, max_retries=0)(traveller(asked))
        looks = {
            node["NodeName"]: task.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            ).remote()
            for node in self._ray.nodes()
            if node["Alive"]
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


def _knock(address: str) -> None:
    """Connect to HOST:PORT and leave again.

    Raises:
        OSError: if nobody listens there.
        ValueError: if it isn't such an address.
    """
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=SECONDS_TO_CONNECT):
        pass
