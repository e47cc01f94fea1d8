"""Commands on a directory with very many cells: their time and their memory.

`python -m benchmarks.scale [CELLS ...]` makes a directory of finished cells of figure 1's grid for
each number of cells, with made-up measurements in parts of the size that a sweep writes, and prints
a table of what is done with it. Without numbers these are 100,000 and 1,000,000 cells.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.registry import find_study
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.part import CELLS, cell_table
from overfit_cli.sweeps.plan import make_plan
from overfit_cli.sweeps.store import RunDirectory

SIZES = (100_000, 1_000_000)
POINTS = {"n": "2:20", "snr": "0.1:16:100"}
PER_SEED = 1900
PER_PART = 40
"""A second's work on one core, which is what a task writes."""

OVERFIT = [sys.executable, "-m", "overfit_cli"]
LOAD = [sys.executable, "-c", "import sys, overfit_cli; overfit_cli.load(sys.argv[1])"]
PLAN = [sys.executable, "-m", "benchmarks.scale", "plan"]


def main() -> None:
    """Make a directory of each size, and print a row for each command on it."""
    match sys.argv[1:]:
        case ["plan", path, number]:  # what a sweep does before it trains
            plan = make_plan(grid_of(int(number)), RunDirectory(Path(path)), "cpu")
            assert plan.to_run == plan.grid.size
            return
        case numbers:
            for cells in map(int, numbers or SIZES):
                with tempfile.TemporaryDirectory() as folder:
                    measure(grid_of(cells), Path(folder) / "run")


def grid_of(cells: int) -> Grid:
    """Figure 1's grid with so many seeds that it has at least so many cells."""
    return Grid.read(find_study("benign-vit"), POINTS, tuple(range(-(-cells // PER_SEED))))


def measure(grid: Grid, path: Path) -> None:
    """Print a table of commands on a directory of a grid's cells."""
    empty = {
        "plan, all to run": measured([*PLAN, str(path), str(grid.size)]),
        "`sweep --dry-run`, all to run": measured(sweep(grid, path, "--dry-run")),
    }
    fill(grid, path)
    parts = len(RunDirectory(path).names(CELLS))
    print(f"{grid.size:,} cells in {parts:,} parts\n", flush=True)
    print("| command | time | processor | memory |\n|---|---|---|---|", flush=True)
    for what, usage in empty.items():
        tell(what, usage)
    for what, command in commands(grid, path):
        tell(what, measured(command))
    print(flush=True)


def commands(grid: Grid, path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield what is done with a full directory, in words and as a command."""
    yield "`sweep`, nothing left to run", sweep(grid, path)
    yield "`sweep --dry-run` of it", sweep(grid, path, "--dry-run")
    yield "`load`", [*LOAD, str(path)]
    figure = ["--from", str(path), "--out", str(path.with_suffix(".png"))]
    yield "`plot heatmap`", [*OVERFIT, "plot", "heatmap", *figure]
    report = [str(path), "--out", str(path.with_name("report"))]
    yield "`report`", [*OVERFIT, "report", *report]
    yield "`export`", [*OVERFIT, "export", str(path), "--out", str(path.with_suffix(".csv"))]
    yield "`compact`", [*OVERFIT, "compact", str(path)]
    yield "`sweep`, after `compact`", sweep(grid, path)
    yield "`load`, after `compact`", [*LOAD, str(path)]


def sweep(grid: Grid, path: Path, *further: str) -> list[str]:
    """The sweep of a grid as it is typed."""
    points = [f"--set={name}={text}" for name, text in POINTS.items()]
    return [*OVERFIT, "sweep", *points, f"--seeds={len(grid.seeds)}", f"--out={path}", *further]


def fill(grid: Grid, path: Path) -> None:
    """Write every cell as done, in parts of the size that a sweep writes."""
    study, chance = grid.study, random.Random(0)
    directory = RunDirectory(path, "out")
    directory.prepare()
    directory.record(grid, {})
    # Tens of thousands of syncs are not what is timed.
    with mock.patch("overfit_cli.sweeps.store.write_whole", Path.write_bytes):
        cells = grid.cells()
        for start in range(0, len(cells), PER_PART):
            part = cells[start : start + PER_PART]
            directory.append(cell_table(study, [made_up(cell, chance) for cell in part]), None)


def made_up(cell: Cell, chance: random.Random) -> CellResult:
    """A cell that wasn't trained."""
    numbers = {
        column.name: 7 if column.kind == "int" else chance.random()
        for column in find_study(cell.study).columns
    }
    return CellResult(cell, numbers, 7)


class Usage(NamedTuple):
    """What a command took: seconds, seconds of processors, and the most gigabytes it held."""

    seconds: float
    processor: float
    memory: float


def measured(command: list[str]) -> Usage:
    """Run a command, and return what it took."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    memory = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9
    return Usage(time.perf_counter() - began, used.ru_utime + used.ru_stime, memory)


def tell(what: str, usage: Usage) -> None:
    """Print a row."""
    seconds, processor, memory = usage
    print(f"| {what} | {seconds:.1f} s | {processor:.1f} s | {memory:.2f} GB |", flush=True)


if __name__ == "__main__":
    main()
