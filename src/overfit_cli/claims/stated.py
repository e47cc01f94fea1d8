"""Claims that are stated as sentences, of a user's study or a paper's, and several as one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, cast

import pandas as pd

from overfit_cli.claims.parts import Part
from overfit_cli.claims.rules import counts_that_refute, judge
from overfit_cli.claims.sentences import Sentence, read
from overfit_cli.core.cell import Column
from overfit_cli.core.cells import Cells, NoCellsError, UndefinedError
from overfit_cli.core.claim import Claim, Measurement, Verdict, inconclusive, not_run
from overfit_cli.core.errors import UserError
from overfit_cli.core.parameters import StudyParameters
from overfit_cli.core.study import AnyStudy, Schema, fields_of
from overfit_cli.core.text import plural
from overfit_cli.stats.intervals import level_of_each, set_level

Choose = Callable[[pd.DataFrame], pd.DataFrame]
"""From all cells to those that a claim is about, with further columns that it names."""


@dataclass(frozen=True)
class Measure:
    """The function that measures a sentence on a study's cells, or on those that it chooses."""

    sentence: Sentence
    model: type[StudyParameters]
    choose: Choose | None = None
    columns: Sequence[Column] = ()
    between: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    drawn: bool = True

    def cells(self, rows: pd.DataFrame) -> Cells:
        """Return the cells that the sentence is about, before its own conditions."""
        chosen = rows if self.choose is None else self.choose(rows)
        absent = {"status": "done", "reason": ""}  # of numbers that a study made of its cells
        frame = chosen.assign(**{n: value for n, value in absent.items() if n not in chosen})
        return cells_of(frame, self.model, self.columns, self.between)

    def parts(self, rows: pd.DataFrame) -> list[Part]:
        """Return the numbers that the sentence is judged on."""
        try:
            return self.sentence.parts(self.cells(rows))
        except NoCellsError as error:
            raise not_run(f"It needs cells of {error.value}: {error.accepts}") from None
        except UndefinedError as error:
            raise inconclusive(f"{error.value}: {error.accepts}") from None

    def __call__(self, cells: pd.DataFrame) -> Measurement:
        """Return the measurement; `inconclusive` where a name is unknown."""
        try:
            parts = self.parts(cells)
        except UserError as error:
            raise inconclusive(f"{error}") from error
        if not self.drawn:
            return judge([as_case(part) for part in parts], note="Nothing is drawn.")
        details = {"seeds": len(parts[0].low)}
        if unknown := sum(part.unknown for part in parts):
            details["numbers that are not known"] = unknown
        return judge(parts, details=details)


def as_case(part: Part) -> Part:
    """Return a part that a single number decides, because nothing is drawn."""
    margin = replace(part.margin, fewest_seeds=1)
    return replace(part, low=part.low[:1], high=part.high[:1], margin=margin, statistic="case")


def cells_of(
    frame: pd.DataFrame,
    model: type[StudyParameters],
    columns: Iterable[Column] = (),
    between: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> Cells:
    """Return rows as cells whose parameters are a model's.

    Args:
        columns: those that are declared, whatever the rows have.
        between: of some columns those with the least and the most that a number may be which a cell
            lacks: that of steps is at least those that were taken.
    """
    ends = {name for pair in between.values() for name in pair}
    fields = [
        replace(
            each, role="cell" if each.name in ends else each.role, between=between.get(each.name)
        )
        for each in fields_of(model, columns, frame)
    ]
    return Cells(frame, Schema(tuple(fields)), _NO_STUDY)


_NO_STUDY = cast("AnyStudy", None)
"""The study of cells that a claim is judged on, which has no need of one."""


def claim(stated: str, study: AnyStudy, **fields: Any) -> Claim:
    """Return the claim of a sentence about all cells of a study."""
    sentence = read(stated)
    given: dict[str, Any] = {
        "name": sentence.name,
        "source": "",
        "statement": sentence.text,
        "holds_where": sentence.holds_where(),
    }
    measure = Measure(sentence, study.parameters, columns=study.columns, drawn=study.seeded)
    return Claim(**{**given, **fields}, measure=measure)


def stated_claim(
    choose: Choose,
    model: type[StudyParameters],
    stated: str | Sentence,
    *,
    number: str = "",
    because: str = "",
    between: Mapping[str, tuple[str, str]] | None = None,
    **fields: Any,
) -> Claim:
    """Return the claim of a sentence about some cells, such as a design of a paper.

    Args:
        choose: chooses the cells, such as `Selection.of`; it may add columns that the sentence
            names, such as a formula's value.
        number: what is measured, in the words of `holds_where`.
    """
    sentence = stated if isinstance(stated, Sentence) else read(stated)
    given = {"holds_where": sentence.holds_where(number, because)}
    measure = Measure(sentence, model, choose, between=between or {})
    return Claim(**{**given, **fields}, measure=measure)


# Several claims as one


@dataclass(frozen=True)
class JointMeasure:
    """The function that measures a claim of several parts.

    Attributes:
        parts: the claims that it joins, by what tells them apart: `H = 2`, `exp`.
    """

    parts: Mapping[str, Claim]

    def __call__(self, cells: pd.DataFrame) -> Measurement:
        """Return the measurement of the part that decides, with the numbers of all in its details.

        It holds where all parts do, and fails where enough of them fail at the level of those
        together; see `claims.rules`.
        """
        measured = {label: claim.judge(cells) for label, claim in self.parts.items()}
        verdict = worst_verdict(part.verdict for part in measured.values())
        if verdict == "fails" and not self._refuted(cells):
            verdict = "inconclusive"
        shares = verdict if verdict in {part.verdict for part in measured.values()} else "fails"
        deciding = [label for label, part in measured.items() if part.verdict == shares]
        decisive = min(deciding, key=lambda label: _slack(measured[label]))
        details = {}
        for label, part in measured.items():
            if part.value is not None:
                details[label] = part.value
            if part.interval is not None:
                details |= {f"{label}, from": part.interval.low, f"{label}, to": part.interval.high}
        shown = measured[decisive]
        note = f"Of {plural(len(measured), 'part')} this is {decisive}. {shown.note}".strip()
        return replace(shown, verdict=verdict, details={**details, **shown.details}, note=note)

    def _refuted(self, cells: pd.DataFrame) -> bool:
        for fewest in counts_that_refute(len(self.parts)):
            with set_level(level_of_each(len(self.parts) / fewest)):
                verdicts = [claim.judge(cells).verdict for claim in self.parts.values()]
            if verdicts.count("fails") >= fewest:
                return True
        return False


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict of several claims: `fails` where one fails."""
    present = set(verdicts)
    order: tuple[Verdict, ...] = ("fails", "inconclusive", "vacuous", "not run", "holds")
    return next((verdict for verdict in order if verdict in present), "holds by far")


def _slack(measured: Measurement) -> float:
    """How far inside its margin an interval lies, in its own width: −∞ without one."""
    if measured.interval is None or measured.margin is None:
        return -math.inf
    low, high = measured.interval.low, measured.interval.high
    least, most = measured.margin
    width = high - low
    return min(low - least, most - high) / width if 0 < width < math.inf else -math.inf


def joined(parts: Mapping[str, Claim], **fields: Any) -> Claim:
    """Return one claim of several, which are true or false together.

    Args:
        parts: of one kind, on the cells of one run, by what tells them apart: `H = 2`, `exp`.
        **fields: attributes of the claim, such as its name and statement; the others, and the
            margin, are those of the first part.
    """
    return replace(next(iter(parts.values())), measure=JointMeasure(parts), **fields)
