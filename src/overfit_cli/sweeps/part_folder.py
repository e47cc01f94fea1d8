"""Folder of part files of one kind, read as of one moment, each cell in one part.

A file that is damaged, of another kind or foreign is left out with a sentence. Nothing is deleted:
what is damaged or replaced moves to `set-aside/`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from overfit_cli.core.errors import UserError
from overfit_cli.core.files import (
    error_text,
    lock_folder,
    set_aside,
)
from overfit_cli.sweeps.part_file import (
    Kind,
    Refusal,
    read_part,
    study_of,
    write_part,
)

Seen = TypeVar("Seen")


PASSES = 20
"""The listings of a folder that changes, before its lock is taken."""


class PartFolder:
    """The part files of one kind, each row with the `key` of its cell."""

    def __init__(self, path: Path, kind: Kind) -> None:
        self.path = path
        self.kind = kind
        self._indices: dict[str, pa.Table] = {}
        self._refused: set[str] = set()

    def read(self, columns: Sequence[str] | None = None) -> dict[Path, pa.Table | Refusal]:
        """Return every part's rows, or why it is left out, as of one moment; the newest first."""
        return self._at_one_moment(lambda path: read_part(path, self.kind, columns))

    def indices(self) -> dict[Path, pa.Table | Refusal]:
        """Return the indexed columns of the parts; each is read once, because parts stay."""
        return self._at_one_moment(self._index)

    def names(self) -> list[str]:
        """Return the names of the files that look like parts."""
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
        """Write a part and return its name."""
        return write_part(self.path, table).name

    def has_strangers(self, written: Collection[str]) -> bool:
        """Whether there are parts that this object hasn't looked at, other than those `written`."""
        return bool({*self.names()} - self._indices.keys() - self._refused - {*written})

    def tidy(self, study: str | None, aside: Path) -> Iterator[str]:
        """Move damaged parts to `aside`, and drop rows that stand twice; say what was left out.

        Of a row that stands twice the one that is done is kept, else the one in the newest part.
        A part that loses rows moves to `aside` too, when what it keeps is on disk.
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
        """Return the result of `look` for each part, none removed in between; the newest first.

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
    return f"it belongs to {study_of(part)}, and the directory to {study}"


def _age(path: Path) -> tuple[int, str]:
    try:
        return -path.stat().st_mtime_ns, path.name
    except OSError:
        return 0, path.name


def without_repeats(parts: Mapping[Path, pa.Table]) -> dict[Path, pa.Table]:
    """Return the parts with each cell in one of them only: where it is done, else in the first."""
    dropped = _repeated(parts)
    return {
        path: _without(part, dropped[path]) if path in dropped else part
        for path, part in parts.items()
    }


def _without(part: pa.Table, keys: pa.Array) -> pa.Table:
    return part.filter(pc.invert(pc.is_in(part.column("key"), keys)))


def _repeated(parts: Mapping[Path, pa.Table]) -> dict[Path, pa.Array]:
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
    """Return a mask of rows of cells that are done; rows of trajectories all count as done."""
    if "status" in part.column_names:
        return pc.equal(part.column("status"), "done")
    return pa.chunked_array([pa.repeat(True, part.num_rows)])
