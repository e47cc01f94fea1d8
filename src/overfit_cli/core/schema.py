"""Columns of cells: parameters, measurements, and those that every row has.

A field says what a number means that a cell lacks, so that no function guesses it from a name.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from overfit_cli.core.arrays import finite_column
from overfit_cli.core.cell import ROW_COLUMNS, Column
from overfit_cli.core.expressions import Names
from overfit_cli.core.parameters import (
    SEED,
    TRAINING_STEPS,
    Kind,
    ParameterInfo,
    StudyParameters,
    describe,
    spellings,
)
from overfit_cli.core.study import AnyStudy

if TYPE_CHECKING:
    import pandas as pd

Role = Literal["cell", "parameter", "replaced", "measured", "logged"]

MISSES = ("diverged", "step limit")
"""The reasons of failed cells whose training went on until it missed; more may follow a colon."""

RUN = "run directory"
"""The column of cells of several run directories that says whose a row is."""


@dataclass(frozen=True)
class Field(ParameterInfo):
    """A column of cells, with what is declared of a parameter or a measured column.

    Attributes:
        label: a few words, or mathtext, for axes and legends.
        role: a `replaced` parameter has an expression in its place on an axis; a `logged` column is
            one that was derived of logged ones.
        reached, diverges: see `core.cell.Column`.
        between: the columns with the least and the most that a number may be which is not known.
    """

    role: Role = "measured"
    reached: bool = True
    diverges: bool = False
    between: tuple[str, str] | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The values of a word, in their declared order."""
        return self.choices if self.kind == "literal" else ()

    def numbers(self, rows: pd.DataFrame, *, missed: bool = True) -> pd.Series[float]:
        """Return the column in rows of cells as numbers, nan where one is not known.

        A cell that missed its number counts as infinite; with `missed` false it is not known. The
        numbers of a parameter are its values.
        """
        if self.role in ("cell", "parameter", "replaced"):
            return rows[self.name].astype(np.float64)
        known = finite_column(rows, self.name)
        if not missed or (self.reached and not self.diverges):
            return known
        beyond = has_missed(rows)
        if not self.reached:
            beyond |= (rows["status"] == "done") & rows[self.name].isna()
        return known.mask(beyond, np.inf)


def missed_by(rows: pd.DataFrame) -> pd.Series[str]:
    """Return the reasons of failed cells without what follows a colon, such as a column's name."""
    return rows["reason"].astype(str).str.extract("([^:]*)", expand=False)


def has_missed(rows: pd.DataFrame) -> pd.Series[bool]:
    """Return which cells failed as their training went on until it missed."""
    return (rows["status"] == "failed") & missed_by(rows).isin(MISSES)


@dataclass(frozen=True)
class Schema:
    """The fields of cells; parameters stand in the order of the study."""

    fields: tuple[Field, ...]
    headline: str = ""
    threshold: float | None = None

    @functools.cached_property
    def names(self) -> Names:
        """Each field by its name, and by its symbol where no name and no other field has that.

        Of a parameter and a column with one symbol it is the parameter's.
        """
        fields = {field.name: field for field in self.fields}
        spelled = dict[str, str]()
        for role in ("measured", "parameter"):
            spelled |= spellings({n: field for n, field in fields.items() if field.role == role})
        names = Names({text: fields[name] for text, name in spelled.items()} | fields)
        limit = {"steps": fields[TRAINING_STEPS]} if TRAINING_STEPS in fields else {}
        return names.with_brackets(Names(names | limit))

    @functools.cached_property
    def placed(self) -> Names:
        """The names in conditions and along axes, where `steps` may be a parameter's."""
        inside = self.names.inside
        assert inside is not None
        return inside.with_brackets(inside)

    def __getitem__(self, name: str) -> Field:
        field = self.names.of(name)
        assert isinstance(field, Field)
        return field

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def named(self, role: Role) -> list[str]:
        """Return the names of the fields of a role."""
        return [field.name for field in self.fields if field.role == role]

    def with_field(self, field: Field) -> Schema:
        """Return the schema with a field in the place of one of its name, or at the end."""
        return replace(self, fields=(*(f for f in self.fields if f.name != field.name), field))


def schema_of(study: AnyStudy, rows: pd.DataFrame | None = None) -> Schema:
    """Return the schema of a study's cells, some of whose rows may have further columns."""
    steps = replace(STEPS, label=study.step)
    fields = fields_of(study.parameters, (steps, SECONDS, *study.columns), rows)
    return Schema(fields, study.headline, study.threshold)


def fields_of(
    model: type[StudyParameters], columns: Iterable[Column], rows: pd.DataFrame | None = None
) -> tuple[Field, ...]:
    """Return the fields of cells with these parameters and declared columns; see `schema_of`."""
    described, declared = describe(model), {column.name: column for column in columns}
    fields = [
        Field(name, "text", role="cell")
        for name in sorted(ROW_COLUMNS - {"seed", "steps", "seconds", *described})
    ]
    fields.append(Field(**vars(SEED), role="cell"))
    fields += (Field(**vars(info), role="parameter") for info in described.values())
    here = {} if rows is None else {str(name): rows[name].dtype.kind for name in rows}
    known = {field.name for field in fields}
    for name in dict.fromkeys([*declared, *here]):
        if name not in known:
            is_text = here.get(name, "f") not in "iufb"
            column = declared.get(name, Column(name, name))
            fields.append(_measured(column, "text" if is_text else "float"))
    return tuple(fields)


def with_logged(study: AnyStudy, schema: Schema) -> Schema:
    """Return the schema with the study's logged columns in the place of those of cells."""
    others = [field for field in schema.fields if field.role not in ("measured", "logged")]
    logged = [_measured(column) for column in (STEP, *study.trajectory_columns)]
    derived = [replace(each, role="measured") for each in schema.fields if each.role == "logged"]
    return replace(schema, fields=(*others, *logged, *derived))


STEP = Column("step", "step of training", "int")
STEPS = Column("steps", "steps of training", "int", diverges=True, label="steps")
SECONDS = Column("seconds", "wall time", unit="s", label="time")


def _measured(column: Column, kind: Kind = "float") -> Field:
    return Field(**vars(column) | {"kind": kind, "label": column.label or column.meaning})
