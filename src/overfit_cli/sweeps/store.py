"""Run directories: `cells/*.parquet`, `trajectories/*.parquet`, `manifest.json`, `figures/`.

A folder of parts is read as of one moment. All writing happens under the directory's lock, so that
sweeps can share it. A file that is damaged, of another kind or foreign is left out with a sentence.
Nothing is deleted: what is damaged or replaced moves to `set-aside/`.
"""

from __future__ import annotations

import contextlib
import os
import random
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from overfit_cli.core.cell import CellResult
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import (
    SET_ASIDE,
    TEMPORARY_PREFIX,
    error_text,
    lock_folder,
    make_folder,
    set_aside,
)
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import plural
from overfit_cli.sweeps.manifest import read_manifest
from overfit_cli.sweeps.part_file import (
    CELLS,
    TRAJECTORIES,
    Kind,
    Refusal,
    cell_table,
    installed_version,
    other_parameters,
    read_part,
    source_of,
    study_of,
    trajectory_table,
    wanted_columns,
    write_part,
)

if TYPE_CHECKING:
    import pandas as pd


Seen = TypeVar("Seen")

PASSES = 20
"""How often a folder is listed again while it changes, before its lock is taken."""


class PartFolder:
    """The part files of one kind, each row with the `key` of its cell.

    Args:
        path: the folder; it need not exist yet.
        kind: what its parts hold.
    """

    def __init__(self, path: Path, kind: Kind) -> None:
        self.path = path
        self.kind = kind
        self._indices: dict[str, pa.Table] = {}
        self._refused: set[str] = set()

    def read(self, columns: Sequence[str] | None = None) -> dict[Path, pa.Table | Refusal]:
        """Return every part's rows, or why it is left out, as of one moment; the newest first.

        Args:
            columns: which of its columns to read; None for all.
        """
        return self._at_one_moment(lambda path: read_part(path, self.kind, columns))

    def indices(self, most: int | None = None) -> dict[Path, pa.Table | Refusal]:
        """Return the indexed columns of the parts; each is read once, because parts stay.

        Args:
            most: look at so many parts only, chosen at random; None for all of them.
        """
        if most is None:
            return self._at_one_moment(self._index)
        names = self.names()
        chosen = random.Random(0).sample(names, min(most, len(names)))
        return {self.path / name: self._index(self.path / name) for name in chosen}

    def names(self) -> list[str]:
        """Return the names of the files that look like parts.

        Raises:
            UserError: if the folder can't be read.
        """
        try:
            with os.scandir(self.path) as entries:
                return sorted(
                    entry.name
                    for entry in entries
                    if entry.name.endswith(".parquet")
                    and not entry.name.startswith(".")
                    and entry.is_file()
                )
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise UserError(f"{self.path}: it can't be read ({error_text(error)}).") from error

    def add(self, table: pa.Table) -> str:
        """Write a part and return its name.

        Raises:
            OSError: if it can't be written; what was there is untouched.
        """
        return write_part(self.path, table).name

    def has_strangers(self, written: Collection[str]) -> bool:
        """Whether there are parts that this object hasn't looked at, other than those `written`."""
        return bool({*self.names()} - self._indices.keys() - self._refused - {*written})

    def tidy(self, study: str | None, aside: Path) -> Iterator[str]:
        """Move damaged parts to `aside`, and drop rows that stand twice; say what was left out.

        Of a row that stands twice the one that is done is kept, else the one in the newest part.
        A part that loses rows moves to `aside` too, when what it keeps is on disk.

        Args:
            study: the study whose parts these are; None where there are none.
            aside: a folder for what is taken away; it need not exist.
        """
        for path, part in self.indices().items():
            if isinstance(part, Refusal):
                if part.damaged:
                    set_aside(path, aside)
                    yield f"{path} is damaged and is set aside in {aside}; {_SO[self.kind.name]}."
                else:
                    yield f"{path} is left out: {part.reason}."
            elif study_of(part) != study:
                yield f"{path} is left out: {of_another_study(part, study)}."
        self.drop_repeated(study, aside)

    def drop_repeated(self, study: str | None, aside: Path) -> None:
        """Leave each cell in one part only; a part that loses rows moves to `aside`.

        Args:
            study: the study whose parts these are; the others are left as they are.
            aside: a folder for what is taken away; it need not exist.
        """
        parts = {
            path: part
            for path, part in self.indices().items()
            if isinstance(part, pa.Table) and study_of(part) == study
        }
        for path, dropped in _repeated(parts).items():
            table = read_part(path, self.kind)
            if isinstance(table, pa.Table):
                rest = _without(table, dropped)
                if rest.num_rows:
                    self.add(rest)
                set_aside(path, aside)

    def _at_one_moment(self, look: Callable[[Path], Seen]) -> dict[Path, Seen]:
        """What `look` says of each part, none of them gone in between; the newest first.

        A part may be replaced while others are read: then the folder is listed again.
        """
        seen: dict[str, Seen] = {}
        listed = self.names()
        for _ in range(PASSES):
            seen |= {name: look(self.path / name) for name in listed if name not in seen}
            before, listed = listed, self.names()
            if listed == before:
                break
        else:
            with contextlib.suppress(OSError), lock_folder(self.path.parent):
                listed = self.names()
                seen |= {name: look(self.path / name) for name in listed if name not in seen}
        parts = {self.path / name: seen[name] for name in listed if name in seen}
        return dict(sorted(parts.items(), key=lambda item: _age(item[0])))

    def _index(self, path: Path) -> pa.Table | Refusal:
        if path.name in self._indices:
            return self._indices[path.name]
        part = read_part(path, self.kind, list(self.kind.indexed))
        if isinstance(part, Refusal):
            # It is looked at again: a damaged part may be written anew, under the same name.
            self._refused.add(path.name)
            return part
        if self.kind.indexed == ("key",):
            part = pa.Table.from_arrays([part.column("key").unique()], schema=part.schema)
        self._indices[path.name] = part
        return part


