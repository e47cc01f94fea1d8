"""Made-up worlds for the study's claims, with noise as it was measured on twenty seeds.

Conditions (8) and (12) are met in them, as in the presets that are made for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from calibration.rates import Worlds
from calibration.worlds import (
    Bools,
    Numbers,
    Random,
    exception_worlds,
    joined_worlds,
    number_worlds_of,
    share_worlds,
    worlds_from,
)
from overfit_cli.studies.attention_kernel.regression.claims import CLAIMS
from overfit_cli.studies.attention_kernel.regression.claims.bounds import (
    LEMMAS,
    OFTEN,
)
from overfit_cli.studies.attention_kernel.regression.claims.rates import ON_MOST_DRAWS, PROVED

_numbers = number_worlds_of(CLAIMS)

STEPS = 3000

ABOVE_FLOOR = (
    *(0.0030, 0.0047, 0.0052, 0.0074, 0.0078, 0.0085, 0.0202, 0.0218, 0.0247, 0.0269),
    *(0.0273, 0.0572),
)
"""Shares of the start by which softmax's loss ended above its optimum, labels below the hull."""

_MET_CONDITIONS = {"condition_8": -1.0, "condition_46": -1.0, "condition_12": -1.0}


def bound_cells(design: pd.DataFrame, broken: Bools, random: Random) -> pd.DataFrame:
    """Return cells whose bound bites, and is broken at every step size or at the largest alone."""
    largest = (design["learning_rate"] == design["learning_rate"].max()).to_numpy()
    counts = np.where(broken | largest, random.integers(1, 1000, len(design)), 0)
    return design.assign(
        **_MET_CONDITIONS,
        steps=STEPS,
        stability=0.4,
        lambda_b=0.01,
        rate_margin=1.2,
        relative_loss=1e-9,
        rate_paper=0.05,
        rate_corrected=0.05,
        violations_paper=counts,
        violations_corrected=counts,
    )


