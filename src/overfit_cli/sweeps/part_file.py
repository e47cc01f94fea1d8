"""One part file: parquet, written once, whole, named after its content, and never changed.

The name ends in a digest of the file, so that a damaged part is known at every read; pages carry
checksums for other programs. A row is a cell, or a cell and logged step. A digest of cells says
which they are and which numbers they hold, however they lie in files.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from overfit_cli.core.cell import TRACEBACK, CellResult, Column
from overfit_cli.core.errors import UserError
from overfit_cli.core.files import error_text, read_bounded, write_whole
from overfit_cli.core.parameters import describe
from overfit_cli.core.registry import find_study, study_names
from overfit_cli.core.study import AnyStudy
from overfit_cli.functions.experiment import FunctionRecord

if TYPE_CHECKING:
    import pandas as pd


SCHEMA_VERSION = "2"
VERSION_MARK = b"overfit.schema"
STUDY_MARK = b"overfit.study"
KIND_MARK = b"overfit.kind"
SOURCE_MARK = b"overfit.source"


@dataclass(frozen=True)
class Kind:
    """The kind of a part file: `cells`, or `trajectories`.

    Attributes:
        columns: the columns that every part of the kind has, whatever its study, with their types.
        indexed: the columns that are remembered of a part that was read.
        ordered_by: the columns that name a row.
        optional: the columns that a part has where one of its rows has a value, with their types.
    """

    name: str
    columns: Mapping[str, pa.DataType]
    indexed: tuple[str, ...]
    ordered_by: tuple[str, ...]
    optional: Mapping[str, pa.DataType] = field(default_factory=dict)


CELLS = Kind(
    "cells",
    {
        **{"key": pa.string(), "study": pa.string(), "version": pa.int64(), "seed": pa.int64()},
        **{"status": pa.string(), "reason": pa.string()},
        **{"steps": pa.int64(), "seconds": pa.float64()},
    },
    ("key", "study", "version", "status"),
    ("key",),
    {TRACEBACK: pa.string()},
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
        others: names of measurements, without those that are declared, and of optional columns.
    """
    parameters = describe(study.parameters).values()
    common, others = list(CELLS.columns.items()), list(others)
    columns = [
        *common[:_BEFORE_PARAMETERS],
        *((info.name, _TYPES[info.kind]) for info in parameters),
        *common[_BEFORE_PARAMETERS:],
        *_measured(study.columns, [name for name in others if name not in CELLS.optional]),
        *((name, kind) for name, kind in CELLS.optional.items() if name in others),
    ]
    return pa.schema(columns, metadata=marks(study.name, CELLS, study.identity.source))


def trajectory_schema(study: AnyStudy, others: Iterable[str] = ()) -> pa.Schema:
    """Return the schema of the study's trajectories: one row per cell and logged step."""
    columns = [*TRAJECTORIES.columns.items(), *_measured(study.trajectory_columns, others)]
    return pa.schema(columns, metadata=marks(study.name, TRAJECTORIES, study.identity.source))


def _measured(declared: Sequence[Column], others: Iterable[str]) -> list[tuple[str, pa.DataType]]:
    types = {column.name: _TYPES[column.kind] for column in declared}
    return [*types.items(), *((name, _TYPES["float"]) for name in others if name not in types)]


def marks(study: str, kind: Kind, source: str) -> dict[bytes, bytes]:
    """Return what a part file says of itself; `source` is the digest of a function's code."""
    marks = {VERSION_MARK: SCHEMA_VERSION, STUDY_MARK: study, KIND_MARK: kind.name}
    return {name: mark.encode() for name, mark in marks.items()} | (
        {SOURCE_MARK: source.encode()} if source else {}
    )


def study_of(part: pa.Table) -> str:
    """Return the name of the study that a part says it is of."""
    return _mark(part, STUDY_MARK)


def source_of(part: pa.Table) -> str:
    """Return the digest of the code that a part's cells were trained by; empty where none is."""
    return _mark(part, SOURCE_MARK)


def _mark(part: pa.Table, name: bytes) -> str:
    mark: bytes = (part.schema.metadata or {}).get(name, b"")
    return mark.decode(errors="replace")


