"""Maintenance: a run directory's parts joined into few, and several directories into one.

Compaction can run beside sweeps that write to the directory.
"""

from __future__ import annotations

import contextlib
import errno
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa

from overfit_cli.core.arrays import varying
from overfit_cli.core.errors import UserError
from overfit_cli.core.files import SET_ASIDE, lock_folder, set_aside, write_whole
from overfit_cli.core.parameters import describe
from overfit_cli.core.text import plural
from overfit_cli.functions.experiment import FunctionRecord
from overfit_cli.sweeps.inventory import forget_unfinished_merges
from overfit_cli.sweeps.load import load_study_and_cells
from overfit_cli.sweeps.manifest import Manifest, Run, read_manifest, write_manifest
from overfit_cli.sweeps.part_file import (
    SCHEMA_VERSION,
    VERSION_MARK,
    Refusal,
    is_joined,
    marks,
    read_part,
    source_of,
    study_of,
    write_part,
)
from overfit_cli.sweeps.part_folder import PartFolder, of_another_study, without_repeats
from overfit_cli.sweeps.provenance import copy_sources, thresholds_in_words
from overfit_cli.sweeps.store import RunDirectory

if TYPE_CHECKING:
    from numpy.typing import NDArray


MOST_BYTES = 64_000_000
"""The limit of a joined part, in bytes of the parts that it is made of."""


@dataclass(frozen=True)
class Joined:
    """The result of joining a folder of parts."""

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
    """
    study = directory.study_name()
    for folder in (directory.cells, directory.trajectories):
        before = _sizes(folder)
        if before:
            aside = directory.path / SET_ASIDE / folder.kind.name
            with lock_folder(directory.path):
                folder.drop_repeated(study, aside)
            rows = sum(_join(folder, group, aside) for group in _groups(folder, study))
            after = _sizes(folder)
            sizes = (sum(before.values()), sum(after.values()))
            yield Joined(folder.path, len(before), len(after), *sizes, rows)


_Group = dict[Path, pa.Table]


def _sizes(folder: PartFolder) -> dict[Path, int]:
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
    path, first = next(iter(group.items()))
    current = (first.schema.metadata or {}).get(VERSION_MARK) == _CURRENT
    if len(group) == 1 and current and is_joined(path):
        return 0
    parts = without_repeats(group)
    table = pa.concat_tables([part.replace_schema_metadata(None) for part in parts.values()])
    table = table.sort_by([(name, "ascending") for name in folder.kind.ordered_by])
    metadata = marks(study_of(first), folder.kind, source_of(first))
    table = table.replace_schema_metadata(metadata)
    with lock_folder(folder.path.parent):
        if not all(path.exists() for path in group):
            return 0  # a sweep has replaced some of these rows
        newest = max(part.stat().st_mtime_ns for part in group)
        path = write_part(folder.path, table, joined=True)
        os.utime(path, ns=(newest, newest))
        written = read_part(path, folder.kind)
        if isinstance(written, Refusal) or not _same_rows(written, table):
            raise OSError(errno.EIO, "what was written reads back as something else", str(path))
        for joined in group:
            if joined != path and parts[joined].num_rows == group[joined].num_rows:
                joined.unlink()
            elif joined != path:
                set_aside(joined, aside)  # a sweep has written some of its cells again
    return int(table.num_rows)


def _same_rows(left: pa.Table, other: pa.Table) -> bool:
    """Whether two tables hold the same rows; nan is the same as nan."""
    nulls = [[column.null_count for column in table.columns] for table in (left, other)]
    frames = [left.to_pandas(), other.to_pandas()]
    return bool(
        left.schema == other.schema and nulls[0] == nulls[1] and frames[0].equals(frames[1])
    )


_CURRENT = SCHEMA_VERSION.encode()


MOST_NAMED = 3
TOLERANCE = 1e-5
"""By how much two numbers of one cell may differ, relative to the larger of them and `SMALLEST`:
the last bits depend on the processor, and on which cells are trained together."""

SMALLEST = 1e-6
_OWN = frozenset({"seconds"})
"""Columns in which two rows of one cell may differ: how long it took isn't what was measured."""


@dataclass(frozen=True)
class Merged:
    """The result of merging directories.

    Attributes:
        repeated: how many of them were in several directories, with the same numbers.
        notes: what was done to put the merged directory in order, and thresholds that differ.
    """

    cells: int
    repeated: int
    notes: tuple[str, ...]


