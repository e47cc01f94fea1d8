"""Made-up cells for the claims that both data models have."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from calibration.rates import Worlds
from calibration.worlds import Bools, Numbers, Random, exception_worlds
from overfit_cli.studies.multihead.claims import BOUNDS

STEPS_OF_ONE = 1000.0
"""The steps to the target of one head; many, so that whole numbers don't matter."""


def step_cells(design: pd.DataFrame, powers: Numbers, random: Random) -> pd.DataFrame:
    """Return cells whose steps to the target scale with H by a power of each seed."""
    logs = powers * np.log(design["heads"].to_numpy(float))
    return design.assign(steps=1000, train_loss=0.0, steps_to_target=STEPS_OF_ONE * np.exp(logs))


LOGGED = (1, 10, 30, 100, 300, 500, 700, 1000)
"""Logged steps of made-up curves."""


def speed_curves(design: pd.DataFrame, powers: Numbers, random: Random) -> pd.DataFrame:
    """Return curves of which the steps to any test loss scale with H by a power of each seed."""
    rows = _at_steps(design.assign(scale=design["heads"].to_numpy(float) ** powers))
    steps = rows["step"].to_numpy(float) / rows["scale"].to_numpy(float)
    return rows.drop(columns="scale").assign(test_loss=0.03 / steps)


def rate_curves(design: pd.DataFrame, powers: Numbers, random: Random) -> pd.DataFrame:
    """Return curves whose training loss is a power of the step, another one for each seed."""
    rows = _at_steps(design.assign(power=powers))
    logs = rows["power"].to_numpy(float) * np.log10(rows["step"].to_numpy(float))
    return rows.drop(columns="power").assign(log10_train_loss=logs, train_loss=10.0**logs)


def loss_curves(design: pd.DataFrame, broken: Bools, random: Random) -> pd.DataFrame:
    """Return curves whose training loss lies below 1, or above it at one step where broken."""
    rows = _at_steps(design.assign(broken=broken))
    above = rows["broken"].to_numpy(bool) & (rows["step"] == LOGGED[1]).to_numpy()
    return rows.drop(columns="broken").assign(train_loss=np.where(above, 1.01, 0.5))


def _at_steps(design: pd.DataFrame) -> pd.DataFrame:
    """A row of each cell at each logged step."""
    rows = design.loc[design.index.repeat(len(LOGGED))].reset_index(drop=True)
    return rows.assign(step=np.tile(LOGGED, len(design)), steps=LOGGED[-1])


def margin_cells(design: pd.DataFrame, shares: Numbers, random: Random) -> pd.DataFrame:
    """Return cells with that share of the margin γ_attn."""
    return design.assign(steps=1000, margin_share=shares)


def bound_cells(design: pd.DataFrame, broken: Bools, random: Random, *, name: str) -> pd.DataFrame:
    """Return cells of which one is a little above its bound on each seed that breaks it."""
    first = ~design.duplicated("seed").to_numpy() & broken
    columns = dict.fromkeys(BOUNDS[name], np.where(first, 1.01, 0.5))
    return design.assign(steps=1000, **columns)


def bound_worlds(prefix: str) -> dict[str, Worlds]:
    """Return the worlds of `bound_claims`."""
    return {
        f"{prefix}-{name}{kind}": exception_worlds(partial(bound_cells, name=name))
        for name in BOUNDS
        for kind in ("", "-random")
    }


_MET = {
    "theorem_step_size": 10.0,
    **{f"theorem{number}_heads": -9.0 for number in "12"},
    **{f"theorem{number}_bound": 1.0 for number in "12"},
}
"""Columns of cells that meet the theorems' requirements, as no cell that is run does."""


def theorem1_cells(design: pd.DataFrame, broken: Bools, random: Random) -> pd.DataFrame:
    """Return cells that meet Theorem 1's requirements, and are above its bound where broken."""
    mean = np.where(broken, 1.01, 0.5)
    return design.assign(steps=1000, train_loss=0.1, mean_train_loss=mean, **_MET)


def theorem2_cells(design: pd.DataFrame, excess: Numbers, random: Random) -> pd.DataFrame:
    """Return cells that meet Theorem 2's requirements, with so much more gap than its bound."""
    return design.assign(steps=1000, train_loss=0.1, test_loss=1.1 + excess, **_MET)
