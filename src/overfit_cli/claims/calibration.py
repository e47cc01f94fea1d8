"""Error rates of claims: how often made-up worlds, in which the truth is known, are misjudged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from overfit_cli.claim import Claim, Verdict
from overfit_cli.rng import named_rng

World: TypeAlias = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]
"""From cells that have parameters and seeds alone to the same with what would be measured."""

Truth = Literal["true", "false", "open"]
TRUTHS: Mapping[Truth, str] = {
    "true": "the claim is true as it is stated",
    "false": "the number lies at an end of the margin, or just outside it",
    "open": "the noise is too large, or the seeds too few, to tell",
}
MOST_ERRORS = 0.05
"""The share of runs in which "holds" may be said of what is false, or "fails" of what is true."""


@dataclass(frozen=True)
class Worlds:
    """Made-up cells for a claim, one world for each truth; see `TRUTHS`.

    Each is drawn anew for every run, at the design of the claim's preset: its cells, its seeds, and
    noise as large as measured.
    """

    true: World
    false: World
    open: World


@dataclass(frozen=True)
class Rates:
    """How often a claim got each verdict in one world.

    Attributes:
        runs: how many times it was judged.
        verdicts: how often with which verdict.
    """

    runs: int
    verdicts: Mapping[Verdict, int] = field(default_factory=dict)

    def share(self, verdict: Verdict) -> float:
        """Return the share of runs with that verdict."""
        return self.verdicts.get(verdict, 0) / self.runs


def rates(claim: Claim, world: World, design: pd.DataFrame, runs: int, *names: str) -> Rates:
    """Judge a claim in a world many times.

    Args:
        claim: what is judged.
        world: what measures the cells.
        design: one row per cell, with parameters and seed.
        runs: how many times; each draws the world anew.
        *names: of the stream of random numbers, so that each world has its own.
    """
    counts = Counter(
        claim.judge(world(design, named_rng(run, "world", claim.name, *names))).verdict
        for run in range(runs)
    )
    return Rates(runs, dict(counts))


def errors(truth: Truth, found: Rates) -> dict[Verdict, float]:
    """Return the shares of runs that misjudge a world, by the verdict that they give.

    Where the claim is true that is "fails", where it is false "holds", and where nothing tells,
    both of them.
    """
    wrong: dict[Truth, tuple[Verdict, ...]] = {
        "true": ("fails",),
        "false": ("holds",),
        "open": ("holds", "fails"),
    }
    return {verdict: found.share(verdict) for verdict in wrong[truth]}
