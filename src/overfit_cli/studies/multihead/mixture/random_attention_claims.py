"""Claims on section 7's first question: with what margin does random attention separate?

That it separates 100 samples is no claim: from 10 heads on gradients have 400 dimensions or more,
so that any labels are separated.
"""

from __future__ import annotations

import pandas as pd

from overfit_cli.claims.cells import Selection
from overfit_cli.claims.python import above, below, near, ratio
from overfit_cli.claims.sentences import Sentence
from overfit_cli.claims.stated import stated_claim
from overfit_cli.core.claim import Claim
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


def _claim(name: str, statement: str, stated: Sentence, number: str, because: str) -> Claim:
    return stated_claim(
        _select,
        MultiheadMixtureParameters,
        stated,
        number=number,
        because=because,
        name=f"mixture-random-attention-{name}",
        source=f"ours, on the first question of section 7 of {PAPER_NAME}",
        statement=statement,
        figure="random-attention",
        preset=PRESET,
    )


_START = "U = 0 and W ~ N(0, 1), with 10, 100 and 500 heads and 100 samples,"
_RATIO = "for each H the median ratio"

RANDOM_ATTENTION_CLAIMS = (
    _claim(
        "over-zero",
        f"At {_START} the tangent kernel's margin is at least twice that at zero.",
        above("ntk_margin / ntk_margin_zero", 2, strictly=False, seeds=10),
        _RATIO,
        "twice as large",
    ),
    _claim(
        "over-first-phase",
        f"At {_START} the tangent kernel's margin is at least twice that after the first phase of "
        "section 5.1.",
        above("ntk_margin / ntk_margin_first", 2, strictly=False, seeds=10),
        _RATIO,
        "twice as large",
    ),
    _claim(
        "below-attention",
        f"At {_START} the tangent kernel's margin stays below γ_attn.",
        below("ntk_margin / gamma_attention", 1, strictly=False, seeds=10),
        _RATIO,
        "1 is γ_attn",
    ),
    _claim(
        "settles",
        "At U = 0 and W ~ N(0, 1) the tangent kernel's margin on 100 samples changes by at most a "
        "quarter from 100 to 500 heads.",
        near(ratio("ntk_margin", heads=(500, 100)), 1, factor=1.25, seeds=10),
        "the median ratio",
        "a quarter more or less",
    ),
)
