"""What a cluster costs: the same sweeps on loky, dask and ray, each with two workers here.

Cells do nothing but use up a processor's time. 5,000 of them take 20 ms each: tasks of about a
second hold fifty. Forty take a second each: every task is one. The backends take turns, so that a
drifting machine slows all alike. What is printed are wall times of the whole command, with the
start of Python, and of the workers where those are loky's; a cluster's are there already.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import ray
from distributed import LocalCluster

from benchmarks.timing import timed

FUNCTION = """
import time

def train(n: int = 0, work: float = 0.02, seed: int = 0) -> dict[str, float]:
    end = time.thread_time() + work
    while time.thread_time() < end:
        pass
    return {"test_loss": float(n)}
"""
SWEEPS = {"5,000 cells of 20 ms": (5000, 0.02), "40 cells of 1 s": (40, 1.0)}


@contextmanager
def backends() -> Iterator[Mapping[str, Sequence[str]]]:
    """The options of each backend, while its workers are there."""
    os.environ["RAY_AUTH_MODE"] = "disabled"  # else it leaves a token in the home folder
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    address = ray.get_runtime_context().gcs_address
    try:
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            yield {
                "loky": ["--jobs", "2"],
                "dask": ["--backend", "dask", "--scheduler", cluster.scheduler_address],
                "ray": ["--backend", "ray", "--address", address],
            }
    finally:
        ray.shutdown()


def sweep(options: Sequence[str], cells: int, seconds: float) -> float:
    """Return the wall time of a sweep in a folder of its own."""
    folder = Path(tempfile.mkdtemp())
    (folder / "busy.py").write_text(FUNCTION)
    grid = ["--n", f"1:{cells}", "--seeds", "1", "--set", f"work={seconds}"]
    command = [sys.executable, "-m", "overfit_cli", "sweep", "busy.py", *grid, *options]

    def run() -> None:
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)

    try:
        return timed(run)[0]
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each")
    rounds = parser.parse_args().rounds
    with backends() as options:
        for name, (cells, seconds) in SWEEPS.items():
            ideal = cells * seconds / 2
            walls: dict[str, list[float]] = {backend: [] for backend in options}
            for _ in range(rounds):
                for backend, how in options.items():
                    walls[backend].append(sweep(how, cells, seconds))
            print(f"{name}, two workers, at least {ideal:.0f} s:")
            for backend, found in walls.items():
                pairs = zip(found, walls["loky"], strict=True)
                ratio = statistics.median(one / other for one, other in pairs)
                wall = statistics.median(found)
                print(
                    f"  {backend}: {wall:.1f} s ({min(found):.1f} to {max(found):.1f}), "
                    f"{1000 * (wall - ideal) * 2 / cells:.2f} ms per cell beyond its own work, "
                    f"{ratio:.2f} times loky's",
                    flush=True,
                )


if __name__ == "__main__":
    main()
