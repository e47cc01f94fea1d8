"""How sure a verdict on a sentence is: its design, its rates of error, and what would decide it.

Rates are those of `claims.rates`: the claim's own cells, resampled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from overfit_cli.claims.designs import Design, settings_lacking
from overfit_cli.claims.quantities import Part
from overfit_cli.claims.rates import (
    FEWEST_PILOT,
    MOST_SEEDS,
    WANTED,
    Rates,
    fewest_seeds,
    seeds_to_decide,
)
from overfit_cli.claims.rates import rates as rates_of
from overfit_cli.claims.sentences import Measure, claim
from overfit_cli.core.claim import Claim, UndecidedError
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import percent
from overfit_cli.report.judge import Judged, judge_families
from overfit_cli.report.runs import LoadedRun, Table, complete_cells, load_runs


@dataclass(frozen=True)
class Decision:
    """A judged sentence, how sure its verdict is, and what would decide it.

    Attributes:
        judged: the claim with its measurement.
        design: the cells that it is judged on; None where none bears on it.
        rates: how often it would be judged wrongly, and rightly; None where nothing is drawn, or
            too few seeds are there.
        needed: the fewest seeds that would decide it in this run, at the level of a further look
            where more are needed than there are; None where they are not known.
        anew: the same in a run of its own.
        at_least: the fewest seeds that could decide it, where there are too few to say more.
        lacking: the parameters of which other values are needed, with those values.
    """

    judged: Judged
    design: Design | None = None
    rates: Rates | None = None
    needed: int | None = None
    anew: int | None = None
    at_least: int = 0
    lacking: Mapping[str, str] = field(default_factory=dict)

    @property
    def seeds(self) -> int:
        """The number of seeds that are there."""
        return 0 if self.design is None else len(self.design.seeds)

    @property
    def is_open(self) -> bool:
        """Whether further cells would decide it."""
        return self.judged.measurement.verdict in ("inconclusive", "not run")

    @property
    def lacks_seeds(self) -> bool:
        """Whether more seeds than there are would decide it."""
        return max(self.needed or 0, self.at_least) > self.seeds

    @property
    def lacks_cells(self) -> bool:
        """Whether cells are missing that can be run."""
        return self.design is not None and self.design.is_mendable

    def sentences(self, *, plan: bool = False) -> Iterator[str]:
        """Yield the sentences about its design, its rates of error, and what would decide it.

        Args:
            plan: whether to say how many seeds it takes, whatever the verdict is.
        """
        if self.design is not None:
            yield from self.design.sentences()
        if self.judged.measurement.decided == "case" and self.rates is None:
            return
        if self.rates is not None:
            yield self.rates.in_words()
        if self.design is not None and (self.is_open or plan):
            yield from self._plan_in_words()

    def _plan_in_words(self) -> Iterator[str]:
        assert self.design is not None
        share = percent(WANTED)
        if self.lacks_cells and self.is_open:
            again = "; where they fail again, a condition can leave them out"
            yield f"The cells that are missing come first{again * (not self.design.failed.empty)}."
        if self.at_least:
            pilot = f"A plan takes {FEWEST_PILOT} seeds or more with all their cells"
            yield f"{pilot}; {self.at_least} could decide it."
        elif self.needed is None:
            most = f"As measured, {MOST_SEEDS} seeds do not decide it"
            yield f"{most}: it lies at the margin's end."
        elif self.lacks_seeds:
            own = f", and {self.anew} in a run of their own" if self.anew else ""
            yield f"As measured it takes {self.needed} seeds to decide it with {share}{own}."
        else:
            seeds = f"{self.needed} seeds decide it with a probability of {share}"
            yield f"As measured, {seeds}{', once they have all cells' * self.lacks_cells}."


def decide_sentences(
    path: Path, texts: Sequence[str], conditions: Sequence[str] = (), *, plan: bool = False
) -> list[Decision]:
    """Judge sentences on a run directory; without any, the claims of its study and of its preset.

    Args:
        path: the run directory.
        texts: sentences, or names of the run's own claims.
        conditions: conditions that choose cells, such as `n=5:20`.
        plan: whether to find the seeds that each needs, whatever its verdict is.

    Raises:
        UserError: if it has no cells, a text is no claim, or names what the cells do not have.
    """
    (run,) = load_runs([path], path, conditions)
    claims = [run.claim(text) for text in texts]
    check_claims(claims, run.rows)
    return decide(run, claims or run.claims(), plan=plan)


def decide_cells(cells: pd.DataFrame, study: AnyStudy, texts: Sequence[str]) -> list[Judged]:
    """Judge sentences on cells from anywhere; see `judge_cells`.

    Raises:
        UserError: as `decide_sentences`, and for rows that are no cells of the study.
    """
    table = Table(complete_cells(cells.reset_index(drop=True), study), study)
    claims = [claim(text, study) for text in texts]
    check_claims(claims, lambda _: table.rows)
    judged = [Judged(study.name, each, table.judge(each), None) for each in claims]
    return judge_families(judged, lambda each: table.judge(each.claim))


def check_claims(claims: Sequence[Claim], rows: Callable[[Claim], pd.DataFrame]) -> None:
    """Refuse a sentence that names what the cells do not have, and two of one name.

    Args:
        claims: the claims.
        rows: the cells of each.

    Raises:
        BadValue: naming it.
    """
    names = [each.name for each in claims]
    for name in names:
        if names.count(name) > 1:
            raise BadValue("claim", name, "two are called so; write a name before: 'NAME: ...'.")
    for each in claims:
        if isinstance(each.measure, Measure):
            with contextlib.suppress(UndecidedError):
                each.measure.sentence.parts(each.measure.table(rows(each)))


def decide(run: LoadedRun, claims: Sequence[Claim], *, plan: bool = False) -> list[Decision]:
    """Judge claims on a run, all together a family; see `Decision`.

    Args:
        run: the run.
        claims: the claims; rates are only known of sentences.
        plan: see `decide_sentences`.
    """
    path = run.directory.path
    judged = [Judged(run.study.name, each, run.judge(each), path) for each in claims]
    families = judge_families(judged, lambda each: run.judge(each.claim))
    return [decision(run, each, plan=plan) for each in families]


def decision(run: LoadedRun, judged: Judged, *, plan: bool = False) -> Decision:
    """Return how sure a verdict on a run is; only the verdict of a claim that is no sentence."""
    measure, parts = judged.claim.measure, run.parts(judged.claim)
    if not isinstance(measure, Measure):
        return Decision(judged)
    if judged.measurement.verdict == "not run":
        table, lacking = measure.table(run.rows(judged.claim)), dict[str, str]()
        with contextlib.suppress(UserError):
            lacking = settings_lacking(measure.sentence, table)
        return Decision(judged, lacking=lacking)
    decided = Decision(judged, run.design(judged.claim), run.rates(judged.claim))
    if not parts or not (plan or decided.is_open):
        return decided
    known = _whole_seeds(parts) if decided.lacks_cells else parts
    statistic = measure.sentence.statistic
    if len(known[0].low) < FEWEST_PILOT:
        with run.looks_level(later=1):
            return replace(decided, at_least=fewest_seeds(statistic))
    seeds, anew, needed = len(parts[0].low), None, None
    if plan:
        anew = needed = seeds_to_decide(known, statistic)
    if decided.is_open:
        if decided.lacks_cells:
            with run.looks_level():
                needed = seeds_to_decide(known, statistic)
        if needed is None or needed > seeds or not decided.lacks_cells:
            with run.looks_level(later=1):
                needed = seeds_to_decide(known, statistic, more_than=seeds)
    decided = replace(decided, needed=needed, anew=anew if anew != needed else None)
    if plan and decided.lacks_seeds:
        with run.looks_level(later=1):
            decided = replace(decided, rates=rates_of(known, statistic, needed))
    return decided


def _whole_seeds(parts: Sequence[Part]) -> list[Part]:
    """The parts of the seeds whose numbers are all known."""
    known = np.logical_and.reduce([part.low == part.high for part in parts])
    return [replace(part, low=part.low[known], high=part.high[known]) for part in parts]
