"""Where overfitting turns benign, at each value of another parameter: constant, exponent, width."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from overfit_cli.analysis.crossings import crossings
from overfit_cli.analysis.power_law import PowerLaw, fit_power_law
from overfit_cli.parameters import describe
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory import boundary_product, learning_balance

HARMFUL_LOSS = 0.5
"""The test loss at which the transition begins; ln 2 = 0.69 is that of a guess."""

LEAST_VALUES = 3
_FREE = {"n", "snr", "max_steps"}


@dataclass(frozen=True)
class Boundary:
    """The boundary N · SNR^p = C at one value of another parameter.

    A curve is the test loss over SNR of one N and seed. One that never comes down to the threshold
    crosses it at infinity, one that is always below it at 0. The transition begins where a curve
    comes down to `HARMFUL_LOSS`.

    Attributes:
        at: that value.
        median, low, high: of N · SNR² at the crossings of all curves, with their quartiles.
        constants: N · SNR² at the crossing, the median over N, by seed.
        onsets: N · SNR² where the transition begins, likewise.
        widths: by which factor N · SNR² grows from there to the crossing, the median over N, by
            seed; infinite where one of the two lies beyond the grid.
        balance: N · SNR² at which signal and noise are learned equally fast at first.
        law: p and C fitted over N; None where they can't be.
        curves, never: how many curves there are, and how many never cross.
        reach: the least and the greatest SNR of the grid.
    """

    at: float
    median: float
    low: float
    high: float
    constants: pd.Series[float]
    onsets: pd.Series[float]
    widths: pd.Series[float]
    balance: float
    law: PowerLaw | None
    curves: int
    never: int
    reach: tuple[float, float]


def obstacle(cells: pd.DataFrame, axis: str) -> str | None:
    """Say what keeps the boundary from being found at each value of `axis`; None if nothing does.

    Args:
        cells: a study's cells.
        axis: the name of a parameter other than n and snr.
    """
    others = [name for name in describe(BenignVitParameters) if name not in {*_FREE, axis}]
    varied = [name for name in others if cells[name].nunique() > 1]
    if varied:
        return f"{', '.join(varied)} {'varies' if len(varied) == 1 else 'vary'} too"
    for name in ("n", "snr"):
        if (values := cells[name].nunique()) < LEAST_VALUES:
            return f"it takes {LEAST_VALUES} values of {name}, and there are {values}"
    if not (cells["status"] == "done").any():
        return f"none of the {len(cells)} cells is done"
    return None


def boundaries(cells: pd.DataFrame, axis: str, threshold: float) -> list[Boundary]:
    """Find the boundary at each value of `axis`, ascending; none where there is an `obstacle`.

    Args:
        cells: a study's cells.
        axis: the name of a parameter other than n and snr.
        threshold: the test loss at which overfitting turns benign.
    """
    if obstacle(cells, axis):
        return []
    groups = cells.groupby(cells[axis].astype(float))
    return [_boundary(at, group, threshold) for at, group in groups]


def _boundary(at: float, cells: pd.DataFrame, threshold: float) -> Boundary:
    found, begun = (
        crossings(cells, "snr", "n", "test_loss", level) for level in (threshold, HARMFUL_LOSS)
    )
    known = found["side"] != "unknown"
    found, begun = found[known], begun[known]
    products, onsets = crossing_products(found), crossing_products(begun)
    seen = np.isfinite(products) & np.isfinite(onsets) & (onsets > 0) & (products > 0)
    widths = (products / onsets).where(seen, np.inf)
    median, low, high = products.quantile([0.5, 0.25, 0.75], interpolation="nearest").tolist()
    first = cells.iloc[0]
    return Boundary(
        at,
        median,
        low,
        high,
        products.groupby(found["seed"]).agg(_middle),
        onsets.groupby(begun["seed"]).agg(_middle),
        widths.groupby(found["seed"]).agg(_middle),
        float(learning_balance(first["sigma_p_tilde"] / first["sigma_p"], first["tokens"])),
        fit_power_law(found, "n"),
        len(found),
        int((found["side"] != "crosses").sum()),
        (float(cells["snr"].min()), float(cells["snr"].max())),
    )


def crossing_products(found: pd.DataFrame) -> pd.Series[float]:
    """Return N · SNR² at crossings; infinity and 0 for curves that stay above or below.

    A curve that never comes down to the threshold crosses it beyond the grid, and counts as that.

    Args:
        found: as `crossings` returns them, without unknown ones.
    """
    beyond = np.where(found["side"] == "above", np.inf, 0.0)
    snr = np.where(found["side"] == "crosses", found["crossing"], beyond)
    return pd.Series(boundary_product(found["n"], snr), index=found.index)


def _middle(values: pd.Series[float]) -> float:
    """The median; of an even number, the geometric mean of the middle two."""
    below, above = values.quantile(0.5, "lower"), values.quantile(0.5, "higher")
    return float(np.sqrt(below * above))