def merge_directories(sources: Sequence[RunDirectory], out: RunDirectory) -> Merged:
    """Copy the parts of run directories into one, and join their manifests.

    The manifest is written first, and names the sources until all their parts are copied: after a
    kill at any moment the same call goes on, and readers say until then that cells may be missing.

    Args:
        sources: directories that sweeps wrote; they stay as they are. Some may have no cells yet.
        out: where to; what it holds already is merged too.
    """
    held = [out] if out.cells.names() or read_manifest(out.path) else []
    # Each once, however it was named.
    others = {
        directory.path.resolve(): directory
        for directory in sources
        if not _same_directory(directory, out)
    }
    every = [*held, *others.values()]
    manifests = {directory: _manifest(directory) for directory in every}
    _check_alike(manifests)
    for source in others.values():
        _check_whole(source)
    frames = {directory: directory.load_cells() for directory in every if directory.cells.names()}
    if not frames:
        raise UserError(f"DIR {every[-1].path}: it holds no cells, and neither do the others.")
    repeated = _check_rows(frames)
    notes = out.prepare()
    joined, copied = _joined([*manifests.values()]), set(map(str, others))
    with lock_folder(out.path):
        begun = dict.fromkeys([*joined.merging, *map(str, others)])
        write_manifest(out.path, joined.model_copy(update={"merging": tuple(begun)}))
        for source in others.values():
            # Trajectories first: a cell that is there has its trajectory.
            _copy(source.trajectories, out.trajectories, manifests[source].study)
            _copy(source.cells, out.cells, manifests[source].study)
            copy_sources(source.path, out.path)
        left = tuple(path for path in joined.merging if path not in copied)
        write_manifest(out.path, joined.model_copy(update={"merging": left}))
    forget_unfinished_merges(out)
    notes += out.prepare()
    thresholds = {
        str(directory.path): manifest.boundary for directory, manifest in manifests.items()
    }
    notes += filter(None, [thresholds_in_words(thresholds)])
    keys = pd.concat([frame["key"] for frame in frames.values()])
    return Merged(int(keys.nunique()), repeated, tuple(notes))


def _same_directory(left: RunDirectory, other: RunDirectory) -> bool:
    return left.path.resolve() == other.path.resolve()


def _manifest(directory: RunDirectory) -> Manifest:
    manifest = read_manifest(directory.path)
    if manifest is None:
        reason = "it has no manifest that can be read; name a directory that `overfit sweep` wrote."
        raise directory.error(reason if directory.path.is_dir() else directory.why_empty())
    return manifest


def _described(manifest: Manifest) -> FunctionRecord | None:
    function = manifest.function
    return None if function is None else function.model_copy(update={"reference": ""})


def _check_alike(manifests: dict[RunDirectory, Manifest]) -> None:
    [(first, manifest), *others] = manifests.items()
    held = {name: (value, first) for name, value in manifest.data.items()}
    for directory, other in others:
        wrong = _unlike(first, manifest, other)
        for name, value in other.data.items():
            fingerprint, where = held.setdefault(name, (value, directory))
            if fingerprint != value:
                wrong = wrong or f"its {name} had other content than that of {where.path}"
        if wrong:
            raise directory.error(f"{wrong}.")


def _unlike(first: RunDirectory, manifest: Manifest, other: Manifest) -> str:
    """In what a directory is unlike the first one; empty where it is alike."""
    if other.study != manifest.study:
        return f"it holds cells of {other.study}, and {first.path} of {manifest.study}"
    if other.version != manifest.version:
        return (
            f"its cells are of version {other.version} of {manifest.study}, and those of "
            f"{first.path} of {manifest.version}"
        )
    if _described(other) != _described(manifest):
        study = manifest.study
        return f"{study} has other parameters or another description there than in {first.path}"
    if {run.source for run in other.runs} != {run.source for run in manifest.runs}:
        return f"its cells were trained by other code than those of {first.path}"
    return ""


