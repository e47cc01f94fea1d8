"""Run directories: `cells/*.parquet`, `trajectories/*.parquet`, `manifest.json`, `figures/`.

Parts are immutable, so reading takes no lock; all writing happens under the directory's lock, so
that sweeps can share it. What is no whole part of the directory's study is left out with a
sentence. A cell may be in several parts, of which readers see one, until they are joined.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from filelock import FileLock

from overfit_cli.core.cell import TRACEBACK
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import MANIFEST, TEMPORARY_PREFIX, error_text, make_folder, write_whole
from overfit_cli.core.parameters import describe
from overfit_cli.core.registry import find_study, study_names
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import plural
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.manifest import Manifest, keep_source, read_manifest, with_run
from overfit_cli.sweeps.part import (
    CELLS,
    INDEX,
    STEPS,
    TEXT,
    NotAPartError,
    Part,
    cell_schema,
    change_of,
    in_order,
    joined,
    parameter_types,
    read_part,
    steps_schema,
    write_part,
)

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

MANY_PARTS = 1000
"""A directory of more parts than this is joined when it is opened: each takes about 1 ms."""

JOINED_ROWS = 250_000
"""A part of so many rows is not joined with others."""

PASSES = 20
"""The listings of a folder that changes, before its lock is taken."""


class RunDirectory:
    """The run directory of a sweep or a training, which figures read; opened once per command.

    Args:
        name: the argument that names it, for messages.

    Attributes:
        left_out: why each file among its parts isn't read, by kind and name, as of the last look.
        lock: what writers hold; one object can take it twice.
    """

    def __init__(self, path: Path, name: str = "directory") -> None:
        self.path, self.name = path, name
        self.left_out: dict[tuple[str, str], NotAPartError] = {}
        self._index: dict[tuple[str, str], Part] = {}
        # A cell that is trained in this process may change the folder.
        self._there = path.absolute()
        self.lock = FileLock(self._there / ".lock")

    def error(self, accepts: str) -> BadValue:
        """Return an error about the directory, to be raised."""
        return BadValue(self.name, str(self.path), accepts)

    # The manifest

    @functools.cached_property
    def manifest(self) -> Manifest:
        """The manifest as it was when it was first looked at, or last written."""
        return read_manifest(self.path)

    def update(self, change: Callable[[Manifest], Manifest]) -> None:
        """Change the manifest as it is now."""
        with self.lock:
            self.manifest = read_manifest(self._there)
            self.manifest = change(self.manifest)
            text = self.manifest.model_dump_json(indent=2, by_alias=True) + "\n"
            write_whole(self._there / MANIFEST, text.encode())

    def record(
        self, grid: Grid, settings: Mapping[str, str | int | float | None], **how: Any
    ) -> None:
        """Add a run that trains something to the manifest, and keep its code; see `with_run`."""

        def added(before: Manifest) -> Manifest:
            self.check_study(grid.study)
            return with_run(before, grid, settings, **how)

        self.update(added)
        keep_source(self._there, grid.study)

    def study_name(self) -> str | None:
        """Return the name of the study whose cells it holds; None where it holds none.

        The manifest says it; without one, its parts do.
        """
        if self.manifest:
            return self.manifest.study
        names = sorted({part.study for part in self._whole(CELLS, INDEX[CELLS])})
        if len(names) > 1:
            several = " and of ".join(names)
            raise self.error(f"it holds cells of {several}, and no manifest; keep those of one.")
        return names[0] if names else None

    def check_study(self, study: AnyStudy) -> None:
        """Refuse a directory of another study."""
        if (held := self.study_name()) not in (None, study.name):
            raise self.error(
                f"it holds cells of {held}, not of {study.name}; name another directory."
            )

    def check_data(self, data: Mapping[str, str]) -> None:
        """Hold a run to the data that the directory's other cells were trained on."""
        for name, fingerprint in data.items():
            if self.manifest.data.get(name, fingerprint) != fingerprint:
                raise self.error(
                    f"its cells were trained on other data ({name} had other content then); name "
                    "another directory, or the earlier data."
                )

    def check_stated(self, stated: Mapping[str, str]) -> None:
        """Refuse a claim that comes after the first cell."""
        for name, text in stated.items():
            if self.manifest and self.manifest.stated.get(name) != text:
                raise BadValue(
                    "claim",
                    text,
                    f"{self.path} was begun without it; name another directory, or judge it there, "
                    "where the verdict says that it was added after the first cell.",
                )

    def unfinished_merge(self) -> str:
        """Return a sentence on a merge into the directory that was cut short; empty if none was."""
        if not self.manifest.merging:
            return ""
        return (
            f"{self.path}: a merge of {' and '.join(self.manifest.merging)} into it was cut short, "
            "so cells may be missing; the same merge goes on."
        )

    # Reading

    def load_cells(self) -> pd.DataFrame:
        """Return one row per cell, of the study's numerical version, or else of the newest there.

        It warns of what is left out, and if a merge into the directory hasn't ended.
        """
        cells = self._shown(CELLS)
        if cells.empty:
            raise self.error(self.why_empty())
        if TRACEBACK in cells:  # long, and often empty
            tracebacks = cells.pop(TRACEBACK)
            cells = cells if tracebacks.isna().all() else cells.assign(**{TRACEBACK: tracebacks})
        return cells

    def load_trajectories(self) -> pd.DataFrame:
        """Return one row per cell and logged step, in order; no rows where none was logged."""
        return self._shown(STEPS)

    def _shown(self, kind: str) -> pd.DataFrame:
        """The rows that are shown, in order, each once, with the columns that the study declares.

        Of cells they are those of one version. The study may have dropped columns since.
        """
        table, study = self._rows(kind, self._shown_parts(kind, None)), self._installed()
        unfinished = self.unfinished_merge() if kind == CELLS else ""
        for sentence in filter(None, [unfinished, *self.notes(kind)]):
            warnings.warn(sentence, UserWarning, stacklevel=3)
        declared = names = table.column_names
        if study is not None and kind == STEPS:
            declared = steps_schema(study).names
        elif study is not None and study.version in table["version"][:1].to_pylist():
            declared = cell_schema(study, traceback=True).names
        shown: pd.DataFrame = table.select([n for n in names if n in declared]).to_pandas()
        return shown

    def contents(self, *, trajectories: bool = False) -> pd.DataFrame:
        """Return what is there already: each cell's status, version and source, by its key.

        Args:
            trajectories: whether to say too which of them have a trajectory (`logged`).
        """
        parts = self.parts(CELLS, INDEX[CELLS])
        cells: pd.DataFrame = self._rows(CELLS, parts).to_pandas().set_index("key")
        cells = cells.reindex(columns=["status", "version", "source"])
        return cells.assign(logged=cells.index.isin(self.logged_keys() if trajectories else []))

    def logged_keys(self) -> set[str]:
        """Return the keys of the cells that have a trajectory."""
        parts = self.parts(STEPS, INDEX[STEPS])
        return set(pc.unique(joined((part.rows for part in parts), STEPS)["key"]).to_pylist())

    def columns(self, kind: str) -> list[str]:
        """Return the names of the columns that the rows have which are shown."""
        parts = self._shown_parts(kind, INDEX[kind])
        rows = joined((part.schema.empty_table() for part in parts), kind)
        return list(rows.column_names)

    def sources(self, cells: pd.DataFrame) -> dict[str, str]:
        """Return the digest of the code that trained each of these cells, by key.

        None is known of an installed study's, or of a cell from before digests were kept.
        """
        digests = self.manifest.sources
        if len(digests) < 2:  # the parts needn't be read
            return {key: digest for digest in digests if digest for key in cells["key"]}
        stored = self.contents()["source"].reindex(cells["key"], fill_value="")
        return {str(key): digest for key, digest in stored.items() if digest}

    def notes(self, kind: str) -> list[str]:
        """Return a sentence on each thing that is wrong with parts; files alike are counted."""
        alike, texts = dict[str, list[str]](), []
        for (of, name), why in self.left_out.items():
            if of == kind:
                lost = "; cells in it count as missing" if why.damaged or why.unread else ""
                alike.setdefault(f"{why}{lost}", []).append(name)
        for reason, (first, *others) in alike.items():
            verb = f"and {plural(len(others), 'more file')} are" if others else "is"
            texts.append(f"{self.path / kind / first} {verb} left out: {reason}.")
        return texts

    def why_empty(self) -> str:
        """Return why no cells can be read: no directory, a file, or a directory without any."""
        why = "it holds no cells" if self.path.is_dir() else "that is a file"
        why = why if self.path.exists() else "there is no such directory"
        return f"{why}; name a directory that `overfit sweep` wrote."

    def names(self, kind: str) -> set[str]:
        """Return the names of the files that look like parts."""
        try:
            names = os.listdir(self._there / kind)  # noqa: PTH208 (a folder of very many)
        except (FileNotFoundError, NotADirectoryError):
            return set()
        except OSError as error:
            raise UserError(f"{self.path / kind} can't be read ({error_text(error)}).") from error
        return {name for name in names if name.endswith(".parquet") and name[0] != "."}

    # Writing

    def prepare(self) -> list[str]:
        """Make folders, and clear what a kill left; say what is wrong with parts.

        A damaged part gets another name, which nobody reads.
        """
        for folder in (self.path, self.path / CELLS, self.path / STEPS):
            make_folder(folder, self.name)
        notes = []
        try:
            with self.lock:
                for place in (".", CELLS, STEPS, "source/*"):
                    for leftover in self.path.glob(f"{place}/{TEMPORARY_PREFIX}*"):
                        leftover.unlink(missing_ok=True)
                for kind in (CELLS, STEPS):
                    self.parts(kind, INDEX[kind])
                    notes += self.notes(kind)
                for (kind, name), why in self.left_out.items():
                    if why.damaged:
                        path = self.path / kind / name
                        path.replace(path.with_name(f"{name}.damaged"))
        except OSError as error:
            where = error.filename or "it"
            raise self.error(f"it can't be written to ({where}: {error_text(error)}).") from error
        return notes

    def append(self, cells: pa.Table, steps: pa.Table | None, source: str = "") -> None:
        """Write rows of cells and of their trajectories, whose cells were trained by one source.

        A cell that is there already stands in two parts then, until these are joined.
        """
        study, stamp = cells["study"][0].as_py(), time.time_ns()
        with self.lock:
            # Trajectories first: a cell that is there has its trajectory.
            for kind, table in ((STEPS, steps), (CELLS, cells)):
                if table is not None and table.num_rows:
                    write_part(self._there / kind, table, kind, study, source, stamp)

    def compact(self) -> None:
        """Join parts of equal columns and source, and drop rows that stand twice.

        A part goes when its rows were written elsewhere and read back. A kill leaves some rows
        twice, which readers see once.
        """
        with self.lock:
            for kind in (STEPS, CELLS):
                parts = self.parts(kind, INDEX[kind])
                masks = self._counting(kind, parts)
                counting = {part.name: mask for part, mask in zip(parts, masks, strict=True)}
                for group in _groups(parts):
                    if len(group) > 1 or not counting[group[0].name].all():
                        with contextlib.suppress(NotAPartError):  # one was damaged meanwhile
                            self._join(kind, group, counting)

    def _join(
        self, kind: str, group: Sequence[Part], counting: Mapping[str, NDArray[np.bool_]]
    ) -> None:
        folder, written = self._there / kind, ""
        whole = [read_part(folder / part.name, kind) for part in group]
        tables = [part.rows.filter(pa.array(counting[part.name])) for part in whole]
        table = in_order(pa.concat_tables(tables), kind)
        if table.num_rows:
            # Newer than any of them, and older than what is written next.
            stamp = max(part.stamp for part in group) + 1
            written = write_part(folder, table, kind, group[0].study, group[0].source, stamp)
            read_part(folder / written, kind)
        for name in {part.name for part in group} - {written}:
            (folder / name).unlink()

    # Parts

    def _installed(self) -> AnyStudy | None:
        """Its study, where that is an installed one."""
        name = self.study_name()
        with contextlib.suppress(UserError):
            return find_study(name) if name in study_names() else None
        return None

    def shown_version(self, versions: Iterable[int]) -> int | None:
        """Return the version whose cells are shown: the installed study's, else the newest."""
        present, study = set(versions), self._installed()
        if study is not None and study.version in present:
            return study.version
        return max(present, default=None)

    def parts(self, kind: str, columns: list[str] | None) -> list[Part]:
        """Return the parts of the directory's study, the newest first, with some columns or all."""
        many = len(self.names(kind)) > MANY_PARTS and not self.lock.is_locked
        with contextlib.suppress(OSError):  # it may be read-only
            if many:
                self.compact()
        own, parts = self.study_name(), self._whole(kind, columns)
        for part in parts:
            if part.study != own:
                why = f"it belongs to {part.study}, and the directory to {own}"
                self.left_out[kind, part.name] = NotAPartError(why)
        of_own = [part for part in parts if part.study == own]
        return sorted(of_own, key=lambda part: part.age, reverse=True)

    def _whole(self, kind: str, columns: list[str] | None) -> list[Part]:
        """The whole parts of one moment.

        While parts are joined, one listing can miss the old part and the new one: the folder is
        listed until two listings agree, at last under the lock.
        """
        seen: dict[str, Part] = {}

        def look() -> bool:
            self.left_out = {at: why for at, why in self.left_out.items() if at[0] != kind}
            names = self.names(kind)
            for gone in seen.keys() - names:
                del seen[gone]
            for name in names - seen.keys():
                with contextlib.suppress(FileNotFoundError):
                    try:
                        seen[name] = self._read(kind, name, columns)
                    except NotAPartError as why:
                        self.left_out[kind, name] = why
            return names == self.names(kind)

        if not any(look() for _ in range(PASSES)):
            with contextlib.suppress(OSError), self.lock:
                look()
        return list(seen.values())

    def _read(self, kind: str, name: str, columns: list[str] | None) -> Part:
        is_index = columns == INDEX[kind]
        if is_index and (kind, name) in self._index:  # a part never changes
            return self._index[kind, name]
        part = read_part(self._there / kind / name, kind, columns)
        if is_index:
            if kind == CELLS:
                source = pa.repeat(pa.scalar(part.source, TEXT), part.rows.num_rows)
                part = replace(part, rows=part.rows.append_column("source", source))
            self._index[kind, name] = part
        return part

    def _shown_parts(self, kind: str, columns: list[str] | None) -> list[Part]:
        """The parts with the rows that are shown: of cells, those of one version and its study."""
        parts = self.parts(kind, columns)
        if kind == STEPS:
            return parts
        versions = [pc.unique(part.rows["version"]).to_pylist() for part in parts]
        version = self.shown_version(itertools.chain.from_iterable(versions))
        function, study, shown = self.manifest.function, self._installed(), list[Part]()
        is_own = study is not None and study.version == version
        described = describe(study.parameters).values() if study is not None and is_own else ()
        now = parameter_types(described if function is None else function.parameters)
        for part, own in zip(parts, versions, strict=True):
            # What an installed study has no more was at its default.
            known = part.parameters if function is not None else now
            before = {name: of for name, of in part.parameters.items() if name in known}
            if version in own and (change := change_of(before, now)):
                why = f"its study has other parameters: {change}"
                self.left_out[kind, part.name] = NotAPartError(why)
            elif version in own:
                of_version = part.rows.filter(pc.field("version") == version)
                shown.append(replace(part, rows=of_version))
        return shown

    def _counting(self, kind: str, parts: Sequence[Part]) -> list[NDArray[np.bool_]]:
        """Masks of the rows that count: those of a key in one part, the newest or newest done.

        Steps that were logged when a row was written that doesn't count come after all others.
        """
        if not parts:
            return []
        if kind == CELLS:
            last = [pc.not_equal(part.rows["status"], "done").to_numpy() for part in parts]
        else:
            replaced = self._replaced() if len(parts) > 1 else {}
            none = pa.array([], TEXT)
            last = [
                pc.is_in(part.rows["key"], replaced.get(part.stamp, none)).to_numpy()
                for part in parts
            ]
        keys = pa.chunked_array([part.rows["key"].combine_chunks() for part in parts], TEXT)
        codes = pc.dictionary_encode(keys).combine_chunks().indices.to_numpy()
        sizes = [part.rows.num_rows for part in parts]
        rank = np.repeat(np.arange(len(parts)), sizes) + len(parts) * np.concatenate(last)
        best = np.full(codes.max(initial=0) + 1, 2 * len(parts))
        np.minimum.at(best, codes, rank)
        return np.split(rank == best[codes], np.cumsum(sizes)[:-1])

    def _replaced(self) -> dict[int, pa.Array]:
        """The keys of the rows of cells that don't count, by the time of their writing."""
        parts = self.parts(CELLS, INDEX[CELLS])
        masks = zip(parts, self._counting(CELLS, parts), strict=True)
        return {
            part.stamp: part.rows["key"].filter(pa.array(~mask)).combine_chunks()
            for part, mask in masks
            if part.stamp and not mask.all()
        }

    def _rows(self, kind: str, parts: Sequence[Part]) -> pa.Table:
        """The rows of parts that count."""
        table = joined((part.rows for part in parts), kind)
        mask = np.concatenate([np.zeros(0, bool), *self._counting(kind, parts)])
        return in_order(table if mask.all() else table.filter(pa.array(mask)), kind)


def _groups(parts: Sequence[Part]) -> Iterator[list[Part]]:
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
