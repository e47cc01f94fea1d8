"""Theorem 3, with W_Q alone trained: which kernel reaches zero loss, and which stops above it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from overfit_cli.claim import Claim, Measurement, inconclusive
from overfit_cli.claims.cells import Values
from overfit_cli.studies.attention_kernel.regression.claims.linear_rates import condition_claim
from overfit_cli.studies.attention_kernel.regression.claims.selection import (
    SOURCE,
    ZERO,
    judged_on,
    share_at_zero,
    zero_in_words,
)

FLOOR_SLACK = 1.05
"""A loss within this ratio of its floor has come down to it."""

_LABELS = {
    "below": "below the hull of the token values",
    "inside": "inside the hull of the token values",
    "mixed-sign": "of random sign",
}
_GAUSSIAN: Values = {"kernel": "gaussian", "trained": "query"}
_SOFTMAX: Values = {"kernel": "softmax", "trained": "query"}


def gaussian_zero(target: str) -> Claim:
    """Claim that the Gaussian kernel brings the loss to zero (Theorem 3 (1))."""
    return Claim(
        name=f"theorem3-gaussian-{target}",
        source=f"{SOURCE}, Theorem 3 (1)",
        statement="Trained in W_Q alone, Gaussian attention reaches zero loss: labels "
        f"{_LABELS[target]}.",
        accepted=f"at some step size all seeds fall below {ZERO:g} of their starting loss",
        measure=judged_on({**_GAUSSIAN, "target": target}, _reaches_zero),
    )


def _reaches_zero(cells: pd.DataFrame) -> Measurement:
    shares = share_at_zero(cells)
    best, decades = float(shares.max()), cells["condition_12"].median()
    at_best = cells[(cells["status"] == "done") & (cells["learning_rate"] == shares.idxmax())]
    sentence = (
        f"Gaussian kernel, {zero_in_words(cells)}. The largest final loss at the best is "
        f"{at_best['relative_loss'].astype(float).max():.1e} of its start. "
        f"Condition (12) is missed by {decades:.0f} decades (median)."
    )
    floor = cells["floor"].astype(float)
    if (floor > 0).any():
        sentence += f" No W_Q gets below a loss of {floor[floor > 0].median():.3g} (median)."
    return Measurement("holds" if best == 1 else "fails", sentence, best)


def softmax_stops(target: str) -> Claim:
    """Claim that softmax attention stops at a loss above zero (Theorem 3 (2))."""
    return Claim(
        name=f"theorem3-softmax-{target}",
        source=f"{SOURCE}, Theorem 3 (2)",
        statement="Trained in W_Q alone, softmax attention stops above zero loss: labels "
        f"{_LABELS[target]}.",
        accepted=f"no seed falls below {ZERO:g} of its start at any step size, and each comes "
        f"within {FLOOR_SLACK - 1:.0%} of its floor at its own best step size (where the floor is "
        "0, no finite run can tell)",
        measure=judged_on({**_SOFTMAX, "target": target}, _stops_at_floor),
    )


def _stops_at_floor(cells: pd.DataFrame) -> Measurement:
    largest_share, words = float(share_at_zero(cells).max()), zero_in_words(cells)
    if largest_share > 0:
        return Measurement("fails", f"Softmax, {words}.", largest_share)
    done = cells[cells["status"] == "done"]
    ratios = done["floor_ratio"].astype(float)
    nearest = ratios.groupby(done["seed"]).min().dropna()
    if nearest.empty:
        return inconclusive(f"Softmax, {words}; the floor is 0, so it may only be slow.")
    largest = ratios.groupby(done["learning_rate"]).max()
    by_rate = ", ".join(f"{ratio:.3f} at {rate:g}" for rate, ratio in largest.items())
    return Measurement(
        "holds" if nearest.max() <= FLOOR_SLACK else "inconclusive",
        f"Softmax, {words}. At its best step size each of {len(nearest)} seeds ends at "
        f"{nearest.min():.3f} to {nearest.max():.3f} times its floor; the largest ratio by "
        f"step size: {by_rate}.",
        float(nearest.max()),
        float(nearest.min()),
        float(nearest.max()),
        "over seeds",
    )


def _gradient_above_gamma(cells: pd.DataFrame) -> Measurement:
    """Measure by how many decades the squared gradient exceeds what Theorem 3 needs."""
    shares = share_at_zero(cells)
    if shares.max() == 0:
        return inconclusive("At no step size did a seed reach zero loss: all may be too large.")
    best = cells["learning_rate"].isin(shares.index[shares == shares.max()])
    done = cells[best & (cells["status"] == "done")]
    stuck = int((cells.loc[~best, "pl_ratio_min"] == 0).sum())
    with np.errstate(divide="ignore"):  # a gradient of zero is infinitely many decades below γ
        measured = done["pl_ratio_min"].astype(float).map(np.log10)
    gamma = done["log10_gamma"].astype(float)
    above = measured - gamma
    sentence = (
        f"The smallest squared gradient over twice the loss is 10^{measured.median():.1f} (median "
        f"of {len(done)} cells), γ is 10^{gamma.median():.0f}: {above.median():.0f} decades "
        "between them."
    )
    if stuck:
        sentence += (
            f" At the other step sizes {stuck} of {int((~best).sum())} cells came to a gradient of "
            "exactly zero: steps so large that all attention vanished."
        )
    return Measurement(
        "holds" if (above >= 0).all() else "fails",
        sentence,
        float(above.median()),
        float(above.min()),
        float(above.max()),
        "least and most",
    )


CLAIMS = (
    *(gaussian_zero(target) for target in _LABELS),
    *(softmax_stops(target) for target in _LABELS),
    Claim(
        name="theorem3-rate",
        source=f"{SOURCE}, Theorem 3 (1), appendix 1.5",
        statement="Gaussian attention's squared gradient is at least γ times twice the loss.",
        accepted="at every logged step of every cell at the step sizes that reach zero loss: at "
        "least 0 decades",
        measure=judged_on({**_GAUSSIAN, "target": "below"}, _gradient_above_gamma),
    ),
    condition_claim("12", 3, _GAUSSIAN),
)
