"""The columns of a study's cell rows and trajectories, and rows made of results."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from overfit_cli.errors import UserError
from overfit_cli.parameters import describe
from overfit_cli.study import CellResult, Study, find_study, study_names

SCHEMA_VERSION = "2"
FIRST_SCHEMA = "1"
"""Still read: its parts had neither a mark of their kind nor a digest in their name."""

VERSION_MARK = b"overfit.schema"
STUDY_MARK = b"overfit.study"
KIND_MARK = b"overfit.kind"


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
_TYPES = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "choice": pa.string()}


def cell_schema(study: Study) -> pa.Schema:
    """Return the schema of the study's cell rows."""
    parameters = describe(study.parameters).values()
    common = list(CELLS.columns.items())
    columns = [
        *common[:_BEFORE_PARAMETERS],
        *((info.name, _TYPES[info.kind]) for info in parameters),
        *common[_BEFORE_PARAMETERS:],
        *((column.name, _TYPES[column.kind]) for column in study.columns),
    ]
    return pa.schema(columns, metadata=marks(study.name, CELLS))


def trajectory_schema(study: Study) -> pa.Schema:
    """Return the schema of the study's trajectories: one row per cell and logged step."""
    columns = [
        *TRAJECTORIES.columns.items(),
        *((column.name, _TYPES[column.kind]) for column in study.trajectory_columns),
    ]
    return pa.schema(columns, metadata=marks(study.name, TRAJECTORIES))


def cell_table(study: Study, results: Sequence[CellResult]) -> pa.Table:
    """Return the cell rows of `results`."""
    return pa.Table.from_pylist([cell_row(result) for result in results], cell_schema(study))


def cell_row(result: CellResult) -> dict[str, object]:
    """Return a result as a row, by column."""
    cell = result.cell
    return {
        "key": cell.key,
        "study": cell.study,
        "version": cell.version,
        "seed": cell.seed,
        **cell.parameters.model_dump(),
        "status": result.status,
        "reason": result.reason,
        "steps": result.steps,
        "seconds": result.seconds,
        **result.measurements,
    }


def trajectory_table(study: Study, results: Sequence[CellResult]) -> pa.Table:
    """Return the logged steps of `results`; no rows where none was logged."""
    schema = trajectory_schema(study)
    tables = []
    for result in results:
        if result.trajectory:
            steps = len(result.trajectory["step"])
            content = {"key": [result.cell.key] * steps, **result.trajectory}
            columns = [
                pa.array(content.get(name, [None] * steps)).cast(schema.field(name).type)
                for name in schema.names
            ]
            tables.append(pa.Table.from_arrays(columns, schema=schema))
    return pa.concat_tables(tables) if tables else schema.empty_table()


def marks(study: str, kind: Kind) -> dict[bytes, bytes]:
    """Return what a part file says of itself."""
    return {
        VERSION_MARK: SCHEMA_VERSION.encode(),
        STUDY_MARK: study.encode(),
        KIND_MARK: kind.name.encode(),
    }


def study_of(part: pa.Table) -> str:
    """Return the name of the study that a part says it is of."""
    found: bytes = (part.schema.metadata or {}).get(STUDY_MARK, b"")
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


@functools.cache
def installed_version(study: str | None) -> int | None:
    """Return the numerical version of an installed study; None where there is none of that name."""
    if study is None or study not in study_names():
        return None
    with contextlib.suppress(UserError):  # a study that can't be loaded
        return find_study(study).version
    return None


@functools.cache
def installed_columns(study: str | None, kind: str) -> WantedColumns | None:
    """Return the columns of an installed study's parts of a kind; None where there is none."""
    if study is None or installed_version(study) is None:
        return None
    found = find_study(study)
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
