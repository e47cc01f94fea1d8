"""Judging: the runs that decide claims, the verdicts, and the families of claims.

A claim is judged on the cells, or the logged steps, of the first run that bears on it: its preset's
run, then others by name. Times of writing have no influence: a copy of the runs gives the same
verdicts. The claims of a study that are of one kind are a family: each has a verdict alone, and one
at the level of all together.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from overfit_cli.claims.cells import add_planned, repeated_seeds
from overfit_cli.claims.seals import looks_in_words, seal_in_words
from overfit_cli.core.claim import KINDS, Claim, Interval, Measurement, Verdict
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.parameters import build, describe
from overfit_cli.core.registry import claims_of, installed_studies
from overfit_cli.core.study import AnyStudy, stand_ins_of
from overfit_cli.report.seal import sealed_in_words
from overfit_cli.stats.intervals import level_of_each, set_level
from overfit_cli.sweeps.load import (
    chosen_cells,
    load_logged_steps,
    load_study_and_cells,
    read_selections,
    usable_directories,
)
from overfit_cli.sweeps.manifest import Manifest, planned_cells, read_manifest
from overfit_cli.sweeps.presets import PROFILES, find_preset
from overfit_cli.sweeps.store import RunDirectory


def preset_runs(claim: Claim, profile: str) -> list[str]:
    """Return the names of the run directories of a claim's preset, `profile`'s first.

    A claim whose cells only a longer profile has is judged there, whatever profile is asked for.
    """
    preset = find_preset(claim.preset) if claim.preset else None
    if preset is None:
        return []
    own = profile if claim.profile == PROFILES[0] else claim.profile
    return [preset.run_name(name) for name in dict.fromkeys((own, profile, *PROFILES))]


def sort_runs(paths: Iterable[Path], claim: Claim, profile: str) -> list[Path]:
    """Sort run directories in the order in which they may decide a claim."""
    preferred = preset_runs(claim, profile)

    def rank(path: Path) -> int:
        name = path.resolve().name
        return preferred.index(name) if name in preferred else len(preferred)

    return sorted(paths, key=lambda path: (rank(path), str(path)))


@dataclass(frozen=True)
class Table:
    """A table that claims are judged on.

    Attributes:
        rows: one per cell, or per cell and logged step.
        study: the study of the cells.
    """

    rows: pd.DataFrame
    study: AnyStudy

    @functools.cached_property
    def repeated_seeds(self) -> list[int]:
        """The seeds whose numbers equal those of another seed."""
        return repeated_seeds(self.rows, self.study.parameters)

    def judge(self, claim: Claim) -> Measurement:
        """Judge a claim; with repeated seeds a statistical verdict is `inconclusive`."""
        measurement = claim.judge(self.rows)
        if not (measurement.by_chance and self.repeated_seeds):
            return measurement
        seeds = ", ".join(map(str, self.repeated_seeds))
        note = f"Seeds {seeds} have all the numbers of another: they are no draws of their own."
        return replace(
            measurement, verdict="inconclusive", note=f"{measurement.note} {note}".strip()
        )


def judge_cells(cells: pd.DataFrame, study: AnyStudy) -> list[Judged]:
    """Judge every claim of a study on cells from any source, such as a made-up world.

    Args:
        cells: one row per cell, with `seed` and the study's columns. An absent parameter has its
            default, and cells without a `status` are done. With a column `step` there is one row
            per cell and logged step, and the claims on trajectories are judged instead.
        study: the study of the cells.

    Raises:
        UserError: without a seed for every row, with several rows of a cell, or with values that a
            parameter does not accept.
    """
    completed = _complete_cells(cells.reset_index(drop=True), study)  # claims index by row
    reads = "trajectories" if "step" in cells else "cells"
    claims = [claim for claim in claims_of(study) if claim.reads == reads]
    frame = Table(completed, study)
    judged = [Judged(study.name, claim, frame.judge(claim), None) for claim in claims]
    return judge_families(judged, lambda one: frame.judge(one.claim))


def _complete_cells(cells: pd.DataFrame, study: AnyStudy) -> pd.DataFrame:
    """The cells with all columns that cells of a run have; rows of steps have a key."""
    if "seed" not in cells:
        raise UserError("The cells have no column 'seed'.")
    if cells["seed"].isna().any():
        raise UserError("Some cells have no seed.")
    described = describe(study.parameters)
    for name, info in described.items():
        if name in cells and info.kind in ("int", "float") and not is_numeric_dtype(cells[name]):
            raise UserError(f"The cells' column {name!r} has {cells[name].iloc[0]!r}: no number.")
    absent: dict[str, Any] = {"status": "done", "reason": "", "study": study.name}
    absent |= {name: info.default for name, info in described.items()}
    completed = cells.assign(**{name: value for name, value in absent.items() if name not in cells})
    identity = [*described, "seed"]
    if repeated := int(
        completed.duplicated([*identity, *(["step"] if "step" in cells else [])]).sum()
    ):
        raise UserError(
            f"{repeated} of the {len(cells)} rows have the parameters and seed of another."
        )
    _check_values(completed, study)
    if "step" not in cells:
        return completed
    key = completed.groupby(identity, dropna=False).ngroup().astype(str)
    completed = completed.assign(key=cells.get("key", key))
    last = completed.groupby("key")["step"].transform("max")
    return completed.assign(steps=cells.get("steps", last))


def _check_values(cells: pd.DataFrame, study: AnyStudy) -> None:
    """Refuse values of parameters that the study does not accept."""
    names = list(describe(study.parameters))
    for row in cells[names].drop_duplicates().to_dict("records"):
        try:
            build(study.parameters, {str(name): value for name, value in row.items()})
        except BadValue as error:
            raise UserError(f"The cells' {error.name} {error.value}: {error.accepts}") from error


@dataclass(frozen=True)
class Judged:
    """A claim with its measurement.

    Attributes:
        study: the name of the study.
        claim: the claim.
        measurement: the measurement, with the verdict.
        directory: the run directory that it was measured on; None without one.
        is_only: whether the claim is judged in no other directory.
        has_cells: whether there are cells of the study.
        family: the number of the study's claims of its kind that seeds decide; 0 where none do.
        joint_verdict: the verdict at the level of all of those together.
    """

    study: str
    claim: Claim
    measurement: Measurement
    directory: Path | None
    is_only: bool = True
    has_cells: bool = True
    family: int = 0
    joint_verdict: Verdict | None = None

    @property
    def address(self) -> str:
        """The unique name of the claim: `benign-vit/fig1-exponent`."""
        return f"{self.study}/{self.claim.name}"

    @property
    def name(self) -> str:
        """The claim's name, with the directory if it is judged in several."""
        return self.claim.name if self.is_only else f"{self.claim.name} ({self.directory})"

    @property
    def headline(self) -> Verdict:
        """The verdict that counts: at the level of all claims together, where seeds decide."""
        return self.joint_verdict or self.measurement.verdict

    @property
    def contradiction(self) -> str:
        """The sentence of a paper that the verdict contradicts; see `Claim.contradiction`."""
        return self.claim.contradiction(self.measurement)

    @property
    def is_measured(self) -> bool:
        """Whether there were cells that bear on the claim."""
        return self.measurement.verdict != "not run"

    @property
    def is_open(self) -> bool:
        """Whether there are cells, and the claim is undecided."""
        return self.measurement.verdict in ("inconclusive", "vacuous")


