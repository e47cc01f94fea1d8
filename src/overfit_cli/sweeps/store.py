"""Run directories: `cells/*.parquet`, `trajectories/*.parquet`, `manifest.json`, `figures/`.

Parts are immutable, so reading takes no lock; all writing happens under the directory's lock, so
that sweeps can share it. What is no whole part of the directory's study is left out with a
sentence. A cell may be in several parts, of which readers see one, until they are joined.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from overfit_cli.core import files, parameters, registry, text
from overfit_cli.core.cell import TRACEBACK, Cell
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import error_text, write_whole
from overfit_cli.core.study import AnyStudy
from overfit_cli.sweeps import part as parquet
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.manifest import (
    SOURCES,
    Differing,
    Manifest,
    joined_manifest,
    read_manifest,
    with_run,
)
from overfit_cli.sweeps.part import CELLS, INDEX, STEPS, TEXT, NotAPartError, Part

MANY_PARTS = 1000
"""A directory of more parts than this is joined when it is opened: each takes about 1 ms."""

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
        self.lock = files.lock_folder(self._there)

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
            written = self.manifest.model_dump_json(indent=2, by_alias=True) + "\n"
            write_whole(self._there / files.MANIFEST, written.encode())

    def record(
        self, grid: Grid, settings: Mapping[str, str | int | float | None], **how: Any
    ) -> None:
        """Add a run that trains something to the manifest, and keep its code; see `with_run`.

        A function's files are kept once for each digest of them.
        """

        def added(before: Manifest) -> Manifest:
            self.check_study(grid.study)
            return with_run(before, grid, settings, **how)

        source, _, own = grid.study.identity
        with self.lock:
            self.update(added)
            for file in own if source else ():
                if not (path := self._there / SOURCES / source / file.name).exists():
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write_whole(path, file.content)

    def note_check(self, keys: Iterable[str], differing: Differing) -> None:
        """Note which of these cells, trained a second time, differ; those of before are forgotten.

        A directory without a manifest has no place for it.
        """

        def noted(before: Manifest) -> Manifest:
            others = {key: told for key, told in before.differing.items() if key not in {*keys}}
            return before.model_copy(update={"differing": {**others, **differing}})

        if self.manifest:
            self.update(noted)

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
            raise self.error(f"it holds cells of {held}, not of {study.name}; name another one.")

    def unfinished_merge(self) -> str:
        """Return a sentence on a merge into the directory that was cut short; empty if none was."""
        sources = " and ".join(self.manifest.merging)
        cut = "into it was cut short, so cells may be missing; the same merge goes on"
        return sources and f"{self.path}: a merge of {sources} {cut}."

    # Reading

    def load_cells(self) -> pd.DataFrame:
        """Return one row per cell, of the study's numerical version, or else of the newest there.

        It warns of what is left out, and if a merge into the directory hasn't ended.
        """
        cells = self._shown(CELLS)
        if cells.empty:
            raise self.error(self.why_empty())
        if TRACEBACK in cells:  # long, and often empty: last, or not at all
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
            declared = parquet.steps_schema(study).names
        elif study is not None and study.version in table["version"][:1].to_pylist():
            declared = parquet.cell_schema(study).names
        shown: pd.DataFrame = table.select([n for n in names if n in declared]).to_pandas()
        return shown

    def contents(self, *, trajectories: bool = False) -> pd.DataFrame:
        """Return what is there already: each cell's status, version and source, by its key.

        Args:
            trajectories: whether to say too which of them have a trajectory (`logged`).
        """
        parts = list[Part]()
        for part in self.parts(CELLS, INDEX[CELLS]):
            source = pa.repeat(pa.scalar(part.source, TEXT), part.rows.num_rows)
            parts.append(replace(part, rows=part.rows.append_column("source", source)))
        cells: pd.DataFrame = self._rows(CELLS, parts).to_pandas().set_index("key")
        cells = cells.reindex(columns=["status", "version", "source"])
        steps = self.parts(STEPS, INDEX[STEPS]) if trajectories else []
        logged = parquet.joined((part.rows for part in steps), STEPS)["key"]
        return cells.assign(logged=cells.index.isin(pc.unique(logged).to_pylist()))

    def columns(self, kind: str) -> list[str]:
        """Return the names of the columns that the rows have which are shown."""
        tables = (part.schema.empty_table() for part in self._shown_parts(kind, INDEX[kind]))
        return list(parquet.joined(tables, kind).column_names)

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
                lost = "; cells in it count as missing" if why.lost else ""
                alike.setdefault(f"{why}{lost}", []).append(name)
        for reason, (first, *others) in alike.items():
            verb = f"and {text.plural(len(others), 'more file')} are" if others else "is"
            texts.append(f"{self.path / kind / first} {verb} left out: {reason}.")
        return texts

    def why_empty(self, why: str = "it holds no cells") -> str:
        """Return why it is no use: no directory, a file, or a directory that lacks something."""
        why = why if self.path.is_dir() else "that is a file"
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
            files.make_folder(folder, self.name)
        notes = []
        try:
            with self.lock:
                self._clear_leftovers()
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

    def _clear_leftovers(self) -> None:
        """Remove what a kill left; under the lock, nobody writes it still."""
        for place in (".", CELLS, STEPS, f"{SOURCES}/**"):
            for leftover in self._there.glob(f"{place}/{files.TEMPORARY_PREFIX}*"):
                leftover.unlink(missing_ok=True)

    def append(self, cells: pa.Table, steps: pa.Table | None, source: str = "") -> None:
        """Write rows of cells and of their trajectories, whose cells were trained by one source.

        A cell that is there already stands in two parts then, until these are joined.
        """
        study, stamp = cells["study"][0].as_py(), time.time_ns()
        with self.lock:
            # Trajectories first: a cell that is there has its trajectory.
            for kind, table in ((STEPS, steps), (CELLS, cells)):
                if table is not None and table.num_rows:
                    parquet.write_part(self._there / kind, table, kind, study, source, stamp)

    def compact(self) -> None:
        """Join parts of equal columns and source, and drop rows that stand twice.

        A part goes when its rows were written elsewhere and read back. A kill leaves some rows
        twice, which readers see once.
        """
        with self.lock:
            self._clear_leftovers()
            for kind in (STEPS, CELLS):
                parts = self.parts(kind, INDEX[kind])
                kept = self._counting(kind, parts)
                for group in parquet.groups_to_join(parts):
                    if len(group) > 1 or not kept[group[0].name].all():
                        with contextlib.suppress(NotAPartError):  # one was damaged meanwhile
                            self._join(kind, group, kept)

    def adopt(self, added: Grid) -> int:
        """Give cells from before parameters were added their first values; return how many.

        Their rows, and their logged steps, get the names of the cells with these values.
        """
        study, values = added.study, {name: values[0] for name, values in added.values.items()}
        types = parquet.parameter_types(parameters.describe(study.parameters).values())
        names = dict[str, str]()
        with self.lock:
            old = [p for p in self.parts(CELLS, None) if {*types} - {*values} == {*p.parameters}]
            for part in old:
                rows = [{**row, **values} for row in part.rows.to_pylist()]
                for row in rows:
                    given = parameters.parameters_from_row(study.parameters, row)
                    cell = Cell(study.name, row["version"], given, row["seed"])
                    names[row["key"]] = row["key"] = cell.key
                schema = pa.unify_schemas([parquet.cell_schema(study), part.schema])
                self._replace(CELLS, part, pa.Table.from_pylist(rows, schema))
            for part in self.parts(STEPS, None) if names else []:
                keys = [names.get(key, key) for key in part.rows["key"].to_pylist()]
                self._replace(STEPS, part, part.rows.set_column(0, "key", pa.array(keys, TEXT)))
            record = study.identity.function
            if names and self.manifest.function is not None:
                self.update(lambda before: before.model_copy(update={"function": record}))
        return len(names)

    def _replace(self, kind: str, part: Part, table: pa.Table) -> None:
        folder, of = self._there / kind, (kind, part.study, part.source, part.stamp)
        if parquet.write_part(folder, parquet.in_order(table, kind), *of) != part.name:
            (folder / part.name).unlink()

    def _join(self, kind: str, group: Sequence[Part], kept: Mapping[str, parquet.Mask]) -> None:
        folder, written, first = self._there / kind, "", group[0]
        whole = [parquet.read_part(folder / part.name, kind) for part in group]
        tables = [part.rows.filter(pa.array(kept[part.name])) for part in whole]
        table = parquet.in_order(pa.concat_tables(tables), kind)
        if table.num_rows:
            # Newer than any of them, and older than what is written next.
            stamp = max(part.stamp for part in group) + 1
            written = parquet.write_part(folder, table, kind, first.study, first.source, stamp)
            parquet.read_part(folder / written, kind)
        for name in {part.name for part in group} - {written}:
            (folder / name).unlink()

    # Parts

    def _installed(self) -> AnyStudy | None:
        """Its study, where that is an installed one."""
        with contextlib.suppress(UserError):
            return registry.find_study(self.study_name() or "")
        return None

    def shown_version(self, versions: Iterable[int]) -> int | None:
        """Return the version whose cells are shown: the installed study's, else the newest."""
        present, study = set(versions), self._installed()
        if study is not None and study.version in present:
            return study.version
        return max(present, default=None)

    def parts(self, kind: str, columns: list[str] | None) -> list[Part]:
        """Return the parts of the directory's study, the newest first, with some columns or all."""
        with contextlib.suppress(OSError):  # it may be read-only
            if len(self.names(kind)) > MANY_PARTS and not self.lock.is_locked:
                self.compact()
        own, parts = self.study_name(), self._whole(kind, columns)
        for part in parts:
            if part.study != own:
                why = f"it belongs to {part.study}, and the directory to {own}"
                self.left_out[kind, part.name] = NotAPartError(why)
        of_own = [part for part in parts if part.study == own]
        return sorted(of_own, key=lambda part: (part.stamp, part.name), reverse=True)

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
        if columns == INDEX[kind] and (kind, name) in self._index:  # a part never changes
            return self._index[kind, name]
        part = parquet.read_part(self._there / kind / name, kind, columns)
        if columns == INDEX[kind]:
            self._index[kind, name] = part
        return part

    def _shown_parts(self, kind: str, columns: list[str] | None) -> list[Part]:
        """The parts with the rows that are shown: of cells, those of one version and its study."""
        parts = self.parts(kind, columns)
        if kind == STEPS:
            return parts
        present = (pc.unique(part.rows["version"]).to_pylist() for part in parts)
        version = self.shown_version(version for versions in present for version in versions)
        function, study, shown = self.manifest.function, self._installed(), list[Part]()
        described: Iterable[Any] = function.parameters if function is not None else ()
        if function is None and study is not None and study.version == version:
            described = parameters.describe(study.parameters).values()
        now = parquet.parameter_types(described)
        for part in parts:
            # What an installed study has no more was at its default.
            known = part.parameters if function is not None else now
            before = {name: of for name, of in part.parameters.items() if name in known}
            rows = part.rows.filter(pc.field("version") == version)
            if rows.num_rows and (change := parquet.change_of(before, now)):
                why = f"its study has other parameters: {change}"
                self.left_out[kind, part.name] = NotAPartError(why)
            elif rows.num_rows:
                shown.append(replace(part, rows=rows))
        return shown

    def _counting(self, kind: str, parts: Sequence[Part]) -> dict[str, parquet.Mask]:
        """Masks of the rows of parts that count, by the names of these."""
        replaced = dict[int, pa.Array]()
        if kind == STEPS and len(parts) > 1:
            of_cells = self.parts(CELLS, INDEX[CELLS])
            kept = parquet.counting(CELLS, of_cells, replaced)
            replaced = {
                part.stamp: part.rows["key"].filter(pa.array(~kept[part.name])).combine_chunks()
                for part in of_cells
                if part.stamp and not kept[part.name].all()
            }
        return parquet.counting(kind, parts, replaced)

    def _rows(self, kind: str, parts: Sequence[Part]) -> pa.Table:
        """The rows of parts that count."""
        table = parquet.joined((part.rows for part in parts), kind)
        mask = np.concatenate([np.zeros(0, bool), *self._counting(kind, parts).values()])
        return parquet.in_order(table if mask.all() else table.filter(pa.array(mask)), kind)


