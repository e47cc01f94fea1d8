"""Claims: sentences of a paper turned into measurements with a tolerance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["holds", "fails", "inconclusive", "not run"]


def above_zero(low: float, high: float) -> Verdict:
    """Return the verdict on "it is above zero" from the ends of an interval."""
    if low > 0:
        return "holds"
    return "fails" if high < 0 else "inconclusive"


@dataclass(frozen=True)
class Measurement:
    """What was measured for a claim.

    Attributes:
        verdict: whether the claim holds on these cells.
        sentence: the numbers in words, with the count of cells, seeds or failures behind them.
        value: the measured number; None where there is none.
        low, high: the ends of its interval; None where it has none.
        interval: what the interval is, such as `95 % bootstrap`; empty where there is none.
    """

    verdict: Verdict
    sentence: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    interval: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no verdict.

        Raises:
            ValueError: naming the verdicts.
        """
        if self.verdict not in get_args(Verdict):
            known = ", ".join(get_args(Verdict))
            raise ValueError(f"a measurement's verdict is one of {known}, not {self.verdict!r}")


def not_run(sentence: str) -> Measurement:
    """Return the measurement of a claim that the cells don't bear on, with what it needs."""
    return Measurement("not run", sentence)


def inconclusive(sentence: str) -> Measurement:
    """Return the measurement of a claim that the cells can't decide, with the reason."""
    return Measurement("inconclusive", sentence)


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and how it is measured.

    Attributes:
        name: a short name, such as `fig1-contour`.
        source: the paper and the place in it.
        statement: the claim in our words.
        accepted: the measured values with which it holds, in words.
        measure: from the study's cells, one row each (the failed ones too), to the measurement;
            it says `not run` where these cells don't bear on the claim.
    """

    name: str
    source: str
    statement: str
    accepted: str
    measure: Callable[[pd.DataFrame], Measurement]

    def __post_init__(self) -> None:
        """Refuse what can't measure.

        Raises:
            TypeError: if `measure` can't be called.
        """
        if not callable(self.measure):
            raise TypeError(f"the claim {self.name!r} has no function that measures it")
