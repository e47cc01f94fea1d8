"""How sure a verdict on a sentence is: its design, its rates of error, and what would decide it.

Rates are those of `claims.rates`: the claim's own cells, resampled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from overfit_cli.claims.rates import FEWEST_PILOT, WANTED, Rates, seeds_to_decide
from overfit_cli.claims.stated import Measure, claim
from overfit_cli.core.claim import Claim, UndecidedError
from overfit_cli.core.errors import BadValue
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.text import plural
from overfit_cli.report.judge import Judged, judge_families
from overfit_cli.report.runs import LoadedRun, Table, complete_cells, load_runs


@dataclass(frozen=True)
class Decision:
    """A judged sentence, and how sure its verdict is.

    Attributes:
        judged: the claim with its measurement.
        rates: how often it would be judged wrongly, and rightly; None where nothing is drawn, or
            too few seeds are there.
        seeds: the seeds that are there.
        needed: the fewest seeds that would decide it; None where they are not known.
        missing: the numbers that are not known, of cells that failed or are absent.
    """

    judged: Judged
    rates: Rates | None = None
    seeds: int = 0
    needed: int | None = None
    missing: int = 0

    @property
    def lacks_seeds(self) -> bool:
        """Whether more seeds than there are would decide it."""
        return self.needed is not None and self.needed > self.seeds

    def sentences(self, *, plan: bool = False) -> list[str]:
        """Return the sentences about the rates of error, and about what would decide it.

        Args:
            plan: whether to say how many seeds it takes, whatever the verdict is.
        """
        if self.judged.measurement.decided == "case" and self.rates is None:
            return []
        said = [self.rates.in_words()] if self.rates is not None else []
        if self.missing:
            said.append(f"Not known: {plural(self.missing, 'number')} of failed or absent cells.")
        is_open = self.judged.headline == "inconclusive"
        if is_open or plan:
            said += self._plan_in_words()
        return said

    def _plan_in_words(self) -> list[str]:
        if self.needed is None:
            if self.seeds < FEWEST_PILOT:
                return [f"A plan takes a pilot of {FEWEST_PILOT} seeds or more."]
            return ["As measured, 1000 seeds do not decide it: it lies at the margin's end."]
        share = f"{100 * WANTED:.0f} %"
        if not self.lacks_seeds:
            return [f"As measured, {self.needed} seeds decide it with a probability of {share}."]
        return [f"As measured it takes {self.needed} seeds to decide it with {share}."]


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
                each.measure.parts(rows(each))


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
    parts = run.parts(judged.claim)
    if not parts:
        return Decision(judged)
    seeds, missing = len(parts[0].low), sum(part.unknown for part in parts)
    needed = None
    if seeds >= FEWEST_PILOT and (plan or judged.headline == "inconclusive"):
        with run.looks_level():
            needed = seeds_to_decide(parts)
        if needed is None or needed > seeds:
            with run.looks_level(later=1):  # seeds that are added are a further look
                needed = seeds_to_decide(parts)
    return Decision(judged, run.rates(judged.claim), seeds, needed, missing)
