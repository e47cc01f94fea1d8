"""Run directories as figures and claims read them: a study, and cells of its version."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from overfit_cli.errors import UserError
from overfit_cli.figure import FigureData
from overfit_cli.functions.record import FunctionRecord
from overfit_cli.functions.study import FunctionStudy
from overfit_cli.registry import find_study, study_names
from overfit_cli.study import AnyStudy
from overfit_cli.sweeps.manifest import read_manifest
from overfit_cli.sweeps.part_file import Refusal
from overfit_cli.sweeps.provenance import planned_cells
from overfit_cli.sweeps.schema import CELLS
from overfit_cli.sweeps.store import RunDirectory

if TYPE_CHECKING:
    import pandas as pd


def load_study_and_cells(
    directory: RunDirectory, *, any_version: bool = False
) -> tuple[AnyStudy, pd.DataFrame]:
    """Return the study of a run directory, and its cells.

    A function's study is what the directory remembers of it, with the columns that the cells have.

    Args:
        directory: a run directory.
        any_version: whether to take cells of another version than the study's, if there are no
            others.

    Raises:
        UserError: if it holds none, or only such as another version of the study gave: those may
            lack a column, and what is said of them isn't what this version would give.
    """
    cells = directory.load_cells()
    function = function_of(directory)
    if function is not None:
        known = {*CELLS.columns, *(one.name for one in function.parameters)}
        measured = [str(name) for name in cells.columns if name not in known]
        # What most finished cells have comes first, whatever the order of the files.
        missing = cells.loc[cells["status"] == "done", measured].isna().sum()
        measured.sort(key=lambda name: int(missing[name]))
        return FunctionStudy(function, measured=measured), cells
    study, version = find_study(str(cells["study"].iloc[0])), int(cells["version"].iloc[0])
    if version != study.version and not any_version:
        raise UserError(
            f"{directory.flag} {directory.path}: its cells are of version {version} of "
            f"{study.name}, and this overfit has version {study.version}; `overfit sweep` with the "
            "same axes makes them anew."
        )
    return study, cells


def load_headlines(directory: RunDirectory, study: AnyStudy) -> dict[str, float]:
    """Return the headline measurement of each cell by its key; nan where it failed.

    It reads only the columns that it needs, because a sweep that goes on waits for it.

    Raises:
        UserError: if the directory can't be read.
    """
    wanted = ["key", "status", study.headline] if study.headline else None
    found: dict[str, float] = {}
    for part in directory.cells.read(wanted).values():
        if isinstance(part, Refusal):
            continue
        for key, status, number in _headlines(part, study.headline):
            known = status == "done" and number is not None
            if known or key not in found:  # a cell that failed at first may be there twice
                found[key] = number if known else math.nan
    return found


def _headlines(part: pa.Table, name: str) -> Iterator[tuple[str, str, Any]]:
    """The key, the status and the headline of each row: without a name, the first measurement."""
    names = part.column_names
    name = name or next(iter(names[names.index("seconds") + 1 :]), "")
    numbers = part.column(name).to_pylist() if name in names else [None] * part.num_rows
    return zip(
        part.column("key").to_pylist(), part.column("status").to_pylist(), numbers, strict=True
    )


def function_of(directory: RunDirectory) -> FunctionRecord | None:
    """Return what a directory remembers of the function whose cells it holds, if a function's."""
    manifest = read_manifest(directory.path)
    return None if manifest is None else manifest.function


def load_logged_steps(directory: RunDirectory, cells: pd.DataFrame) -> pd.DataFrame:
    """Return one row per cell and logged step, with its cell's parameters, seed, status and steps.

    Args:
        directory: a run directory.
        cells: its cells.
    """
    own = cells[["key", "study", "seed", "status", "reason", "steps", *parameters_in(cells)]]
    return directory.load_trajectories().merge(own, on="key", suffixes=("", "_parameter"))


def parameters_in(cells: pd.DataFrame) -> list[str]:
    """Return the names of the parameters that cells have a column of, whatever their version."""
    names = [str(name) for name in cells.columns]
    return names[names.index("seed") + 1 : names.index("status")]


def load_figure_data(directory: RunDirectory) -> FigureData:
    """Return everything that a figure may be drawn from.

    Raises:
        UserError: see `load_study_and_cells`.
    """
    study, cells = load_study_and_cells(directory)
    trajectories = directory.load_trajectories()
    if isinstance(study, FunctionStudy):
        logged = [str(name) for name in trajectories.columns if name not in ("key", "step")]
        measured = [one.name for one in study.columns]
        study = FunctionStudy(study.record, measured=measured, logged=logged)
    manifest = read_manifest(directory.path)
    return FigureData(
        study,
        cells,
        planned_cells(directory.path, study),
        trajectories,
        refined=manifest is not None and manifest.refined,
        collections={} if manifest is None else manifest.data,
    )


def usable_directories(root: Path) -> list[RunDirectory]:
    """Return the directories in `root` whose cells can be shown, the one written last first.

    Directories with cells of another version, or of nobody knows which study, are left out with a
    warning.
    """
    found = [(folder.stat().st_mtime, folder.parent) for folder in root.glob("*/cells")]
    directories = [RunDirectory(path) for _, path in sorted(found, reverse=True)]
    return [directory for directory in directories if _is_usable(directory)]


def _is_usable(directory: RunDirectory) -> bool:
    """Whether the study is known and has the cells' version; warn where that can't be used."""
    try:
        name = directory.study_name()
        if function_of(directory) is not None:
            return True
        if name not in study_names():
            return False
        version = find_study(name).version
    except UserError as error:
        _leave_out(directory, str(error))
        return False
    newest = directory.newest_version()
    if newest != version:
        _leave_out(
            directory,
            f"its cells are of version {newest} of {name}, and this overfit has version {version}.",
        )
    return newest == version


def _leave_out(directory: RunDirectory, reason: str) -> None:
    warnings.warn(f"{directory.path} is left out: {reason}", UserWarning, stacklevel=4)
