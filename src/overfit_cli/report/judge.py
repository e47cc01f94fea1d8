"""Judging: the runs that decide claims, the verdicts, and the families of claims.

A claim is judged on the cells, or the logged steps, of the first run that bears on it: its preset's
run, then others by name. Times of writing have no influence: a copy of the runs gives the same
verdicts. The claims of a study that are of one kind are a family: each has a verdict alone, and one
at the level of all together.
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pandas as pd

from overfit_cli.claims.stated import Measure
from overfit_cli.core.claim import (
    KINDS,
    Claim,
    Interval,
    Measurement,
    Verdict,
    number_with_interval,
)
from overfit_cli.core.registry import claims_of, installed_studies
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import percent, visible
from overfit_cli.report.judged_table import judged_table
from overfit_cli.report.runs import (
    AFTER_THE_FIRST_CELL,
    LoadedRun,
    Table,
    complete_cells,
    load_runs,
)
from overfit_cli.stats.intervals import LEVEL, level_of_each, set_level, share_estimate
from overfit_cli.sweeps import presets
from overfit_cli.sweeps.presets import ERROR_RATES, PROFILES, find_preset


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


def judge_cells(cells: pd.DataFrame, study: AnyStudy) -> list[Judged]:
    """Judge every claim of a study on cells from any source, such as a made-up world.

    Args:
        cells: one row per cell, with `seed` and the study's columns. An absent parameter has its
            default, and cells without a `status` are done. With a column `step` there is one row
            per cell and logged step, and the claims on trajectories are judged instead.
    """
    completed = complete_cells(cells.reset_index(drop=True), study)  # claims index by row
    reads = "trajectories" if "step" in cells else "cells"
    claims = [claim for claim in claims_of(study) if claim.reads == reads]
    frame = Table(completed, study)
    judged = [Judged(study.name, claim, frame.judge(claim), None) for claim in claims]
    return judge_families(judged, lambda one: frame.judge(one.claim))


@functools.cache
def simulated_rates() -> Mapping[str, Mapping[str, str]]:
    """Return the error rates of the papers' claims by their addresses; shipped with the presets."""
    path = presets.preset_folder() / ERROR_RATES
    with path.open(encoding="utf-8", newline="") as file:
        return {f"{row['study']}/{row['claim']}": row for row in csv.DictReader(file)}


def _rate(share: str, runs: int) -> str:
    errors = round(float(share.removesuffix(" %")) / 100 * runs)
    limits = share_estimate(errors, runs, LEVEL)
    return f"{errors} of {runs} worlds ({100 * limits.low:.1f} to {percent(limits.high, 1)})"


@dataclass(frozen=True)
class Judged:
    """A claim with its measurement.

    Attributes:
        is_only: whether the claim is judged in no other directory.
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

    def __repr__(self) -> str:
        """Write it in a line: `<Judged fig1-exponent: holds, 1.97 [1.83, 2.07]>`."""
        number = number_with_interval(self.measurement.value, self.measurement.interval)
        return f"<Judged {visible(self.name)}: {self.headline}, {number}>"

    def _repr_html_(self) -> str:
        return judged_table([self])

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
    def decided_after_selection(self) -> bool:
        """Whether it holds or fails only because other claims were dropped: see `Claim`."""
        return self.claim.after_selection and self.headline in ("holds", "fails")

    @property
    def lacks_seeds(self) -> bool:
        """Whether it has fewer seeds than any verdict takes."""
        return self.headline == "inconclusive" and self.measurement.needed_seeds > 0

    @property
    def contradiction(self) -> str:
        """The sentence of a paper that the verdict contradicts; see `Claim.contradiction`."""
        return self.claim.contradiction(self.measurement)

    def noted(self, sentences: Iterable[str]) -> Judged:
        """Return the claim with further sentences in its note."""
        note = " ".join(filter(None, [self.measurement.note, *sentences]))
        return replace(self, measurement=replace(self.measurement, note=note))

    @property
    def simulated_rates(self) -> str:
        """The error rates of the verdict in simulated worlds, with limits; empty if unknown."""
        row = simulated_rates().get(self.address)
        if row is None:
            return ""
        wrong = [_rate(row[world], int(row["runs"])) for world in ("false: holds", "true: fails")]
        return (
            f"Simulated: it held in {wrong[0]} where it is false, failed in {wrong[1]} where it is "
            "true; 5 % are allowed."
        )

    @property
    def is_measured(self) -> bool:
        """Whether there were cells that bear on the claim."""
        return self.measurement.verdict != "not run"

    @property
    def changed_late(self) -> bool:
        """Whether the claim was changed, added or removed after the run's first cell."""
        return AFTER_THE_FIRST_CELL in self.measurement.note

    @property
    def is_open(self) -> bool:
        """Whether there are cells, and the claim is undecided."""
        return self.measurement.verdict in ("inconclusive", "vacuous")


class JudgedClaims(list[Judged]):
    """Judged claims, which a notebook shows as a table."""

    def __repr__(self) -> str:
        """Write a line for each claim."""
        lines = ",\n ".join(map(repr, self))
        return f"[{lines}]"

    def _repr_html_(self) -> str:
        return judged_table(self)


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
    """Judge the statistical claims of a family, step by step (Holm 1979)."""
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


def judge_runs(
    runs: Sequence[LoadedRun], *, on_every_run: bool, profile: str = PROFILES[0]
) -> list[Judged]:
    """Judge every claim of every study.

    Args:
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
        for run in study_runs:
            for claim in run.sentences():
                claims += _judge_claim(study.name, claim, [run], on_every_run=on_every_run)
        families = judge_families(claims, partial(_measure, study_runs))
        judged += [_with_design_and_rates(claim, runs_by_path) for claim in families]
    return judged


def _with_design_and_rates(judged: Judged, runs: Mapping[Path, LoadedRun]) -> Judged:
    """A user's sentence with its design and its rates in its note; another claim as it is."""
    claim = judged.claim
    measure = claim.measure
    if not isinstance(measure, Measure) or measure.choose is not None or not judged.directory:
        return judged
    run = runs[judged.directory]
    with run.looks_level():
        design, rates = run.table(claim).design(claim), run.table(claim).rates(claim)
    said = [*(design.sentences() if design else ()), *([rates.in_words()] if rates else ())]
    return judged.noted(said)


def judge_all(sources: Sequence[Path], root: Path, conditions: Sequence[str] = ()) -> list[Judged]:
    """Load runs and judge every claim: see `load_runs` and `judge_runs`."""
    return judge_runs(load_runs(sources, root, conditions), on_every_run=bool(sources))


def judge_run(run: LoadedRun) -> list[Judged]:
    """Judge every claim of a run's study on its cells, without families."""
    return [
        Judged(run.study.name, claim, run.judge(claim), run.directory.path)
        for claim in run.claims()
    ]


def _measure(runs: Sequence[LoadedRun], claim: Judged) -> Measurement:
    return next(run for run in runs if run.directory.path == claim.directory).judge(claim.claim)


def _judge_claim(
    study: str, claim: Claim, runs: Sequence[LoadedRun], *, on_every_run: bool
) -> list[Judged]:
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
