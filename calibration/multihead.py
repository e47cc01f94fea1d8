"""Made-up cells for the claims that both data models have."""

from __future__ import annotations

import numpy as np
import pandas as pd

from calibration.worlds import Bools, Numbers, Random

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
