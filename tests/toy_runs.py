"""Run directories of the toy study, made in this process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd

import overfit_cli
from overfit_cli.core.cell import Cell
from overfit_cli.core.registry import find_study
from overfit_cli.sweeps import speed
from overfit_cli.sweeps.grid import make_grid
from overfit_cli.sweeps.store import RunDirectory

TOY = find_study("toy")


def toy_cells(n: str = "1:3", snr: str = "1:2:2", seeds: Sequence[int] = (0,)) -> list[Cell]:
    """Cells of the toy; a batch is one `n` of one seed."""
    return make_grid(TOY, {"n": n, "snr": snr}, tuple(seeds)).cells()


def sweep_toy(path: Path, n: str = "1:3", *, fresh: bool = False) -> RunDirectory:
    """Sweep the toy over n and two SNR, with trajectories: a part of two cells for each n."""
    grid: dict[str, Any] = {"n": n, "snr": "1:2:2", "seeds": 1, "jobs": 1}
    with one_part_per_batch():
        overfit_cli.sweep("toy", out=path, trajectories=True, fresh=fresh, quiet=True, **grid)
    return RunDirectory(path)


def one_part_per_batch() -> AbstractContextManager[object]:
    """Have each task be one batch, however quick it is, for sweeps in this process."""
    return mock.patch.object(speed, "TASK_SECONDS", 0.0)


def rows(path: Path) -> pd.DataFrame:
    """The rows that must be the same whoever trains them: all but how long they took."""
    return overfit_cli.load(path).drop(columns="seconds")


def stored_keys(directory: Path) -> list[str]:
    """The keys as they lie in the files of a run directory, repeated ones too."""
    return [key for part in parts_in(directory / "cells") for key in pd.read_parquet(part)["key"]]


def parts_in(folder: Path) -> list[Path]:
    """The part files of a folder."""
    return sorted(folder.glob("*.parquet"))
