"""Made-up worlds for the study's claims, with noise as it was measured on ten seeds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from calibration.rates import Worlds
from calibration.worlds import (
    Bools,
    MakeBools,
    Numbers,
    Random,
    exception_worlds,
    number_worlds,
)
from overfit_cli.studies.softmax_network.convergence.claims.kernels import (
    ALIKE,
    INVERSE,
    NONE,
    TRACKS,
    WAYS,
)
from overfit_cli.studies.softmax_network.convergence.claims.table1 import (
    ALMOST_THE_SAME,
    AT_MOST_SQUARE,
    LOGARITHMS,
    PAIRS,
)
from overfit_cli.studies.softmax_network.paper import NAMES, Activation
from overfit_cli.studies.softmax_network.theory import CHANCE

_WIDTH = 100.0
"""The width that suffices at the largest n, within the sweeps."""

_MET = {
    "rate_ratio": 0.5,
    "width_missing": -1.0,
    "step_size_beyond": -1.0,
    "contraction": 2.0,
    "movement": 0.005,
    "kernel_drift": 0.001,
    "lambda_start": 1.0,
    "steps": 100,
}
"""Numbers of cells that meet what the theorem and the lemmas require."""


def _bounded(
    design: pd.DataFrame, broken: Bools, random: Random, *, column: str, sides: tuple[float, float]
) -> pd.DataFrame:
    """Cells with a number on one side of its bound where broken, else on the other."""
    return design.assign(**_MET | {column: np.where(broken, *sides)})


def _follows(design: pd.DataFrame, gaps: Numbers, random: Random, *, column: str) -> pd.DataFrame:
    cells = design.assign(steps=100, gradient_growth=3.0, train_gap=0.0)
    cells[column] = gaps
    return cells


def _taking_steps(
    design: pd.DataFrame, ratios: Numbers, random: Random, *, slower: str
) -> pd.DataFrame:
    """Cells of which one activation takes so many times the steps of the others."""
    factor = np.where(design["activation"] == slower, ratios, 1.0)
    return design.assign(steps=1000, steps_to_epsilon=10_000 * factor, lambda_start=1.0)


def _needing_widths(
    design: pd.DataFrame, ratios: Numbers, random: Random, *, wider: str
) -> pd.DataFrame:
    """Cells of which one activation needs so many times the hidden units of the others."""
    needed = _WIDTH * np.where(design["activation"] == wider, ratios, 1.0)
    return _limit_ratios(design, needed * (design["n"] / design["n"].max()).to_numpy(float))


def _growing_widths(
    design: pd.DataFrame, powers: Numbers, random: Random, *, activation: Activation
) -> pd.DataFrame:
    """Cells whose λ² m / log(n)^k grows by a power of n, with m within the sweep for every n.

    λ falls so that the width itself grows as the root of n.
    """
    n = design["n"].to_numpy(float)
    middle = np.exp(np.log(np.unique(n)).mean())
    width = _WIDTH * (n / middle) ** 0.5
    scaled = n**powers * np.log(n) ** LOGARITHMS[activation]
    return _limit_ratios(design, width).assign(lambda_start=np.sqrt(scaled / width))


def _limit_ratios(design: pd.DataFrame, needed: Numbers) -> pd.DataFrame:
    """Cells that take twice the steps of endless width where m is what is needed."""
    excess = needed / design["m"].to_numpy(float)
    return design.assign(steps=1000, steps_over_limit=1 + excess)


def _falling(design: pd.DataFrame, powers: Numbers, random: Random, *, column: str) -> pd.DataFrame:
    """Cells in which a column goes as a power of m, below what the lemmas require of it."""
    m = design["m"].to_numpy(float)
    return design.assign(**_MET | {"test_gap_most": 1.0, column: 0.005 * (m / m.min()) ** powers})


def _apart(design: pd.DataFrame, powers: Numbers, random: Random) -> pd.DataFrame:
    """Cells in which the test gap over the kernel's change goes as a power of m."""
    m = design["m"].to_numpy(float)
    return design.assign(**_MET | {"kernel_drift": 1 / m, "test_gap_most": m ** (powers - 1)})


def _exact(column: str) -> Worlds:
    return exception_worlds(partial(_bounded, column=column, sides=(2 * NONE, 0.1 * NONE)))


def _probable(column: str, sides: tuple[float, float]) -> Worlds:
    """Worlds for a statement with probability 1 − δ; open with too few seeds to tell."""
    make = partial(_bounded, column=column, sides=sides)
    return Worlds(
        *(partial(_share_world, make, share=share, seeds=limit) for share, limit in _SHARES)
    )


_SHARES = ((0.0, 2**31), (2 * CHANCE, 2**31), (CHANCE, 20))
"""The share of broken seeds and the number of seeds where it is true, false and open."""


def _share_world(
    make: MakeBools, design: pd.DataFrame, random: Random, *, share: float, seeds: int
) -> pd.DataFrame:
    design = design[design["seed"] < seeds]
    of_seeds = random.random(int(design["seed"].max()) + 1) < share
    return make(design, of_seeds[design["seed"].to_numpy()], random)


WORLDS: Mapping[str, Worlds] = {
    "softmax-gram-matrix": _exact("gram_error"),
    "softmax-zero-output": _exact("start_output"),
    "softmax-shift-invariance": _exact("shift_change"),
    "softmax-equation-24": number_worlds(partial(_follows, column="train_gap"), TRACKS, 0.0005),
    "softmax-gradient-of-23": number_worlds(
        partial(_follows, column="gradient_gap"), TRACKS, 0.005
    ),
    **{
        f"softmax-{kind}-{first}-{second}{suffix}": number_worlds(
            make, ALMOST_THE_SAME, 0.15, logs=True
        )
        for first, second in PAIRS
        for kind, suffixes, make in (
            (
                "steps",
                ("", "-paper", "-without-lambda", "-dimension"),
                partial(_taking_steps, slower=first),
            ),
            ("width", ("", "-paper"), partial(_needing_widths, wider=first)),
        )
        for suffix in suffixes
    },
    **{
        f"softmax-width-exponent-{activation}": number_worlds(
            partial(_growing_widths, activation=activation), AT_MOST_SQUARE, 0.15
        )
        for activation in NAMES
    },
    **{
        f"softmax-{name}": number_worlds(partial(_falling, column=column), INVERSE, 0.05)
        for name, column in (
            ("drift-tight", "kernel_drift"),
            ("gap-tight", "test_gap"),
            ("movement-tight", "movement"),
        )
    },
    "softmax-theorem-f2-tight": number_worlds(_apart, ALIKE, 0.02),
    **{
        f"softmax-{name}-{activation}-{way}": number_worlds(
            partial(_falling, column=column), INVERSE, 0.1
        )
        for name, column in (("drift", "kernel_drift"), ("gap", "test_gap"))
        for activation in NAMES
        for way in WAYS
    },
    "softmax-theorem42": _probable("rate_ratio", (1.01, 0.5)),
    "softmax-linear-rate": exception_worlds(
        partial(_bounded, column="rate_ratio", sides=(1.01, 0.5))
    ),
    "softmax-lemma51-bound": _probable("drift_over_bound", (0.01, -0.5)),
    "softmax-lemma51": exception_worlds(partial(_bounded, column="drift_share", sides=(1.01, 0.5))),
    "softmax-lemma53-bound": _probable("movement_over_bound", (0.01, -0.5)),
    "softmax-theorem-f2-bound": exception_worlds(
        partial(_bounded, column="gap_over_bound", sides=(11.0, 5.0))
    ),
}
