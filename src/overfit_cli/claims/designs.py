"""Designs of sentences: the settings and seeds that one is judged on, and what it lacks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import ABSENT, OUTCOMES, add_absent, describe_values
from overfit_cli.claims.grammar import read
from overfit_cli.claims.measured import EXTREME, REFERENCE, Table, in_brackets, settings_of
from overfit_cli.claims.quantities import LEAST_FOR_POWER, ContourPower, Power, Trend
from overfit_cli.claims.sentences import Sentence
from overfit_cli.claims.stated import Measure, column_symbols
from overfit_cli.core.arrays import varying
from overfit_cli.core.claim import UndecidedError
from overfit_cli.core.errors import BadValue
from overfit_cli.core.failures import count_alike
from overfit_cli.core.parameters import describe, parse_value
from overfit_cli.core.parameters import spellings as parameter_spellings
from overfit_cli.core.registry import claims_of
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import brief, list_numbers, plural

RANGE = "RANGE"
"""Stands for values that the user chooses."""

_MOST_SETTINGS = 3
_MOST_VALUES = 6


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
    def settings(self) -> int:
        """The number of settings."""
        return _count_settings(self.cells, self.parameters)

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
        outcomes = self.failed["reason"].astype(str).str.startswith(OUTCOMES)
        return len(self.absent) + len(self.failed) > 0 and not outcomes.any()

    def sentences(self) -> Iterator[str]:
        """Yield what it is judged on, what it leaves out, and which cells it lacks."""
        values = [
            f"{name} {_list(sorted(self.cells[name].unique().tolist()))}"
            for name in self.parameters
        ]
        those = f" ({'; '.join(values)})" if values else ""
        settings = f"{self.settings} of {self.every}" if self.settings < self.every else self.every
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
        listed = []
        for values, rows in settings_of(cells, list(self.parameters)):
            seeds = sorted(int(seed) for seed in rows["seed"])
            noun = "seed" if len(seeds) == 1 else "seeds"
            words = [describe_values({name: brief(value, 6) for name, value in values.items()})]
            words += [f"{noun} {list_numbers(seeds)}"] if self.drawn else []
            listed.append(", ".join(filter(None, words)))
        return _shortened(listed) if any(listed) else "the only one"


def _list(values: Sequence[Any]) -> str:
    if len(values) <= _MOST_VALUES:
        return ", ".join(brief(value, 6) for value in values)
    return f"{brief(values[0], 6)} to {brief(values[-1], 6)}, {len(values)} values"


def _settings_in_words(cells: pd.DataFrame, names: Sequence[str]) -> str:
    """The settings of cells in these parameters: `n=10, 20` or `n=10, method=ridge; ...`."""
    if len(names) == 1:
        return f"{names[0]}={_list(sorted(cells[names[0]].unique().tolist()))}"
    listed = [describe_values(values) for values, _ in settings_of(cells, names)]
    return _shortened(listed)


def _shortened(listed: Sequence[str]) -> str:
    more = f"; {plural(len(listed) - _MOST_SETTINGS, 'other setting')}"
    return "; ".join(listed[:_MOST_SETTINGS]) + (more if len(listed) > _MOST_SETTINGS else "")


def _count_settings(cells: pd.DataFrame, names: Iterable[str]) -> int:
    varied = varying(cells, names)
    return len(cells[varied].drop_duplicates()) if varied else 1


def design_of(measure: Measure, cells: pd.DataFrame) -> Design:
    """Return the design of a sentence on cells."""
    table, sentence = measure.table(cells), measure.sentence
    if "reason" not in table.cells:  # a study's choice is of numbers that it made of its cells
        table = replace(table, cells=table.cells.assign(status="done", reason=""))
    chosen = sentence.chosen(table)
    names = list(table.parameters)
    keep, pinned = np.zeros(len(chosen.cells), dtype=bool), set[str]()
    absent = list[pd.DataFrame]()
    for brackets in _brackets(sentence):
        several = [in_brackets(chosen, inside) for inside in brackets]
        keep |= not brackets
        for values in several:
            keep |= np.logical_and.reduce([chosen.cells[name] == v for name, v in values.items()])
        pinned |= {name for values in several for name in values}
        absent += [_unswept(chosen.cells, names, several)] if several else []
    absent = [rows for rows in absent if len(rows)]
    left_out = "" if keep.all() else _settings_in_words(chosen.cells[~keep], sorted(pinned))
    judged = pd.concat([chosen.cells[keep], *absent]).drop_duplicates([*names, "seed"])
    complete = add_absent(judged.reset_index(drop=True), names)
    whole = pd.concat([table.cells, *absent])
    unswept = {
        name: ",".join(dict.fromkeys(str(value) for rows in absent for value in rows[name]))
        for name in (varying(whole, names) if absent else ())
    }
    every = _count_settings(whole, names)
    return Design(complete, varying(complete, names), every, left_out, unswept, measure.drawn)


def _unswept(
    cells: pd.DataFrame, names: Sequence[str], brackets: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    others = cells[[name for name in names if name not in brackets[0]]].drop_duplicates()
    wanted = pd.concat([others.assign(**values) for values in brackets])[list(names)]
    marked = wanted.drop_duplicates().merge(cells[names].drop_duplicates(), "left", indicator=True)
    lacking = marked.loc[marked["_merge"] == "left_only", list(names)]
    seeds = cells[["seed"]].drop_duplicates()
    return lacking.merge(seeds, "cross").assign(status="failed", reason=ABSENT)


def _brackets(sentence: Sentence) -> list[list[str]]:
    body = re.split(r"\bwhere\b", sentence.text)[0]
    return [[inside for _, inside in REFERENCE.findall(part)] for part in body.split(";")]


# What is lacking


def settings_lacking(measure: Measure, cells: pd.DataFrame) -> dict[str, str]:
    """Return the parameters of which cells lack values that a sentence needs, with those values."""
    table, sentence = measure.table(cells), measure.sentence
    lacking = dict[str, list[str]]()
    for inside in _insides(sentence):
        for name, value in in_brackets(table, inside).items():
            if value not in set(table.cells[name]):
                lacking.setdefault(name, []).append(str(value))
    for condition in sentence.where:
        if not _is_met(table, [condition]):
            lacking |= _values_named(table, condition)
    if not lacking and not _is_met(table, sentence.where):
        for condition in sentence.where:
            lacking |= _values_named(table, condition)
    if not lacking:
        axes = _axes(sentence, table)
        chosen = sentence.chosen(table).cells
        short = [name for name, fewest in axes.items() if chosen[name].nunique() < fewest]
        lacking = {name: [] for name in short or axes}
    return {name: ",".join(dict.fromkeys(texts)) or RANGE for name, texts in lacking.items()}


def _insides(sentence: Sentence) -> list[str]:
    return [inside for brackets in _brackets(sentence) for inside in brackets]


def _is_met(table: Table, conditions: Sequence[str]) -> bool:
    try:
        return bool(len(table.chosen(conditions).cells))
    except UndecidedError:
        return False


def _axes(sentence: Sentence, table: Table) -> dict[str, int]:
    axes = dict[str, int]()
    for quantity in (clause.quantity for clause in sentence.clauses):
        if isinstance(quantity, ContourPower):
            axes[table.number_parameter(quantity.y)] = LEAST_FOR_POWER
            axes[table.number_parameter(quantity.x)] = 2
        elif isinstance(quantity, Power | Trend):
            axes[table.number_parameter(quantity.axis)] = LEAST_FOR_POWER
    return axes


_EQUALITY = re.compile(r"\s*(\w+)\s*==?\s*([^<>=!]+)")


def _values_named(table: Table, condition: str) -> dict[str, list[str]]:
    spelled = parameter_spellings(table.parameters)
    equality = _EQUALITY.fullmatch(condition)
    if equality and equality[1] in spelled:
        name, texts = spelled[equality[1]], equality[2].split(",")
        try:
            return {name: [str(parse_value(table.parameters[name], text)) for text in texts]}
        except BadValue:  # an expression
            pass
    return {name: [] for name in _parameters_in(condition, table)}


def _parameters_in(text: str, table: Table) -> list[str]:
    spelled = parameter_spellings(table.parameters)
    return [spelled[word] for word in re.findall(r"[^\W\d]\w*", text) if word in spelled]


# Before there are cells


def needs_in_words(sentence: Sentence, table: Table) -> str:
    """Say which cells a sentence needs, before there are any."""
    needs = [f"{count} values of {name} or more" for name, count in _axes(sentence, table).items()]
    for inside in _insides(sentence):
        in_brackets(table, inside)
        for part in map(str.strip, inside.split(",")):
            extreme = EXTREME.fullmatch(part)
            needs.append(f"2 values of {extreme[1]} or more" if extreme else f"cells of {part}")
    for condition in sentence.where:
        _is_met(table, [condition])
    needs += [f"cells where {' and '.join(sentence.where)}"] if sentence.where else []
    return f"It needs {'; '.join(dict.fromkeys(needs))}." if needs else "It takes any cells."


def read_stated(texts: Iterable[str], study: AnyStudy, taken: Iterable[str] = ()) -> dict[str, str]:
    """Return claims that a user states before there are cells, as texts by name.

    One that names an unknown parameter is refused, and so is a name that another claim has.
    """
    stated, known = dict[str, str](), {*taken, *(claim.name for claim in claims_of(study))}
    for text in texts:
        sentence = read(text)
        needs_in_words(sentence, table_without_cells(study))
        if sentence.name in known | stated.keys():
            raise BadValue(
                "claim", text, "another claim is called so; write a name before: 'NAME: ...'."
            )
        stated[sentence.name] = sentence.text
    return stated


def table_without_cells(study: AnyStudy) -> Table:
    """Return a table of a study's cells without any."""
    cells = pd.DataFrame(columns=["seed", *describe(study.parameters)])
    return Table(cells, study.parameters, column_symbols(study))