def relevant_claims(judged: Sequence[Judged]) -> list[Judged]:
    """Return the measured claims, and further ones of studies that have cells.

    Those are all claims of a study whose cells bear on none, and claims that name no preset: these
    cells should decide them.
    """
    measured = {claim.study for claim in judged if claim.is_measured}
    return [
        claim
        for claim in judged
        if claim.is_measured
        or (claim.has_cells and (claim.study not in measured or not claim.claim.preset))
    ]


def judge_families(
    judged: Sequence[Judged], measure: Callable[[Judged], Measurement]
) -> list[Judged]:
    """Judge a study's statistical claims again, at the level of all of a kind together.

    A paper's verdicts do not depend on the number of questions that the tool asks beside them.
    """
    joint = dict[int, Judged]()
    for kind in KINDS:
        of_kind = [index for index, claim in enumerate(judged) if claim.claim.kind == kind]
        joint |= _judge_family({index: judged[index] for index in of_kind}, measure)
    return [joint.get(index, claim) for index, claim in enumerate(judged)]


def _judge_family(
    judged: Mapping[int, Judged], measure: Callable[[Judged], Measurement]
) -> dict[int, Judged]:
    """Judge the statistical claims of a family, step by step (Holm 1979).

    Each claim that is decided at the level of all reduces the number of those for the level of the
    others.
    """
    statistical = [index for index, claim in judged.items() if claim.measurement.by_chance]
    joint: dict[int, Verdict] = dict.fromkeys(statistical, "inconclusive")
    remaining = [
        index for index in statistical if judged[index].measurement.verdict in ("holds", "fails")
    ]
    undecided, progress = len(statistical), True
    while remaining and progress:
        with set_level(level_of_each(undecided)):
            verdicts = {index: measure(judged[index]).verdict for index in remaining}
        decided = {index: claim for index, claim in verdicts.items() if claim in ("holds", "fails")}
        joint |= decided
        remaining = [index for index in remaining if index not in decided]
        undecided, progress = undecided - len(decided), bool(decided)
    return {
        index: replace(judged[index], family=len(statistical), joint_verdict=verdict)
        for index, verdict in joint.items()
    }


