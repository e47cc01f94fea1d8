"""Choice of the run directory that decides a claim: its preset's own, then others by their names.

No time of writing matters: a copy of the runs gives the same verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from overfit_cli.claim import Claim
from overfit_cli.sweeps.presets import PROFILES, find_preset


def own_runs(claim: Claim, profile: str) -> list[str]:
    """Return the names of the run directories of a claim's preset, that of `profile` first."""
    preset = find_preset(claim.preset) if claim.preset else None
    if preset is None:
        return []
    others = [one for one in PROFILES if one != profile]
    return [preset.run_name(one) for one in (profile, *others)]


def in_order(paths: Iterable[Path], claim: Claim, profile: str) -> list[Path]:
    """Return run directories in the order in which they are asked to decide a claim."""
    own = own_runs(claim, profile)

    def place(path: Path) -> int:
        name = path.resolve().name
        return own.index(name) if name in own else len(own)

    return sorted(paths, key=lambda path: (place(path), str(path)))
