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

from overfit_cli.studies.benign_vit.parameters import (
    TOKEN_CLASSES,
    BenignVitParameters,
    weight_deviations,
)
from overfit_cli.studies.benign_vit.theory import Regime, stage_ends

if TYPE_CHECKING:
    import pandas as pd

LEAST_LOGGED = 8
"""The fewest logged steps of a stage that tell a power."""

WINS: dict[Regime, str] = {"benign": "signal", "harmful": "noise"}

NOTHING = 1e-12
"""The value for a ratio of at most zero, so that it has a logarithm."""


def lead_at_t1(steps: pd.DataFrame, parameters: BenignVitParameters, side: Regime) -> float:
    """Return the logarithm of the least lead from T₁ as printed until stage 2 ends, over 3M."""
    column = "signal_lead" if side == "benign" else "noise_lead"
    start, ends = t1(parameters, side), stage_ends(steps, parameters.tokens, side)
    after = steps[steps["step"] >= start]
    within = after[after["step"] <= ends.second]
    if within.empty or math.isnan(ends.second) or after[column].isna().any():
        return math.nan
    return float(np.log(max(within[column].min(), NOTHING) / (3 * parameters.tokens)))


def t1_over_stage_2(steps: pd.DataFrame, parameters: BenignVitParameters, side: Regime) -> float:
    """Return T₁, which lemmas place in stage 1, over the end of stage 2; nan where it has none."""
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


