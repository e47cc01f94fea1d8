"""Run directories of the toy study with numbers of a test's own choosing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

from overfit_cli.core.cell import Cell, CellResult
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
        parameters = TOY.parameters(n=a, snr=b, **settings)
        cell = Cell(TOY.name, TOY.version, parameters, seed)
        measured = numbers(a, b, seed)
        reason = "diverged" if measured is None else ""
        results.append(CellResult(cell, measured or {}, steps=3, reason=reason))
    directory = RunDirectory(path)
    directory.prepare()
    write_cells(directory, TOY, results)
    return path


def loss(of: Callable[[int, float, int], float | None]) -> Numbers:
    """Cells that measure a test loss alone; those that have none fail."""

    def numbers(n: int, snr: float, seed: int) -> dict[str, float] | None:
        number = of(n, snr, seed)
        return None if number is None else {"test_loss": number}

    return numbers
