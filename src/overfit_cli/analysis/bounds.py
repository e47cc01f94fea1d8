"""Bounds that a theorem puts on quantities, and by how many powers of ten they are met."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """One item of a theorem's condition: `low` ≤ `value` ≤ `high`.

    Attributes:
        number: as the paper counts its items.
        name: the quantity that is bounded.
        value: what there is.
        low, high: the bounds; 0 and infinity where there is none.
    """

    number: int
    name: str
    value: float
    low: float = 0.0
    high: float = math.inf

    @property
    def slack(self) -> float:
        """By how many powers of ten the value lies within its bounds; negative where outside."""
        value = math.log10(self.value)
        above = value - math.log10(self.low) if self.low > 0 else math.inf
        below = math.log10(self.high) - value if math.isfinite(self.high) else math.inf
        return min(above, below)

    @property
    def decades(self) -> float:
        """By how many powers of ten the value lies outside its bounds; 0 within them."""
        return 0.0 if self.low <= self.value <= self.high else -self.slack

    def __str__(self) -> str:
        """Say the bounds and what there is."""
        sides = [f"{self.low:.3g} ≤ "] if self.low > 0 else [""]
        sides += [self.name, f" ≤ {self.high:.3g}" if math.isfinite(self.high) else ""]
        by = f"{self.decades:.1f}" if self.decades >= 0.05 else f"{self.decades:.1g}"
        missed = f", missed by {by} decades" if self.decades > 0 else ""
        return f"({self.number}) {''.join(sides)}: it is {self.value:.3g}{missed}"


def all_met(bounds: Iterable[Bound]) -> bool:
    """Return whether every value lies within its bounds."""
    return all(bound.decades == 0 for bound in bounds)


def tightest_in_words(condition: str, cells: Sequence[Sequence[Bound]]) -> list[str]:
    """Return one line per item: where it is tightest, and how many cells miss it.

    Args:
        condition: what the items are called together, to begin the first line with.
        cells: the items of each cell, in one order.
    """
    met = f"{sum(map(all_met, cells))} of {len(cells)} cells"
    lines = [f"{condition} is met by {met}; where it is tightest:"]
    for of_item in zip(*cells, strict=True):
        tightest = min(of_item, key=lambda item: item.slack)
        short = sum(item.decades > 0 for item in of_item)
        lines.append(f"  {tightest}" + (f"; {short} cells miss it" if short else ""))
    return lines
