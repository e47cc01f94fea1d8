"""Measures of the roughness of a loss surface, and the evaluation of its points."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from overfit_cli.core.cell import Cell, Column
from overfit_cli.core.files import cache_folder, write_file
from overfit_cli.core.training import Training

Floats = NDArray[np.float64]

Losses = Callable[[Floats], Floats]
"""From points, shape (points, 2), to their losses, shape (points,)."""

MEASURES = (
    Column(
        "rms_laplacian",
        "root mean square of the surface's Laplacian",
        label="root mean square Laplacian",
    ),
    Column(
        "interior_minima",
        "points below all of their eight neighbours",
        kind="int",
        label="interior minima",
    ),
    Column(
        "quadratic_residual",
        "rms residual of the best quadratic, of the surface's deviation",
        label="residual of best quadratic",
    ),
    Column(
        "sharpness",
        "largest rise over the centre's loss, over one plus that loss",
        label="sharpness",
    ),
    Column(
        "centre_loss",
        "loss of the network, at the surface's centre",
        label="loss at the centre",
        diverges=True,
    ),
    Column("lowest_loss", "lowest loss of the surface", diverges=True),
    Column("highest_loss", "highest loss of the surface", diverges=True),
)

SAVED_EVERY = 5.0
"""Seconds between two saves: about how much work a kill may cost."""

BLOCK = 64
"""Points that are evaluated between two looks at the clock."""


def measure_landscape(
    losses: Losses,
    plane: tuple[int, float],
    centre: float,
    cell: Cell,
    training: Training,
    name: str,
) -> dict[str, float]:
    """Evaluate a cell's landscape, log its points in place of steps, and return its `MEASURES`."""
    saved = SavedLosses(losses, cache_folder() / "surfaces" / name)
    count, spacing = plane
    steps = offsets(count, spacing)
    points = grid(steps)
    flat = saved(points)  # (points · points,)
    saved.delete()
    rows = np.column_stack([points, flat]).tolist()
    for step, (a, b, loss) in enumerate(rows):
        training.log(cell, step, {"a": a, "b": b, "loss": loss})
    surface = flat.reshape(count, count)  # (points, points)
    return {
        "rms_laplacian": rms_laplacian(surface, spacing),
        "interior_minima": interior_minima(surface),
        "quadratic_residual": quadratic_residual(surface, steps),
        "sharpness": sharpness(surface, centre),
        "centre_loss": centre,
        "lowest_loss": float(surface.min()),
        "highest_loss": float(surface.max()),
    }


def offsets(points: int, spacing: float) -> Floats:
    """Return where the points lie along a direction: spacing · (r − points/2), r = 1, 2, ..."""
    return spacing * (np.arange(1, points + 1, dtype=np.float64) - points // 2)


def grid(steps: Floats) -> Floats:
    """Return all points of the plane whose coordinates are among `at`, (points · points, 2)."""
    return np.stack(np.meshgrid(steps, steps, indexing="ij"), -1).reshape(-1, 2)


def interior_minima(surface: Floats) -> int:
    """Return the number of points off the edge that are below all of their eight neighbours."""
    rows, columns = surface.shape
    centre = surface[1:-1, 1:-1]
    lower = np.ones(centre.shape, dtype=bool)  # off the edge, (rows − 2, columns − 2)
    for row in (0, 1, 2):
        for column in (0, 1, 2):
            if (row, column) != (1, 1):
                neighbours = surface[row : rows - 2 + row, column : columns - 2 + column]
                lower &= centre < neighbours
    return int(lower.sum())


def rms_laplacian(surface: Floats, spacing: float) -> float:
    """Return the root mean square of the discrete Laplacian, height per squared unit of length."""
    centre = surface[1:-1, 1:-1]
    neighbours = surface[:-2, 1:-1] + surface[2:, 1:-1] + surface[1:-1, :-2] + surface[1:-1, 2:]
    return float(np.sqrt(np.mean(np.square((neighbours - 4 * centre) / spacing**2))))


def quadratic_residual(surface: Floats, steps: Floats) -> float:
    """Return the rms residual of the best quadratic, as a share of the surface's deviation.

    0 is a perfect bowl or saddle, or flat; 1 is a surface of which a quadratic says nothing. The
    steps are the points' coordinates along either axis.
    """
    if surface.min() == surface.max():
        return 0.0
    a, b = np.meshgrid(steps, steps, indexing="ij")
    # 1, a, b, a², ab, b² at each point, (points², 6)
    terms = np.stack([np.ones_like(a), a, b, a * a, a * b, b * b], -1).reshape(-1, 6)
    flat = surface.ravel()
    fitted = terms @ np.linalg.lstsq(terms, flat, rcond=None)[0]  # (points²,)
    return float(np.sqrt(np.mean(np.square(flat - fitted))) / flat.std())


def sharpness(surface: Floats, centre: float) -> float:
    """Return the largest rise above the height `centre`, over one plus that height."""
    return (float(surface.max()) - centre) / (1 + centre)


class SavedLosses:
    """Losses at points, saved to a file while they are evaluated, so that a kill costs little."""

    def __init__(self, losses: Losses, file: Path) -> None:
        self._losses, self._file = losses, file
        self._known: dict[bytes, float] = {}
        # A torn or foreign file only means that nothing is kept.
        with suppress(Exception):
            stored = np.load(io.BytesIO(file.read_bytes()), allow_pickle=False)
            self._add(stored["points"], stored["losses"])

    def __call__(self, points: Floats) -> Floats:
        """Return the losses at points, shape (points, 2)."""
        missing = points[[point.tobytes() not in self._known for point in points]]
        saved = time.monotonic()
        for start in range(0, len(missing), BLOCK):
            block = missing[start : start + BLOCK]
            self._add(block, self._losses(block))
            if time.monotonic() - saved > SAVED_EVERY:
                self._save()
                saved = time.monotonic()
        return np.array([self._known[point.tobytes()] for point in points])

    def delete(self) -> None:
        """Remove the file, once the surface is done."""
        with suppress(OSError):
            self._file.unlink()

    def _add(self, points: Floats, losses: Floats) -> None:
        self._known.update(
            (point.tobytes(), float(loss)) for point, loss in zip(points, losses, strict=True)
        )

    def _save(self) -> None:
        points = np.frombuffer(b"".join(self._known), dtype=np.float64).reshape(-1, 2)
        content = io.BytesIO()
        np.savez(content, points=points, losses=np.array(list(self._known.values())))
        with suppress(OSError):
            write_file(self._file, content.getvalue())
