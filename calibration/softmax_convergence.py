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
    joined_worlds,
    number_worlds_of,
)
from overfit_cli.studies.softmax_network import NAMES
from overfit_cli.studies.softmax_network.claims import CLAIMS
from overfit_cli.studies.softmax_network.claims.table1 import SETTING, table1_steps
from overfit_cli.studies.softmax_network.theory import CHANCE

_numbers = number_worlds_of(CLAIMS)

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
    cells = design.assign(steps=100, train_gap=0.0)
    cells[column] = gaps
    return cells


def _taking_steps(design: pd.DataFrame, ratios: Numbers, random: Random) -> pd.DataFrame:
    """Cells of which softmax takes so many times the steps of the others."""
    factor = np.where(design["activation"] == "softmax", ratios, 1.0)
    return design.assign(steps=1000, steps_to_epsilon=10_000 * factor, lambda_start=1.0)


def _needing_widths(design: pd.DataFrame, ratios: Numbers, random: Random) -> pd.DataFrame:
    """Cells of which softmax needs so many times the hidden units of the others."""
    needed = _WIDTH * np.where(design["activation"] == "softmax", ratios, 1.0)
    return _limit_ratios(design, needed * (design["n"] / design["n"].max()).to_numpy(float))


def _limit_ratios(design: pd.DataFrame, needed: Numbers) -> pd.DataFrame:
    """Cells that take twice the steps of endless width where m is what is needed."""
    excess = needed / design["m"].to_numpy(float)
    return design.assign(steps=1000, steps_over_limit=1 + excess)


def _drawn_eigenvalues(design: pd.DataFrame, random: Random, middle: float = 1.0) -> pd.DataFrame:
    """Cells with λ about a number, other ones in each setting and seed."""
    drawn = design[[*SETTING, "seed"]].drop_duplicates()
    drawn["lambda_start"] = middle * np.exp(0.35 * random.standard_normal(len(drawn)))
    return design.merge(drawn, on=[*SETTING, "seed"]).assign(steps=1000)


def _collapsing(design: pd.DataFrame, ratios: Numbers, random: Random) -> pd.DataFrame:
    """Cells with Table 1's steps, of which one setting takes so many times the mean of all."""
    last = (design[SETTING] == design[SETTING].iloc[-1]).all(axis=1).to_numpy()
    settings = len(design[SETTING].drop_duplicates())
    factors = pd.Series(np.where(last, ratios ** (settings / (settings - 1)), 1.0))
    cells = _drawn_eigenvalues(design.assign(factor=factors.to_numpy()), random)
    return cells.assign(steps_to_epsilon=3 * table1_steps(cells) * cells["factor"])


def _power_of_eigenvalues(
    design: pd.DataFrame, powers: Numbers, random: Random, *, of: str
) -> pd.DataFrame:
    """Cells whose steps or widths go as a power of 1/λ, below 1 mostly, and κ is 10/λ."""
    middle = 0.5
    cells = _drawn_eigenvalues(design.assign(power=powers), random, middle)
    numbers = ((cells["lambda_start"] / middle) ** -cells["power"] * cells["n"] ** 0.3).to_numpy(
        float
    )
    if of == "width":
        return cells.assign(steps_over_limit=2 * 40 * numbers / cells["m"].to_numpy(float))
    return cells.assign(
        steps_to_epsilon=1000 * numbers / (cells["n"] ** 0.3 if of == "kappa" else 1),
        kappa=10 / cells["lambda_start"],
    )


def _drifting(design: pd.DataFrame, drifts: Numbers, random: Random) -> pd.DataFrame:
    """Cells with such a largest drift at R = 0.009, over that at 0.001."""
    return design.assign(worst_drift=1.0, worst_drift_far=drifts)


def _falling(design: pd.DataFrame, powers: Numbers, random: Random, *, column: str) -> pd.DataFrame:
    """Cells in which a column goes as a power of m, below what the lemmas require of it."""
    m = design["m"].to_numpy(float)
    return design.assign(**_MET | {"test_gap_most": 1.0, column: 0.005 * (m / m.min()) ** powers})


