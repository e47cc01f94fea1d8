"""Made-up worlds for the claims of `benign-vit` on the propositions in the paper's proofs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.benign_vit_figures import STAGE_2, STAGE_3, logged
from calibration.rates import Worlds
from calibration.worlds import exception_worlds, number_worlds
from overfit_cli.studies.benign_vit.claims import lemmas, propositions
from overfit_cli.studies.benign_vit.parameters import TOKEN_CLASSES

Numbers = NDArray[np.float64]


def _even(steps: pd.DataFrame) -> dict[str, pd.Series[float]]:
    """Attention of 1/M on every token, by column."""
    tokens = steps["tokens"].astype(float)
    on_class = {"signal": 1 / tokens, "noise": 1 / tokens, "rest": (tokens - 2) / tokens}
    return {
        f"attention_{source}_{target}": on_class[target]
        for source in TOKEN_CLASSES
        for target in TOKEN_CLASSES
    }


def _gone(design: pd.DataFrame, gone: Numbers, random: np.random.Generator) -> pd.DataFrame:
    """Logged steps whose signals pay themselves 1/M and so many M-ths more."""
    steps = logged(design, gone)
    even = _even(steps)
    more = even["attention_signal_signal"] * (1 + steps["number"])
    return steps.assign(**even | {"attention_signal_signal": more})


def _products(design: pd.DataFrame, powers: Numbers, random: np.random.Generator) -> pd.DataFrame:
    """Logged steps in which exp(⟨q₂, k₂⟩) grows with a power in stage 2."""
    steps = logged(design, powers)
    since = (steps["part"] - STAGE_2).clip(lower=0) / STAGE_3
    return steps.assign(
        product_noise_noise=np.log1p(since ** steps["number"]), product_noise_signal=0.0
    )


def _attention(
    design: pd.DataFrame, attention: Numbers, random: np.random.Generator
) -> pd.DataFrame:
    """Logged steps whose signals pay token 2 so much attention, and the others all."""
    steps = logged(design, attention)
    more = 1e-5 * (steps["seed"] % 7)  # equal numbers would bound no mean
    return steps.assign(
        attention_signal_noise=steps["number"],
        attention_noise_noise=0.999 + more,
        attention_rest_noise=0.99 + more,
    )


def _on_test_data(
    design: pd.DataFrame, breaks: NDArray[np.bool_], random: np.random.Generator
) -> pd.DataFrame:
    """Cells whose test signals pay themselves much, and whose new noise has small values."""
    scatter = np.exp(0.1 * random.standard_normal(len(design)))
    return design.assign(
        test_signal_attention_min=np.where(breaks, 0.4, 1.6) / (2 * design["tokens"]) * scatter,
        test_noise_value_max=np.where(breaks, 2.0, 0.1) * scatter,
        train_loss=design["epsilon"],
        steps=1e12,
    )


PROPOSITIONS: Mapping[str, Worlds] = {
    **{
        f"even-attention-until-t1-{side}": number_worlds(_gone, propositions.STILL_EVEN, 0.01)
        for side in ("benign", "harmful")
    },
    "harmful-noise-products": number_worlds(_products, lemmas.QUADRATIC, 0.02),
    "harmful-attention": number_worlds(_attention, lemmas.NEAR_ONE, 0.003),
    "lemma-d8-attention": exception_worlds(_on_test_data),
    "lemma-d9-values": exception_worlds(_on_test_data),
}
