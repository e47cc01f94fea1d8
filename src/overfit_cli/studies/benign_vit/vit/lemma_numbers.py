"""The numbers in section 5's lemmas (Jiang et al. 2024), from logged steps.

Each function takes the logged steps of a cell, in order, with the columns of its trajectory, and
the cell's parameters. A number is nan where the steps don't tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.vit.theory import Regime, stage_ends

if TYPE_CHECKING:
    import pandas as pd

LEAST_LOGGED = 8
"""The fewest logged steps of a stage that tell a power."""

NOTHING = 1e-12
"""The value for a ratio of at most zero, so that it has a logarithm."""


def signal_updates(steps: pd.DataFrame, parameters: BenignVitParameters) -> np.ndarray:
    """Return what each logged step adds to γ₊ − γ₋ over lemma 5.1's, (steps − 1,)."""
    added = _per_step(steps, "gamma_plus") - _per_step(steps, "gamma_minus")
    predicted = parameters.signal_norm**2 / parameters.tokens
    return _over(added, predicted * _attended(steps, parameters, "signal"), parameters)


def rarer_signal_share(steps: pd.DataFrame, parameters: BenignVitParameters) -> np.ndarray:
    """Return the share of γ₊ − γ₋ that each logged step adds to the slower one, (steps − 1,)."""
    plus, minus = _per_step(steps, "gamma_plus"), -_per_step(steps, "gamma_minus")
    return np.asarray(np.minimum(plus, minus) / (plus + minus))


def noise_updates(steps: pd.DataFrame, parameters: BenignVitParameters) -> np.ndarray:
    """Return what each logged step adds to y_n ρ_n,2 over lemma 5.1's, (steps − 1,)."""
    predicted = parameters.strong_noise_norm**2 / (parameters.n * parameters.tokens)
    attended = _attended(steps, parameters, "noise")
    return _over(_per_step(steps, "rho_noise"), predicted * attended, parameters)


def _attended(steps: pd.DataFrame, parameters: BenignVitParameters, target: str) -> np.ndarray:
    """−ℓ′ times the attention of all tokens on one, where each step begins; (steps − 1,)."""
    weights = {"signal": 1, "noise": 1, "rest": parameters.tokens - 2}
    attention = sum(
        weight * steps[f"attention_{source}_{target}"]
        for source, weight in weights.items()
        if weight
    )
    product = (steps["loss_slope"] * attention).to_numpy(dtype=np.float64)
    return np.asarray(product[:-1])


def _per_step(steps: pd.DataFrame, column: str) -> np.ndarray:
    """What a step adds to a column, between logged ones; (steps − 1,)."""
    values = steps[["step", column]].to_numpy(dtype=np.float64)
    moved = np.diff(values, axis=0)
    return np.asarray(moved[:, 1] / moved[:, 0])


def _over(added: np.ndarray, predicted: np.ndarray, parameters: BenignVitParameters) -> np.ndarray:
    return np.asarray(added / (parameters.learning_rate * predicted))


def lead_at_t1(steps: pd.DataFrame, parameters: BenignVitParameters, side: Regime) -> float:
    """Return the logarithm of the least lead from T₁ until stage 2 ends, over 3M.

    T₁ is that of lemma 5.2 (benign) or E.3 (harmful), as printed. See `t1_over_stage_2` for where
    it comes after stage 2.
    """
    column = "signal_lead" if side == "benign" else "noise_lead"
    start, ends = t1(parameters, side), stage_ends(steps, parameters.tokens, side)
    after = steps[steps["step"] >= start]
    within = after[after["step"] <= ends.second]
    if within.empty or math.isnan(ends.second) or after[column].isna().any():
        return math.nan
    return float(np.log(max(within[column].min(), NOTHING) / (3 * parameters.tokens)))


def t1_over_stage_2(steps: pd.DataFrame, parameters: BenignVitParameters, side: Regime) -> float:
    """Return T₁ over the step at which stage 2 ends; nan where it isn't seen to end.

    The lemmas place T₁ in stage 1. Above 1 nothing lies from T₁ to the end of stage 2.
    """
    if steps["loss_slope"].isna().any():
        return math.nan
    return t1(parameters, side) / stage_ends(steps, parameters.tokens, side).second


