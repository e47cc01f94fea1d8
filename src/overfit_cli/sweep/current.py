"""Run directories that figures and claims can read: their cells are of the studies as they are."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from overfit_cli.errors import UserError
from overfit_cli.study import Study, find_study, study_names
from overfit_cli.sweep.store import RunDirectory

if TYPE_CHECKING:
    import pandas as pd


def current_cells(directory: RunDirectory) -> tuple[Study, pd.DataFrame]:
    """Return the study of a run directory, and its cells.

    Raises:
        UserError: if it holds none, or only such as another version of the study gave: those may
            lack a column, and what is said of them isn't what this version would give.
    """
    cells = directory.load_cells()
    study, version = find_study(str(cells["study"].iloc[0])), int(cells["version"].iloc[0])
    if version != study.version:
        raise UserError(
            f"{directory.flag} {directory.path}: its cells are of version {version} of "
            f"{study.name}, and this overfit has version {study.version}; `overfit sweep` with the "
            "same axes makes them anew."
        )
    return study, cells


def run_directories(root: Path) -> list[RunDirectory]:
    """Return the directories in `root` whose cells are current, the one written last first.

    Directories with cells of another version, or of nobody knows which study, are left out with a
    warning.
    """
    found = [(folder.stat().st_mtime, folder.parent) for folder in root.glob("*/cells")]
    directories = [RunDirectory(path) for _, path in sorted(found, reverse=True)]
    return [directory for directory in directories if _is_current(directory)]


def _is_current(directory: RunDirectory) -> bool:
    """Whether the study is installed and has the cells' version; warn where that can't be used."""
    try:
        name = directory.study_name()
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
