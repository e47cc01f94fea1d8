"""Claims on Lemma 5.1's constant.

It is the largest change of H where every unit's weights move by R at most, over R n: the lemma has
e^(10B) there, and the text after it n^o(1), 3 n^o(1) for exp and 2 for ReLU.
"""

from __future__ import annotations

from functools import partial

import pandas as pd

from overfit_cli.claims.cells import Selection, require_done
from overfit_cli.claims.rules import THEOREM_RULE, judge_theorem
from overfit_cli.claims.stated import joined
from overfit_cli.core.claim import Claim, Measurement, not_run
from overfit_cli.studies.softmax_network.convergence.claims.bounds import log10_of, unknown_cells
from overfit_cli.studies.softmax_network.convergence.claims.kernels import (
    softmax_claim,
    softmax_sentence,
)
from overfit_cli.studies.softmax_network.convergence.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.paper import NAMES, Activation

WORST_PRESET = "softmax-perturbation"

CONSTANTS: dict[Activation, float] = {"softmax": 1.0, "exp": 3.0, "relu": 2.0}
"""The constants of R n in the text after Lemma 5.1."""

WORST_SAMPLES = (4, 16)
"""The n of the preset, each judged by itself."""

WIDE = 1024
"""The width from which on constants are judged: those of the text are stated for wide networks."""

_ALIKE = set(SoftmaxConvergenceParameters.model_fields) - {
    *("m", "n", "sigma", "activation", "initialisation", "dtype", "verify", "epsilon")
}


def _worst(cells: pd.DataFrame, activation: Activation, **at: float) -> pd.DataFrame:
    fixed = {"activation": activation, "verify": True, "dtype": "float64", **at}
    chosen = Selection(
        SoftmaxConvergenceParameters,
        at=fixed,
        vary={"n", "epsilon", "sigma"} - set(at),
        alike=_ALIKE,
        fewest={"m": 1},
        preset=WORST_PRESET,
        balanced=False,
    ).of(cells)
    wide = chosen[chosen["m"] >= WIDE]
    if wide.empty:
        raise not_run(f"It needs cells of m of {WIDE} or more and verify=true.")
    return wide


def _within_constant(cells: pd.DataFrame, activation: Activation, n: int) -> Measurement:
    held = _worst(cells, activation, sigma=1.0, n=n)
    shares = held["worst_drift"].astype(float)
    constant = CONSTANTS[activation]
    return judge_theorem(
        shares > constant,
        held["seed"],
        unknown=unknown_cells(held, shares),
        decades_over=log10_of(shares / constant),
        details={"largest drift over R n": float(shares.max())},
        note="The largest drift is what ascent found: a lower bound.",
    )


def _done(cells: pd.DataFrame) -> pd.DataFrame:
    return require_done(_worst(cells, "softmax"))


def _constant_claim(activation: Activation, n: int, name: str, where: str) -> Claim:
    words = "R n" if activation == "softmax" else "3 R n"
    return softmax_claim(
        name,
        "sharp",
        "the text after Lemma 5.1",
        f"{NAMES[activation]}: ‖H(W) − H(W̃)‖_F is at most {words} for every W within R = 0.001, "
        f"without n^o(1), at σ = 1 and {where}, with {WIDE} hidden units or more.",
        THEOREM_RULE,
        partial(_within_constant, activation=activation, n=n),
        "worst-drift",
        WORST_PRESET,
        hypotheses="W is the worst that ascent over directions finds, so that a fail is certain, "
        "and a hold isn't; n^o(1) is a limit, and a number at one n isn't about it",
    )


PERTURBATION_CLAIMS = (
    *(
        _constant_claim("softmax", n, f"drift-constant-softmax-{n}", f"n = {n}")
        for n in WORST_SAMPLES
    ),
    joined(
        {
            f"n = {n}": _constant_claim("exp", n, "drift-constant-exp", "n = 4 and n = 16")
            for n in WORST_SAMPLES
        }
    ),
    softmax_sentence(
        _done,
        "geometric mean of (worst_drift_far) / (worst_drift) is 1 within a factor of 1.1 "
        "with at least 10 seeds",
        "in each setting the ratio of it over R at R = 0.009 to R = 0.001",
        "a tenth",
        name="lemma51-linear",
        kind="ours",
        source="Lemma 5.1",
        statement="The largest change of H is linear in R up to 0.009, at fixed width.",
        figure="worst-drift",
        preset=WORST_PRESET,
    ),
)
