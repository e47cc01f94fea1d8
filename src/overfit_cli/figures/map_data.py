"""Numbers of a map: a statistic over seeds at each point of two parameters, in each panel.

A seed that misses, at its target or by diverging, counts as beyond every number. A point at which
half of the seeds or more have no number has none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm, Normalize
from numpy.typing import NDArray

from overfit_cli.core.arrays import Floats
from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import BadValue
from overfit_cli.core.figure import FigureOptions
from overfit_cli.core.options import Mean
from overfit_cli.figures import inputs, labels, style
from overfit_cli.figures.axes import Axis
from overfit_cli.stats.intervals import FEWEST_FOR_MEDIAN, LEVEL, MEANS, Averaging, mean_of_seeds

Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]
MOST_PRINTED = 40
"""The largest number of points of a small map: its numbers are printed."""


@dataclass(frozen=True)
class MapPanel:
    """A panel of a map; its arrays have shape (values of y, values of x).

    Attributes:
        number: the statistic over seeds; nan where there is none.
        samples: the numbers of the seeds, (values of y, values of x, seeds); infinite where one
            missed, nan where one is not known and where there are fewer seeds.
        missing: whether it was planned, and no seed ran.
    """

    title: str
    data: Cells
    x: Axis
    y: Axis
    mean: Mean
    number: Floats
    samples: Floats
    seeds: Counts
    missing: Mask

    @cached_property
    def arrived(self) -> Counts:
        """The number of seeds with a number."""
        return np.asarray(np.isfinite(self.samples).sum(axis=-1))

    @property
    def lost(self) -> Mask:
        """Whether so many seeds have no number that there is no statistic over all."""
        return (self.seeds > 0) & np.isnan(self.number)

    @property
    def partly(self) -> Mask:
        """Whether some seeds have no number, beside a statistic over all."""
        return np.isfinite(self.number) & (self.arrived < self.seeds)

    def interval(self, bounds: tuple[float, float]) -> tuple[Floats, Floats]:
        """Return both ends of the 95 % interval at each point; nan where there are too few seeds.

        That of a median allows for any number of a seed whose number is not known.

        Args:
            bounds: the least and the largest that a number can be.
        """
        rows, seeds = self.samples.reshape(self.number.size, -1), self.seeds.ravel()
        by_order = self.mean == "median"
        unknown = np.isnan(rows) & (np.arange(rows.shape[1]) < seeds[:, None]) & by_order
        few = seeds < FEWEST_FOR_MEDIAN if by_order else self.arrived.ravel() < 2
        low, high = (
            Averaging(self.mean).summarise(np.where(unknown, end, rows), bounds)[side]
            for side, end in ((1, -np.inf), (2, np.inf))
        )
        shape = self.number.shape
        return np.where(few, np.nan, low).reshape(shape), np.where(few, np.nan, high).reshape(shape)

    @cached_property
    def noise(self) -> Floats:
        """Of a difference, 1 where its own interval contains 0 and 0 where not; nan if unknown."""
        low, high = self.interval((-np.inf, np.inf))
        known = np.isfinite(self.number) & ~np.isnan(low) & (self.data.pairs is not None)
        return np.where(known, (low <= 0) & (high >= 0), np.nan)


@dataclass(frozen=True)
class Map:
    """A statistic of a column over two parameters, in each of its panels."""

    data: Cells
    x: Axis
    y: Axis
    value: str
    label: str
    mean: Mean
    panels: tuple[MapPanel, ...]
    log: bool = False

    @cached_property
    def numbers(self) -> pd.Series[float]:
        """The numbers of all panels."""
        return pd.Series(np.concatenate([part.number.ravel() for part in self.panels])).dropna()

    @property
    def labelled(self) -> str:
        """The label with the statistic, for a colour bar."""
        several = max(part.seeds.max() for part in self.panels) > 1
        note = MEANS[self.mean] if several and not self.data.pairs else ""
        return labels.label_with_note(self.label, note, style.HIGH)

    @property
    def is_centred(self) -> bool:
        """Whether it is of differences, or of numbers of both signs."""
        return self.data.pairs is not None or self.numbers.min() < 0 < self.numbers.max()

    @property
    def norm(self) -> Normalize:
        """The scale of the colours; that of both signs is symmetric around 0."""
        low, high = float(self.numbers.min()), float(self.numbers.max())
        if self.is_centred:
            largest = max(abs(low), abs(high)) or 1.0
            return Normalize(-largest, largest)
        return LogNorm(low, high) if self.log else Normalize(low, high)

    @property
    def nothing(self) -> str:
        """Why the map says nothing; empty where it says something."""
        places = sum(int((part.seeds > 0).sum() + part.missing.sum()) for part in self.panels)
        if self.numbers.nunique() < 2:
            return "all of it has one colour"
        return "half of it or more has no number" if 2 * len(self.numbers) <= places else ""

    @cached_property
    def why(self) -> str:
        """Why cells have no number, in a few words: `diverged`, `target not reached or failed`."""
        cells, numbers = self.data.trained, _of_seeds(self.data, self.value)
        unknown = numbers.isna() & (cells["status"] == "done")
        told = inputs.misses_in_words(cells[~np.isfinite(numbers) & ~unknown])
        return " or ".join(filter(None, [told, "no number" if unknown.any() else ""]))

    @property
    def facts(self) -> list[str]:
        """What the map shows, of how many seeds, and which have no number: for the caption."""
        counts = np.concatenate([part.seeds[np.isfinite(part.number)] for part in self.panels])
        over = labels.subtracted_means(self.data) or mean_of_seeds(counts, self.mean)
        numbers = _of_seeds(self.data, self.value)
        lost = inputs.lost_in_words(self.data.trained, numbers, is_median=self.mean == "median")
        facts = [f"{labels.opening(self.label)} over {self.x.label} and {self.y.label}: {over}."]
        facts += [f"{words}." for words in lost]
        if self.data.pairs:
            noise = np.concatenate([part.noise[np.isfinite(part.noise)] for part in self.panels])
            own = f"own {100 * LEVEL:g} % interval over seeds contains 0"
            dots = f"Dots: points whose {own}, {int(noise.sum())} of {noise.size}."
            facts.append(dots if noise.size else "No point has an interval over seeds.")
        return facts


def lay_out_map(data: Cells, options: FigureOptions) -> Map:
    """Return the numbers of a map with these options.

    The statistic is the one that the user names, else the figure's own, else the median; of
    differences the mean. It does not depend on the cells: one that failed changes its own place.
    """
    x, y = inputs.two_axes(data, options)
    inputs.require_grid(data, options, x, y)
    value, label = inputs.measured_column(data, options.value)
    inputs.require_numbers(data, value)
    if not (options.law or options.theory or options.log is not None or data.refined):
        x, y = x.spread(), y.spread()

    mean = options.mean or ("arithmetic" if data.pairs else "median")
    parts = inputs.panels_of_runs(data, options.by)
    shown = tuple(lay_out(part, x, y, value, mean) for part in parts)
    plan = Map(data, x, y, value, label, mean, shown)
    log, small = options.is_log("value"), max(part.number.size for part in plan.panels)
    if plan.numbers.empty:
        raise BadValue("value", None, "at every point half of the seeds or more have no number.")
    if data.pairs and log:
        raise BadValue("log", "value", "a difference has no logarithm where it is negative.")
    factor = 10 if small <= MOST_PRINTED else 30
    is_log = not data.pairs and inputs.choose_scale(log, plan.numbers, factor=factor)
    return replace(plan, log=is_log)


def lay_out(part: inputs.Panel, x: Axis, y: Axis, value: str, mean: Mean) -> MapPanel:
    """Return the statistic of `value` over seeds at each point of the grid of `x` and `y`.

    The axes of the panel have the values that its data has: beside another run directory the axes
    of a figure have more. A point that was not planned, as of a grid that was grown, stays blank.
    Without a plan every point of the grid counts as planned. There is no mean of seeds of which one
    has no number, and no median where half of them have none.
    """
    data, names = part.data, [y.name, x.name]
    x, y = (axis.only(set(data.frame[axis.name].tolist())) for axis in (x, y))
    grid, shape = pd.MultiIndex.from_product([y.values, x.values]), (len(y.values), len(x.values))
    place = grid.get_indexer(pd.MultiIndex.from_frame(data.trained[names]))
    seeds = np.bincount(place, minlength=len(grid))
    samples = np.full((len(grid), seeds.max(initial=1)), np.nan)
    samples[place, data.trained.groupby(names).cumcount()] = _of_seeds(data, value)
    has_plan = any(run.planned for run in data.runs)
    planned = grid.isin(pd.MultiIndex.from_frame(data.frame[names])) if has_plan else seeds > -1
    arrived = np.isfinite(samples).sum(axis=1)
    number, *_ = Averaging(mean, "quartiles").summarise(samples, (-np.inf, np.inf))
    few = 2 * arrived <= seeds if mean == "median" else arrived < seeds
    number = np.where(few | (seeds == 0) | ~np.isfinite(number), np.nan, number).reshape(shape)
    samples, missing = samples.reshape(*shape, -1), (planned & (seeds == 0)).reshape(shape)
    return MapPanel(part.title, data, x, y, mean, number, samples, seeds.reshape(shape), missing)


def _of_seeds(data: Cells, value: str) -> pd.Series[float]:
    """The column of each cell: infinite where one missed, but for a difference."""
    return data.schema[value].shown(data.trained)
