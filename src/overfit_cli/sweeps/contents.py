"""Contents of a run directory: which cells are there, and what is known of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Known(NamedTuple):
    """What is known of a cell that is there: status, numerical version, code that trained it.

    `source` is a digest; empty where the version tells.
    """

    status: str
    version: int
    source: str

    def is_of_other_source(self, source: str) -> bool:
        """Whether it was trained by other code than this; not where one of both isn't known."""
        return bool(source and self.source) and self.source != source


@dataclass(frozen=True)
class Contents:
    """What a directory holds already, by a cell's key.

    Attributes:
        cells: what is known of every cell.
        logged: the keys of the cells that have a trajectory; empty where that wasn't asked for.
        share: of how many of the part files this is known, from 0 to 1.
    """

    cells: Mapping[str, Known]
    logged: Collection[str]
    share: float = 1.0

    def stays(self, key: str, fresh: bool, retry_failed: bool, trajectories: bool) -> bool:
        """Whether a cell is there and needn't run again.

        Args:
            key: the cell's.
            fresh: whether every cell runs again.
            retry_failed: whether those that failed do.
            trajectories: whether those do that have no trajectory.
        """
        known = self.cells.get(key)
        if known is None or fresh:
            return False
        if known.status == "failed":
            return not retry_failed
        return key in self.logged or not trajectories
