"""Judging: which runs decide which claims, and whether their verdicts were expected.

A claim is judged on the cells, or the logged steps, of the run that bears on it: its preset's run
first, then others by name. No time of writing matters: a copy of the runs gives the same verdicts.
The claims of a study are a family: each has a verdict alone, and one at the level of all together.
A TOML file of expected verdicts is what CI holds a report to.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from overfit_cli.claims.cells import repeated_seeds
from overfit_cli.core.claim import VERDICTS, Claim, Interval, Measurement, Verdict
from overfit_cli.core.files import read_toml
from overfit_cli.core.parameters import build, describe
from overfit_cli.core.registry import claims_of, installed_studies
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import BadValue, UserError, most_alike, shortened
from overfit_cli.stats.intervals import at_level, level_of_each
from overfit_cli.sweeps.load import (
    chosen_cells,
    load_logged_steps,
    load_study_and_cells,
    read_selections,
    usable_directories,
)
from overfit_cli.sweeps.presets import PROFILES, find_preset
from overfit_cli.sweeps.store import RunDirectory


def own_runs(claim: Claim, profile: str) -> list[str]:
    """Return the names of the run directories of a claim's preset, that of `profile` first."""
    preset = find_preset(claim.preset) if claim.preset else None
    if preset is None:
        return []
    others = [one for one in PROFILES if one != profile]
    return [preset.run_name(one) for one in (profile, *others)]


def in_order(paths: Iterable[Path], claim: Claim, profile: str) -> list[Path]:
    """Return run directories in the order in which they are asked to decide a claim."""
    own = own_runs(claim, profile)

    def place(path: Path) -> int:
        name = path.resolve().name
        return own.index(name) if name in own else len(own)

    return sorted(paths, key=lambda path: (place(path), str(path)))


@dataclass(frozen=True)
class Frame:
    """What claims are judged on.

    Attributes:
        rows: one per cell, or per cell and logged step.
        study: whose cells they are.
    """

    rows: pd.DataFrame
    study: AnyStudy

    @functools.cached_property
    def repeated(self) -> list[int]:
        """The seeds that have all the numbers of another."""
        return repeated_seeds(self.rows, self.study.parameters)

    def judge(self, claim: Claim) -> Measurement:
        """Judge a claim; seeds that repeat another's numbers leave open what seeds decide."""
        found = claim.judge(self.rows)
        if not (found.by_chance and self.repeated):
            return found
        which = ", ".join(map(str, self.repeated))
        note = f"Seeds {which} have all the numbers of another: they are no draws of their own."
        return replace(found, verdict="inconclusive", note=f"{found.note} {note}".strip())


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
    whole = _whole(cells.reset_index(drop=True), study)  # claims index by row
    reads = "trajectories" if "step" in cells else "cells"
    claims = [claim for claim in claims_of(study) if claim.reads == reads]
    frame = Frame(whole, study)
    judged = [Judged(study.name, claim, frame.judge(claim), None) for claim in claims]
    return as_a_family(judged, lambda one: frame.judge(one.claim))


def _whole(cells: pd.DataFrame, study: AnyStudy) -> pd.DataFrame:
    """The cells with all columns that cells of a run have; a key tells those of steps apart."""
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
    whole = cells.assign(**{name: one for name, one in absent.items() if name not in cells})
    own = [*described, "seed"]
    if repeated := int(whole.duplicated([*own, *(["step"] if "step" in cells else [])]).sum()):
        raise UserError(
            f"{repeated} of the {len(cells)} rows have the parameters and seed of another."
        )
    _check_values(whole, study)
    if "step" not in cells:
        return whole
    key = whole.groupby(own, dropna=False).ngroup().astype(str)
    whole = whole.assign(key=cells.get("key", key))
    last = whole.groupby("key")["step"].transform("max")
    return whole.assign(steps=cells.get("steps", last))