def misfit(schema: pa.Schema, wanted: Mapping[str, pa.DataType]) -> str:
    """Return how a part lacks the columns `wanted`, in words; empty where it has them all."""
    names = Counter(schema.names)
    for name, kind in wanted.items():
        if names[name] != 1:
            return (
                f"it lacks the column {name!r}"
                if name not in names
                else (f"it has the column {name!r} twice")
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
    return {parameter.name: _TYPES[parameter.kind] for parameter in function.parameters}


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
    installed = _installed(study)
    return None if installed is None else installed.version


def installed_columns(study: str | None, kind: str) -> WantedColumns | None:
    """Return the columns of an installed study's parts of a kind; None where there is none."""
    installed = _installed(study)
    return None if installed is None else _columns_of(installed, kind)


def _installed(study: str | None) -> AnyStudy | None:
    if study is not None and study in study_names():
        with contextlib.suppress(UserError):
            return find_study(study)
    return None


@functools.cache
def _columns_of(study: AnyStudy, kind: str) -> WantedColumns:
    is_cells = kind == CELLS.name
    schema = cell_schema(study, CELLS.optional) if is_cells else trajectory_schema(study)
    common = CELLS if is_cells else TRAJECTORIES
    settings = describe(study.parameters) if common is CELLS else ()
    types = {field.name: field.type for field in schema}
    return WantedColumns(types, frozenset([*common.columns, *settings]))


@dataclass(frozen=True)
class WantedColumns:
    """The columns that the parts of one study and version have.

    Attributes:
        needed: those that every part has; a study may have begun to measure another one since.
    """

    types: Mapping[str, pa.DataType]
    needed: frozenset[str]

    def misfit(self, schema: pa.Schema) -> str:
        """Return how a part's columns aren't these, in words; empty where they are."""
        present = self.needed.union(schema.names)
        return misfit(schema, {name: kind for name, kind in self.types.items() if name in present})


def wanted_columns(
    study: str | None, version: int, kind: Kind, parts: Iterable[pa.Table]
) -> WantedColumns:
    """Return the study's own columns; of one that isn't installed, those that most parts have."""
    declared = installed_columns(study, kind.name)
    if declared is not None and installed_version(study) == version:
        return declared
    votes = Counter((field.name, field.type) for part in parts for field in part.schema)
    types = {name: kind_of for (name, kind_of), _ in reversed(votes.most_common())}
    return WantedColumns(types, frozenset(kind.columns))


def cell_table(study: AnyStudy, results: Sequence[CellResult]) -> pa.Table:
    """Return the cell rows of `results`."""
    measured = _names(result.measurements for result in results)
    optional = [TRACEBACK] if any(result.traceback for result in results) else []
    schema = cell_schema(study, [*measured, *optional])
    return pa.Table.from_pylist([cell_row(result) for result in results], schema)


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
        TRACEBACK: result.traceback or None,
    }


def trajectory_table(study: AnyStudy, results: Sequence[CellResult]) -> pa.Table:
    """Return the logged steps of `results`; no rows where none was logged."""
    logged = _names(result.trajectory for result in results)
    schema = trajectory_schema(study, [name for name in logged if name != "step"])
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


def _names(rows: Iterable[Mapping[str, object]]) -> list[str]:
    widest_first = sorted(rows, key=len, reverse=True)
    return list(dict.fromkeys(name for row in widest_first for name in row))


def key_of_cells(cells: pd.DataFrame) -> str:
    """Return a name for a choice of cells, in 20 hexadecimal digits, as their own keys have.

    It is the SHA-256 of the cells' keys, sorted, one a line.
    """
    return hashlib.sha256("\n".join(sorted(cells["key"])).encode()).hexdigest()[:20]


def digest_of_numbers(
    cells: pd.DataFrame, steps: pd.DataFrame | None = None, *, seconds: bool = False
) -> str:
    """Return the SHA-256 of everything that cells hold, and of their logged steps.

    Neither the order of rows and columns matters, nor a column that holds nothing, nor whether
    whole numbers are stored as real ones. Of each table it takes the number of rows, and of each
    column, in the order of their names, the name and the values: numbers as float64,
    little-endian, texts as a list in JSON.

    Args:
        steps: one row per cell and logged step; None where they don't matter.
        seconds: whether the time that a cell took matters.
    """
    digest = hashlib.sha256()
    left_out = set() if seconds else {"seconds"}
    for content in _content(cells.drop(columns=left_out, errors="ignore"), ["key"]):
        digest.update(content)
    for content in () if steps is None else _content(steps, ["key", "step"]):
        digest.update(content)
    return digest.hexdigest()


def _content(table: pd.DataFrame, order: Sequence[str]) -> Iterator[bytes]:
    yield f"{len(table)} rows\n".encode()
    table = table.sort_values(list(order), kind="stable")
    for name in sorted(table.columns):
        if not table[name].isna().all():
            yield f"{name}\n".encode()
            yield _values(table[name])


def _values(column: pd.Series[Any]) -> bytes:
    if column.dtype.kind in "biuf":
        numbers = column.to_numpy(dtype="<f8", na_value=np.nan)
        return np.where(np.isnan(numbers), np.nan, numbers).astype("<f8").tobytes()
    texts = column.astype(object).where(column.notna(), None).tolist()
    return json.dumps(texts, default=str).encode()


