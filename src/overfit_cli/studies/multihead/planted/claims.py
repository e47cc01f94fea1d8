"""Claims of figures 4 and 5 of Deora et al. 2024: do heads find a planted one, and how fast?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pandas as pd

from overfit_cli.claims.cells import (
    Selection,
    Values,
    finite_numbers,
    require_done,
    require_trained,
)
from overfit_cli.claims.rules import Margin, exponentiate, judge_estimate, share_of_seeds
from overfit_cli.core.claim import Claim, Measurement, inconclusive
from overfit_cli.stats.intervals import mean_estimate
from overfit_cli.studies.multihead.claims import (
    FASTER,
    REACHED,
    bound_claims,
    cells_with_steps,
    power_of_heads,
    second_head_claims,
)
from overfit_cli.studies.multihead.planted.parameters import MultiheadPlantedParameters

FOUND_AT = 0.9
"""The least cosine of W and of U with the planted head's where it is found.

Cells end with both above 0.97, or with one below 0.42: see the study's guide.
"""

ON_MOST_TEACHERS = Margin(least=0.8, because="four planted heads of five", fewest_seeds=17)
SOONER = Margin(most=1.0, because="1 is no gain", fewest_seeds=10)

ROOT: Values = {"optimiser": "gd", "step_rule": "sqrt-heads", "learning_rate": 1.0}


@dataclass(frozen=True)
class Setting:
    """A way of training that claims are about."""

    values: Values
    preset: str  # one that has its cells
    source: str  # where the paper speaks of it
    words: str

    def select(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return its cells."""
        free = {"certify", "test_samples", "n", "training_steps"}
        return Selection(
            MultiheadPlantedParameters,
            at=self.values,
            vary={"heads"},
            alike=free,
            preset=self.preset,
        ).of(cells)


SETTINGS = {
    "gd": Setting(ROOT, "heads-fig4", "figure 4", "gradient descent with steps of √H"),
    "momentum": Setting(
        {**ROOT, "optimiser": "momentum"},
        "heads-fig5",
        "figure 5, left",
        "momentum with steps of √H",
    ),
    "adam": Setting(
        {"optimiser": "adam", "learning_rate": 0.02},
        "heads-fig5-adam",
        "figure 5, right",
        "Adam with constant steps of 0.02",
    ),
}

LARGE_ADAM = Setting(
    {"optimiser": "adam", "learning_rate": 0.06},
    "heads-adam-large",
    "figure 5, right",
    "Adam with DM1's constant steps of 0.06",
)
"""The step size that the paper names for DM1; for DM2 it names none."""


def finds_planted(cells: pd.DataFrame) -> pd.Series[bool]:
    """Return whether the heads have found the planted one; those that diverged haven't.

    Raises:
        UndecidedError: `inconclusive` where something else than training ended a cell, or one that
            is done has no number.
    """
    ended = require_done(require_trained(cells), 1.0)
    aligned = [finite_numbers(ended, name) > FOUND_AT for name in ("alignment_w", "alignment_u")]
    right: pd.Series[bool] = (aligned[0] & aligned[1]).reindex(cells.index, fill_value=False)
    return right


def _finds(cells: pd.DataFrame, setting: Setting) -> Measurement:
    """Measure on which share of the seeds every number of heads finds the planted one."""
    chosen = setting.select(cells)
    right = finds_planted(chosen)
    by_heads = right.groupby(chosen["heads"]).sum()
    return judge_estimate(
        share_of_seeds(right, chosen["seed"]),
        ON_MOST_TEACHERS,
        details={f"found, H = {heads}": float(count) for heads, count in by_heads.items()},
        note="The share of planted heads that every H finds: both cosines above "
        f"{FOUND_AT:g} at the end.",
    )


