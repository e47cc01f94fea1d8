"""Commands on a directory with very many cells: resuming, planning, writing, joining.

`python -m benchmarks.scale [CELLS]` makes a directory of finished cells of figure 1's grid, with
made-up measurements and the parts that a sweep would write, and times what is done with it.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from benchmarks.timing import timed
from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.registry import find_study
from overfit_cli.sweeps.grid import Grid, make_grid
from overfit_cli.sweeps.manifest import record_run
from overfit_cli.sweeps.store import RunDirectory

POINTS = {"n": "2:20", "snr": "0.1:16:100"}
PER_SEED = 1900


def main() -> None:
    """Make a directory, then time commands on it."""
    cells = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seeds = -(-cells // PER_SEED)
    grid = make_grid(find_study("benign-vit"), POINTS, tuple(range(seeds)))
    folder = Path(tempfile.mkdtemp())
    try:
        path = folder / "run"
        fill(grid, path)
        print(f"{grid.size} cells in {len(RunDirectory(path).cells.names())} parts", flush=True)
        asked = ["sweep", *(f"--set={name}={text}" for name, text in POINTS.items())]
        asked += [f"--seeds={seeds}", f"--out={path}"]
        tell("a worker's first write", lambda: first_write(grid, path))
        tell("resuming, with nothing left to run", lambda: run(*asked))
        tell("a dry run of it", lambda: run(*asked, "--dry-run"))
        tell("a dry run of 5,000,000 other cells", lambda: run(*VAST, "--dry-run"))
        tell("compacting", lambda: run("compact", str(path)))
        tell("resuming then", lambda: run(*asked))
    finally:
        shutil.rmtree(folder)


VAST = ["sweep", "--n=21:120", "--snr=0.1:16:10000", "--seeds=5"]


def fill(grid: Grid, path: Path) -> None:
    """Write every cell as done, in the batches that the study makes."""
    study, chance = grid.study, random.Random(0)
    directory = RunDirectory(path, "out")
    directory.prepare()
    record_run(path, grid, {})
    # Tens of thousands of syncs are not what is timed.
    with mock.patch("overfit_cli.sweeps.part_file.write_whole", Path.write_bytes):
        for batch in study.batches(grid.cells(), "cpu"):
            directory.write(study, [made_up(cell, chance) for cell in batch])


def made_up(cell: Cell, chance: random.Random) -> CellResult:
    """A cell that wasn't trained."""
    numbers = {
        column.name: 7 if column.kind == "int" else chance.random()
        for column in find_study(cell.study).columns
    }
    return CellResult(cell, numbers, 7)


def first_write(grid: Grid, path: Path) -> None:
    """Do what a worker does with its first batch."""
    cell = Cell(grid.study.name, grid.study.version, grid.study.parameters(), seed=10**6)
    RunDirectory(path).write(grid.study, [made_up(cell, random.Random(1))])


def run(*arguments: str) -> None:
    """Run the command line."""
    command = [sys.executable, "-m", "overfit_cli", *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def tell(what: str, work: Callable[[], None]) -> None:
    """Time a piece of work and print it."""
    print(f"{what}: {timed(work)[0]:.2f} s", flush=True)


if __name__ == "__main__":
    main()
