"""Losses of a surface, saved while they are evaluated."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from overfit_cli.analysis.surfaces import Floats
from overfit_cli.files import write_whole

Losses = Callable[[Floats], Floats]
"""From points, shape (points, 2), to their losses, shape (points,)."""

SAVED_EVERY = 5.0
"""Seconds between two saves: about how much work a kill may cost."""

BLOCK = 64
"""Points that are evaluated between two looks at the clock."""


class SavedLosses:
    """Losses at points, saved to a file while they are evaluated, so that a kill costs little.

    Args:
        losses: the function that evaluates them.
        file: what it holds already isn't evaluated again. It may be impossible to write.
    """

    def __init__(self, losses: Losses, file: Path) -> None:
        self._losses, self._file = losses, file
        self._known: dict[bytes, float] = {}
        # A torn or foreign file only means that nothing is kept.
        with suppress(Exception):
            kept = np.load(io.BytesIO(file.read_bytes()), allow_pickle=False)
            self._add(kept["points"], kept["losses"])

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
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._file, content.getvalue())
