"""Numbers that section 5's lemmas are about, of one cell's logged steps (Jiang et al. 2024).

Each function takes the steps of a cell, in order, with the columns of its trajectory, and the
cell's parameters. It returns nan where the steps don't tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory.predictions import Regime, boundary_product
from overfit_cli.studies.benign_vit.theory.steps import stage_ends

LEAST_LOGGED = 8
"""The fewest logged steps of a stage that tell a power."""

NOTHING = 1e-12
"""What a ratio is taken as that is zero or below it, as its logarithm is asked for."""


def signal_update(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the logarithm of what a step adds to γ₊ − γ₋ over lemma 5.1's, the median."""
    added = _per_step(steps, "gamma_plus") - _per_step(steps, "gamma_minus")
    predicted = parameters.signal_norm**2 / parameters.tokens
    return _median_logarithm(added, predicted * _attended(steps, parameters, "signal"), parameters)


def noise_update(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the logarithm of what a step adds to y_n ρ_n,2 over lemma 5.1's, the median."""
    predicted = parameters.strong_noise_norm**2 / (parameters.n * parameters.tokens)
    attended = _attended(steps, parameters, "noise")
    return _median_logarithm(_per_step(steps, "rho_noise"), predicted * attended, parameters)


def _attended(steps: pd.DataFrame, parameters: BenignVitParameters, target: str) -> np.ndarray:
    """−ℓ′ times the attention of all tokens on one, between logged steps; (steps − 1,)."""
    weights = {"signal": 1, "noise": 1, "rest": parameters.tokens - 2}
    attention = sum(
        weight * steps[f"attention_{source}_{target}"]
        for source, weight in weights.items()
        if weight
    )
    product = (steps["loss_slope"] * attention).to_numpy(dtype=np.float64)
    return np.asarray((product[1:] + product[:-1]) / 2)


def _per_step(steps: pd.DataFrame, column: str) -> np.ndarray:
    """What a step adds to a column, between logged ones; (steps − 1,)."""
    values = steps[["step", column]].to_numpy(dtype=np.float64)
    moved = np.diff(values, axis=0)
    return np.asarray(moved[:, 1] / moved[:, 0])


def _median_logarithm(
    added: np.ndarray, predicted: np.ndarray, parameters: BenignVitParameters
) -> float:
    ratio = added / (parameters.learning_rate * predicted)
    if not len(ratio) or np.isnan(ratio).any():
        return float("nan")
    return float(np.log(max(np.median(ratio), NOTHING)))


def lead(steps: pd.DataFrame, parameters: BenignVitParameters, side: Regime) -> float:
    """Return the logarithm of the largest lead until stage 2 ends (lemmas 5.2, E.3), over 3M."""
    column = "signal_lead" if side == "benign" else "noise_lead"
    ends = stage_ends(steps, parameters.tokens, side)
    if math.isnan(ends.second) or steps[[column, "loss_slope"]].isna().to_numpy().any():
        return math.nan
    most = steps.loc[steps["step"] <= ends.second, column].max()
    return float(np.log(max(most, NOTHING) / (3 * parameters.tokens)))


def steps_to_lead(steps: pd.DataFrame, parameters: BenignVitParameters, side: Regime) -> float:
    """Return the steps until the lead is 3M, where stage 1 ends."""
    return stage_ends(steps, parameters.tokens, side).first


def over_first_stage(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the steps until the lead is 3M, over T₁ of lemma 5.2 where N·SNR² is large."""
    tokens, parts = parameters.tokens, parameters.learning_rate * parameters.output_scale**2
    first = (
        10 * tokens * (3 * tokens + 1) / (parts * parameters.d_h**0.25 * parameters.signal_norm**2)
    )
    return float(stage_ends(steps, tokens, "benign").first / first)


def decades_short(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return by how many decades N·SNR² is below 60 M² C_p², lemma 5.2's least for a T₁."""
    needed = 60 * (parameters.tokens * parameters.strong_noise) ** 2
    return float(np.log10(needed / boundary_product(parameters.n, parameters.snr)))


def stage_2_value(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the power of t − T₁ in the signal's value over stage 2 (lemma 5.3)."""
    return _power(_stage(steps, parameters, 2), _signal_value)


def stage_2_products(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the power of t − T₁ in exp(Λ) − exp(Λ(T₁)) over stage 2, Λ = ⟨q₊, k₊⟩ − ⟨q₊, k₂⟩."""

    def grown(part: pd.DataFrame) -> np.ndarray:
        difference = part["product_signal_signal"] - part["product_signal_noise"]
        return np.asarray(np.exp(difference.to_numpy(dtype=np.float64)))

    return _power(_stage(steps, parameters, 2), grown)


def stage_3_value(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the power of t − T₂ in exp(value) − exp(value at T₂) over stage 3 (lemma 5.4)."""
    return _power(_stage(steps, parameters, 3), lambda part: np.exp(_signal_value(part)))


def _signal_value(steps: pd.DataFrame) -> np.ndarray:
    """The mean of μ₊ᵀW_V w_O and −μ₋ᵀW_V w_O."""
    values = (steps["value_plus"] - steps["value_minus"]) / 2
    return np.asarray(values.to_numpy(dtype=np.float64))


def _stage(steps: pd.DataFrame, parameters: BenignVitParameters, stage: int) -> pd.DataFrame:
    """The logged steps of stage 2, or of stage 3; none where the stage before doesn't end."""
    ends = stage_ends(steps, parameters.tokens, "benign")
    if steps[["signal_lead", "loss_slope"]].isna().to_numpy().any():
        return steps[:0]
    if stage == 2:
        return steps[(steps["step"] >= ends.first) & (steps["step"] <= ends.second)]
    return steps[steps["step"] >= ends.second]


def _power(part: pd.DataFrame, of: Callable[[pd.DataFrame], np.ndarray]) -> float:
    """The power with which what is added since the stage began scales with the steps since then.

    It is fitted to the stage's second half, where what came before counts least.
    """
    if len(part) < LEAST_LOGGED:
        return float("nan")
    since, added = part["step"].to_numpy(dtype=np.float64), of(part)
    since, added = (values[1:] - values[0] for values in (since, added))
    late = (since >= since[-1] / 2) & (added > 0)
    if late.sum() < LEAST_LOGGED // 2:
        return float("nan")
    return float(np.polyfit(np.log(since[late]), np.log(added[late]), 1)[0])
