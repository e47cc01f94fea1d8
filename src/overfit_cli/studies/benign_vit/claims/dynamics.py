"""The claims of appendix A of Jiang et al. 2024 (figures 3 and 4), seed by seed."""

from __future__ import annotations

import numpy as np
import pandas as pd

from overfit_cli.claim import Claim, Measurement, not_run
from overfit_cli.claims.cells import Selection
from overfit_cli.claims.rules import Margin, judged, share_of_seeds
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory.predictions import Regime

SETTING = {
    "tokens": 4,
    "d": 2048,
    "d_h": 1024,
    "d_v": 256,
    "sigma_p": 0.05,
    "sigma_p_tilde": 1.0,
}
"""Appendix A's values; what isn't here is section 6's."""

POINTS: dict[Regime, dict[str, float]] = {
    "benign": {"n": 16, "signal_norm": 25.0},
    "harmful": {"n": 10, "signal_norm": 15.0},
}
"""N and ‖μ‖ of figures 3 and 4."""

ON_MOST_SEEDS = Margin(least=2 / 3, because="two draws of three", fewest_seeds=10)


def _chosen(cells: pd.DataFrame, regime: Regime) -> pd.DataFrame:
    """The cells of figure 3 (benign) or figure 4 (harmful)."""
    selection = Selection(
        BenignVitParameters,
        at={**SETTING, "n": POINTS[regime]["n"]},
        vary=("snr", "max_steps", "test_samples", "dtype"),
        preset=f"dynamics-{regime}",
    )
    same = selection.of(cells)
    norm = same["snr"] * SETTING["sigma_p"] * np.sqrt(SETTING["d"])
    chosen: pd.DataFrame = same[np.isclose(norm, POINTS[regime]["signal_norm"])]
    if chosen.empty:
        raise not_run(f"It needs cells of `overfit sweep {selection.preset}`.")
    return chosen


def _measure(cells: pd.DataFrame, regime: Regime, what: str) -> Measurement:
    """Measure on how many seeds the one that should end above the other does."""
    chosen = _chosen(cells, regime)
    fitted = chosen["status"] == "done"
    signal, noise = _ends(chosen, what, regime)
    right = fitted & ((signal > noise) if regime == "benign" else (noise > signal))
    return judged(
        share_of_seeds(right, chosen["seed"]),
        ON_MOST_SEEDS,
        details={
            f"{what} of the signal at the end, mean": float(signal[fitted].mean()),
            f"{what} of the signal at the end, deviation": float(signal[fitted].std()),
            f"{what} of the noise at the end, mean": float(noise[fitted].mean()),
            f"{what} of the noise at the end, deviation": float(noise[fitted].std()),
            "steps to ε, mean": float(chosen.loc[fitted, "steps"].mean()),
            "cells that aren't fitted": int((~fitted).sum()),
        },
        note="The share of seeds on which it does.",
    )


def _claim(regime: Regime, what: str) -> Claim:
    wins, loses = ("signal", "noise") if regime == "benign" else ("noise", "signal")
    of = "attention on the" if what == "attention" else "value x W_V w_O of the"
    return Claim(
        name=f"dynamics-{regime}-{what}",
        source=f"Jiang et al. 2024, figure {3 if regime == 'benign' else 4}",
        statement=f"Where overfitting is {regime}, the {of} {wins} ends above that of the {loses}.",
        holds_where=ON_MOST_SEEDS.in_words("the share of seeds on which it does"),
        measure=lambda cells: _measure(cells, regime, what),
        figure="dynamics",
        preset=f"dynamics-{regime}",
    )


def _ends(cells: pd.DataFrame, what: str, regime: Regime) -> tuple[pd.Series, pd.Series]:
    """What the signal and the noise end with; of the two signals' values, the one that decides."""
    if what == "attention":
        return cells["train_attention_signal"], cells["train_attention_noise"]
    values = pd.concat([cells["value_plus"], -cells["value_minus"]], axis=1)
    decides = values.min(axis=1) if regime == "benign" else values.abs().max(axis=1)
    return decides, cells["value_noise"]


DYNAMICS = tuple(
    _claim(regime, what) for regime in ("benign", "harmful") for what in ("attention", "value")
)
