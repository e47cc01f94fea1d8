"""Judging: the runs that decide claims, the verdicts, families of claims, and what decides them.

A claim is judged on the cells, or the logged steps, of the first run that bears on it: its preset's
run, then others by name. Times of writing have no influence: a copy of the runs gives the same
verdicts. The claims of a study that are of one kind are a family: each has a verdict alone, and one
at the level of all together. Of a sentence it is said how often its verdict would be wrong, and
what would decide it: see `claims.rules`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from overfit_cli.claims import rules, stated
from overfit_cli.claims.parts import Part, fewest_seeds
from overfit_cli.core.claim import KINDS, Claim, Measurement, Verdict, number_with_interval
from overfit_cli.core.registry import claims_of, installed_studies
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import percent, plural, visible
from overfit_cli.report import words
from overfit_cli.report.runs import (
    AFTER_THE_FIRST_CELL,
    OTHER_DESIGN,
    JudgedRun,
    load_runs,
    run_of_cells,
)
from overfit_cli.stats.intervals import LEVEL, level_of_each, set_level
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

    def in_words(self) -> str:
        """Return a sentence on it: its number, what was measured, and when it holds."""
        number = f"{self.measurement.number}.".replace("–.", "")
        parts = [f"{self.name}:", number, words.describe_measurement(self.measurement)]
        return " ".join(filter(None, [*parts, f"Holds where {self.claim.holds_where}."]))

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
    def by_itself(self) -> str:
        """The verdict by itself in words, where that of all together is another one."""
        alone = self.measurement.verdict
        return "" if self.headline == alone else f"by itself {alone}"

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

    @property
    def not_as_sealed(self) -> str:
        """What the verdict is not, of a sealed claim of which the words or the cells are others."""
        note = self.measurement.note
        is_other = f"was changed {AFTER_THE_FIRST_CELL}" in note or OTHER_DESIGN in note
        return "not as sealed" if is_other and self.is_measured else ""

    @property
    def where(self) -> str:
        """The condition of a user's sentence on its cells, where its name leaves it out."""
        where = re.search(r"\bwhere .*", self.claim.sentence if self.is_stated else "")
        return where[0] if where and "where" not in self.claim.name else ""

    @property
    def is_stated(self) -> bool:
        """Whether it is a sentence about all cells, such as a user states."""
        measure = self.claim.measure
        return isinstance(measure, stated.Measure) and measure.choose is None

    # What decides a sentence

    @functools.cached_property
    def design(self) -> stated.Design | None:
        """The cells that a sentence is judged on; None where none bears on it."""
        if self.run is None or not self.is_measured:
            return None
        return self.run.of_sentence(self.claim, stated.design_of)

    @functools.cached_property
    def parts(self) -> Sequence[Part]:
        """The numbers that a sentence is judged on; none without draws, or where none is known."""
        if self.run is None or not self.is_measured or not self.run.study.seeded:
            return ()
        return self.run.of_sentence(self.claim, stated.Measure.parts) or ()

    @property
    def is_open(self) -> bool:
        """Whether further cells would decide it."""
        return self.headline in ("inconclusive", "not run")

    @property
    def lacks_cells(self) -> bool:
        """Whether cells are missing that it takes and that can be run."""
        missing = self.design is not None and self.design.is_mendable
        return missing and (any(part.unknown for part in self.parts) or not self.parts)

    @functools.cached_property
    def lacking(self) -> Mapping[str, str]:
        """The parameters of which a user's sentence needs other values, with those values."""
        if self.is_stated and self.run and not self.is_measured:
            return self.run.of_sentence(self.claim, stated.settings_lacking) or {}
        return self.design.unswept if self.is_stated and self.design else {}

    @functools.cached_property
    def _pilot(self) -> Sequence[Part]:
        """The numbers of the seeds of which no cell is missing."""
        if not self.parts or not self.lacks_cells:
            return self.parts
        known = np.logical_and.reduce([part.low == part.high for part in self.parts])
        return [replace(part, low=part.low[known], high=part.high[known]) for part in self.parts]

    @functools.cached_property
    def needed(self) -> int:
        """The fewest seeds that would decide it in its run; 0 where they are not known.

        More than there are would be a further look. Of a few it is how many could decide it.
        """
        if self.run is None or not self.is_open or not self._pilot or self._is_void:
            return 0
        level = functools.partial(self.run.looks_level, together=max(1, self.family))
        if len(self._pilot[0].low) < rules.FEWEST_PILOT:
            with level(1):
                return fewest_seeds(self._pilot)
        seeds = len(self.parts[0].low)
        if self.lacks_cells:
            with level(0):
                needed = rules.seeds_to_decide(self._pilot) or 0
            if needed <= seeds:
                return needed
        with level(1):
            return rules.seeds_to_decide(self._pilot, more_than=seeds) or 0

    @property
    def _is_void(self) -> bool:
        """Whether no further seeds would decide it: what is there isn't what cells would give."""
        return self.run is not None and bool(self.run.why_void(self.claim, self.measurement))

    def about(self) -> Iterator[str]:
        """Yield on which cells a sentence is judged, and how often it would be wrong."""
        if self.design is not None:
            yield from self.design.sentences()
        fewest = max((part.margin.fewest_seeds for part in self.parts), default=0)
        enough = bool(self.parts) and len(self.parts[0].low) >= fewest
        is_shape = stated.NO_POWER in self.measurement.note  # which the rates know nothing of
        if self.run is not None and enough and not self._is_void and not is_shape:
            with self.run.looks_level():
                said = rules.rates(self.parts).in_words()
            yield said

    def sentences(self) -> Iterator[str]:
        """Yield the sentences about its design, its rates of error, and what would decide it."""
        yield from self.about()
        if self.is_open and self.lacks_cells:
            yield "The cells that are missing come first."
        if not self.is_open or not self._pilot or self._is_void:
            return
        if len(self._pilot[0].low) < rules.FEWEST_PILOT:
            pilot = f"A plan takes {rules.FEWEST_PILOT} seeds or more with all their cells"
            yield f"{pilot}; {self.needed} could decide it."
        elif self.needed:
            level = f" at the level of {self.family} verdicts together" if self.family > 1 else ""
            likely = f"with a probability of {percent(rules.WANTED)}{level}"
            yield f"As measured it takes {plural(self.needed, 'seed')} to decide it {likely}."
        else:
            yield f"As measured, {rules.MOST_SEEDS} seeds do not decide it."