def stage_2_value(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the power of t − T₁ in V₊ and −V₋ over stage 2, the lesser (lemma 5.3)."""
    part = _stage(steps, parameters, 2)
    return float(np.min([_power(part, partial(_signal_value, sign)) for sign in SIGNALS]))


def stage_2_products(
    steps: pd.DataFrame,
    parameters: BenignVitParameters,
    query: str = "signal",
    side: Regime = "benign",
) -> float:
    """Return the power of t − T₁ in exp(Λ) − exp(Λ(T₁)) over stage 2.

    Λ is ⟨q, k₊⟩ − ⟨q, k₂⟩ on the benign side, and the opposite Ψ on the harmful one, of the query
    of the + signal or of token 2.
    """
    sign = 1 if side == "benign" else -1

    def grown(part: pd.DataFrame) -> np.ndarray:
        difference = part[f"product_{query}_signal"] - part[f"product_{query}_noise"]
        return np.asarray(np.exp(sign * difference.to_numpy(dtype=np.float64)))

    return _power(_stage(steps, parameters, 2, side), grown)


def stage_2_noise_value(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the power of t − T₁ in the mean size of token 2's value over stage 2, if harmful."""

    def grown(part: pd.DataFrame) -> np.ndarray:
        return part["value_noise"].to_numpy(dtype=np.float64)

    return _power(_stage(steps, parameters, 2, "harmful"), grown)


def attention_gone_at_t1(
    steps: pd.DataFrame, parameters: BenignVitParameters, side: Regime, source: str
) -> float:
    """Return the most that a class's attention on a token differs from 1/M up to T₁, times M."""
    before = steps[steps["step"] <= t1(parameters, side)]
    counts = {"signal": 1, "noise": 1, "rest": parameters.tokens - 2}
    gone = [
        (before[f"attention_{source}_{target}"] / count - 1 / parameters.tokens).abs().max()
        for target, count in counts.items()
        if count
    ]
    return float(parameters.tokens * np.max(gone))


def stage_3_value(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the lesser power of t − T₂ in exp(V₊) and exp(−V₋) over stage 3 (lemma 5.4)."""
    part = _stage(steps, parameters, 3)

    def grown(sign: str, part: pd.DataFrame) -> np.ndarray:
        return np.asarray(np.exp(_signal_value(sign, part)))

    return float(np.min([_power(part, partial(grown, sign)) for sign in SIGNALS]))


SIGNALS = ("plus", "minus")


def _signal_value(sign: str, steps: pd.DataFrame) -> np.ndarray:
    """V₊ = μ₊ᵀW_V w_O, or −V₋ = −μ₋ᵀW_V w_O."""
    values = steps[f"value_{sign}"].to_numpy(dtype=np.float64)
    return values if sign == "plus" else -values


def _stage(
    steps: pd.DataFrame, parameters: BenignVitParameters, stage: int, side: Regime = "benign"
) -> pd.DataFrame:
    """The logged steps of stage 2, or of stage 3; none where the stage before doesn't end."""
    ends = stage_ends(steps, parameters.tokens, side)
    lead = "signal_lead" if side == "benign" else "noise_lead"
    if steps[[lead, "loss_slope"]].isna().to_numpy().any() or math.isnan(ends.first):
        return steps[:0]
    if stage == 2:
        return steps[(steps["step"] >= ends.first) & (steps["step"] <= ends.second)]
    return steps[steps["step"] >= ends.second]


def _power(part: pd.DataFrame, quantity: Callable[[pd.DataFrame], np.ndarray]) -> float:
    """The power of the steps since a stage began in what is added since then, in its second half.

    0 where nothing is added then.
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


def least_products_power(
    steps: pd.DataFrame, parameters: BenignVitParameters, side: Regime
) -> float:
    """Return the least power of t − T₁ in exp(Λ) − exp(Λ(T₁)) over stage 2, of all queries.

    Λ is the gap at the worst sample, token and key of each class of query; Ψ on the harmful side.
    """
    part, wins = _stage(steps, parameters, 2, side), WINS[side]

    def grown(source: str, part: pd.DataFrame) -> np.ndarray:
        return np.asarray(np.exp(part[f"{wins}_gap_{source}"].to_numpy(dtype=np.float64)))

    return float(np.min([_power(part, partial(grown, source)) for source in TOKEN_CLASSES]))


def least_rise(steps: pd.DataFrame, parameters: BenignVitParameters, side: Regime) -> float:
    """Return the least that scores move as a proposition says from T₁ on, over the largest one."""
    later = steps[steps["step"] >= t1(parameters, side)]
    rises = (later[f"{WINS[side]}_score_rise"] / later["score_most"]).to_numpy(dtype=np.float64)
    return float(np.min(rises)) if len(rises) else math.nan


def norm_change(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the factor by which ‖q‖² or ‖k‖² of a token differs most from its first, less 1."""
    least, most = steps["head_norm_least"].to_numpy(), steps["head_norm_most"].to_numpy()
    return float(np.max([np.max(most), 1 / np.min(least)])) - 1


def largest_move(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the furthest that training moved a product; see `every_token`."""
    return float(np.max(steps["stray_product_move"].to_numpy(dtype=np.float64)))


def scores_over_bound(steps: pd.DataFrame, parameters: BenignVitParameters, side: Regime) -> float:
    """Return the largest score over the propositions' bound, until stage 2 ends and until the end.

    The bound is log(√d_h) in stage 2, and log(√d_h/ε) after it. On the harmful side it is that of
    Ψ, the range of a token's scores; scores themselves may be twice as large there.
    """
    column = "score_most" if side == "benign" else "score_range_most"
    root = math.log(parameters.d_h) / 2
    second = stage_ends(steps, parameters.tokens, side).second
    sizes = steps[column].to_numpy(dtype=np.float64)
    before = sizes[(steps["step"] <= second).to_numpy()]
    if not len(before):
        return math.nan
    after = root - math.log(parameters.epsilon)
    return float(np.max([np.max(before) / root, np.max(sizes) / after]))


def stage_3_lead(steps: pd.DataFrame, parameters: BenignVitParameters, side: Regime) -> float:
    """Return the logarithm of the least lead in stage 3, over 3M."""
    lead = "signal_lead" if side == "benign" else "noise_lead"
    leads = _stage(steps, parameters, 3, side)[lead].to_numpy(dtype=np.float64)
    if not len(leads):
        return math.nan
    return math.log(max(float(np.min(leads)), NOTHING) / (3 * parameters.tokens))


def stage_2_value_most(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the power of t − T₁ in V₊ and −V₋ over stage 2, the greater."""
    part = _stage(steps, parameters, 2)
    return float(np.max([_power(part, partial(_signal_value, sign)) for sign in SIGNALS]))


def stage_3_noise_value(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the power of t − T₂ in exp(y V₂) over harmful stage 3, at the worst sample."""

    def grown(part: pd.DataFrame) -> np.ndarray:
        return np.asarray(np.exp(part["strong_value_least"].to_numpy(dtype=np.float64)))

    return _power(_stage(steps, parameters, 3, "harmful"), grown)


def values_until_t0(steps: pd.DataFrame, parameters: BenignVitParameters, side: Regime) -> float:
    """Return the largest value up to T₀ over its bound: lemmas C.2's tail, and d_h^(−1/4) learned.

    T₀ is that of lemma D.3 or E.1 with a constant of 1, so that what wins learns d_h^(−1/4); with
    σ̃_p² on the harmful side. The tail is 2σ_V‖w_O‖s √(log(2NM/δ)) of the longest token, s.
    """
    learned = (
        parameters.signal_norm**2
        if side == "benign"
        else parameters.strong_noise_norm**2 / parameters.n
    )
    added = parameters.d_h**-0.25
    rate = parameters.learning_rate * learned * parameters.output_scale**2
    before = steps[steps["step"] <= added / rate]
    logarithm = math.log(2.0 * parameters.n * parameters.tokens * parameters.d)
    _, sigma_v = weight_deviations(parameters)
    longest = max(parameters.signal_norm, parameters.strong_noise_norm)
    tail = 2 * sigma_v * parameters.output_scale * longest * math.sqrt(logarithm)
    largest = np.max(before[["noise_value_most", "rest_value_most"]].to_numpy(dtype=np.float64))
    return float(largest / (tail + added))


def largest_value(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """Return the largest value of a noise token over 2 log(1/ε), over all steps."""
    largest = np.max(steps["noise_value_most"].to_numpy(dtype=np.float64))
    return float(largest / (-2 * math.log(parameters.epsilon)))
