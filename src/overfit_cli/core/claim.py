"""Claims: sentences of a paper turned into measurements with a margin, and their digests."""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from overfit_cli.core.errors import UserError
from overfit_cli.core.text import MINUS, three_digits

if TYPE_CHECKING:
    import pandas as pd


Verdict = Literal["holds", "holds by far", "fails", "inconclusive", "vacuous", "not run"]
VERDICTS: Mapping[Verdict, str] = {
    "holds": "the whole interval lies inside the claim's margin",
    "holds by far": "all cells lie so many decades below a bound that none could have broken it",
    "fails": "the whole interval lies outside it",
    "inconclusive": "the cells can't tell",
    "vacuous": "no cell meets its hypothesis, or none could have broken it whatever is measured",
    "not run": "no cells test it",
}
"""Each verdict with its meaning."""

HOLDING: tuple[Verdict, ...] = ("holds", "holds by far")
"""The verdicts of a claim that holds."""

MARKS = dict(zip(VERDICTS, ("✓", "✓✓", "✗", "?", "○", "–"), strict=True))
"""The sign that stands before each verdict on the report's page and in notebooks."""

Kind = Literal["paper", "sharp", "ours"]
KINDS: Mapping[Kind, str] = {
    "paper": "a sentence of the paper, as printed, with its hypotheses and constants",
    "sharp": "whether a bound of the paper is tight, or a condition of it is needed",
    "ours": "a question of this tool, or of the user",
}
"""Each kind of claim with its meaning: whose sentence it is."""


@dataclass(frozen=True)
class Interval:
    """An interval of a measured number, of a kind such as `95 % t over 10 seeds`."""

    low: float
    high: float
    kind: str

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is known of either end, as with too few seeds."""
        return not (math.isfinite(self.low) or math.isfinite(self.high))


MOST_COUNTED = 1e7
"""Whole numbers below it are written in full: they are counts."""


def number_with_interval(value: float | None, interval: Interval | None) -> str:
    """Return a number with its interval in three digits: `2.03 [1.95, 2.11]`; see below."""
    return " ".join(number_parts(value, interval))


def number_parts(value: float | None, interval: Interval | None) -> list[str]:
    """Return a number and its interval in three digits: texts that no line may break.

    Without an interval a whole number below `MOST_COUNTED` is written in full.
    """
    if value is None:
        return ["–"]
    if math.isnan(value):
        return ["not known"]
    if interval is None or interval.is_unknown:
        is_count = abs(value) < MOST_COUNTED and value == round(value)
        return [f"{value:.0f}".replace("-", MINUS) if is_count else three_digits(value)]
    return [three_digits(value), f"[{three_digits(interval.low)}, {three_digits(interval.high)}]"]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The measurement of a claim.

    Attributes:
        margin: the ends of the range in which the number must lie, infinite where it is open; None
            where no such range decides.
        target: the number that the claim states, where it is no end of that range; None without.
        decided: what decided: the `interval`, or a single `case`, which another draw cannot undo.
        details: further numbers by their meanings: `{"seeds": 10, "cells that failed": 2}`.
        needed_seeds: the fewest seeds that can decide it, where there are fewer; otherwise 0.
    """

    verdict: Verdict
    value: float | None = None
    interval: Interval | None = None
    margin: tuple[float, float] | None = None
    target: float | None = None
    decided: Literal["interval", "case"] = "interval"
    details: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    needed_seeds: int = 0

    @property
    def number(self) -> str:
        """The measured value with its interval: `2.03 [1.95, 2.11] 95 % t over 10 seeds`."""
        interval = self.interval
        kind = interval.kind if interval is not None and self.value is not None else ""
        if interval is not None and interval.is_unknown:  # nothing has the level that it names
            kind = kind[max(0, kind.find("over ")) :]
        return f"{number_with_interval(self.value, interval)} {kind}".strip()

    @property
    def by_chance(self) -> bool:
        """Whether seeds decided, at a level: other draws could have decided otherwise."""
        is_beyond_chance = self.verdict in ("vacuous", "holds by far")
        return self.decided == "interval" and self.interval is not None and not is_beyond_chance


IN_MARGIN = " has its whole interval "
"""What stands between a number and its margin in `Claim.holds_where`."""

BY_CELL = "no cell breaks it"
"""What `Claim.holds_where` says of a theorem, which one cell refutes."""

_remarks: ContextVar[list[str] | None] = ContextVar("remarks", default=None)


def add_remark(sentence: str) -> None:
    """Add a sentence to the note of the claim that is being judged, such as on cells left out."""
    remarks = _remarks.get()
    if remarks is not None and sentence not in remarks:
        remarks.append(sentence)


class UndecidedError(Exception):
    """Raised by a claim's measure where the cells do not decide it; it has the measurement."""

    def __init__(self, measurement: Measurement) -> None:
        super().__init__(measurement.note)
        self.measurement = measurement


