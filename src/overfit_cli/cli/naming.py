"""Names of run directories, different for different sweeps."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from overfit_cli.cli.subject import Subject
    from overfit_cli.parameters import Value
    from overfit_cli.sweeps.grid import Grid

LONGEST = 120


def sweep_name(chosen: Subject, grid: Grid) -> str:
    """Return the name of a sweep's run directory: its study or preset, and what differs from it."""
    from overfit_cli.parameters import describe
    from overfit_cli.sweeps.grid import make_grid

    own: dict[str, Sequence[Value | None]] = {
        name: [info.default] for name, info in describe(chosen.study.parameters).items()
    }
    own.update(make_grid(chosen.study, chosen.texts, (0,), chosen.places).values)
    differing = {name: taken for name, taken in grid.values.items() if set(taken) != set(own[name])}
    return named_after(chosen.run_name, differing)


def named_after(base: str, values: Mapping[str, Sequence[Value]]) -> str:
    """Return `base` with what sets a run apart: `benign-vit-n20-snr`.

    Of an axis the name alone is told: it may grow, and its cells are then reused.
    """
    parts = [
        name if len(taken) > 1 else f"{name}{_brief(taken[0])}" for name, taken in values.items()
    ]
    name = "-".join([base, *parts])
    name = "".join("_" if letter in _SEPARATORS else letter for letter in name)
    if len(name) <= LONGEST:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: LONGEST - len(mark) - 1]}-{mark}"


_SEPARATORS = "/\\:"
"""What may stand in a text, and separates folders on some system."""


def _brief(value: Value) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)
