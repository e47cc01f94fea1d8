"""A run directory: `cells/*.parquet`, `trajectories/*.parquet`, `manifest.json`, `figures/`.

A part file is written once, whole, and never changed; it is named after its first cell. All
writing happens under the directory's lock, so that two sweeps can share a directory.
"""

from __future__ import annotations

import io
import uuid
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from overfit_cli.errors import UserError
from overfit_cli.files import TEMPORARY_PREFIX, locked, make_folder, reason_of, write_whole
from overfit_cli.study import CellResult, Study
from overfit_cli.sweep.schema import (
    SCHEMA_VERSION,
    VERSION_MARK,
    cell_table,
    trajectory_table,
)

Kind = Literal["cells", "trajectories"]


class RunDirectory:
    """What a sweep or a training writes and a figure reads.

    Args:
        path: the directory; it need not exist yet.
        flag: the flag that named it, for messages.
    """

    def __init__(self, path: Path, flag: str = "--from") -> None:
        self.path = path
        self.flag = flag
        self._indices: dict[Path, pa.Table | str] = {}
        self._counted: dict[Kind, set[Path]] = {"cells": set(), "trajectories": set()}
        self._keys: dict[Kind, set[str]] = {"cells": set(), "trajectories": set()}

    def folder(self, kind: Kind) -> Path:
        """Return the folder of the part files of one kind."""
        return self.path / kind

    # -- reading ---------------------------------------------------------------------------------

    def load_cells(self) -> pd.DataFrame:
        """Return one row a cell, of the newest numerical version in the directory.

        Raises:
            UserError: if there is no such directory, or no cell in it.
        """
        tables = list(self._tables("cells"))
        if not any(table.num_rows for table in tables):
            raise UserError(f"{self.flag} {self.path}: {self._why_empty()}")
        cells: pd.DataFrame = self._joined(tables)
        cells = cells[cells["version"] == cells["version"].max()]
        # A cell that failed and was later done may stand twice after a kill; done comes first.
        cells = cells.sort_values(["status", "key"], kind="stable")
        return cells.drop_duplicates("key").sort_values("key").reset_index(drop=True)

    def load_trajectories(self) -> pd.DataFrame:
        """Return one row a cell and logged step; no rows where none was logged."""
        tables = list(self._tables("trajectories"))
        if not tables:
            return pd.DataFrame({"key": pd.Series(dtype=str), "step": pd.Series(dtype=int)})
        return self._joined(tables).drop_duplicates(["key", "step"]).reset_index(drop=True)

    def study_name(self) -> str | None:
        """Return the name of the study whose cells it holds; None where it holds none."""
        for table in self._tables("cells", ["study"]):
            if table.num_rows:
                return str(table.column("study")[0].as_py())
        return None

    def logged_keys(self) -> set[str]:
        """Return the keys of the cells that have a trajectory."""
        return set(self._known("trajectories"))

    def statuses(self) -> dict[str, tuple[str, int]]:
        """Return status and numerical version of every cell, by key."""
        found: dict[str, tuple[str, int]] = {}
        for path in self._parts("cells"):
            index = self._index("cells", path)
            if isinstance(index, str):
                continue
            for key, status, version in zip(*index.to_pydict().values(), strict=True):
                if found.get(key, ("failed", 0))[0] != "done":
                    found[key] = (status, version)
        return found

    # -- writing ---------------------------------------------------------------------------------

    def prepare(self) -> list[str]:
        """Make the folders, clear what a kill left, set torn parts aside; say what was done.

        Raises:
            UserError: if the directory can't be written to.
        """
        for folder in (self.path, self.folder("cells"), self.folder("trajectories")):
            make_folder(folder, self.flag)
        try:
            with locked(self.path):
                for leftover in self.path.glob(f"**/{TEMPORARY_PREFIX}*"):
                    leftover.unlink(missing_ok=True)
                return [*self._tidy("cells"), *self._tidy("trajectories")]
        except OSError as error:
            raise UserError(
                f"{self.flag} {self.path}: the directory can't be put in order "
                f"({error.filename or 'it'}: {reason_of(error)})."
            ) from error

    def write(
        self, study: Study, results: Sequence[CellResult], again: Collection[str] = ()
    ) -> None:
        """Write results as one part file; cells that are there already are left out.

        Args:
            study: whose results they are.
            results: one for each cell.
            again: keys whose new rows replace the ones that are there. An old row goes when its
                new one is on disk, and not before.

        Raises:
            OSError: if it can't be written; what was there is untouched.
        """
        with locked(self.path):
            # Trajectories first: a cell that is there has its trajectory.
            logged = [result for result in results if result.trajectory]
            self._put("trajectories", logged, again, partial(trajectory_table, study))
            self._put("cells", results, again, partial(cell_table, study))

    # -- inside ----------------------------------------------------------------------------------

    def _parts(self, kind: Kind) -> list[Path]:
        found = self.folder(kind).glob("*.parquet")
        return sorted(path for path in found if path.is_file() and not path.name.startswith("."))

    def _tables(self, kind: Kind, columns: list[str] | None = None) -> Iterator[pa.Table]:
        for path in self._parts(kind):
            part = _read_part(path, columns)
            if isinstance(part, pa.Table):
                yield part
            else:
                warnings.warn(f"{path} is left out: {part}.", UserWarning, stacklevel=3)

    def _put(
        self,
        kind: Kind,
        results: Sequence[CellResult],
        again: Collection[str],
        table: Callable[[Sequence[CellResult]], pa.Table],
    ) -> None:
        known = set(self._known(kind))
        chosen = [r for r in results if r.cell.key not in known or r.cell.key in again]
        if chosen:
            new = self._add(kind, table(chosen))
            replaced = {result.cell.key for result in chosen} & known
            for path in self._parts(kind):
                if path != new:
                    self._drop(kind, path, replaced)

    def _add(self, kind: Kind, table: pa.Table) -> Path:
        name = f"{table.column('key')[0].as_py()}-{uuid.uuid4().hex[:8]}.parquet"
        write_whole(self.folder(kind) / name, _as_parquet(table))
        return self.folder(kind) / name

    def _drop(self, kind: Kind, path: Path, keys: Collection[str]) -> None:
        """Take the rows of `keys` out of a part: the rest is written as a part of its own."""
        index = self._index(kind, path)
        if isinstance(index, str) or not (dropped := set(_keys(index)).intersection(keys)):
            return
        rest = pq.read_table(path).filter(pa.array([key not in dropped for key in _keys(index)]))
        if rest.num_rows:
            self._add(kind, rest)
        path.unlink()

    def _known(self, kind: Kind) -> set[str]:
        """The keys of all cells that have a row; only parts that are new are looked into."""
        parts = set(self._parts(kind))
        if self._counted[kind] - parts:
            self._counted[kind], self._keys[kind] = set(), set()
        for path in parts - self._counted[kind]:
            index = self._index(kind, path)
            if isinstance(index, pa.Table):
                self._keys[kind].update(_keys(index))
        self._counted[kind] = parts
        return self._keys[kind]

    def _index(self, kind: Kind, path: Path) -> pa.Table | str:
        """What a part holds, in short, or why it isn't one; read once, because parts stay."""
        if path not in self._indices:
            part = _read_part(path)
            columns = ["key", "status", "version"] if kind == "cells" else ["key"]
            self._indices[path] = part.select(columns) if isinstance(part, pa.Table) else part
        return self._indices[path]

    def _tidy(self, kind: Kind) -> Iterator[str]:
        """Set torn parts aside, and drop rows that a kill left twice: the newest part has them."""
        seen: set[str] = set()
        for path in sorted(self._parts(kind), key=lambda part: part.stat().st_mtime, reverse=True):
            index = self._index(kind, path)
            if index == TORN:
                aside = self.path / "set-aside" / kind
                aside.mkdir(parents=True, exist_ok=True)
                path.replace(aside / path.name)
                del self._indices[path]
                yield f"{path} was torn and is set aside in {aside}; its cells run again."
            elif isinstance(index, str):
                yield f"{path} is left out: {index}."
            else:
                self._drop(kind, path, seen)
                seen.update(_keys(index))

    def _joined(self, tables: list[pa.Table]) -> pd.DataFrame:
        try:
            frame: pd.DataFrame = pa.concat_tables(tables, promote_options="default").to_pandas()
        except pa.ArrowException as error:
            reason = " ".join(str(error).split())
            raise UserError(
                f"{self.flag} {self.path}: its part files don't fit together ({reason})."
            ) from error
        return frame

    def _why_empty(self) -> str:
        if not self.path.exists():
            return "there is no such directory; name one that `overfit sweep` wrote."
        if not self.path.is_dir():
            return "that is a file; name a directory that `overfit sweep` wrote."
        return "it holds no cells; name a directory that `overfit sweep` wrote."


def run_directories(root: Path) -> list[RunDirectory]:
    """Return the run directories in `root` that hold parts, the one written last first."""
    found = [(folder.stat().st_mtime, folder.parent) for folder in root.glob("*/cells")]
    directories = [RunDirectory(path) for _, path in sorted(found, reverse=True)]
    return [directory for directory in directories if directory.study_name() is not None]


TORN = "it isn't a whole parquet file"


def _keys(table: pa.Table) -> list[str]:
    keys: list[str] = table.column("key").to_pylist()
    return keys


def _read_part(path: Path, columns: list[str] | None = None) -> pa.Table | str:
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
