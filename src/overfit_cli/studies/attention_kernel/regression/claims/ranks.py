"""A claim of ours on the sizes at which δ is above zero: what Remark 4 leaves open.

The sizes of `theory.lacks_rank` and `theory.lacks_width` are necessary by linear algebra.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from overfit_cli.claims.cells import Selection, finite_numbers
from overfit_cli.claims.rules import THEOREM_RULE, judge_theorem
from overfit_cli.claims.stated import joined
from overfit_cli.core.claim import Claim, Measurement, not_run
from overfit_cli.studies.attention_kernel.parameters import KernelName
from overfit_cli.studies.attention_kernel.regression.claims.rates import ROUND_OFF, SOURCE
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters
from overfit_cli.studies.attention_kernel.regression.theory import lacks_rank, lacks_width

PRESET = "kernel-ranks-further"
"""The preset, at other sizes than those that the fifth size was found at."""


def _judge(cells: pd.DataFrame, *, kernel: KernelName) -> Measurement:
    """Judge whether δ is above zero at all sizes that fit."""
    chosen = Selection(
        KernelRegressionParameters,
        at={"trained": "value", "kernel": kernel},
        vary=("learning_rate",),
        alike=("tokens", "target", "training_steps", "sigma_w", "balance", "dtype"),
        fewest={"n": 2, "d": 2, "d_h": 2},
        preset=PRESET,
    ).of(cells)
    chosen = chosen[~_lacks(chosen, kernel == "softmax")]
    if chosen.empty:
        raise not_run("It needs cells of such sizes.")
    smallest = finite_numbers(chosen[chosen["status"] == "done"], "delta").reindex(chosen.index)
    return judge_theorem(
        smallest <= ROUND_OFF,
        chosen["seed"],
        unknown=smallest.isna(),
        details={
            "cells": len(chosen),
            "least δ": float(smallest.min()),
            "largest δ": float(smallest.max()),
            "cells at which softmax lacks a size": int(_lacks(chosen, True).sum()),
        },
    )


def _lacks(cells: pd.DataFrame, normalised: bool) -> pd.Series[bool]:
    sizes = [cells[name].to_numpy() for name in ("n", "tokens", "d", "d_h")]
    missed = pd.DataFrame(lacks_rank(normalised, *sizes), index=cells.index)
    return missed.any(axis=1) | lacks_width(normalised, *sizes)


_NEEDED = {
    "softmax": "d ≥ n, D d ≥ N n², D ≥ 2n, N n (n + 1) ≤ D (D + 1) and (M − 1) d ≥ M n",
    "gaussian": "d ≥ n, D d ≥ N n², D ≥ 2n − 2, N n² ≤ N n + min(N n (n + 1), D (D + 1))/2 + "
    "min(N n (n − 1), D (D − 1))/2 and (M − 1) d ≥ M (n − 1)",
}


def _part(kernel: KernelName) -> Claim:
    return Claim(
        name="ranks-softmax-five",
        kind="ours",
        source=f"{SOURCE}, Remark 4, with sizes that it leaves open",
        statement=f"Random weights have δ > 0 (N ≥ 2) with softmax where {_NEEDED['softmax']}, and "
        f"with the Gaussian where {_NEEDED['gaussian']}; M is the fewest samples with M n > D "
        "tokens, where there are so many.",
        holds_where=f"{THEOREM_RULE}; a singular value up to {ROUND_OFF:g} is zero",
        measure=partial(_judge, kernel=kernel),
        figure="ranks",
        preset=PRESET,
        after_selection=True,
    )


CLAIMS = (joined({"softmax": _part("softmax"), "Gaussian": _part("gaussian")}),)