def _check_rows(frames: dict[RunDirectory, pd.DataFrame]) -> int:
    rows = pd.concat(
        [frame.assign(**{_WHERE: str(directory.path)}) for directory, frame in frames.items()],
        ignore_index=True,
    )
    several = rows[rows.duplicated("key", keep=False) & (rows["status"] == "done")]
    study, _ = load_study_and_cells(next(iter(frames)), any_version=True)
    names = [name for name in describe(study.parameters) if name in rows]
    named = [*varying(rows, names), "seed"]
    count, conflicts = _conflicts(several, named)
    if count:
        others = count - len(conflicts)
        more = f"; and {plural(others, 'other cell')}" if others else ""
        raise UserError(
            f"{plural(count, 'cell')} with other numbers in another directory: "
            f"{'; '.join(conflicts)}{more}. Nothing was merged."
        )
    return int(rows.loc[rows.duplicated("key"), "key"].nunique())


_WHERE = " directory"


def _conflicts(rows: pd.DataFrame, named: Sequence[str]) -> tuple[int, list[str]]:
    """Return the number of cells with different rows, and a sentence for up to `MOST_NAMED`."""
    first = rows.drop_duplicates("key").set_index("key").loc[rows["key"]]
    compared = [name for name in rows if name not in {"key", *_OWN, _WHERE}]
    differs = np.column_stack([_differ(rows[name], first[name]) for name in compared])
    keys = pd.unique(rows["key"].to_numpy()[differs.any(axis=1)])
    sentences = list[str]()
    for key in keys[:MOST_NAMED]:
        of_key = (rows["key"] == key).to_numpy()
        name, conflicting = compared[int(differs[of_key].any(axis=0).argmax())], rows[of_key]
        cell = ", ".join(f"{parameter} {conflicting[parameter].iloc[0]}" for parameter in named)
        values = [f"{value!r} in {path}" for value, path in conflicting[[name, _WHERE]].to_numpy()]
        sentences.append(f"{cell} has {name} {' and '.join(values)}")
    return len(keys), sentences


def _differ(left: pd.Series, other: pd.Series) -> NDArray[np.bool_]:
    a, b = left.to_numpy(), other.to_numpy()  # (rows,)
    unknown = left.isna().to_numpy() & other.isna().to_numpy()
    if not pd.api.types.is_float_dtype(left.dtype):
        return np.asarray(~((a == b).astype(bool) | unknown))
    with np.errstate(invalid="ignore"):  # of two infinities
        largest = np.maximum(np.maximum(abs(a), abs(b)), SMALLEST)
        near = (abs(a - b) <= TOLERANCE * largest) & np.isfinite(largest)
    return np.asarray(~(near | (a == b) | unknown))


def _check_whole(source: RunDirectory) -> None:
    """Refuse a directory with parts that are damaged or can't be read."""
    for folder in (source.cells, source.trajectories):
        for path, part in folder.indices().items():
            if isinstance(part, Refusal) and (part.damaged or part.unread):
                raise source.error(
                    f"{path.relative_to(source.path)} is skipped by every reader: {part.reason}. "
                    "Move it elsewhere, or repeat the sweep into that directory to run its cells "
                    "again. Nothing was merged."
                )


def _copy(source: PartFolder, target: PartFolder, study: str) -> None:
    """Copy a study's parts that aren't there yet; parts are named after their content."""
    for path, part in source.indices().items():
        copied = target.path / path.name
        if isinstance(part, pa.Table) and study_of(part) == study and not copied.exists():
            write_whole(copied, path.read_bytes())


def _joined(manifests: Sequence[Manifest]) -> Manifest:
    """One manifest of all: each run once, in the order in which they began."""
    runs = list[Run]()
    for manifest in manifests:
        runs += [run for run in manifest.runs if run not in runs]
    data = {name: value for manifest in manifests for name, value in manifest.data.items()}
    merging = dict.fromkeys(path for manifest in manifests for path in manifest.merging)
    return manifests[0].model_copy(
        update={
            "data": data,
            "runs": tuple(sorted(runs, key=lambda run: run.started)),
            "claims": _sealed_in_all(manifests),
            "stated": _stated_in_all(manifests),
            "merging": tuple(merging),
        }
    )


def _stated_in_all(manifests: Sequence[Manifest]) -> Mapping[str, str]:
    first, *others = (manifest.stated for manifest in manifests)
    return {
        name: text
        for name, text in first.items()
        if all(stated.get(name) == text for stated in others)
    }


def _sealed_in_all(manifests: Sequence[Manifest]) -> Mapping[str, str] | None:
    kept = [manifest.claims for manifest in manifests]
    if kept[0] is None:
        return None
    others = [claims for claims in kept[1:] if claims is not None]
    return {
        name: digest
        for name, digest in kept[0].items()
        if all(claims.get(name) == digest for claims in others)
    }
