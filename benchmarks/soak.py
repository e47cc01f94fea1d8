"""A long sweep of 50,000 cells under kills and full disks: its rows and its memory at the end.

`python -m benchmarks.soak [CELLS]` sweeps a function whose results are known. Over the first half
of the cells the sweep, a worker or a compaction is killed at random moments, or the disk is full
for a while, and the same command goes on. Over the second half only workers are killed, and the
memory of the sweep is followed. Every count of rows lost, doubled, wrong or failed, of tracebacks,
hangs and orphans must be 0. The full disk is a small tmpfs, which only root can mount; without it
that is left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
import pyarrow.parquet as pq

import overfit_cli
from benchmarks.storm import OVERFIT

SEEDS = 100
FUNCTION = '''
import hashlib, time

def train(n: int = 1, seed: int = 0):
    """A number that is known beforehand."""
    time.sleep(0.01)
    return {"loss": int(hashlib.sha256(f"{n},{seed}".encode()).hexdigest()[:12], 16)}
'''
DISK = "64m"
BALLAST = "ballast"
WAIT = 20.0
"""Seconds that processes get to end in."""


def main() -> None:
    """Run the storm and the calm, and print what was counted."""
    cells = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with tempfile.TemporaryDirectory() as folder, small_disk(Path(folder) / "disk") as limited:
        soak = Soak(Path(folder) / "disk", cells // SEEDS, can_fill=limited)
        began = time.monotonic()
        soak.storm(cells // 2)
        print(f"storm: {soak.said()} ({time.monotonic() - began:.0f} s)", flush=True)
        soak.counts.clear()
        began = time.monotonic()
        memory = soak.calm()
        print(f"calm: {soak.said()} ({time.monotonic() - began:.0f} s)", flush=True)
        print(f"memory of the sweep's process, in MB over the calm: {in_tenths(memory)}")
        print(f"rows: {soak.compared()}")


@contextlib.contextmanager
def small_disk(path: Path) -> Iterator[bool]:
    """Give a small disk of its own at a path, if that can be had; else a folder."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(path)]
    mounted = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(path)], check=True)


