"""Tasks: how many batches a worker takes at a time, so that each is about a second's work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from overfit_cli.study import Cell

Batch = Sequence[Cell]
Task = Sequence[tuple[int, Batch]]
"""Batches with their numbers; a worker trains them one after another and writes one part."""

SECONDS = 1.0
"""What a task should take: much more than handing it out, and little to lose by a kill."""

LEAST_SECONDS = 0.25
"""What a task near the end should still take: a part per cell costs more than the jobs gain."""

MOST_BATCHES = 1000
MOST_GROWTH = 4
"""A task has at most so many times the batches of the one before: a time may be off."""


@dataclass
class TaskSize:
    """How many batches the next task has, from how long finished ones took.

    It starts with one batch. Near the end tasks are small, so that all jobs end together.

    Args:
        jobs: how many tasks run at a time.
    """

    jobs: int
    _seconds_per_work: float | None = None
    _last: int = 1

    def learn(self, work: float, seconds: float) -> None:
        """Take in what a task took: its cost, in the study's unit, and its time."""
        if work > 0:
            self._seconds_per_work = seconds / work

    def choose(self, costs: Sequence[float], left: float) -> int:
        """Return how many batches the next task has.

        Args:
            costs: of the batches that come next; more than `MOST_BATCHES` aren't looked at.
            left: the cost of all that are left.
        """
        if self._seconds_per_work is None:
            return 1
        wanted = left
        if self._seconds_per_work > 0:
            least, most = (time / self._seconds_per_work for time in (LEAST_SECONDS, SECONDS))
            wanted = min(most, max(least, left / (2 * self.jobs)))
        total, count = 0.0, 0
        for cost in costs[: min(MOST_BATCHES, MOST_GROWTH * self._last)]:
            total += cost
            if count and total > wanted:
                break
            count += 1
        self._last = count
        return count
