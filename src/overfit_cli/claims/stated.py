"""Claims that are stated as sentences, and their designs: the settings and seeds of a verdict."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import ABSENT, add_absent
from overfit_cli.claims.parts import Part, Worlds, counts_that_refute
from overfit_cli.claims.quantities import Curve, references
from overfit_cli.claims.rules import judge
from overfit_cli.claims.sentences import STEP_COLUMN, Sentence, chosen, comparison, read
from overfit_cli.core.arrays import varying
from overfit_cli.core.cell import ROW_COLUMNS, Column
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import (
    Claim,
    Measurement,
    UndecidedError,
    Verdict,
    inconclusive,
    not_run,
)
from overfit_cli.core.errors import BadValue, UserError, count_alike
from overfit_cli.core.expressions import Among, Extreme, Ref, read_conditions, read_expression
from overfit_cli.core.parameters import StudyParameters, describe
from overfit_cli.core.registry import claims_of
from overfit_cli.core.study import AnyStudy, Schema, fields_of, has_missed
from overfit_cli.core.text import brief, list_numbers, list_values, plural, suggestion, three_digits
from overfit_cli.stats.intervals import LEVEL, level_of_each, set_level

TRIALS = 50
EXTREME = np.outer([-1, 0, 1], np.logspace(-12, 12, 9)).ravel()
"""Numbers that any column may have."""

NO_POWER = "It is no power"
"""So begins the note on a power that its own pieces refute."""

Choose = Callable[[pd.DataFrame], pd.DataFrame]
"""From all cells to those that a claim is about, with further columns that it names."""


@dataclass(frozen=True)
class Measure:
    """The function that measures a sentence on a study's cells, or on those that it chooses.

    Attributes:
        among: of how many choices, on the same seeds, what is judged was the best.
    """

    sentence: Sentence
    model: type[StudyParameters]
    choose: Choose | None = None
    columns: Sequence[Column] = ()
    between: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    drawn: bool = True
    among: int = 1

    def cells(self, rows: pd.DataFrame) -> Cells:
        """Return the cells that the sentence is about, before its own conditions."""
        chosen = rows if self.choose is None else self.choose(rows)
        absent = {"status": "done", "reason": ""}  # of numbers that a study made of its cells
        frame = chosen.assign(**{n: value for n, value in absent.items() if n not in chosen})
        first = [str(name) for name in frame if str(name) + LEAST in frame]
        between = {name: (name + LEAST, name + MOST) for name in first}
        return cells_of(frame, self.model, self.columns, {**self.between, **between})

    @property
    def of_steps(self) -> list[str]:
        """The columns that it names and that are made of logged steps."""
        names = dict.fromkeys(ref.name for ref in self.sentence.references)
        return [name for name in names if STEP_COLUMN.fullmatch(name)]

    def parts(self, rows: pd.DataFrame) -> list[Part]:
        """Return the numbers that the sentence is judged on."""
        return self.sentence.parts(self.cells(rows))

    def __call__(self, cells: pd.DataFrame) -> Measurement:
        """Return the measurement; `inconclusive` where a name is unknown.

        It is also that where the verdict could be another one with a value beyond the edge of a
        sweep whose best value lies at its edge.
        """
        try:
            held = self.cells(cells)
            parts = self.sentence.parts(held)
            edges = [str(replace(ref, name=held.schema[ref.name].name)) for ref in self.best]
            beyond = [self.sentence.parts(replace(held, open_edge=edge)) for edge in edges]
        except UserError as error:
            raise inconclusive(f"{error}") from error
        if not self.drawn:
            note = "Each setting has one number: no seed is drawn."
            case = judge([part.as_case() for part in parts], note=note)
            return self._could_fail(self._in_shape(case, held), held)
        details = {"seeds": len(parts[0].low)}
        if unknown := sum(part.unknown for part in parts):
            details["numbers that are not known"] = unknown
        measured = judge(parts, details=details, among=self.among)
        if any(judge(each, among=self.among).verdict != measured.verdict for each in beyond):
            note = f"{measured.note} Beyond the edge of the sweep there may be a better value."
            measured = replace(measured, verdict="inconclusive", note=note.strip())
        return self._could_fail(self._in_shape(measured, held), held)

    def _could_fail(self, measured: Measurement, held: Cells) -> Measurement:
        """The measurement; a user's claim that no number of its cells could break is vacuous."""
        if self.choose or measured.verdict == "fails" or Context().run(self._fails_once, held):
            return measured  # the context takes the remarks on what is tried
        note = f"{measured.note} No number that cells can have makes it fail."
        return replace(measured, verdict="vacuous", note=note.strip())

    def _fails_once(self, cells: Cells) -> bool:
        """Whether a number lies outside its margin, with any that cells may have.

        Many are tried: alike in all cells, or not. A column of zeros and ones has these.
        """
        names = {cells.schema[ref.name].name for ref in self.sentence.references}
        names -= {*cells.parameters}
        if any(isinstance(one.quantity, Curve) for one in self.sentence.clauses):
            return bool(names)
        pools = dict[str, Any]()
        for name in names:
            known = cells.numbers(name, missed=False).dropna().to_numpy()
            pools[name] = known if {*known} == {0.0, 1.0} else np.append(known, EXTREME)
        random, frame = np.random.default_rng(0), cells.frame.assign(status="done", reason="")
        for size in [1, len(frame)] * TRIALS * bool(pools):
            tried = {name: random.choice(pool, size) for name, pool in pools.items()}
            tried = {name: np.broadcast_to(each, len(frame)) for name, each in tried.items()}
            with suppress(UndecidedError):
                parts = self.sentence.parts(replace(cells, frame=frame.assign(**tried)))
                if any(min(map(part.slack, (*part.low, *part.high))) < 0 for part in parts):
                    return True
        return False

    def _in_shape(self, measured: Measurement, held: Cells) -> Measurement:
        """The measurement; of a power that its own pieces refute one that fails.

        Verdicts of many claims have a stricter level, at which the pieces may be open: a claim does
        not hold by that.
        """
        is_asked = measured.verdict in ("holds", "inconclusive")
        own = self.choose is None  # papers' claims on powers together were sealed without pieces
        pieces = self.sentence.local(held, together=own) if is_asked else []
        if not pieces:
            return measured
        pieces = pieces if self.drawn else [part.as_case() for part in pieces]
        with set_level(LEVEL):
            shape = judge(pieces, among=self.among)
        if shape.verdict != "fails":
            powers = Worlds.of(pieces).value[0]
            least, most = float(powers.min()), float(powers.max())
            is_even = abs(most + least) >= 3 * (most - least)  # within a factor of 2
            [margin, *others] = {part.margin for part in pieces}
            is_even |= bool(others) or margin.least < 0 < margin.most  # of several, or about 0
            told = f"Its pieces have powers from {three_digits(least)} to {three_digits(most)}."
            return replace(measured, note=f"{measured.note} {told * (not is_even)}".strip())
        fails = judge(pieces, among=self.among).verdict == "fails"
        verdict: Verdict = "fails" if fails else "inconclusive"
        note = f"{NO_POWER}: {shape.number}. {shape.note}"
        return replace(measured, verdict=verdict, note=f"{measured.note} {note}".strip())

    @property
    def best(self) -> list[Ref]:
        """The references of the sentence to a number at the best of a sweep."""
        tests = [(ref, test) for ref in self.sentence.references for test in ref.at]
        return [ref for ref, test in tests if isinstance(test, Extreme) and test.which == "best"]


