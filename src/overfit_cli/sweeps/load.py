"""Run directories as they are read: what each holds, and its cells for figures and claims.

An inventory reads manifests and the indexed columns of parts: no measurement, and no code of a
user's. Conditions such as `n=5:20`, `kernel=softmax` or `test_loss<0.1` choose cells by their
parameters, seeds and measurements.
"""

from __future__ import annotations

import contextlib
import functools
import shlex
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from overfit_cli.core import expressions, files, options, text
from overfit_cli.core.cell import ROW_COLUMNS, Identity, parameter_columns
from overfit_cli.core.cells import Cells, Run
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.registry import find_study, study_names
from overfit_cli.core.study import AnyStudy
from overfit_cli.functions.function_study import FunctionStudy
from overfit_cli.functions.program import is_command
from overfit_cli.stats.intervals import level_of_each, t_quantile
from overfit_cli.sweeps.manifest import Manifest
from overfit_cli.sweeps.part import CELLS, NEEDED, STEPS
from overfit_cli.sweeps.store import RunDirectory


def load_run(directory: RunDirectory, *, any_version: bool = False) -> Cells:
    """Return the cells of a run, with the points that were planned; its steps are read on demand.

    Args:
        any_version: whether to take cells of another version than the study's, if there are no
            others.
    """
    cells, study, manifest = directory.load_cells(), study_in(directory), directory.manifest
    if not any_version:
        check_version(directory, study, int(cells["version"].iloc[0]))
    run = Run(
        directory.path.name,
        directory.path,
        refined=manifest.refined,
        sparse=manifest.sparse,
        boundary=manifest.boundary,
        collections=manifest.data,
        sources=directory.sources(cells),
        commands=tuple(shlex.join(run.command) for run in manifest.runs if run.command),
        commits=tuple((run.source, run.commit) for run in manifest.runs if run.commit),
    )
    steps = functools.cache(directory.load_trajectories)
    return Cells.of(study, cells, manifest.planned(study), steps, run)


def check_version(directory: RunDirectory, study: AnyStudy, version: int | None) -> None:
    """Refuse cells of another version than that of an installed study."""
    if study.identity.function is None and version != study.version:
        theirs = f"its cells are of version {version} of {study.name}, and this overfit has"
        raise directory.error(f"{theirs} version {study.version}; a sweep trains them again.")


def study_in(directory: RunDirectory) -> AnyStudy:
    """Return the study of a run directory: an installed one, or the record of a function.

    A function's study has the columns of the cells and of the logged steps that are there.
    """
    manifest = directory.manifest
    function = manifest.function
    if function is None:
        if (name := directory.study_name()) is None:
            raise directory.error(directory.why_empty())
        if (":" in name or is_command(name)) and name not in study_names():
            raise directory.error(f"its cells are of the function {name}, and no manifest has it.")
        return find_study(name)
    shared = {*ROW_COLUMNS, *(parameter.name for parameter in function.parameters)}
    measured = [name for name in directory.columns(CELLS) if name not in shared]
    logged = [name for name in directory.columns(STEPS) if name not in NEEDED[STEPS]]
    code = Identity(manifest.runs[-1].source if manifest.runs else "")
    others = {**manifest.sentences, **manifest.stated}
    own = {name: text for name, text in manifest.wordings.items() if name not in others}
    return FunctionStudy(function, code=code, measured=measured, logged=logged, wordings=own)


