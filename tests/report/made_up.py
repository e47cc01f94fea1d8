"""Made-up run directories of the toy study, and made-up claims with their verdicts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from overfit_cli import Claim, Measurement
from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.claim import Interval, Verdict
from overfit_cli.report.judge import Judged
from overfit_cli.sweeps.store import RunDirectory
from tests.toy_runs import TOY, write_cells

Numbers = Callable[[int, float, int], dict[str, float] | None]
"""What a cell measures, from n, snr and seed; None where it fails."""


def write_run(
    path: Path,
    numbers: Numbers,
    n: Sequence[int] = (1, 2),
    snr: Sequence[float] = (1.0, 2.0),
    seeds: Sequence[int] = (0, 1, 2),
    **settings: object,
) -> Path:
    """Write a run directory with a cell for each n, snr and seed."""
    results = []
    for a, b, seed in itertools.product(n, snr, seeds):
        cell = Cell(TOY.name, TOY.version, TOY.parameters(n=a, snr=b, **settings), seed)
        measured = numbers(a, b, seed)
        reason = "diverged" if measured is None else ""
        results.append(CellResult(cell, measured or {}, steps=3, reason=reason))
    directory = RunDirectory(path)
    directory.prepare()
    write_cells(directory, TOY, results)
    return path


def loss(of: Callable[[int, float, int], float | None]) -> Numbers:
    """Cells that measure a test loss alone; those that have none fail."""
    return lambda *cell: None if (number := of(*cell)) is None else {"test_loss": number}


SAID = {"source": "nowhere", "statement": "It is so.", "holds_where": "it is above 0"}


def judged(
    name: str, verdict: Verdict, *, study: str = "one", value: float = 1.0, **said: Any
) -> Judged:
    """A claim of which something may be said, with its verdict."""
    interval = Interval(-math.inf, math.inf, "95 % t")
    measurement = Measurement(verdict=verdict, value=value, interval=interval, note="Measured.")
    if verdict == "not run":
        measurement = Measurement(verdict=verdict, note="It needs other cells.")
    said = {**SAID, "preset": "quick", **said}
    claim = Claim(name=name, measure=lambda cells: measurement, **said)
    return Judged(study, claim, measurement)
