"""Judgement of claims by what was run: each by the run directory that bears on it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from overfit_cli.claim import Claim, Measurement
from overfit_cli.claims.cells import repeated_seeds
from overfit_cli.errors import UserError
from overfit_cli.functions.study import study_of_record
from overfit_cli.parameter_values import build
from overfit_cli.parameters import describe
from overfit_cli.registry import claims_of, installed_studies
from overfit_cli.report.judged import Judged, as_a_family
from overfit_cli.study import AnyStudy
from overfit_cli.sweeps.loading import (
    function_of,
    load_logged_steps,
    load_study_and_cells,
    usable_directories,
)
from overfit_cli.sweeps.presets import PROFILES, find_preset
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
    directories = [RunDirectory(path) for path in sources] or usable_directories(root)
    return [LoadedRun(one, *_study_and_cells(one, where)) for one in directories]


def judge_runs(runs: Sequence[LoadedRun], *, every: bool) -> list[Judged]:
    """Judge every claim of every study.

    Args:
        runs: what to judge by, the run that was written last first.
        every: whether a claim is judged on each run that bears on it; else the run of its preset
            decides it, or the first.
    """
    judged = []
    for study in [*installed_studies(), *_functions([run.directory for run in runs])]:
        own = [run for run in runs if (run.cells["study"] == study.name).all()]
        found = [
            one for claim in claims_of(study) for one in _judge(study.name, claim, own, every=every)
        ]
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


def judge_cells(cells: pd.DataFrame, study: AnyStudy) -> list[Judged]:
    """Judge every claim of a study by cells from anywhere, such as a made-up world.

    Args:
        cells: one row per cell, with `seed` and the study's columns. A parameter that is absent has
            its default, and cells without a `status` are done. With a column `step`, one row per
            cell and logged step: then claims on trajectories are judged, and else those on cells.
        study: whose cells they are.

    Raises:
        UserError: without a seed for every row, with several rows of one cell, or with values that
            a parameter doesn't take.
    """
    cells = cells.reset_index(drop=True)  # claims index by row
    if "seed" not in cells:
        raise UserError("The cells have no column 'seed'.")
    if cells["seed"].isna().any():
        raise UserError("Some cells have no seed.")
    for name, info in describe(study.parameters).items():
        if name in cells and info.kind in ("int", "float") and not is_numeric_dtype(cells[name]):
            raise UserError(f"The cells' column {name!r} has {cells[name].iloc[0]!r}: no number.")
    absent: dict[str, Any] = {"status": "done", "reason": "", "study": study.name}
    absent |= {name: info.default for name, info in describe(study.parameters).items()}
    whole = cells.assign(**{name: one for name, one in absent.items() if name not in cells})
    reads = "trajectories" if "step" in cells else "cells"
    own = [*describe(study.parameters), "seed"]
    if repeated := int(whole.duplicated([*own, *(["step"] if "step" in cells else [])]).sum()):
        raise UserError(
            f"{repeated} of the {len(cells)} rows have the parameters and seed of another."
        )
    _check_values(whole, study)
    if "step" in cells:
        key = whole.groupby(own, dropna=False).ngroup().astype(str)
        whole = whole.assign(key=cells.get("key", key))
        last = whole.groupby("key")["step"].transform("max")
        whole = whole.assign(steps=cells.get("steps", last))
    claims = [claim for claim in claims_of(study) if claim.reads == reads]
    table = _Table(whole, study)
    judged = [Judged(study.name, claim, table.judge(claim), None) for claim in claims]
    return as_a_family(judged, lambda one: table.judge(one.claim))


def _check_values(cells: pd.DataFrame, study: AnyStudy) -> None:
    """Refuse values of parameters that the study doesn't take."""
    flags = {name: f"The cells' {name}" for name in describe(study.parameters)}
    for row in cells[list(flags)].drop_duplicates().to_dict("records"):
        build(study.parameters, {str(name): value for name, value in row.items()}, flags)


@dataclass(frozen=True)
class _Table:
    """What claims are judged on: cells, or logged steps."""

    rows: pd.DataFrame
    study: AnyStudy

    @functools.cached_property
    def repeated(self) -> list[int]:
        return repeated_seeds(self.rows, self.study.parameters)

    def judge(self, claim: Claim) -> Measurement:
        """Judge a claim; seeds that repeat another's numbers leave open what seeds decide."""
        found = claim.judge(self.rows)
        if not (found.by_chance and self.repeated):
            return found
        which = ", ".join(map(str, self.repeated))
        note = f"Seeds {which} have all the numbers of another: they are no draws of their own."
        return replace(found, verdict="inconclusive", note=f"{found.note} {note}".strip())


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
        table = self._cells if claim.reads == "cells" else self._logged
        if claim.reads == "trajectories" and table.rows.empty:
            return Measurement(verdict="not run", note=WITHOUT_STEPS)
        return table.judge(claim)

    @functools.cached_property
    def _cells(self) -> _Table:
        return _Table(self.cells, self.study)

    @functools.cached_property
    def _logged(self) -> _Table:
        return _Table(load_logged_steps(self.directory, self.cells), self.study)


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


@functools.cache
def _run_names(preset_name: str) -> frozenset[str]:
    """The names of the run directories that a preset's profiles are run into."""
    preset = find_preset(preset_name) if preset_name else None
    return frozenset(map(preset.run_name, PROFILES) if preset else ())


def worth_showing(judged: Sequence[Judged]) -> list[Judged]:
    """Return the claims that were measured, and all those of a study whose cells bear on none."""
    measured = {one.study for one in judged if one.measurement.verdict != "not run"}
    return [
        one
        for one in judged
        if one.measurement.verdict != "not run" or (one.has_cells and one.study not in measured)
    ]


def _judge(study: str, claim: Claim, runs: Sequence[LoadedRun], *, every: bool) -> list[Judged]:
    """Measure a claim on the first directory that bears on it, or on every one.

    Its preset's directories come first.
    """
    reason = f"There are no cells of {study}."
    found: list[tuple[Measurement, Path]] = []
    own = _run_names(claim.preset)
    for run in sorted(runs, key=lambda run: run.directory.path.name not in own):
        measurement = run.judge(claim)
        if measurement.verdict == "not run":
            reason = measurement.note
        elif every or not found:
            found.append((measurement, run.directory.path))
    if not found:
        nothing = Measurement(verdict="not run", note=reason)
        return [Judged(study, claim, nothing, None, has_cells=bool(runs))]
    alone = len(found) == 1
    return [Judged(study, claim, measurement, path, alone) for measurement, path in found]
