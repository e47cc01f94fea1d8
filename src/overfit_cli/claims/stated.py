"""Claims that are stated as sentences: those of a user's study, and those of a paper's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from overfit_cli.claims.everywhere import judge_parts
from overfit_cli.claims.grammar import read
from overfit_cli.claims.measured import Table
from overfit_cli.claims.quantities import Part
from overfit_cli.claims.sentences import Sentence
from overfit_cli.core.claim import Claim, Measurement, inconclusive
from overfit_cli.core.errors import UserError
from overfit_cli.core.parameters import StudyParameters, symbol_spellings
from overfit_cli.core.study import AnyStudy

Choose = Callable[[pd.DataFrame], pd.DataFrame]
"""From all cells to those that a claim is about, with further columns that it names."""


@dataclass(frozen=True)
class Measure:
    """The function that measures a sentence on a study's cells, or on those that it chooses."""

    sentence: Sentence
    model: type[StudyParameters]
    choose: Choose | None = None
    symbols: Mapping[str, str] = field(default_factory=dict)
    between: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    drawn: bool = True

    def table(self, cells: pd.DataFrame) -> Table:
        """Return the cells that the sentence is about, before its own conditions."""
        chosen = cells if self.choose is None else self.choose(cells)
        return Table(chosen, self.model, self.symbols, self.between)

    def parts(self, cells: pd.DataFrame) -> list[Part]:
        """Return the numbers that the sentence is judged on."""
        return self.sentence.parts(self.table(cells))

    def __call__(self, cells: pd.DataFrame) -> Measurement:
        """Return the measurement; `inconclusive` where a name is unknown."""
        try:
            return judge_parts(self.parts(cells), drawn=self.drawn)
        except UserError as error:
            raise inconclusive(f"{error}") from error


def column_symbols(study: AnyStudy) -> dict[str, str]:
    """Return the names of a study's measured columns by the spellings of their symbols."""
    return {
        spelling: column.name
        for column in study.columns
        for spelling in symbol_spellings(column.symbol)
    }


def claim(stated: str | Sentence, study: AnyStudy, **fields: Any) -> Claim:
    """Return the claim of a sentence about all cells of a study."""
    sentence = read(str(stated))
    given: dict[str, Any] = {
        "name": sentence.name,
        "source": "",
        "statement": sentence.text,
        "holds_where": sentence.holds_where(),
    }
    measure = Measure(sentence, study.parameters, symbols=column_symbols(study), drawn=study.seeded)
    return Claim(**{**given, **fields}, measure=measure)


def claims_of_study(stated: Iterable[Claim | str], study: AnyStudy) -> list[Claim]:
    """Return claims of which some are stated as sentences."""
    return [claim(item, study) if isinstance(item, str) else item for item in stated]


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
    sentence = read(str(stated))
    given = {"holds_where": sentence.holds_where(number, because)}
    measure = Measure(sentence, model, choose, between=between or {})
    return Claim(**{**given, **fields}, measure=measure)
