"""Claims of figures 4 and 5 of Deora et al. 2024: how fast do heads find a planted one?"""

from __future__ import annotations

from typing import Any

import pandas as pd

from overfit_cli.claims.cells import Selection, Values
from overfit_cli.claims.stated import stated_claim
from overfit_cli.core.claim import Kind
from overfit_cli.stats.intervals import middle
from overfit_cli.studies.multihead.claims import ALL_HEADS, PAPER_NAME, speed_claim, with_step_ends
from overfit_cli.studies.multihead.planted.gap_claims import CLAIMS as GAP_CLAIMS
from overfit_cli.studies.multihead.planted.parameters import MultiheadPlantedParameters

ROOT: Values = {"optimiser": "gd", "step_rule": "sqrt-heads", "learning_rate": 1.0}
MOMENTUM: Values = {**ROOT, "optimiser": "momentum"}
DESCENT_PRESET, MOMENTUM_PRESET = "heads-fig4", "heads-fig5"


def _select(cells: pd.DataFrame, values: Values, preset: str) -> pd.DataFrame:
    """The cells of a setting; samples and steps are those of the paper and of the preset."""
    return Selection(
        MultiheadPlantedParameters,
        at=values,
        vary={"heads"},
        alike={"certify", "test_samples"},
        includes=ALL_HEADS,
        preset=preset,
    ).of(cells)


def _descent(cells: pd.DataFrame) -> pd.DataFrame:
    return _select(cells, ROOT, DESCENT_PRESET)


def _ratios_of_methods(cells: pd.DataFrame) -> pd.DataFrame:
    """The steps of momentum over those of gradient descent, of each seed the middle H, or ends."""
    quick, slow = (
        with_step_ends(chosen).set_index(["seed", "heads"])
        for chosen in (_select(cells, MOMENTUM, MOMENTUM_PRESET), _descent(cells))
    )
    least, most = (
        (quick[end] / slow[other]).groupby("seed").agg(middle)
        for end, other in (("least_steps", "most_steps"), ("most_steps", "least_steps"))
    )
    ends = pd.DataFrame({"least": least, "most": most})
    ratio = least.where(least == most)
    return ends.assign(ratio=ratio, status="done").reset_index()


def _fields(
    kind: Kind, name: str, source: str, statement: str, preset: str = DESCENT_PRESET
) -> dict[str, Any]:
    return {
        "name": f"planted-{name}",
        "kind": kind,
        "source": f"{PAPER_NAME}, {source}",
        "statement": statement,
        "figure": "heads",
        "preset": preset,
    }


WORDS = "gradient descent with steps of √H"

CLAIMS = (
    speed_claim(
        _descent,
        MultiheadPlantedParameters,
        faster=True,
        hypotheses="DM2 with the sizes of appendix G, 1000 samples, zero initialisation; the law "
        "of the planted heads, c = 1 in steps of c √H, H from 1 to 50, 1000 steps and the training "
        "loss of 0.02 are choices of this tool",
        **_fields(
            "paper",
            "gd-faster",
            "appendix G, on figure 4",
            f"Under {WORDS} overparameterization somewhat improves the speed of convergence: the "
            "steps to a training loss of 0.02 fall with H.",
        ),
    ),
    speed_claim(
        _descent,
        MultiheadPlantedParameters,
        faster=True,
        to_the_end=True,
        **_fields(
            "ours",
            "gd-ever-faster",
            "figure 4, with the step sizes and marks of this tool",
            f"Under {WORDS} training is faster the more heads there are: it takes fewer steps to a "
            "training loss of 0.02, up to 50 heads.",
        ),
    ),
    stated_claim(
        _ratios_of_methods,
        MultiheadPlantedParameters,
        "ratio < 1 with at least 10 seeds",
        number="its steps to the target loss over those of gradient descent",
        because="1 is no gain",
        between={"ratio": ("least", "most")},
        after_selection=True,
        **_fields(
            "ours",
            "momentum-sooner",
            "appendix G, with the step sizes, steps and marks of this tool",
            "Momentum of 0.9 takes fewer steps to a training loss of 0.02 than gradient descent, "
            "both with steps of √H.",
            MOMENTUM_PRESET,
        ),
    ),
    *GAP_CLAIMS,
)