def _check_values(cells: pd.DataFrame, study: AnyStudy) -> None:
    """Refuse values of parameters that the study doesn't take."""
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
        study: name of the study that makes the claim.
        claim: the claim.
        measurement: what was measured, and the verdict.
        directory: the run directory that it was measured on; None where there was none.
        alone: whether the claim is judged in no other directory.
        has_cells: whether there were cells of the study at all.
        family: how many of the study's claims seeds decide; 0 where it isn't one of them.
        together: the verdict where all of those are right together as often as one of them is.
    """

    study: str
    claim: Claim
    measurement: Measurement
    directory: Path | None
    alone: bool = True
    has_cells: bool = True
    family: int = 0
    together: Verdict | None = None

    @property
    def address(self) -> str:
        """What no other claim is called: `benign-vit/fig1-exponent`."""
        return f"{self.study}/{self.claim.name}"

    @property
    def name(self) -> str:
        """The claim's name, with the directory where it is judged in several."""
        return self.claim.name if self.alone else f"{self.claim.name} ({self.directory})"

    @property
    def is_measured(self) -> bool:
        """Whether there were cells that bear on it."""
        return self.measurement.verdict != "not run"


def worth_showing(judged: Sequence[Judged]) -> list[Judged]:
    """Return the claims that were measured, and all those of a study whose cells bear on none."""
    measured = {one.study for one in judged if one.is_measured}
    return [
        one for one in judged if one.is_measured or (one.has_cells and one.study not in measured)
    ]


def as_a_family(judged: Sequence[Judged], measure: Callable[[Judged], Measurement]) -> list[Judged]:
    """Judge again what seeds decide, at the level of all together, step by step (Holm 1979).

    What is decided at the level of all of them leaves the others a level of fewer.
    """
    drawn = [at for at, one in enumerate(judged) if one.measurement.by_chance]
    together: dict[int, Verdict] = dict.fromkeys(drawn, "inconclusive")
    left = [at for at in drawn if judged[at].measurement.verdict in ("holds", "fails")]
    undecided, progress = len(drawn), True
    while left and progress:
        with at_level(level_of_each(undecided)):
            found = {at: measure(judged[at]).verdict for at in left}
        decided = {at: one for at, one in found.items() if one in ("holds", "fails")}
        together |= decided
        left = [at for at in left if at not in decided]
        undecided, progress = undecided - len(decided), bool(decided)
    return [
        replace(one, family=len(drawn), together=together[at]) if at in together else one
        for at, one in enumerate(judged)
    ]


def finite_or_null(value: float | None) -> float | None:
    """Return a number for JSON, which has no infinity: what isn't finite is null there."""
    return value if value is not None and math.isfinite(value) else None