def _margin(cells: pd.DataFrame, setting: Setting) -> Measurement:
    """Measure the margin over γ_attn of the cells that found the planted head, at the worst H."""
    chosen = setting.select(cells)
    successes = chosen[finds_planted(chosen)]
    if successes.empty:
        raise inconclusive("No cell found the planted head.")
    shares = finite_numbers(successes, "margin_share")
    return judge_estimate(
        mean_estimate(shares.groupby(successes["seed"]).min()),
        REACHED,
        details={
            **{
                f"mean, H = {heads}": float(share)
                for heads, share in shares.groupby(successes["heads"]).mean().items()
            },
            "least": float(shares.min()),
            "most": float(shares.max()),
            "cells that found the planted head": len(successes),
            "cells that didn't": len(chosen) - len(successes),
        },
        note="The least margin over γ_attn, of the cells that found the planted head; of each "
        "planted head the worst H.",
    )


def _faster(cells: pd.DataFrame, setting: Setting) -> Measurement:
    chosen = setting.select(cells)
    return power_of_heads(chosen[finds_planted(chosen)], FASTER)


def ratio_of_steps(cells: pd.DataFrame, slow: pd.DataFrame) -> Measurement:
    """Measure the steps to the target over those of a slow setting with equal seeds and heads."""
    pairs = cells_with_steps(cells).merge(
        cells_with_steps(slow), on=["seed", "heads"], suffixes=("", "_slow")
    )
    ratio = pairs["steps_to_target"] / pairs["steps_to_target_slow"]
    finite = ratio.dropna()
    if finite.empty:
        raise inconclusive("No seed has both settings come to the target loss.")
    of_seeds = finite.map(math.log).groupby(pairs["seed"]).mean()
    return judge_estimate(
        exponentiate(mean_estimate(of_seeds)),
        SOONER,
        details={
            "pairs of cells": len(pairs),
            "pairs of which one never comes to the target": len(pairs) - len(finite),
        },
        note="Geometric means over heads, seed by seed.",
    )


def _momentum(cells: pd.DataFrame) -> Measurement:
    """Measure the steps of momentum over those of gradient descent, where both succeed."""
    quick, slow = (SETTINGS[name].select(cells) for name in ("momentum", "gd"))
    return ratio_of_steps(quick[finds_planted(quick)], slow[finds_planted(slow)])


def _claim(
    name: str,
    source: str,
    statement: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
    preset: str,
) -> Claim:
    return Claim(
        name=f"planted-{name}",
        source=f"Deora et al. 2024, {source}",
        statement=statement,
        holds_where=holds_where,
        measure=measure,
        figure="heads",
        preset=preset,
    )


_SHARE = "the share of planted heads that every H finds"
_POWER = "the power of H in the steps to the target loss"

CLAIMS = (
    *(
        _claim(
            f"{name}-finds",
            "appendix G",
            f"From zero {setting.words} finds the planted head, whatever H is.",
            ON_MOST_TEACHERS.in_words(_SHARE),
            partial(_finds, setting=setting),
            setting.preset,
        )
        for name, setting in {**SETTINGS, "adam-large": LARGE_ADAM}.items()
    ),
    *(
        _claim(
            f"{name}-margin",
            "appendix G",
            f"With {setting.words} heads reach the margin γ_attn.",
            REACHED.in_words(
                "the least margin over γ_attn at the worst H, of those that find the planted head,"
            ),
            partial(_margin, setting=setting),
            setting.preset,
        )
        for name, setting in SETTINGS.items()
    ),
    *(
        _claim(
            f"{name}-faster",
            setting.source,
            f"With {setting.words} training is faster the more heads there are.",
            FASTER.in_words(_POWER),
            partial(_faster, setting=setting),
            setting.preset,
        )
        for name, setting in SETTINGS.items()
    ),
    _claim(
        "momentum-sooner",
        "appendix G",
        "Momentum significantly speeds gradient descent with steps of √H up.",
        SOONER.in_words("its steps to the target loss over those of gradient descent"),
        _momentum,
        SETTINGS["momentum"].preset,
    ),
    *bound_claims("planted", "heads-certificates-planted", "heads-random-planted"),
    *second_head_claims(MultiheadPlantedParameters, "planted", "heads-second-planted", errors=True),
)
