"""Judging: the runs that decide claims, the verdicts, families of claims, and what decides them.

A claim is judged on the cells, or the logged steps, of the first run that bears on it: its preset's
run, then others by name. Times of writing have no influence: a copy of the runs gives the same
verdicts. The claims of a study that are of one kind are a family: each has a verdict alone, and one
at the level of all together. Of a sentence it is said how often its verdict would be wrong, and
what would decide it: see `claims.rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from overfit_cli.claims.parts import Part, fewest_seeds
from overfit_cli.claims.quantities import Power
from overfit_cli.claims.rules import FEWEST_PILOT, MOST_SEEDS, WANTED, seeds_to_decide
from overfit_cli.claims.stated import (
    Design,
    Measure,
    cells_without_rows,
    needs_in_words,
    settings_lacking,
)
from overfit_cli.core.cells import Cells
from overfit_cli.core.claim import HOLDING, KINDS, Claim, Measurement, Verdict, number_with_interval
from overfit_cli.core.errors import BadValue
from overfit_cli.core.registry import claims_of, installed_studies
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import percent, plural, visible
from overfit_cli.report.runs import AFTER_THE_FIRST_CELL, JudgedRun, complete_cells, load_runs
from overfit_cli.stats.intervals import level_of_each, set_level
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.manifest import stated_claims
from overfit_cli.sweeps.presets import PROFILES, find_preset
from overfit_cli.sweeps.store import RunDirectory


def sort_runs(paths: Iterable[Path], claim: Claim, profile: str) -> list[Path]:
    """Sort run directories in the order in which they may decide a claim.

    Those of its preset come first, `profile`'s before others. A claim whose cells only a longer
    profile has is judged there, whatever profile is asked for.
    """
    preset, preferred = find_preset(claim.preset) if claim.preset else None, list[str]()
    if preset is not None:
        own = profile if claim.profile == PROFILES[0] else claim.profile
        preferred = [preset.run_name(name) for name in dict.fromkeys((own, profile, *PROFILES))]

    def rank(path: Path) -> tuple[int, str]:
        name = path.resolve().name
        return preferred.index(name) if name in preferred else len(preferred), str(path)

    return sorted(paths, key=rank)


@dataclass(frozen=True)
class Judged:
    """A claim with its measurement.

    Attributes:
        run: the cells that it is judged on; None where none bear on it.
        is_only: whether the claim is judged in no other directory.
        family: the number of the study's claims of its kind that seeds decide; 0 where none do.
        joint_verdict: the verdict at the level of all of those together.
    """

    study: str
    claim: Claim
    measurement: Measurement
    run: JudgedRun | None = field(default=None, compare=False, repr=False)
    is_only: bool = True
    has_cells: bool = True
    family: int = 0
    joint_verdict: Verdict | None = None

    def __repr__(self) -> str:
        """Write it in a line: `<Judged fig1-exponent: holds, 1.97 [1.83, 2.07]>`."""
        number = number_with_interval(self.measurement.value, self.measurement.interval)
        return f"<Judged {visible(self.name)}: {self.headline}, {number}>"

    def _repr_html_(self) -> str:
        return JudgedClaims([self])._repr_html_()

    @property
    def directory(self) -> Path | None:
        """The run directory that it is judged on, if there is one."""
        return self.run.source.path if self.run and self.run.source else None

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
        return self.claim.after_selection and self.headline in (*HOLDING, "fails")

    @property
    def lacks_seeds(self) -> bool:
        """Whether it has fewer seeds than any verdict takes."""
        return self.headline == "inconclusive" and self.measurement.needed_seeds > 0

    @property
    def contradiction(self) -> str:
        """The sentence of a paper that the verdict contradicts; see `Claim.contradiction`."""
        return self.claim.contradiction(self.measurement) if self.headline == "fails" else ""

    def noted(self, sentences: Iterable[str]) -> Judged:
        """Return the claim with further sentences in its note."""
        note = " ".join(filter(None, [self.measurement.note, *sentences]))
        return replace(self, measurement=replace(self.measurement, note=note))

    @property
    def is_measured(self) -> bool:
        """Whether there were cells that bear on the claim."""
        return self.measurement.verdict != "not run"

    @property
    def changed_late(self) -> bool:
        """Whether the claim was changed, added or removed after the run's first cell."""
        return AFTER_THE_FIRST_CELL in self.measurement.note