def logged_steps(directory: RunDirectory, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the logged steps of some of a run's cells, as `with_settings` has them."""
    steps = with_settings(directory.load_trajectories(), cells)
    if steps.empty:
        accepts = "it holds no logged steps of these cells; a sweep with trajectories writes them."
        raise directory.error(accepts)
    return steps


def with_settings(steps: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """One row per cell and logged step, with its cell's parameters, seed, status and steps."""
    common = ["key", "study", "seed", "status", "reason", "steps", *parameter_columns(cells)]
    return steps.merge(cells[common], on="key", suffixes=("", "_parameter"))


def conditions(name: str, given: Any) -> list[str]:
    """Return conditions as texts: what is given is one, several, or values by name."""
    if not isinstance(given, Mapping):
        return options.list_of_texts(name, given)
    return [_condition(name, column, taken) for column, taken in given.items()]


def _condition(argument: str, name: Any, taken: Any) -> str:
    """The condition of a name with a value, several, or a text such as `5:20` or `<0.1`."""
    name = expressions.quoted(str(name))
    if isinstance(taken, str):
        return f"{name}{taken}" if taken.lstrip()[:1] in ("<", ">", "!") else f"{name}={taken}"
    values = np.ravel(list(taken) if isinstance(taken, Collection) else taken).tolist()
    if not values or not all(isinstance(value, bool | int | float | str) for value in values):
        raise BadValue(argument, {name: taken}, "it takes one value or several by name.")
    return f"{name}={','.join(map(text.in_list, values))}"


def means_over_seeds(
    data: Cells, parameters: Sequence[str] = (), measured: Sequence[str] = ()
) -> pd.DataFrame:
    """Return a row for each combination of the parameters that vary, in their order.

    Args:
        parameters: which of them stand in the row, and in which order; those that vary and aren't
            named stand before them.
        measured: the columns to take means of; by default all that were measured.

    Returns:
        The parameters; `seeds`, how many cells have a number, and `failed`, how many have none.
        Then for each measured column, such as `loss`, its mean over the cells that have it, the
        ends `loss_low` and `loss_high` of its 95 % t interval, and the standard deviation
        `loss_sd`; these three are nan for a single seed. `loss_seeds` stands beside them where
        fewer seeds have it than `seeds`.
    """
    ordered = data.without_plan(data.trained).in_order()  # sums depend on the order of seeds
    cells, axes = ordered.frame, ordered.varying()
    done, (place, places) = cells["status"] == "done", ordered.places(axes)
    if not done.any():
        reason = cells["reason"].mode()[0]
        raise UserError(f"All {len(cells)} cells failed ({reason}): there are no means over seeds.")
    columns = list(measured or data.measured)
    seeds = cells[columns].notna().where(done, other=False).groupby(place).sum().max(axis=1)
    parts = [places, pd.DataFrame({"seeds": seeds, "failed": done.groupby(place).size() - seeds})]
    for name in columns:
        groups = cells[name].astype(np.float64).where(done).groupby(place)
        mean, sd, count = groups.mean(), groups.std(), groups.count()
        half = t_quantile(count.where(count > 1) - 1, level_of_each(1)) * sd / np.sqrt(count)
        ends = {f"{name}_low": mean - half, f"{name}_high": mean + half, f"{name}_sd": sd}
        fewer = {f"{name}_seeds": count} if (count != seeds).any() else {}
        parts.append(pd.DataFrame({name: mean, **ends, **fewer}))
    names = [*(name for name in axes if name not in parameters), *parameters]
    others = {name: cells[name].iloc[0] for name in names if name not in axes}
    means = pd.concat(parts, axis=1).assign(**others)
    for name, times in Counter([*names, *means.columns]).items():
        if times > (2 if name in names else 1):
            raise BadValue("columns", name, "the means have two columns of that name; name others.")
    return means[[*names, *(name for name in means if name not in names)]]


# What run directories hold


@dataclass(frozen=True)
class RunSummary:
    """The content of a run directory, in numbers.

    Attributes:
        version: that of the cells which are counted; None without cells.
        outdated: the number of cells of other versions.
        left_out: the number of its files that are damaged, or of another study.
    """

    directory: RunDirectory = field(repr=False)
    path: Path
    manifest: Manifest = field(repr=False)
    study: str
    version: int | None
    done: int
    failed: int
    outdated: int
    left_out: int

    @functools.cached_property
    def planned(self) -> int | None:
        """The number of cells that its runs were to train.

        None where that isn't known, or a sweep chose cells one by one.
        """
        runs = self.manifest.runs
        if self.manifest.refined or not runs:
            return None
        if len({repr((run.values, run.seeds)) for run in runs}) == 1 and not self.manifest.sparse:
            return runs[0].size
        with contextlib.suppress(UserError):  # its study isn't installed
            return len(self.manifest.planned(study_in(self.directory))) or None  # too many
        return None

    @property
    def missing(self) -> int | None:
        """The number of planned cells that are absent; None if the plan isn't known."""
        return None if self.planned is None else max(0, self.planned - self.done - self.failed)

    @property
    def axes(self) -> Mapping[str, tuple[object, ...]]:
        """The values of each parameter that took several; an expression as a text."""
        values = dict[str, dict[object, None]]()
        for run in self.manifest.runs:
            for name, taken in run.values.items():
                values.setdefault(name, {}).update(dict.fromkeys(taken))
        return {name: tuple(taken) for name, taken in values.items() if len(taken) > 1}

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of all runs."""
        return tuple(sorted({seed for run in self.manifest.runs for seed in run.seeds}))

    @property
    def written(self) -> datetime:
        """When its last run began; without a manifest, when cells were written."""
        with contextlib.suppress(ValueError, IndexError):  # somebody edited the file, or no run
            started = datetime.fromisoformat(self.manifest.runs[-1].started)
            return started if started.tzinfo else started.replace(tzinfo=UTC)
        return datetime.fromtimestamp(_changed(self.path), UTC)


def _changed(path: Path) -> float:
    cells = path / CELLS
    return (cells if cells.is_dir() else path).stat().st_mtime


def summaries(folder: Path) -> list[RunSummary]:
    """Return the run directories in a folder by name, or the folder itself if it is one."""
    with files.refusing("folder", str(folder), "it can't be read: {}."):
        paths = [path for path in folder.iterdir() if path.is_dir() and path.name[0] != "."]
    own = summary(RunDirectory(folder))
    ordered = sorted(paths, key=lambda path: text.natural_key(path.name))
    return _found(ordered) if own is None else [own]


def usable_directories(root: Path) -> list[RunDirectory]:
    """Return the directories in `root` whose cells can be shown, the one written last first.

    Those with cells of another version, or of a study that isn't installed, are left out with a
    warning.
    """
    paths = sorted((path.parent for path in root.glob(f"*/{CELLS}")), key=_changed, reverse=True)
    return [run.directory for run in _found(paths, usable=True)]


def _found(paths: Iterable[Path], *, usable: bool = False) -> list[RunSummary]:
    """The run directories among some paths, or those that are usable; a warning of others."""
    found = []
    for path in paths:
        try:
            if (run := summary(RunDirectory(path))) is None:
                continue
            if usable and run.version is None:
                raise run.directory.error("it holds no cells yet.")
            if usable:
                check_version(run.directory, study_in(run.directory), run.version)
            _ = run.written, run.planned  # what a line says can be told
            found.append(run)
        except Exception as error:  # one that was sent may hold anything
            why = error.accepts if isinstance(error, BadValue) else str(error)
            why = why if isinstance(error, UserError) else f"{type(error).__name__}: {why}"
            warnings.warn(f"{path} is left out: {why}", UserWarning, stacklevel=3)
    return found


def summary(directory: RunDirectory) -> RunSummary | None:
    """Return what a run directory holds; None where it is no run directory."""
    try:
        study = directory.study_name()
    except UserError:
        if directory.names(CELLS):
            raise
        return None  # it may be another program's
    if study is None:
        return None
    cells = directory.contents()
    version = directory.shown_version(cells["version"])
    counts = Counter(cells["status"][cells["version"] == version])
    facts = directory, directory.path, directory.manifest, study, version
    outdated, left_out = len(cells) - counts.total(), len(directory.left_out)
    return RunSummary(*facts, counts["done"], counts["failed"], outdated, left_out)
