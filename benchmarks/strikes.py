"""Sweeps that are struck at random moments: no row may be lost or doubled, and no traceback shown.

`python -m benchmarks.strikes [ROUNDS [BACKEND ...]]` strikes in each way, on each backend that is
installed, so many times, resumes each sweep, and prints what was counted. Every count but that of
strikes must be 0.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import psutil

import overfit_cli
from tests.ci.clusters import dask_cluster, ray_cluster

FUNCTION = """
import time

def train(n: int = 1, seed: int = 0):
    time.sleep(0.03)
    return {"test_loss": 1.0 / n}
"""
CELLS = 60
LONGEST = 60
"""Seconds after which a struck sweep counts as one that hangs."""

SAID = ("overfit: ", "note: ")
"""How a line that overfit writes on its own to standard error begins."""

Process = subprocess.Popen[str]


def main() -> None:
    """Strike, and print the counts of each backend."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    wanted = sys.argv[2:] or [name for name in BACKENDS if name in INSTALLED]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "mine.py").write_text(FUNCTION)
        for name in wanted:
            with BACKENDS[name](Path(folder)) as options:
                print(f"{name}: {strikes(Path(folder), name, options, rounds)}", flush=True)


def strikes(folder: Path, name: str, options: list[str], rounds: int) -> str:
    """Strike in each way; return the counts in words."""
    chance, counts = random.Random(name), Counter[str]()
    counts.update({"strikes": 0, "tracebacks": 0, "other words": 0, "hangs": 0, "orphans": 0})
    counts.update({"lost": 0, "doubled": 0})
    began = time.monotonic()
    undisturbed = start(folder, f"{name}-whole", options)
    undisturbed.communicate()
    seconds = time.monotonic() - began
    for number in range(rounds):
        for strike in STRIKES:
            out = f"{name}-{number}-{strike.__name__}"
            moment = chance.uniform(0, 1.05 * seconds)
            counts["strikes"] += 1
            process = start(folder, out, options)
            time.sleep(moment)
            with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
                strike(process, chance)
            said = ended(process, counts)
            told = [line for line in said.splitlines() if not line.startswith(SAID)]
            counts["tracebacks"] += "Traceback" in said
            counts["other words"] += bool(told) and "Traceback" not in said
            if told:
                print(f"  {out} at {moment:.2f} s of {seconds:.2f} s:\n{said}", flush=True)
            resumed = start(folder, out, options)
            said = resumed.communicate()[1]
            if resumed.returncode or said:
                print(f"  resumed {out}: {resumed.returncode} {said}", flush=True)
            keys = stored_keys(folder / out)
            counts["lost"] += len(set(keys)) != CELLS or set(statuses(folder / out)) != {"done"}
            counts["doubled"] += len(keys) - len(set(keys))
    return ", ".join(f"{count} {what}" for what, count in counts.items())


def start(folder: Path, out: str, options: list[str]) -> Process:
    """Start a sweep in a process group of its own."""
    grid = [f"--n=1:{CELLS}", "--seeds=1", "--out", out]
    return subprocess.Popen(
        [sys.executable, "-m", "overfit_cli", "sweep", "mine.py", *grid, *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(process: Process, counts: Counter[str]) -> str:
    """Wait for the end of a sweep and of its processes; return what it wrote as errors."""
    if process.stdout is not None and process.stdout.closed:
        process.stdout = None
    try:
        said = process.communicate(timeout=LONGEST)[1]
    except subprocess.TimeoutExpired:
        counts["hangs"] += 1
        os.killpg(process.pid, signal.SIGKILL)
        said = process.communicate()[1]
    deadline = time.monotonic() + 5
    while (left := members(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    counts["orphans"] += len(left)
    return said


def members(group: int) -> list[int]:
    """The living processes of a process group."""
    living = list[int]()
    for process in psutil.process_iter(["pid", "status"]):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            alive = process.info["status"] != psutil.STATUS_ZOMBIE
            if alive and os.getpgid(process.info["pid"]) == group:
                living.append(process.info["pid"])
    return living


def stored_keys(path: Path) -> list[str]:
    """The keys as they lie in the part files, repeated ones too."""
    return [
        key for part in (path / "cells").glob("*.parquet") for key in pd.read_parquet(part)["key"]
    ]


def statuses(path: Path) -> list[str]:
    """The status of each cell."""
    return list(overfit_cli.load(path)["status"])


def kill(process: Process, chance: random.Random) -> None:
    """Kill the sweep's process alone."""
    process.kill()


def kill_all(process: Process, chance: random.Random) -> None:
    """Kill its whole group."""
    os.killpg(process.pid, signal.SIGKILL)


def kill_a_worker(process: Process, chance: random.Random) -> None:
    """Kill a process that it has started."""
    if children := psutil.Process(process.pid).children(recursive=True):
        chance.choice(children).kill()


def terminate(process: Process, chance: random.Random) -> None:
    """Ask its process to end, as a queue does."""
    process.terminate()


def terminate_all(process: Process, chance: random.Random) -> None:
    """Ask its whole group to end."""
    os.killpg(process.pid, signal.SIGTERM)


def hang_up(process: Process, chance: random.Random) -> None:
    """Close the terminal."""
    os.killpg(process.pid, signal.SIGHUP)


def interrupt(process: Process, chance: random.Random) -> None:
    """Ctrl-C."""
    os.killpg(process.pid, signal.SIGINT)


def interrupt_twice(process: Process, chance: random.Random) -> None:
    """Ctrl-C, and again while it closes."""
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(chance.uniform(0, 0.2))
    os.killpg(process.pid, signal.SIGINT)


def stop_and_go(process: Process, chance: random.Random) -> None:
    """Ctrl-Z, and fg a second later."""
    os.killpg(process.pid, signal.SIGSTOP)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGCONT)


def leave(process: Process, chance: random.Random) -> None:
    """Close what reads its output, as `| head` does."""
    if process.stdout is not None:
        process.stdout.close()


Strike = Callable[[Process, random.Random], None]
STRIKES: list[Strike] = [
    kill,
    kill_all,
    kill_a_worker,
    terminate,
    terminate_all,
    hang_up,
    interrupt,
    interrupt_twice,
    stop_and_go,
    leave,
]


@contextlib.contextmanager
def here(*options: str) -> Iterator[list[str]]:
    """The options of a sweep on this machine."""
    yield [*options]


@contextlib.contextmanager
def dask(folder: Path) -> Iterator[list[str]]:
    """The options of a sweep on a dask cluster, which is there while inside."""
    with dask_cluster(folder / "dask", "one", "two") as cluster:
        yield ["--backend", "dask", "--address", cluster.address]


@contextlib.contextmanager
def ray(folder: Path) -> Iterator[list[str]]:
    """The options of a sweep on a ray cluster, which is there while inside."""
    os.environ["RAY_AUTH_MODE"] = "disabled"
    with ray_cluster(folder / "ray") as cluster:
        yield ["--backend", "ray", "--address", cluster.address]


Backend = Callable[[Path], contextlib.AbstractContextManager[list[str]]]
BACKENDS: dict[str, Backend] = {
    "loky": lambda folder: here("--jobs=2"),
    "sequential": lambda folder: here("--jobs=1"),
    "threading": lambda folder: here("--jobs=2", "--backend=threading"),
    "dask": dask,
    "ray": ray,
}
PACKAGES = {"dask": "distributed", "ray": "ray"}
INSTALLED = [
    name for name in BACKENDS if importlib.util.find_spec(PACKAGES.get(name, "joblib")) is not None
]

if __name__ == "__main__":
    main()
