"""The columns of a study's cell rows and trajectories, and rows made of results."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from overfit_cli.errors import UserError
from overfit_cli.functions.record import FunctionRecord
from overfit_cli.parameters import describe
from overfit_cli.registry import find_study, study_names
from overfit_cli.study import AnyStudy, Column

SCHEMA_VERSION = "2"
FIRST_SCHEMA = "1"
"""Still read: its parts had neither a mark of their kind nor a digest in their name."""

VERSION_MARK = b"overfit.schema"
STUDY_MARK = b"overfit.study"
KIND_MARK = b"overfit.kind"
SOURCE_MARK = b"overfit.source"


@dataclass(frozen=True)
class Kind:
    """What a part file holds: `cells`, or `trajectories`.

    Attributes:
        name: the kind's name, and that of its folder.
        columns: the columns that every part of the kind has, whatever its study, with their types.
        indexed: the columns that are remembered of a part that was read.
        ordered_by: the columns that name a row.
    """

    name: str
    columns: Mapping[str, pa.DataType]
    indexed: tuple[str, ...]
    ordered_by: tuple[str, ...]


CELLS = Kind(
    "cells",
    {
        **{"key": pa.string(), "study": pa.string(), "version": pa.int64(), "seed": pa.int64()},
        **{"status": pa.string(), "reason": pa.string()},
        **{"steps": pa.int64(), "seconds": pa.float64()},
    },
    ("key", "study", "version", "status"),
    ("key",),
)
TRAJECTORIES = Kind(
    "trajectories", {"key": pa.string(), "step": pa.int64()}, ("key",), ("key", "step")
)

_BEFORE_PARAMETERS = list(CELLS.columns).index("status")
_TYPES = {
    **{"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()},
    **{"literal": pa.string(), "text": pa.string()},
}


def cell_schema(study: AnyStudy, others: Iterable[str] = ()) -> pa.Schema:
    """Return the schema of the study's cell rows.

    Args:
        study: the study.
        others: columns that were measured beside the declared ones, of a study that allows it.
    """
    parameters = describe(study.parameters).values()
    common = list(CELLS.columns.items())
    columns = [
        *common[:_BEFORE_PARAMETERS],
        *((info.name, _TYPES[info.kind]) for info in parameters),
        *common[_BEFORE_PARAMETERS:],
        *_measured(study.columns, others),
    ]
    return pa.schema(columns, metadata=marks(study.name, CELLS, study.source_digest))


def trajectory_schema(study: AnyStudy, others: Iterable[str] = ()) -> pa.Schema:
    """Return the schema of the study's trajectories: one row per cell and logged step."""
    columns = [*TRAJECTORIES.columns.items(), *_measured(study.trajectory_columns, others)]
    return pa.schema(columns, metadata=marks(study.name, TRAJECTORIES, study.source_digest))


def _measured(declared: Sequence[Column], others: Iterable[str]) -> list[tuple[str, pa.DataType]]:
    types = {column.name: _TYPES[column.kind] for column in declared}
    return [*types.items(), *((name, _TYPES["float"]) for name in others if name not in types)]


def marks(study: str, kind: Kind, source: str) -> dict[bytes, bytes]:
    """Return what a part file says of itself; `source` is the digest of a function's code."""
    found = {VERSION_MARK: SCHEMA_VERSION, STUDY_MARK: study, KIND_MARK: kind.name}
    return {name: mark.encode() for name, mark in found.items()} | (
        {SOURCE_MARK: source.encode()} if source else {}
    )


def study_of(part: pa.Table) -> str:
    """Return the name of the study that a part says it is of."""
    return _mark(part, STUDY_MARK)


def source_of(part: pa.Table) -> str:
    """Return the digest of the code that a part's cells were trained by; empty where none is."""
    return _mark(part, SOURCE_MARK)


def _mark(part: pa.Table, name: bytes) -> str:
    found: bytes = (part.schema.metadata or {}).get(name, b"")
    return found.decode(errors="replace")


