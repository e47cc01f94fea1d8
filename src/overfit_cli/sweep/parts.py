"""A folder of part files: parquet files that are written once, whole, and never changed.

Whoever writes holds the run directory's lock. A part that a kill or a hand has damaged, or that
isn't ours, is left out with a sentence; it is never a crash.
"""

from __future__ import annotations

import io
import uuid
import warnings
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from overfit_cli.files import write_whole
from overfit_cli.sweep.schema import SCHEMA_VERSION, VERSION_MARK

TORN = "it isn't a whole parquet file"


class PartFolder:
    """The part files of one kind, each row with the `key` of its cell.

    Args:
        path: the folder; it need not exist yet.
        index_columns: what is remembered of each row of a part that was read; `key` among them.
    """

    def __init__(self, path: Path, index_columns: Sequence[str]) -> None:
        self.path = path
        self._index_columns = list(index_columns)
        self._indices: dict[Path, pa.Table | str] = {}
        self._counted: set[Path] = set()
        self._keys: set[str] = set()

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Give every part's rows; warn of each part that is left out."""
        for path in self._parts():
            part = _read(path, columns)
            if isinstance(part, pa.Table):
                yield part
            else:
                warnings.warn(f"{path} is left out: {part}.", UserWarning, stacklevel=3)

    def indices(self) -> Iterator[pa.Table]:
        """Give the index columns of every part, without a word of those left out."""
        for path in self._parts():
            index = self._index(path)
            if isinstance(index, pa.Table):
                yield index

    def known(self) -> set[str]:
        """Return the keys of all rows; only parts that are new are looked into."""
        parts = set(self._parts())
        if self._counted - parts:
            self._counted, self._keys = set(), set()
        for path in parts - self._counted:
            index = self._index(path)
            if isinstance(index, pa.Table):
                self._keys.update(_keys(index))
        self._counted = parts
        return self._keys

    def add(self, table: pa.Table, replaced: Collection[str] = ()) -> None:
        """Write a part; rows of the keys `replaced` go from other parts when it is on disk.

        Raises:
            OSError: if it can't be written; what was there is untouched.
        """
        others = self._parts() if replaced else []
        name = f"{table.column('key')[0].as_py()}-{uuid.uuid4().hex[:8]}.parquet"
        write_whole(self.path / name, _as_parquet(table))
        for path in others:
            self._drop(path, replaced)

    def tidy(self, aside: Path) -> Iterator[str]:
        """Move torn parts to `aside`, and drop rows that a kill left twice; say what was done.

        Of a row that stands twice, the one in the newest part is kept.
        """
        seen: set[str] = set()
        for path in sorted(self._parts(), key=lambda part: part.stat().st_mtime, reverse=True):
            index = self._index(path)
            if index == TORN:
                aside.mkdir(parents=True, exist_ok=True)
                path.replace(aside / path.name)
                yield f"{path} was torn and is set aside in {aside}; its cells run again."
            elif isinstance(index, str):
                yield f"{path} is left out: {index}."
            else:
                self._drop(path, seen)
                seen.update(_keys(index))

    def _parts(self) -> list[Path]:
        found = self.path.glob("*.parquet")
        return sorted(path for path in found if path.is_file() and not path.name.startswith("."))

    def _index(self, path: Path) -> pa.Table | str:
        """What a part holds, in short, or why it isn't one; read once, because parts stay."""
        if path not in self._indices:
            part = _read(path)
            if isinstance(part, pa.Table):
                part = part.select(self._index_columns)
            self._indices[path] = part
        return self._indices[path]

    def _drop(self, path: Path, keys: Collection[str]) -> None:
        """Take the rows of `keys` out of a part: the rest is written as a part of its own."""
        index = self._index(path)
        if isinstance(index, str) or not (dropped := set(_keys(index)).intersection(keys)):
            return
        rest = pq.read_table(path).filter(pa.array([key not in dropped for key in _keys(index)]))
        if rest.num_rows:
            self.add(rest)
        path.unlink()


def _keys(table: pa.Table) -> list[str]:
    keys: list[str] = table.column("key").to_pylist()
    return keys


def _read(path: Path, columns: Sequence[str] | None = None) -> pa.Table | str:
    """The rows of one of our part files, or why the file isn't one."""
    try:
        marks = pq.read_schema(path).metadata or {}
        if VERSION_MARK not in marks:
            return "it isn't a part file of overfit"
        if marks[VERSION_MARK].decode() != SCHEMA_VERSION:
            return f"it has schema {marks[VERSION_MARK].decode()}, not {SCHEMA_VERSION}"
        return pq.read_table(path, columns=columns)
    except FileNotFoundError:
        return "it is gone"
    except (pa.ArrowException, OSError):
        return TORN


def _as_parquet(table: pa.Table) -> bytes:
    """The file's bytes, made in memory: writing them is then one step that fails or doesn't."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()