def not_run(note: str) -> UndecidedError:
    """Return the error for cells that have no bearing on a claim; the note says what it needs."""
    return UndecidedError(Measurement(verdict="not run", note=note))


def inconclusive(note: str) -> UndecidedError:
    """Return the error for cells that cannot decide a claim; the note gives the reason."""
    return UndecidedError(Measurement(verdict="inconclusive", note=note))


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence, and how it is measured.

    Attributes:
        statement: the sentence; of kind `paper` it says what the paper says, no more and no less.
        hypotheses: what the paper requires, and how the judged cells meet it; empty where it
            requires nothing.
        holds_where: the condition on the measured numbers, and the origin of its margin.
        measure: takes the study's cells, one row each, failed ones included; it raises `not_run` or
            `inconclusive` where they do not decide.
        profile: which profile of the preset has its cells.
        reads: `cells`, or `trajectories`: then `measure` takes one row per cell and logged step
            instead, with the parameters, the seed and the status of its cell.
        sealed: its form, quantity, margin and cells, as text. Where it is given its digest is of
            this alone, so that a statement may be reworded; code that makes columns isn't in it.
    """

    name: str
    source: str
    statement: str
    holds_where: str
    measure: Callable[[pd.DataFrame], Measurement]
    kind: Kind = "ours"
    hypotheses: str = ""
    figure: str = ""
    preset: str = ""
    profile: Literal["quick", "paper"] = "quick"
    reads: Literal["cells", "trajectories"] = "cells"
    sealed: str = ""

    @property
    def quantity(self) -> str:
        """The measured number in words, where `holds_where` names one: `the exponent`."""
        named, says_so, _ = self.holds_where.partition(IN_MARGIN)
        if BY_CELL in named:
            return "the share of seeds without an exception"
        return named.rpartition("; ")[2].rstrip(",") if says_so else ""

    @property
    def sentence(self) -> str:
        """The sentence that it was read from; empty of a claim that measures by itself."""
        return str(getattr(getattr(self.measure, "sentence", None), "text", ""))

    @property
    def wording(self) -> str:
        """The text that is kept beside its digest, to say what it was."""
        return self.sentence or f"{self.statement} Holds where {self.holds_where}."

    def digest(self, *, with_code: bool) -> str:
        """Return a digest in 16 hexadecimal digits: of what is sealed, or its texts and its code.

        Args:
            with_code: whether the code of its `measure` counts, as of a user's own claim. That of
                an installed study changes with its package, whose version a run directory keeps.
        """
        texts = [self.name, self.kind, self.statement, self.hypotheses, self.holds_where]
        if with_code and self.sentence:
            texts = [self.name, self.kind, self.sentence]  # it says all: words about it may change
        elif with_code:
            texts.append(_code(self.measure))
        if self.sealed:
            texts = [self.name, self.sealed]
        return hashlib.sha256(repr(texts).encode()).hexdigest()[:16]

    def contradiction(self, measurement: Measurement) -> str:
        """Return the sentence of the paper that a verdict `fails` contradicts; else empty."""
        if self.kind != "paper" or measurement.verdict != "fails":
            return ""
        met = f" Its hypotheses are met: {self.hypotheses}." if self.hypotheses else ""
        number = "" if measurement.value is None else f", measured {measurement.number}"
        rule = f" It holds where {self.holds_where}." if number else ""
        return f"Contradicts {self.source}{number}: {self.statement}{rule}{met}"

    def judge(self, cells: pd.DataFrame) -> Measurement:
        """Return the measurement on cells; UserError where its code raises an error."""
        remarks: list[str] = []
        token = _remarks.set(remarks)
        try:
            measurement = self.measure(cells)
            if not isinstance(measurement, Measurement) or measurement.verdict not in VERDICTS:
                raise ValueError(f"{measurement!r} is no Measurement of one of the verdicts")
        except UndecidedError as undecided:
            measurement = undecided.measurement
        except UserError:
            raise
        except Exception as error:  # a third party's claim may raise and return anything
            problem = f"{type(error).__name__}: {error}"
            raise UserError(f"The claim {self.name} can't be judged: {problem}.") from error
        finally:
            _remarks.reset(token)
        return replace(measurement, note=" ".join([measurement.note, *remarks]).strip())


def _code(value: object) -> str:
    """The code of a function, with what it is bound to; of anything else its text."""
    if isinstance(value, functools.partial):
        bound = [*value.args, *(item for pair in sorted(value.keywords.items()) for item in pair)]
        return " ".join(map(_code, (value.func, *bound)))
    if not inspect.isfunction(value):
        return repr(value) if not callable(value) else type(value).__qualname__
    try:
        text = inspect.getsource(value)
    except (OSError, TypeError):
        text = value.__code__.co_code.hex()
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    return " ".join([text, *map(_code, cells)])
