"""Names of run directories: two questions never land in one by accident."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from overfit_cli.cli.common import Subject
    from overfit_cli.parameters import Value
    from overfit_cli.sweep.grid import Grid

LONGEST = 120


def sweep_name(chosen: Subject, profile: str, grid: Grid) -> str:
    """Return the name of a sweep's run directory: its study or preset, and what differs from it.

    Args:
        chosen: the study or preset.
        profile: the preset's profile.
        grid: what is swept.
    """
    from overfit_cli.parameters import describe
    from overfit_cli.sweep.grid import make_grid
    from overfit_cli.sweep.presets import preset_texts

    parameters = describe(chosen.study.parameters)
    own: dict[str, Sequence[Value]] = {name: [info.default] for name, info in parameters.items()}
    base = chosen.name
    if chosen.preset is not None:
        base = chosen.preset.run_name(profile)
        texts, places = preset_texts(chosen.preset, profile)
        own.update(make_grid(chosen.study, texts, (0,), places).values)
    differing = {name: taken for name, taken in grid.values.items() if set(taken) != set(own[name])}
    return named_after(base, differing)


def named_after(base: str, values: Mapping[str, Sequence[Value]]) -> str:
    """Return `base` with what sets a run apart: `benign-vit-n20-snr`.

    Of an axis the name alone is told: it may grow, and its cells are then reused.
    """
    parts = [
        name if len(taken) > 1 else f"{name}{_brief(taken[0])}" for name, taken in values.items()
    ]
    name = "-".join([base, *parts])
    if len(name) <= LONGEST:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: LONGEST - len(mark) - 1]}-{mark}"


def _brief(value: Value) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)