_SO = {
    "cells": "its cells run again",
    "trajectories": "its cells run again where steps are logged",
}


def of_another_study(part: pa.Table, study: str | None) -> str:
    """Return the reason for leaving out a part that isn't of `study`."""
    return f"it is of {study_of(part)}, and the directory of {study}"


def _age(path: Path) -> tuple[int, str]:
    """Sorts the newest file first."""
    try:
        return -path.stat().st_mtime_ns, path.name
    except OSError:
        return 0, path.name


def without_repeats(parts: Mapping[Path, pa.Table]) -> dict[Path, pa.Table]:
    """Return the parts with each cell in one of them only: where it is done, else in the first.

    Args:
        parts: the newest first.
    """
    dropped = _repeated(parts)
    return {
        path: _without(part, dropped[path]) if path in dropped else part
        for path, part in parts.items()
    }


def _without(part: pa.Table, keys: pa.Array) -> pa.Table:
    return part.filter(pc.invert(pc.is_in(part.column("key"), keys)))


def _repeated(parts: Mapping[Path, pa.Table]) -> dict[Path, pa.Array]:
    """The keys that each part is to lose, so that each key stands in one part."""
    keys = {path: part.column("key").unique() for path, part in parts.items()}
    every = pa.chunked_array([*keys.values()], pa.string())
    if pc.count_distinct(every).as_py() == len(every):
        return {}
    kept: dict[str, Path] = {}
    for wanted in (True, False):  # first what is done
        for path, part in parts.items():
            chosen = part.filter(_done(part) if wanted else pc.invert(_done(part)))
            for key in chosen.column("key").unique().to_pylist():
                kept.setdefault(key, path)
    dropped = {
        path: [key for key in keys_of_part.to_pylist() if kept[key] != path]
        for path, keys_of_part in keys.items()
    }
    return {path: pa.array(lost, pa.string()) for path, lost in dropped.items() if lost}


def _done(part: pa.Table) -> pa.ChunkedArray:
    """Which rows are of a cell that is done; of trajectories nothing is known, and all are."""
    if "status" in part.column_names:
        return pc.equal(part.column("status"), "done")
    return pa.chunked_array([pa.repeat(True, part.num_rows)])


class StoredCell(NamedTuple):
    """What is known of a cell that is there: status, numerical version, code that trained it.

    `source` is a digest; empty where the version tells.
    """

    status: str
    version: int
    source: str

    def is_of_other_source(self, source: str) -> bool:
        """Whether it was trained by other code than this; not where one of both isn't known."""
        return bool(source and self.source) and self.source != source


@dataclass(frozen=True)
class StoredCells:
    """What a directory holds already, by a cell's key.

    Attributes:
        cells: what is known of every cell.
        logged: the keys of the cells that have a trajectory; empty where that wasn't asked for.
        share: of how many of the part files this is known, from 0 to 1.
    """

    cells: Mapping[str, StoredCell]
    logged: Collection[str]
    share: float = 1.0

    def stays(self, key: str, fresh: bool, retry_failed: bool, trajectories: bool) -> bool:
        """Whether a cell is there and needn't run again.

        Args:
            key: the cell's.
            fresh: whether every cell runs again.
            retry_failed: whether those that failed do.
            trajectories: whether those do that have no trajectory.
        """
        stored = self.cells.get(key)
        if stored is None or fresh:
            return False
        if stored.status == "failed":
            return not retry_failed
        return key in self.logged or not trajectories


