"""Shards: disjoint parts of a sweep, for machines that know nothing of each other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from overfit_cli.errors import UserError
from overfit_cli.study import Cell

MOST_SHARDS = 100_000
ACCEPTS = "I/N, such as 2/8: the second of eight parts"


@dataclass(frozen=True)
class Shard:
    """One part of several.

    Attributes:
        number: which, from 1.
        of: how many there are.
    """

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def cells_of(self, cells: Sequence[Cell], cost: Callable[[Cell], float]) -> list[Cell]:
        """Return this shard's cells, in their order.

        Cells are dealt out by falling cost, one to each shard and then back again, whether they are
        finished or not: so each machine finds the same parts whenever it looks. Of the same cost,
        neighbours in the grid go to different shards; who is first is drawn anew each time. So what
        is missing falls to all alike, and so do costs that nobody knows, such as a function's.

        Args:
            cells: of the whole sweep, in the same order for all shards.
            cost: of a cell, in any unit.
        """
        costs = [cost(cell) for cell in cells]
        falling = sorted(range(len(cells)), key=lambda place: -costs[place])
        own = list[int]()
        for start in range(0, len(falling), 2 * self.of):
            place = self._place(start)
            own += [start + place, start + 2 * self.of - 1 - place]
        chosen = sorted(falling[at] for at in own if at < len(falling))
        return [cells[at] for at in chosen]

    def _place(self, turn: int) -> int:
        """Its place from 0 in a turn, drawn by a hash: the same with every version of Python."""
        drawn = [
            hashlib.sha256(f"{number}/{self.of} {turn}".encode()).digest()
            for number in range(1, self.of + 1)
        ]
        return sorted(drawn).index(drawn[self.number - 1])


def parse_shard(text: str | None, *, refined: bool = False) -> Shard | None:
    """Return the shard that a text names; None for no text.

    Args:
        text: such as `2/8`.
        refined: whether it is a part of a refinement.

    Raises:
        UserError: if it is none, or of a refinement.
    """
    if text is None:
        return None
    number, slash, of = text.partition("/")
    # `isdecimal` alone takes digits of other scripts, and `int` would take thousands of them.
    plain = all(one.isascii() and one.isdecimal() and len(one) < 9 for one in (number, of))
    if not slash or not plain or not 1 <= int(number) <= int(of) <= MOST_SHARDS:
        raise UserError(f"--shard {text}: it takes {ACCEPTS}.")
    if refined:
        raise UserError(f"--shard {text}: a sweep with --refine chooses cells from all of them.")
    return Shard(int(number), int(of))
