"""Run directories: `cells/*.parquet`, `trajectories/*.parquet`, `manifest.json`, `figures/`.

All writing happens under the directory's lock, so that sweeps can share it. A part file that is not
of the directory's study is left out with a sentence.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from overfit_cli.core.cell import TRACEBACK, CellResult
from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import (
    SET_ASIDE,
    TEMPORARY_PREFIX,
    error_text,
    lock_folder,
    make_folder,
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
    source_of,
    study_of,
    trajectory_table,
    wanted_columns,
)
from overfit_cli.sweeps.part_folder import PartFolder, of_another_study, without_repeats
from overfit_cli.sweeps.provenance import count_sources, sources_in_words

if TYPE_CHECKING:
    import pandas as pd


class StoredCell(NamedTuple):
    """The state of a stored cell: status, numerical version, and the code that trained it.

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
    """The cells that a directory already holds, by their keys.

    Attributes:
        logged: the keys of the cells that have a trajectory; empty where that wasn't asked for.
    """

    cells: Mapping[str, StoredCell]
    logged: Collection[str]

    def stays(self, key: str, fresh: bool, retry_failed: bool, trajectories: bool) -> bool:
        """Whether a cell is there and needn't run again."""
        stored = self.cells.get(key)
        if stored is None or fresh:
            return False
        if stored.status == "failed":
            return not retry_failed
        return key in self.logged or not trajectories


