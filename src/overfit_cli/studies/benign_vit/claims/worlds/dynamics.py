"""Made-up worlds for the claims on dynamics: figures 3 and 4, and the lemmas of section 5."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.rates import Worlds
from calibration.worlds import number_worlds, share_worlds
from overfit_cli.studies.benign_vit.claims import lemmas
from overfit_cli.studies.benign_vit.claims.dynamics import GROWN, ON_MOST_SEEDS
from overfit_cli.studies.benign_vit.claims.theorem_measures import NEAR_ONE
from overfit_cli.studies.benign_vit.columns import TOKEN_CLASSES
from overfit_cli.studies.benign_vit.theory.predictions import Regime

STEPS = np.arange(0.0, 401.0, 8.0)
"""Logged steps of a made-up training."""

STAGE_2, STAGE_3 = 40.0, 200.0
"""The steps at which the stages begin."""

LEARNED, FORGOTTEN = 5.0, 1.0
"""What wins grows to, and what loses."""


def _ends(
    design: pd.DataFrame, right: NDArray[np.bool_], random: np.random.Generator, regime: Regime
) -> pd.DataFrame:
    """Cells in which the one that should end above the other does, where it is right."""
    signal = right if regime == "benign" else ~right
    high = random.uniform(LEARNED, 2 * LEARNED, len(design))
    low = random.uniform(0, LEARNED, len(design))
    of_signal, of_noise = np.where(signal, high, low), np.where(signal, low, high)
    return design.assign(
        steps=30,
        train_loss=0.009,
        train_attention_signal=of_signal / (2 * LEARNED),
        train_attention_noise=of_noise / (2 * LEARNED),
        value_plus=of_signal,
        value_minus=-of_signal,
        value_noise=of_noise,
    )


def _grown(
    design: pd.DataFrame, right: NDArray[np.bool_], random: np.random.Generator, regime: Regime
) -> pd.DataFrame:
    """Two logged steps of each cell, between which what should grow faster does, where right."""
    start = design.assign(key=np.arange(len(design)).astype(str), step=0, steps=30)
    ends = _ends(start, right, random, regime)
    of_signal, of_noise = ends["value_plus"], ends["value_noise"]
    names = {name for pairs in GROWN.values() for pair in pairs for name in pair}
    last = start.assign(
        step=30,
        **{
            name: of_signal if name.split("_")[-1] in ("signal", "plus", "minus") else of_noise
            for name in names
        },
    )
    return pd.concat([start.assign(**dict.fromkeys(names, 0.0)), last])


def logged(design: pd.DataFrame, values: NDArray[np.float64]) -> pd.DataFrame:
    """Return logged steps of each cell, with three stages, and its number in a column `number`.

    The leads pass 3M where stage 2 begins, and the loss's slope falls where stage 3 does.
    """
    cells = design.assign(
        key=np.arange(len(design)).astype(str), number=values, steps=int(STEPS[-1])
    )
    steps = cells.merge(pd.DataFrame({"step": STEPS}), how="cross")
    lead = 3 * steps["tokens"] * steps["step"] / STAGE_2
    return steps.assign(
        signal_lead=lead,
        noise_lead=lead,
        loss_slope=np.where(steps["step"] < STAGE_3, 0.5, 0.1),
        **{f"attention_{one}_{other}": 0.25 for one in TOKEN_CLASSES for other in TOKEN_CLASSES},
    )


def _updates(
    design: pd.DataFrame, ratios: NDArray[np.float64], random: np.random.Generator, of: str
) -> pd.DataFrame:
    """Logged steps that add so many times what lemma 5.1 says."""
    steps = logged(design, ratios)
    noise = steps["sigma_p_tilde"] ** 2 * np.where(steps["noise_per"] == "token", 1, steps["d"])
    strength = {"signal": (steps["snr"] * steps["sigma_p"]) ** 2, "noise": noise / steps["n"]}[of]
    summed = (steps["loss_slope"] * strength).groupby(steps["key"]).cumsum()
    added = steps["number"] * steps["learning_rate"] * summed * (STEPS[1] - STEPS[0])
    # All tokens together pay M times a quarter, and M is divided by: a quarter of M stays.
    added *= 0.25
    return steps.assign(gamma_plus=added / 2, gamma_minus=-added / 2, rho_noise=added)


def _leads(
    design: pd.DataFrame, leads: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    """Logged steps whose lead grows to so many times 3M by the end of stage 2."""
    steps = logged(design, leads)
    lead = 3 * steps["tokens"] * steps["number"] * (steps["step"] / STAGE_3).clip(upper=1)
    return steps.assign(signal_lead=lead, noise_lead=lead)


def _powers(
    design: pd.DataFrame, powers: NDArray[np.float64], random: np.random.Generator, stage: float
) -> pd.DataFrame:
    """Logged steps in which what a lemma is about grows with a power of the steps since a stage."""
    steps = logged(design, powers)
    since = (steps["step"] - stage).clip(lower=0) / STAGE_3
    grown = since ** steps["number"]
    logarithm = np.log1p(grown)
    value = grown if stage == STAGE_2 else logarithm
    return steps.assign(
        value_plus=value,
        value_minus=-value,
        product_signal_signal=logarithm,
        product_signal_noise=0.0,
    )


def _attention(
    design: pd.DataFrame, attention: NDArray[np.float64], random: np.random.Generator
) -> pd.DataFrame:
    """Logged steps whose tokens 3 to M pay the signal so much attention, and the others all."""
    steps = logged(design, attention)
    return steps.assign(
        attention_signal_signal=0.999,
        attention_noise_signal=0.99,
        attention_rest_signal=steps["number"],
    )


_REGIMES: tuple[Regime, ...] = ("benign", "harmful")

DYNAMICS: Mapping[str, Worlds] = {
    **{
        f"dynamics-{regime}-{what}": share_worlds(partial(_ends, regime=regime), ON_MOST_SEEDS)
        for regime in _REGIMES
        for what in ("attention", "value")
    },
    **{
        f"dynamics-{regime}-{what}": share_worlds(partial(_grown, regime=regime), ON_MOST_SEEDS)
        for regime in _REGIMES
        for what in GROWN
    },
    "lemma51-signal": number_worlds(partial(_updates, of="signal"), lemmas.SAME, 0.01, logs=True),
    "lemma51-noise": number_worlds(partial(_updates, of="noise"), lemmas.AT_MOST, 0.01, logs=True),
    "lemma52-lead": number_worlds(_leads, lemmas.LEAD, 0.15, logs=True),
    "lemma-e3-lead": number_worlds(_leads, lemmas.LEAD, 0.21, logs=True),
    "lemma53-values": number_worlds(partial(_powers, stage=STAGE_2), lemmas.LINEAR, 0.01),
    "lemma53-products": number_worlds(partial(_powers, stage=STAGE_2), lemmas.QUADRATIC, 0.16),
    "lemma54-values": number_worlds(partial(_powers, stage=STAGE_3), lemmas.LINEAR, 0.003),
    "stage3-attention": number_worlds(_attention, NEAR_ONE, 0.003),
}
