"""Bounds: quantities of claims that a single exception refutes, where their conditions are met.

`Q <= B on all seeds if A <= 0 and C <= D` is judged on the cells that meet the conditions, however
many others there are, and is vacuous where none does. A cell breaks it where Q is above B, or where
its training diverged, whatever Q is; of another one that failed nothing is known. It holds by far
where all cells lie `OUT_OF_REACH` decades or more below B.
`on 95 % of seeds` in the place of `on all seeds` judges the share of seeds at each setting.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import describe_values, is_unknown
from overfit_cli.claims.parts import FEWEST, UNBROKEN, Margin, Part, Statistic
from overfit_cli.core.arrays import Floats
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import BY_CELL, IN_MARGIN, Measurement, UndecidedError
from overfit_cli.core.expressions import Expression, Ref, compare
from overfit_cli.core.study import missed_by

OUT_OF_REACH = 3.0
"""The decades below a bound from which on it could not have been broken."""

MET = "cells that meet its hypotheses"
"""The detail with the number of those cells."""

LOST = "cells that failed or are absent"
"""The detail with the number of those, of which nothing is known."""

WITHOUT_EXCEPTION = Margin(least=UNBROKEN, fewest_seeds=FEWEST["no exception"], target=1.0)


@dataclass(frozen=True)
class Comparison:
    """`left <= right`, or another sign between them."""

    left: Expression
    sign: str
    right: Expression

    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}"

    @property
    def refs(self) -> tuple[Ref, ...]:
        """The references on both sides."""
        return (*self.left.refs, *self.right.refs)

    def sides(self, cells: Cells) -> tuple[Floats, Floats]:
        """Return in each row the side that is to be smaller, and the other; nan if not known."""
        left, right = cells.evaluate(self.left.text), cells.evaluate(self.right.text)
        return (left, right) if self.sign[0] == "<" else (right, left)

    def states(self, cells: Cells) -> pd.DataFrame:
        """Return of each row whether both sides are known, and whether it is missed."""
        smaller, larger = self.sides(cells)
        missed = compare(smaller, ">" if "=" in self.sign else ">=", larger)
        known = ~(np.isnan(smaller) | np.isnan(larger))
        return pd.DataFrame({"known": known, "missed": missed}, cells.frame.index)

    def decades(self, cells: Cells) -> pd.Series[float]:
        """Return by how many decades each row misses it, negative where it does not.

        Beside a bound of 0 there are none: nan.
        """
        smaller, larger = self.sides(cells)
        bound = larger if self.sign[0] == "<" else smaller
        named = self.left.refs[0].name if len(self.left.refs) == 1 else ""
        with np.errstate(divide="ignore", invalid="ignore"):
            is_log = named == self.left.text and cells.schema[named].decades
            decades = smaller - larger if is_log else np.log10(smaller / larger)
            decades = np.where(is_log | (bound != 0), decades, np.nan)
        return pd.Series(decades, cells.frame.index)


@dataclass(frozen=True)
class Bound:
    """A bound on cells that meet conditions.

    Attributes:
        share: of the seeds that have no exception at a setting; 0 where one exception refutes it.
    """

    bound: Comparison
    conditions: tuple[Comparison, ...] = ()
    share: float = 0.0

    def __str__(self) -> str:
        return str(self.bound)

    @property
    def margin(self) -> Margin:
        """The margin of the share of seeds without an exception."""
        margin = replace(WITHOUT_EXCEPTION, least=self.share, target=None)
        return margin if self.share else WITHOUT_EXCEPTION

    @property
    def refs(self) -> tuple[Ref, ...]:
        """The references in the bound and its conditions."""
        return (*self.bound.refs, *(ref for each in self.conditions for ref in each.refs))

    def holds_where(self) -> str:
        """Return the condition on the seeds in words."""
        words = f"at each setting the share of seeds without an exception{IN_MARGIN}{self.margin}"
        if not self.share:
            words = f"{BY_CELL}, so that it is not broken on a third of all draws"
        met = " and ".join(map(str, self.conditions))
        return f"{words}{f', on cells with {met}' if met else ''}"

    def parts(self, cells: Cells, seeds: int = FEWEST["no exception"]) -> list[Part]:
        """Return the seeds without an exception: of all settings, or of each.

        Args:
            seeds: the fewest that decide.
        """
        rows, states = cells.frame, self.bound.states(cells)
        diverged = (rows["status"] == "failed") & (missed_by(rows) == "diverged")
        broken = diverged | (states["missed"] & ~is_unknown(rows))
        unknown = ~broken & ~(states["known"] & (rows["status"] == "done"))
        met, may_meet = pd.Series(True, rows.index), pd.Series(True, rows.index)
        for condition in self.conditions:
            each = condition.states(cells)
            met, may_meet = met & each["known"] & ~each["missed"], may_meet & ~each["missed"]
        judged = met | ((unknown | diverged) & may_meet)  # a failed cell may have met them too
        unknown |= ~met
        below = -float(self.bound.decades(cells)[judged].max())
        details = dict(self._distances(cells)) | ({MET: int(met.sum())} if self.conditions else {})
        if not judged.any():
            why = f"No cell meets its hypotheses: {' and '.join(map(str, self.conditions))}."
            raise UndecidedError(Measurement(verdict="vacuous", details=details, note=why))
        details |= {} if math.isnan(below) else {"decades over the bound, most": -below}
        details |= {LOST: int(unknown[judged].sum())} if unknown[judged].any() else {}
        held = replace(cells, frame=rows[judged])
        margin = self.margin
        statistic: Statistic = "share"
        settings = list(held.settings(held.varying()))
        if not self.share or (below >= OUT_OF_REACH and not (broken | unknown)[judged].any()):
            margin, statistic, settings = WITHOUT_EXCEPTION, "no exception", [({}, held)]
        margin = replace(margin, fewest_seeds=seeds)
        found = list[Part]()
        for values, at in settings:
            index = at.frame.index
            ends = ~broken[index], unknown[index], at.frame["seed"]
            part = Part.of_cells(*ends, margin, statistic)
            found.append(replace(part, place=describe_values(values), below=below, details=details))
        return found

    def _distances(self, cells: Cells) -> Iterator[tuple[str, float]]:
        """The least and the largest distance to each condition, in decades."""
        for condition in self.conditions:
            decades = condition.decades(cells)
            if decades.notna().any():
                yield f"decades over {condition}, least", float(decades.min())
                yield f"decades over {condition}, most", float(decades.max())
