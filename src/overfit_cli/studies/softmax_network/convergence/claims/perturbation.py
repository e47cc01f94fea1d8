"""Claims on Lemma 5.1's constant, and on the powers of m between small weights and σ = 1.

- The largest change of H where every unit's weights move by R at most, over R n: the lemma has
  e^(10B) there, and the text after it n^o(1), 3 n^o(1) for exp and 2 for ReLU.
- The powers of m in drift, movement and test gap bend with σ.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, positive_numbers, require_done
from overfit_cli.claims.python import above, geometric_mean, mean, near, ratio
from overfit_cli.claims.rules import THEOREM_RULE, Requirements, judge_theorem
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.stats.boundaries import scaling_exponents
from overfit_cli.studies.softmax_network.convergence.claims.bounds import (
    PROBABLE,
    judge_probable,
    unknown_cells,
)
from overfit_cli.studies.softmax_network.convergence.claims.kernels import (
    SMALL,
    softmax_claim,
    softmax_sentence,
)
from overfit_cli.studies.softmax_network.convergence.parameters import (
    RADII,
    SoftmaxConvergenceParameters,
)
from overfit_cli.studies.softmax_network.paper import NAMES, Activation
from overfit_cli.studies.softmax_network.theory import CHANCE

WORST_PRESET, RELU_PRESET = "softmax-perturbation", "softmax-perturbation-relu"
CROSSOVER_PRESET = "softmax-crossover"

CONSTANTS: dict[Activation, float] = {"softmax": 1.0, "exp": 3.0, "relu": 2.0}
"""The constants of R n in the text after Lemma 5.1."""

WORST_SAMPLES = (4, 16)
"""The n of the presets, each judged by itself."""

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
        preset=RELU_PRESET if activation == "relu" else WORST_PRESET,
        balanced=False,
    ).of(cells)
    wide = chosen[chosen["m"] >= WIDE]
    if wide.empty:
        raise not_run(f"It needs cells of m of {WIDE} or more and verify=true.")
    return wide


def _decades_over(shares: pd.Series[float], constant: float) -> pd.Series[float]:
    with np.errstate(divide="ignore"):  # of 0
        return pd.Series(np.log10(shares.to_numpy(float) / constant), shares.index)


def _within_constant(cells: pd.DataFrame, activation: Activation, n: int) -> Measurement:
    held = _worst(cells, activation, sigma=1.0, n=n)
    shares = held["worst_drift"].astype(float)
    constant = CONSTANTS[activation]
    return judge_theorem(
        shares > constant,
        held["seed"],
        unknown=unknown_cells(held, shares),
        decades_over=_decades_over(shares, constant),
        details={"largest drift over R n": float(shares.max())},
        note="The largest drift is what ascent found: a lower bound.",
    )


def _relu(cells: pd.DataFrame) -> Measurement:
    """Measure the bound of 2 R n for ReLU, where [97]'s probability is above 1 − δ."""
    held = _worst(cells, "relu", sigma=1.0)
    shares = held["worst_drift_far"].astype(float)
    needed = 10 * np.log(held["n"].to_numpy(float) ** 2 / CHANCE)  # of m R
    missing = pd.Series(np.log10(needed / (held["m"].to_numpy(float) * RADII[1])), held.index)
    return judge_probable(
        held,
        shares > CONSTANTS["relu"],
        unknown=unknown_cells(held, shares),
        requirements=Requirements(
            {"decades of hidden units missing": missing},
            "m R is below 10 log(n²/δ)",
        ),
        decades_over=_decades_over(shares, CONSTANTS["relu"]),
        details={"largest bound over R n": float(shares.max())},
    )


def _done(cells: pd.DataFrame, **at: float) -> pd.DataFrame:
    return require_done(_worst(cells, "softmax", **at))


LARGE = 1.0
"""The ends of the crossover in σ."""

BENDING = "power[sigma is largest] - power[sigma is smallest]"
SIGMAS = (0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)


def _crossover(cells: pd.DataFrame, sigmas: tuple[float, ...]) -> pd.DataFrame:
    swept = {"sigma": sigmas}
    chosen = Selection(
        SoftmaxConvergenceParameters,
        at={"activation": "softmax", "dtype": "float64", "n": 8, "d": 16, **swept},
        alike=set(SoftmaxConvergenceParameters.model_fields)
        - {"m", "n", "d", "sigma", "activation", "initialisation", "dtype"},
        fewest={"m": 3},
        includes=swept,
        preset=CROSSOVER_PRESET,
    ).of(cells)
    return require_done(chosen)


def powers_of(cells: pd.DataFrame, cause: str, value: str) -> pd.Series[float]:
    """Return the power of a cause in a column, for each seed of cells of one σ."""
    positive_numbers(cells, cause), positive_numbers(cells, value)
    powers = {}
    for seed, rows in cells.groupby("seed"):
        fitted = scaling_exponents(rows, [cause], value)
        if fitted is None:
            raise inconclusive(f"On seed {seed} {cause} doesn't change.")
        powers[seed] = fitted[cause].value
    return pd.Series(powers)


