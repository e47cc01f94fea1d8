"""How long several presets still take: from what each took before, and from the speed here."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from overfit_cli.sweeps.presets import Preset
from overfit_cli.words import about

MEASURED_ON = 2
"""The jobs on which the minutes of presets were measured."""

_PRIOR = 300.0
"""Seconds of work at the measured speed that stand beside what this machine has done: the first
presets are short, and their time is that of workers that start."""


class Remaining:
    """The time that presets still take, one after the other.

    Args:
        presets: what is run, in this order.
        profile: how much of each.
        jobs: cells trained at a time.
        results: where the run directories lie.
    """

    def __init__(self, presets: Sequence[Preset], profile: str, jobs: int, results: Path) -> None:
        self._left: dict[str, float | None] = {}
        for preset in presets:
            minutes = preset.profile(profile).minutes
            missing = _missing(preset, profile, results)
            known = None if minutes is None else 60 * minutes * MEASURED_ON / jobs
            self._left[preset.name] = 0.0 if missing == 0 else known and known * missing
        self._current = self._place = ""
        self._share = 0.0
        self._expected = self._took = 0.0
        self._began = 0.0

    def of(self, preset: Preset) -> float | None:
        """Return how many seconds a preset still takes; None where that isn't known."""
        return self._left[preset.name]

    @contextmanager
    def running(self, preset: Preset, place: str) -> Iterator[None]:
        """Take the time of a preset that runs inside; `place` says which it is of all."""
        self._current, self._place, self._share = preset.name, place, 0.0
        self._began = time.monotonic()
        yield
        self._took += time.monotonic() - self._began
        self._expected += self._left[preset.name] or 0.0
        self._left[preset.name], self._current = 0.0, ""

    def after(self, share: float) -> str:
        """Return what is left in words, after this share of the preset that runs."""
        self._share = share
        return f"{self._place}: {self.in_words()}"

    def in_words(self) -> str:
        """Return about how long all of them still take, or of how many that isn't known."""
        current = self._left.get(self._current) or 0.0
        known = sum(left for left in self._left.values() if left is not None)
        known -= self._share * current
        expected = self._expected + self._share * current
        now = time.monotonic() - self._began if self._current else 0.0
        known *= (self._took + now + _PRIOR) / (expected + _PRIOR)
        unknown = sum(left is None for left in self._left.values())
        if not unknown:
            return f"{about(known)} for all"
        others = f", {about(known)} for the others" if known else ""
        return f"time not known for {unknown} of {len(self._left)}{others}"


def _missing(preset: Preset, profile: str, results: Path) -> float:
    """The share of a preset's cells that its run directory lacks."""
    from overfit_cli.cli.subject import find_subject
    from overfit_cli.cli.sweep import grid_of
    from overfit_cli.sweeps.plan import make_plan
    from overfit_cli.sweeps.store import RunDirectory

    directory = RunDirectory(results / preset.run_name(profile), "run directory")
    if not directory.path.exists():
        return 1.0
    grid, steps = grid_of(find_subject(preset.name, profile)), preset.content.trajectories
    plan = make_plan(grid, directory, "cpu", trajectories=steps, outlined=True)
    return plan.to_run / max(1, len(plan.cells))
