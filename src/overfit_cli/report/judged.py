"""A claim with its measurement, alone and at the level of all that are judged together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from overfit_cli.analysis.intervals import at_level, level_of_each
from overfit_cli.claim import Claim, Measurement, Verdict


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
