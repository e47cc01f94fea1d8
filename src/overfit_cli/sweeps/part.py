"""One part: a parquet file, written once, whole, named after its content, and the rows in it.

Its name ends in a digest of the file, so that a flipped bit is known at every read; pages carry
checksums for other programs. The file says itself of which study it is, and when it was written:
git, cp and zip change a file's date.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from overfit_cli.core.cell import TRACEBACK, CellResult, Column, parameter_columns
from overfit_cli.core.files import error_text, read_bounded, write_whole
from overfit_cli.core.parameters import ParameterInfo, describe
from overfit_cli.core.study import AnyStudy
from overfit_cli.functions.experiment import ParameterRecord

Mask = NDArray[np.bool_]

CELLS, STEPS = "cells", "trajectories"
"""The kinds of parts, and their folders in a run directory."""

TEXT, WHOLE, REAL, SINGLE = pa.string(), pa.int64(), pa.float64(), pa.float32()
_FIRST = {"key": TEXT, "study": TEXT, "version": WHOLE, "seed": WHOLE}
_AFTER_PARAMETERS = {"status": TEXT, "reason": TEXT, "steps": WHOLE, "seconds": REAL}
NEEDED = {CELLS: _FIRST | _AFTER_PARAMETERS, STEPS: {"key": TEXT, "step": WHOLE}}
ORDER = {CELLS: ["key"], STEPS: ["key", "step"]}
INDEX = {CELLS: ["key", "status", "version"], STEPS: ["key"]}
"""The columns that are remembered of a part."""

FORMAT, MARKS = "2", ("schema", "kind", "study", "source", "written")
"""The format of parts, and what a part's metadata says of it."""

JOINED_ROWS = 250_000
"""A part of so many rows is not joined with others."""

BYTES_OF_KEY = 8
"""The least bytes of a cell's key in a file: it is a hash of 80 bits, which nothing compresses."""

MOST_ROWS, MOST_BYTES = 20_000_000, 1 << 32
"""The most rows of a part, and the most bytes that they take once read."""

FEW_ROWS = 1000
"""A part of so many rows is quick to read rather than small."""


class NotAPartError(Exception):
    """A sentence on a file that isn't read.

    Attributes:
        damaged: whether it was a part once.
        lost: whether cells in it are missing: it is damaged, or the system couldn't read it.
    """

    def __init__(self, reason: str, *, damaged: bool = False, unread: bool = False) -> None:
        super().__init__(reason)
        self.damaged, self.lost = damaged, damaged or unread


@dataclass(frozen=True)
class Part:
    """A part as it was read.

    Attributes:
        rows: the columns that were asked for.
        schema: all columns.
        study: the study that it is of.
        source: the digest of the code that trained its cells; empty of an installed study.
        stamp: the time of writing, in nanoseconds; 0 where it has none.
    """

    name: str
    rows: pa.Table
    schema: pa.Schema
    study: str
    source: str
    stamp: int

    @property
    def parameters(self) -> dict[str, pa.DataType]:
        """The types of a cell's parameters."""
        return {name: self.schema.field(name).type for name in parameter_columns(self.schema.names)}


def write_part(
    folder: Path, table: pa.Table, kind: str, study: str, source: str, stamp: int
) -> str:
    """Write rows as a part, and return its name; for the arguments see `Part`.

    What repeats is kept by dictionary, measured numbers byte by byte. Most of a small part's time
    goes to headers: it has no statistics, and snappy, which is quicker to set up than zstd.
    """
    names = table.column_names
    start = names.index("status") if kind == CELLS else 0
    measured = [name for name in names[start:] if table.schema.field(name).type == REAL]
    unique = ORDER[kind] if kind == CELLS else []
    large, buffer = table.num_rows > FEW_ROWS, io.BytesIO()
    writer = pq.ParquetWriter(
        buffer,
        table.schema,
        compression="zstd" if large else "snappy",
        use_dictionary=[name for name in names if name not in (*measured, *unique)],
        use_byte_stream_split=measured,
        write_statistics=large,
        write_page_checksum=True,
        store_schema=False,
    )
    with writer:
        writer.write_table(table, row_group_size=max(table.num_rows, 1))
        marks = zip(MARKS, (FORMAT, kind, study, source, str(stamp)), strict=True)
        writer.add_key_value_metadata({f"overfit.{name}": mark for name, mark in marks})
    name = f"{table['key'][0].as_py()}-{digest_of_bytes(buffer.getvalue())}.parquet"
    write_whole(folder / name, buffer.getvalue())
    return name


def digest_of_bytes(content: bytes) -> str:
    """Return the digest in a part's name."""
    return hashlib.sha256(content).hexdigest()[:16]