class JudgedClaims(list[Judged]):
    """Judged claims, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        template = words.templates(autoescape=True).get_template("claims.html")
        return template.render(judged=self, words=words)


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


# Families


def family_sentences(judged: Sequence[Judged]) -> list[str]:
    """Return a sentence on each family, of a study and a kind: its level, and what changes."""
    families = dict[tuple[str, str], list[Judged]]()
    for each in judged:
        if each.family:
            families.setdefault((each.study, each.claim.kind), []).append(each)
    levels = {"level": LEVEL, "level_of_each": level_of_each}
    return words.sentences("families.txt", families=families, **levels)


def _verdict_again(judged: Judged) -> Verdict:
    assert judged.run is not None
    return judged.run.judge(judged.claim).verdict


def judge_families(judged: Sequence[Judged]) -> list[Judged]:
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
                again = {index: _verdict_again(judged[index]) for index in sorted(left)}
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
    claims = [claim for claim in claims_of(study) if claim.reads == reads]
    return judge_claims(run_of_cells(cells, study), claims)


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
        own = [run for run in runs if (run.cells["study"] == study.name).all()]
        by_path = {run.directory.path: run for run in own}
        # Runs of one function may have recorded other claims: each is judged on those that have it.
        bearing = dict[tuple[str, str], tuple[Claim, dict[Path, JudgedRun]]]()
        for of, on in [(study, {}), *((run.study, {path: run}) for path, run in by_path.items())]:
            for claim in claims_of(of):
                bearing.setdefault((claim.name, claim.wording), (claim, {}))[1].update(on)
        asked = [
            (claim, [on[path] for path in sort_runs(on, claim, profile)])
            for claim, on in bearing.values()
        ]
        asked += [(claim, [run]) for run in by_path.values() for claim in run.sentences()]
        claims = list[Judged]()
        for claim, ordered in asked:
            claims += _judge_claim(study.name, claim, ordered, on_every_run=on_every_run)
        joint = judge_families(claims)
        judged += [one.noted(one.about()) if one.is_stated else one for one in joint]
    return judged


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


def decide(run: JudgedRun, texts: Sequence[str] = ()) -> list[Judged]:
    """Judge sentences on a run; without any, the claims of its study and of its preset.

    Args:
        texts: sentences, or names of the run's own claims.
    """
    claims = [run.claim(text) for text in texts]
    check_claims(run, claims or _present_claims(run))
    return judge_claims(run, claims or run.claims())


def _present_claims(run: JudgedRun) -> list[Claim]:
    return [*claims_of(run.study)] if (run.cells["status"] == "done").any() else []


def check_claims(run: JudgedRun, claims: Iterable[Claim]) -> None:
    """Refuse a sentence that names what the cells do not have."""
    for error in filter(None, map(run.unknown_name, claims)):
        raise error


def problem_with_claims(directory: RunDirectory) -> str:
    """Return a sentence where a claim names what a run's cells do not have; or nothing."""
    (run,) = load_runs([directory])
    errors = map(run.unknown_name, [*_present_claims(run), *run.stated])
    return next((f"A claim can't be judged: {error}" for error in errors if error), "")


def lines_on_claims(directory: RunDirectory, grid: Grid, texts: Mapping[str, str]) -> Iterator[str]:
    """Yield lines on how many seeds would decide the claims of a sweep before it runs.

    They are those of a function, and those that are stated with the sweep or its preset. Cells that
    are there already serve as a pilot.
    """
    study = grid.study
    own = claims_of(study) if study.identity.function is not None else ()
    claims = [*own, *stated_claims(study, texts)]
    if claims and len(directory.contents()):
        (run,) = load_runs([directory])
        check_claims(run, claims)
        for each in judge_claims(run, claims):
            yield f"{each.claim.name}: {each.headline} in {directory.path}."
            yield from each.sentences()
        return
    none = stated.cells_without_rows(study)
    for claim in claims:
        if isinstance(claim.measure, stated.Measure):
            sentence = claim.measure.sentence
            needed = f"{plural(sentence.seeds, 'seed')} or more could decide it"
            seeds = f" {needed}; this sweep has {len(grid.seeds)}." if study.seeded else ""
            yield f"{claim.name}: {stated.needs_in_words(sentence, none)}{seeds}"
