"""Designs of sentences: the settings and seeds that one is judged on, and what it lacks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.claims.cells import ABSENT, STEP_LIMIT, add_absent, describe_values
from overfit_cli.claims.measured import REFERENCE, Table, settings_of
from overfit_cli.claims.quantities import LEAST_FOR_POWER, ContourPower, Power, Trend
from overfit_cli.claims.sentences import Sentence
from overfit_cli.core.arrays import varying
from overfit_cli.core.claim import UndecidedError
from overfit_cli.core.failures import count_alike
from overfit_cli.core.parameters import parse_value
from overfit_cli.core.parameters import spellings as parameter_spellings
from overfit_cli.core.text import brief, list_numbers, plural

RANGE = "RANGE"
"""Stands for values that the user chooses."""

_MOST_PLACES = 3
_MOST_VALUES = 6


@dataclass(frozen=True)
class Design:
    """The cells that a sentence is judged on.

    Attributes:
        cells: one row per cell; one that is absent has failed for the reason `ABSENT`.
        parameters: the parameters that vary among them.
        every: the number of settings of all cells of the run.
        unnamed: the values of parameters in brackets that no bracket names, in words.
    """

    cells: pd.DataFrame
    parameters: Sequence[str]
    every: int
    unnamed: str = ""

    @property
    def seeds(self) -> list[int]:
        """The seeds, in order."""
        return sorted(int(seed) for seed in self.cells["seed"].unique())

    @property
    def settings(self) -> int:
        """The number of settings."""
        return len(self.cells[list(self.parameters)].drop_duplicates()) if self.parameters else 1

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
        outcomes = self.failed["reason"].astype(str).str.startswith(("diverged", STEP_LIMIT))
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
        seeds = plural(len(self.seeds), "seed")
        yield f"Judged on {settings} {noun}{those} and {seeds} ({list_numbers(self.seeds)})."
        if self.unnamed:
            yield f"Left out, as it does not name them: {self.unnamed}."
        if len(self.absent):
            yield f"Absent: {plural(len(self.absent), 'cell')} ({self._places(self.absent)})."
        if len(self.failed):
            reasons = Counter(self.failed["reason"].astype(str).tolist())
            why = "; ".join(f"{kind.count} {kind.words}" for kind in count_alike(reasons))
            count = plural(len(self.failed), "cell")
            yield f"Failed: {count} ({self._places(self.failed)}): {why}."

    def _places(self, cells: pd.DataFrame) -> str:
        """The settings of cells with their seeds: `n=40, seeds 3, 5`."""
        places = []
        for setting, rows in settings_of(cells, list(self.parameters)):
            seeds = sorted(int(seed) for seed in rows["seed"])
            noun = "seed" if len(seeds) == 1 else "seeds"
            place = {name: brief(value, 6) for name, value in setting.items()}
            places.append(f"{describe_values(place)}, {noun} {list_numbers(seeds)}".lstrip(", "))
        more = f"; {plural(len(places) - _MOST_PLACES, 'other setting')}"
        return "; ".join(places[:_MOST_PLACES]) + (more if len(places) > _MOST_PLACES else "")


def _list(values: Sequence[Any]) -> str:
    """Values of a parameter; of many the first and the last."""
    if len(values) <= _MOST_VALUES:
        return ", ".join(brief(value, 6) for value in values)
    return f"{brief(values[0], 6)} to {brief(values[-1], 6)}, {len(values)} values"


def design_of(sentence: Sentence, table: Table) -> Design:
    """Return the design of a sentence on cells.

    Args:
        sentence: the sentence.
        table: the cells, with those that were planned and are absent.

    Raises:
        BadValue: for a name that the cells do not have.
        UndecidedError: where no cell bears on it.
    """
    chosen = table.chosen(sentence.where) if sentence.where else table
    names = list(table.parameters)
    cells, unnamed = chosen.cells, ""
    if named := _in_brackets(sentence):
        keep = np.logical_or.reduce([_has(chosen, values) for values in named])
        pinned = sorted({chosen.parameter(name) for values in named for name in values})
        others = [values for values, _ in settings_of(cells[~keep], pinned)] if ~keep.all() else []
        unnamed = "; ".join(describe_values(values) for values in others)
        cells = cells[keep]
    every = max(1, len(table.cells[varying(table.cells, names)].drop_duplicates()))
    complete = add_absent(cells, names)
    return Design(complete, varying(complete, names), every, unnamed)


def _in_brackets(sentence: Sentence) -> list[dict[str, str]]:
    """The values that each pair of brackets names, as texts by the parameter as it is written."""
    body = re.split(r"\bwhere\b", sentence.text)[0]
    named = [
        dict(part.split("=", 1) for part in inside.split(",") if "=" in part)
        for _, inside in REFERENCE.findall(body)
    ]
    return [{name.strip(): text.strip() for name, text in values.items()} for values in named]


def _has(table: Table, values: Mapping[str, str]) -> NDArray[np.bool_]:
    """Which cells have the values of a pair of brackets."""
    keep = np.ones(len(table.cells), dtype=bool)
    for written, text in values.items():
        name = table.parameter(written)
        keep &= (table.cells[name] == parse_value(table.parameters[name], text)).to_numpy()
    return keep


# What is lacking


def parameters_named(sentences: Iterable[Sentence], table: Table) -> dict[str, str]:
    """Return the parameters that sentences name, with the values to sweep them over.

    Those are what brackets and conditions name of a parameter of words, else all its choices; of a
    number they are `RANGE`.

    Args:
        sentences: the sentences.
        table: cells, or a table without rows.
    """
    names, spelled = dict[str, list[str]](), parameter_spellings(table.parameters)
    for sentence in sentences:
        equal = [re.fullmatch(r"\s*(\w+)\s*==?\s*(.+)", text) for text in sentence.where]
        pairs = [(match[1], match[2]) for match in equal if match]
        pairs += [pair for values in _in_brackets(sentence) for pair in values.items()]
        for word in re.findall(r"[^\W\d]\w*", sentence.text):
            if word in spelled:
                names.setdefault(spelled[word], [])
        for written, text in pairs:
            if table.parameters[table.parameter(written)].kind not in ("int", "float"):
                names[table.parameter(written)] += [part.strip() for part in text.split(",")]
    choices = {
        name: [str(choice) for choice in info.choices] for name, info in table.parameters.items()
    }
    return {
        name: ",".join(dict.fromkeys(texts or choices[name])) or RANGE
        for name, texts in names.items()
    }


def settings_lacking(sentence: Sentence, table: Table) -> dict[str, str]:
    """Return the parameters of which cells lack values that a sentence needs, with those values.

    Args:
        sentence: the sentence.
        table: the cells.
    """
    lacking = dict[str, str]()
    for values in _in_brackets(sentence):
        for written, text in values.items():
            name = table.parameter(written)
            if parse_value(table.parameters[name], text) not in set(table.cells[name]):
                lacking[name] = ",".join(filter(None, [lacking.get(name, ""), text]))
    if lacking:
        return lacking
    try:
        chosen = table.chosen(sentence.where) if sentence.where else table
    except UndecidedError:
        text = " ".join(sentence.where)
        spelled = parameter_spellings(table.parameters)
        words = [word for word in re.findall(r"[^\W\d]\w*", text) if word in spelled]
        return dict.fromkeys((spelled[word] for word in words), RANGE)
    axes = [table.parameter(axis) for axis in _axes(sentence)]
    return {axis: RANGE for axis in axes if chosen.cells[axis].nunique() < LEAST_FOR_POWER}


def _axes(sentence: Sentence) -> list[str]:
    """The parameters along which a sentence needs several values, as they are written."""
    quantity = sentence.quantity
    if isinstance(quantity, ContourPower):
        return [quantity.x, quantity.y]
    return [quantity.axis] if isinstance(quantity, Power | Trend) else []


def needs_in_words(sentence: Sentence, table: Table) -> str:
    """Say which cells a sentence needs, before there are any.

    Raises:
        BadValue: for a parameter that the study does not have.
    """
    axes = [table.parameter(axis) for axis in _axes(sentence)]
    needs = [f"{LEAST_FOR_POWER} values of {axis} or more" for axis in axes]
    needs += [f"cells of {describe_values(values)}" for values in _in_brackets(sentence)]
    needs += [f"cells where {' and '.join(sentence.where)}"] if sentence.where else []
    return f"It needs {'; '.join(dict.fromkeys(needs))}." if needs else "It takes any cells."
