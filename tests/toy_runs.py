"""Run directories of the toy study, made in this process."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import overfit_cli
from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.registry import find_study
from overfit_cli.core.study import AnyStudy
from overfit_cli.sweeps import worker
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.part import cell_table, digest_of_bytes, trajectory_table
from overfit_cli.sweeps.store import RunDirectory
from tests.command import start, wait_for

TOY = find_study("toy")


def toy_cells(n: str = "1:3", snr: str = "1:2:2", seeds: Sequence[int] = (0,)) -> list[Cell]:
    """Cells of the toy; a batch is one `n` of one seed."""
    return Grid.read(TOY, {"n": n, "snr": snr}, tuple(seeds)).cells()


def sweep_toy(path: Path, n: str = "1:3", *, fresh: bool = False) -> RunDirectory:
    """Sweep the toy over n and two SNR, with trajectories: a part of two cells for each n."""
    grid: dict[str, Any] = {"n": n, "snr": "1:2:2", "seeds": 1, "jobs": 1}
    whole = mock.patch.object(RunDirectory, "compact")
    with mock.patch.object(worker, "TASK_SECONDS", 0.0), whole:
        overfit_cli.sweep("toy", out=path, trajectories=True, fresh=fresh, quiet=True, **grid)
    return RunDirectory(path)


def begin(cwd: Path, *words: str, parts: int = 3, **how: Any) -> subprocess.Popen[str]:
    """Start a sweep of the toy, which is into `out`, and wait until so many parts are there."""
    process = start("sweep", "toy", *words, cwd=cwd, **how)
    wait_for(lambda: len(parts_in(cwd / "out" / "cells")) >= parts)
    return process


def rows(path: Path) -> pd.DataFrame:
    """The rows that must be the same whoever trains them: all but how long they took."""
    return overfit_cli.load(path).drop(columns="seconds")


def stored_keys(directory: Path) -> list[str]:
    """The keys as they lie in the files of a run directory, repeated ones too."""
    return [key for part in parts_in(directory / "cells") for key in pd.read_parquet(part)["key"]]


def check_once(directory: Path, expected: pd.DataFrame) -> None:
    """Its rows are the expected ones, and each is stored once."""
    pd.testing.assert_frame_equal(rows(directory), expected)
    assert sorted(stored_keys(directory)) == sorted(expected["key"])


def put(folder: Path, table: pa.Table, **marks: str) -> Path:
    """Write rows as a whole part, whatever they are; with some marks, or those that they have."""
    metadata = {f"overfit.{name}": mark for name, mark in marks.items()}
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata) if marks else table, buffer)
    path = folder / f"{'0' * 20}-{digest_of_bytes(buffer.getvalue())}.parquet"
    path.write_bytes(buffer.getvalue())
    return path


def write_cells(directory: RunDirectory, study: AnyStudy, results: Sequence[CellResult]) -> None:
    """Write results as one part of each kind that there is."""
    steps = trajectory_table(study, results)
    directory.append(cell_table(study, results), steps, study.identity.source)


def parts_in(folder: Path) -> list[Path]:
    """The part files of a folder."""
    return sorted(folder.glob("*.parquet"))
