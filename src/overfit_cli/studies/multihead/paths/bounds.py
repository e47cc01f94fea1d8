"""The designs of the claims on paths, and verdicts on a quantity over its bound."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.bounds import OUT_OF_REACH
from overfit_cli.claims.cells import Selection, Values
from overfit_cli.claims.rules import THEOREM_RULE, Requirements, judge_theorem, mark_vacuous
from overfit_cli.core.claim import Measurement
from overfit_cli.studies.multihead.claims import claim_on, numbers
from overfit_cli.studies.multihead.paths.parameters import MultiheadPathsParameters

THEOREM, DESCENT, REGRET = "heads-theorem1", "heads-descent", "heads-regret"

ROUND_OFF = 1e-6
"""By how much a quotient of rounded numbers may pass its bound."""

START_LOSS = math.log(2)
"""The training loss at zero, which no step that descends exceeds."""

SETTINGS: dict[str, Values] = {
    THEOREM: {
        "leave_one_out": True,
        "training_steps": 10_000,
        "target_distance": 0.4,
        "sigma": 0.03,
    },
    DESCENT: {"sigma": 0.05},
    REGRET: {"sigma": 0.05, "target_distance": (4.0, 6.0)},
}
"""Where each preset's parameters are not the defaults, besides H, η and n."""


def select(cells: pd.DataFrame, preset: str) -> pd.DataFrame:
    """Return the cells of a preset's design, with those that a seed lacks."""
    vary = {
        DESCENT: {"heads", "learning_rate"},
        REGRET: {"heads", "learning_rate"},
        THEOREM: {"heads"},
    }
    alike = {"test_samples"} | ({"learning_rate"} if preset == THEOREM else set())
    return Selection(
        MultiheadPathsParameters,
        at=SETTINGS[preset],
        vary=vary[preset],
        alike=alike,
        preset=preset,
    ).of(cells)


def judge_bound(
    cells: pd.DataFrame,
    ratio: pd.Series[float],
    requirements: Requirements | None,
    details: dict[str, float],
) -> Measurement:
    """Judge whether all ratios are at most 1; vacuous where all are out of reach."""
    decades = pd.Series(np.log10(ratio.clip(lower=1e-300)), ratio.index)
    met = requirements.met() if requirements else pd.Series(True, ratio.index)
    if met.any():
        details |= {"measured over the bound, most": float(ratio[met].max())}
    return judge_theorem(
        ratio > 1 + ROUND_OFF,
        cells["seed"],
        unknown=ratio.isna(),
        requirements=requirements,
        decades_over=decades,
        details=details,
    )


def judge_telling(
    cells: pd.DataFrame,
    ratio: pd.Series[float],
    requirements: Requirements,
    excess: Mapping[str, pd.Series[float]],
    reason: str,
) -> Measurement:
    """Judge a quantity over its bound where descent alone does not keep it below.

    Args:
        excess: in words, by how much the bound lies above what steps that descend can reach;
            where it is above 0 the bound says nothing.
        reason: the same as a sentence; the claim is vacuous where no cell is left.
    """
    measured = judge_bound(cells, ratio, requirements, {})
    if measured.verdict != "holds":
        return measured
    telling = Requirements({**requirements.missed, **excess}, reason)
    if telling.met().any():
        return judge_bound(cells, ratio, telling, {})
    return mark_vacuous(measured, reason, telling.distances())


def time_of(cells: pd.DataFrame) -> pd.Series[float]:
    """η K of each cell."""
    return cells["learning_rate"].astype(float) * cells["training_steps"].astype(float)


def requirements_of(cells: pd.DataFrame, number: str) -> Requirements:
    """The conditions of Theorem 1 or 2 on H and η, in the corrected version of the paper."""
    needed, allowed = numbers(cells, f"theorem{number}_heads"), numbers(cells, "theorem_step_size")
    return Requirements(
        {
            "decades of heads missing": needed - np.log10(cells["heads"].astype(float)),
            "decades by which steps are too large": -(
                allowed - np.log10(cells["learning_rate"].astype(float))
            ),
        },
        "there are too few heads, or steps are too large",
    )


claim = partial(claim_on, "paths")

TARGET = "θ is W = 0 with the linear part's widest margin, at a distance of {} from zero"
CONDITIONS = (
    f"the appendix's on H and η, with the β₃ and ρ of the corrected version; {TARGET.format(0.4)}"
)
AND_REACH = f"{THEOREM_RULE}; vacuous where all are {OUT_OF_REACH:g} decades below the bound"