def _apart(design: pd.DataFrame, powers: Numbers, random: Random) -> pd.DataFrame:
    """Cells in which the test gap over the kernel's change goes as a power of m."""
    m = design["m"].to_numpy(float)
    return design.assign(**_MET | {"kernel_drift": 1 / m, "test_gap_most": m ** (powers - 1)})


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


def _at_one(name: str, column: str) -> Worlds:
    return _numbers(f"softmax-{name}", partial(_falling, column=column), 0.1)


def _within(most: float) -> Worlds:
    return exception_worlds(partial(_bounded, column="worst_drift", sides=(1.1 * most, 0.5 * most)))


WORLDS: Mapping[str, Worlds] = {
    "softmax-equation-24": _numbers(
        "softmax-equation-24", partial(_follows, column="train_gap"), 0.0005
    ),
    "softmax-gradient-of-23": _numbers(
        "softmax-gradient-of-23", partial(_follows, column="gradient_gap"), 0.005
    ),
    **{
        f"softmax-{name}": _numbers(f"softmax-{name}", make, 0.15, logs=True)
        for name, make in (
            ("steps", _taking_steps),
            ("steps-paper", _taking_steps),
            ("steps-without-lambda", _taking_steps),
            ("widths", _needing_widths),
        )
    },
    "softmax-steps-collapse": _numbers("softmax-steps-collapse", _collapsing, 0.2, logs=True),
    **{
        f"softmax-{name}-power": _numbers(
            f"softmax-{name}-power", partial(_power_of_eigenvalues, of=of), spread
        )
        for name, of, spread in (
            ("steps-lambda", "steps", 0.1),
            ("steps-condition", "kappa", 0.1),
            ("width-lambda", "width", 0.2),
        )
    },
    **{
        f"softmax-{name}": _numbers(f"softmax-{name}", partial(_falling, column=column), 0.05)
        for name, column in (
            ("drift-tight", "kernel_drift"),
            ("gap-tight", "test_gap"),
            ("movement-tight", "movement"),
        )
    },
    "softmax-theorem-f2-tight": _numbers("softmax-theorem-f2-tight", _apart, 0.02),
    "softmax-drift-relu-symmetric": _at_one("drift-relu-symmetric", "kernel_drift"),
    "softmax-gap-relu-symmetric": _at_one("gap-relu-symmetric", "test_gap"),
    **{
        f"softmax-{name}": joined_worlds(
            {f"activation == '{each}'": _at_one(name, column) for each in activations}
        )
        for name, column, activations in (
            ("drift-symmetric", "kernel_drift", ("softmax", "exp")),
            ("gap-symmetric", "test_gap", ("softmax", "exp")),
            ("drift-independent", "kernel_drift", tuple(NAMES)),
        )
    },
    "softmax-step-bounds": joined_worlds(
        {
            " " * index: exception_worlds(partial(_bounded, column=column, sides=sides))
            for index, (column, sides) in enumerate(
                (
                    ("c0_over_bound", (1.1, 0.1)),
                    ("c1", (-1.5, -2.0)),
                    ("lambda_lost", (0.51, 0.01)),
                    ("step_length", (0.011, 0.005)),
                )
            )
        }
    ),
    "softmax-linear-rate-outputs": exception_worlds(
        partial(_bounded, column="rate_ratio", sides=(1.01, 0.5))
    ),
    "softmax-lemma53-bound-outputs": _probable("movement_over_bound", (0.01, -0.5)),
    "softmax-lemma51-outputs": exception_worlds(
        partial(_bounded, column="drift_share", sides=(1.01, 0.5))
    ),
    "softmax-drift-constant-softmax-4": _within(1.0),
    "softmax-drift-constant-softmax-16": _within(1.0),
    "softmax-drift-constant-exp": joined_worlds({"n == 4": _within(3.0), "n == 16": _within(3.0)}),
    "softmax-lemma51-linear": _numbers("softmax-lemma51-linear", _drifting, 0.02, logs=True),
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
