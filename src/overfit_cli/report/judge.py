"""Judgement of claims by what was run: each by the run directory that bears on it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd

from overfit_cli.claim import Claim, Measurement
from overfit_cli.errors import UserError
from overfit_cli.functions.study import study_of_record
from overfit_cli.registry import claims_of, installed_studies
from overfit_cli.report.choosing import in_order
from overfit_cli.report.frames import Frame
from overfit_cli.report.judged import Judged, as_a_family
from overfit_cli.study import AnyStudy
from overfit_cli.sweeps.loading import (
    function_of,
    load_logged_steps,
    load_study_and_cells,
    usable_directories,
)
from overfit_cli.sweeps.presets import PROFILES
from overfit_cli.sweeps.selection import chosen_cells, read_selections
from overfit_cli.sweeps.store import RunDirectory

WITHOUT_STEPS = "It needs logged steps: sweep with --trajectories."


def load_runs(sources: Sequence[Path], root: Path, where: Sequence[str] = ()) -> list[LoadedRun]:
    """Load the run directories to judge by.

    Args:
        sources: the run directories; empty for those in `root` that can be used.
        root: where run directories lie.
        where: conditions on parameters that choose cells, such as `n=5:20`; they take `sources`.

    Raises:
        UserError: if a named directory holds no cells, those of another version of its study, or
            none that is chosen.
    """
    if where and not sources:
        raise UserError(f"--where {where[0]}: name the run directory that it is about with --from.")
    directories = [RunDirectory(path) for path in dict.fromkeys(sources)]
    directories = directories or sorted(usable_directories(root), key=lambda one: str(one.path))
    return [LoadedRun(one, *_study_and_cells(one, where)) for one in directories]


def judge_runs(
    runs: Sequence[LoadedRun], *, every: bool, profile: str = PROFILES[0]
) -> list[Judged]:
    """Judge every claim of every study.

    Args:
        runs: what to judge by.
        every: whether a claim is judged on each run that bears on it; else the first that does
            decides it: see `choosing.in_order`.
        profile: of which profile the run of a claim's preset comes first.
    """
    judged = []
    for study in [*installed_studies(), *_functions([run.directory for run in runs])]:
        own = [run for run in runs if (run.cells["study"] == study.name).all()]
        by_path = {run.directory.path: run for run in own}
        found = list[Judged]()
        for claim in claims_of(study):
            ordered = [by_path[path] for path in in_order(by_path, claim, profile)]
            found += _judge(study.name, claim, ordered, every=every)
        judged += as_a_family(found, partial(_measure, own))
    return judged


def judge_all(sources: Sequence[Path], root: Path, where: Sequence[str] = ()) -> list[Judged]:
    """Load runs and judge every claim: see `load_runs` and `judge_runs`.

    Raises:
        UserError: as `load_runs` does.
    """
    return judge_runs(load_runs(sources, root, where), every=bool(sources))


def _study_and_cells(
    directory: RunDirectory, where: Sequence[str]
) -> tuple[AnyStudy, pd.DataFrame]:
    """The study of a run directory, and its chosen cells."""
    study, cells = load_study_and_cells(directory)
    return study, chosen_cells(cells, read_selections(where, study))


def judge_run(run: LoadedRun) -> list[Judged]:
    """Judge every claim of a run's own study by its cells, each for itself.

    The claims of a function are those of its file now.
    """
    is_function = function_of(run.directory) is not None
    studies = _functions([run.directory]) if is_function else [run.study]
    return [
        Judged(study.name, claim, run.judge(claim), run.directory.path)
        for study in studies
        for claim in claims_of(study)
    ]


def _measure(runs: Sequence[LoadedRun], one: Judged) -> Measurement:
    return next(run for run in runs if run.directory.path == one.directory).judge(one.claim)


@dataclass(frozen=True)
class LoadedRun:
    """A run directory and its cells; its logged steps are read when they are asked for.

    Attributes:
        directory: where it lies.
        study: whose cells it holds.
        cells: those that are judged, one row each.
    """

    directory: RunDirectory
    study: AnyStudy
    cells: pd.DataFrame

    def judge(self, claim: Claim) -> Measurement:
        """Judge a claim by its cells, or by their logged steps."""
        frame = self._cells if claim.reads == "cells" else self._logged
        if claim.reads == "trajectories" and frame.rows.empty:
            return Measurement(verdict="not run", note=WITHOUT_STEPS)
        return frame.judge(claim)

    @functools.cached_property
    def _cells(self) -> Frame:
        return Frame(self.cells, self.study)

    @functools.cached_property
    def _logged(self) -> Frame:
        return Frame(load_logged_steps(self.directory, self.cells), self.study)


def _functions(directories: Sequence[RunDirectory]) -> list[AnyStudy]:
    """The functions with claims whose cells are there; warn of one that can't be loaded."""
    found: dict[str, AnyStudy] = {}
    for directory in directories:
        record = function_of(directory)
        if record is not None and record.claims and record.name not in found:
            try:
                found[record.name] = study_of_record(record)
            except UserError as error:
                said = f"{directory.path}: its claims can't be judged: {error}"
                warnings.warn(said, UserWarning, stacklevel=2)
    return list(found.values())


def _judge(study: str, claim: Claim, runs: Sequence[LoadedRun], *, every: bool) -> list[Judged]:
    """Measure a claim on the first run that bears on it, or on every one."""
    nothing = Measurement(verdict="not run", note=f"There are no cells of {study}.")
    reasons, found = list[Measurement](), list[tuple[Measurement, Path]]()
    for run in runs:
        measurement = run.judge(claim)
        if measurement.verdict == "not run":
            reasons.append(measurement)
            continue
        found.append((measurement, run.directory.path))
        if not every:
            break
    if not found:
        return [Judged(study, claim, [*reasons, nothing][0], None, has_cells=bool(runs))]
    alone = len(found) == 1
    return [Judged(study, claim, measurement, path, alone) for measurement, path in found]
