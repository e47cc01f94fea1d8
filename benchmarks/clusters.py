"""The cost of clusters: the same sweeps on loky, dask and ray, each with two workers here.

Three sweeps: 1,000 cells that use a processor for 20 ms and do nothing else, so that tasks of about
a second hold fifty; 40 such cells of a second, so that every task is one; 200 cells of the preset
`softmax-drift`. The backends take turns, in an order that rotates, so that a drifting machine slows
all alike. All of it is one process, whose connections and workers stay; the first run on each
backend, in which workers import what they need, isn't counted. Times are from the plan to the last
row on disk.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import ray
from distributed import LocalCluster

from benchmarks.timing import timed
from overfit_cli.core.registry import find_study
from overfit_cli.core.training import Execution
from overfit_cli.functions.function_study import study_of_reference
from overfit_cli.sweeps.clusters import Dask, Ray
from overfit_cli.sweeps.executors import Executor, Local, Run
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.plan import make_plan
from overfit_cli.sweeps.store import RunDirectory
from overfit_cli.sweeps.worker import Work

FUNCTION = """
import time

def train(n: int = 0, work: float = 0.02, seed: int = 0) -> dict[str, float]:
    end = time.thread_time() + work
    while time.thread_time() < end:
        pass
    return {"test_loss": float(n)}
"""


def busy(cells: int, seconds: float) -> Grid:
    """Return a grid of cells that use a processor for so many seconds."""
    study = study_of_reference("busy.py")
    return Grid.read(study, {"n": f"1:{cells}", "work": str(seconds)}, (0,))


def drift() -> Grid:
    """Return two thirds of the grid of the preset softmax-drift."""
    values = {
        "activation": "softmax,exp",
        "initialisation": "symmetric,independent",
        "m": "512,1024,2048,4096,8192",
        "epsilon": "1e-6",
    }
    return Grid.read(find_study("softmax-convergence"), values, tuple(range(10)))


SWEEPS: dict[str, Callable[[], Grid]] = {
    "1,000 cells of 20 ms": lambda: busy(1000, 0.02),
    "40 cells of 1 s": lambda: busy(40, 1.0),
    "200 cells of softmax-drift": drift,
}


@contextmanager
def executors() -> Iterator[Mapping[str, Executor]]:
    """Start clusters of two workers, and connect to them."""
    os.environ["RAY_AUTH_MODE"] = "disabled"  # else it leaves a token in the home folder
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Dask(cluster.scheduler_address) as dask,
            Ray("auto") as on_ray,
        ):
            yield {"loky": Local(2), "dask": dask, "ray": on_ray}
    finally:
        ray.shutdown()


def seconds_of(grid: Grid, executor: Executor) -> float:
    """Return how long a sweep takes in a directory of its own."""
    with tempfile.TemporaryDirectory() as folder:
        directory = RunDirectory(Path(folder))
        plan = make_plan(grid, directory, "cpu")
        directory.prepare()
        seconds, summary = timed(
            lambda: Run(plan, directory, Work(grid.study, Execution()), executor).execute()
        )
    if summary.trained != len(plan.cells) or summary.restarts:
        raise RuntimeError(f"not all cells were trained, or workers were lost: {summary}")
    return seconds


def measure(grid: Grid, backends: Mapping[str, Executor], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each round by backend, after a round that isn't counted."""
    names = list(backends)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds + 1):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            took = seconds_of(grid, backends[name])
            if number:
                seconds[name].append(took)
    return seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each that count")
    parser.add_argument("--only", default="", help="of the sweeps, those whose title has this text")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, executors() as backends:
        os.chdir(folder)
        Path("busy.py").write_text(FUNCTION)
        for title, make in SWEEPS.items():
            if asked.only not in title:
                continue
            grid = make()
            seconds = measure(grid, backends, asked.rounds)
            print(f"{title}, two workers:")
            for name, times in seconds.items():
                ratios = [own / loky for own, loky in zip(times, seconds["loky"], strict=True)]
                median = statistics.median(times)
                print(
                    f"  {name}: {median:.2f} s ({min(times):.2f} to {max(times):.2f}), "
                    f"{2000 * median / grid.size:.2f} ms of a worker per cell, "
                    f"{statistics.median(ratios):.3f} times loky's "
                    f"({min(ratios):.3f} to {max(ratios):.3f})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
