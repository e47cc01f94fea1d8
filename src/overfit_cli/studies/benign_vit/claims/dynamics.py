"""The claims of appendix A of Jiang et al. 2024 (figures 3 and 4), seed by seed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import Selection, finite_numbers, require_trained
from overfit_cli.claims.stated import stated_claim
from overfit_cli.core.claim import Claim, inconclusive, not_run
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory import Regime

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


def _figure_cells(cells: pd.DataFrame, regime: Regime) -> pd.DataFrame:
    """The logged steps of the cells of figure 3 (benign) or figure 4 (harmful)."""
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


HYPOTHESES: Mapping[Regime, str] = {
    regime: "appendix A's values: M 4, d 2048, d_h 1024, d_v 256, σ_p 0.05, σ̃_p 1, "
    f"n {point['n']:g}, ‖μ‖ {point['signal_norm']:g}; others are section 6's"
    for regime, point in POINTS.items()
}


GROWN: Mapping[str, tuple[tuple[str, str], ...]] = {
    "products": (
        ("product_signal_signal", "product_signal_noise"),
        ("product_noise_signal", "product_noise_noise"),
    ),
    "value-growth": (("value_plus", "value_noise"), ("value_minus", "value_noise")),
    "attention-growth": (("attention_signal", "attention_noise"),),
}
"""Columns of the signal and of the noise that grow, by the last word of the claim's name."""


def _grown(steps: pd.DataFrame, regime: Regime, quantity: str) -> pd.DataFrame:
    """What columns have grown by from the first logged step to the last, a row for each cell.

    Of the signals' values the size is meant; all grow over the same steps, so that what grows
    faster is what has grown more. A cell that is not fitted has grown by nothing.
    """
    chosen = require_trained(_figure_cells(steps, regime)).sort_values("step")
    names = {name for pair in GROWN[quantity] for name in pair}
    for name in names:
        finite_numbers(chosen, name)
    ends = chosen.groupby("key").agg(["first", "last"])
    last = ends["step", "last"]
    whole = (ends["step", "first"] == 0) & (last > 0) & (last == ends["steps", "last"])
    if not whole.all():
        raise inconclusive(
            f"{int((~whole).sum())} of {len(whole)} cells weren't logged to the end."
        )
    fitted = ends["status", "last"] == "done"
    grown = {name: _increase(ends, name).where(fitted, 0.0) for name in names}
    cells = chosen.drop_duplicates("key").set_index("key")
    return cells.assign(**grown, status="done").reset_index()


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
    pairs = [pair if regime == "benign" else pair[::-1] for pair in GROWN[quantity]]
    conditions = [text for grows, other in pairs for text in (f"{grows} > {other}", f"{grows} > 0")]
    return stated_claim(
        partial(_grown, regime=regime, quantity=quantity),
        BenignVitParameters,
        f"share of seeds with {' and '.join(conditions)} everywhere >= 2/3 with at least 10 seeds",
        number="the share of seeds on which this is so",
        because="two draws of three",
        name=f"dynamics-{regime}-{quantity}",
        kind="paper",
        source=f"Jiang et al. 2024, appendix A, figure {3 if regime == 'benign' else 4}",
        statement=f"Where overfitting is {regime}, {statements[quantity]}.",
        hypotheses=HYPOTHESES[regime],
        figure="dynamics",
        preset=f"dynamics-{regime}",
        reads="trajectories",
    )


DYNAMICS = tuple(_growth_claim(regime, quantity) for regime in _ROLES for quantity in GROWN)
