"""Claims of a paper: sentences about the cells of a preset, with their places in the paper.

    WIDE = on("softmax-drift", "m >= 512", activation="softmax")
    cao = Claims("softmax", "Cao et al. 2024", Parameters, COLUMNS)
    cao.paper("theorem42", "Theorem 4.2", "With m and η as stated ...", SENTENCE, on=WIDE)

A preset says which parameters are fixed and which are axes, so that a claim does not repeat it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import add_absent, describe_values, one_setting, select_values
from overfit_cli.claims.sentences import read
from overfit_cli.claims.stated import Measure, cells_of, joined
from overfit_cli.core.cell import Column
from overfit_cli.core.cells import NoCellsError
from overfit_cli.core.claim import Claim, Kind, Measurement, not_run
from overfit_cli.core.errors import BadValue
from overfit_cli.core.expressions import read_conditions
from overfit_cli.core.files import preset_folder, read_toml
from overfit_cli.core.parameters import StudyParameters, describe

Rows = Callable[[pd.DataFrame], pd.DataFrame]
"""From the chosen cells to those that are judged, such as with further columns."""


@dataclass(frozen=True)
class On:
    """The cells of a preset: what it fixes, and its axes with any of their values.

    Attributes:
        conditions: what cells must meet, on parameters or on what is measured: a failed cell whose
            numbers are not known may meet them.
        values: of parameters, in the place of the preset's; a tuple stands for any of its values,
            all of which must be there.
        free: parameters that may have any values, as axes do.
        alike: parameters that may have any value, one in all cells.
    """

    preset: str
    conditions: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    free: Collection[str] = ()
    alike: Collection[str] = ()
    profile: Literal["quick", "paper"] = "quick"

    @property
    def stated(self) -> str:
        """What it says, as text."""
        free = [sorted(self.free), sorted(self.alike)]
        values = sorted(self.values.items())
        return f"{self.preset} {self.profile} {sorted(self.conditions)} {values} {free}"

    def where(self, *conditions: str, **values: Any) -> On:
        """Return fewer of the cells."""
        conditions = (*self.conditions, *conditions)
        return replace(self, conditions=conditions, values={**self.values, **values})

    def of(self, cells: pd.DataFrame, model: type[StudyParameters]) -> pd.DataFrame:
        """Return the chosen cells, with a failed one for each that a seed lacks."""
        fixed, axes, alike = self._design(model)
        chosen = select_values(cells, fixed)
        if chosen.empty:
            raise not_run(f"It needs cells as in `overfit sweep {self.preset}`.")
        for name, values in fixed.items():
            if lacking := isinstance(values, tuple) and {*values} - {*chosen[name]}:
                those = describe_values({name: tuple(each for each in values if each in lacking)})
                raise not_run(f"It needs cells of {those}, as in `overfit sweep {self.preset}`.")
        chosen = one_setting(chosen, [name for name in model.model_fields if name in alike])
        several = {name for name, values in fixed.items() if isinstance(values, tuple)}
        varied = [name for name in model.model_fields if name in axes | several]
        chosen = self._meeting(add_absent(chosen, model.model_fields, varied), model)
        if chosen.empty:
            conditions = " and ".join(self.conditions)
            raise not_run(f"It needs cells with {conditions}, as in `overfit sweep {self.preset}`.")
        return chosen

    def _design(self, model: type[StudyParameters]) -> tuple[dict[str, Any], set[str], set[str]]:
        """The values of fixed parameters, and the names of those that may have several, or any one.

        Numbers that the preset's profiles set otherwise may have any value: cells of either are
        judged. A claim on the paper profile, such as on a public data set, takes that alone.
        """
        texts, paper = (_texts(self.preset, profile) for profile in ("quick", "paper"))
        alike = {name for name in {*texts, *paper} if texts.get(name) != paper.get(name)}
        alike &= {name for name, info in describe(model).items() if info.is_number}
        if self.profile == "paper":
            texts, alike = paper, set()
        axes, fixed = {*self.free}, dict(model().model_dump())
        for name, info in describe(model).items():
            try:
                fixed |= {name: info.parse(texts[name])} if name in texts else {}
            except BadValue:  # a range, a list, or an expression in others
                if info.is_number:
                    axes.add(name)
                else:
                    fixed[name] = tuple(info.parse(text) for text in texts[name].split(","))
        alike = {name for name in alike if not isinstance(fixed[name], tuple)} | {*self.alike}
        alike -= axes | self.values.keys()
        left = {name: value for name, value in fixed.items() if name not in axes | alike}
        return {**left, **self.values}, axes - self.values.keys(), alike

    def _meeting(self, cells: pd.DataFrame, model: type[StudyParameters]) -> pd.DataFrame:
        keep = np.ones(len(cells), dtype=bool)
        rows = cells_of(cells, model)
        for text in self.conditions:
            for test in read_conditions(text, rows.schema.placed):
                named = cells[[ref.name for ref in test.refs]]
                unknown = named.isna().any(axis=1) & (cells["status"] != "done")
                with suppress(NoCellsError):
                    unknown |= rows.meets(test, text, "claim")
                keep &= unknown.to_numpy()
        return cells[keep]


def on(
    preset: str,
    *conditions: str,
    free: Collection[str] = (),
    alike: Collection[str] = (),
    profile: Literal["quick", "paper"] = "quick",
    **values: Any,
) -> On:
    """Return the cells of a preset; see `On`."""
    return On(preset, conditions, values, free, alike, profile)


@functools.cache
def _texts(preset: str, profile: str) -> Mapping[str, str]:
    """The texts of the parameters that a preset sets."""
    content = read_toml(preset_folder() / f"{preset}.toml")
    given = {**content.get("set", {}), **content.get(profile, {}).get("set", {})}
    return {name: str(value) for name, value in given.items()}


Several = Mapping[str, Any]
"""Parts of a claim by what tells them apart: `H = 2`, `exp`."""


@dataclass
class Claims:
    """The claims of a paper on one study, in the order in which they are made.

    Attributes:
        prefix: what their names begin with.
        source: the paper, as it is cited.
        figure: which of the study's figures shows them, unless a claim names another one.
    """

    prefix: str
    source: str
    model: type[StudyParameters]
    columns: Sequence[Column] = ()
    figure: str = ""
    claims: list[Claim] = field(default_factory=list)

    def make(
        self,
        kind: Kind,
        name: str,
        place: str,
        statement: str,
        sentence: str | Several,
        *,
        on: On | Sequence[On] | Mapping[str, On],
        number: str = "",
        because: str = "",
        target: float | None = None,
        cells: Rows | None = None,
        measure: Callable[[pd.DataFrame], Measurement] | None = None,
        between: Mapping[str, tuple[str, str]] | None = None,
        drawn: bool = True,
        among: int = 1,
        **fields: Any,
    ) -> None:
        """Add a claim.

        Args:
            place: where the paper says it: `Lemma 5.1`.
            sentence: the measurement; of several the claim holds where all do. With `measure`
                it is the condition under which that holds, in words.
            on: the cells; of several presets the claim holds where it does on each.
            number: what is measured, in words.
            because: the origin of the margin.
            target: the number that the sentence states, where it is no end of its margin.
            cells: from the chosen cells, or from their logged steps where the claim reads those.
            between: of columns those with the least and the most that an unknown number may be.
            drawn: whether the cells depend on their seeds.
            among: of how many choices, such as step sizes, what is judged is the best.
            **fields: further attributes of the claim, such as `hypotheses` and `reads`.
        """
        places = {"": on} if isinstance(on, On) else on
        if not isinstance(places, Mapping):
            places = {each.preset: each for each in places}
        sentences = {"": sentence} if isinstance(sentence, str) else sentence
        parts = dict[str, Claim]()
        for (at, chosen), (label, text) in itertools.product(places.items(), sentences.items()):
            choose = functools.partial(_chosen, on=chosen, model=self.model, rows=cells)
            measured: Callable[[pd.DataFrame], Measurement]
            if measure is not None:
                holds_where, measured = text, functools.partial(_measured, choose, measure)
            else:
                stated = read(text) if target is None else read(text).with_target(target)
                holds_where = stated.holds_where(number, because, named=True)
                ends = between or {}
                measured = Measure(stated, self.model, choose, self.columns, ends, drawn, among)
            given: dict[str, Any] = {
                "name": f"{self.prefix}-{name}" if self.prefix else name,
                "kind": kind,
                "source": f"{'after ' if kind == 'ours' else ''}{self.source}, {place}",
                "figure": self.figure,
                "preset": chosen.preset,
                "profile": chosen.profile,
                "statement": statement,
                "holds_where": holds_where,
                "measure": measured,
            }
            parts[" ".join(filter(None, (label, at)))] = Claim(**{**given, **fields})
        claim = next(iter(parts.values()))
        if len(parts) > 1:
            words = dict.fromkeys(part.holds_where for part in parts.values())
            claim = joined(parts, holds_where="; ".join(words))
        seal = [*sentences.items(), *((at, each.stated) for at, each in places.items())]
        self.claims.append(replace(claim, sealed=f"{seal} {between or ''}{among} {drawn}"))

    paper = functools.partialmethod(make, "paper")
    """Makes a claim that is a sentence of the paper: see `make`."""

    sharp = functools.partialmethod(make, "sharp")
    """Makes a claim on whether a bound is tight, or a condition is needed."""

    ours = functools.partialmethod(make, "ours")
    """Makes a claim that is a question of ours."""


def _chosen(
    cells: pd.DataFrame, on: On, model: type[StudyParameters], rows: Rows | None
) -> pd.DataFrame:
    chosen = on.of(cells, model)
    return chosen if rows is None else rows(chosen)


def _measured(
    choose: Rows, measure: Callable[[pd.DataFrame], Measurement], cells: pd.DataFrame
) -> Measurement:
    return measure(choose(cells))
