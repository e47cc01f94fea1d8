"""How long a sweep still takes, from how long its finished tasks took."""

from __future__ import annotations

from dataclasses import dataclass

WARM_UP = 2.0
"""Seconds that each job trains, at least, before the time left is known."""

LONG = 10.0
"""Seconds of a first task in which the imports of its worker hardly count."""


@dataclass
class TimeLeft:
    """The speed of a sweep, learned from its tasks.

    It counts the seconds that tasks took, not those since the start: workers that start, and
    tasks that other jobs still work on, don't make it slower.

    Args:
        jobs: how many tasks run at a time.
    """

    jobs: int
    _tasks: int = 0
    _seconds: float = 0.0
    _work: float = 0.0

    def learn(self, work: float, seconds: float) -> None:
        """Take in a task: its cost, in the study's unit, and how long it took.

        The first task of each job is passed over, unless it is long: a worker that has just
        started spends most of it on importing PyTorch.
        """
        self._tasks += 1
        if self._tasks > self.jobs or seconds >= LONG:
            self._work += work
            self._seconds += seconds

    def seconds(self, work: float, batches: int) -> float | None:
        """Return about how many seconds are left; None while too little is known.

        Args:
            work: the cost of what is left.
            batches: how many batches that is; where they are fewer than jobs, some jobs idle.
        """
        if self._work <= 0 or self._seconds < WARM_UP * self.jobs:
            return None
        return self._seconds / self._work * max(0.0, work) / max(1, min(self.jobs, batches))