def finite_or_null(value: float | None) -> float | None:
    """Return a number for JSON: null where it is not finite, which JSON does not have."""
    return value if value is not None and math.isfinite(value) else None


def interval_or_null(interval: Interval | None) -> dict[str, float | str | None] | None:
    """Return an interval for JSON; null without one."""
    if interval is None:
        return None
    return {
        "low": finite_or_null(interval.low),
        "high": finite_or_null(interval.high),
        "kind": interval.kind,
    }


NO_STEPS = "It needs logged steps: sweep with --trajectories."


def load_runs(
    sources: Sequence[Path], root: Path, conditions: Sequence[str] = ()
) -> list[LoadedRun]:
    """Load the run directories to judge.

    Args:
        sources: the run directories; empty for the usable ones in `root`.
        root: the folder of run directories.
        conditions: conditions on parameters that choose cells, such as `n=5:20`; they require
            `sources`.

    Raises:
        UserError: if a named directory has no cells, no chosen cells, or those of another version
            of its study.
    """
    if conditions and not sources:
        raise BadValue("where", conditions[0], "name the run directory that it is about.")
    directories = [RunDirectory(path, "sources") for path in dict.fromkeys(sources)]
    directories = directories or sorted(
        usable_directories(root), key=lambda directory: str(directory.path)
    )
    return [
        LoadedRun(directory, *_load_study_and_cells(directory, conditions), bool(conditions))
        for directory in directories
    ]


def judge_runs(
    runs: Sequence[LoadedRun], *, on_every_run: bool, profile: str = PROFILES[0]
) -> list[Judged]:
    """Judge every claim of every study.

    Args:
        runs: the loaded runs.
        on_every_run: whether a claim is judged on each run that bears on it; otherwise the first of
            them decides: see `sort_runs`.
        profile: the profile whose run of a claim's preset comes first, unless the claim names
            one.
    """
    judged = []
    studies = {study.name: study for study in (*installed_studies(), *(run.study for run in runs))}
    for study in studies.values():
        study_runs = [run for run in runs if (run.cells["study"] == study.name).all()]
        runs_by_path = {run.directory.path: run for run in study_runs}
        claims = list[Judged]()
        for claim in claims_of(study):
            ordered = [runs_by_path[path] for path in sort_runs(runs_by_path, claim, profile)]
            claims += _judge_claim(study.name, claim, ordered, on_every_run=on_every_run)
        judged += judge_families(claims, partial(_measure, study_runs))
    return judged


def judge_all(sources: Sequence[Path], root: Path, conditions: Sequence[str] = ()) -> list[Judged]:
    """Load runs and judge every claim: see `load_runs` and `judge_runs`.

    Raises:
        UserError: as `load_runs`.
    """
    return judge_runs(load_runs(sources, root, conditions), on_every_run=bool(sources))


def _load_study_and_cells(
    directory: RunDirectory, conditions: Sequence[str]
) -> tuple[AnyStudy, pd.DataFrame]:
    """The study of a run directory, and its chosen cells."""
    study, every = load_study_and_cells(directory)
    cells = chosen_cells(every, read_selections(conditions, study))
    directory.warn_of_sources(cells)
    return study, cells


