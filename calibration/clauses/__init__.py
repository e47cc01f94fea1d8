"""Worlds that break one clause of a claim: kept cells, changed so that a clause of it is false.

Where the number of a claim moves to the end of its margin, its error rates say what is told.
They say nothing of a clause that no number measures, such as "at every step" or "of both signs":
here each clause is broken by itself, and the table of error rates counts what is told. A module for
each paper has its `BROKEN`.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

import numpy as np
import pandas as pd

import overfit_cli
from overfit_cli.core.claim import Measurement, Verdict
from overfit_cli.core.registry import claims_of, find_study
from overfit_cli.core.training import named_rng

Change = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]


@dataclass(frozen=True)
class Broken:
    """A claim on kept cells that a change makes false, or that it leaves open or true.

    Attributes:
        claim: its name, or several of one study with spaces between them.
        clause: what is broken, in the words of its statement.
        run: the name of a kept run directory.
        change: from its cells, or their logged steps where the claim reads those, to the world's.
        verdicts: those that are right; "holds" is wrong of a clause that is broken.
    """

    claim: str
    clause: str
    run: str
    change: Change
    verdicts: tuple[Verdict, ...] = ("fails",)

    def judge(self, name: str) -> Measurement:
        """Return the measurement of one of its claims in the world."""
        random = named_rng(0, "broken", name)
        world = self.change(cells_of(self.run, name).copy(), random)
        return _claim(self.run, name).judge(world)


def cells_of(run: str, claim: str) -> pd.DataFrame:
    """Return a kept run's cells, or the logged steps that a claim reads."""
    return _loaded(run, _claim(run, claim).reads == "trajectories")


@functools.cache
def _loaded(run: str, trajectories: bool) -> pd.DataFrame:
    return overfit_cli.load(f"results/{run}", trajectories=trajectories)


def _claim(run: str, name: str) -> overfit_cli.Claim:
    study = find_study(str(_loaded(run, False)["study"].iloc[0]))
    return next(claim for claim in claims_of(study) if claim.name == name)


def broken() -> Iterator[Broken]:
    """Yield the worlds of all papers."""
    for module in pkgutil.iter_modules(__path__):
        yield from import_module(f"{__name__}.{module.name}").BROKEN


def caught(claim: str) -> tuple[int, int]:
    """Return how many worlds break a clause of a claim, and in how many its verdict is right."""
    false = [one for one in broken() if claim in one.claim.split() and "holds" not in one.verdicts]
    return len(false), sum(world.judge(claim).verdict in world.verdicts for world in false)
