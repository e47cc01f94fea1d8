"""Error rates of all claims of a study, each in its made-up worlds at its preset's design."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module

import pandas as pd

from overfit_cli.claim import Claim
from overfit_cli.claims.calibration import TRUTHS, Rates, Truth, Worlds, rates
from overfit_cli.errors import UserError
from overfit_cli.registry import claims_of, find_study
from overfit_cli.study import AnyStudy
from overfit_cli.sweeps.grid import make_grid
from overfit_cli.sweeps.presets import find_preset, preset_texts
from overfit_cli.sweeps.ranges import parse_seeds


@dataclass(frozen=True)
class Calibrated:
    """A claim's verdicts in its worlds.

    Attributes:
        claim: the claim.
        cells, seeds: how many its preset's quick profile has.
        found: how often it got each verdict, for each truth.
    """

    claim: Claim
    cells: int
    seeds: int
    found: Mapping[Truth, Rates]


def worlds_of(study: AnyStudy) -> Mapping[str, Worlds]:
    """Return a study's made-up worlds by the name of the claim; none where it has none."""
    if not study.worlds_in:
        return {}
    found: Mapping[str, Worlds] = import_module(study.worlds_in).WORLDS
    return found


def calibrate(
    study: AnyStudy, runs: int, names: frozenset[str] = frozenset()
) -> Iterator[Calibrated]:
    """Judge a study's claims in their worlds many times.

    Args:
        study: the one that makes them.
        runs: how often in each world.
        names: of the claims to judge; empty for all.

    Raises:
        UserError: if a claim has no worlds.
    """
    worlds = worlds_of(study)
    for claim in claims_of(study):
        if names and claim.name not in names:
            continue
        if claim.name not in worlds:
            raise UserError(f"The claim {claim.name} has no made-up worlds to be calibrated in.")
        own, cells = worlds[claim.name], design(claim.preset)
        found = {truth: rates(claim, getattr(own, truth), cells, runs, truth) for truth in TRUTHS}
        yield Calibrated(claim, len(cells), cells["seed"].nunique(), found)


@functools.cache
def design(preset_name: str) -> pd.DataFrame:
    """Return the cells of a preset's quick profile, done but not measured.

    Raises:
        UserError: if there is no such preset.
    """
    preset = find_preset(preset_name)
    if preset is None:
        raise UserError(f"There is no preset {preset_name!r}.")
    study = find_study(preset.content.study)
    texts, places = preset_texts(preset, "quick")
    seeds = parse_seeds(str(preset.profile("quick").seeds))
    grid = make_grid(study, texts, seeds, places)
    rows = [{**cell.parameters.model_dump(), "seed": cell.seed} for cell in grid.cells()]
    return pd.DataFrame(rows).assign(study=study.name, status="done", reason="")