# Merging


def merge_directories(sources: Sequence[RunDirectory], out: RunDirectory) -> list[str]:
    """Copy the parts of run directories into one, and join their manifests.

    The manifest is written first, and names the sources until all their parts are copied: after a
    kill at any moment the same call goes on, and readers say until a merge into the directory ends
    that cells may be missing.

    Args:
        sources: directories that sweeps wrote; they stay as they are. Some may have no cells yet.
        out: where to; what it holds already is merged too.

    Returns:
        What is wrong with parts of the merged directory.
    """
    # Each once, however it was named.
    others = {one.path.resolve(): one for one in sources}
    others.pop(out.path.resolve(), None)
    held = [out] if out.names(CELLS) or out.manifest else []
    every, shared = [*held, *others.values()], dict[str, tuple[object, Path]]()
    for one in every:
        if not one.manifest:
            raise one.error(one.why_empty("it has no manifest"))
        for what, own in one.manifest.identity.items():
            then, where = shared.setdefault(what, (own, one.path))
            if own != then:
                raise one.error(f"its {what} is another than that of {where}.")
    for source in others.values():
        source.contents(trajectories=True)
        for (kind, name), why in source.left_out.items():
            if why.lost:
                raise source.error(f"{kind}/{name} is left out: {why}. Nothing was merged.")
    frames = {str(one.path): one.load_cells() for one in every if one.names(CELLS)}
    if not frames:
        raise every[-1].error("it holds no cells, and neither do the others.")
    _check_same_numbers(frames)
    notes = out.prepare()
    whole = joined_manifest([one.manifest for one in every], [str(path) for path in others])
    with out.lock:
        out.update(lambda _: whole)
        for source in others.values():
            _copy(source, out)
        out.update(lambda _: whole.model_copy(update={"merging": ()}))
    return notes