MOST_BYTES = 1 << 30
_DIGITS = 16
_OURS = re.compile(rf"-[0-9a-f]{{{_DIGITS}}}\.parquet")
_LARGE = 1 << 20


@dataclass(frozen=True)
class Refusal:
    """Why a file is left out.

    Attributes:
        damaged: whether it was a part once, as far as can be told, and is set aside.
        unread: whether the system couldn't read it, so that it may be a whole part.
    """

    reason: str
    damaged: bool = False
    unread: bool = False


GONE = Refusal("it is gone")
DAMAGED = Refusal("its checksum doesn't match its name, so the file is damaged", damaged=True)
TORN = Refusal("it isn't a whole parquet file", damaged=True)


def read_part(path: Path, kind: Kind, columns: Sequence[str] | None = None) -> pa.Table | Refusal:
    """Return the rows of a part file of `kind`, or why the file isn't one."""
    try:
        content = read_bounded(path, MOST_BYTES)
    except FileNotFoundError:
        return GONE
    except OSError as error:
        return Refusal(f"it can't be read ({error_text(error)})", unread=True)
    named = _digest(content) in path.name
    if _OURS.search(path.name) and not named:
        return DAMAGED
    try:
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        schema = file.schema_arrow  # made anew at each look
        if reason := _not_of(kind, schema, named=named):
            return Refusal(reason)
        table = file.read(columns=columns, use_threads=len(content) > _LARGE)
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError):
        return TORN
    return _of_its_study(table, schema, kind)


FEW_ROWS = 1000
"""A part of so many rows is quick to read rather than small."""


def write_part(folder: Path, table: pa.Table, *, joined: bool = False) -> Path:
    """Write a part file and return its path.

    Args:
        joined: whether it is of several parts: it is then made smaller, in more time.
    """
    reals = [field.name for field in table.schema if pa.types.is_floating(field.type)]
    # Made in memory, so that writing it is one step that fails or doesn't.
    buffer = io.BytesIO()
    # To set up zstd and a dictionary of numbers for each column takes most of a small part's time.
    pq.write_table(
        table,
        buffer,
        compression="zstd" if joined or table.num_rows > FEW_ROWS else "snappy",
        use_dictionary=[field.name for field in table.schema if pa.types.is_string(field.type)],
        use_byte_stream_split=reals if joined else False,
        write_page_checksum=True,
    )
    content = buffer.getvalue()
    path = folder / f"{table.column('key')[0].as_py()}-{_digest(content)}.parquet"
    write_whole(path, content)
    return path


def is_joined(path: Path) -> bool:
    """Return whether a part file is written as a joined one is."""
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    reals = [column for column in columns if column.physical_type == "DOUBLE"]
    return all("BYTE_STREAM_SPLIT" in column.encodings for column in reals)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def _not_of(kind: Kind, schema: pa.Schema, *, named: bool) -> str:
    """Return how a file differs from a part of `kind` in marks or columns; empty if it doesn't."""
    marks = {name: mark.decode(errors="replace") for name, mark in (schema.metadata or {}).items()}
    version = marks.get(VERSION_MARK)
    if version is None:
        return "it isn't a part file of overfit"
    if version != SCHEMA_VERSION:
        return f"it has schema {version!r}; this overfit reads {SCHEMA_VERSION}"
    if not named:
        return "it was renamed: its name no longer ends in the digest of its content"
    marked = marks.get(KIND_MARK, "no kind")
    if marked != kind.name:
        return f"it holds {marked}, not {kind.name}"
    return misfit(schema, kind.columns)


def _of_its_study(table: pa.Table, schema: pa.Schema, kind: Kind) -> pa.Table | Refusal:
    """The rows, if they are of the study that the file says, and have its columns.

    Columns that the study has dropped since are left out.
    The columns of another version of the study, or of one that isn't installed, aren't known.
    """
    study = study_of(table)
    wanted = installed_columns(study, kind.name)
    if "version" in table.column_names:
        newest = pc.max(table.column("version")).as_py()
        wanted = wanted if newest == installed_version(study) else None
    if wanted is not None:
        if reason := wanted.misfit(schema):
            return Refusal(reason)
        table = table.select([name for name in table.column_names if name in wanted.types])
    if "study" in table.column_names:
        others = set(table.column("study").unique().to_pylist()) - {study_of(table)}
        if others:
            names = ", ".join(sorted(map(str, others)))
            return Refusal(f"it has rows of {names}, and is marked as a part of {study_of(table)}")
    return table