def misfit(schema: pa.Schema, wanted: Mapping[str, pa.DataType]) -> str:
    """Return how a part lacks the columns `wanted`, in words; empty where it has them all."""
    for name, kind in wanted.items():
        if schema.names.count(name) != 1:
            return (
                f"it lacks the column {name!r}"
                if name not in schema.names
                else (f"its column {name!r} stands twice")
            )
        if schema.field(name).type != kind:
            return f"its column {name!r} holds {schema.field(name).type}, not {kind}"
    return ""


def other_parameters(schema: pa.Schema, function: FunctionRecord) -> str:
    """Return how a part's cells have other parameters than a function has now, as `change_of`.

    A part's parameters are its columns between those that every part has.
    """
    names = schema.names[_BEFORE_PARAMETERS : schema.names.index("status")]
    return _change({name: schema.field(name).type for name in names}, _parameter_types(function))


def change_of(before: FunctionRecord, now: FunctionRecord) -> str:
    """Return how a function's parameters have changed, in words; empty if they haven't."""
    return _change(_parameter_types(before), _parameter_types(now))


def _parameter_types(function: FunctionRecord) -> dict[str, pa.DataType]:
    return {one.name: _TYPES[one.kind] for one in function.parameters}


def _change(before: Mapping[str, pa.DataType], now: Mapping[str, pa.DataType]) -> str:
    gone = [f"{name} is gone" for name in sorted(before.keys() - now.keys())]
    new = [f"{name} is new" for name in sorted(now.keys() - before.keys())]
    other = [
        f"{name} was {before[name]} and is {now[name]}"
        for name in sorted(before.keys() & now.keys())
        if before[name] != now[name]
    ]
    return ", ".join([*gone, *new, *other])


def installed_version(study: str | None) -> int | None:
    """Return the numerical version of an installed study; None where there is none of that name."""
    found = _installed(study)
    return None if found is None else found.version


def installed_columns(study: str | None, kind: str) -> WantedColumns | None:
    """Return the columns of an installed study's parts of a kind; None where there is none."""
    found = _installed(study)
    return None if found is None else _columns_of(found, kind)


def _installed(study: str | None) -> AnyStudy | None:
    """The study of that name, if it is there and can be loaded."""
    if study is not None and study in study_names():
        with contextlib.suppress(UserError):
            return find_study(study)
    return None


@functools.cache
def _columns_of(found: AnyStudy, kind: str) -> WantedColumns:
    own = cell_schema(found) if kind == CELLS.name else trajectory_schema(found)
    common = CELLS if kind == CELLS.name else TRAJECTORIES
    settings = describe(found.parameters) if common is CELLS else ()
    types = {field.name: field.type for field in own}
    return WantedColumns(types, frozenset([*common.columns, *settings]))


@dataclass(frozen=True)
class WantedColumns:
    """The columns that the parts of one study and version have.

    Attributes:
        types: the type of each column.
        needed: those that every part has; a study may have begun to measure another one since.
    """

    types: Mapping[str, pa.DataType]
    needed: frozenset[str]

    def misfit(self, schema: pa.Schema) -> str:
        """Return how a part's columns aren't these, in words; empty where they are."""
        for name in schema.names:
            if name not in self.types:
                return f"it has a column {name!r}, which the study lacks"
        present = self.needed.union(schema.names)
        return misfit(schema, {name: kind for name, kind in self.types.items() if name in present})


def wanted_columns(
    study: str | None, version: int, kind: Kind, parts: Iterable[pa.Table]
) -> WantedColumns:
    """Return the study's own columns; of one that isn't installed so, those that most parts have.

    Args:
        study: the study's name.
        version: the numerical version of the parts.
        kind: what they hold.
        parts: them.
    """
    own = installed_columns(study, kind.name)
    if own is not None and installed_version(study) == version:
        return own
    votes = Counter((field.name, field.type) for part in parts for field in part.schema)
    types = {name: found for (name, found), _ in reversed(votes.most_common())}
    return WantedColumns(types, frozenset(kind.columns))