class JudgedClaims(list[Judged]):
    """Judged claims, which a notebook shows as a table."""

    def __repr__(self) -> str:
        """Write a line for each claim."""
        lines = ",\n ".join(map(repr, self))
        return f"[{lines}]"

    def _repr_html_(self) -> str:
        from overfit_cli.report.page import claims_table

        return claims_table(self)


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


def _measured_again(judged: Judged) -> Measurement:
    assert judged.run is not None
    return judged.run.judge(judged.claim)


def judge_families(
    judged: Sequence[Judged], measure: Callable[[Judged], Measurement] = _measured_again
) -> list[Judged]:
    """Judge a study's statistical claims again, at the level of all of a kind together.

    They are judged step by step (Holm 1979). A paper's verdicts do not depend on the number of
    questions that the tool asks beside them.
    """
    joint = list(judged)
    for kind in KINDS:
        of_kind = [index for index, one in enumerate(judged) if one.claim.kind == kind]
        family = [index for index in of_kind if judged[index].measurement.by_chance]
        verdicts: dict[int, Verdict] = dict.fromkeys(family, "inconclusive")
        left = {each for each in family if judged[each].measurement.verdict in ("holds", "fails")}
        undecided, decided = len(family), {*left}
        while left and decided:
            with set_level(level_of_each(undecided)):
                again = {index: measure(judged[index]).verdict for index in sorted(left)}
            decided = {index for index in left if again[index] in ("holds", "fails")}
            verdicts |= {index: again[index] for index in decided}
            left, undecided = left - decided, undecided - len(decided)
        for index, verdict in verdicts.items():
            joint[index] = replace(judged[index], family=len(family), joint_verdict=verdict)
    return joint


# Runs


def judge_cells(cells: pd.DataFrame, study: AnyStudy) -> list[Judged]:
    """Judge every claim of a study on cells from any source, such as a made-up world.

    Args:
        cells: one row per cell, with `seed` and the study's columns. An absent parameter has its
            default, and cells without a `status` are done. With a column `step` there is one row
            per cell and logged step, and the claims on trajectories are judged instead.
    """
    reads = "trajectories" if "step" in cells else "cells"
    run = JudgedRun(Cells.of(study, complete_cells(cells, study)))
    return judge_claims(run, [claim for claim in claims_of(study) if claim.reads == reads])


def judge_claims(run: JudgedRun, claims: Iterable[Claim]) -> list[Judged]:
    """Judge claims on one run, by themselves and all together."""
    return judge_families([Judged(run.study.name, one, run.judge(one), run) for one in claims])


def judge_runs(
    runs: Sequence[JudgedRun], *, on_every_run: bool, profile: str = PROFILES[0]
) -> list[Judged]:
    """Judge every claim of every study.

    Args:
        on_every_run: whether a claim is judged on each run that bears on it; otherwise the first of
            them decides: see `sort_runs`.
        profile: the profile whose run of a claim's preset comes first, unless the claim names
            one.
    """
    judged = list[Judged]()
    studies = {study.name: study for study in (*installed_studies(), *(run.study for run in runs))}
    for study in studies.values():
        by_path = {
            run.directory.path: run for run in runs if (run.cells["study"] == study.name).all()
        }
        asked = [
            (claim, [by_path[path] for path in sort_runs(by_path, claim, profile)])
            for claim in claims_of(study)
        ]
        asked += [(claim, [run]) for run in by_path.values() for claim in run.sentences()]
        claims = [
            each
            for claim, ordered in asked
            for each in _judge_claim(study.name, claim, ordered, on_every_run=on_every_run)
        ]
        judged += map(_with_design_and_rates, judge_families(claims))
    return judged


