"""Real clusters on this machine: dask's scheduler and workers, and a ray head."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from tests.command import environment, wait_for


class DaskCluster:
    """A scheduler, and workers that each run one task at a time.

    Args:
        folder: where it writes its logs; workers have folders of their own in it.
    """

    backend = "dask"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        known = folder / "scheduler.json"
        place = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(known))
        self.scheduler = self._start("scheduler", *place, cwd=folder)
        wait_for(known.exists)
        wait_for(lambda: "address" in known.read_text())
        self.address: str = json.loads(known.read_text())["address"]

    def add(
        self, name: str, env: Mapping[str, str] | None = None, *, restarts: bool = False
    ) -> None:
        """Start a worker, and wait until the scheduler knows it.

        Args:
            name: of the worker.
            env: variables of its environment.
            restarts: whether it is started again when it is killed.
        """
        cwd = self.folder / name
        cwd.mkdir()
        nanny = "--nanny" if restarts else "--no-nanny"
        how = ("--nthreads", "1", "--name", name, "--local-directory", str(cwd), nanny)
        self.workers[name] = self._start("worker", self.address, *how, cwd=cwd, env=env)
        log = self.folder / name / "log"
        wait_for(lambda: "Registered to" in log.read_text())

    def kill(self, name: str) -> None:
        """Kill a worker as a machine that fails does."""
        self.workers[name].kill()
        self.workers[name].wait()

    def end(self) -> None:
        """End all of its processes, and those that they have started."""
        for process in (*self.workers.values(), self.scheduler):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(
        self, what: str, *arguments: str, cwd: Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        with (cwd / "log").open("wb") as log:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    f"distributed.cli.dask_{what}",
                    "--no-dashboard",
                    *arguments,
                ],
                cwd=cwd,
                env=environment(**(env or {})),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


@contextlib.contextmanager
def dask_cluster(folder: Path, *workers: str, restarts: bool = False) -> Iterator[DaskCluster]:
    """A cluster with these workers, while inside."""
    cluster = DaskCluster(folder)
    try:
        for name in workers:
            cluster.add(name, restarts=restarts)
        yield cluster
    finally:
        cluster.end()


class RayCluster:
    """A ray head with two CPUs.

    Args:
        folder: where it writes its log.
        env: variables of its environment.
    """

    backend = "ray"

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self._sockets = tempfile.mkdtemp(prefix="ray-")  # their paths must be short
        port = str(free_port())
        self.address = f"127.0.0.1:{port}"
        place = ("--node-ip-address", "127.0.0.1", "--port", port, "--temp-dir", self._sockets)
        how = ("--num-cpus", "2", "--include-dashboard", "false", "--block")
        log = folder / "log"
        folder.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as out:
            self._head = psutil.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", *place, *how],
                env=environment(RAY_AUTH_MODE="disabled", **(env or {})),
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        wait_for(lambda: "Ray runtime started" in log.read_text(), seconds=60)

    def signal_a_worker(self, number: signal.Signals) -> None:
        """Send a signal to a process that trains."""
        processes = self._all()
        worker = next(one for one in processes if one.name().startswith("ray::run_re"))
        worker.send_signal(number)

    def end(self) -> None:
        """End all of its processes."""
        processes = [*self._all(), self._head]
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes)
        shutil.rmtree(self._sockets, ignore_errors=True)

    def _all(self) -> list[psutil.Process]:
        """Every process that the head has started, and those of these."""
        return list(self._head.children(recursive=True)) if self._head.is_running() else []


def free_port() -> int:
    """A port of this machine that is free."""
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


@contextlib.contextmanager
def ray_cluster(folder: Path, env: Mapping[str, str] | None = None) -> Iterator[RayCluster]:
    """A ray cluster of one machine with two CPUs, while inside."""
    cluster = RayCluster(folder, env)
    try:
        yield cluster
    finally:
        cluster.end()