def read_part(path: Path, kind: str, columns: list[str] | None = None) -> Part:
    """Read a part, or raise an error that says why the file is none.

    Args:
        columns: those to read, where the part has them; None for all.
    """
    try:
        content = read_bounded(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise NotAPartError(f"it can't be read ({error_text(error)})", unread=True) from error
    if digest_of_bytes(content) not in path.name:
        if re.search(r"-[0-9a-f]{16}\.parquet$", path.name):
            raise NotAPartError("its checksum doesn't match its name", damaged=True)
        raise NotAPartError("it was renamed, or is no part")
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        facts, schema = file.metadata, file.schema_arrow.remove_metadata()
        found = {name.decode(): mark.decode() for name, mark in (facts.metadata or {}).items()}
        version, of, study, source, stamp = (found.get(f"overfit.{mark}", "") for mark in MARKS)
        if version != FORMAT:
            raise NotAPartError(f"it has schema {version!r}; this overfit reads {FORMAT}")
        if of != kind:
            raise NotAPartError(f"it isn't marked as {kind}")
        _check_schema(facts, schema, kind, len(content))
        # A part without a value of a parameter is none, whatever is asked of it.
        fixed = parameter_columns(schema.names) if kind == CELLS else []
        asked = columns and [*dict.fromkeys([*columns, *fixed])]
        rows = file.read(asked, use_threads=len(content) > 1 << 20).replace_schema_metadata(None)
        part = Part(path.name, rows, schema, study, source, int(stamp or 0))
    except MemoryError:  # says nothing about the file
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise NotAPartError("it isn't a whole parquet file") from error
    _check_rows(part, kind)
    kept = [name for name in rows.column_names if columns is None or name in columns]
    return replace(part, rows=rows.select(kept))


def _check_rows(part: Part, kind: str) -> None:
    """Refuse rows that were read and are none of a part."""
    rows, parameters = part.rows, part.parameters if kind == CELLS else {}
    for name in rows.column_names:
        column, is_fixed = rows[name], name in NEEDED[kind] or name in parameters
        if is_fixed and column.null_count:
            raise NotAPartError(f"its column {name!r} has an empty place")
        if parameters.get(name) == REAL and not pc.all(pc.is_finite(column)).as_py():
            raise NotAPartError(f"its column {name!r} has a number that is not finite")
    order = ORDER[kind]
    if {*order} <= {*rows.column_names} and rows.group_by(order).aggregate([]).num_rows < len(rows):
        raise NotAPartError("a cell, or a logged step of one, stands in it twice")


def _check_schema(facts: pq.FileMetaData, schema: pa.Schema, kind: str, size: int) -> None:
    """Refuse a file of so many bytes that somebody made and that can be no part."""
    once_read = sum(facts.row_group(group).total_byte_size for group in range(facts.num_row_groups))
    keys = facts.num_rows if kind == CELLS else 0
    if facts.num_rows > MOST_ROWS or once_read > MOST_BYTES or keys * BYTES_OF_KEY > size:
        raise NotAPartError("it has more rows than a part, or a file of its size, can hold")
    fixed, start = NEEDED[kind] | {TRACEBACK: TEXT}, schema.get_field_index("status")
    for name in NEEDED[kind]:
        if schema.names.count(name) != 1:
            raise NotAPartError(f"it lacks the column {name!r}")
    for place, column in enumerate(schema):
        # What is measured is a number.
        free = {WHOLE, REAL, SINGLE} if place >= start else {WHOLE, REAL, TEXT, pa.bool_()}
        if column.type not in ({fixed[column.name]} if column.name in fixed else free):
            raise NotAPartError(f"its column {column.name!r} holds {column.type}")


def joined(rows: Iterable[pa.Table], kind: str) -> pa.Table:
    """Return all rows of a kind, with the columns of the widest tables first.

    Numbers are real where some are, and what a table has no column of is null.
    """
    tables = list(rows)
    if not tables:
        return pa.schema(NEEDED[kind]).empty_table()
    orders = sorted({tuple(table.column_names) for table in tables}, key=lambda n: (-len(n), n))
    table = pa.concat_tables(tables, promote_options="permissive")
    return table.select(list(dict.fromkeys(name for order in orders for name in order)))


def in_order(table: pa.Table, kind: str) -> pa.Table:
    """Return the rows by the names of their cells, and by step."""
    return table.sort_by([(name, "ascending") for name in ORDER[kind]])


def counting(kind: str, parts: Sequence[Part], replaced: Mapping[int, pa.Array]) -> dict[str, Mask]:
    """Return masks of the rows that count: those of a key in one part, the newest or newest done.

    They stand under the names of the parts, in their order.

    Args:
        parts: the newest first.
        replaced: for steps: by the time of their writing, the keys of cells' rows that don't count.
            Steps that were logged with such a row come after all others.
    """
    if not parts:
        return {}
    if kind == CELLS:
        last = [pc.not_equal(part.rows["status"], "done") for part in parts]
    else:
        none = pa.array([], TEXT)
        last = [pc.is_in(part.rows["key"], replaced.get(part.stamp, none)) for part in parts]
    keys = pa.chunked_array([part.rows["key"].combine_chunks() for part in parts], TEXT)
    codes = pc.dictionary_encode(keys).combine_chunks().indices.to_numpy()
    sizes = [part.rows.num_rows for part in parts]
    is_last = np.concatenate([mask.to_numpy() for mask in last])
    rank = np.repeat(np.arange(len(parts)), sizes) + len(parts) * is_last
    best = np.full(codes.max(initial=0) + 1, 2 * len(parts))
    np.minimum.at(best, codes, rank)
    masks = np.split(rank == best[codes], np.cumsum(sizes)[:-1])
    return dict(zip((part.name for part in parts), masks, strict=True))


def groups_to_join(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Parts that can be joined, as many as one file takes; a large one stays as it is."""
    groups, rows = dict[tuple[str, str], list[Part]](), Counter[tuple[str, str]]()
    for part in sorted(parts, key=lambda part: part.rows.num_rows):
        alike = part.schema.to_string(), part.source
        groups.setdefault(alike, []).append(part)
        rows[alike] += part.rows.num_rows
        if rows[alike] >= JOINED_ROWS:
            yield groups.pop(alike)
            rows[alike] = 0
    yield from groups.values()


# Rows of results

_TYPES = {
    **{"int": WHOLE, "float": REAL, "single": SINGLE, "bool": pa.bool_()},
    **{"literal": TEXT, "text": TEXT},
}


def cell_schema(study: AnyStudy, measured: Iterable[Mapping[str, object]] = ()) -> pa.Schema:
    """Return the schema of the study's cell rows, with what is measured, declared or not."""
    parameters = parameter_types(describe(study.parameters).values())
    types = _with_columns(_FIRST | parameters | _AFTER_PARAMETERS, study.columns, measured)
    return pa.schema(types | {TRACEBACK: TEXT})


def steps_schema(study: AnyStudy, logged: Iterable[Mapping[str, object]] = ()) -> pa.Schema:
    """Return the schema of the study's trajectories: one row per cell and logged step."""
    return pa.schema(_with_columns(NEEDED[STEPS], study.trajectory_columns, logged))


def _with_columns(
    types: Mapping[str, pa.DataType],
    declared: Sequence[Column],
    rows: Iterable[Mapping[str, object]],
) -> dict[str, pa.DataType]:
    """Types with those of declared columns, and of what rows have beside them, the widest first."""
    known = {**types, **{column.name: _TYPES[column.kind] for column in declared}}
    taken = sorted(rows, key=len, reverse=True)
    kinds = dict[str, set[type]]()
    for name, value in itertools.chain.from_iterable(row.items() for row in taken):
        kinds.setdefault(name, set()).add(type(value))
    whole = [name for name, types_of in kinds.items() if types_of - {type(None)} == {int}]
    return dict.fromkeys(itertools.chain(known, kinds), REAL) | dict.fromkeys(whole, WHOLE) | known


def cell_table(study: AnyStudy, results: Sequence[CellResult]) -> pa.Table:
    """Return the cell rows of `results`."""
    rows = [
        {
            **{"key": one.cell.key, "study": one.cell.study, "version": one.cell.version},
            **{"seed": one.cell.seed, **one.cell.parameters.model_dump()},
            **{"status": one.status, "reason": one.reason},
            **{"steps": one.steps, "seconds": one.seconds, **one.measurements},
            TRACEBACK: one.traceback or None,
        }
        for one in results
    ]
    schema = cell_schema(study, (result.measurements for result in results))
    real = {name for name in schema.names if schema.field(name).type in (REAL, SINGLE)}
    for row in rows:  # of mixed columns whole numbers are rounded
        row |= {name: float(n) for name, n in row.items() if name in real and type(n) is int}
    return pa.Table.from_pylist(rows, schema)


def trajectory_table(study: AnyStudy, results: Sequence[CellResult]) -> pa.Table:
    """Return the logged steps of `results`; no rows where none was logged."""
    schema = steps_schema(study, (result.trajectory for result in results))
    tables = [schema.empty_table()]
    for result in (one for one in results if one.trajectory):
        absent = [None] * len(result.trajectory["step"])
        content = {"key": [result.cell.key] * len(absent), **result.trajectory}
        columns = {name: content.get(name, absent) for name in schema.names}
        for name in (name for name in schema.names if schema.field(name).type == SINGLE):
            columns[name] = pa.array(columns[name], REAL).cast(SINGLE, safe=False)
        tables.append(pa.table(columns, schema=schema))
    return pa.concat_tables(tables)


def parameter_types(
    parameters: Iterable[ParameterInfo | ParameterRecord],
) -> dict[str, pa.DataType]:
    """Return the types of the columns of parameters."""
    return {parameter.name: _TYPES[parameter.kind] for parameter in parameters}


def change_of(before: Mapping[str, pa.DataType], now: Mapping[str, pa.DataType]) -> str:
    """Return how a study's parameters have changed, in words; empty if they haven't."""
    return ", ".join(
        f"{name} was {before.get(name, 'absent')} and is {now.get(name, 'absent')}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    )
