"""Inventory of run directories: what each holds, what it was to hold, and when it was written.

Manifests and the indexed columns of parts are read: no measurement, and no code of a user's.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.files import error_text, lock_folder
from overfit_cli.core.text import natural_key
from overfit_cli.sweeps.load import study_in
from overfit_cli.sweeps.manifest import Manifest, Run, count_planned, read_manifest, write_manifest
from overfit_cli.sweeps.part_file import installed_version, study_of
from overfit_cli.sweeps.store import RunDirectory


@dataclass(frozen=True)
class RunSummary:
    """The content of a run directory, in numbers.

    Attributes:
        outdated: the number of cells of other versions.
        planned: the number of cells that its runs were to train; None where that isn't known, or a
            sweep chose cells one by one.
        axes: the values of each parameter that took several; an expression as a text.
        left_out: the number of its files that are damaged, or of another study.
        written: when its last run began; without a manifest, when cells were written.
    """

    path: Path
    study: str
    done: int
    failed: int
    outdated: int
    planned: int | None
    axes: Mapping[str, tuple[object, ...]]
    seeds: tuple[int, ...]
    left_out: int
    written: datetime
    manifest: Manifest | None = field(repr=False, default=None)

    @property
    def missing(self) -> int | None:
        """The number of planned cells that are absent; None if the plan isn't known."""
        return None if self.planned is None else max(0, self.planned - self.done - self.failed)

    @property
    def runs(self) -> Sequence[Run]:
        """The runs into the directory, the first one first."""
        return () if self.manifest is None else self.manifest.runs

    @property
    def refined(self) -> bool:
        """Whether a sweep chose cells one by one."""
        return self.manifest is not None and self.manifest.refined


def summaries(folder: Path) -> list[RunSummary]:
    """Return the run directories in a folder by name, or the folder itself if it is one."""
    own = summary(folder) if folder.is_dir() else None
    if own is not None:
        return [own]
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir() and entry.name[0] != "."]
    except FileNotFoundError:
        raise BadValue("folder", str(folder), "there is no such folder.") from None
    except NotADirectoryError:
        raise BadValue("folder", str(folder), "that is a file; name a folder.") from None
    except OSError as error:
        raise BadValue("folder", str(folder), f"it can't be read: {error_text(error)}.") from error
    every = [summary(folder / name) for name in sorted(names, key=natural_key)]
    return [each for each in every if each is not None]


def summary(path: Path) -> RunSummary | None:
    """Return what a run directory holds; None where it is no run directory.

    Damaged files, and cells of several studies without a manifest, are warned of.
    """
    directory = RunDirectory(path)
    try:
        parts = directory.cells.indices().values()
        if not parts and not _is_described(path):
            return None
        study = directory.study_name()
    except UserError as error:
        reason = error.accepts if isinstance(error, BadValue) else str(error)
        warnings.warn(f"{path} is left out: {reason}", UserWarning, stacklevel=2)
        return None
    if study is None:
        return None
    manifest = read_manifest(path)
    cells = directory.contents().cells.values()
    versions = {cell.version for cell in cells}
    installed = installed_version(study)
    version = installed if installed in versions else max(versions, default=0)
    counts = Counter(cell.status for cell in cells if cell.version == version)
    own = sum(isinstance(part, pa.Table) and study_of(part) == study for part in parts)
    return RunSummary(
        path,
        study,
        done=counts["done"],
        failed=counts["failed"],
        outdated=len(cells) - counts.total(),
        planned=_count_planned(directory, manifest),
        axes={} if manifest is None else _axes(manifest.runs),
        seeds=() if manifest is None else _seeds(manifest.runs),
        left_out=len(parts) - own,
        written=_written(path, manifest),
        manifest=manifest,
    )


def forget_unfinished_merges(directory: RunDirectory) -> None:
    """Take the sources of merges that were cut short from a manifest, if no cell is missing."""
    if not directory.unfinished_merge():
        return
    content = summary(directory.path)
    if content is None or content.missing != 0:
        return
    with lock_folder(directory.path):
        if (manifest := read_manifest(directory.path)) is not None:
            write_manifest(directory.path, manifest.model_copy(update={"merging": ()}))


def _is_described(path: Path) -> bool:
    """Whether a folder without cells has a manifest of ours: another program's says nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_manifest(path) is not None


def _count_planned(directory: RunDirectory, manifest: Manifest | None) -> int | None:
    """The number of cells that the runs were to train; it is counted point by point if it must."""
    if manifest is None or manifest.refined or not manifest.runs:
        return None
    first = manifest.runs[0]
    is_one = all((run.values, run.seeds) == (first.values, first.seeds) for run in manifest.runs)
    if is_one and not manifest.sparse:
        return first.size
    try:
        return count_planned(directory.path, study_in(directory)) or None  # None: too many
    except UserError:  # its study isn't installed
        return None


def _axes(runs: Sequence[Run]) -> dict[str, tuple[object, ...]]:
    values = dict[str, dict[object, None]]()
    for run in runs:
        for name, taken in run.values.items():
            values.setdefault(name, {}).update(dict.fromkeys(taken))
    return {name: tuple(taken) for name, taken in values.items() if len(taken) > 1}


def _seeds(runs: Sequence[Run]) -> tuple[int, ...]:
    return tuple(sorted({seed for run in runs for seed in run.seeds}))


def _written(path: Path, manifest: Manifest | None) -> datetime:
    if manifest is not None and manifest.runs:
        try:
            started = datetime.fromisoformat(manifest.runs[-1].started)
            return started if started.tzinfo else started.replace(tzinfo=UTC)
        except ValueError:  # somebody edited the file
            pass
    cells = path / "cells"
    return datetime.fromtimestamp((cells if cells.is_dir() else path).stat().st_mtime, UTC)
