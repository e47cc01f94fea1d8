"""Decisions: verdicts on sentences with their designs, their rates of error, and what decides them.

Rates are those of `claims.rates`: the claim's own cells, resampled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from overfit_cli.claims.designs import (
    Design,
    needs_in_words,
    settings_lacking,
    table_without_cells,
)
from overfit_cli.claims.everywhere import verdicts_at_extremes
from overfit_cli.claims.quantities import ContourPower, Part
from overfit_cli.claims.rates import (
    FEWEST_PILOT,
    MOST_SEEDS,
    WANTED,
    Rates,
    fewest_seeds,
    seeds_to_decide,
)
from overfit_cli.claims.stated import Measure, claim
from overfit_cli.core.claim import Claim, UndecidedError, Verdict
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.registry import claims_of
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import percent, plural
from overfit_cli.report.judge import Judged, judge_families
from overfit_cli.report.runs import LoadedRun, Table, complete_cells, load_runs, unknown_name
from overfit_cli.stats.intervals import level_of_each, set_level
from overfit_cli.sweeps.grid import Grid
from overfit_cli.sweeps.manifest import stated_claims
from overfit_cli.sweeps.store import RunDirectory

Level = Callable[[int], AbstractContextManager[None]]
"""Gives intervals the level of a look so many looks later; see `LoadedRun.looks_level`."""


@dataclass(frozen=True)
class Decision:
    """A judged sentence, how sure its verdict is, and what would decide it.

    Attributes:
        design: the cells that it is judged on; None where none bears on it.
        parts: the numbers that it is judged on; none where nothing is drawn, or none is known.
        rates: how often it would be judged wrongly, and rightly; None where nothing is drawn, or
            too few seeds are there.
        extremes: the verdicts if all missing cells were as good as can be, and as bad; None where
            none is missing, or that isn't known.
        needed: the fewest seeds that would decide it in these cells' run, at the level of a further
            look where more are needed than there are; None where they are not known.
        at_least: the fewest seeds that could decide it, where there are too few to say more.
        lacking: the parameters of which other values are needed, with those values.
    """

    judged: Judged
    design: Design | None = None
    parts: Sequence[Part] = ()
    rates: Rates | None = None
    extremes: tuple[Verdict, Verdict] | None = None
    needed: int | None = None
    at_least: int = 0
    lacking: Mapping[str, str] = field(default_factory=dict)

    @property
    def seeds(self) -> int:
        """The number of seeds that are there."""
        return 0 if self.design is None else len(self.design.seeds)

    @property
    def is_open(self) -> bool:
        """Whether further cells would decide it."""
        return self.judged.headline in ("inconclusive", "not run")

    @property
    def lacks_seeds(self) -> bool:
        """Whether more seeds than there are would decide it."""
        return self.is_open and max(self.needed or 0, self.at_least) > self.seeds

    @property
    def lacks_numbers(self) -> bool:
        """Whether a number that it is judged on is not known."""
        return any(part.unknown for part in self.parts)

    @property
    def lacks_cells(self) -> bool:
        """Whether cells are missing that it takes and that can be run."""
        missing = self.design is not None and self.design.is_mendable
        return missing and (self.lacks_numbers or not self.parts)

    def sentences(self) -> Iterator[str]:
        """Yield the sentences about its design, its rates of error, and what would decide it."""
        if self.design is not None:
            yield from self.design.sentences()
        if self.extremes is not None:
            yield _extremes_in_words(*self.extremes)
        if self.rates is not None:
            yield self.rates.in_words()
        if self.design is not None and self.is_open:
            yield from self._plan_in_words(self.design)

    def _plan_in_words(self, design: Design) -> Iterator[str]:
        share = percent(WANTED)
        if self.lacks_cells:
            again = "; if they fail again, a condition can leave them out"
            yield f"The cells that are missing come first{again if len(design.failed) else ''}."
        if not self.parts:
            return
        if self.judged.family > 1:
            share = f"{share} at the level of {self.judged.family} verdicts together"
        if self.at_least:
            whole = " with all their cells" if self.lacks_cells else ""
            pilot = f"A plan takes {FEWEST_PILOT} seeds or more{whole}"
            yield f"{pilot}; {self.at_least} could decide it."
        elif self.needed is None:
            most = f"As measured, {MOST_SEEDS} seeds do not decide it"
            why = "too many cells fail" if self.lacks_numbers else "it lies at the margin's end"
            yield f"{most}: {why}."
        elif self.lacks_seeds:
            seeds = plural(self.needed, "seed")
            yield f"As measured it takes {seeds} to decide it with a probability of {share}."
        else:
            verb = "decides" if self.needed == 1 else "decide"
            seeds = f"{plural(self.needed, 'seed')} {verb} it with a probability of {share}"
            yield f"As measured, {seeds}{', once they have all cells' * self.lacks_cells}."


def _extremes_in_words(good: Verdict, bad: Verdict) -> str:
    said = {"holds": "it holds", "fails": "it fails"}
    first, second = (said.get(verdict, f"it is {verdict}") for verdict in (good, bad))
    if first == second:
        return f"Whatever the missing cells come to, {first}."
    return f"If the missing cells are as good as can be, {first}; if as bad, {second}."


def decide_sentences(
    path: Path, texts: Sequence[str], conditions: Sequence[str] = ()
) -> list[Decision]:
    """Judge sentences on a run directory; without any, the claims of its study and of its preset.

    Args:
        texts: sentences, or names of the run's own claims.
    """
    (run,) = load_runs([path], path, conditions)
    claims = [run.claim(text) for text in texts]
    check_claims(claims or _present_claims(run), run.table)
    return _decide(run, claims or run.claims())


def _decide(run: LoadedRun, claims: Sequence[Claim]) -> list[Decision]:
    judged = [Judged(run.study.name, each, run.judge(each), run.directory.path) for each in claims]
    families = judge_families(judged, lambda each: run.judge(each.claim))
    return [decision(run.table(each.claim), each, run.looks_level) for each in families]


def _present_claims(run: LoadedRun) -> list[Claim]:
    return [*claims_of(run.study)] if (run.cells["status"] == "done").any() else []


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
    if claims and directory.contents().cells:
        (run,) = load_runs([directory.path], directory.path)
        check_claims(claims, run.table)
        for decided in _decide(run, claims):
            yield f"{decided.judged.claim.name}: {decided.judged.headline} in {directory.path}."
            yield from decided.sentences()
        return
    table = table_without_cells(study)
    for each in claims:
        if isinstance(each.measure, Measure):
            sentence = each.measure.sentence
            needed = f"{plural(sentence.seeds, 'seed')} or more could decide it"
            seeds = f" {needed}; this sweep has {len(grid.seeds)}." if study.seeded else ""
            yield f"{each.name}: {needs_in_words(sentence, table)}{seeds}"


def problem_with_claims(path: Path) -> str:
    """Return a sentence where a claim names what a run's cells do not have; or nothing."""
    (run,) = load_runs([path], path)
    try:
        check_claims([*_present_claims(run), *run.stated], run.table)
    except BadValue as error:
        return f"A claim can't be judged: {error}"
    return ""


