"""Claims on the generalisation gap of heads that learn a planted one, against samples.

Theorem 2 and Corollary 2 of Deora et al. 2024 bound the expected gap, test loss less training loss,
by Õ(1/n). Their conditions require more heads than any cell has: `theorem2_heads`. The claims
therefore ask whether the rate is found where the theorem does not reach.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from overfit_cli.claims.cells import Selection
from overfit_cli.claims.stated import Choose, stated_claim
from overfit_cli.core.claim import Claim
from overfit_cli.studies.multihead.claims import PAPER_NAME, numbers
from overfit_cli.studies.multihead.planted.parameters import MultiheadPlantedParameters

PRESET = "heads-gap"
HEADS = (1, 5, 50)
SAMPLES = (62, 125, 250, 500, 1000, 2000)


def _select(cells: pd.DataFrame) -> pd.DataFrame:
    return Selection(
        MultiheadPlantedParameters,
        at={"optimiser": "gd", "step_rule": "sqrt-heads", "learning_rate": 1.0},
        vary={"heads", "n"},
        alike={"certify", "test_samples"},
        includes={"heads": HEADS, "n": SAMPLES},
        preset=PRESET,
    ).of(cells)


LEAST_GAP = 1e-300
"""The gap that one of 0 or less is taken for, so that it has a logarithm, as low as any."""


def _with_gap(cells: pd.DataFrame) -> pd.DataFrame:
    chosen = _select(cells)
    gap = numbers(chosen, "test_loss") - numbers(chosen, "train_loss")
    return chosen.assign(gap=gap.clip(lower=LEAST_GAP))


def _power(first: int) -> str:
    """The power of n in the gap, from `first` samples to the most."""
    last = max(SAMPLES)
    return f"log(gap[n={last}] / gap[n={first}]) / log({last / first:g})"


def _claim(
    choose: Choose, stated: str, number: str, because: str, name: str, **fields: Any
) -> Claim:
    return stated_claim(
        choose,
        MultiheadPlantedParameters,
        stated,
        number=number,
        because=because,
        name=f"planted-gap-{name}",
        figure="gap",
        preset=PRESET,
        **fields,
    )


CLAIMS = (
    _claim(
        _with_gap,
        f"{_power(500)} <= -1 with at least 10 seeds",
        "for each H the median power of n",
        "the bound is Õ(1/n)",
        "rate",
        source=f"{PAPER_NAME}, Theorem 2 and Corollary 2, at numbers of heads that these do not "
        "cover",
        statement="With 1, 5 and 50 heads the test loss less the training loss falls at least as "
        "fast as 1/n, from 500 to 2000 samples, 1000 steps of √H.",
    ),
    _claim(
        _with_gap,
        f"{_power(1000)} is -1 within 0.25 with at least 10 seeds",
        "for each H the median power of n",
        "a quarter on both sides of 1/n",
        "power",
        kind="sharp",
        source=f"{PAPER_NAME}, Theorem 2 and Corollary 2, the bound read as an equality",
        statement="With 1, 5 and 50 heads the test loss less the training loss falls as 1/n from "
        "1000 to 2000 samples, 1000 steps of √H.",
    ),
)