@dataclass
class Soak:
    """A sweep that is disturbed.

    Attributes:
        folder: holds the function and the run directory.
        values: how many values of n the sweep has.
        can_fill: whether the folder is a disk that may be filled.
        chance: what chooses.
        counts: what was done to the sweep, and what must not be.
    """

    folder: Path
    values: int
    can_fill: bool
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Write the function."""
        (self.folder / "known.py").write_text(FUNCTION)

    def storm(self, enough: int) -> None:
        """Disturb the sweep until so many cells are there."""
        deeds = [self.kill, self.kill, self.end, self.kill_worker, self.compact]
        deeds += [self.fill_disk] * self.can_fill
        while self.stored() < enough:
            self.chance.choice(deeds)()

    def calm(self) -> list[float]:
        """Let the sweep finish, with a worker killed now and then; return its memory over time."""
        process, memory = self.start(), list[float]()
        next_kill = time.monotonic() + 30
        while process.poll() is None:
            time.sleep(1)
            with contextlib.suppress(psutil.NoSuchProcess):
                memory.append(psutil.Process(process.pid).memory_info().rss / 1e6)
                if time.monotonic() > next_kill:
                    next_kill += 30
                    self.kill_one(process)
        self.ended(process, {0})
        return memory

    def kill(self) -> None:
        """Kill the sweep's own process."""
        process = self.start()
        self.wait(process, 2, 15)
        workers = self.workers(process)
        process.kill()
        self.counts["kills"] += 1
        self.ended(process, {0, -signal.SIGKILL})
        _, alive = psutil.wait_procs(workers, timeout=WAIT)
        self.counts["orphans"] += len(alive)

    def end(self) -> None:
        """Interrupt the sweep, or ask it to end."""
        process = self.start()
        self.wait(process, 2, 15)
        process.send_signal(self.chance.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
        self.counts["signals"] += 1
        signals = {128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        self.ended(process, {0, *signals, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT})

    def kill_worker(self) -> None:
        """Kill a worker, and let the sweep go on for a while."""
        process = self.start()
        self.wait(process, 3, 8)
        self.kill_one(process)
        self.wait(process, 5, 15)
        process.kill()
        self.ended(process, {0, -signal.SIGKILL})

    def compact(self) -> None:
        """Kill a compaction."""
        process = start([*OVERFIT, "compact", "run"], self.folder)
        self.wait(process, 0.5, 2)
        process.kill()
        self.counts["compactions killed"] += 1
        self.ended(process, {0, -signal.SIGKILL, 2 * (not (self.folder / "run").exists())})

    def fill_disk(self) -> None:
        """Fill the disk while the sweep runs; it must end with a sentence."""
        process = self.start()
        self.wait(process, 2, 10)
        ballast = (self.folder / BALLAST).open("wb", buffering=0)
        with ballast, contextlib.suppress(OSError):
            while ballast.write(bytes(4096)):
                pass
        self.counts["full disks"] += 1
        self.ended(process, {0, 1, 2})
        (self.folder / BALLAST).unlink()

    def kill_one(self, process: subprocess.Popen[str]) -> None:
        """Kill one of the sweep's workers."""
        workers = self.workers(process)
        if workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                self.chance.choice(workers).kill()
                self.counts["workers killed"] += 1

    def workers(self, process: subprocess.Popen[str]) -> list[psutil.Process]:
        """The processes that train for the sweep, without those that clear away after them."""
        with contextlib.suppress(psutil.NoSuchProcess):
            started = psutil.Process(process.pid).children(recursive=True)
            return [each for each in started if "resource_tracker" not in str(each.cmdline())]
        return []

    def start(self) -> subprocess.Popen[str]:
        """Start the sweep, or go on with it."""
        grid = [f"--n=1:{self.values}", f"--seeds={SEEDS}"]
        return start([*OVERFIT, "sweep", "known.py", *grid, "--jobs=2", "--out=run"], self.folder)

    def wait(self, process: subprocess.Popen[str], least: float, most: float) -> None:
        """Wait for a random time, or until a process ends."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(self.chance.uniform(least, most))

    def ended(self, process: subprocess.Popen[str], codes: set[int]) -> None:
        """Count what is wrong with the end of a process."""
        try:
            _, errors = process.communicate(timeout=6 * WAIT)
        except subprocess.TimeoutExpired:
            process.kill()
            _, errors = process.communicate()
            self.counts["hangs"] += 1
        self.counts["tracebacks"] += "Traceback" in errors
        self.counts["wrong exit codes"] += process.returncode not in codes
        if "Traceback" in errors or process.returncode not in codes:
            print(f"  exit code {process.returncode}: {errors[-600:]}", flush=True)

    def stored(self) -> int:
        """How many cells are there."""
        with contextlib.suppress(overfit_cli.UserError):
            return len(overfit_cli.load(self.folder / "run"))
        return 0

    def said(self) -> str:
        """What was counted, in words."""
        must_be_none = ("orphans", "hangs", "tracebacks", "wrong exit codes")
        counts = {**self.counts, **{name: self.counts[name] for name in must_be_none}}
        return f"{self.stored()} cells, " + ", ".join(f"{n} {name}" for name, n in counts.items())

    def compared(self) -> str:
        """What became of the rows, in words."""
        cells = overfit_cli.load(self.folder / "run")
        expected = {
            (n, seed): int(hashlib.sha256(f"{n},{seed}".encode()).hexdigest()[:12], 16)
            for n in range(1, self.values + 1)
            for seed in range(SEEDS)
        }
        rows = zip(cells["n"], cells["seed"], cells["loss"], strict=True)
        losses = {(n, seed): loss for n, seed, loss in rows}
        wrong = sum(expected.get(cell) != loss for cell, loss in losses.items())
        parts = [pq.read_table(part) for part in (self.folder / "run" / "cells").glob("*.parquet")]
        stored = [key for part in parts for key in part.column("key").to_pylist()]
        return (
            f"{len(cells)} of {len(expected)}, {len(expected.keys() - losses.keys())} lost, "
            f"{len(stored) - len(set(stored))} doubled, {wrong} wrong, "
            f"{int((cells['status'] != 'done').sum())} failed"
        )


def start(command: list[str], folder: Path) -> subprocess.Popen[str]:
    """Start a command whose errors are kept."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=pipe, text=True, errors="replace"
    )


def in_tenths(numbers: list[float]) -> str:
    """The largest of each tenth of a list, in words."""
    return ", ".join(f"{max(part):.0f}" for part in np.array_split(numbers, 10) if len(part))


if __name__ == "__main__":
    main()
