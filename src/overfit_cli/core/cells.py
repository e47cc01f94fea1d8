"""Rows of cells with their schema: what every reader, figure, claim and comparison takes and gives.

A failed cell is a row, and a missing one, which was planned and is not there, is a row with the
status `missing`. The schema says of each column what it is called and what a number means that a
cell lacks.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.core import expressions
from overfit_cli.core.arrays import Floats, varying
from overfit_cli.core.errors import BadValue
from overfit_cli.core.expressions import Among, Compared, Expression, Extreme, Ref, Test
from overfit_cli.core.parameters import Value
from overfit_cli.core.study import RUN, AnyStudy, Field, Role, Schema, schema_of, with_logged
from overfit_cli.core.text import plural, round_digits
from overfit_cli.stats.pairs import DIGITS, Pairs, best_of_sweep

Places = NDArray[np.intp]

TINY = 1e-9
"""A number times it is far smaller."""


class NoCellsError(BadValue):
    """A condition that no cell meets: bad input of a command, and `not run` of a claim."""


class UndefinedError(BadValue):
    """An expression that is no number though all in it is known: `inconclusive` of a claim."""


@dataclass(frozen=True)
class Run:
    """A run directory that cells are of.

    Attributes:
        refined: whether a sweep that refines chose its cells.
        boundary: the column and the threshold near whose crossing it chose them; None if unknown.
        sparse: whether points between planned ones were left out on purpose, and stay blank.
        planned: whether it is known which cells it was meant to hold.
        collections: fingerprints of the data that the cells were trained on, by name.
        sources: digests of the code that trained cells, by key; empty of an installed study.
        commands: those that made its cells, in order; Python types none.
        commits: the commits of the code that trained, each after the digest of its source.
    """

    name: str = ""
    path: Path | None = None
    refined: bool = False
    boundary: tuple[str, float] | None = None
    sparse: bool = False
    planned: bool = True
    collections: Mapping[str, str] = field(default_factory=dict, hash=False)
    sources: Mapping[str, str] = field(default_factory=dict, hash=False)
    commands: tuple[str, ...] = ()
    commits: tuple[tuple[str, str], ...] = ()


class BySeed(NamedTuple):
    """An expression's numbers at each setting and for each seed.

    A number that is not known is nan, and lies between `low` and `high`.
    """

    settings: list[dict[str, Any]]
    seeds: NDArray[Any]
    numbers: Floats  # (settings, seeds), as the others
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Cells:
    """Rows of cells.

    Attributes:
        frame: one row per cell: `key`, `seed`, `status`, `reason`, parameters and measurements; of
            several run directories also `run directory`.
        study: the study that they are of; of several, the first one's.
        read_steps: reads the logged steps of all cells of its runs.
        runs: the run directories that they are of.
        chosen: in words, how many cells conditions on measured columns chose; empty without any.
        pairs: those whose differences the cells are; None where they are no differences.
        differs: how settings that don't vary differ between run directories, in words by name.
        parts: the cells of each of several run directories, by its name; the subtracted one last.
        open_edge: a reference to the best of a sweep, as text; its number is far smaller where
            that lies at the edge of the sweep: beyond it there may be so good a value.
    """

    frame: pd.DataFrame
    schema: Schema
    study: AnyStudy
    read_steps: Callable[[], pd.DataFrame] | None = None
    runs: tuple[Run, ...] = (Run(),)
    chosen: str = ""
    pairs: Pairs | None = None
    differs: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, Cells] = field(default_factory=dict)
    open_edge: str = ""

    @classmethod
    def of(
        cls,
        study: AnyStudy,
        trained: pd.DataFrame,
        planned: pd.DataFrame | None = None,
        steps: pd.DataFrame | Callable[[], pd.DataFrame] | None = None,
        run: Run | None = None,
    ) -> Cells:
        """Return a study's cells, and a missing one for each that was planned and is not there.

        Args:
            planned: a row for each planned cell; None or empty where that is not known.
        """
        known = planned is not None and not planned.empty
        run, frame = replace(run or Run(), planned=known), trained
        if planned is not None and known and not trained.empty:
            names = [name for name in planned if name in trained]
            marked = planned[names].merge(trained[names], how="left", indicator=True)
            rows = marked.loc[marked["_merge"] == "left_only", names]
            rows = rows.assign(status="missing", reason="", study=study.name)
            frame = pd.concat([trained, rows], ignore_index=True) if len(rows) else trained
        read = (lambda: steps) if isinstance(steps, pd.DataFrame) else steps
        return cls(frame, schema_of(study, trained), study, read, (run,))

    @functools.cached_property
    def trained(self) -> pd.DataFrame:
        """The rows that are not missing: done and failed cells."""
        missing = self.frame["status"] == "missing"
        return self.frame[~missing] if missing.any() else self.frame

    @functools.cached_property
    def steps(self) -> pd.DataFrame:
        """The logged steps of these cells: `key`, `step` and the logged columns."""
        none = pd.DataFrame(columns=["key", "step"])
        steps = none if self.read_steps is None else self.read_steps()
        return steps[steps["key"].isin(self.frame["key"])] if "key" in steps else steps

    def with_trained(self, trained: pd.DataFrame) -> Cells:
        """Return these missing cells, and others in the place of those that were trained."""
        missing = self.frame[self.frame["status"] == "missing"]
        frame = pd.concat([trained, missing], ignore_index=True) if len(missing) else trained
        return replace(self, frame=frame)

    def without_plan(self, trained: pd.DataFrame | None = None) -> Cells:
        """Return the trained cells, or others, of which it is not known which were planned."""
        frame = self.trained if trained is None else trained
        return replace(self, frame=frame, runs=tuple(replace(r, planned=False) for r in self.runs))

    def with_steps(self, steps: pd.DataFrame) -> Cells:
        """Return these cells with other logged steps."""
        return replace(self, read_steps=lambda: steps)

    @property
    def run(self) -> Run:
        """The run directory that they are of; of several, the first one."""
        return self.runs[0]

    @property
    def run_names(self) -> tuple[str, ...]:
        """The names of several run directories; of one, none."""
        return tuple(run.name for run in self.runs) if len(self.runs) > 1 else ()

    @property
    def refined(self) -> bool:
        """Whether a sweep that refines chose cells."""
        return any(run.refined for run in self.runs)

    @property
    def parameters(self) -> list[str]:
        """The parameters that the cells have a column of, in the order of the study."""
        return self._of("parameter")

    @property
    def number_parameters(self) -> list[str]:
        """The parameters among them that are numbers."""
        return [name for name in self.parameters if self.schema[name].is_number]

    @property
    def measured(self) -> list[str]:
        """The measured columns that are numbers."""
        return [name for name in self._of("measured") if self.schema[name].is_number]

    @functools.cached_property
    def logged(self) -> Schema:
        """The schema of the logged steps."""
        return with_logged(self.study, self.schema)

    @property
    def replaced(self) -> frozenset[str]:
        """Parameters in whose place an expression is an axis."""
        return frozenset(self._of("replaced"))

    def _of(self, role: Role) -> list[str]:
        return [name for name in self.schema.named(role) if name in self.frame]

    def counts(self) -> Counter[str]:
        """Return how many cells are done, failed and missing."""
        return Counter(self.frame["status"])

    def where(self, *conditions: str, option: str = "where") -> Cells:
        """The cells that meet all conditions; NoCellsError where one leaves none.

        Those on measured columns come after others, and the largest and smallest last. What a
        measured column leaves out is not missing.
        """
        measured = {*self.schema.named("measured")}
        tests = [
            (2 if isinstance(test, Extreme) else int(bool(measured & test.names)), text, test)
            for text in conditions
            for test in expressions.read_conditions(text, self.schema.placed, option)
        ]
        by_measure = dict.fromkeys(text for rank, text, _ in tests if rank == 1)
        cells, before = self, 0
        for rank, text, test in sorted(tests, key=lambda each: each[0]):
            before = before or (rank == 1) * len(cells.trained)
            cells = replace(cells, frame=cells.frame[cells.meets(test, text, option)])
        if by_measure:
            count = f"{len(cells.trained)} of {plural(before, 'cell')}"
            cells = replace(cells, chosen=f"{', '.join(by_measure)}, {count}")
        return cells

    def choose(self, *conditions: str, option: str = "where") -> Cells:
        """The trained cells that meet all conditions, and the missing ones that do; see `where`.

        Conditions that no trained cell meets are refused, and the largest value is that of one.
        """
        chosen = self.without_plan().where(*conditions, option=option)
        with suppress(NoCellsError):
            return self.where(*conditions, option=option).with_trained(chosen.frame)
        return chosen

    def meets(self, test: Test, text: str, option: str) -> NDArray[np.bool_]:
        """Which rows meet a test; an error where none does."""
        holds = np.broadcast_to(test.holds(self._values(test.refs, option)), len(self.frame))
        if holds.any() or self.frame.empty:
            return holds
        name = test.refs[0].name
        values = sorted(self.frame[name].dropna().unique().tolist())
        here = f"there is {', '.join(map(str, values[:6]))}{' and more' if values[6:] else ''}."
        if name in self.measured and values:
            here = f"{name} is {values[0]:.6g} to {values[-1]:.6g} here."
        raise NoCellsError(option, text, f"no cell has that; {here}")

    def varying(self, without: Collection[str | None] = ()) -> list[str]:
        """The parameters that take several values, in order; several run directories come first.

        Beside these, a parameter does not vary that has one value in each of them.
        """
        names = self.parameters
        if self.run_names:
            counts = self.trained.groupby(RUN)[names].nunique().max()
            names = [RUN, *(name for name in names if counts[name] > 1)]
        return [name for name in varying(self.frame, names) if name not in without]

    def free_parameters(self, axes: Collection[str]) -> list[str]:
        """The parameters that vary besides axes, without those that follow them, as on a ray.

        One follows that each point of the axes fixes, or does so together with the others while
        these alone do not: of `width = c*n` along n it is the width, not c.
        """

        def is_fixed(name: str, by: Sequence[str]) -> bool:
            groups = self.frame.groupby(list(by), dropna=False) if by else None
            return groups is not None and bool((groups[name].nunique() <= 1).all())

        free = [name for name in self.varying(axes) if name == RUN or not is_fixed(name, [*axes])]
        for name in sorted(free, key=lambda each: -self.frame[each].nunique()):
            others = [each for each in free if each != name]
            if others and is_fixed(name, [*axes, *others]) and not is_fixed(name, others):
                free = others
        return free

    @functools.cached_property
    def values(self) -> dict[str, tuple[Value, ...]]:
        """The values of each parameter, in order; of one that does not vary the first."""
        varied, found = self.varying(), dict[str, tuple[Value, ...]]()
        for name in [*([RUN] if self.run_names else []), *self.parameters]:
            values = self.frame[name].dropna().unique().tolist()
            words = self.schema[name].words
            values = [word for word in words if word in values] if words else sorted(values)
            found[name] = tuple(values if name in varied else values[:1])
        return found

    def settings(self, names: Sequence[str]) -> Iterator[tuple[dict[str, Value], Cells]]:
        """Each combination of the values of some parameters, in order, with its cells."""
        place, settings = self.places(names)
        for number, values in enumerate(records(settings)):
            runs = tuple(run for run in self.runs if run.name == values.get(RUN, run.name))
            yield values, replace(self, frame=self.frame[place == number], runs=runs)

    def in_order(self) -> Cells:
        """These cells by the parameters that vary, words as they are declared, then by seed."""
        place, _ = self.places(self.varying())
        order = np.lexsort((self.frame["seed"], place))
        return replace(self, frame=self.frame.iloc[order].reset_index(drop=True))

    def places(self, names: Sequence[str]) -> tuple[Places, pd.DataFrame]:
        """The number of each row's place, and the places; words stand in their declared order."""
        place = np.zeros(len(self.frame), dtype=np.intp)
        for name in names:
            choices = {choice: rank for rank, choice in enumerate(self.schema[name].words)}
            ranks = self.frame[name].map(choices) if choices else self.frame[name]
            at = np.unique(ranks.to_numpy(), return_inverse=True)[1]
            place = np.unique(place * (at.max(initial=0) + 1) + at, return_inverse=True)[1]
        first = np.unique(place, return_index=True)[1]
        return place, self.frame[list(names)].iloc[first].reset_index(drop=True)

    def numbers(self, column: str, *, missed: bool = True) -> pd.Series[float]:
        """Return a column as numbers; see `Field.numbers`."""
        return self.schema[column].numbers(self.frame, missed=missed)

    def with_column(self, text: str, label: str = "", option: str = "value") -> Cells:
        """The cells with a measured column of an expression, called by its text."""
        expression = expressions.read_expression(text, self.schema.names, option)
        label = label or f"${expression.mathtext(self.symbol)}$"
        values = self._evaluated(expression, option)
        frame = self.frame.assign(**{text: np.where(np.isfinite(values), values, np.nan)})
        declared = self._is_declared(expression, values)
        schema = self.schema.with_field(Field(text, label=label, declared=declared))
        return replace(self, frame=frame, schema=schema)

    def _is_declared(self, expression: Expression, values: Floats) -> bool:
        """Whether an expression is left out where it lacks: it does not grow with what lacks."""
        fields = {str(ref): self.schema[ref.name] for ref in expression.refs}
        if all(field.declared for field in fields.values()) or "status" not in self.frame:
            return all(field.declared for field in fields.values())
        beyond = {text: field.shown(self.frame).to_numpy() for text, field in fields.items()}
        return not (expression.value(beyond)[np.isnan(values)] == np.inf).all()

    def by_step(self) -> Cells:
        """Return the logged steps as rows, with the parameters of their cells."""
        names = [name for name in self.parameters if name not in self.steps]
        rows = self.steps.merge(self.trained[["key", *names]], on="key", how="left")
        return replace(self, frame=rows, schema=self.logged)

    def with_logged_column(self, text: str, label: str = "", option: str = "value") -> Cells:
        """The cells with a logged column of an expression in logged columns and parameters."""
        steps = self.by_step().with_column(text, label, option)
        field = replace(steps.schema[text], role="logged")
        cells = self.with_steps(steps.frame[[*self.steps, text]])
        return replace(cells, schema=self.schema.with_field(field))

    def with_parameter(self, text: str, taken: Collection[str] = (), option: str = "x") -> Cells:
        """The cells with a parameter of an expression in others, called by its text.

        It takes the place of a parameter in it: of those that vary and are not taken, the one with
        the most values, and of equally many the first.
        """
        names = self.schema.placed.among(self.number_parameters)
        expression = expressions.read_expression(text, names, option)
        varying = self.varying()
        replaceable = [name for name in varying if name in expression.names and name not in taken]
        if not replaceable:
            accepts = "no parameter in it varies here without an axis or panels; here vary"
            raise BadValue(option, text, f"{accepts}: {', '.join(varying) or 'none'}.")
        values = [round_digits(value, DIGITS) for value in self._evaluated(expression, option)]
        for row in self.frame[~np.isfinite(values)].to_dict("records")[:1]:
            where = ", ".join(f"{name}={row[name]}" for name in sorted(expression.names))
            raise BadValue(option, text, f"it is not a finite number where {where}.")
        gone = max(replaceable, key=lambda name: self.frame[name].nunique())
        schema = self.schema.with_field(replace(self.schema[gone], role="replaced"))
        new = Field(text, role="parameter", label=f"${expression.mathtext(self.symbol)}$")
        frame = self.frame.assign(**{text: values})
        return replace(self, frame=frame, schema=schema.with_field(new))

    def _evaluated(self, expression: Expression, option: str) -> Floats:
        """The value of an expression in each row."""
        return expression.value(self._values(expression.refs, option)) + np.zeros(len(self.frame))

    def evaluate(self, text: str, option: str = "claim") -> Floats:
        """An expression's value in each row, nan where it is not known.

        A column alone is infinite where it was missed: see `Field.numbers`.
        """
        expression = expressions.read_expression(text, self.schema.names, option)
        values = self._evaluated(expression, option)
        if isinstance(expression.tree, Ref):
            missed = self._held(expression.tree, option).numbers(self.frame).to_numpy()
            values = np.where(np.isnan(values) & np.isinf(missed), missed, values)
        return values

    def symbol(self, name: str) -> str:
        """The symbol of a column in a formula, in mathtext without dollar signs, or its name."""
        field = self.schema[name]
        word = re.sub(r"([#$%&_{}])", r"\\\1", re.sub(r"[\\^~]", " ", name))
        is_formula = re.fullmatch(r"\$[^$]*\$", field.label)
        formula = rf"\left({field.label[1:-1]}\right)" if is_formula else ""
        return field.symbol or formula or rf"\mathrm{{{word}}}"

    def by_seed(self, text: str, option: str = "claim") -> BySeed:
        """An expression's number at each setting and for each seed.

        Brackets choose values of parameters; the settings are those of the others that vary.
        """
        expression = expressions.read_expression(text, self.schema.names, option)
        pinned = frozenset[str]().union(*(ref.pins for ref in expression.refs))
        for ref in expression.refs:
            loose = pinned - ref.pins
            if loose and (ref.at or ref.name in pinned or ref.name not in self.parameters):
                accepts = f"say where {ref} is taken: {ref.name}[{min(loose)}=...]."
                raise BadValue(option, text, accepts)
        place, settings = self.places(self.varying(sorted(pinned)))
        seeds = np.unique(self.frame["seed"])
        table = functools.partial(self._table, place=place, seeds=seeds, option=option)
        values = {str(ref): table(ref) for ref in expression.refs}
        for ref in [ref for ref in expression.refs if str(ref) == self.open_edge]:
            known = values[str(ref)]
            smaller = np.where(known > 0, TINY * known, known - (1 + np.abs(known)) / TINY)
            values[str(ref)] = np.where(self._at_edge(ref, table), smaller, known)
        numbers = expression.value(values)
        known = np.logical_and.reduce([np.isfinite(value) for value in values.values()])
        for row in np.flatnonzero((known & ~np.isfinite(numbers)).any(axis=1))[:1]:
            at = ", ".join(f"{name}={value}" for name, value in records(settings)[row].items())
            raise UndefinedError(option, text, f"it is not a number{' at ' * bool(at)}{at}.")
        numbers = np.where(known, numbers, np.nan)
        ends = {
            str(ref): self._ends(ref, values[str(ref)], table)
            for ref in (() if known.all() else expression.refs)
            if self.schema[ref.name].between or not self.schema[ref.name].reached
        }
        corners = [
            expression.value({**values, **dict(zip(ends, corner, strict=True))})
            for corner in itertools.product(*ends.values())
        ]
        least, most = np.minimum.reduce(corners), np.maximum.reduce(corners)
        low = np.where(known, numbers, np.where(np.isnan(least), -np.inf, least))
        high = np.where(known, numbers, np.where(np.isnan(most), np.inf, most))
        return BySeed(records(settings), seeds, numbers, low, high)

    def _at_edge(self, ref: Ref, table: Callable[..., Floats]) -> NDArray[np.bool_]:
        """Where the best of a sweep is its first or last value, (places, seeds)."""
        swept = [test.name for test in ref.at if isinstance(test, Extreme) and test.which == "best"]
        ends = [self.frame[name].agg(["min", "max"]) for name in swept]
        at_ends = [np.isin(table(ref, of=name), end) for name, end in zip(swept, ends, strict=True)]
        return np.asarray(np.logical_or.reduce(at_ends)) if swept else np.asarray(False)

    def _ends(self, ref: Ref, known: Floats, table: Callable[..., Floats]) -> list[Floats]:
        """The least and the most that a reference may be, (places, seeds).

        A number that was not reached is beyond all others.
        """
        if between := self.schema[ref.name].between:
            low, high = (table(replace(ref, name=name)) for name in between)
        else:
            missed = np.isposinf(table(ref, missed=True))
            edge = self.numbers(ref.name, missed=False).max()
            low, high = np.where(missed, edge, np.nan), np.where(missed, np.inf, np.nan)
        return [np.where(np.isnan(known), end, known) for end in (low, high)]

    def _table(
        self,
        ref: Ref,
        place: Places,
        seeds: NDArray[Any],
        option: str,
        *,
        missed: bool = False,
        of: str = "",
    ) -> Floats:
        """The numbers of a reference, (places, seeds); what is `missed` is infinite.

        With `of` they are those of another column, in the rows that its brackets choose.
        """
        held = self.schema[of] if of else self._held(ref, option)
        numbers = held.numbers(self.frame, missed=missed).to_numpy()
        shape = (place.max(initial=-1) + 1, len(seeds))
        if ref.name in self.parameters and not ref.at:
            return np.broadcast_to(numbers[np.unique(place, return_index=True)[1], None], shape)
        keep = np.ones(len(self.frame), dtype=bool)
        for test in ref.at:
            if isinstance(test, Compared) or (isinstance(test, Among) and test.values[1:]):
                raise BadValue(option, str(ref), "brackets take one value: [NAME=VALUE].")
            if isinstance(test, Extreme) and test.which == "best":
                keep &= self._best(ref.name, test.name, keep)
            else:
                keep &= self.meets(test, str(ref), option)
        at = place[keep], np.searchsorted(seeds, self.frame["seed"].to_numpy()[keep])
        if len(np.unique(np.ravel_multi_index(at, shape))) < keep.sum():
            raise UndefinedError(option, str(ref), "several cells of a seed have the same setting.")
        table = np.full(shape, np.nan)
        table[at] = numbers[keep]
        return table

    def _held(self, ref: Ref, option: str) -> Field:
        if ref.name not in self.frame:
            raise BadValue(option, str(ref), f"these cells don't hold {ref.name}.")
        return self.schema[ref.name]

    def _best(self, column: str, swept: str, keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The rows at each setting's best value: of fewest failures, and then of the least mean."""
        rows = self.frame.assign(**{column: self.numbers(column, missed=False)})
        rows = rows.reset_index(drop=True)[keep]
        best = best_of_sweep(rows, swept, self.varying([swept]), column)
        return np.isin(np.arange(len(keep)), best.index)

    def _values(self, refs: Sequence[Ref], option: str) -> dict[str, NDArray[Any]]:
        """What references stand for in each row; one in brackets is that of the row's seed."""
        values: dict[str, NDArray[Any]] = {}
        for ref in refs:
            is_number = self._held(ref, option).is_number
            numbers: Any = {"dtype": np.float64, "na_value": np.nan} if is_number else {}
            values[str(ref)] = self.frame[ref.name].to_numpy(**numbers)
            if ref.at:
                place = self.places(self.varying(sorted(ref.pins)))[0]
                seeds, seed = np.unique(self.frame["seed"], return_inverse=True)
                values[str(ref)] = self._table(ref, place, seeds, option)[place, seed]
        return values


def records(settings: pd.DataFrame) -> list[dict[str, Any]]:
    """The values of each setting; a single one without parameters is a row without columns."""
    records = settings.to_dict("records") or [{}] * len(settings)
    return [{str(name): value for name, value in record.items()} for record in records]
