"""The claims of appendix A of Jiang et al. 2024 (figures 3 and 4), seed by seed.

The appendix says what grows faster. What is ahead at the end is asked too, as claims of this tool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, finite_numbers, is_unknown, require_trained
from overfit_cli.claims.rules import Margin, judge_estimate, share_of_seeds
from overfit_cli.core.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.studies.benign_vit.vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.vit.theory import Regime

if TYPE_CHECKING:
    from overfit_cli.core.claim import Kind

SETTING = {"tokens": 4, "d": 2048, "d_h": 1024, "d_v": 256, "sigma_p": 0.05, "sigma_p_tilde": 1.0}
"""Appendix A's values; what isn't here is section 6's."""

POINTS: dict[Regime, dict[str, float]] = {
    "benign": {"n": 16, "signal_norm": 25.0},
    "harmful": {"n": 10, "signal_norm": 15.0},
}
"""N and ‖μ‖ of figures 3 and 4."""

_ROLES: dict[Regime, tuple[str, str]] = {
    "benign": ("signal", "noise"),
    "harmful": ("noise", "signal"),
}
"""The attention that wins, and the one that loses."""

OfRegime = Callable[[pd.DataFrame, Regime, str], Measurement]
Reads = Literal["cells", "trajectories"]

ON_MOST_SEEDS = Margin(least=2 / 3, because="two draws of three", fewest_seeds=10)


def _figure_cells(cells: pd.DataFrame, regime: Regime) -> pd.DataFrame:
    """The cells of figure 3 (benign) or figure 4 (harmful), or their logged steps."""
    selection = Selection(
        BenignVitParameters,
        at={**SETTING, "n": POINTS[regime]["n"]},
        vary=("snr", "max_steps", "test_samples", "dtype"),
        preset=f"dynamics-{regime}",
    )
    alike = selection.of(cells)
    norm = alike["snr"] * SETTING["sigma_p"] * np.sqrt(SETTING["d"])
    chosen: pd.DataFrame = alike[np.isclose(norm, POINTS[regime]["signal_norm"])]
    if chosen.empty:
        raise not_run(f"It needs cells of `overfit sweep {selection.preset}`.")
    return chosen


def _measure(cells: pd.DataFrame, regime: Regime, quantity: str) -> Measurement:
    """Measure on how many seeds the one that should end above the other does."""
    chosen = _figure_cells(cells, regime)
    fitted = chosen["status"] == "done"
    signal, noise = _ends(chosen, quantity, regime)
    winner, loser = _ROLES[regime]
    right = fitted & ((signal > noise) if regime == "benign" else (noise > signal))
    return judge_estimate(
        share_of_seeds(right, chosen["seed"], is_unknown(chosen)),
        ON_MOST_SEEDS,
        details={
            f"{quantity} of the signal at the end, mean": float(signal[fitted].mean()),
            f"{quantity} of the signal at the end, deviation": float(signal[fitted].std()),
            f"{quantity} of the noise at the end, mean": float(noise[fitted].mean()),
            f"{quantity} of the noise at the end, deviation": float(noise[fitted].std()),
            "steps to ε, mean": float(chosen.loc[fitted, "steps"].mean()),
            "cells that aren't fitted": int((~fitted).sum()),
        },
        note=f"The share of seeds on which the {winner}'s is larger at the end than the {loser}'s.",
    )


HYPOTHESES: Mapping[Regime, str] = {
    regime: "appendix A's values: M 4, d 2048, d_h 1024, d_v 256, σ_p 0.05, σ̃_p 1, "
    f"n {point['n']:g}, ‖μ‖ {point['signal_norm']:g}; others are section 6's"
    for regime, point in POINTS.items()
}


def _claim(
    regime: Regime,
    quantity: str,
    statement: str,
    measure: OfRegime,
    reads: Reads,
    kind: Kind = "paper",
) -> Claim:
    return Claim(
        name=f"dynamics-{regime}-{quantity}",
        kind=kind,
        source=f"Jiang et al. 2024, appendix A, figure {3 if regime == 'benign' else 4}",
        statement=f"Where overfitting is {regime}, {statement}.",
        hypotheses=HYPOTHESES[regime],
        holds_where=ON_MOST_SEEDS.in_words("the share of seeds on which this is so"),
        measure=lambda cells: measure(cells, regime, quantity),
        figure="dynamics",
        preset=f"dynamics-{regime}",
        reads=reads,
    )