def judge_run(run: LoadedRun) -> list[Judged]:
    """Judge every claim of a run's study on its cells, without families."""
    return [
        Judged(run.study.name, claim, run.judge(claim), run.directory.path)
        for claim in claims_of(run.study)
    ]


def _measure(runs: Sequence[LoadedRun], claim: Judged) -> Measurement:
    return next(run for run in runs if run.directory.path == claim.directory).judge(claim.claim)


@dataclass(frozen=True)
class LoadedRun:
    """A run directory and its cells; its logged steps are read when a claim needs them.

    Attributes:
        directory: the run directory.
        study: the study of its cells.
        cells: the cells to judge, one row each.
        is_chosen: whether conditions chose these cells of the run's.
    """

    directory: RunDirectory
    study: AnyStudy
    cells: pd.DataFrame
    is_chosen: bool = False

    def judge(self, claim: Claim) -> Measurement:
        """Judge a claim on its cells, or on their logged steps.

        The level is that of this look at the run's seeds, and the note says whether the claim was
        changed since its first cell: see `claims.seals`.
        """
        frame = self._frame(claim)
        if claim.reads == "trajectories" and frame.rows.empty:
            return Measurement(verdict="not run", note=NO_STEPS)
        manifest = self._manifest
        with self.looks_level():
            measurement = frame.judge(claim)
            words = looks_in_words(self._further_looks, level_of_each(1))
        looks = words if measurement.by_chance else ""
        sealed = {} if manifest is None else manifest.claims
        seal = seal_in_words(claim, sealed, with_code=self.study.identity.function is not None)
        parts = [measurement.note, looks, seal, self._sealed.get(claim.name, "")]
        if measurement.verdict != "not run":
            parts += self._stand_ins
        return replace(measurement, note=" ".join(filter(None, parts)))

    def rows(self, claim: Claim) -> pd.DataFrame:
        """Return the rows that a claim is judged on: cells, or logged steps."""
        return self._frame(claim).rows

    def _frame(self, claim: Claim) -> Table:
        return self._cells if claim.reads == "cells" else self._logged

    @property
    def _further_looks(self) -> int:
        return 0 if self._manifest is None else self._manifest.further_looks

    def looks_level(self) -> AbstractContextManager[None]:
        """Give intervals the level of this look at the run's seeds."""
        return set_level(level_of_each(2**self._further_looks))

    @functools.cached_property
    def _sealed(self) -> Mapping[str, str]:
        """What the seal beside a function's file says of each claim."""
        return sealed_in_words(self.study)

    @functools.cached_property
    def _stand_ins(self) -> list[str]:
        """What stands in for the paper's data in the cells."""
        return stand_ins_of(self.study, self.cells)

    @functools.cached_property
    def _manifest(self) -> Manifest | None:
        return read_manifest(self.directory.path)

    @functools.cached_property
    def _cells(self) -> Table:
        """The cells, and those that were planned and are absent, unless cells were chosen."""
        manifest = self._manifest
        if manifest is None or manifest.refined or self.is_chosen:
            return Table(self.cells, self.study)
        planned = planned_cells(self.directory.path, self.study)
        return Table(add_planned(self.cells, planned), self.study)

    @functools.cached_property
    def _logged(self) -> Table:
        return Table(load_logged_steps(self.directory, self.cells), self.study)


def _judge_claim(
    study: str, claim: Claim, runs: Sequence[LoadedRun], *, on_every_run: bool
) -> list[Judged]:
    """Measure a claim on the first run that bears on it, or on every such run."""
    no_cells = Measurement(verdict="not run", note=f"There are no cells of {study}.")
    reasons, measured = list[Measurement](), list[tuple[Measurement, Path]]()
    for run in runs:
        measurement = run.judge(claim)
        if measurement.verdict == "not run":
            reasons.append(measurement)
            continue
        measured.append((measurement, run.directory.path))
        if not on_every_run:
            break
    if not measured:
        return [Judged(study, claim, [*reasons, no_cells][0], None, has_cells=bool(runs))]
    is_only = len(measured) == 1
    return [Judged(study, claim, measurement, path, is_only) for measurement, path in measured]