LEAST, MOST = ", at least", ", at most"
"""The columns with the ends of a step that was not reached end in these."""


def with_steps(rows: pd.DataFrame, steps: Cells, names: Iterable[str]) -> pd.DataFrame:
    """Return rows of cells with columns that are made of logged steps, named as in a sentence.

    A first step that was not logged lies beyond the last one. What was logged is known, whatever
    became of its cell.
    """
    steps = replace(steps, frame=steps.frame.assign(status="done"))
    logged, keys, found = steps.frame, rows["key"], dict[str, Any]()
    last = keys.map(logged.groupby("key")["step"].max())
    for name in names:
        column, step, condition = cast("re.Match[str]", STEP_COLUMN.fullmatch(name)).groups()
        if column:
            values = pd.Series(steps.evaluate(f"`{column}`"), logged["key"])
            values = values[(logged["step"] == int(step)).to_numpy()]
            if values.empty:
                raise not_run(f"No cell has logged step {step}.")
            found[name] = keys.map(values)
            continue
        states = comparison(condition).states(steps)
        unknown = keys.map(logged[~states["known"]].groupby("key")["step"].min())
        first = keys.map(logged[states["known"] & ~states["missed"]].groupby("key")["step"].min())
        found[name] = first.mask(unknown < first)
        found[name + LEAST] = np.fmin(first.fillna(last), unknown)
        found[name + MOST] = first.fillna(np.inf)
    return rows.assign(**found)


