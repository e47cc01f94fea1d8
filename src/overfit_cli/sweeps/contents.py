"""Contents of a run directory, as a plan asks for them: which cells are there, and how."""

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