def went_to_zero(design: pd.DataFrame, broken: Bools, _: Random) -> pd.DataFrame:
    """Return cells that go to zero at one step size, or stop above it at all of them."""
    rates = np.sort(design["learning_rate"].unique())
    best = (design["learning_rate"] == rates[len(rates) // 2]).to_numpy()
    loss = np.where(best & ~broken, 1e-9, 0.1)
    return design.assign(
        **_MET_CONDITIONS, steps=STEPS, relative_loss=loss, train_loss=loss, gradient=0.0
    )


def reached_zero(design: pd.DataFrame, zero: Bools, random: Random) -> pd.DataFrame:
    """Return cells that go to zero at one step size; at the others half of all do, by chance."""
    rates = np.sort(design["learning_rate"].unique())
    best = (design["learning_rate"] == rates[len(rates) // 2]).to_numpy()
    chance = random.random(len(design)) < ON_MOST_DRAWS.least
    loss = np.where(np.where(best, zero, chance), 1e-9, 0.1)
    return design.assign(**_MET_CONDITIONS, relative_loss=loss, floor=0.0)


def trapped(design: pd.DataFrame, random: Random, *, share: float) -> pd.DataFrame:
    """Return softmax's cells: some seeds stop above their optimum, others come down to it slowly.

    Args:
        design: parameters and seeds.
        random: the source of noise.
        share: the share of seeds that stop above it.
    """
    count = int(design["seed"].max()) + 1
    seeds = design["seed"].to_numpy()
    excess = random.choice(ABOVE_FLOOR, count)[seeds]
    stopped = (random.random(count) < share)[seeds]
    floor = np.where(design["target"] == "inside", 0.0, 0.3)
    fall = np.where(stopped, 0.005, 1.0) * excess  # in as many steps again; half where it is as 1/t
    return design.assign(
        steps=STEPS,
        start_loss=1.0,
        floor=floor,
        train_loss=floor + excess,
        relative_loss=floor + excess,
        gradient=np.sqrt(fall / (STEPS * design["learning_rate"])),
    )


def below_gamma(design: pd.DataFrame, broken: Bools, _: Random) -> pd.DataFrame:
    """Return cells whose loss falls as fast as a γ that could be broken, or more slowly."""
    return design.assign(
        **_MET_CONDITIONS,
        steps=STEPS,
        relative_loss=1e-9,
        log10_gamma=-3.0,
        descent=0.9,
        violations_gamma=np.where(broken, 7, 0),
    )


def example(design: pd.DataFrame, _: Random, *, broken: bool) -> pd.DataFrame:
    """Return cells of the example in which gradients and losses are as claimed, or not.

    Where values are equal softmax's gradient is exactly 0; where broken it is 1e-17, and the others
    have none.
    """
    stuck = ((design["kernel"] == "softmax") & (design["value_gap"] == 0)).to_numpy()
    gradient = np.where(stuck, 1e-17 if broken else 0.0, 0.0 if broken else 1.0)
    return design.assign(
        **_MET_CONDITIONS,
        steps=STEPS,
        delta=0.07,
        gradient_query_start=gradient,
        gradient_key_start=gradient,
        start_loss=1.0,
        train_loss=np.where(stuck, 1.0, 0.1),
        relative_loss=np.where(stuck, 1.0, 0.1),
    )


def unmeasured_example(design: pd.DataFrame, random: Random) -> pd.DataFrame:
    """Return the example's cells without numbers: nothing else leaves them open."""
    cells = example(design, random, broken=False)
    measured = ("gradient_query_start", "gradient_key_start", "train_loss", "relative_loss")
    return cells.assign(**dict.fromkeys(measured, np.nan))


def singular_values(design: pd.DataFrame, broken: Bools, _: Random) -> pd.DataFrame:
    """Return cells with δ above zero, or zero."""
    return design.assign(delta=np.where(broken, 0.0, 1e-3))


def lemma(design: pd.DataFrame, broken: Bools, _: Random, *, column: str) -> pd.DataFrame:
    """Return cells on the right side of a lemma's bound, or on the wrong one."""
    return design.assign(**{column: np.where(broken, 1.01, 0.2)})


def often_above_zero(design: pd.DataFrame, right: Bools, _: Random) -> pd.DataFrame:
    """Return cells with λ_B above zero, or zero."""
    return design.assign(lambda_b=np.where(right, 1e-3, 0.0))


def slow_modes(
    design: pd.DataFrame, broken: Bools, random: Random, *, share: float
) -> pd.DataFrame:
    """Return cells whose slowest rate is below a share of the paper's, or just above it."""
    near = np.where(broken, 1.01, random.uniform(0.3, 0.95, len(design)))
    return design.assign(**_MET_CONDITIONS, lambda_b=0.01, rate_margin=share * near)


def over_heads(design: pd.DataFrame, over: Numbers, _: Random) -> pd.DataFrame:
    """Return cells whose slowest rate is some multiple of 2/H of the paper's."""
    return design.assign(**_MET_CONDITIONS, lambda_b=0.01, rate_margin=2 * over / design["heads"])


def traces(design: pd.DataFrame, over: Numbers, _: Random) -> pd.DataFrame:
    """Return cells in which the ratio of the kernels' traces is a multiple of the formula's."""
    gaussian = (design["kernel"] == "gaussian").to_numpy()
    small = np.where(gaussian, 0.1, 1e-4)
    return design.assign(tangent_small=small, tangent_trace=small * np.where(gaussian, over, 1.0))


def best_steps(design: pd.DataFrame, over: Numbers, _: Random) -> pd.DataFrame:
    """Return cells of which softmax's are best at the larger step sizes, with a ratio of steps."""
    softmax = (design["kernel"] == "softmax").to_numpy()
    is_best = (design["learning_rate"] == np.where(softmax, 32768.0, 8.0)).to_numpy()
    steps = np.where(softmax, 100.0 * over, 100.0)
    return design.assign(**_MET_CONDITIONS, steps_to_millionth=np.where(is_best, steps, np.nan))


def value_gradients(design: pd.DataFrame, broken: Bools, _: Random) -> pd.DataFrame:
    """Return cells whose gradient in W_V is as large as (27) has it at least, or smaller."""
    return design.assign(
        lambda_b=0.01, rate_paper=0.05, pl_ratio_min=0.05 * np.where(broken, 0.99, 1.05)
    )


def linear(design: pd.DataFrame, broken: Bools, random: Random) -> pd.DataFrame:
    """Return cells that fall linearly at the smallest step size, or stop, or fall as t⁻²."""
    best = (design["learning_rate"] == design["learning_rate"].min()).to_numpy()
    stops = random.random() < 0.5
    return design.assign(
        lambda_b=0.1,
        steps=STEPS,
        gradient=0.0,
        train_loss=1e-7,
        relative_loss=np.where((broken & stops) | ~(broken | best), 1e-7, 1e-13),
        steps_to_millionth=np.where(broken, 3.0, 1000.0),
        steps_to_trillionth=np.where(
            broken, np.nan if stops else 3000.0, np.where(best, 2100.0, np.nan)
        ),
    )


def slower(design: pd.DataFrame, over: Numbers, _: Random) -> pd.DataFrame:
    """Return cells that take a multiple of the steps with layers on top, on a logarithm to two."""
    alone = (design["trained"] == "all").to_numpy()
    steps = 1000 * np.where(alone, 1.0, 2.0**over)
    return design.assign(steps=STEPS, steps_to_millionth=steps)


_KERNELS = ("kernel == 'softmax'", "kernel == 'gaussian'")
_BOUND = exception_worlds(bound_cells)
_BOUNDS = joined_worlds({"heads == 2": _BOUND, "heads == 4": _BOUND})
_ZERO = share_worlds(reached_zero, ON_MOST_DRAWS)
_EXACT = Worlds(partial(example, broken=False), partial(example, broken=True), unmeasured_example)
_WIDE = exception_worlds(singular_values)
_TRAPPED = worlds_from(partial(trapped, share=0.5), partial(trapped, share=0.0), 1)

WORLDS: Mapping[str, Worlds] = {
    **dict.fromkeys(("theorem1-paper-two", "theorem2-paper-two"), _BOUNDS),
    **dict.fromkeys(
        (
            "theorem1-corrected-four",
            "theorem2-corrected-four",
            "theorem2-gaussian-corrected-four",
        ),
        joined_worlds({"heads == 1": _BOUND, "heads == 2": _BOUND, "heads == 4": _BOUND}),
    ),
    "theorem3-gaussian-zero": exception_worlds(went_to_zero),
    "zero-softmax-all": joined_worlds(dict.fromkeys(_KERNELS, _ZERO)),
    "zero-gaussian-below": joined_worlds(
        {f"target == '{target}'": _ZERO for target in ("below", "inside")}
    ),
    **dict.fromkeys(("zero-gaussian-mixed-sign", "zero-softmax-near"), _ZERO),
    "trapped-softmax": _TRAPPED,
    "theorem3-rate": exception_worlds(below_gamma),
    **dict.fromkeys(("example-gradient", "example-escape"), _EXACT),
    "sizes-lambda-b": share_worlds(often_above_zero, OFTEN),
    "sizes-delta": _WIDE,
    "ranks-softmax-five": joined_worlds(dict.fromkeys(_KERNELS, _WIDE)),
    "eigenvalue-theorem1": exception_worlds(partial(slow_modes, share=1.0)),
    "lemma1-value-several": exception_worlds(value_gradients),
    "theorem2-near-four": _BOUND,
    "corollary1-linear": exception_worlds(linear),
    "remark2-rate": _numbers("remark2-rate", slower, 0.3),
    "tangent-ratio": _numbers("tangent-ratio", traces, 0.1, logs=True),
    "tangent-slower": _numbers("tangent-slower", best_steps, 0.5, logs=True),
    "eigenvalue-proved": joined_worlds(
        {
            "heads < 16": exception_worlds(partial(slow_modes, share=1.0)),
            "heads == 16": exception_worlds(partial(slow_modes, share=PROVED)),
        }
    ),
    "eigenvalue-law": _numbers("eigenvalue-law", over_heads, 0.03, logs=True),
    **{bound.name: exception_worlds(partial(lemma, column=bound.column)) for bound in LEMMAS},
}
