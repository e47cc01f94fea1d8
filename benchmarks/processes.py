"""Whole commands, as a user waits for them: two jobs against one, and the start-up.

Each figure is a median over runs that take turns, so that a drifting machine slows all alike.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GRID = ("--n", "2:20", "--snr", "0.16:15.6:45", "--device", "cpu")
CELL = ("--n", "5", "--snr", "2", "--seeds", "1", "--device", "cpu")


def seconds(*arguments: str) -> float:
    """Return the wall time of `overfit` with these arguments, in a folder of its own."""
    folder = Path(tempfile.mkdtemp())
    command = [sys.executable, "-m", "overfit_cli", *arguments]
    try:
        began = time.perf_counter()
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3, help="runs of each")
    arguments = parser.parse_args()
    start = [seconds("--help") for _ in range(7)]
    print(f"overfit --help: {statistics.median(start):.3f} s (median of {len(start)})")
    one_cell = [seconds("sweep", *CELL, "--jobs", "1") for _ in range(5)]
    print(f"a sweep of one cell, 1 job: {statistics.median(one_cell):.2f} s")
    grid = [seconds("sweep", *GRID, "--seeds", "1", "--jobs", "1") for _ in range(arguments.pairs)]
    print(f"855 cells, 1 job: {statistics.median(grid):.1f} s")
    pairs = []
    for _ in range(arguments.pairs):
        one, two = (seconds("sweep", *GRID, "--seeds", "3", "--jobs", jobs) for jobs in ("1", "2"))
        pairs.append(one / two)
        print(
            f"2565 cells: 1 job {one:.1f} s, 2 jobs {two:.1f} s, {one / two:.2f} times", flush=True
        )
    print(f"two jobs against one: {statistics.median(pairs):.2f} times (median)")


if __name__ == "__main__":
    main()
