"""Which cells are trained together, and what a cell costs. A plan needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters
from overfit_cli.study import Cell as AnyCell

Cell = AnyCell[KernelRegressionParameters]

LARGEST_BATCH = {"cpu": 128, "cuda": 4096}
"""Cells of the demo's size that are trained together: beyond, a CPU gains nothing."""


LARGEST_SPECTRUM = 4096
"""The most rows of a matrix whose singular values are computed; beyond it they are left out."""


def shape(cell: Cell) -> tuple[object, ...]:
    """Return what cells that are trained together share."""
    settings = cell.parameters
    sizes = (settings.n, settings.tokens, settings.d, settings.d_h, settings.heads)
    rest = (settings.kernel, settings.trained, settings.training_steps, settings.dtype)
    return (*rest, *sizes)


def batches(cells: Sequence[Cell], device: str) -> list[list[Cell]]:
    """Group cells by shape, whatever their seed, target and step size; the costliest first."""
    found = []
    for _, group in groupby(sorted(cells, key=shape), key=shape):
        alike = sorted(group, key=lambda cell: cell.seed)
        most = max(1, int(LARGEST_BATCH[device] * _DEMO / _tensors(alike[0])))
        found += [alike[at : at + most] for at in range(0, len(alike), most)]
    return sorted(found, key=lambda batch: -cost(batch[0]) * len(batch))


def memory(cell: Cell) -> float:
    """Return about how many bytes a batch of such cells takes, PyTorch among them."""
    return _LIBRARIES + max(_tensors(cell), LARGEST_BATCH["cpu"] * _DEMO)


def _tensors(cell: Cell) -> float:
    """The bytes of a cell's tensors, some of them a few times."""
    settings = cell.parameters
    rows = settings.n * settings.tokens
    heads = settings.heads * rows * (6 * settings.d_h + 5 * settings.tokens)
    scores = rows * settings.tokens
    singular = scores * settings.d * settings.d_h if scores <= LARGEST_SPECTRUM else 0
    weights = 2 * settings.heads * settings.d * settings.d_h
    return 8.0 * (heads + rows * (rows + settings.d * (1 + settings.heads)) + weights + singular)


def cost(cell: Cell) -> float:
    """Return about how many multiplications a cell costs."""
    settings = cell.parameters
    rows = settings.n * settings.tokens
    moved = {"query": 1, "value": 0, "all": 2}[settings.trained]
    attention = 2 * rows * settings.tokens * settings.d_h
    step = settings.heads * (attention + moved * rows * (rows + settings.tokens) * settings.d_h)
    return 2.0 * settings.training_steps * (step + _STEP_OVERHEAD)


_STEP_OVERHEAD = 2e4
_LIBRARIES = 3e8
_DEMO = 8.0 * (16 * 68 + 16 * 64 + 384 + 64 * 192)
