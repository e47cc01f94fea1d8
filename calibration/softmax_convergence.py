"""Made-up worlds for claims whose cells are chosen or ranked by what is measured of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from calibration.rates import Worlds
from calibration.worlds import Numbers, Random, number_worlds_of
from overfit_cli.studies.softmax_network.claims import CLAIMS
from overfit_cli.studies.softmax_network.claims.table1 import SETTING, table1_steps

_numbers = number_worlds_of(CLAIMS)

_WIDTH = 100.0
"""The width that suffices at the largest n, within the sweeps."""

_MET = {
    "rate_ratio": 0.5,
    "movement": 0.005,
    "kernel_drift": 0.001,
    "lambda_start": 1.0,
    "steps": 100,
}
"""Numbers of cells that meet what the lemmas require."""


def _taking_steps(design: pd.DataFrame, ratios: Numbers, random: Random) -> pd.DataFrame:
    """Cells of which softmax takes so many times the steps of the others."""
    factor = np.where(design["activation"] == "softmax", ratios, 1.0)
    return design.assign(steps=1000, steps_to_epsilon=10_000 * factor, lambda_start=1.0)


def _needing_widths(design: pd.DataFrame, ratios: Numbers, random: Random) -> pd.DataFrame:
    """Cells of which softmax needs so many times the hidden units of the others."""
    needed = _WIDTH * np.where(design["activation"] == "softmax", ratios, 1.0)
    needed = needed * (design["n"] / design["n"].max()).to_numpy(float)
    return _limit_ratios(design.assign(lambda_start=1.0), needed)


def _limit_ratios(design: pd.DataFrame, needed: Numbers) -> pd.DataFrame:
    """Cells that take twice the steps of endless width where m is what is needed."""
    return design.assign(steps=1000, steps_over_limit=1 + needed / design["m"].to_numpy(float))


def _drawn_eigenvalues(design: pd.DataFrame, random: Random, middle: float = 1.0) -> pd.DataFrame:
    """Cells with λ about a number, other ones in each setting and seed."""
    drawn = design[[*SETTING, "seed"]].drop_duplicates()
    drawn["lambda_start"] = middle * np.exp(0.35 * random.standard_normal(len(drawn)))
    return design.merge(drawn, on=[*SETTING, "seed"]).assign(steps=1000)


def _collapsing(design: pd.DataFrame, ratios: Numbers, random: Random) -> pd.DataFrame:
    """Cells with Table 1's steps, of which one setting takes so many times the mean of all."""
    last = (design[SETTING] == design[SETTING].iloc[-1]).all(axis=1).to_numpy()
    settings = len(design[SETTING].drop_duplicates())
    factors = np.where(last, ratios ** (settings / (settings - 1)), 1.0)
    cells = _drawn_eigenvalues(design.assign(factor=factors), random)
    return cells.assign(steps_to_epsilon=3 * table1_steps(cells) * cells["factor"])


def _powers_of_eigenvalues(design: pd.DataFrame, powers: Numbers, random: Random) -> pd.DataFrame:
    """Cells whose sufficient widths go as a power of 1/λ, which is below 1 mostly."""
    cells = _drawn_eigenvalues(design.assign(power=powers), random, 0.5)
    widths = 80 * (cells["lambda_start"] / 0.5) ** -cells["power"] * cells["n"] ** 0.3
    return _limit_ratios(cells, widths.to_numpy(float))


def _falling(design: pd.DataFrame, powers: Numbers, random: Random, *, column: str) -> pd.DataFrame:
    """Cells in which a column goes as a power of m, below what the lemmas require of it."""
    m = design["m"].to_numpy(float)
    return design.assign(**_MET | {column: 0.005 * (m / m.min()) ** powers})


def _apart(design: pd.DataFrame, powers: Numbers, random: Random) -> pd.DataFrame:
    """Cells in which the test gap over the kernel's change goes as a power of m."""
    m = design["m"].to_numpy(float)
    return design.assign(**_MET | {"kernel_drift": 1 / m, "test_gap_most": m ** (powers - 1)})


WORLDS: Mapping[str, Worlds] = {
    **{
        f"softmax-{name}": _numbers(f"softmax-{name}", make, spread, logs=True)
        for name, make, spread in (
            ("steps", _taking_steps, 0.15),
            ("steps-paper", _taking_steps, 0.15),
            ("steps-without-lambda", _taking_steps, 0.15),
            ("widths", _needing_widths, 0.15),
            ("steps-collapse", _collapsing, 0.2),
        )
    },
    **{
        f"softmax-{name}": _numbers(f"softmax-{name}", make, spread)
        for name, make, spread in (
            ("width-lambda-power", _powers_of_eigenvalues, 0.2),
            ("drift-tight", partial(_falling, column="kernel_drift"), 0.05),
            ("gap-tight", partial(_falling, column="test_gap"), 0.05),
            ("movement-tight", partial(_falling, column="movement"), 0.05),
            ("theorem-f2-tight", _apart, 0.02),
        )
    },
}
