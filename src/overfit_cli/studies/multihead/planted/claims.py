"""Claims of figures 4 and 5 of Deora et al. 2024: do heads find a planted one, and how fast?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, Values, is_unknown
from overfit_cli.claims.rules import Margin, exponentiate, judge_estimate, share_of_seeds
from overfit_cli.core.claim import Claim, Kind, Measurement
from overfit_cli.stats.intervals import median_estimate, middle
from overfit_cli.studies.multihead.claims import (
    ALL_HEADS,
    FASTER,
    PAPER_NAME,
    REACHED,
    bound_claims,
    log_steps,
    median_between,
    numbers,
    power_of_heads,
    trend_in_words,
    trend_of_heads,
)
from overfit_cli.studies.multihead.curve_claims import speed_claims
from overfit_cli.studies.multihead.planted.gap_claims import CLAIMS as GAP_CLAIMS
from overfit_cli.studies.multihead.planted.parameters import MultiheadPlantedParameters
from overfit_cli.studies.multihead.step_size_claims import second_head_claims

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
        """Return its cells; samples and steps are those of the paper and of the preset."""
        return Selection(
            MultiheadPlantedParameters,
            at=self.values,
            vary={"heads"},
            alike={"certify", "test_samples"},
            includes=ALL_HEADS,
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

STEPS_TO_MARGIN = {"gd": 10_000, "momentum": 1000, "adam": 5000}
"""More than in figures 4 and 5 where the margin of few heads still grows at their last step."""

LONG = {
    name: replace(
        SETTINGS[name],
        values={**SETTINGS[name].values, "training_steps": STEPS_TO_MARGIN[name]},
        preset=preset,
    )
    for name, preset in (("gd", "heads-planted-margin"), ("adam", "heads-planted-margin-adam"))
}

LARGE_ADAM = Setting(
    {"optimiser": "adam", "learning_rate": 0.06},
    "heads-adam-large",
    "figure 5, right",
    "Adam with DM1's constant steps of 0.06",
)
"""The step size that the paper names for DM1; for DM2 it names none."""


def finds_planted(cells: pd.DataFrame) -> tuple[pd.Series[bool], pd.Series[bool]]:
    """Return of which cells the heads have found the planted one, and of which that is unknown.

    Heads that diverged have not found it.
    """
    aligned = [numbers(cells, name) for name in ("alignment_w", "alignment_u")]
    right = (aligned[0] > FOUND_AT) & (aligned[1] > FOUND_AT)
    unnumbered = aligned[0].isna() | aligned[1].isna()
    return right, is_unknown(cells) | (unnumbered & (cells["status"] == "done"))


def _finds(cells: pd.DataFrame, setting: Setting) -> Measurement:
    """Measure on which share of the seeds every number of heads finds the planted one."""
    chosen = setting.select(cells)
    right, unknown = finds_planted(chosen)
    by_heads = right.groupby(chosen["heads"]).sum()
    return judge_estimate(
        share_of_seeds(right, chosen["seed"], unknown),
        ON_MOST_TEACHERS,
        details={f"found, H = {heads}": float(count) for heads, count in by_heads.items()},
        note="The share of planted heads that every H finds: both cosines above "
        f"{FOUND_AT:g} at the end.",
    )


def _margin(cells: pd.DataFrame, setting: Setting) -> Measurement:
    """Measure the margin over γ_attn at the worst H, the median over planted heads."""
    chosen = setting.select(cells)
    shares = numbers(chosen, "margin_share")
    least, most = (shares.fillna(end).groupby(chosen["seed"]).min() for end in (-np.inf, np.inf))
    right, _ = finds_planted(chosen)
    return judge_estimate(
        median_estimate(least, up_to=most),
        REACHED,
        details={
            **{
                f"mean where found, H = {heads}": float(share)
                for heads, share in shares[right].groupby(chosen["heads"][right]).mean().items()
            },
            "cells that found the planted head": int(right.sum()),
            "cells that didn't": int((~right).sum()),
        },
        note="The least margin over γ_attn, of each planted head the worst H; those that some H "
        "does not find are among them. The median over planted heads.",
    )


def _faster(cells: pd.DataFrame, setting: Setting) -> Measurement:
    return trend_of_heads(setting.select(cells), FASTER, MultiheadPlantedParameters, median_between)


def _somewhat_faster(cells: pd.DataFrame, setting: Setting) -> Measurement:
    return power_of_heads(setting.select(cells), FASTER, MultiheadPlantedParameters, median_between)


def _momentum(cells: pd.DataFrame) -> Measurement:
    """Measure the steps of momentum over those of gradient descent, of each seed the middle H.

    Steps that are not known lie between the steps that were taken and infinity.
    """
    quick, slow = (log_steps(SETTINGS[name].select(cells)) for name in ("momentum", "gd"))
    least, most = (
        (first - second).stack().groupby("seed").agg(middle)
        for first, second in ((quick[0], slow[1]), (quick[1], slow[0]))
    )
    return judge_estimate(
        exponentiate(median_estimate(least, up_to=most)),
        SOONER,
        details={
            f"cells of {name} that don't come to the target": int(np.isinf(steps[1]).sum().sum())
            for name, steps in (("momentum", quick), ("gradient descent", slow))
        },
        note="The steps of momentum over those of gradient descent: the middle of the ratios of "
        "all H, and the median over seeds.",
    )


def _claim(
    kind: Kind,
    name: str,
    source: str,
    statement: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
    preset: str,
) -> Claim:
    return Claim(
        name=f"planted-{name}",
        kind=kind,
        source=f"{PAPER_NAME}, {source}",
        statement=statement,
        hypotheses=_SETTING if kind == "paper" else "",
        holds_where=holds_where,
        measure=measure,
        figure="heads",
        preset=preset,
    )


_SETTING = (
    "DM2 with the sizes of appendix G, 1000 samples, zero initialisation; the law of the planted "
    "heads, c = 1 in steps of c √H, H from 1 to 50, 1000 steps and the training loss of 0.02 are "
    "choices of this tool"
)
_ASKED = "appendix G, with the step sizes, steps and marks of this tool"
_SHARE = "the share of planted heads that every H finds"

CLAIMS = (
    *(
        _claim(
            "ours",
            f"{name}-finds",
            _ASKED,
            f"From zero {setting.words} finds the planted head, for H from 1 to 50, in 1000 steps.",
            ON_MOST_TEACHERS.in_words(_SHARE),
            partial(_finds, setting=setting),
            setting.preset,
        )
        for name, setting in SETTINGS.items()
    ),
    _claim(
        "ours",
        "adam-large-finds",
        "appendix G, with the step size that it names for DM1",
        f"From zero {LARGE_ADAM.words} finds the planted head, for H from 1 to 50, in 1000 steps.",
        ON_MOST_TEACHERS.in_words(_SHARE),
        partial(_finds, setting=LARGE_ADAM),
        LARGE_ADAM.preset,
    ),
    *(
        _claim(
            "ours",
            f"{name}-margin",
            _ASKED,
            f"Under {setting.words} all models come within a twentieth of the margin γ_attn, for H "
            f"from 1 to 50, in {STEPS_TO_MARGIN[name]} steps.",
            REACHED.in_words("the median margin over γ_attn at the worst H"),
            partial(_margin, setting=setting),
            setting.preset,
        )
        for name, setting in {**LONG, "momentum": SETTINGS["momentum"]}.items()
    ),
    _claim(
        "paper",
        "gd-faster",
        "appendix G, on figure 4",
        f"Under {SETTINGS['gd'].words} overparameterization somewhat improves the speed of "
        "convergence: the steps to a training loss of 0.02 fall with H.",
        FASTER.in_words("the power of H in the steps to the target loss"),
        partial(_somewhat_faster, setting=SETTINGS["gd"]),
        SETTINGS["gd"].preset,
    ),
    *(
        _claim(
            "ours",
            name,
            f"{SETTINGS[setting].source}, with the step sizes and marks of this tool",
            f"Under {SETTINGS[setting].words} training is faster the more heads there are: it "
            "takes fewer steps to a training loss of 0.02, up to 50 heads.",
            trend_in_words(FASTER),
            partial(_faster, setting=SETTINGS[setting]),
            SETTINGS[setting].preset,
        )
        for name, setting in (
            ("gd-ever-faster", "gd"),
            ("momentum-faster", "momentum"),
            ("adam-faster", "adam"),
        )
    ),
    _claim(
        "ours",
        "momentum-sooner",
        _ASKED,
        "Momentum of 0.9 takes fewer steps to a training loss of 0.02 than gradient descent, both "
        "with steps of √H.",
        SOONER.in_words("its steps to the target loss over those of gradient descent"),
        _momentum,
        SETTINGS["momentum"].preset,
    ),
    *bound_claims("planted", "heads-certificates-planted", "heads-random-planted"),
    *GAP_CLAIMS,
    *speed_claims(
        MultiheadPlantedParameters,
        "planted",
        tuple(
            (name, setting.values, setting.preset, setting.words)
            for name, setting in SETTINGS.items()
        ),
        mark=0.02,
        kind="ours",
        source="appendix G, figures 4 and 5, with the marks of this tool",
    ),
    *second_head_claims(MultiheadPlantedParameters, "planted", "heads-second-planted", errors=True),
)
