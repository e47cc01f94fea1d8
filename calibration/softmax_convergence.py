"""Made-up worlds for the study's claims, with noise as it was measured on ten seeds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from calibration.rates import Worlds
from calibration.worlds import Bools, Numbers, Random, exception_worlds, number_worlds
from overfit_cli.studies.softmax_network.convergence.claims.kernels import (
    INVERSE,
    LINEAR,
    NONE,
    TRACKS,
    WAYS,
)
from overfit_cli.studies.softmax_network.convergence.claims.table1 import (
    ALMOST_THE_SAME,
    PAIRS,
    RULES,
    SQUARE,
)
from overfit_cli.studies.softmax_network.paper import NAMES

_WIDTH = 100.0
"""The width that suffices at the largest n, within the sweeps."""


def _bounded(
    design: pd.DataFrame, broken: Bools, random: Random, *, column: str, sides: tuple[float, float]
) -> pd.DataFrame:
    """Cells with a number on one side of its bound where broken, else on the other."""
    unbroken = {
        "width_missing": -1.0,
        "step_size_beyond": -1.0,
        "contraction": 2.0,
        "movement": 1.0,
        "kernel_drift": 0.1,
        "lambda_start": 1.0,
    }
    return design.assign(steps=100, **unbroken | {column: np.where(broken, *sides)})


def _follows(design: pd.DataFrame, gaps: Numbers, random: Random, *, column: str) -> pd.DataFrame:
    return design.assign(steps=100, gradient_growth=3.0, **{column: gaps})


def _taking_steps(
    design: pd.DataFrame, ratios: Numbers, random: Random, *, slower: str
) -> pd.DataFrame:
    """Cells of which one activation takes so many times the steps of the others."""
    factor = np.where(design["activation"] == slower, ratios, 1.0)
    return design.assign(steps=1000, steps_to_epsilon=10_000 * factor)


def _needing_widths(
    design: pd.DataFrame, ratios: Numbers, random: Random, *, wider: str
) -> pd.DataFrame:
    """Cells of which one activation needs so many times the hidden units of the others."""
    needed = _WIDTH * np.where(design["activation"] == wider, ratios, 1.0)
    return _limit_ratios(design, needed * (design["n"] / design["n"].max()).to_numpy(float))


def _growing_widths(design: pd.DataFrame, powers: Numbers, random: Random) -> pd.DataFrame:
    """Cells whose sufficient width grows by a power of n, and is within the sweep for every n."""
    n = design["n"].to_numpy(float)
    middle = np.exp(np.log(np.unique(n)).mean())
    return _limit_ratios(design, _WIDTH * (n / middle) ** powers)


def _limit_ratios(design: pd.DataFrame, needed: Numbers) -> pd.DataFrame:
    """Cells that take twice the steps of endless width where m is what is needed."""
    excess = needed / design["m"].to_numpy(float)
    return design.assign(steps=1000, steps_over_limit=1 + excess)


def _falling(design: pd.DataFrame, powers: Numbers, random: Random, *, column: str) -> pd.DataFrame:
    """Cells in which a column goes as a power of m."""
    return design.assign(steps=100, **{column: design["m"].to_numpy(float) ** powers})


def _rising(
    design: pd.DataFrame, powers: Numbers, random: Random, *, column: str, against: str
) -> pd.DataFrame:
    """Cells in which a column goes as a power of another one, which is 1/m."""
    rising = 1 / design["m"].to_numpy(float)
    return design.assign(steps=100, **{against: rising, column: rising**powers})


def _exact(column: str) -> Worlds:
    return exception_worlds(partial(_bounded, column=column, sides=(2 * NONE, 0.1 * NONE)))


WORLDS: Mapping[str, Worlds] = {
    "softmax-gram-matrix": _exact("gram_error"),
    "softmax-zero-output": _exact("start_output"),
    "softmax-shift-invariance": _exact("shift_change"),
    "softmax-equation-24": number_worlds(partial(_follows, column="train_gap"), TRACKS, 0.0005),
    "softmax-gradient-of-23": number_worlds(
        partial(_follows, column="gradient_gap"), TRACKS, 0.005
    ),
    **{
        f"softmax-{kind}-{first}-{second}{'-paper' if rule == 'paper' else ''}": number_worlds(
            make, ALMOST_THE_SAME, 0.15, logs=True
        )
        for rule in RULES
        for first, second in PAIRS
        for kind, make in (
            ("steps", partial(_taking_steps, slower=first)),
            ("width", partial(_needing_widths, wider=first)),
        )
    },
    **{
        f"softmax-steps-{first}-{second}-dimension": number_worlds(
            partial(_taking_steps, slower=first), ALMOST_THE_SAME, 0.15, logs=True
        )
        for first, second in PAIRS
    },
    **{
        f"softmax-width-exponent-{activation}": number_worlds(_growing_widths, SQUARE, 0.15)
        for activation in NAMES
    },
    **{
        f"softmax-{name}-{activation}-{way}": number_worlds(
            partial(_falling, column=column), INVERSE, 0.1
        )
        for name, column in (("drift", "kernel_drift"), ("gap", "test_gap"))
        for activation in NAMES
        for way in WAYS
    },
    "softmax-movement": number_worlds(partial(_falling, column="movement"), INVERSE, 0.05),
    "softmax-lemma51": number_worlds(
        partial(_rising, column="kernel_drift", against="movement"), LINEAR, 0.1
    ),
    "softmax-theorem-f2": number_worlds(
        partial(_rising, column="test_gap_most", against="kernel_drift"), LINEAR, 0.05
    ),
    "softmax-theorem42": exception_worlds(
        partial(_bounded, column="rate_ratio", sides=(1.01, 0.5))
    ),
    "softmax-linear-rate": exception_worlds(
        partial(_bounded, column="rate_ratio", sides=(1.01, 0.5))
    ),
    "softmax-lemma51-bound": exception_worlds(
        partial(_bounded, column="drift_over_bound", sides=(0.01, -0.5))
    ),
    "softmax-lemma53-bound": exception_worlds(
        partial(_bounded, column="movement_over_bound", sides=(0.01, -0.5))
    ),
    "softmax-theorem-f2-bound": exception_worlds(
        partial(_bounded, column="gap_over_bound", sides=(1.01, 0.5))
    ),
}