def decide_cells(cells: pd.DataFrame, study: AnyStudy, texts: Sequence[str]) -> list[Decision]:
    """Judge sentences on cells from anywhere; see `judge_cells`."""
    table = Table(complete_cells(cells.reset_index(drop=True), study), study)
    claims = [claim(text, study) for text in texts]
    check_claims(claims, lambda _: table)
    judged = [Judged(study.name, each, table.judge(each), None) for each in claims]
    families = judge_families(judged, lambda each: table.judge(each.claim))
    return [decision(table, each, lambda _: nullcontext()) for each in families]  # no looks


def check_claims(claims: Sequence[Claim], table: Callable[[Claim], Table]) -> None:
    """Refuse a sentence that names what the cells do not have, and two of one name."""
    names = [each.name for each in claims]
    for name in names:
        if names.count(name) > 1:
            raise BadValue("claim", name, "two are called so; write a name before: 'NAME: ...'.")
    for each in claims:
        if (error := unknown_name(each, table(each))) is not None:
            raise error


def decision(table: Table, judged: Judged, level: Level) -> Decision:
    """Return how sure a verdict is; only the verdict of a claim that is no sentence."""
    each = judged.claim
    if not isinstance(each.measure, Measure):
        return Decision(judged)
    lacking = _lacking(table, judged, each.measure)
    if judged.measurement.verdict == "not run":
        return Decision(judged, lacking=lacking)
    design, parts = table.design(each), table.parts(each)
    with level(0):
        extremes = verdicts_at_extremes(parts)
    if design is not None and each.measure.choose is None:
        lacking = lacking or design.unswept
    decided = Decision(judged, design, parts, extremes=extremes, lacking=lacking)
    if parts and decided.is_open:
        decided = _planned(decided, level)
    with level(0):
        return replace(decided, rates=table.rates(each))


def _lacking(table: Table, judged: Judged, measure: Measure) -> Mapping[str, str]:
    """The values that a sentence needs and cells lack, where none bears on it."""
    if measure.choose is not None:
        return {}
    contours = any(isinstance(each.quantity, ContourPower) for each in measure.sentence.clauses)
    is_open = judged.measurement.verdict == "inconclusive" and judged.measurement.value is None
    if judged.measurement.verdict == "not run" or (contours and is_open):
        with contextlib.suppress(UndecidedError, UserError, KeyError):
            return settings_lacking(measure, table.rows)
    return {}


def _planned(decided: Decision, level: Level) -> Decision:
    parts, family = decided.parts, max(1, decided.judged.family)
    seeds = len(parts[0].low)
    known = _whole_seeds(parts) if decided.lacks_cells else parts

    @contextlib.contextmanager
    def look(later: int) -> Iterator[None]:
        with level(later), set_level(level_of_each(family)):
            yield

    if len(known[0].low) < FEWEST_PILOT:
        with look(1):
            return replace(decided, at_least=fewest_seeds(known))
    needed = None
    if decided.lacks_cells:
        with look(0):
            needed = seeds_to_decide(known)
        if needed is None:
            return decided
    if needed is None or needed > seeds:
        with look(1):
            needed = seeds_to_decide(known, more_than=seeds)
    return replace(decided, needed=needed)


def _whole_seeds(parts: Sequence[Part]) -> list[Part]:
    known = np.logical_and.reduce([part.low == part.high for part in parts])
    return [replace(part, low=part.low[known], high=part.high[known]) for part in parts]
