"""Claims on section 7's first question: with what margin does random attention separate?

That it separates 100 samples is no claim: from 10 heads on gradients have 400 dimensions or more,
so that any labels are separated.
"""

from __future__ import annotations

import pandas as pd

from overfit_cli.claims.cells import Selection
from overfit_cli.claims.stated import stated_claim
from overfit_cli.studies.multihead.claims import PAPER_NAME
from overfit_cli.studies.multihead.mixture.parameters import MultiheadMixtureParameters

PRESET = "heads-random-attention"
MANY = (10, 100, 500)
"""Numbers of heads of which the claims speak."""

SIGMA = 1.0
"""The deviation of W's entries of which they speak."""


def _select(cells: pd.DataFrame) -> pd.DataFrame:
    return Selection(
        MultiheadMixtureParameters,
        at={"initialisation": "attention", "sigma_init": SIGMA, "heads": MANY, "training_steps": 1},
        vary={"heads"},
        alike={"certify", "test_samples", "learning_rate", "step_rule", "optimiser"},
        includes={"heads": MANY},
        preset=PRESET,
    ).of(cells)


RANDOM_ATTENTION_CLAIMS = (
    stated_claim(
        _select,
        MultiheadMixtureParameters,
        "ntk_margin / ntk_margin_first >= 2 with at least 10 seeds",
        number="for each H the median ratio",
        because="twice as large",
        name="mixture-random-attention-over-first-phase",
        source=f"ours, on the first question of section 7 of {PAPER_NAME}",
        statement="At U = 0 and W ~ N(0, 1), with 10, 100 and 500 heads and 100 samples, the "
        "tangent kernel's margin is at least twice that after the first phase of section 5.1.",
        figure="random-attention",
        preset=PRESET,
    ),
)