def cells_of(
    frame: pd.DataFrame,
    model: type[StudyParameters],
    columns: Iterable[Column] = (),
    between: Mapping[str, tuple[str, str]] | None = None,
) -> Cells:
    """Return rows as cells whose parameters are a model's.

    Args:
        columns: those that are declared, whatever the rows have.
        between: of some columns those with the least and the most that a number may be which a cell
            lacks: that of steps is at least those that were taken.
    """
    pairs = between or {}
    ends = {name for pair in pairs.values() for name in pair}
    fields = [
        replace(each, role="cell" if each.name in ends else each.role, between=pairs.get(each.name))
        for each in fields_of(model, columns, frame)
    ]
    no_study = cast("AnyStudy", None)  # a claim needs none of its cells
    return Cells(frame, Schema(tuple(fields)), no_study)


def claim(stated: str, study: AnyStudy, **fields: Any) -> Claim:
    """Return the claim of a sentence about all cells of a study."""
    sentence = read(stated)
    given: dict[str, Any] = {"name": sentence.name, "source": "", "statement": sentence.text}
    given |= {"holds_where": sentence.holds_where(), **fields}
    measure = Measure(sentence, study.parameters, columns=study.columns, drawn=study.seeded)
    return Claim(**given, measure=measure)


def recorded_claim(name: str, text: str, study: AnyStudy) -> Claim:
    """Return the claim of a sentence that a run directory recorded; of other words one not run."""

    def unknown(_: pd.DataFrame) -> Measurement:
        raise not_run("The code that measured it is gone, or is not loaded.")

    try:
        return claim(text, study, name=name)
    except UserError:
        return Claim(name=name, source="", statement=text, holds_where="", measure=unknown)


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


# Designs

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
    def lost(self) -> pd.DataFrame:
        """The cells that failed or are not there."""
        return self.cells[self.cells["status"] != "done"]

    @property
    def failed(self) -> pd.DataFrame:
        """The cells that failed."""
        return self.lost[self.lost["reason"] != ABSENT]

    @property
    def is_mendable(self) -> bool:
        """Whether cells are missing, and none of them by what training came to."""
        return len(self.lost) > 0 and not has_missed(self.lost).any()

    def sentences(self) -> Iterator[str]:
        """Yield what it is judged on, what it leaves out, and which cells it lacks."""
        values = values_in_words(self.cells, self.parameters)
        here = _count_settings(self.cells, self.parameters)
        settings = f"{here} of " * (here < self.every) + plural(self.every, "setting")
        those = f" ({'; '.join(values)})" if values else ""
        seeds = f" and {plural(len(self.seeds), 'seed')} ({list_numbers(self.seeds)})"
        yield f"Judged on {settings}{those}{seeds * self.drawn}."
        if self.unnamed:
            yield f"Left out, because the claim does not name them: {self.unnamed}."
        if len(self.lost):
            where = _in_words(self.lost, self.parameters, seeds=self.drawn)
            kinds = count_alike(Counter(self.lost["reason"].astype(str)))
            why = "; ".join(f"{kind.count} {kind.words}" for kind in kinds).rstrip(".")
            count = plural(len(self.lost), "cell")
            yield f"Lost: {count}{f' ({where})' * bool(where)}: {why}."


def values_in_words(cells: pd.DataFrame, names: Iterable[str]) -> list[str]:
    """Say which values of each parameter, or seeds, there are: `n 10, 20, 40`, `seed 0 to 3`."""
    named = {name: cells[name].unique().tolist() for name in names}
    listed = named | {"seed": list_numbers(sorted(named.get("seed", [])))}
    return [f"{n} {listed[n] if n == 'seed' else list_values(named[n], 6)}" for n in named]


