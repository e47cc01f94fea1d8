"""The power law y · x^p = C through a set of crossings, with bootstrap intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PowerLaw:
    """The fit y · x^p = C.

    Attributes:
        exponent: p, with `exponent_low` and `exponent_high`, its 95 % interval.
        constant: C, in the unit of y · x^p, with `constant_low` and `constant_high`.
        rows: how many values of y it is fitted to.
        seeds: how many seeds it is fitted to.
    """

    exponent: float
    exponent_low: float
    exponent_high: float
    constant: float
    constant_low: float
    constant_high: float
    rows: int
    seeds: int


def fit_power_law(
    crossings: pd.DataFrame, y: str, *, repeats: int = 2000, seed: int = 0
) -> PowerLaw | None:
    """Fit y · x^p = C to crossings, by least squares of log(x) on log(y), whose slope is -1/p.

    It is x that is regressed, because y is set by the grid and x carries the noise.

    The intervals are percentiles over `repeats` bootstrap draws. Crossings of one seed share their
    random draws, and crossings of one y share the law's misfit there, so neither are independent:
    each draw resamples the seeds, and independently the values of y, both as whole clusters. Such
    a two-way bootstrap is a little too wide where the noise belongs to single crossings; with few
    seeds (say three) it is too narrow for the part that seeds cause, and with one seed it leaves
    that part out.

    Values of y at which some seed stays on one side (as a grid that ends too early makes it do)
    are left out whole: those seeds that do cross there would pull the law towards the grid.

    Args:
        crossings: columns `y`, `seed`, `crossing` and `side`, as `crossings` returns them; rows
            where x or y isn't positive are left out too.
        y: the name of the column of y.
        repeats: how many bootstrap draws.
        seed: of the bootstrap.

    Returns:
        The fit; None with fewer than three values of y to fit it to, or if the crossing doesn't
        change with y, which no finite p describes.
    """
    censored = crossings.loc[crossings["side"].isin(["above", "below"]), y]
    used = crossings[(crossings["crossing"] > 0) & (crossings[y] > 0)]
    used = used[~used[y].isin(censored)]
    table = used.pivot_table(index=y, columns="seed", values="crossing")
    rows, seeds = table.shape
    if rows < 3:
        return None
    log_y, log_x = np.log(table.index.to_numpy(dtype=np.float64)), np.log(table.to_numpy())
    once = np.ones((1, rows)), np.ones((1, seeds))
    exponent, log_constant = _fits(log_y, log_x, *once)
    if not np.isfinite(exponent[0]):
        return None
    draws = np.random.default_rng(seed)
    row_counts = draws.multinomial(rows, np.full(rows, 1 / rows), size=repeats).astype(np.float64)
    seed_counts = draws.multinomial(seeds, np.full(seeds, 1 / seeds), size=repeats).astype(
        np.float64
    )
    low, high = _percentiles(_fits(log_y, log_x, row_counts, seed_counts))
    with np.errstate(over="ignore"):
        constant, constant_low, constant_high = np.exp([log_constant[0], low[1], high[1]]).tolist()
    return PowerLaw(
        float(exponent[0]), low[0], high[0], constant, constant_low, constant_high, rows, seeds
    )


def _fits(
    log_y: Floats, log_x: Floats, row_counts: Floats, seed_counts: Floats
) -> tuple[Floats, Floats]:
    """Fit every draw at once.

    Args:
        log_y: of shape (rows,).
        log_x: of shape (rows, seeds); nan where there is no crossing.
        row_counts: of shape (draws, rows), how often each row was drawn.
        seed_counts: of shape (draws, seeds).

    Returns:
        Exponents and logs of constants, of shape (draws,); nan where all y are one.
    """
    known = np.isfinite(log_x)
    centre = log_y.mean()  # keeps the sums of squares well away from cancellation
    u, v = np.where(known, (log_y - centre)[:, None], 0.0), np.where(known, log_x, 0.0)

    def total(term: Floats) -> Floats:
        sums: Floats = ((row_counts @ term) * seed_counts).sum(axis=1)
        return sums

    count, sum_u, sum_v = total(known.astype(np.float64)), total(u), total(v)
    with np.errstate(all="ignore"):
        spread = total(u * u) - sum_u**2 / count
        slope = (total(u * v) - sum_u * sum_v / count) / spread
        slope[(spread < 1e-12) | (np.abs(slope) < 1e-12)] = np.nan
        intercept = (sum_v - slope * sum_u) / count
        return -1 / slope, centre - intercept / slope


def _percentiles(fits: tuple[Floats, Floats]) -> tuple[list[float], list[float]]:
    usable = np.isfinite(fits[0])
    low, high = np.percentile([column[usable] for column in fits], [2.5, 97.5], axis=1)
    return low.tolist(), high.tolist()
