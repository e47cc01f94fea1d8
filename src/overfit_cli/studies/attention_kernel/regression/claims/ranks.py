"""Claims of ours on the sizes at which δ is above zero: what Remark 4 leaves open.

The sizes of `theory.lacks_rank` are necessary by linear algebra. They do not suffice: the run that
tested it led to a fifth, `theory.lacks_width`. That all five suffice is tested at other sizes.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from overfit_cli.claims.cells import Selection, finite_numbers
from overfit_cli.claims.rules import THEOREM_RULE, judge_theorem
from overfit_cli.core.claim import Claim, Measurement, not_run
from overfit_cli.studies.attention_kernel.parameters import KernelName
from overfit_cli.studies.attention_kernel.regression.claims.rates import ROUND_OFF, SOURCE
from overfit_cli.studies.attention_kernel.regression.parameters import KernelRegressionParameters
from overfit_cli.studies.attention_kernel.regression.theory import lacks_rank, lacks_width

PRESETS: dict[KernelName, str] = {"softmax": "kernel-ranks", "gaussian": "kernel-ranks-gaussian"}
"""The preset of each kernel."""

FURTHER = "kernel-ranks-further"
"""The preset of the fifth size, at other sizes than those that it was found at."""


def _judge(
    cells: pd.DataFrame, *, kernel: KernelName, fits: bool, fifth: bool = False
) -> Measurement:
    """Judge whether δ is above zero at all sizes that fit, or zero at all others."""
    chosen = Selection(
        KernelRegressionParameters,
        at={"trained": "value", "kernel": kernel},
        vary=("learning_rate",),
        alike=("tokens", "target", "training_steps", "sigma_w", "balance", "dtype"),
        fewest={"n": 2, "d": 2, "d_h": 2},
        preset=FURTHER if fifth else PRESETS[kernel],
    ).of(cells)
    sizes = [chosen[name].to_numpy() for name in ("n", "tokens", "d", "d_h")]
    missed = pd.DataFrame(lacks_rank(kernel == "softmax", *sizes), index=chosen.index)
    if fifth:
        missed["(M − 1) d ≥ M n"] = lacks_width(kernel == "softmax", *sizes)
    of_softmax = pd.DataFrame(lacks_rank(True, *sizes), index=chosen.index).any(axis=1)
    of_softmax |= lacks_width(True, *sizes)
    lacking = missed.any(axis=1)
    chosen = chosen[~lacking if fits else lacking]
    if chosen.empty:
        raise not_run("It needs cells of such sizes.")
    smallest = finite_numbers(chosen[chosen["status"] == "done"], "delta").reindex(chosen.index)
    missed = missed.loc[chosen.index]
    alone = {
        f"cells that lack {name} alone": int(count)
        for name, count in missed[missed.sum(axis=1) == 1].sum().items()
    }
    return judge_theorem(
        (smallest <= ROUND_OFF) if fits else (smallest > ROUND_OFF),
        chosen["seed"],
        unknown=smallest.isna(),
        details={
            "cells": len(chosen),
            "least δ": float(smallest.min()),
            "largest δ": float(smallest.max()),
            "cells at which softmax lacks a size": int(of_softmax[chosen.index].sum()),
            **({} if fits else alone),
        },
    )


_NEEDED = {
    "softmax": "d ≥ n, D d ≥ N n², D ≥ 2n and N n (n + 1) ≤ D (D + 1)",
    "gaussian": "d ≥ n, D d ≥ N n², D ≥ 2n − 2 and N n² ≤ N n + min(N n (n + 1), D (D + 1))/2 + "
    "min(N n (n − 1), D (D − 1))/2",
}


_FIFTH = {
    "softmax": "(M − 1) d ≥ M n",
    "gaussian": "(M − 1) d ≥ M (n − 1)",
}
_FEWEST = "M being the fewest samples with M n > D tokens, where there are so many"


def _claim(kernel: KernelName, *, fits: bool, fifth: bool) -> Claim:
    subject = "softmax" if kernel == "softmax" else "the Gaussian"
    needed = f"{_NEEDED[kernel]}, and {_FIFTH[kernel]}, {_FEWEST}" if fifth else _NEEDED[kernel]
    return Claim(
        name=f"ranks-{kernel}{'-five' if fifth else ''}{'' if fits else '-needed'}",
        kind="ours" if fits else "identity",
        source=f"{SOURCE}, Remark 4, with sizes that it leaves open",
        statement=f"Where {needed}, random weights of {subject} have δ > 0 (N ≥ 2)."
        if fits
        else f"Unless {needed}, δ of {subject} is 0 (N ≥ 2).",
        holds_where=f"{THEOREM_RULE}; a singular value up to {ROUND_OFF:g} is zero",
        measure=partial(_judge, kernel=kernel, fits=fits, fifth=fifth),
        figure="ranks" if kernel == "softmax" else "ranks-gaussian",
        preset=FURTHER if fifth else PRESETS[kernel],
    )


CLAIMS = tuple(
    _claim(kernel, fits=fits, fifth=fifth)
    for kernel in PRESETS
    for fifth, fits in ((False, True), (True, True), (True, False))
)