class RunDirectory:
    """The run directory of a sweep or a training, which figures read.

    Args:
        name: the argument that names it, for messages.
    """

    def __init__(self, path: Path, name: str = "directory") -> None:
        self.path = path
        self.name = name
        self.cells = PartFolder(path / CELLS.name, CELLS)
        self.trajectories = PartFolder(path / TRAJECTORIES.name, TRAJECTORIES)

    def error(self, accepts: str) -> BadValue:
        """Return an error about the directory, to be raised."""
        return BadValue(self.name, str(self.path), accepts)

    def unfinished_merge(self) -> str:
        """Return a sentence on a merge into the directory that was cut short; empty if none was."""
        manifest = read_manifest(self.path)
        if manifest is None or not manifest.merging:
            return ""
        sources = " and ".join(manifest.merging)
        return (
            f"{self.path}: a merge of {sources} into it was cut short, so cells may be missing; "
            "the same merge goes on, and a sweep of what is missing completes it too."
        )

    def load_cells(self) -> pd.DataFrame:
        """Return one row per cell, of the study's numerical version, or else of the newest there.

        It warns if a merge into the directory hasn't ended.
        """
        if sentence := self.unfinished_merge():
            warnings.warn(sentence, UserWarning, stacklevel=2)
        parts = self._own(self.cells)
        versions = {path: pc.max(part.column("version")).as_py() for path, part in parts.items()}
        newest = self._version_to_show(versions.values()) or 0
        of_newest = {path: part for path, part in parts.items() if versions[path] == newest}
        tables = self._fitting(CELLS, of_newest, newest)
        if not any(table.num_rows for table in tables):
            raise self.error(self.why_empty())
        cells: pd.DataFrame = _joined(tables).to_pandas()
        cells = cells[cells["version"] == newest]
        cells = _with_tracebacks_last(cells.drop_duplicates("key"))
        return cells.sort_values("key").reset_index(drop=True)

    def sources(self, cells: pd.DataFrame) -> dict[str, str]:
        """Return the digest of the code that trained each of these cells, by key.

        None is known of an installed study's, or of a cell from before digests were kept.
        """
        manifest = read_manifest(self.path)
        digests = {run.source for run in manifest.runs} if manifest is not None else set[str]()
        if len(digests) < 2:  # the parts needn't be read
            return {key: digest for digest in digests if digest for key in cells["key"]}
        stored = self.contents().cells
        return {key: stored[key].source for key in cells["key"] if stored[key].source}

    def mixed_sources(self, cells: pd.DataFrame) -> str:
        """Return in words of how many sources cells are; empty where they are of one."""
        return sources_in_words({"": count_sources(self.sources(cells), cells["key"])})

    def warn_of_sources(self, cells: pd.DataFrame) -> None:
        """Warn where cells are of several sources."""
        if words := self.mixed_sources(cells):
            warnings.warn(f"{self.path}: {words}", UserWarning, stacklevel=3)

    def load_trajectories(self) -> pd.DataFrame:
        """Return one row per cell and logged step; no rows where none was logged."""
        parts = self._own(self.trajectories)
        tables = [pa.table({"key": pa.array([], pa.string()), "step": pa.array([], pa.int64())})]
        tables += self._fitting(TRAJECTORIES, parts, self.newest_version() or 0)
        steps: pd.DataFrame = _joined(tables).to_pandas()
        return steps.drop_duplicates(["key", "step"]).reset_index(drop=True)

    def study_name(self) -> str | None:
        """Return the name of the study whose cells it holds; None where it holds none.

        The manifest says it; without one, its part files do.
        """
        manifest = read_manifest(self.path)
        if manifest is not None:
            return manifest.study
        indices = self.cells.indices().values()
        names = {study_of(part) for part in indices if isinstance(part, pa.Table)}
        if len(names) > 1:
            raise self.error(
                f"it holds cells of {' and of '.join(sorted(names))}, and no manifest says which "
                "of them it belongs to; move the parts of all but one elsewhere."
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

    def contents(self, *, trajectories: bool = False) -> StoredCells:
        """Return what is there already."""
        cells = dict[str, StoredCell]()
        for index in self._own_indices(self.cells):
            keys, statuses, versions = (
                index.column(name).to_pylist() for name in ("key", "status", "version")
            )
            stored = map(StoredCell._make, zip(statuses, versions, repeat(source_of(index))))
            part = dict(zip(keys, stored, strict=True))
            # A cell that stands in two parts is done where one says so.
            done = [key for key in cells.keys() & part.keys() if cells[key].status == "done"]
            cells |= part | {key: cells[key] for key in done}
        logged = self._own_indices(self.trajectories) if trajectories else []
        return StoredCells(cells, _keys(logged))

    def prepare(self) -> list[str]:
        """Make folders, clear what a kill left, and put the parts in order; say what was done."""
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
                f"its leftover files can't be moved aside ({error.filename or 'it'}: "
                f"{error_text(error)})."
            ) from error

    def write(self, study: AnyStudy, results: Sequence[CellResult]) -> list[str]:
        """Write results as one part file of each kind that there is; return the files' names.

        A cell that is there already stands twice then, until `finish` or the next `prepare`.
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
            replaced: whether it ran cells again that were there.
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
        parts_of_study, reasons = {}, dict[Path, str]()
        for path, part in folder.read().items():
            if isinstance(part, Refusal):
                reasons[path] = part.reason
            elif study_of(part) != study:
                reasons[path] = of_another_study(part, study)
            else:
                parts_of_study[path] = part
        _leave_out(reasons)
        return parts_of_study

    def _own_indices(self, folder: PartFolder) -> list[pa.Table]:
        study = self.study_name()
        indices = folder.indices().values()
        return [part for part in indices if isinstance(part, pa.Table) and study_of(part) == study]

    def _fitting(self, kind: Kind, parts: Mapping[Path, pa.Table], version: int) -> list[pa.Table]:
        """The parts with the study's columns, each cell in one; warn of each that is left out."""
        parts = self._of_the_function(parts) if kind is CELLS else parts
        wanted = wanted_columns(self.study_name(), version, kind, parts.values())
        misfits = {path: wanted.misfit(part.schema) for path, part in parts.items()}
        _leave_out({path: reason for path, reason in misfits.items() if reason})
        fitting = {path: part for path, part in parts.items() if not misfits[path]}
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

    def why_empty(self) -> str:
        """Return why no cells can be read: no directory, a file, or a directory without any."""
        if not self.path.exists():
            return "there is no such directory; name one that `overfit sweep` wrote."
        if not self.path.is_dir():
            return "that is a file; name a directory that `overfit sweep` wrote."
        return "it holds no cells; name a directory that `overfit sweep` wrote."


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    orders = sorted({tuple(table.column_names) for table in tables}, key=lambda n: (-len(n), n))
    names = dict.fromkeys(chain.from_iterable(orders))
    return pa.concat_tables(tables, promote_options="default").select(list(names))


def _with_tracebacks_last(cells: pd.DataFrame) -> pd.DataFrame:
    if TRACEBACK not in cells:
        return cells
    others = cells.drop(columns=TRACEBACK)
    tracebacks = cells[TRACEBACK]
    return others if tracebacks.isna().all() else others.assign(**{TRACEBACK: tracebacks})


MOST_NAMED = 3
"""More files that are left out for one reason are counted."""


def _leave_out(reasons: Mapping[Path, str]) -> None:
    for reason, count in Counter(reasons.values()).items():
        alike = [path for path in reasons if reasons[path] == reason]
        texts = [f"{path} is left out: {reason}." for path in alike]
        if count > MOST_NAMED:
            texts = [
                f"{count} files in {alike[0].parent} are left out, such as {alike[0].name}: "
                f"{reason}."
            ]
        for text in texts:
            warnings.warn(text, UserWarning, stacklevel=4)


def _keys(indices: Sequence[pa.Table]) -> set[str]:
    return {key for index in indices for key in index.column("key").to_pylist()}
