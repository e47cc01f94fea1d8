"""Error rates of claims: how often they misjudge made-up worlds, in which the truth is known.

A study's worlds are in a module of this folder; each claim is judged at its preset's design.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from calibration.damage import DAMAGES, HeavyTails
from overfit_cli.core.claim import Claim, Verdict
from overfit_cli.core.errors import UserError
from overfit_cli.core.registry import claims_of, find_study
from overfit_cli.core.study import AnyStudy
from overfit_cli.core.training import named_rng
from overfit_cli.sweeps.grid import Grid, parse_seeds
from overfit_cli.sweeps.presets import find_preset

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


def errors(truth: Truth, measured: Rates) -> dict[Verdict, float]:
    """Return the shares of runs that misjudge a world, by the verdict that they give.

    Where the claim is true that is "fails", where it is false "holds", and where nothing tells,
    both of them.
    """
    wrong: dict[Truth, tuple[Verdict, ...]] = {
        "true": ("fails",),
        "false": ("holds",),
        "open": ("holds", "fails"),
    }
    return {verdict: measured.share(verdict) for verdict in wrong[truth]}


MODULES: Mapping[str, str] = {
    "benign-vit": "benign_vit",
    "benign-cnn": "benign_cnn",
    "benign-vit-images": "benign_vit",
    "multihead-mixture": "multihead_mixture",
    "softmax-convergence": "softmax_convergence",
    "softmax-diffusion": "softmax_diffusion",
}
"""The module of this folder that has a study's `WORLDS`."""


@functools.cache
def told(study: AnyStudy) -> Mapping[str, tuple[Claim, Worlds]]:
    """Return a study's claims and their made-up worlds, by name.

    Those of a module of this folder stand before those that are made from a claim's sentence.
    """
    from calibration.made import worlds_of_sentence

    module = MODULES.get(study.name)
    by_hand: Mapping[str, Worlds] = import_module(f"calibration.{module}").WORLDS if module else {}
    found = dict[str, tuple[Claim, Worlds]]()
    for claim in claims_of(study) if study.paper else ():
        if claim.name in by_hand:
            found[claim.name] = claim, by_hand[claim.name]
        elif made := worlds_of_sentence(claim):
            found[claim.name] = made
    return found


def worlds_of(study: AnyStudy) -> Mapping[str, Worlds]:
    """Return a study's made-up worlds by the name of the claim; none where it has none."""
    return {name: worlds for name, (_, worlds) in told(study).items()}


def damaged_rate(
    claim: Claim,
    study: AnyStudy,
    world: World,
    design: pd.DataFrame,
    runs: int,
    damage: str,
    wrong: Verdict,
) -> float:
    """Return the share of runs in which a claim gets a wrong verdict in a damaged world.

    Args:
        claim, study: what is judged.
        world: the world before the damage.
        design: one row per cell, with parameters and seed.
        runs: how many times; each draws the world and the damage anew.
        damage: the name of the damage; see `damage.DAMAGES`.
        wrong: the verdict that is wrong in that world.
    """
    errors = 0
    for run in range(runs):
        draws = named_rng(run, "world", claim.name, damage)
        cells = world(design, HeavyTails(draws.bit_generator) if damage == "tails" else draws)
        random = named_rng(run, "damage", claim.name, damage)
        errors += wrong in DAMAGES[damage](claim, study, cells, random)
    return errors / runs


@functools.cache
def design(preset_name: str, profile: str = "quick") -> pd.DataFrame:
    """Return the cells of a preset's profile, done but not measured, with the quick one's seeds.

    Raises:
        UserError: if there is no such preset.
    """
    preset = find_preset(preset_name)
    if preset is None:
        raise UserError(f"There is no preset {preset_name!r}.")
    study = find_study(preset.study)
    chosen, seeds = preset.profile(profile), parse_seeds(str(preset.profile("quick").seeds))
    grid = Grid.read(study, chosen.texts, seeds, chosen.together, chosen.only)
    rows = [{**cell.parameters.model_dump(), "seed": cell.seed} for cell in grid.cells()]
    return pd.DataFrame(rows).assign(study=study.name, status="done", reason="")
