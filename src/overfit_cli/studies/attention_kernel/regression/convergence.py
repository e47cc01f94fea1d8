"""Theorem 3 with W_Q alone trained: who reaches zero loss, and who stops above it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from overfit_cli.claim import Claim, Measurement
from overfit_cli.studies.attention_kernel.regression.selection import (
    SOURCE,
    ZERO,
    chosen,
    shares_in_words,
    too_few,
    zero_by_rate,
)

FLOOR_SLACK = 1.05
"""A loss within this ratio of its floor has come down to it."""

_PLACES = {
    "below": "below the hull of the token values",
    "inside": "inside the hull of the token values",
    "mixed-sign": "of random sign",
}


def gaussian_zero(target: str) -> Claim:
    """The Gaussian kernel, W_Q alone, brings the loss to zero (Theorem 3 (1))."""

    def measure(cells: pd.DataFrame) -> Measurement:
        cells = chosen(cells, kernel="gaussian", trained="query", target=target)
        refusal = too_few(cells, f"kernel=gaussian, trained=query, target={target}")
        if refusal is not None:
            return refusal
        shares, seeds = zero_by_rate(cells), cells["seed"].nunique()
        best, decades = float(shares.max()), cells["condition_12"].median()
        sentence = (
            f"Gaussian kernel, {shares_in_words(shares, seeds)}. The largest final loss at the "
            f"best is {_at_best(cells, shares)['relative_loss'].max():.1e} of its start. "
            f"Condition (12) is missed by {decades:.0f} decades (median)."
        )
        floor = cells["floor"].astype(float)
        if (floor > 0).any():
            sentence += f" No W_Q gets below a loss of {floor[floor > 0].median():.3g} (median)."
        return Measurement("holds" if best == 1 else "fails", best, None, None, sentence)

    return Claim(
        name=f"theorem3-gaussian-{target}",
        source=f"{SOURCE}, Theorem 3 (1)",
        statement="Trained in W_Q alone, Gaussian attention reaches zero loss: labels "
        f"{_PLACES[target]}.",
        accepted=f"at some step size all seeds fall below {ZERO:g} of their starting loss",
        measure=measure,
    )


def softmax_stops(target: str) -> Claim:
    """Softmax attention, W_Q alone, stops at a loss above zero (Theorem 3 (2))."""

    def measure(cells: pd.DataFrame) -> Measurement:
        cells = chosen(cells, kernel="softmax", trained="query", target=target)
        refusal = too_few(cells, f"kernel=softmax, trained=query, target={target}")
        if refusal is not None:
            return refusal
        shares, seeds = zero_by_rate(cells), cells["seed"].nunique()
        done = cells[cells["status"] == "done"]
        words = shares_in_words(shares, seeds)
        if shares.max() > 0:
            return Measurement("fails", float(shares.max()), None, None, f"Softmax, {words}.")
        nearest = done["floor_ratio"].astype(float).groupby(done["seed"]).min().dropna()
        if nearest.empty:
            return Measurement.without_value(
                "inconclusive", f"Softmax, {words}; the floor is 0, so it may only be slow."
            )
        largest = done["floor_ratio"].astype(float).groupby(done["learning_rate"]).max()
        rates = ", ".join(f"{ratio:.3f} at {rate:g}" for rate, ratio in largest.items())
        return Measurement(
            "holds" if nearest.max() <= FLOOR_SLACK else "inconclusive",
            float(nearest.max()),
            float(nearest.min()),
            float(nearest.max()),
            f"Softmax, {words}. At its best step size each of {len(nearest)} seeds ends at "
            f"{nearest.min():.3f} to {nearest.max():.3f} times its floor; the largest ratio by "
            f"step size: {rates}.",
            "over seeds",
        )

    return Claim(
        name=f"theorem3-softmax-{target}",
        source=f"{SOURCE}, Theorem 3 (2)",
        statement="Trained in W_Q alone, softmax attention stops above zero loss: labels "
        f"{_PLACES[target]}.",
        accepted=f"no seed falls below {ZERO:g} of its start at any step size, and each comes "
        f"within {FLOOR_SLACK - 1:.0%} of its floor at its own best step size (where the floor is "
        "0, no finite run can tell)",
        measure=measure,
    )


def _at_best(cells: pd.DataFrame, shares: pd.Series[float]) -> pd.DataFrame:
    done = cells[(cells["status"] == "done") & (cells["learning_rate"] == shares.idxmax())]
    return done.astype({"relative_loss": float})


def polyak(cells: pd.DataFrame) -> Measurement:
    """Measure by how many decades the squared gradient exceeds what Theorem 3 needs."""
    cells = chosen(cells, kernel="gaussian", trained="query", target="below")
    refusal = too_few(cells, "kernel=gaussian, trained=query, target=below")
    if refusal is not None:
        return refusal
    shares = zero_by_rate(cells)
    if shares.max() == 0:
        return Measurement.without_value(
            "inconclusive", "At no step size did a seed reach zero loss: all may be too large."
        )
    best = cells["learning_rate"].isin(shares.index[shares == shares.max()])
    done = cells[best & (cells["status"] == "done")]
    stuck = int((cells.loc[~best, "pl_ratio_min"] == 0).sum())
    with np.errstate(divide="ignore"):  # a gradient of zero is infinitely many decades below γ
        measured = done["pl_ratio_min"].astype(float).map(np.log10)
    above = measured - done["log10_gamma"].astype(float)
    return Measurement(
        "holds" if (above >= 0).all() else "fails",
        float(above.median()),
        float(above.min()),
        float(above.max()),
        f"The smallest squared gradient over twice the loss is 10^{measured.median():.1f} (median "
        f"of {len(done)} cells), γ is 10^{done['log10_gamma'].astype(float).median():.0f}: "
        f"{above.median():.0f} decades between them."
        + (
            f" At the other step sizes {stuck} of {int((~best).sum())} cells came to a gradient of "
            "exactly zero: steps so large that all attention vanished."
            if stuck
            else ""
        ),
        "least and most",
    )