TOLERANCE, SMALLEST = 1e-5, 1e-11
"""By how much two numbers of one cell may differ, relative and in all: the last bits depend on the
processor, and on which cells are trained together."""

_WHERE = " directory"
"""No column is called so."""


def _check_same_numbers(frames: Mapping[str, pd.DataFrame]) -> None:
    """Refuse cells that have other numbers in another run directory, by their paths."""
    rows = pd.concat(frames, names=[_WHERE]).reset_index(_WHERE)
    several = rows[rows.duplicated("key", keep=False) & (rows["status"] == "done")]
    numbers = several.drop(columns="seconds").select_dtypes(["number", "bool"]).astype(float)
    of_key = numbers.groupby(several["key"])
    low, high, known = of_key.min(), of_key.max(), of_key.count()
    differs = (known > 0) & known.lt(of_key.size(), axis=0)
    differs |= ~np.isclose(low, high, rtol=TOLERANCE, atol=SMALLEST, equal_nan=True)
    conflicts = low.index[differs.any(axis=1)]
    if conflicts.empty:
        return
    column = differs.columns[differs.loc[conflicts[0]]][0]
    rows = several.loc[several["key"] == conflicts[0], [_WHERE, column]]
    values = [f"{value!r} in {path}" for path, value in rows.to_numpy()]
    others = f"{text.plural(len(conflicts), 'cell')} with other numbers in another directory"
    example = f"{conflicts[0]} has {column} {' and '.join(values)}"
    raise UserError(f"{others}: {example}. Nothing was merged.")


def _copy(source: RunDirectory, out: RunDirectory) -> None:
    """Copy the parts, and the files of functions, that aren't there yet."""
    # Trajectories first: a cell that is there has its trajectory.
    kinds = (STEPS, CELLS)
    paths = [Path(kind, part.name) for kind in kinds for part in source.parts(kind, INDEX[kind])]
    # A link of a directory that was sent may lead to any file of this user.
    paths += [
        path.relative_to(source.path)
        for path in source.path.glob(f"{SOURCES}/*/**/*")
        if path.is_file() and not path.is_symlink()
    ]
    for path in paths:
        if not (out.path / path).exists():
            (out.path / path).parent.mkdir(parents=True, exist_ok=True)
            write_whole(out.path / path, (source.path / path).read_bytes())
