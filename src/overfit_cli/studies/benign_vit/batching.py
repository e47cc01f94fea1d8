"""Cell batching and cost model; it needs no torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.study import Batches, Cells
from overfit_cli.study import Cell as AnyCell

Cell = AnyCell[BenignVitParameters]

SMALLEST_CAPACITY = 32
"""The fewest training samples that are drawn for a seed."""

REALISATIONS_KEPT = 4
"""How many seeds' token projections a process keeps."""

_STEP_OVERHEAD = 5e6
_CELL_OVERHEAD = 2e7
"""What isn't matrix products, in multiplications that take as long: measured at N 2 to 20."""

_LEAPS = 30.0
"""About how far scores go in all of a cell's training."""

_PROBED_UPDATES = 2000
_GPU_BYTES = 16e9


def capacity_for(parameters: BenignVitParameters) -> int:
    """Return the number of training samples that are drawn for a cell: a doubling of 32.

    It depends on the cell alone, so that a cell's numbers don't depend on its neighbours. In law
    it is at most what d has room for.
    """
    capacity = SMALLEST_CAPACITY
    while capacity < parameters.n:
        capacity *= 2
    if parameters.sampling == "law":
        room = (parameters.d - 2) // (parameters.tokens - 1) - parameters.test_samples
        capacity = min(capacity, room)
    return capacity


def batches(cells: Cells[BenignVitParameters], device: str) -> Batches[BenignVitParameters]:
    """Split cells into batches.

    A worker keeps the projections it used last, so seeds come one after another. Within a seed the
    costly cells come first, so that the last batches to finish are short.

    On a CPU cells are trained one by one. On a GPU a batch is trained as one tensor: it has one
    shape and fits the memory.
    """
    if device == "cpu":
        return [[cell] for cell in sorted(cells, key=lambda cell: (cell.seed, *_shape(cell)))]

    def together(cell: Cell) -> tuple[object, ...]:
        return (cell.seed // REALISATIONS_KEPT, *_shape(cell))

    groups = groupby(sorted(cells, key=together), key=together)
    return [part for _, group in groups for part in _fitting_memory(group)]


def _shape(cell: Cell) -> tuple[object, ...]:
    """What cells trained as one tensor share; the largest N sorts first."""
    settings = cell.parameters
    apart = (settings.init_divisor, settings.sigma_h, settings.sigma_v, settings.output_scale)
    sizes = (settings.tokens, settings.d, settings.d_h, settings.d_v, settings.test_samples)
    kinds = (settings.initialisation, settings.sampling, settings.noise, settings.dtype)
    return (*sizes, *apart, *kinds, -settings.n)


def _fitting_memory(cells: Iterable[Cell]) -> Iterator[list[Cell]]:
    """Cut where a GPU's memory would be exceeded; a part has at least one cell."""
    part: list[Cell] = []
    total = 0.0
    for cell in cells:
        total += memory(cell)
        if part and total > _GPU_BYTES:
            yield part
            part, total = [], memory(cell)
        part.append(cell)
    if part:
        yield part


def memory(cell: Cell) -> float:
    """Return about how many bytes the cell takes: its draws and projections, and its state."""
    settings = cell.parameters
    test_rows = settings.test_samples * settings.tokens
    capacity = capacity_for(settings)
    rows = capacity * settings.tokens
    features, width, values = settings.d, settings.d_h, settings.d_v
    if settings.sampling == "law":
        features = (capacity + settings.test_samples) * (settings.tokens - 1) + 2
        width, values = min(2 * features, settings.d_h), 1
    weights = features * (2 * width + values)
    projections = (rows + test_rows) * (2 * features + 3 * width + 2 * rows)
    state = settings.n * settings.tokens * 6 * width
    return 8.0 * (weights + projections + state)


def cost(cell: Cell) -> float:
    """Return about how many multiplications a cell costs."""
    settings = cell.parameters
    rows = settings.n * settings.tokens
    width = min(2 * (2 + settings.n * (settings.tokens - 1)), settings.d_h)
    step = rows * rows * width + _STEP_OVERHEAD
    test = settings.test_samples * settings.tokens * rows * width + _CELL_OVERHEAD
    return 2.0 * (_expected_updates(settings) * step + test)


def probe(cell: Cell) -> Cell:
    """Return the cell, with no more updates than take seconds."""
    settings = cell.parameters
    if _expected_updates(settings) <= _PROBED_UPDATES:
        return cell
    few = settings.model_copy(update={"max_steps": _PROBED_UPDATES, "leap": 0.0})
    return replace(cell, parameters=few)


def _expected_updates(parameters: BenignVitParameters) -> float:
    """About how many updates a cell takes: ten times what the theorems' T depends on.

    Samples are fitted by what is learned first, the signal or the strong noise (token 2). Ten, and
    ‖w_O‖² = 1/3, are what the paper's cells take and have.
    """
    signal = parameters.signal_norm**2
    noise = parameters.strong_noise_norm**2 / parameters.n
    common = parameters.learning_rate * parameters.epsilon / 3
    steps = min(10 / (common * max(signal, noise)), float(parameters.max_steps))
    return min(steps, _LEAPS / parameters.leap) if parameters.leap else steps
