"""Cells on a grid: the mean over seeds at each place, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from overfit_cli.figure import FigureData
from overfit_cli.figures.axis import Axis
from overfit_cli.figures.inputs import usable_cells

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Grid:
    """A column over two parameters; all arrays have shape (values of y, values of x).

    Attributes:
        x: the axis to the right.
        y: the axis upward.
        mean: the mean over the seeds that have a number; nan where none has.
        failed: where every seed that ran failed.
        partly: where some seeds failed, and the mean is that of the others.
        missing: where there is neither a number nor a failure.
        sampled: where cells were run, in a sweep that refines; nowhere in another.
        seeds: how many seeds each mean is over.
        fewest, most: of those; 0 where there is none.
        left_out: how many failed cells lie where other seeds give a mean.
    """

    x: Axis
    y: Axis
    mean: Floats
    failed: Mask
    partly: Mask
    missing: Mask
    sampled: Mask
    seeds: Floats
    fewest: int
    most: int
    left_out: int


def seeds_in_words(grids: Sequence[Grid]) -> str:
    """Say over how many seeds the means of some grids are."""
    fewest = [grid.fewest for grid in grids if grid.most > 0]
    return mean_of_seeds(min(fewest), max(grid.most for grid in grids))


def mean_of_seeds(fewest: int, most: int, middle: str = "mean") -> str:
    """Say over how many seeds means are: `mean of 3 seeds`, `mean of 1 to 40 seeds`, `one seed`."""
    if most == 1:
        return "one seed"
    return f"{middle} of {'' if fewest == most else f'{fewest} to '}{most} seeds"


def lay_out(data: FigureData, x: Axis, y: Axis, value: str) -> Grid:
    """Average `value` over seeds at each place of the grid of `x` and `y`.

    A grid that was grown may have more places in some rows than in others. A place that was not
    asked for, but lies between two that were, shows the nearest of them, along x and then along y.
    Where no plan is known, every place of the grid counts as asked for.
    """
    groups = usable_cells(data, value).groupby([y.name, x.name])[value]
    mean, seeds = _table(groups.mean(), x, y), _table(groups.count(), x, y)
    broken = _table(_count(data.cells[data.cells["status"] == "failed"], x, y), x, y)
    asked = _asked(data, x, y)
    source = _nearest_asked(asked, x, y)
    absent = source < 0
    shown = np.where(absent, np.nan, mean.ravel()[source])
    failed = ~absent & np.isnan(shown) & (broken.ravel()[source] > 0)
    some = bool(np.isfinite(mean).any())
    return Grid(
        x=x,
        y=y,
        mean=shown,
        failed=failed,
        partly=~absent & np.isfinite(shown) & (broken.ravel()[source] > 0),
        missing=np.isnan(shown) & ~failed,
        seeds=np.nan_to_num(np.where(absent, 0.0, seeds.ravel()[source])),
        sampled=np.isfinite(_table(_count(data.cells, x, y), x, y)) & data.refined,
        fewest=int(np.nanmin(seeds)) if some else 0,
        most=int(np.nanmax(seeds)) if some else 0,
        left_out=int(np.nansum(broken[np.isfinite(mean)])),
    )


def _table(places: pd.Series[Any], x: Axis, y: Axis) -> Floats:
    """Turn a series indexed by (y, x) into an array with nan where it has nothing."""
    if places.empty:
        return np.full((len(y.values), len(x.values)), np.nan)
    table = places.unstack().reindex(index=list(y.values), columns=list(x.values))
    return table.to_numpy(dtype=np.float64)


def _count(cells: pd.DataFrame, x: Axis, y: Axis) -> pd.Series[Any]:
    return cells.groupby([y.name, x.name]).size()


def _asked(data: FigureData, x: Axis, y: Axis) -> Mask:
    if data.planned.empty or not {x.name, y.name} <= set(data.planned):
        return np.ones((len(y.values), len(x.values)), dtype=np.bool_)
    names = [y.name, x.name]
    either = pd.concat([data.planned[names], data.cells[names]])
    return np.isfinite(_table(_count(either, x, y), x, y))


def _nearest_asked(asked: Mask, x: Axis, y: Axis) -> NDArray[np.int64]:
    """Return, for each place, the flat index of the place whose cells it shows; -1 for none."""
    source = np.where(asked, np.arange(asked.size).reshape(asked.shape), -1)
    for lines, at in ((source, x.positions), (source.T, y.positions)):
        for line in lines:
            known = np.flatnonzero(line >= 0)
            if known.size:
                middles = (at[known][1:] + at[known][:-1]) / 2
                inside = slice(known[0], known[-1] + 1)
                line[inside] = line[known][np.searchsorted(middles, at[inside])]
    return source