def t1(parameters: BenignVitParameters, side: Regime) -> float:
    """Return T₁ of lemma 5.2 or E.3, as printed; infinite where it isn't positive."""
    tokens, n, noise = parameters.tokens, parameters.n, parameters.noise_norm**2
    strong = parameters.strong_noise**2
    if side == "benign":
        factor, rate = 10, n * parameters.signal_norm**2 - 60 * tokens**2 * strong * noise
    else:
        factor, rate = 4, (strong - 24 * tokens) * noise
    if rate <= 0:
        return math.inf
    common = parameters.learning_rate * parameters.d_h**0.25 * parameters.output_scale**2
    return float(factor * tokens * (3 * tokens + 1) * n / (common * rate))


def steps_to_lead(steps: pd.DataFrame, parameters: BenignVitParameters, side: Regime) -> float:
    """Return the steps until the lead is 3M, where stage 1 ends."""
    return stage_ends(steps, parameters.tokens, side).first


def stage_2_value(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the power of t − T₁ in V₊ and −V₋ over stage 2, the lesser (lemma 5.3)."""
    part = _stage(steps, parameters, 2)
    return float(np.min([_power(part, partial(_signal_value, sign)) for sign in SIGNALS]))


def stage_2_products(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the power of t − T₁ in exp(Λ) − exp(Λ(T₁)) over stage 2, Λ = ⟨q₊, k₊⟩ − ⟨q₊, k₂⟩."""

    def grown(part: pd.DataFrame) -> np.ndarray:
        difference = part["product_signal_signal"] - part["product_signal_noise"]
        return np.asarray(np.exp(difference.to_numpy(dtype=np.float64)))

    return _power(_stage(steps, parameters, 2), grown)


def stage_3_value(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the power of t − T₂ in exp(V) − exp(V(T₂)) over stage 3 (lemma 5.4).

    V is V₊ or −V₋, whichever has the lesser power.
    """
    part = _stage(steps, parameters, 3)

    def grown(sign: str, part: pd.DataFrame) -> np.ndarray:
        return np.asarray(np.exp(_signal_value(sign, part)))

    return float(np.min([_power(part, partial(grown, sign)) for sign in SIGNALS]))


SIGNALS = ("plus", "minus")
"""Both signals, as columns name them."""


def _signal_value(sign: str, steps: pd.DataFrame) -> np.ndarray:
    """V₊ = μ₊ᵀW_V w_O, or −V₋ = −μ₋ᵀW_V w_O."""
    values = steps[f"value_{sign}"].to_numpy(dtype=np.float64)
    return values if sign == "plus" else -values


def _stage(steps: pd.DataFrame, parameters: BenignVitParameters, stage: int) -> pd.DataFrame:
    """The logged steps of stage 2, or of stage 3; none where the stage before doesn't end."""
    ends = stage_ends(steps, parameters.tokens, "benign")
    if steps[["signal_lead", "loss_slope"]].isna().to_numpy().any() or math.isnan(ends.first):
        return steps[:0]
    if stage == 2:
        return steps[(steps["step"] >= ends.first) & (steps["step"] <= ends.second)]
    return steps[steps["step"] >= ends.second]


def _power(part: pd.DataFrame, quantity: Callable[[pd.DataFrame], np.ndarray]) -> float:
    """The power with which what is added since the stage began scales with the steps since then.

    It is fitted to the stage's second half, where what came before counts least; 0 where nothing is
    added then.
    """
    if len(part) < LEAST_LOGGED:
        return float("nan")
    since, added = part["step"].to_numpy(dtype=np.float64), quantity(part)
    since, added = (values[1:] - values[0] for values in (since, added))
    late = since >= since[-1] / 2
    if late.sum() < LEAST_LOGGED // 2 or np.isnan(added).any():
        return float("nan")
    if (added[late] <= 0).any():
        return 0.0
    return float(np.polyfit(np.log(since[late]), np.log(added[late]), 1)[0])
