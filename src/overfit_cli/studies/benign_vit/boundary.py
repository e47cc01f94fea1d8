"""The boundary of `benign-vit`: N · SNR² where the test loss crosses a threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from overfit_cli.core.arrays import varying
from overfit_cli.core.parameters import describe
from overfit_cli.stats.boundaries import PowerLaw, crossings, fit_power_law
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory import (
    FIGURE_1_EXPONENT,
    HARMFUL_LOSS,
    learning_balance,
)

LEAST_VALUES = 3
"""The least number of values of N and of SNR that show a boundary."""

_FREE = {"n", "snr", "max_steps"}


@dataclass(frozen=True)
class Boundary:
    """The boundary at one value of another parameter, from a curve for each N and seed.

    A curve that crosses the threshold beyond the grid does so at infinity, one that crosses it
    before the grid at 0. The transition begins where a curve passes `HARMFUL_LOSS`.

    Attributes:
        median, low, high: N · SNR² at the crossings of all curves: its median and quartiles.
        constants: N · SNR² at the crossing, the median over N, by seed.
        onsets: N · SNR² where the transition begins, likewise.
        fit: p and C fitted over N; None where they cannot be fitted.
        curves, never: the number of curves, and of those that do not cross.
        reach: the least and the greatest SNR of the grid.
    """

    at: float
    cells: pd.DataFrame
    median: float
    low: float
    high: float
    constants: pd.Series[float]
    onsets: pd.Series[float]
    fit: PowerLaw | None
    curves: int
    never: int
    reach: tuple[float, float]


def why_no_boundary(cells: pd.DataFrame, axis: str) -> str | None:
    """Say why the boundary can't be found at each value of a parameter; None where it can."""
    fixed = [name for name in describe(BenignVitParameters) if name not in {*_FREE, axis}]
    if varied := varying(cells, fixed):  # a curve would mix their values
        return f"{', '.join(varied)} {'varies' if len(varied) == 1 else 'vary'} too"
    for name in ("n", "snr"):
        if (values := cells[name].nunique()) < LEAST_VALUES:
            return f"it takes {LEAST_VALUES} values of {name}, and there are {values}"
    if not (cells["status"] == "done").any():
        return f"none of the {len(cells)} cells is done"
    return None


def boundaries(cells: pd.DataFrame, axis: str, threshold: float) -> list[Boundary]:
    """Find the boundary at each value of `axis`, ascending; none where it can't be found."""
    if why_no_boundary(cells, axis):
        return []
    groups = cells.groupby(cells[axis].astype(float))
    return [_boundary(value, group, threshold) for value, group in groups]


def _boundary(at: float, cells: pd.DataFrame, threshold: float) -> Boundary:
    crossed, begun = (
        table[table["side"] != "unknown"]
        for level in (threshold, HARMFUL_LOSS)
        for table in [crossings(cells, "snr", "n", "test_loss", level)]
    )
    products = crossing_products(crossed)
    low, high = products.quantile([0.25, 0.75], interpolation="nearest").tolist()
    return Boundary(
        at=at,
        cells=cells,
        median=_middle(products),
        low=low,
        high=high,
        constants=products.groupby(crossed["seed"]).agg(_middle),
        onsets=crossing_products(begun).groupby(begun["seed"]).agg(_middle),
        fit=fit_power_law(crossed, "n"),
        curves=len(crossed),
        never=int((crossed["side"] != "crosses").sum()),
        reach=(float(cells["snr"].min()), float(cells["snr"].max())),
    )


def crossing_products(crossed: pd.DataFrame) -> pd.Series[float]:
    """Return N · SNR² at known crossings; infinity and 0 where they lie beyond and before."""
    return crossed["n"] * crossed["crossing"].clip(lower=0) ** FIGURE_1_EXPONENT


def _middle(values: pd.Series[float]) -> float:
    """The median; of an even number of values, the geometric mean of the middle two."""
    ordered = np.sort(values.to_numpy())
    return float(np.sqrt(ordered[(len(ordered) - 1) // 2] * ordered[len(ordered) // 2]))


def balance_at(boundary: Boundary) -> float:
    """Return the N · SNR² at which its cells learn signal and noise equally fast at first."""
    first = boundary.cells.iloc[0]
    return float(learning_balance(first["sigma_p_tilde"] / first["sigma_p"], first["tokens"]))