def interval_or_null(found: Interval | None) -> dict[str, float | str | None] | None:
    """Return an interval for JSON; null where there is none."""
    if found is None:
        return None
    return {
        "low": finite_or_null(found.low),
        "high": finite_or_null(found.high),
        "kind": found.kind,
    }


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
        raise BadValue("where", where[0], "name the run directory that it is about with --from.")
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
            decides it: see `in_order`.
        profile: of which profile the run of a claim's preset comes first.
    """
    judged = []
    studies = {study.name: study for study in (*installed_studies(), *(run.study for run in runs))}
    for study in studies.values():
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
    """Judge every claim of a run's study by its cells, each for itself."""
    return [
        Judged(run.study.name, claim, run.judge(claim), run.directory.path)
        for claim in claims_of(run.study)
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


MOST_BYTES = 1 << 20

Expected = Mapping[str, Sequence[Verdict]]
"""The verdicts that are expected of a claim, by `study/claim`: usually one."""


@dataclass(frozen=True)
class Comparison:
    """A report held to expected verdicts.

    Attributes:
        unexpected: what is wrong with a claim's verdict, by `study/claim`.
        unknown: claims of the file that no study makes, each with the one that is meant, or with
            nothing.
        left_out: how many claims weren't compared, because they weren't asked for.
        compared: how many were.
    """

    unexpected: Mapping[str, str]
    unknown: Mapping[str, str]
    left_out: int
    compared: int

    @property
    def is_fulfilled(self) -> bool:
        """Whether verdicts were compared, and every one is as expected."""
        return self.compared > 0 and not self.unexpected and not self.unknown


def read_expected(path: Path) -> Expected:
    """Read a file of expected verdicts: a table for each study, with a verdict for each claim.

    A claim may have a list of verdicts, each of which is as good.

    Raises:
        UserError: if it can't be read, or holds something else.
    """
    content = read_toml(path, MOST_BYTES, "--expect")
    expected: dict[str, Sequence[Verdict]] = {}
    for study, claims in content.items():
        if not isinstance(claims, dict):
            raise UserError(
                f"--expect {path}: {shortened(study)}: write a table for each study, [STUDY], with "
                "lines CLAIM = 'VERDICT'."
            )
        for claim, verdicts in claims.items():
            expected[f"{study}/{claim}"] = _verdicts(verdicts, f"--expect {path}: {claim}")
    return expected


def _verdicts(found: Any, place: str) -> list[Verdict]:
    """One verdict, or several."""
    several = found if isinstance(found, list) and found else [found]
    for one in several:
        if one not in tuple(VERDICTS):  # it may be a list
            raise UserError(f"{place} = {shortened(str(one))}: it takes {', '.join(VERDICTS)}.")
    return several


def compare(
    judged: Sequence[Judged], expected: Expected, asked: Sequence[Judged] | None = None
) -> Comparison:
    """Hold verdicts to the expected ones.

    Args:
        judged: every claim.
        expected: the verdicts that are expected.
        asked: those of the claims that the report is about; None for all.
    """
    compared, unexpected = judged if asked is None else asked, dict[str, str]()
    for one in compared:
        verdict, wanted = one.measurement.verdict, expected.get(one.address)
        if wanted is None:
            unexpected[one.address] = f"{verdict}, and no verdict is expected"
        elif verdict not in wanted:
            unexpected[one.address] = f"{verdict}, expected {' or '.join(wanted)}"
    left_out = len(judged) - len(compared)
    unknown = _unknown(judged, expected, whole=asked is None)
    return Comparison(unexpected, unknown, left_out, len(compared))


def _unknown(judged: Sequence[Judged], expected: Expected, *, whole: bool) -> dict[str, str]:
    """The expected claims that no study makes, each with the nearest that one makes.

    A report on some runs doesn't know the claims of functions whose runs are others.
    """
    known, studies = {one.address for one in judged}, {one.study for one in judged}
    return {
        claim: _meant(claim, known)
        for claim in sorted(expected.keys() - known)
        if whole or claim.partition("/")[0] in studies
    }


def _meant(claim: str, known: Collection[str]) -> str:
    """The claim of the same study whose name is the most like, or the same claim of another."""
    study, _, name = claim.partition("/")
    split = [one.partition("/") for one in known]
    close = most_alike(name, [other for of, _, other in split if of == study], cutoff=_CLOSE)
    if close:
        return f"{study}/{close}"
    return next(("/".join((of, other)) for of, _, other in split if other == name), "")


_CLOSE = 0.6
"""How alike the names of two claims are of which one is meant."""


def as_expected(judged: Sequence[Judged]) -> str:
    """Return the verdicts as a file of expected ones."""
    found: dict[str, dict[str, list[Verdict]]] = {}
    for one in judged:  # a claim may be judged on several runs
        verdicts = found.setdefault(one.study, {}).setdefault(one.claim.name, [])
        verdicts += [one.measurement.verdict] * (one.measurement.verdict not in verdicts)
    lines = []
    for study, claims in found.items():
        lines += ["", f"[{_key(study)}]"]
        lines += [
            f"{_key(name)} = {json.dumps(several if len(several) > 1 else several[0])}"
            for name, several in claims.items()
        ]
    return "\n".join(lines[1:]) + "\n"


def _key(name: str) -> str:
    """A key in TOML: bare where it can be."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
