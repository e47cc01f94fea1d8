"""One part file: parquet, written once, whole, named after its content, and never changed.

The name ends in a digest of the file, so that a damaged part is known from a whole one at every
read. Pages carry checksums too, for whoever reads the files with other programs.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from overfit_cli.files import read_bounded, reason_of, write_whole
from overfit_cli.sweeps.schema import (
    FIRST_SCHEMA,
    KIND_MARK,
    SCHEMA_VERSION,
    VERSION_MARK,
    Kind,
    installed_columns,
    installed_version,
    misfit,
    study_of,
)

MOST_BYTES = 1 << 30
_DIGITS = 16
_OURS = re.compile(rf"-[0-9a-f]{{{_DIGITS}}}\.parquet")
_LARGE = 1 << 20


@dataclass(frozen=True)
class Refusal:
    """Why a file is left out.

    Attributes:
        reason: in words, with the file as `it`.
        damaged: whether it was a part once, as far as can be told, and is set aside.
    """

    reason: str
    damaged: bool = False


GONE = Refusal("it is gone")
DAMAGED = Refusal("its content isn't what its name says: it is damaged", damaged=True)
TORN = Refusal("it isn't a whole parquet file", damaged=True)


def read_part(path: Path, kind: Kind, columns: Sequence[str] | None = None) -> pa.Table | Refusal:
    """Return the rows of a part file of `kind`, or why the file isn't one.

    Args:
        path: the file.
        kind: what it must hold.
        columns: which columns to read; None for all.
    """
    try:
        content = read_bounded(path, MOST_BYTES)
    except FileNotFoundError:
        return GONE
    except OSError as error:
        return Refusal(f"it can't be read ({reason_of(error)})")
    named = _digest(content) in path.name
    if _OURS.search(path.name) and not named:
        return DAMAGED
    try:
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        if reason := _not_of(kind, file.schema_arrow, named=named):
            return Refusal(reason)
        table = file.read(columns=columns, use_threads=len(content) > _LARGE)
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError):
        return TORN
    return _of_its_study(table, file.schema_arrow, kind)


def write_part(folder: Path, table: pa.Table) -> Path:
    """Write a part file and return its path.

    Raises:
        OSError: if it can't be written; nothing is left behind then.
    """
    # Made in memory, so that writing it is one step that fails or doesn't.
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", write_page_checksum=True)
    content = buffer.getvalue()
    path = folder / f"{table.column('key')[0].as_py()}-{_digest(content)}.parquet"
    write_whole(path, content)
    return path


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def _not_of(kind: Kind, schema: pa.Schema, *, named: bool) -> str:
    """How a file's marks and columns aren't those of a part of `kind`; empty where they are."""
    marks = {name: mark.decode(errors="replace") for name, mark in (schema.metadata or {}).items()}
    version = marks.get(VERSION_MARK)
    if version is None:
        return "it isn't a part file of overfit"
    if version not in (FIRST_SCHEMA, SCHEMA_VERSION):
        return f"it has schema {version!r}; this overfit reads {SCHEMA_VERSION}"
    if version == SCHEMA_VERSION and not named:
        return "it was renamed: its name no longer ends in the digest of its content"
    of_cells = "cells" if "status" in schema.names else "trajectories"
    found = marks.get(KIND_MARK, of_cells)
    if found != kind.name:
        return f"it holds {found}, not {kind.name}"
    return misfit(schema, kind.columns)


def _of_its_study(table: pa.Table, schema: pa.Schema, kind: Kind) -> pa.Table | Refusal:
    """The rows, if they are of the study that the file says, and have its columns.

    The columns of another version of the study, or of one that isn't installed, aren't known.
    """
    study = study_of(table)
    wanted = installed_columns(study, kind.name)
    if "version" in table.column_names:
        newest = pc.max(table.column("version")).as_py()
        wanted = wanted if newest == installed_version(study) else None
    if wanted is not None and (reason := wanted.misfit(schema)):
        return Refusal(reason)
    if "study" in table.column_names:
        others = set(table.column("study").unique().to_pylist()) - {study_of(table)}
        if others:
            names = ", ".join(sorted(map(str, others)))
            return Refusal(f"it has rows of {names}, and its mark says {study_of(table)}")
    return table
