"""A measured column over two parameters, as numbers: a statistic over seeds at each point.

A seed that misses, at its target or by diverging, counts as beyond every number: see
`inputs.measured_or_missed`. A point at which half of the seeds or more have no number has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from overfit_cli.core.arrays import finite_column
from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import Value
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import plural
from overfit_cli.core.values import Mean
from overfit_cli.figures.axes import Axis
from overfit_cli.figures.inputs import measured_or_missed, misses_in_words
from overfit_cli.figures.labels import short_settings
from overfit_cli.stats.bands import MEANS
from overfit_cli.stats.intervals import (
    FEWEST_FOR_MEDIAN,
    LEVEL,
    mean_estimate,
    median_estimate,
)

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Grid:
    """A column over two parameters; all arrays have shape (values of y, values of x).

    Attributes:
        number: the statistic over seeds; nan where there is none.
        least, most: the least and the greatest number of the seeds; infinite where one missed.
        missing: whether it was planned, and no seed ran.
        sampled: whether cells were run, in a refined sweep; False everywhere in another sweep.
        noise: of a difference, 1 where its own interval over seeds contains 0, and 0 where it does
            not; nan without an interval.
    """

    x: Axis
    y: Axis
    number: Floats
    seeds: Floats
    arrived: Floats
    least: Floats
    most: Floats
    missing: Mask
    sampled: Mask
    noise: Floats

    @property
    def points(self) -> Floats:
        """The values of x and y at each point, row by row, (points, 2)."""
        return np.column_stack([at.ravel() for at in np.meshgrid(self.x.numbers, self.y.numbers)])

    @property
    def lost(self) -> Mask:
        """Whether so many seeds have no number that there is no statistic over all."""
        return (self.seeds > 0) & np.isnan(self.number)

    @property
    def partly(self) -> Mask:
        """Whether some seeds have no number, beside a statistic over all."""
        return np.isfinite(self.number) & (self.arrived < self.seeds)


def has_losses(data: FigureData, value: str) -> bool:
    """Return whether a cell has no number."""
    return not np.isfinite(seed_numbers(data, value)).all()


def is_lost(arrived: ArrayLike, seeds: ArrayLike, mean: Mean) -> Mask:
    """Return whether too few of the seeds have a number for a statistic over all of them."""
    arrived, seeds = np.asarray(arrived), np.asarray(seeds)
    return np.asarray(2 * arrived <= seeds if mean == "median" else arrived < seeds)


def seeds_in_words(grids: Sequence[Grid], mean: Mean) -> str:
    """Write the statistic of grids and of how many seeds it is."""
    counts = np.concatenate([grid.seeds[np.isfinite(grid.number)] for grid in grids])
    if not counts.size:
        return MEANS[mean]
    return mean_of_seeds(int(counts.min()), int(counts.max()), MEANS[mean])


def mean_of_seeds(least: int, greatest: int, middle: str = "mean") -> str:
    """Write the number of seeds of means: `one seed`, `mean of 3 seeds`, `mean of 1 to 4 seeds`."""
    if greatest == 1:
        return "one seed"
    return f"{middle} of {'' if least == greatest else f'{least} to '}{greatest} seeds"


def lay_out(data: FigureData, x: Axis, y: Axis, value: str, mean: Mean = "arithmetic") -> Grid:
    """Return the statistic of `value` over seeds at each point of the grid of `x` and `y`.

    The axes of the grid have the values that the data has: beside another run directory the axes of
    a figure have more.

    A grid that was grown may have more points in some rows than in others. A point that was not
    planned, but lies between two planned ones, shows the nearest of them, along x and then along
    y; any other one stays blank. Without a plan every point of the grid counts as planned.
    """
    x, y = (
        axis if axis.scale == "category" else axis.only(_values_of(data, axis)) for axis in (x, y)
    )
    number, *tables = _statistics(data, x, y, value, mean)
    noise = _noise(data, x, y, value, mean)
    planned = _planned(data, x, y)
    source = _nearest_planned(planned, x, y, between=not data.sparse)
    absent = source < 0
    number = np.where(absent, np.nan, number.ravel()[source])
    arrived, seeds, least, most = (np.where(absent, 0.0, table.ravel()[source]) for table in tables)
    return Grid(
        x=x,
        y=y,
        number=number,
        seeds=seeds,
        arrived=arrived,
        least=least,
        most=most,
        missing=~absent & (seeds == 0),
        sampled=np.isfinite(_table(_count(data.cells, x, y), x, y)) & data.refined,
        noise=np.where(absent, np.nan, noise.ravel()[source]),
    )


def seed_numbers(data: FigureData, value: str) -> pd.Series[float]:
    """Return the column of each cell: infinite where one missed, but for a difference."""
    if data.less:
        return finite_column(data.cells, value)
    return measured_or_missed(data.cells, value)


def _statistics(
    data: FigureData, x: Axis, y: Axis, value: str, mean: Mean
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """The statistic, the seeds with a number, all seeds, and the seeds' least and greatest number.

    Each is a table of the points.
    """
    numbers = seed_numbers(data, value)
    if mean == "geometric":
        if (numbers <= 0).any():
            raise BadValue("mean", mean, "some numbers are not positive; take median.")
        numbers = pd.Series(np.log(numbers.to_numpy()), numbers.index)
    points = [data.cells[y.name], data.cells[x.name]]
    groups = numbers.groupby(points)
    middle = _table(groups.median() if mean == "median" else groups.mean(), x, y)
    arrived = np.nan_to_num(_table(numbers.map(np.isfinite).groupby(points).sum(), x, y))
    seeds = np.nan_to_num(_table(_count(data.cells, x, y), x, y))
    middle = np.where(is_lost(arrived, seeds, mean) | ~np.isfinite(middle), np.nan, middle)
    least, most = (_table(table, x, y) for table in (groups.min(), groups.max()))
    if mean == "geometric":
        middle, least, most = np.exp(middle), np.exp(least), np.exp(most)
    return middle, arrived, seeds, least, most


def _noise(data: FigureData, x: Axis, y: Axis, value: str, mean: Mean) -> Floats:
    """Whether the interval of a difference contains 0 at each point, as a table: see `Grid.noise`.

    A median's allows for every number of a seed without one.
    """
    if not data.less:
        return np.full((len(y.values), len(x.values)), np.nan)

    def contains_zero(numbers: pd.Series[float]) -> float:
        if mean == "median":
            estimate = median_estimate(numbers.fillna(-np.inf), up_to=numbers.fillna(np.inf))
            known = len(numbers) >= FEWEST_FOR_MEDIAN
        else:
            estimate = mean_estimate(numbers.dropna())
            known = estimate.bounded
        return float(estimate.low <= 0 <= estimate.high) if known else np.nan

    points = [data.cells[y.name], data.cells[x.name]]
    return _table(seed_numbers(data, value).groupby(points).agg(contains_zero), x, y)


def noise_in_words(data: FigureData, grids: Sequence[Grid]) -> list[str]:
    """Write at how many points of a difference the interval contains 0; nothing of another map."""
    if not data.less:
        return []
    noise = np.concatenate([grid.noise[np.isfinite(grid.number)] for grid in grids])
    known = int(np.isfinite(noise).sum())
    if not known:
        why = "the seeds are not paired" if data.averaged else "there are too few seeds"
        return [f"Which differences are seed noise is not marked: {why} for intervals."]
    rest = "" if known == len(noise) else f"; {len(noise) - known} points have too few seeds"
    kind = f"{100 * LEVEL:g} % interval over seeds"
    return [f"Dots: points whose own {kind} contains 0, {int(np.nansum(noise))} of {known}{rest}."]


def why_lost(data: FigureData, value: str) -> str:
    """Return why cells have no number, in a few words: `diverged`, `target not reached`."""
    numbers = seed_numbers(data, value)
    missed, unknown = np.isinf(numbers), numbers.isna()
    if missed.any():
        return misses_in_words(data.cells[missed])
    lost = data.cells[unknown]
    return misses_in_words(lost) if (lost["status"] == "failed").all() else "no number"


def losses_in_words(data: FigureData, grids: Sequence[Grid], value: str, mean: Mean) -> list[str]:
    """Write of how many seeds a map has no number, why, and how they count; none without any."""
    numbers = seed_numbers(data, value)
    missed, unknown = np.isinf(numbers), numbers.isna()
    words = []
    if missed.any():
        verb = "counts" if missed.sum() == 1 else "count"
        how = f" {verb} as beyond the others" if mean == "median" else " without a number"
        cells = plural(int(missed.sum()), "cell")
        words.append(f"{cells} ({why_lost(data, value)}){how}")
    if unknown.any():
        why = "" if missed.any() else why_lost(data, value).replace("no number", "")
        reason = f" ({why})" if why else ""
        words.append(f"{plural(int(unknown.sum()), 'cell')} without a number{reason} left out")
    points = sum(int(grid.lost.sum()) for grid in grids)
    if points:
        hidden = sum(int((grid.seeds - grid.arrived)[grid.lost].sum()) for grid in grids)
        share = "half of the seeds or more" if mean == "median" else "one seed or more"
        hatched = plural(points, "hatched point")
        part = "all" if hidden == missed.sum() + unknown.sum() else f"{hidden} of them"
        words[-1] += f", {part} at the {hatched}, where {share} have no number"
    return [f"{'; '.join([*words, *_few_in_words(data, grids)])}."] if words else []


_FEW_POINTS = 3
"""The number of points with fewer losses up to which a caption lists them."""


def _few_in_words(data: FigureData, grids: Sequence[Grid]) -> list[str]:
    grid, partly = grids[0], np.argwhere(grids[0].partly).tolist()
    if len(grids) > 1 or len(partly) > _FEW_POINTS:
        return []
    texts = []
    for row, column in partly:
        values = {grid.x.name: grid.x.values[column], grid.y.name: grid.y.values[row]}
        counts = f"{grid.arrived[row, column]:.0f} of {grid.seeds[row, column]:.0f}"
        texts.append(f"{counts} seeds have one at {short_settings(data.study, values)}")
    return texts


def _values_of(data: FigureData, axis: Axis) -> set[Value]:
    frames = [frame for frame in (data.cells, data.planned) if axis.name in frame]
    return {value for frame in frames for value in frame[axis.name].unique().tolist()}


def _table(series: pd.Series[Any], x: Axis, y: Axis) -> Floats:
    if series.empty:
        return np.full((len(y.values), len(x.values)), np.nan)
    table = series.unstack().reindex(index=list(y.values), columns=list(x.values))
    return table.to_numpy(dtype=np.float64)


def _count(cells: pd.DataFrame, x: Axis, y: Axis) -> pd.Series[Any]:
    return cells.groupby([y.name, x.name]).size()


def _planned(data: FigureData, x: Axis, y: Axis) -> Mask:
    if data.planned.empty or not {x.name, y.name} <= set(data.planned):
        return np.ones((len(y.values), len(x.values)), dtype=np.bool_)
    names = [y.name, x.name]
    either = pd.concat([data.planned[names], data.cells[names]])
    return np.isfinite(_table(_count(either, x, y), x, y))


def _nearest_planned(planned: Mask, x: Axis, y: Axis, *, between: bool) -> NDArray[np.int64]:
    """Return the flat index of the point whose cells each point shows; -1 for none.

    Args:
        between: whether points between planned ones show the nearest of them.
    """
    source = np.where(planned, np.arange(planned.size).reshape(planned.shape), -1)
    directions = ((source, x.positions), (source.T, y.positions)) if between else ()
    for lines, positions in directions:
        for line in lines:
            filled = np.flatnonzero(line >= 0)
            if filled.size:
                middles = (positions[filled][1:] + positions[filled][:-1]) / 2
                span = slice(filled[0], filled[-1] + 1)
                line[span] = line[filled][np.searchsorted(middles, positions[span])]
    return source
