"""Order of the runs of a report, and their names: as in the paper, and as they are needed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from overfit_cli.sweeps.presets import PROFILES, all_presets
from overfit_cli.words import as_numbered


def reproduced() -> dict[str, str]:
    """Return the figure of its paper that a run directory reproduces, by the directory's name.

    Where several presets are run into one directory, it is the paper's first.
    """
    found = [
        (preset.run_name(profile), preset.content.reproduces)
        for preset in all_presets()
        for profile in PROFILES
        if preset.content.reproduces
    ]
    return dict(sorted(found, key=lambda one: as_numbered(one[1]), reverse=True))


def place(figure: str, decides: bool, path: Path) -> tuple[object, ...]:
    """Return what sorts the runs of a study as a report shows them.

    Those that reproduce a figure of the paper come first, then those that decide a claim.

    Args:
        figure: the figure that it reproduces; empty for none.
        decides: whether a claim was measured on it.
        path: where it lies.
    """
    rank = 0 if figure else 1 if decides else 2
    return (rank, as_numbered(figure), path.resolve().name, str(path))


def short_names(paths: Iterable[Path]) -> dict[Path, str]:
    """Return a name for each run: the last part of its path, numbered where several share it."""
    names: dict[Path, str] = {}
    times: dict[str, int] = {}
    for path in paths:
        name = path.resolve().name
        times[name] = times.get(name, 0) + 1
        names[path] = name if times[name] == 1 else f"{name} ({times[name]})"
    return names