def _end_claim(regime: Regime, quantity: str) -> Claim:
    wins, loses = _ROLES[regime]
    words = "attention on the" if quantity == "attention" else "value x W_V w_O of the"
    statement = f"the {words} {wins} ends above that of the {loses}"
    return _claim(regime, quantity, statement, _measure, "cells", "ours")


def _ends(cells: pd.DataFrame, quantity: str, regime: Regime) -> tuple[pd.Series, pd.Series]:
    """What the signal and the noise end with; of the two signals' values, the one that decides."""
    if quantity == "attention":
        names = ["train_attention_signal", "train_attention_noise"]
    else:
        names = ["value_plus", "value_minus", "value_noise"]
    for name in names:
        finite_numbers(cells[cells["status"] == "done"], name)
    if quantity == "attention":
        return cells[names[0]], cells[names[1]]
    values = pd.concat([cells["value_plus"], -cells["value_minus"]], axis=1)
    decides = values.min(axis=1) if regime == "benign" else values.abs().max(axis=1)
    return decides, cells["value_noise"]


GROWN: Mapping[str, tuple[tuple[str, str], ...]] = {
    "products": (
        ("product_signal_signal", "product_signal_noise"),
        ("product_noise_signal", "product_noise_noise"),
    ),
    "value-growth": (("value_plus", "value_noise"), ("value_minus", "value_noise")),
    "attention-growth": (("attention_signal", "attention_noise"),),
}
"""Columns of the signal and of the noise that grow, by the last word of the claim's name."""


def _growth(steps: pd.DataFrame, regime: Regime, quantity: str) -> Measurement:
    """Measure on how many seeds what should grows faster, from the first logged step to the last.

    Of the signals' values the size is meant; both grow over the same steps, so that who grows
    faster is who has grown more.
    """
    chosen = require_trained(_figure_cells(steps, regime)).sort_values("step")
    for name in {name for pair in GROWN[quantity] for name in pair}:
        finite_numbers(chosen, name)
    ends = chosen.groupby("key").agg(["first", "last"])
    last = ends["step", "last"]
    whole = (ends["step", "first"] == 0) & (last > 0) & (last == ends["steps", "last"])
    if not whole.all():
        raise inconclusive(
            f"{int((~whole).sum())} of {len(whole)} cells weren't logged to the end."
        )
    fitted = ends["status", "last"] == "done"
    right = fitted.copy()
    details: dict[str, float] = {}
    for signal, noise in GROWN[quantity]:
        grown = {name: _increase(ends, name) for name in (signal, noise)}
        lead = grown[signal] - grown[noise]
        faster = lead if regime == "benign" else -lead
        winner = grown[signal if regime == "benign" else noise]
        right &= (faster > 0) & (winner > 0)
        details |= {
            f"growth of {name.replace('_', ' ')}, mean": float(values[fitted].mean())
            for name, values in grown.items()
        }
    return judge_estimate(
        share_of_seeds(right, ends["seed", "last"]),
        ON_MOST_SEEDS,
        details=details,
        note=f"The share of seeds on which the {_ROLES[regime][0]}'s grows faster than the "
        f"{_ROLES[regime][1]}'s throughout training.",
    )


def _increase(ends: pd.DataFrame, name: str) -> pd.Series[float]:
    """What a column has grown by; of a value its size."""
    values = ends[name].abs() if name.startswith("value") else ends[name]
    grown: pd.Series[float] = values["last"] - values["first"]
    return grown


def _growth_claim(regime: Regime, quantity: str) -> Claim:
    winner, loser = _ROLES[regime]
    statements = {
        "products": f"the products ⟨q, k⟩ with the key of the {winner} grow faster than those with "
        f"that of the {loser}, whichever of the two has the query",
        "value-growth": f"the value x W_V w_O of the {winner} grows faster than the {loser}'s",
        "attention-growth": f"more and more attention is paid to the {winner}",
    }
    return _claim(regime, quantity, statements[quantity], _growth, "trajectories")


DYNAMICS = (
    *(_end_claim(regime, quantity) for regime in _ROLES for quantity in ("attention", "value")),
    *(_growth_claim(regime, quantity) for regime in _ROLES for quantity in GROWN),
)
