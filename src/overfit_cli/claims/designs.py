"""Designs of sentences: the settings and seeds that one is judged on, and what it lacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import ABSENT, add_absent, describe_values
from overfit_cli.claims.quantities import references
from overfit_cli.claims.sentences import Sentence, chosen, read
from overfit_cli.claims.stated import Measure, cells_of
from overfit_cli.core.arrays import varying
from overfit_cli.core.cell import ROW_COLUMNS
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import UndecidedError
from overfit_cli.core.errors import BadValue, count_alike
from overfit_cli.core.expressions import (
    Among,
    Extreme,
    Ref,
    Test,
    read_conditions,
    read_expression,
)
from overfit_cli.core.parameters import describe
from overfit_cli.core.registry import claims_of
from overfit_cli.core.study import AnyStudy, has_missed
from overfit_cli.core.text import brief, list_numbers, list_values, plural, suggestion

RANGE = "RANGE"
"""Stands for values that the user chooses."""

_MOST_SETTINGS = 3


@dataclass(frozen=True)
class Design:
    """The cells that a sentence is judged on.

    Attributes:
        every: the number of settings of all cells of the run.
        unnamed: the values of parameters in brackets that no bracket names, in words.
        unswept: the parameters' values of settings that brackets take and no cell has.
        drawn: whether seeds change anything.
    """

    cells: pd.DataFrame
    parameters: Sequence[str]
    every: int
    unnamed: str = ""
    unswept: Mapping[str, str] = field(default_factory=dict)
    drawn: bool = True

    @property
    def seeds(self) -> list[int]:
        """The seeds, in order."""
        return sorted(int(seed) for seed in self.cells["seed"].unique())

    @property
    def absent(self) -> pd.DataFrame:
        """The cells that are not there."""
        return self.cells[self.cells["reason"] == ABSENT]

    @property
    def failed(self) -> pd.DataFrame:
        """The cells that failed."""
        return self.cells[(self.cells["status"] != "done") & (self.cells["reason"] != ABSENT)]

    @property
    def is_mendable(self) -> bool:
        """Whether cells are missing, and none of them by what training came to."""
        outcomes = has_missed(self.failed)
        return len(self.absent) + len(self.failed) > 0 and not outcomes.any()

    def sentences(self) -> Iterator[str]:
        """Yield what it is judged on, what it leaves out, and which cells it lacks."""
        values = [
            f"{name} {list_values(self.cells[name].unique().tolist(), 6)}"
            for name in self.parameters
        ]
        those = f" ({'; '.join(values)})" if values else ""
        here = _count_settings(self.cells, self.parameters)
        settings = f"{here} of {self.every}" if here < self.every else self.every
        noun = "setting" if self.every == 1 else "settings"
        seeds = f" and {plural(len(self.seeds), 'seed')} ({list_numbers(self.seeds)})"
        yield f"Judged on {settings} {noun}{those}{seeds if self.drawn else ''}."
        if self.unnamed:
            yield f"Left out, because the claim does not name them: {self.unnamed}."
        if len(self.absent):
            yield f"Absent: {plural(len(self.absent), 'cell')} ({self._listed(self.absent)})."
        if len(self.failed):
            reasons = Counter(self.failed["reason"].astype(str).tolist())
            why = "; ".join(f"{kind.count} {kind.words}" for kind in count_alike(reasons))
            count = plural(len(self.failed), "cell")
            yield f"Failed: {count} ({self._listed(self.failed)}): {why.rstrip('.')}."

    def _listed(self, cells: pd.DataFrame) -> str:
        return _settings_in_words(cells, self.parameters, seeds=self.drawn) or "the only one"


def _settings_in_words(cells: pd.DataFrame, names: Sequence[str], *, seeds: bool = False) -> str:
    """Settings of cells, with their seeds if wanted: `n=10, method=ridge, seeds 0 to 3; ...`."""
    listed = list[str]()
    for values, rows in cells.groupby(list(names), dropna=False) if names else [((), cells)]:
        pairs = zip(names, cast("tuple[Any, ...]", values), strict=True)
        words = [describe_values({name: brief(value, 6) for name, value in pairs})]
        if seeds:
            numbers = sorted(rows["seed"].astype(int))
            noun = "seed" if len(numbers) == 1 else "seeds"
            words.append(f"{noun} {list_numbers(numbers)}")
        listed.append(", ".join(filter(None, words)))
    more = f"; {plural(len(listed) - _MOST_SETTINGS, 'other setting')}"
    return "; ".join(listed[:_MOST_SETTINGS]) + (more if len(listed) > _MOST_SETTINGS else "")


def _count_settings(cells: pd.DataFrame, names: Iterable[str]) -> int:
    varied = varying(cells, names)
    return len(cells[varied].drop_duplicates()) if varied else 1


def design_of(measure: Measure, rows: pd.DataFrame) -> Design:
    """Return the design of a sentence on cells."""
    cells, sentence = measure.cells(rows), measure.sentence
    left, names = chosen(cells, sentence.where), cells.parameters
    frame, keep, pinned = left.frame, np.zeros(len(left.frame), dtype=bool), set[str]()
    absent = list[pd.DataFrame]()
    for clause in sentence.clauses:
        brackets = [_values_at(left, ref) for ref in references(clause.quantity) if ref.at]
        for values in brackets or [{}]:
            keep |= np.logical_and.reduce([frame[n] == v for n, v in values.items()], axis=0)
            pinned |= values.keys()
        absent += [_unswept(frame, names, brackets)] if brackets else []
    others, unnamed = frame[~keep], ""
    if len(others) and len(pinned) == 1:
        [name] = pinned
        unnamed = f"{name}={list_values(others[name].unique().tolist(), 6)}"
    elif len(others):
        unnamed = _settings_in_words(others, sorted(pinned))
    judged = pd.concat([frame[keep], *absent]).drop_duplicates([*names, "seed"])
    complete, whole = add_absent(judged.reset_index(drop=True), names), [cells.frame, *absent]
    every = pd.concat(whole)
    unswept = {
        name: ",".join(dict.fromkeys(str(value) for each in absent for value in each[name]))
        for name in (varying(every, names) if any(map(len, absent)) else ())
    }
    settings = _count_settings(every, names)
    return Design(complete, varying(complete, names), settings, unnamed, unswept, measure.drawn)


def _tests(cells: Cells, ref: Ref) -> list[Test]:
    if not ref.at:
        return []
    # The column may be one that nobody knows yet: brackets are read behind a name that cells have.
    return [*read_expression(f"seed[{ref.inside}]", cells.schema.names, "claim").refs[0].at]


def _needs(sentence: Sentence, cells: Cells) -> Iterator[tuple[str, Sequence[Any], int]]:
    """The parameters that a sentence needs: their values by name, or the fewest that there are."""
    for name, fewest in sentence.axes(cells).items():
        yield name, [], fewest
    for test in (test for ref in sentence.references for test in _tests(cells, ref)):
        yield test.refs[0].name, test.values[:1] if isinstance(test, Among) else [], 2


def _values_at(cells: Cells, ref: Ref) -> dict[str, Any]:
    """The values that the brackets of a reference choose, by parameter."""
    values = dict[str, Any]()
    for test in _tests(cells, ref):
        if isinstance(test, Among):
            values[test.name] = test.values[0]
        elif isinstance(test, Extreme):
            column = cells.frame[test.name]
            values[test.name] = column.max() if test.which == "largest" else column.min()
    return values


def _unswept(
    cells: pd.DataFrame, names: Sequence[str], brackets: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    others = cells[[name for name in names if name not in brackets[0]]].drop_duplicates()
    wanted = pd.concat([others.assign(**values) for values in brackets])[list(names)]
    marked = wanted.drop_duplicates().merge(cells[names].drop_duplicates(), "left", indicator=True)
    lacking = marked.loc[marked["_merge"] == "left_only", list(names)]
    seeds = cells[["seed"]].drop_duplicates()
    return lacking.merge(seeds, "cross").assign(status="failed", reason=ABSENT)


# What is lacking


def settings_lacking(measure: Measure, rows: pd.DataFrame) -> dict[str, str]:
    """Return the parameters of which cells lack values that a sentence needs, with those values."""
    cells, sentence = measure.cells(rows), measure.sentence
    lacking = dict[str, list[Any]]()
    for name, values, _ in _needs(sentence, cells):
        if missing := [value for value in values if value not in set(cells.frame[name])]:
            lacking.setdefault(name, []).extend(missing)
    unmet = [condition for condition in sentence.where if not _is_met(cells, [condition])]
    if not (unmet or lacking or _is_met(cells, sentence.where)):
        unmet = [*sentence.where]
    for condition in unmet:
        for test in read_conditions(condition, cells.schema.placed):
            values = test.values if isinstance(test, Among) and not test.excludes else ()
            lacking |= {ref.name: [*values] for ref in test.refs}
    if not lacking:
        axes, left = sentence.axes(cells), chosen(cells, sentence.where).frame
        short = [name for name, fewest in axes.items() if left[name].nunique() < fewest]
        lacking = {name: [] for name in short or axes}
    return {
        name: ",".join(dict.fromkeys(map(str, values))) or RANGE for name, values in lacking.items()
    }


def _is_met(cells: Cells, conditions: Sequence[str]) -> bool:
    try:
        return bool(len(chosen(cells, conditions).frame))
    except UndecidedError:
        return False


# Before there are cells


def needs_in_words(sentence: Sentence, cells: Cells) -> str:
    """Say which cells a sentence needs, before there are any."""
    needs = [
        f"cells of {name}={values[0]}" if values else f"{fewest} values of {name} or more"
        for name, values, fewest in _needs(sentence, cells)
    ]
    _is_met(cells, sentence.where)
    needs += [f"cells where {' and '.join(sentence.where)}"] if sentence.where else []
    return f"It needs {'; '.join(dict.fromkeys(needs))}." if needs else "It takes any cells."


def read_stated(texts: Iterable[str], study: AnyStudy, taken: Iterable[str] = ()) -> dict[str, str]:
    """Return claims that a user states before there are cells, as texts by name.

    One that names an unknown parameter or column is refused, and so is a name that another claim
    has. Which columns a function has is not known before.
    """
    stated, known = dict[str, str](), {*taken, *(claim.name for claim in claims_of(study))}
    cells = cells_without_rows(study)
    for text in texts:
        sentence = read(text)
        try:
            needs_in_words(sentence, cells)
        except BadValue as error:
            raise BadValue("claim", text, error.accepts) from error
        for name in (ref.name for ref in sentence.references):
            if name not in cells.schema.names and study.identity.function is None:
                hint = suggestion(name, cells.schema.names)
                raise BadValue("claim", text, f"{name!r} is no name here; {hint}")
        if sentence.name in known | stated.keys():
            raise BadValue(
                "claim", text, "another claim is called so; write a name before: 'NAME: ...'."
            )
        stated[sentence.name] = sentence.text
    return stated


def cells_without_rows(study: AnyStudy) -> Cells:
    """Return a study's cells without any row."""
    declared = [*describe(study.parameters), *(column.name for column in study.columns)]
    frame = pd.DataFrame(columns=[*dict.fromkeys([*ROW_COLUMNS, *declared])])
    return cells_of(frame, study.parameters, study.columns)
