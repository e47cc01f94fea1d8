"""A run directory: `cells/*.parquet`, `trajectories/*.parquet`, `manifest.json`, `figures/`.

All writing happens under the directory's lock, so that two sweeps can share a directory.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from overfit_cli.errors import UserError
from overfit_cli.files import TEMPORARY_PREFIX, locked, make_folder, reason_of
from overfit_cli.study import CellResult, Study
from overfit_cli.sweep.parts import PartFolder
from overfit_cli.sweep.schema import cell_table, trajectory_table

if TYPE_CHECKING:
    import pandas as pd


class RunDirectory:
    """What a sweep or a training writes and a figure reads.

    Args:
        path: the directory; it need not exist yet.
        flag: the flag that named it, for messages.
    """

    def __init__(self, path: Path, flag: str = "--from") -> None:
        self.path = path
        self.flag = flag
        self._cells = PartFolder(path / "cells", ["key", "status", "version"])
        self._trajectories = PartFolder(path / "trajectories", ["key"])

    def load_cells(self) -> pd.DataFrame:
        """Return one row a cell, of the newest numerical version in the directory.

        Raises:
            UserError: if there is no such directory, or no cell in it.
        """
        tables = list(self._cells.tables())
        if not any(table.num_rows for table in tables):
            raise UserError(f"{self.flag} {self.path}: {self._why_empty()}")
        cells: pd.DataFrame = self._joined(tables)
        cells = cells[cells["version"] == cells["version"].max()]
        # A cell that failed and was later done may stand twice after a kill; done comes first.
        cells = cells.sort_values(["status", "key"], kind="stable")
        return cells.drop_duplicates("key").sort_values("key").reset_index(drop=True)

    def load_trajectories(self) -> pd.DataFrame:
        """Return one row a cell and logged step; no rows where none was logged."""
        tables = list(self._trajectories.tables())
        if not tables:
            import pandas as pd

            return pd.DataFrame({"key": pd.Series(dtype=str), "step": pd.Series(dtype=int)})
        return self._joined(tables).drop_duplicates(["key", "step"]).reset_index(drop=True)

    def study_name(self) -> str | None:
        """Return the name of the study whose cells it holds; None where it holds none."""
        for table in self._cells.tables(["study"]):
            if table.num_rows:
                return str(table.column("study")[0].as_py())
        return None

    def newest_version(self) -> int | None:
        """Return the newest numerical version among its cells; None where it holds none."""
        columns = (table.column("version") for table in self._cells.tables(["version"]))
        return max((version for one in columns for version in one.to_pylist()), default=None)

    def logged_keys(self) -> set[str]:
        """Return the keys of the cells that have a trajectory."""
        return set(self._trajectories.known())

    def statuses(self) -> dict[str, tuple[str, int]]:
        """Return status and numerical version of every cell, by key."""
        found: dict[str, tuple[str, int]] = {}
        for index in self._cells.indices():
            for key, status, version in zip(*index.to_pydict().values(), strict=True):
                if found.get(key, ("failed", 0))[0] != "done":
                    found[key] = (status, version)
        return found

    def prepare(self) -> list[str]:
        """Make the folders, clear what a kill left, set torn parts aside; say what was done.

        Raises:
            UserError: if the directory can't be written to.
        """
        for folder in (self.path, self._cells.path, self._trajectories.path):
            make_folder(folder, self.flag)
        aside = self.path / "set-aside"
        try:
            with locked(self.path):
                for leftover in self.path.glob(f"**/{TEMPORARY_PREFIX}*"):
                    leftover.unlink(missing_ok=True)
                return [
                    *self._cells.tidy(aside / "cells"),
                    *self._trajectories.tidy(aside / "trajectories"),
                ]
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
            if steps := _to_write(logged, self._trajectories.known(), again):
                self._trajectories.add(
                    trajectory_table(study, steps), _keys(steps) if again else ()
                )
            if cells := _to_write(results, self._cells.known(), again):
                self._cells.add(cell_table(study, cells), _keys(cells) if again else ())

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


def _to_write(
    results: Sequence[CellResult], known: Collection[str], again: Collection[str]
) -> list[CellResult]:
    return [
        result for result in results if result.cell.key not in known or result.cell.key in again
    ]


def _keys(results: Sequence[CellResult]) -> set[str]:
    return {result.cell.key for result in results}
