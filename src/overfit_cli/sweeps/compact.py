"""Compaction: a run directory's parts joined into few, beside sweeps that write to it."""

from __future__ import annotations

import contextlib
import errno
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from overfit_cli.files import locked
from overfit_cli.sweeps.part_file import Refusal, read_part, write_part
from overfit_cli.sweeps.parts import PartFolder, of_another_study, set_aside, unrepeated
from overfit_cli.sweeps.schema import SCHEMA_VERSION, VERSION_MARK, marks, source_of, study_of
from overfit_cli.sweeps.store import SET_ASIDE, RunDirectory

MOST_BYTES = 64_000_000
"""How large a joined part may get, in bytes of the parts that it is made of."""


@dataclass(frozen=True)
class Joined:
    """What became of a folder of parts.

    Attributes:
        folder: the folder.
        parts_before, parts_after: how many parts it had and has.
        bytes_before, bytes_after: what they took and take on disk.
        rows: how many rows were read and written again.
    """

    folder: Path
    parts_before: int
    parts_after: int
    bytes_before: int
    bytes_after: int
    rows: int


def compact_directory(directory: RunDirectory) -> Iterator[Joined]:
    """Join the parts of the directory's study, in each of its folders; say what was done.

    A part goes when all its rows lie in a larger one that was written and read back; one that has
    cells that stand elsewhere too moves to `set-aside/`. Parts that readers leave out stay where
    they are, with a warning. A kill leaves some rows twice, which
    readers see once, and the next sweep puts in order.

    Raises:
        OSError: if a part can't be written; every row is still there.
    """
    study = directory.study_name()
    for folder in (directory.cells, directory.trajectories):
        before = _sizes(folder)
        if before:
            aside = directory.path / SET_ASIDE / folder.kind.name
            with locked(directory.path):
                folder.drop_repeated(study, aside)
            rows = sum(_join(folder, group, aside) for group in _groups(folder, study))
            after = _sizes(folder)
            sizes = (sum(before.values()), sum(after.values()))
            yield Joined(folder.path, len(before), len(after), *sizes, rows)


_Group = dict[Path, pa.Table]


def _sizes(folder: PartFolder) -> dict[Path, int]:
    """The size of each part, the newest first."""
    facts = {}
    for path in (folder.path / name for name in folder.names()):
        with contextlib.suppress(FileNotFoundError):  # another process was quicker
            facts[path] = path.stat()
    newest = sorted(facts, key=lambda path: -facts[path].st_mtime_ns)
    return {path: facts[path].st_size for path in newest}


def _groups(folder: PartFolder, study: str | None) -> Iterator[_Group]:
    """The parts to join: of equal columns and code, and as many as one file takes."""
    groups: dict[tuple[str, str], _Group] = {}
    filled: Counter[tuple[str, str]] = Counter()
    for path, size in _sizes(folder).items():
        part = read_part(path, folder.kind)
        if isinstance(part, Refusal) or study_of(part) != study:
            reason = part.reason if isinstance(part, Refusal) else of_another_study(part, study)
            warnings.warn(f"{path} is left as it is: {reason}.", UserWarning, stacklevel=2)
            continue
        alike = part.schema.to_string(show_schema_metadata=False), source_of(part)
        if filled[alike] + size > MOST_BYTES and alike in groups:
            yield groups.pop(alike)
            filled[alike] = 0
        groups.setdefault(alike, {})[path] = part
        filled[alike] += size
    yield from groups.values()


def _join(folder: PartFolder, group: _Group, aside: Path) -> int:
    """Put a group's rows into one part; return how many were written.

    It is as old as the newest of the group: what a sweep wrote meanwhile stays newer.
    """
    first = next(iter(group.values()))
    if len(group) == 1 and (first.schema.metadata or {}).get(VERSION_MARK) == _CURRENT:
        return 0
    parts = unrepeated(group)
    table = pa.concat_tables([part.replace_schema_metadata(None) for part in parts.values()])
    table = table.sort_by([(name, "ascending") for name in folder.kind.ordered_by])
    own = marks(study_of(first), folder.kind, source_of(first))
    table = table.replace_schema_metadata(own)
    with locked(folder.path.parent):
        if not all(path.exists() for path in group):
            return 0  # a sweep has replaced some of these rows
        newest = max(part.stat().st_mtime_ns for part in group)
        path = write_part(folder.path, table)
        os.utime(path, ns=(newest, newest))
        written = read_part(path, folder.kind)
        if isinstance(written, Refusal) or not _same(written, table):
            raise OSError(errno.EIO, "what was written reads back as something else", str(path))
        for joined in group:
            if joined != path and parts[joined].num_rows == group[joined].num_rows:
                joined.unlink()
            elif joined != path:
                set_aside(joined, aside)  # a sweep has written some of its cells again
    return int(table.num_rows)


def _same(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables hold the same rows; nan is the same as nan."""
    nulls = [[column.null_count for column in table.columns] for table in (one, other)]
    frames = [one.to_pandas(), other.to_pandas()]
    return bool(one.schema == other.schema and nulls[0] == nulls[1] and frames[0].equals(frames[1]))


_CURRENT = SCHEMA_VERSION.encode()