def _in_words(cells: pd.DataFrame, names: Sequence[str], *, seeds: bool = False) -> str:
    """Settings of cells, with their seeds if wanted: `n=10, method=ridge, seeds 0 to 3; ...`."""
    listed = list[str]()
    for values, rows in cells.groupby(list(names), dropna=False) if names else [((), cells)]:
        pairs = zip(names, cast("tuple[Any, ...]", values), strict=True)
        words = [f"{name}={brief(value, 6)}" for name, value in pairs]
        noun = "seed" if len(rows) == 1 else "seeds"
        words += [f"{noun} {list_numbers(sorted(rows['seed'].astype(int)))}"] if seeds else []
        listed.append(", ".join(words))
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
    unswept = [frame[:0]]
    for clause in sentence.clauses:
        refs = references(clause.quantity)
        brackets = [
            {name: value for name, value, _ in _pinned(left, ref) if value is not None}
            for ref in refs
            if ref.at
        ]
        if any(not ref.at and cells.schema[ref.name].role != "parameter" for ref in refs):
            brackets = []  # of a bound: each cell is judged
        for values in brackets or [{}]:
            keep |= np.logical_and.reduce([frame[n] == v for n, v in values.items()], axis=0)
            pinned |= values.keys()
        unswept += [_unswept(frame, names, brackets)] if brackets else []
    every, absent = pd.concat([cells.frame, *unswept]), pd.concat(unswept)
    judged = pd.concat([frame[keep], absent]).drop_duplicates([*names, "seed"])
    complete = add_absent(judged.reset_index(drop=True), names)
    varied = varying(every, names) if len(absent) else []
    lacking = {name: _listed(absent[name]) for name in varied}
    unnamed = _in_words(frame[~keep], sorted(pinned)) if not keep.all() else ""
    settings = _count_settings(every, names)
    return Design(complete, varying(complete, names), settings, unnamed, lacking, measure.drawn)


def _pinned(cells: Cells, ref: Ref) -> Iterator[tuple[str, Any, bool]]:
    """The parameters in the brackets of a reference, their values, and whether those are named.

    The best value is not known: it is None.
    """
    # The column may be one that nobody knows yet: brackets are read behind a name that cells have.
    inside = f"seed[{ref.inside}]" if ref.at else "seed"
    for test in read_expression(inside, cells.schema.names, "claim").refs[0].at:
        if isinstance(test, Among):
            yield test.name, test.values[0], True
        elif isinstance(test, Extreme):
            column = cells.frame[test.name]
            ends = {"largest": column.max(), "smallest": column.min()}
            yield test.name, ends.get(test.which), False


def _unswept(
    cells: pd.DataFrame, names: Sequence[str], brackets: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    """The settings that brackets take and no cell has, as cells that are absent."""
    others = cells[[name for name in names if name not in brackets[0]]].drop_duplicates()
    wanted = pd.concat([others.assign(**values) for values in brackets])[list(names)]
    marked = wanted.drop_duplicates().merge(cells[names].drop_duplicates(), "left", indicator=True)
    lacking = marked.loc[marked["_merge"] == "left_only", list(names)]
    seeds = cells[["seed"]].drop_duplicates()
    return lacking.merge(seeds, "cross").assign(status="failed", reason=ABSENT)


# What is lacking


def _needs(sentence: Sentence, cells: Cells) -> Iterator[tuple[str, Sequence[Any], int]]:
    """The parameters that a sentence needs: their values by name, or the fewest that there are."""
    for name, fewest in sentence.axes(cells).items():
        yield name, [], fewest
    for ref in sentence.references:
        for name, value, is_named in _pinned(cells, ref):
            yield name, [value] if is_named else [], 2


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
    return {name: _listed(values) or RANGE for name, values in lacking.items()}


def _listed(values: Iterable[Any]) -> str:
    return ",".join(dict.fromkeys(map(str, values)))


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
    return f"It needs {'; '.join(dict.fromkeys(needs)) or 'any cells'}."


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
            is_known = name in cells.schema.names or STEP_COLUMN.fullmatch(name)
            if not is_known and study.identity.function is None:
                hint = suggestion(name, cells.schema.names)
                raise BadValue("claim", text, f"{name!r} is no name here; {hint}")
        if sentence.name in known | stated.keys():
            accepts = "another claim is called so; write a name before: 'NAME: ...'."
            raise BadValue("claim", text, accepts)
        stated[sentence.name] = sentence.text
    return stated


def cells_without_rows(study: AnyStudy) -> Cells:
    """Return a study's cells without any row."""
    declared = [*describe(study.parameters), *(column.name for column in study.columns)]
    frame = pd.DataFrame(columns=[*dict.fromkeys([*ROW_COLUMNS, *declared])])
    return cells_of(frame, study.parameters, study.columns)
