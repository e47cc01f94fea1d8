"""Real clusters on this machine: dask's scheduler and workers, and a ray head."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from tests.command import environment, wait_for

Variables = Mapping[str, str]

os.environ["RAY_AUTH_MODE"] = "disabled"  # whatever ray has left in the home folder


def start_module(
    module: str, *arguments: str, folder: Path, env: Variables | None = None
) -> psutil.Popen:
    """Start a module in a session and a folder of its own, which gets its `log`."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("wb") as log:
        return psutil.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=folder,
            env=environment(**(env or {})),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def end(*started: psutil.Popen) -> None:
    """End processes, and those that they have started."""
    processes = list[psutil.Process](started)
    for process in started:
        with contextlib.suppress(psutil.NoSuchProcess):
            processes += process.children(recursive=True)
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes)


class DaskCluster:
    """A scheduler, and workers that each run one task at a time."""

    backend = "dask"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: dict[str, psutil.Popen] = {}
        known = folder / "scheduler.json"
        place = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(known))
        module = "distributed.cli.dask_scheduler"
        self.scheduler = start_module(module, "--no-dashboard", *place, folder=folder)
        wait_for(known.exists)
        wait_for(lambda: "address" in known.read_text())
        self.address: str = json.loads(known.read_text())["address"]

    def add(self, name: str, env: Variables | None = None, *, restarts: bool = False) -> None:
        """Start a worker, which may restart when it is killed, and wait until it is known."""
        own = self.folder / name
        how = ("--nthreads", "1", "--name", name, "--local-directory", str(own), "--no-dashboard")
        nanny = "--nanny" if restarts else "--no-nanny"
        module = "distributed.cli.dask_worker"
        started = start_module(module, self.address, *how, nanny, folder=own, env=env)
        self.workers[name] = started
        wait_for(lambda: "Registered to" in (own / "log").read_text())

    def kill(self, name: str) -> None:
        """Kill a worker as a machine that fails does."""
        self.workers[name].kill()
        self.workers[name].wait()

    def close(self) -> None:
        end(*self.workers.values(), self.scheduler)


@contextlib.contextmanager
def dask_cluster(folder: Path, *workers: str, restarts: bool = False) -> Iterator[DaskCluster]:
    """A cluster with these workers, while inside."""
    with contextlib.closing(DaskCluster(folder)) as cluster:
        for name in workers:
            cluster.add(name, restarts=restarts)
        yield cluster


class RayCluster:
    """A ray head with two CPUs."""

    backend = "ray"

    def __init__(self, folder: Path, env: Variables | None = None) -> None:
        self._sockets = tempfile.mkdtemp(prefix="ray-")  # their paths must be short
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        self.address = f"127.0.0.1:{port}"
        place = ("--node-ip-address", "127.0.0.1", "--port", port, "--temp-dir", self._sockets)
        how = ("start", "--head", "--num-cpus", "2", "--include-dashboard", "false", "--block")
        self._head = start_module("ray.scripts.scripts", *how, *place, folder=folder, env=env)
        wait_for(lambda: "Ray runtime started" in (folder / "log").read_text(), seconds=60)

    def signal_a_worker(self, number: int) -> None:
        """Send a signal to a process that trains."""
        processes = self._head.children(recursive=True)
        worker = next(one for one in processes if one.name().startswith("ray::run_re"))
        worker.send_signal(number)

    def close(self) -> None:
        end(self._head)
        shutil.rmtree(self._sockets, ignore_errors=True)


def ray_cluster(
    folder: Path, env: Variables | None = None
) -> contextlib.AbstractContextManager[RayCluster]:
    """A ray cluster of one machine with two CPUs, while inside."""
    return contextlib.closing(RayCluster(folder, env))