def _powers(cells: pd.DataFrame, cause: str, value: str, sigmas: tuple[float, ...]) -> pd.DataFrame:
    """The power of a cause in a column, of each seed and σ, with that of the largest of m."""
    held = _crossover(cells, sigmas)
    tables = []
    for sigma in sigmas:
        rows = held[held["sigma"] == sigma]
        powers = powers_of(rows, cause, value).rename_axis("seed").reset_index(name="power")
        stated = stated_power(sigma, rows["m"].unique())
        tables.append(powers.assign(sigma=sigma, stated=stated, status="done"))
    return pd.concat(tables, ignore_index=True)


def stated_power(sigma: float, widths: np.ndarray) -> float:
    """Return −1 + σ/√(2 log m), at the geometric mean of the widths.

    Each unit moves as e^(σ z)/m, and the largest of m standard Gaussians z is near √(2 log m).
    """
    return float(-1 + sigma / np.sqrt(2 * np.log(widths.astype(float)).mean()))


def _constant_claim(activation: Activation, n: int, words: str) -> Claim:
    return softmax_claim(
        f"drift-constant-{activation}-{n}",
        "sharp",
        "the text after Lemma 5.1",
        f"{NAMES[activation]}: ‖H(W) − H(W̃)‖_F is at most {words} for every W within R = 0.001, "
        f"without n^o(1), at σ = 1 and n = {n}, with {WIDE} hidden units or more.",
        THEOREM_RULE,
        partial(_within_constant, activation=activation, n=n),
        "worst-drift",
        WORST_PRESET,
        hypotheses="W is the worst that ascent over directions finds, so that a fail is certain, "
        "and a hold isn't; n^o(1) is a limit, and a number at one n isn't about it",
    )


PERTURBATION_CLAIMS = (
    *(_constant_claim("softmax", n, "R n") for n in WORST_SAMPLES),
    *(_constant_claim("exp", n, "3 R n") for n in WORST_SAMPLES),
    softmax_claim(
        "drift-constant-relu",
        "ours",
        "the text after Lemma 5.1",
        "ReLU: ‖H(W) − H(W̃)‖_F is at most 2 R n for every W within R, as Lemma 4.2 of the paper's "
        "[97] has it, with probability 1 − δ.",
        PROBABLE.in_words("at each setting the share of seeds without an exception"),
        _relu,
        "worst-drift",
        RELU_PRESET,
        hypotheses="R = 0.009, σ = 1, and m R is at least 10 log(n²/δ), with which the quoted "
        "lemma's probability is 1 − δ, δ = 0.05; the paper quotes neither the probability nor the "
        "condition; the change of H is bounded by counting the units "
        "that can flip, so that no W is left out",
    ),
    softmax_sentence(
        partial(_done, sigma=1.0),
        near(geometric_mean("worst_drift"), 1, factor=2, seeds=10),
        "in each setting the largest change over R n",
        "a factor of two",
        name="lemma51-order",
        kind="ours",
        source="Lemma 5.1",
        statement="At σ = 1 the largest change of H that ascent finds is of the order R n, at "
        f"every width from {WIDE} on and n: the factor e^(10B) is 1 there.",
        figure="worst-drift",
        preset=WORST_PRESET,
    ),
    softmax_sentence(
        _done,
        near(geometric_mean(ratio("worst_drift_far", "worst_drift")), 1, factor=1.1, seeds=10),
        "in each setting the ratio of it over R at R = 0.009 to R = 0.001",
        "a tenth",
        name="lemma51-linear",
        kind="ours",
        source="Lemma 5.1",
        statement="The largest change of H is linear in R up to 0.009, at fixed width.",
        figure="worst-drift",
        preset=WORST_PRESET,
    ),
    *(
        softmax_sentence(
            partial(_powers, cause="m", value=column, sigmas=(SMALL, LARGE)),
            above(mean(BENDING), 0.1, strictly=False, seeds=10),
            "the difference of the two powers",
            "a tenth",
            name=f"crossover-{name}",
            kind="ours",
            source="Lemmas 5.1 and 5.3",
            statement=f"The power of m in {words} is larger at σ = 1 than at σ = 0.03.",
            figure="crossover",
            preset=CROSSOVER_PRESET,
        )
        for name, column, words in (
            ("drift", "kernel_drift", "‖H − H*‖_F"),
            ("movement", "movement", "max_r ‖w_r − w_r(0)‖"),
        )
    ),
    softmax_sentence(
        partial(_powers, cause="kernel_drift", value="test_gap", sigmas=(SMALL, LARGE)),
        near(mean(BENDING), 0, within=0.1, seeds=10),
        "the difference of the two powers",
        "a tenth",
        name="crossover-gap",
        kind="ours",
        source="Theorem F.2",
        statement="The power of ‖H − H*‖_F in the test gap is the same at σ = 1 as at σ = 0.03.",
        figure="crossover",
        preset=CROSSOVER_PRESET,
    ),
    softmax_sentence(
        partial(_powers, cause="m", value="movement", sigmas=SIGMAS),
        near(mean("power - stated"), 0, within=0.05, seeds=10),
        "at each σ the power less this one",
        "a sixth of the whole change",
        name="movement-largest-of-m",
        kind="ours",
        source="Lemma 5.3",
        statement="The power of m in the movement is −1 + σ/√(2 log m), that of the largest of m "
        f"lognormal units over m, at σ = {', '.join(f'{sigma:g}' for sigma in SIGMAS)}.",
        figure="crossover",
        preset=CROSSOVER_PRESET,
    ),
)
