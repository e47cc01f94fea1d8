"""Claims: sentences of a paper turned into measurements with a margin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    import pandas as pd


Verdict = Literal["holds", "fails", "inconclusive", "vacuous", "not run"]
VERDICTS: Mapping[Verdict, str] = {
    "holds": "the whole interval lies inside the claim's margin",
    "fails": "the whole interval lies outside it",
    "inconclusive": "the cells can't tell",
    "vacuous": "true of these cells, but it could not have been otherwise, or its hypothesis is "
    "not met",
    "not run": "no cells bear on it",
}
"""Each verdict, with what it says."""


@dataclass(frozen=True)
class Interval:
    """An interval of a measured number.

    Attributes:
        low, high: its ends.
        kind: what it is, such as `95 % t over 10 seeds`.
    """

    low: float
    high: float
    kind: str


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What was measured for a claim.

    Attributes:
        verdict: one of `VERDICTS`.
        value: the measured number; None where there is none.
        interval: where the number lies; None where it has none.
        decided: how, where it isn't by the interval: `ranks`, by the order of runs, at a level; or
            `case`, by a single case, which another draw can't undo.
        details: further numbers, by what they are: `{"seeds": 10, "cells that failed": 2}`.
        note: what else a reader must know, in sentences.
    """

    verdict: Verdict
    value: float | None = None
    interval: Interval | None = None
    decided: Literal["interval", "ranks", "case"] = "interval"
    details: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no verdict.

        Raises:
            ValueError: naming the verdicts.
        """
        if self.verdict not in get_args(Verdict):
            known = ", ".join(get_args(Verdict))
            raise ValueError(f"a measurement's verdict is one of {known}, not {self.verdict!r}")

    @property
    def by_chance(self) -> bool:
        """Whether seeds decided, at a level: other draws could have decided otherwise."""
        if self.decided == "interval":
            return self.interval is not None and self.verdict != "vacuous"
        return self.decided == "ranks"


class UndecidedError(Exception):
    """Raised by what measures a claim where the cells don't decide it; it has the measurement."""

    def __init__(self, measurement: Measurement) -> None:
        super().__init__(measurement.note)
        self.measurement = measurement


def not_run(note: str) -> UndecidedError:
    """Return what to raise where the cells don't bear on a claim, saying what it needs."""
    return UndecidedError(Measurement(verdict="not run", note=note))


def inconclusive(note: str) -> UndecidedError:
    """Return what to raise where the cells can't decide a claim, saying why."""
    return UndecidedError(Measurement(verdict="inconclusive", note=note))


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence of a paper, and how it is measured.

    Attributes:
        name: a short name, such as `fig1-contour`.
        source: the paper and the place in it.
        statement: the claim in our words.
        holds_where: with which measured numbers it holds, and where that margin comes from.
        measure: from the study's cells, one row each (the failed ones too), to the measurement; it
            raises `not_run` or `inconclusive` where they don't decide.
        figure, preset: the names of those that show it; empty where none does.
        reads: `cells`, or `trajectories`: then `measure` is given one row per cell and logged step
            instead, with the parameters, the seed and the status of its cell.
    """

    name: str
    source: str
    statement: str
    holds_where: str
    measure: Callable[[pd.DataFrame], Measurement]
    figure: str = ""
    preset: str = ""
    reads: Literal["cells", "trajectories"] = "cells"

    def __post_init__(self) -> None:
        """Refuse what can't measure.

        Raises:
            TypeError: if `measure` can't be called.
        """
        if not callable(self.measure):
            raise TypeError(f"the claim {self.name!r} has no function that measures it")

    def judge(self, cells: pd.DataFrame) -> Measurement:
        """Return what the claim makes of cells; where measuring it raises, it has decided nothing.

        Args:
            cells: one row per cell, with the columns of the study; or one per cell and logged
                step, where it reads trajectories.
        """
        try:
            found: object = self.measure(cells)
        except UndecidedError as undecided:
            return undecided.measurement
        except KeyError as error:
            note = f"It can't be measured: the cells have no column {error}."
            return Measurement(verdict="inconclusive", note=note)
        except Exception as error:  # whatever a claim of somebody else's raises
            note = f"It can't be measured: {type(error).__name__}: {error}."
            return Measurement(verdict="inconclusive", note=note)
        if isinstance(found, Measurement):
            return found
        note = f"It can't be measured: {found!r} is no Measurement."
        return Measurement(verdict="inconclusive", note=note)