class RunDirectory:
    """What a sweep or a training writes and a figure reads.

    Args:
        path: the directory; it need not exist yet.
        name: the argument that names it, for messages.
    """

    def __init__(self, path: Path, name: str = "directory") -> None:
        self.path = path
        self.name = name
        self.cells = PartFolder(path / CELLS.name, CELLS)
        self.trajectories = PartFolder(path / TRAJECTORIES.name, TRAJECTORIES)

    def error(self, accepts: str) -> BadValue:
        """Return an error about the directory, to be raised.

        Args:
            accepts: what is wrong with it, and what is accepted.
        """
        return BadValue(self.name, str(self.path), accepts)

    def load_cells(self) -> pd.DataFrame:
        """Return one row per cell, of the study's numerical version, or else of the newest there.

        Raises:
            UserError: if there is no such directory, no cell in it, or cells of several studies
                and no manifest that says whose it is.
        """
        parts = self._own(self.cells)
        versions = {path: pc.max(part.column("version")).as_py() for path, part in parts.items()}
        newest = self._version_to_show(versions.values()) or 0
        of_newest = {path: part for path, part in parts.items() if versions[path] == newest}
        tables = self._fitting(CELLS, of_newest, newest)
        if not any(table.num_rows for table in tables):
            raise self.error(self._why_empty())
        cells: pd.DataFrame = pa.concat_tables(tables, promote_options="default").to_pandas()
        cells = cells[cells["version"] == newest]
        cells = cells.drop_duplicates("key")
        return cells.sort_values("key").reset_index(drop=True)

    def load_trajectories(self) -> pd.DataFrame:
        """Return one row per cell and logged step; no rows where none was logged."""
        parts = self._own(self.trajectories)
        tables = [pa.table({"key": pa.array([], pa.string()), "step": pa.array([], pa.int64())})]
        tables += self._fitting(TRAJECTORIES, parts, self.newest_version() or 0)
        steps: pd.DataFrame = pa.concat_tables(tables, promote_options="default").to_pandas()
        return steps.drop_duplicates(["key", "step"]).reset_index(drop=True)

    def study_name(self, most: int | None = None) -> str | None:
        """Return the name of the study whose cells it holds; None where it holds none.

        The manifest says it; without one, its part files do.

        Args:
            most: look at so many parts only, chosen at random; None for all.

        Raises:
            UserError: if there is no manifest, and the parts are of several studies.
        """
        manifest = read_manifest(self.path)
        if manifest is not None:
            return manifest.study
        indices = self.cells.indices(most).values()
        names = {study_of(part) for part in indices if isinstance(part, pa.Table)}
        if len(names) > 1:
            raise self.error(
                f"it holds cells of {' and of '.join(sorted(names))}, and no manifest says whose "
                "directory it is; move the parts of all but one elsewhere."
            )
        return names.pop() if names else None

    def newest_version(self) -> int | None:
        """Return the numerical version of its cells; None where it holds none.

        That is the installed study's where there are such cells, else the newest.
        """
        versions = [
            pc.max(part.column("version")).as_py() for part in self._own_indices(self.cells)
        ]
        return self._version_to_show(versions)

    def logged_keys(self) -> set[str]:
        """Return the keys of the cells that have a trajectory."""
        return _keys(self._own_indices(self.trajectories))

    def contents(self, *, trajectories: bool = False, most: int | None = None) -> StoredCells:
        """Return what is there already.

        Args:
            trajectories: whether to look at those too.
            most: look at so many parts of a kind only, chosen at random; None for all.
        """
        cells: dict[str, StoredCell] = {}
        for index in self._own_indices(self.cells, most):
            columns = (index.column(name).to_pylist() for name in ("key", "status", "version"))
            source = source_of(index)
            for key, status, version in zip(*columns, strict=True):
                if key not in cells or cells[key].status != "done":
                    cells[key] = StoredCell(status, version, source)
        logged = self._own_indices(self.trajectories, most) if trajectories else []
        parts = len(self.cells.names())
        share = 1.0 if most is None or parts <= most else most / parts
        return StoredCells(cells, _keys(logged), share)

    def prepare(self) -> list[str]:
        """Make the folders, clear what a kill left, and put the parts in order; say what was done.

        Raises:
            UserError: if the directory can't be written to.
        """
        for folder in (self.path, self.cells.path, self.trajectories.path):
            make_folder(folder, self.name)
        try:
            with lock_folder(self.path):
                for folder in (self.path, self.cells.path, self.trajectories.path):
                    for leftover in folder.glob(f"{TEMPORARY_PREFIX}*"):
                        leftover.unlink(missing_ok=True)
                return self._tidy()
        except OSError as error:
            raise self.error(
                f"the directory can't be put in order ({error.filename or 'it'}: "
                f"{error_text(error)})."
            ) from error

    def write(self, study: AnyStudy, results: Sequence[CellResult]) -> list[str]:
        """Write results as one part file of each kind that there is; return the files' names.

        A cell that is there already stands twice then, until `finish` or the next `prepare`.

        Raises:
            OSError: if they can't be written; what was there is untouched.
        """
        if not results:
            return []
        return self.write_tables(cell_table(study, results), trajectory_table(study, results))

    def write_tables(self, cells: pa.Table | None, steps: pa.Table | None) -> list[str]:
        """Write rows of cells and of their trajectories, as `write` does."""
        if cells is None:
            return []
        with lock_folder(self.path):
            # Trajectories first: a cell that is there has its trajectory.
            names = [self.trajectories.add(steps)] if steps is not None and steps.num_rows else []
            return [*names, self.cells.add(cells)]

    def finish(self, written: Collection[str], *, replaced: bool) -> None:
        """Leave every cell there once, at the end of a sweep.

        Args:
            written: the names of the parts that the sweep wrote.
            replaced: whether it ran cells again that were there.

        Raises:
            OSError: if the directory can't be put in order; every cell is there then.
        """
        folders = (self.cells, self.trajectories)
        if replaced or any(folder.has_strangers(written) for folder in folders):
            with lock_folder(self.path):
                for sentence in self._tidy():
                    warnings.warn(sentence, UserWarning, stacklevel=2)

    def _version_to_show(self, versions: Iterable[int | None]) -> int | None:
        present = {version for version in versions if version is not None}
        installed = installed_version(self.study_name())
        return installed if installed in present else max(present, default=None)

    def _tidy(self) -> list[str]:
        study, aside = self.study_name(), self.path / SET_ASIDE
        return [
            *self.cells.tidy(study, aside / CELLS.name),
            *self.trajectories.tidy(study, aside / TRAJECTORIES.name),
        ]

    def _own(self, folder: PartFolder) -> dict[Path, pa.Table]:
        """The parts of the directory's study, the newest first; warn of each that is left out."""
        study = self.study_name()
        parts_of_study = {}
        for path, part in folder.read().items():
            if isinstance(part, Refusal):
                _leave_out(path, part.reason)
            elif study_of(part) != study:
                _leave_out(path, of_another_study(part, study))
            else:
                parts_of_study[path] = part
        return parts_of_study

    def _own_indices(self, folder: PartFolder, most: int | None = None) -> list[pa.Table]:
        """The indices of the study's own parts, without a word of those left out."""
        study = self.study_name(most)
        indices = folder.indices(most).values()
        return [part for part in indices if isinstance(part, pa.Table) and study_of(part) == study]

    def _fitting(self, kind: Kind, parts: Mapping[Path, pa.Table], version: int) -> list[pa.Table]:
        """The parts with the study's columns, each cell in one; warn of each that is left out."""
        parts = self._of_the_function(parts) if kind is CELLS else parts
        wanted = wanted_columns(self.study_name(), version, kind, parts.values())
        fitting = {}
        for path, part in parts.items():
            if reason := wanted.misfit(part.schema):
                _leave_out(path, reason)
            else:
                fitting[path] = part
        return list(without_repeats(fitting).values())

    def _of_the_function(self, parts: Mapping[Path, pa.Table]) -> Mapping[Path, pa.Table]:
        """The parts with a function's parameters as they are now; warn of others, counted."""
        manifest = read_manifest(self.path)
        if manifest is None or manifest.function is None:
            return parts
        changes = {
            path: other_parameters(one.schema, manifest.function) for path, one in parts.items()
        }
        counts = Counter[str]()
        for path, how in changes.items():
            counts[how] += parts[path].num_rows
        for how in filter(None, counts):
            are = f"{plural(counts[how], 'cell')} {'is' if counts[how] == 1 else 'are'}"
            words = f"{self.path}: {are} left out, because the function has other parameters now"
            warnings.warn(f"{words}: {how}.", UserWarning, stacklevel=2)
        return {path: part for path, part in parts.items() if not changes[path]}

    def _why_empty(self) -> str:
        if not self.path.exists():
            return "there is no such directory; name one that `overfit sweep` wrote."
        if not self.path.is_dir():
            return "that is a file; name a directory that `overfit sweep` wrote."
        return "it holds no cells; name a directory that `overfit sweep` wrote."


def _leave_out(path: Path, reason: str) -> None:
    warnings.warn(f"{path} is left out: {reason}.", UserWarning, stacklevel=3)


def _keys(indices: Sequence[pa.Table]) -> set[str]:
    return {key for index in indices for key in index.column("key").to_pylist()}
