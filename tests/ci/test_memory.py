"""The memory of a large sweep and of a large report is held to a peak.

A limit is about a quarter above what was measured, which stands beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import scale
from tests.command import python
from tests.report.made_up import loss, write_run

ROOT = Path(__file__).parents[2]
CELLS, PER_PART = 1_000_000, 4000
"""So many cells in 250 parts, as of a sweep that joins its parts now and then."""

STORE = (
    "import sys; from pathlib import Path; from benchmarks import scale; "
    "scale.PER_PART = int(sys.argv[3]); scale.fill(scale.grid_of(int(sys.argv[1])), "
    "Path(sys.argv[2]))"
)


MEASURE = "import sys; from benchmarks import scale; print(scale.measured(sys.argv[1:]).memory)"


def gigabytes(command: Sequence[object]) -> float:
    """The most memory that a command held; of a small process, whose own counts as its child's."""
    return float(python("-c", MEASURE, *map(str, command), cwd=ROOT).stdout.split()[-1])


def test_a_sweep_of_a_million_cells_is_planned_stored_and_resumed(tmp_path: Path) -> None:
    grid, run = scale.grid_of(CELLS), tmp_path / "run"
    assert gigabytes([*scale.PLAN, run, grid.size]) < 1.55  # 1.23
    assert gigabytes([sys.executable, "-c", STORE, grid.size, run, PER_PART]) < 1.0
    assert gigabytes(scale.sweep(grid, run)) < 1.1  # 0.87
    assert len([*(run / "cells").glob("*.parquet")]) == -(-grid.size // PER_PART), "none is new"


def test_a_report_takes_no_more_memory_for_a_hundred_runs(tmp_path: Path) -> None:
    """Each has a figure; ten runs take 0.30 GB."""
    measured = loss(lambda n, snr, seed: n / (1 + snr) + seed / 10)
    runs = [write_run(tmp_path / f"{number}", measured, range(1, 9)) for number in range(100)]
    report = [*scale.OVERFIT, "report", *runs, "--out", tmp_path / "report"]
    assert gigabytes(report) < 0.4  # 0.31
    assert (tmp_path / "report" / "index.html").is_file()
