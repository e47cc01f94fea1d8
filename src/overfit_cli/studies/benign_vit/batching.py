"""Which cells are trained together, and what a cell costs. A plan needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import cast

from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.study import Cell

SMALLEST_CAPACITY = 32


def capacity_for(samples: int) -> int:
    """Return the number of samples that a start is made for: a doubling of 32.

    It depends on the cell alone, so that a cell's numbers don't depend on its neighbours.
    """
    capacity = SMALLEST_CAPACITY
    while capacity < samples:
        capacity *= 2
    return capacity


def batches(cells: Sequence[Cell], device: str) -> list[list[Cell]]:
    """Group cells that share a start (on a GPU: a shape), at most `_MOST` together.

    Seeds come one after another, because a worker keeps the starts it used last; within a seed the
    costly batches come first, so that the last ones to finish are short.
    """

    def shape(cell: Cell) -> tuple[object, ...]:
        settings = cast(BenignVitParameters, cell.parameters)
        sizes = (settings.tokens, settings.d, settings.d_h, settings.d_v, settings.test_samples)
        kind = (settings.init_divisor, settings.noise, settings.dtype)
        seed = cell.seed if device == "cpu" else 0
        return (seed, *sizes, *kind, -settings.n)

    groups = [list(group) for _, group in groupby(sorted(cells, key=shape), key=shape)]
    return [part for group in groups for part in _split(group, device)]


def _split(group: list[Cell], device: str) -> list[list[Cell]]:
    """Cut a group: on a CPU for progress and safe-keeping, on a GPU also to fit its memory."""
    most = _MOST_CELLS
    if device != "cpu":
        most = int(max(1, min(most, _GPU_BYTES / memory(group[0]))))
    return [group[first : first + most] for first in range(0, len(group), most)]


def memory(cell: Cell) -> float:
    """Return about how many bytes the cell takes: its draws and start in float64, and its state."""
    settings = cast(BenignVitParameters, cell.parameters)
    rows = capacity_for(settings.n) * settings.tokens
    test_rows = settings.test_samples * settings.tokens
    weights = settings.d * (2 * settings.d_h + settings.d_v)
    start = (rows + test_rows) * (2 * settings.d + 3 * settings.d_h + 2 * rows)
    state = settings.n * settings.tokens * 6 * settings.d_h
    return 8.0 * (weights + start + state)


def cost(cell: Cell) -> float:
    """Return the multiplications of a cell: its steps are taken to grow with N, as they do."""
    settings = cast(BenignVitParameters, cell.parameters)
    rows = settings.n * settings.tokens
    width = min(2 * (2 + settings.n * (settings.tokens - 1)), settings.d_h)
    overhead = 1e6
    step = rows * rows * width + overhead
    test = settings.test_samples * settings.tokens * rows * width
    return 2.0 * (settings.n * step + test)


_MOST_CELLS = 64
_GPU_BYTES = 16e9