def _with_design_and_rates(judged: Judged) -> Judged:
    """A user's sentence with its design and its rates in its note; another claim as it is."""
    claim, run = judged.claim, judged.run
    if not isinstance(claim.measure, Measure) or claim.measure.choose is not None or run is None:
        return judged
    with run.looks_level():
        design, rates = run.design(claim), run.rates(claim)
    said = [*(design.sentences() if design else ()), *([rates.in_words()] if rates else ())]
    return judged.noted(said)


def _judge_claim(
    study: str, claim: Claim, runs: Sequence[JudgedRun], *, on_every_run: bool
) -> list[Judged]:
    judged = list[Judged]()
    for run in runs:
        judged.append(Judged(study, claim, run.judge(claim), run))
        if judged[-1].is_measured and not on_every_run:
            break
    measured = [each for each in judged if each.is_measured]
    if measured:
        return [replace(each, is_only=len(measured) == 1) for each in measured]
    no_cells = Measurement(verdict="not run", note=f"There are no cells of {study}.")
    not_run = judged[0].measurement if judged else no_cells
    return [Judged(study, claim, not_run, has_cells=bool(runs))]


# Decisions


@dataclass(frozen=True)
class Decision:
    """A judged sentence, how sure its verdict is, and what would decide it.

    Attributes:
        design: the cells that it is judged on; None where none bears on it.
        parts: the numbers that it is judged on; none where nothing is drawn, or none is known.
        needed: the fewest seeds that would decide it in these cells' run, at the level of a further
            look where more are needed than there are; 0 where they are not known.
        few: whether there are so few seeds that `needed` are those that could decide it.
        lacking: the parameters of which other values are needed, with those values.
    """

    judged: Judged
    design: Design | None = None
    parts: Sequence[Part] = ()
    needed: int = 0
    few: bool = False
    lacking: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        """Whether further cells would decide it."""
        return self.judged.headline in ("inconclusive", "not run")

    @property
    def lacks_cells(self) -> bool:
        """Whether cells are missing that it takes and that can be run."""
        missing = self.design is not None and self.design.is_mendable
        return missing and (any(part.unknown for part in self.parts) or not self.parts)

    def sentences(self) -> Iterator[str]:
        """Yield the sentences about its design, its rates of error, and what would decide it."""
        if self.design is not None:
            yield from self.design.sentences()
        run, claim = self.judged.run, self.judged.claim
        assert run is not None
        with run.looks_level():
            rates = run.rates(claim)
        if rates is not None:
            yield rates.in_words()
        if self.design is not None and self.is_open:
            if self.lacks_cells:
                yield "The cells that are missing come first."
            if self.parts:
                yield self._plan_in_words(len(self.design.seeds))

    def _plan_in_words(self, present: int) -> str:
        share, family = percent(WANTED), self.judged.family
        if family > 1:
            share = f"{share} at the level of {family} verdicts together"
        if self.few:
            pilot = f"A plan takes {FEWEST_PILOT} seeds or more with all their cells"
            return f"{pilot}; {self.needed} could decide it."
        if not self.needed:
            return f"As measured, {MOST_SEEDS} seeds do not decide it."
        verb = "takes" if self.needed > present else "is enough to have"
        return (
            f"As measured it {verb} {plural(self.needed, 'seed')} to decide it with a probability "
            f"of {share}{', once they have all cells' * self.lacks_cells}."
        )


def decide(run: JudgedRun, texts: Sequence[str] = ()) -> list[Decision]:
    """Judge sentences on a run; without any, the claims of its study and of its preset.

    Args:
        texts: sentences, or names of the run's own claims.
    """
    claims = [run.claim(text) for text in texts]
    check_claims(run, claims or _present_claims(run))
    return [*map(_decision, judge_claims(run, claims or run.claims()))]


