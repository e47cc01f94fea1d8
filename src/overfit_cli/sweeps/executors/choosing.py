"""The executor that `--backend` names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from overfit_cli.device import Device, resolve_device
from overfit_cli.errors import UserError
from overfit_cli.sweeps.executors.executor import Executor
from overfit_cli.sweeps.executors.local import Local, jobs_on

Backend = Literal["loky", "threading", "dask", "ray"]
ADDRESSES = {"dask": "--scheduler", "ray": "--address"}
"""The option that names the cluster of a backend that has one."""


def executor_of(
    backend: Backend, jobs: int, device: Device, addresses: Mapping[str, str | None]
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
        from overfit_cli.sweeps.executors.on_dask import Dask

        return Dask(address, most, there)
    from overfit_cli.sweeps.executors.on_ray import Ray

    return Ray(address, most, there)
