"""Options of a sweep, as the command line and Python have them; a training has some of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from overfit_cli.core.files import DATA_VARIABLE
from overfit_cli.core.options import option, switch
from overfit_cli.core.values import Backend, DeviceChoice, ProfileName


@dataclass(frozen=True)
class SweepOptions:
    """The options of a sweep.

    `together`, `only` and `seeds` are as `Grid.read` takes them, besides what a preset sets.
    """

    together: Sequence[str] = option(
        "NAME,NAME",
        "Step through the lists of these parameters together; may be repeated.",
        default=(),
    )
    only: Sequence[str] = option(
        "CONDITION",
        "Only points of the grid that meet this, such as 'n >= 2*d'; may be repeated.",
        default=(),
    )
    seeds: Any = option(
        "SEEDS",
        "Number of seeds (5), or a list (3:7 or 0,4,9).  [default: 3, or the preset's]",
        typed=str | None,
    )
    profile: ProfileName | None = option("quick|paper", "Size of a preset.  [default: quick]")
    out: Path | None = option("DIR", "Run directory.  [default: results/NAME]")
    data: Path | None = option("DIR", "Folder of real data.", variable=DATA_VARIABLE)
    jobs: int = option(
        "N",
        "Cells to train at the same time; -1 means one per core, or all workers.",
        variable="OVERFIT_JOBS",
        default=-1,
    )
    backend: Backend = option(
        "loky|threading|dask|ray",
        "Processes (loky) or threads of this machine, or a cluster.",
        variable="OVERFIT_BACKEND",
        default="loky",
    )
    address: str | None = option(
        "ADDRESS",
        "With the backend dask its scheduler (tcp://10.0.0.1:8786), with ray the cluster "
        "(10.0.0.1:6379, or auto).",
    )
    shard: str | None = option("I/N", "Run the I-th of N equal parts of the sweep.")
    device: DeviceChoice = option("auto|cpu|cuda", "Device to train on.", default="auto")
    trajectories: bool = switch("Log every step of every cell.")
    dry_run: bool = switch("Print what would run and for how long; run nothing.")
    fresh: bool = switch("Run finished cells again.")
    retry_failed: bool = switch("Run failed cells again.")
    fail_fast: bool = switch("Stop at the first failed cell; running cells finish.")
    time_limit: float | None = option("SECONDS", "Longest time of a cell; a slower one fails.")
    refine: int | None = option(
        "ROUNDS", "Run the grid with two seeds, then add cells where the boundary is uncertain."
    )
    threshold: float | str | None = option(
        "T", "With refinement: the value at the boundary.  [default: the study's]", typed=str | None
    )
    claim: Sequence[str] = option(
        "SENTENCE",
        "A claim, such as 'test_error < 0.05 where snr > 2', to write into the manifest before "
        "the first cell; may be repeated.",
        default=(),
    )


DEFAULTS = SweepOptions()