def _present_claims(run: JudgedRun) -> list[Claim]:
    return [*claims_of(run.study)] if (run.cells["status"] == "done").any() else []


def check_claims(run: JudgedRun, claims: Sequence[Claim]) -> None:
    """Refuse a sentence that names what the cells do not have, and two of one name."""
    names = [each.name for each in claims]
    for each in claims:
        if names.count(each.name) > 1:
            accepts = "two are called so; write a name before: 'NAME: ...'."
            raise BadValue("claim", each.name, accepts)
        if (error := run.unknown_name(each)) is not None:
            raise error


def problem_with_claims(directory: RunDirectory) -> str:
    """Return a sentence where a claim names what a run's cells do not have; or nothing."""
    (run,) = load_runs([directory], directory.path)
    try:
        check_claims(run, [*_present_claims(run), *run.stated])
    except BadValue as error:
        return f"A claim can't be judged: {error}"
    return ""


def lines_on_claims(
    directory: RunDirectory, grid: Grid, stated: Mapping[str, str]
) -> Iterator[str]:
    """Yield lines on how many seeds would decide the claims of a sweep before it runs.

    They are those of a function, and those that are stated with the sweep or its preset. Cells that
    are there already serve as a pilot.
    """
    study = grid.study
    own = claims_of(study) if study.identity.function is not None else ()
    claims = [*own, *stated_claims(study, stated)]
    if claims and len(directory.contents()):
        (run,) = load_runs([directory], directory.path)
        check_claims(run, claims)
        for decided in map(_decision, judge_claims(run, claims)):
            yield f"{decided.judged.claim.name}: {decided.judged.headline} in {directory.path}."
            yield from decided.sentences()
        return
    none = cells_without_rows(study)
    for each in claims:
        if isinstance(each.measure, Measure):
            sentence = each.measure.sentence
            needed = f"{plural(sentence.seeds, 'seed')} or more could decide it"
            seeds = f" {needed}; this sweep has {len(grid.seeds)}." if study.seeded else ""
            yield f"{each.name}: {needs_in_words(sentence, none)}{seeds}"


# What would decide a sentence


def _decision(judged: Judged) -> Decision:
    """Return how sure a verdict is; only the verdict of a claim that is no sentence."""
    measure, run = judged.claim.measure, judged.run
    if not isinstance(measure, Measure) or run is None:
        return Decision(judged)
    quantities = [clause.quantity for clause in measure.sentence.clauses]
    contours = any(isinstance(each, Power) and each.contour for each in quantities)
    without = contours and judged.headline == "inconclusive" and judged.measurement.value is None
    lacking: Mapping[str, str] = {}  # where no cell bears on it
    if measure.choose is None and (without or not judged.is_measured):
        lacking = run.of_sentence(judged.claim, settings_lacking) or {}
    if not judged.is_measured:
        return Decision(judged, lacking=lacking)
    design, parts = run.design(judged.claim), run.parts(judged.claim)
    if design is not None and measure.choose is None:
        lacking = lacking or design.unswept
    decided = Decision(judged, design, parts, lacking=lacking)
    return _planned(run, decided) if parts and decided.is_open else decided


def _planned(run: JudgedRun, decided: Decision) -> Decision:
    parts, seeds = decided.parts, len(decided.parts[0].low)
    if decided.lacks_cells:
        known = np.logical_and.reduce([part.low == part.high for part in parts])
        parts = [replace(part, low=part.low[known], high=part.high[known]) for part in parts]
    family, needed = max(1, decided.judged.family), None
    if len(parts[0].low) < FEWEST_PILOT:
        with run.looks_level(1, family):
            return replace(decided, needed=fewest_seeds(parts), few=True)
    if decided.lacks_cells:
        with run.looks_level(0, family):
            needed = seeds_to_decide(parts) or 0
    if needed is None or needed > seeds:
        with run.looks_level(1, family):
            needed = seeds_to_decide(parts, more_than=seeds) or 0
    return replace(decided, needed=needed)
