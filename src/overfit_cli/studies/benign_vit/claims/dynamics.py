"""The claims of appendix A of Jiang et al. 2024 (figures 3 and 4), seed by seed."""

from __future__ import annotations

import numpy as np
import pandas as pd

from overfit_cli.claim import Claim, Measurement
from overfit_cli.claims.cells import at_defaults
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

LEAST_SEEDS = 10
POINTS: dict[Regime, dict[str, float]] = {
    "benign": {"n": 16, "signal_norm": 25.0},
    "harmful": {"n": 10, "signal_norm": 15.0},
}
"""N and ‖μ‖ of figures 3 and 4."""

_FREE = ("n", "snr", "max_steps", "test_samples", "dtype")


def _chosen(cells: pd.DataFrame, regime: Regime) -> pd.DataFrame:
    """The cells of figure 3 (benign) or figure 4 (harmful)."""
    values = {**SETTING, "n": POINTS[regime]["n"]}
    same = at_defaults(cells, BenignVitParameters, _FREE, values)
    norm = same["snr"] * SETTING["sigma_p"] * np.sqrt(SETTING["d"])
    chosen: pd.DataFrame = same[np.isclose(norm, POINTS[regime]["signal_norm"])]
    return chosen


def _measure(cells: pd.DataFrame, regime: Regime, what: str) -> Measurement:
    """Measure on how many cells the one that should end above the other does."""
    chosen = _chosen(cells, regime)
    seeds = chosen["seed"].nunique()
    if seeds < LEAST_SEEDS:
        return Measurement(
            "not run" if chosen.empty else "inconclusive",
            f"It needs {LEAST_SEEDS} seeds of `overfit sweep dynamics-{regime}`; there are "
            f"{seeds}.",
        )
    fitted = chosen[chosen["status"] == "done"]
    missed = len(chosen) - len(fitted)
    if fitted.empty:
        return Measurement("fails", f"None of {missed} cells is fitted.", 0.0)
    signal, noise = _ends(fitted, what, regime)
    right = (signal > noise) if regime == "benign" else (noise > signal)
    share = float(right.sum() / len(chosen))
    return Measurement(
        "holds" if share == 1 else "fails",
        f"On {int(right.sum())} of {len(chosen)} cells ({seeds} seeds). At the end the "
        f"{what} {_in_words(signal, noise)}. Steps to ε = {fitted['epsilon'].iloc[0]:g}: "
        f"{fitted['steps'].min()} to {fitted['steps'].max()}, {fitted['steps'].mean():.1f} in "
        f"the mean; {missed} cells not fitted.",
        share,
    )


def _claim(regime: Regime, what: str) -> Claim:
    wins, loses = ("signal", "noise") if regime == "benign" else ("noise", "signal")
    of = "attention on the" if what == "attention" else "value x W_V w_O of the"
    return Claim(
        name=f"dynamics-{regime}-{what}",
        source=f"Jiang et al. 2024, figure {3 if regime == 'benign' else 4}",
        statement=f"Where overfitting is {regime}, the {of} {wins} ends above that of the {loses}.",
        accepted="on every seed: the share of cells is 1",
        measure=lambda cells: _measure(cells, regime, what),
    )


def _ends(cells: pd.DataFrame, what: str, regime: Regime) -> tuple[pd.Series, pd.Series]:
    """What the signal and the noise end with; of the two signals' values, the one that decides."""
    if what == "attention":
        return cells["train_attention_signal"], cells["train_attention_noise"]
    values = pd.concat([cells["value_plus"], -cells["value_minus"]], axis=1)
    decides = values.min(axis=1) if regime == "benign" else values.abs().max(axis=1)
    return decides, cells["value_noise"]


def _in_words(signal: pd.Series, noise: pd.Series) -> str:
    each = [f"{one.mean():.3f} ± {one.std():.3f}" for one in (signal, noise)]
    return f"of the signal is {each[0]}, of the noise {each[1]}"


DYNAMICS = tuple(
    _claim(regime, what) for regime in ("benign", "harmful") for what in ("attention", "value")
)
