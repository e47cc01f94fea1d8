"""Made-up worlds for all claims of `benign-vit`, in which the truth is known.

Here are those on Theorems 4.1 and 4.2 where their condition is met;
`benign_vit_propositions.py` has those on propositions, `benign_vit_every_token.py` those on every
token, `benign_vit_wide.py` those on wide heads, and `benign_vit_figures.py` the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.benign_vit_every_token import EVERY_TOKEN
from calibration.benign_vit_figures import BOUNDARIES, DYNAMICS, FIGURE_1, shifts, test_loss
from calibration.benign_vit_propositions import PROPOSITIONS
from calibration.benign_vit_wide import WIDE_HEADS
from calibration.rates import Worlds
from calibration.worlds import number_worlds
from overfit_cli.claims.parts import tolerance_margin
from overfit_cli.core.parameters import map_parameters
from overfit_cli.studies.benign_vit.claims import theorem_regime as claims
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory import T_POWERS, Regime, predicted_steps

MIDDLE_N, MIDDLE_SNR = 64.0, 1.8
"""Where the boundaries of worlds of any power meet."""


def _cells(design: pd.DataFrame) -> pd.DataFrame:
    """Cells that are fitted and of which nothing else is known."""
    return design.assign(train_loss=design["epsilon"], test_error=0.0, steps=1e6)


def _steps(
    design: pd.DataFrame,
    ratios: NDArray[np.float64],
    random: np.random.Generator,
    side: Regime,
) -> pd.DataFrame:
    """Cells that take so many times T steps; samples are fitted by the stronger noise."""
    predicted = np.array(
        map_parameters(
            BenignVitParameters,
            design,
            lambda cell: predicted_steps(cell, cell.output_scale, side),
        )
    )
    if side == "harmful":
        predicted /= (design["sigma_p_tilde"] / design["sigma_p"]).to_numpy() ** 2
    return _cells(design).assign(steps=ratios * predicted)


def _powers(
    design: pd.DataFrame, powers: NDArray[np.float64], random: np.random.Generator, side: Regime
) -> pd.DataFrame:
    """Cells whose steps scale with ‖μ‖ by a power of their own, and with the rest as T does."""
    theory = {**T_POWERS[side], "snr": powers}
    logs = sum(theory[name] * np.log(design[name].to_numpy(dtype=np.float64)) for name in theory)
    return _cells(design).assign(
        steps=1e8 * np.exp(logs + 0.01 * random.standard_normal(len(design)))
    )


def _benign_loss(
    design: pd.DataFrame, rates: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    """Cells whose test loss falls with ε by so many times the proof's power."""
    share = (design["epsilon"] / design["epsilon"].max()).to_numpy()
    scatter = np.exp(1e-5 * random.standard_normal(len(design)))
    losses = 0.2 * share ** (rates / _inverse_rates(design)) * scatter
    return _cells(design).assign(test_loss=losses)


def _harmful_loss(
    design: pd.DataFrame, losses: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    """Cells whose test loss is the same at every ε."""
    scatter = np.exp(1e-5 * random.standard_normal(len(design)))
    return _cells(design).assign(test_loss=np.abs(losses) * scatter)


def _inverse_rates(design: pd.DataFrame) -> NDArray[np.float64]:
    """2M² of each cell."""
    return 2 * design["tokens"].to_numpy(dtype=np.float64) ** 2


def _test_margin(
    design: pd.DataFrame, slopes: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    slopes = slopes / _inverse_rates(design)
    return _cells(design).assign(test_margin=2 + slopes * np.log(1 / design["epsilon"]))


def _boundary(
    design: pd.DataFrame, powers: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    """Cells whose boundary is N·SNR^p = C, with half of figure 1's noise."""
    crossing = np.log(MIDDLE_SNR) - np.log(design["n"] / MIDDLE_N) / powers[0]
    away = np.log(design["snr"]) - crossing - shifts(design, random) / 2
    return _cells(design).assign(test_loss=test_loss(away.to_numpy()))


def _side_worlds(side: Regime) -> dict[str, Worlds]:
    power = tolerance_margin(T_POWERS[side]["snr"], claims.TOLERANCE, "")
    return {
        f"theorem-{side}-steps": number_worlds(
            partial(_steps, side=side), claims.AT_MOST_T, 0.001, logs=True
        ),
        f"theorem-{side}-powers": number_worlds(partial(_powers, side=side), power, 0.001),
    }


THEOREM_REGIME: Mapping[str, Worlds] = {
    **_side_worlds("benign"),
    **_side_worlds("harmful"),
    "theorem-benign-test-loss": number_worlds(_benign_loss, claims.RATE, 0.05),
    "theorem-harmful-test-loss": number_worlds(_harmful_loss, claims.AT_LEAST, 0.002),
    "theorem-benign-test-margin": number_worlds(_test_margin, claims.RATE, 0.05),
    "theorem-transition": number_worlds(_boundary, claims.TRANSITION, 0.0),
}


WORLDS: Mapping[str, Worlds] = {
    **FIGURE_1,
    **DYNAMICS,
    **THEOREM_REGIME,
    **PROPOSITIONS,
    **EVERY_TOKEN,
    **WIDE_HEADS,
    **BOUNDARIES,
}
