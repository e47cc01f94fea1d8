"""The boundary y · x^p = C at each value of another parameter: constant, exponent and width."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from overfit_cli.analysis.crossings import crossings
from overfit_cli.analysis.power_law import PowerLaw, fit_power_law


@dataclass(frozen=True)
class Curves:
    """Which curves cross: a measured column along x, one curve for each y and seed.

    Attributes:
        x, y: the parameters of the plane.
        value: the measured column.
        power: the power p of x in y · x^p, by which crossings are compared.
        threshold: the value at the boundary.
        onset: the value where the transition begins.
    """

    x: str
    y: str
    value: str
    power: float
    threshold: float
    onset: float


@dataclass(frozen=True)
class Boundary:
    """The boundary at one value of another parameter.

    A curve that never comes down to the threshold crosses it at infinity, one that is always below
    it at 0. The transition begins where a curve comes down to the onset.

    Attributes:
        at: that value.
        cells: the cells that have it.
        median, low, high: of y · x^p at the crossings of all curves, with their quartiles.
        constants: y · x^p at the crossing, the median over y, by seed.
        onsets: y · x^p where the transition begins, likewise.
        widths: by which factor y · x^p grows from there to the crossing, the median over y, by
            seed; infinite where one of the two lies beyond the grid.
        fit: p and C fitted over y; None where they can't be.
        curves, never: how many curves there are, and how many never cross.
        reach: the least and the greatest x of the grid.
    """

    at: float
    cells: pd.DataFrame
    median: float
    low: float
    high: float
    constants: pd.Series[float]
    onsets: pd.Series[float]
    widths: pd.Series[float]
    fit: PowerLaw | None
    curves: int
    never: int
    reach: tuple[float, float]


def why_no_boundary(
    cells: pd.DataFrame, fixed: Iterable[str], curves: Curves, least_values: int
) -> str | None:
    """Say why boundaries can't be found; None where they can.

    Args:
        cells: one row per cell.
        fixed: the columns that must take one value: the curves would mix theirs.
        curves: what crosses what.
        least_values: of x and of y.
    """
    varied = [name for name in fixed if cells[name].nunique() > 1]
    if varied:
        return f"{', '.join(varied)} {'varies' if len(varied) == 1 else 'vary'} too"
    for name in (curves.y, curves.x):
        if (values := cells[name].nunique()) < least_values:
            return f"it takes {least_values} values of {name}, and there are {values}"
    if not (cells["status"] == "done").any():
        return f"none of the {len(cells)} cells is done"
    return None


def boundaries(cells: pd.DataFrame, axis: str, curves: Curves) -> list[Boundary]:
    """Find the boundary at each value of `axis`, ascending.

    Args:
        cells: one row per cell. No parameter but x, y and `axis` may vary in it, and some must be
            done at each value of `axis`.
        axis: the name of another parameter.
        curves: what crosses what.
    """
    groups = cells.groupby(cells[axis].astype(float))
    return [_boundary(at, group, curves) for at, group in groups]


def _boundary(at: float, cells: pd.DataFrame, curves: Curves) -> Boundary:
    x, y = curves.x, curves.y
    found, begun = (
        crossings(cells, x, y, curves.value, level) for level in (curves.threshold, curves.onset)
    )
    known = found["side"] != "unknown"
    found, begun = found[known], begun[known]
    products, onsets = (crossing_products(one, y, curves.power) for one in (found, begun))
    seen = np.isfinite(products) & np.isfinite(onsets) & (onsets > 0) & (products > 0)
    widths = (products / onsets).where(seen, np.inf)
    median, low, high = products.quantile([0.5, 0.25, 0.75], interpolation="nearest").tolist()
    return Boundary(
        at=at,
        cells=cells,
        median=median,
        low=low,
        high=high,
        constants=products.groupby(found["seed"]).agg(_middle),
        onsets=onsets.groupby(begun["seed"]).agg(_middle),
        widths=widths.groupby(found["seed"]).agg(_middle),
        fit=fit_power_law(found, y),
        curves=len(found),
        never=int((found["side"] != "crosses").sum()),
        reach=(float(cells[x].min()), float(cells[x].max())),
    )


def crossing_products(crossings: pd.DataFrame, y: str, power: float) -> pd.Series[float]:
    """Return y · x^p at crossings; infinity and 0 for curves that stay above or below.

    A curve that never comes down to the threshold crosses it beyond the grid, and counts as that.

    Args:
        crossings: as `crossings` returns them, without unknown ones.
        y: the name of the column of y.
        power: p.
    """
    beyond = np.where(crossings["side"] == "above", np.inf, 0.0)
    x = np.where(crossings["side"] == "crosses", crossings["crossing"], beyond)
    return pd.Series(crossings[y] * x**power, index=crossings.index)


def _middle(values: pd.Series[float]) -> float:
    """The median; of an even number, the geometric mean of the middle two."""
    ordered = np.sort(values.to_numpy())
    return float(np.sqrt(ordered[(len(ordered) - 1) // 2] * ordered[len(ordered) // 2]))
