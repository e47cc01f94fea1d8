"""Claims judged on both sides of a comparison, and the verdicts that change."""

from __future__ import annotations

from dataclasses import dataclass

from overfit_cli.claim import Measurement
from overfit_cli.report.comparison.sides import Side
from overfit_cli.report.judge import LoadedRun, judge_run
from overfit_cli.sweeps.store import RunDirectory


@dataclass(frozen=True)
class Verdicts:
    """A claim as it was judged on each side."""

    claim: str
    a: Measurement
    b: Measurement

    @property
    def changed(self) -> bool:
        """Whether the two verdicts differ."""
        return self.a.verdict != self.b.verdict


def verdicts_of(a: Side, b: Side) -> list[Verdicts]:
    """Return every claim that can be measured on both sides; none where they can't be judged so."""
    if why_not_judged(a, b) or b.is_published or a.study.name != b.study.name:
        return []
    first, second = (
        {
            one.claim.name: one.measurement
            for one in judge_run(LoadedRun(RunDirectory(side.path), side.study, side.cells))
            if one.measurement.verdict != "not run"
        }
        for side in (a, b)
    )
    return [Verdicts(name, first[name], second[name]) for name in first if name in second]


def why_not_judged(a: Side, b: Side) -> str:
    """Return why claims aren't judged on cells of another version; empty where all are of this."""
    if b.is_published or not (a.study.has_claims or b.study.has_claims):
        return ""
    old = [one for one in (a, b) if one.is_of_another_version]
    if not old:
        return ""
    which = " and ".join(f"{one.letter}'s of {one.version}" for one in old)
    return (
        f"Verdicts aren't compared: cells are of another version than the claims, {which} and the "
        f"claims of {a.study.version}."
    )
