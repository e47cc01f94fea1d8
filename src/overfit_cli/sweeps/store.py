"""A run directory: `cells/*.parquet`, `trajectories/*.parquet`, `manifest.json`, `figures/`.

All writing happens under the directory's lock, so that sweeps can share a directory. Nothing is
deleted: what is damaged or replaced moves to `set-aside/`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from overfit_cli.errors import UserError
from overfit_cli.files import TEMPORARY_PREFIX, locked, make_folder, reason_of
from overfit_cli.study import AnyStudy, CellResult
from overfit_cli.sweeps.contents import Contents, Known
from overfit_cli.sweeps.manifest import read_manifest
from overfit_cli.sweeps.part_file import Refusal
from overfit_cli.sweeps.parts import PartFolder, of_another_study, unrepeated
from overfit_cli.sweeps.rows import cell_table, trajectory_table
from overfit_cli.sweeps.schema import (
    CELLS,
    TRAJECTORIES,
    Kind,
    installed_version,
    other_parameters,
    source_of,
    study_of,
    wanted_columns,
)
from overfit_cli.words import plural

if TYPE_CHECKING:
    import pandas as pd

SET_ASIDE = "set-aside"


class RunDirectory:
    """What a sweep or a training writes and a figure reads.

    Args:
        path: the directory; it need not exist yet.
        flag: the flag that named it, for messages.
    """

    def __init__(self, path: Path, flag: str = "--from") -> None:
        self.path = path
        self.flag = flag
        self.cells = PartFolder(path / CELLS.name, CELLS)
        self.trajectories = PartFolder(path / TRAJECTORIES.name, TRAJECTORIES)

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
            raise UserError(f"{self.flag} {self.path}: {self._why_empty()}")
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
        found = {study_of(part) for part in indices if isinstance(part, pa.Table)}
        if len(found) > 1:
            raise UserError(
                f"{self.flag} {self.path}: it holds cells of {' and of '.join(sorted(found))}, and "
                "no manifest says whose directory it is; move the parts of all but one elsewhere."
            )
        return found.pop() if found else None

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

    def contents(self, *, trajectories: bool = False, most: int | None = None) -> Contents:
        """Return what is there already.

        Args:
            trajectories: whether to look at those too.
            most: look at so many parts of a kind only, chosen at random; None for all.
        """
        found: dict[str, Known] = {}
        for index in self._own_indices(self.cells, most):
            columns = (index.column(name).to_pylist() for name in ("key", "status", "version"))
            source = source_of(index)
            for key, status, version in zip(*columns, strict=True):
                if key not in found or found[key].status != "done":
                    found[key] = Known(status, version, source)
        logged = self._own_indices(self.trajectories, most) if trajectories else []
        parts = len(self.cells.names())
        share = 1.0 if most is None or parts <= most else most / parts
        return Contents(found, _keys(logged), share)

    def prepare(self) -> list[str]:
        """Make the folders, clear what a kill left, and put the parts in order; say what was done.

        Raises:
            UserError: if the directory can't be written to.
        """
        for folder in (self.path, self.cells.path, self.trajectories.path):
            make_folder(folder, self.flag)
        try:
            with locked(self.path):
                for folder in (self.path, self.cells.path, self.trajectories.path):
                    for leftover in folder.glob(f"{TEMPORARY_PREFIX}*"):
                        leftover.unlink(missing_ok=True)
                return self._tidy()
        except OSError as error:
            raise UserError(
                f"{self.flag} {self.path}: the directory can't be put in order "
                f"({error.filename or 'it'}: {reason_of(error)})."
            ) from error

    def write(self, study: AnyStudy, results: Sequence[CellResult]) -> list[str]:
        """Write results as one part file of each kind that there is; return the files' names.

        A cell that is there already stands twice then, until `finish` or the next `prepare`.

        Raises:
            OSError: if they can't be written; what was there is untouched.
        """
        cells, steps = cell_table(study, results), trajectory_table(study, results)
        with locked(self.path):
            # Trajectories first: a cell that is there has its trajectory.
            names = [self.trajectories.add(steps)] if steps.num_rows else []
            return [*names, self.cells.add(cells)] if results else names

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
            with locked(self.path):
                for sentence in self._tidy():
                    warnings.warn(sentence, UserWarning, stacklevel=2)

    def _version_to_show(self, versions: Iterable[int | None]) -> int | None:
        found = {version for version in versions if version is not None}
        own = installed_version(self.study_name())
        return own if own in found else max(found, default=None)

    def _tidy(self) -> list[str]:
        study, aside = self.study_name(), self.path / SET_ASIDE
        return [
            *self.cells.tidy(study, aside / CELLS.name),
            *self.trajectories.tidy(study, aside / TRAJECTORIES.name),
        ]

    def _own(self, folder: PartFolder) -> dict[Path, pa.Table]:
        """The parts of the directory's study, the newest first; warn of each that is left out."""
        study = self.study_name()
        own = {}
        for path, part in folder.read().items():
            if isinstance(part, Refusal):
                _leave_out(path, part.reason)
            elif study_of(part) != study:
                _leave_out(path, of_another_study(part, study))
            else:
                own[path] = part
        return own

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
        return list(unrepeated(fitting).values())

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
