"""Theorems on cells: judged on those that meet its hypotheses, and refuted by one exception."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from overfit_cli.claims.parts import FEWEST, UNBROKEN, Margin, Part
from overfit_cli.claims.rules import judge
from overfit_cli.core.claim import BY_CELL, Measurement

FEWEST_SEEDS_OF_THEOREM = FEWEST["no exception"]
THEOREM_RULE = (
    f"{BY_CELL}; at least {FEWEST_SEEDS_OF_THEOREM} seeds, enough to rule out a violation "
    "on a third of all draws"
)


@dataclass(frozen=True)
class Requirements:
    """The hypotheses of a theorem, by the distance of each cell to them.

    Attributes:
        missed: the distance of each cell to each hypothesis by its name; above 0, and without a
            number, the cell does not meet it.
        in_words: the hypotheses that are missed, for the sentence after its colon.
    """

    missed: Mapping[str, pd.Series[float]]
    in_words: str

    def met(self) -> pd.Series[bool]:
        """Return which cells meet all of them."""
        met: pd.Series[bool] = (pd.DataFrame({**self.missed}) <= 0).all(axis=1)
        return met

    def judged(self, unknown: pd.Series[bool]) -> pd.Series[bool]:
        """Return the cells that a theorem is judged on: those that meet all, and those that may.

        A cell of which it is unknown whether it breaks the theorem may have met the hypotheses too.
        """
        return self.met() | (unknown & ~(pd.DataFrame({**self.missed}) > 0).any(axis=1))

    def distances(self) -> dict[str, float]:
        """Return the least and the largest distance to each of them."""
        return {
            f"{words}, {end}": float(number)
            for words, amounts in self.missed.items()
            for end, number in (("least", amounts.min()), ("most", amounts.max()))
        }


OUT_OF_REACH = 3.0
"""The decades below a bound from which on it could not have been broken."""

MET = "cells that meet its hypotheses"
"""The detail with the number of those cells."""

LOST = "cells that failed or are absent"
"""Which cells are unknown, where nothing else is said."""

WITHOUT_EXCEPTION = Margin(least=UNBROKEN, fewest_seeds=FEWEST_SEEDS_OF_THEOREM, target=1.0)


def judge_theorem(
    broken: pd.Series[bool],
    seeds: pd.Series[int],
    *,
    unknown: pd.Series[bool] | None = None,
    unknown_because: str = LOST,
    requirements: Requirements | None = None,
    decades_over: pd.Series[float] | None = None,
    note: str = "",
    details: Mapping[str, float] | None = None,
) -> Measurement:
    """Return the measurement of a theorem: one cell that breaks it refutes it.

    It is judged on the cells that meet its hypotheses, however many others there are, and vacuous
    where none does. It holds where no cell of `FEWEST_SEEDS_OF_THEOREM` seeds breaks it: if it were
    broken on a third of all draws, so many seeds without a break would have a probability below
    1/50. It holds by far where all cells lie `OUT_OF_REACH` decades or more below a bound.

    Args:
        unknown: whether a cell failed or is absent: it refutes nothing, and with it nothing holds.
        decades_over: the decades by which each cell lies above a bound; negative below it.
    """
    details, all_known = dict(details or {}), pd.Series(False, broken.index)
    unknown = all_known if unknown is None else unknown.astype(bool)
    judged = ~all_known
    if decades_over is not None:
        details["decades over the bound, most"] = float(decades_over.max())
    if requirements is not None:
        judged, met = requirements.judged(unknown), requirements.met()
        details |= requirements.distances() | {MET: int(met.sum())}
        if not judged.any():
            why = f"No cell meets its hypotheses: {requirements.in_words}."
            return mark_vacuous(Measurement(verdict="vacuous", note=note), why, details)
    lost = int(unknown[judged].sum())
    words = f"The share of seeds without an exception. {note}".strip()
    if lost:
        details[unknown_because] = lost
        words += f" {unknown_because[0].upper()}{unknown_because[1:]} may break it."
    measured = judge(
        [
            Part.of_cells(
                ~broken[judged], unknown[judged], seeds[judged], WITHOUT_EXCEPTION, "no exception"
            )
        ],
        note=words,
        details=details,
    )
    measured = replace(measured, margin=None)
    return measured if decades_over is None else mark_by_far(measured, -decades_over[judged].max())


def mark_by_far(measured: Measurement, below: float) -> Measurement:
    """Return a measurement of a bound: it holds by far where all lies decades below the bound."""
    if measured.verdict != "holds" or not below >= OUT_OF_REACH:
        return measured
    note = f"{measured.note} All cells lie {below:.0f} decades or more below the bound."
    return replace(measured, verdict="holds by far", note=note)


def mark_vacuous(measured: Measurement, reason: str, details: Mapping[str, float]) -> Measurement:
    """Return a measurement as vacuous, for a reason, as a sentence: it could not be broken."""
    note = f"{measured.note} {reason}".strip()
    return replace(measured, verdict="vacuous", details={**measured.details, **details}, note=note)
