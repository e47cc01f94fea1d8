"""How sure a verdict on a sentence is: its design, its rates of error, and what would decide it.

Rates are those of `claims.rates`: the claim's own cells, resampled.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from overfit_cli.claims.everywhere import FEWEST
from overfit_cli.claims.rates import FEWEST_PILOT, WANTED, Rates, rates, seeds_to_decide
from overfit_cli.claims.sentences import Measure, claim
from overfit_cli.core.claim import Claim, UndecidedError
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.text import plural
from overfit_cli.core.registry import claims_of
from overfit_cli.report.judge import Judged, LoadedRun, judge_families, load_runs
from overfit_cli.sweeps.manifest import read_manifest


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
        command: what trains the seeds that it needs; empty where nothing is needed.
    """

    judged: Judged
    rates: Rates | None = None
    seeds: int = 0
    needed: int | None = None
    missing: int = 0
    command: str = ""

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
            return ["As measured it lies so near the margin's end that 1000 seeds do not decide it."]
        share = f"{100 * WANTED:.0f} %"
        if self.needed <= self.seeds:
            return [f"As measured, {self.needed} seeds decide it with a probability of {share}."]
        run = f": {self.command}" if self.command else "."
        return [f"As measured it takes {self.needed} seeds to decide it with {share}{run}"]


def decide_sentences(
    path: Path, texts: Sequence[str], conditions: Sequence[str] = (), *, plan: bool = False
) -> list[Decision]:
    """Judge sentences on a run directory; without any, the claims of its study.

    Args:
        path: the run directory.
        texts: the claims.
        conditions: conditions that choose cells, such as `n=5:20`.
        plan: see `decide`.

    Raises:
        UserError: if it has no cells, a text is no claim, or names what the cells do not have.
    """
    (run,) = load_runs([path], path, conditions)
    claims = [claim(text, run.study) for text in texts] or list(claims_of(run.study))
    check_names(claims, run)
    return decide(run, claims, plan=plan)


def check_names(claims: Sequence[Claim], run: LoadedRun) -> None:
    """Refuse a sentence that names what the cells do not have, and two of one name.

    Raises:
        UserError: naming it.
    """
    names = [each.name for each in claims]
    for name in names:
        if names.count(name) > 1:
            raise BadValue("claim", name, "two are called so; write a name before one: 'NAME: ...'.")
    for each in claims:
        if isinstance(each.measure, Measure):
            with contextlib.suppress(UndecidedError):
                each.measure.sentence.parts(each.measure.table(run.rows(each)))


def decide(run: LoadedRun, claims: Sequence[Claim], *, plan: bool = False) -> list[Decision]:
    """Judge claims on a run, all together a family; see `Decision`.

    Args:
        run: the run.
        claims: the claims; rates are only known of sentences.
        plan: whether to find the seeds that each needs, whatever its verdict is.
    """
    path = run.directory.path
    judged = [Judged(run.study.name, claim, run.judge(claim), path) for claim in claims]
    families = judge_families(judged, lambda one: run.judge(one.claim))
    return [_decision(run, claim, plan=plan) for claim in families]


def _decision(run: LoadedRun, judged: Judged, *, plan: bool) -> Decision:
    measure = judged.claim.measure
    if not isinstance(measure, Measure) or not run.study.seeded:
        return Decision(judged)
    try:
        parts = measure.sentence.parts(measure.table(run.rows(judged.claim)))
    except (UndecidedError, UserError):
        return Decision(judged)
    seeds, missing = len(parts[0].low), sum(part.unknown for part in parts)
    if seeds < FEWEST_PILOT:
        return Decision(judged, None, seeds, missing=missing)
    statistic = measure.sentence.statistic
    with run.looks_level():
        simulated = rates(parts, statistic) if seeds >= FEWEST[statistic] else None
        needed = None
        if plan or judged.headline == "inconclusive":
            needed = seeds_to_decide(parts, statistic)
    command = _command(run, needed) if needed is not None and needed > seeds else ""
    return Decision(judged, simulated, seeds, needed, missing, command)


def _command(run: LoadedRun, seeds: int) -> str:
    """The command of a run's last sweep, with so many seeds; empty where it is not known."""
    manifest = read_manifest(run.directory.path)
    if manifest is None or not manifest.runs:
        return ""
    words = list(manifest.runs[-1].command)
    if "sweep" not in words:
        return ""
    kept, skip = [], False
    for word in words:
        if skip or word.startswith("--seeds="):
            skip = False
            continue
        skip = word == "--seeds"
        if not skip:
            kept.append(word)
    return shlex.join([*kept, "--seeds", str(seeds)])
