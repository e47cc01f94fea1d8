"""Summaries of seeds along x, for each setting: of cells against a parameter, of logged steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from overfit_cli.core.arrays import LARGEST, finite_column
from overfit_cli.core.cells import Cells
from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import Value
from overfit_cli.core.study import has_missed, missed_by
from overfit_cli.core.text import plural
from overfit_cli.figures import inputs, labels, style
from overfit_cli.figures.axes import Axis
from overfit_cli.stats.intervals import MEANS, Averaging, mean_of_seeds, natural_bounds


@dataclass(frozen=True)
class Line:
    """What the cells of one setting show along x.

    Attributes:
        text: the values that differ from those of other lines, as a legend has them.
        settings: these values by their parameters.
        tables: of each drawn column a row for each x, as `summarised` gives it.
        seeds: of each drawn column the number of each seed, (x, seeds): nan where there is none,
            and infinite where a seed misses.
        reason: why cells miss, where there is no statistic.
        ends_early: whether it is a curve that ends with the first of several seeds.
    """

    text: str
    settings: Mapping[str, Value]
    cells: pd.DataFrame
    tables: Mapping[str, pd.DataFrame]
    seeds: Mapping[str, pd.DataFrame]
    reason: str = ""
    ends_early: bool = False

    def __getitem__(self, column: str) -> pd.DataFrame:
        """The table of a column."""
        return self.tables[column]


@dataclass(frozen=True)
class Lines:
    """The lines of each panel, and what they are.

    Attributes:
        names: the parameters that tell lines apart.
        over_seeds: the statistic that they are.
        lost: how many cells have no number or missed, in words.
        instead: what they are where it is no statistic over seeds, such as `single cells`.
    """

    panels: Sequence[Sequence[Line]]
    names: Sequence[str]
    over_seeds: Averaging
    lost: str = ""
    instead: str = ""

    @property
    def every(self) -> list[Line]:
        """The lines of all panels."""
        return [line for lines in self.panels for line in lines]

    def label(self, column: str) -> str:
        """The statistic and its band, for an axis; empty of one seed."""
        largest = int(self._counts(column).max())
        if self.instead or largest < 2:
            return ""
        return self.over_seeds.label(largest) if self.has_bands else MEANS[self.over_seeds.mean]

    def kind(self, column: str) -> str:
        """The same for a caption, with the number of seeds and the cells that are left out."""
        counts = self._counts(column)
        largest = int(counts.max())
        band = self.over_seeds.band_in_words(largest)
        if self.over_seeds.band != "seeds":
            band = f"band: {band}" if self.has_bands else "without bands"
        middle = mean_of_seeds(counts, self.over_seeds.mean)
        middle = middle if largest == 1 else f"{middle}, {band}"
        return (self.instead or middle) + self.lost

    @property
    def has_bands(self) -> bool:
        """Whether there are so few settings that their bands can be told apart."""
        return len({line.text for line in self.every}) <= len(style.PALETTE)

    def _counts(self, column: str) -> pd.Series[int]:
        """How many seeds each number is of; a median's count those that miss."""
        table = pd.concat([line[column] for line in self.every])
        counted = "seeds" if self.over_seeds.mean == "median" else "arrived"
        return table.loc[table["arrived"] > 0, counted]


def summarised(
    seeds: pd.DataFrame, over_seeds: Averaging, bounds: tuple[float, float]
) -> pd.DataFrame:
    """Return a statistic over seeds at each x.

    Args:
        seeds: shape (x, seeds); nan where there is no number, and infinite where a seed misses.
        bounds: those of the band.

    Returns:
        `middle`, `low` and `high`, nan without a finite middle; how many `seeds` have a number or
        miss, and how many have `arrived`.
    """
    table = seeds.to_numpy(np.float64)
    middle, low, high = over_seeds.summarise(table, bounds)
    ends = {"middle": middle, "low": low, "high": high}
    shown = {name: np.where(np.isfinite(middle), end, np.nan) for name, end in ends.items()}
    counts = {"seeds": (~np.isnan(table)).sum(axis=1), "arrived": np.isfinite(table).sum(axis=1)}
    return pd.DataFrame(shown | counts, seeds.index)


# Of cells


def lines_of_cells(
    parts: Sequence[Cells],
    names: Sequence[str],
    x: Axis,
    columns: Sequence[str],
    over_seeds: Averaging,
) -> Lines:
    """Return a line for each setting of some parameters, along the axis x.

    Args:
        columns: the measured one, and those of a theory.
    """
    data, (value, *theory) = parts[0], columns
    field, every = data.schema[value], pd.concat([part.trained for part in parts])
    bounds = natural_bounds(np.asarray(finite_column(every, value), np.float64))

    def line_of(values: Mapping[str, Value], part: Cells) -> Line:
        cells = part.frame
        along = cells[x.name].map(dict(zip(x.values, x.positions, strict=True)))
        numbers = field.shown(cells)
        seeds = numbers.groupby([along, cells["seed"]]).mean().unstack()
        table = summarised(seeds, over_seeds, bounds)
        failed = (cells["status"] == "failed").groupby(along).all() | (seeds == np.inf).any(axis=1)
        missed = table["middle"].isna() & failed
        tables = {value: table.assign(missed=missed)}
        arrived = numbers < np.inf
        has_none = ~arrived.groupby(along).transform("any")  # of these a theory is over all cells
        for name in theory:
            shown = finite_column(cells, name).where(arrived | has_none).groupby(along)
            middle = shown.median() if over_seeds.mean == "median" else shown.mean()
            tables[name] = middle.to_frame("middle")
        lost = cells[along.isin(table.index[missed]) & ~np.isfinite(numbers)]
        text, reason = labels.short_settings(data.schema, values), inputs.misses_in_words(lost)
        return Line(text, values, cells, tables, {value: seeds}, reason)

    panels = [[line_of(*each) for each in part.without_plan().settings(names)] for part in parts]
    lost = _left_out(every, field.shown(every), over_seeds)
    return Lines(panels, names, over_seeds, lost, instead=labels.subtracted_means(data))


def _left_out(cells: pd.DataFrame, numbers: pd.Series[float], over_seeds: Averaging) -> str:
    lost = inputs.lost_in_words(cells, numbers, is_median=over_seeds.mean == "median")
    return "".join(f"; {words}" for words in lost)


# Of logged steps


def lines_of_steps(parts: Sequence[Cells], columns: Sequence[str], over_seeds: Averaging) -> Lines:
    """Return a line for each setting of the parameters that vary, along the step.

    Cells are averaged over seeds up to the last step that all of a setting have; a cell is linear
    between its logged steps. A part with no number to draw has no line. Each cell has a line where
    a part has no more cells than there are colours and no setting has three seeds, unless seeds
    are wanted beside their mean.
    """
    declared = all(parts[0].logged[name].declared for name in columns)
    logged = [_cells_with_steps(part, declared=declared) for part in parts]
    every = pd.concat(logged)
    unlogged = sum(part.counts()["done"] for part in parts) - int((every["status"] == "done").sum())
    lost = f"; {plural(unlogged, 'cell')} without logged steps left out" if unlogged else ""
    parts = [part.without_plan(cells) for part, cells in zip(parts, logged, strict=True)]
    varying = {name for part in parts for name in part.varying()}
    names = [name for name in parts[0].values if name in varying]
    most_seeds = every.groupby(["study", *names])["seed"].nunique().max()
    is_large = most_seeds >= inputs.BAND or max(map(len, logged)) > len(style.PALETTE)
    if averaged := is_large or over_seeds.band == "seeds":
        ends = [_outcomes(part.trained, declared=declared).notna() for part in parts]
        parts = [p.without_plan(p.trained[end]) for p, end in zip(parts, ends, strict=True)]
        lost = _left_out(every, _outcomes(every, declared=declared), over_seeds) + lost
    elif every["seed"].nunique() > 1:
        names = [*names, "seed"]
    panels = [_lines_of_part(part, names, columns, over_seeds) for part in parts]
    lines = Lines(panels, names, over_seeds, lost)
    if not lines.every:
        raise BadValue("value", columns[0], "no cell that is done has a number logged there.")
    if not averaged:
        return replace(lines, instead="a single cell" if len(lines.every) == 1 else "single cells")
    if any(line.ends_early for line in lines.every):
        lost += "; each curve up to the last step that all its seeds have"
    return replace(lines, lost=lost)


def _cells_with_steps(part: Cells, *, declared: bool) -> pd.DataFrame:
    """The cells with steps, and of undeclared columns those that failed before a first one."""
    has_steps = part.trained["key"].isin(part.steps["key"])
    if not declared and has_steps.any():
        has_steps |= part.trained["status"] == "failed"
    return part.trained[has_steps]


def _outcomes(cells: pd.DataFrame, *, declared: bool) -> pd.Series[float]:
    """0 of a cell whose steps count, infinite if it diverged, nan if it failed otherwise.

    Of columns that are not `declared` it is infinite also where it failed otherwise.
    """
    missed, failed = has_missed(cells), cells["status"] == "failed"
    diverged = np.where(missed & (missed_by(cells) == "diverged"), np.inf, 0.0)
    return pd.Series(diverged, cells.index).mask(failed & ~missed, np.nan if declared else np.inf)


def _lines_of_part(
    part: Cells, names: Sequence[str], columns: Sequence[str], over_seeds: Averaging
) -> list[Line]:
    steps = part.steps.merge(part.trained[["key", "seed"]], on="key")
    numbers = steps[list(columns)].astype(np.float64)
    steps[list(columns)] = numbers.where(numbers.abs() <= LARGEST)
    if not steps[list(columns)].notna().any(axis=None):
        return []
    bounds = {name: natural_bounds(steps[name].to_numpy(np.float64)) for name in columns}
    declared = all(part.logged[name].declared for name in columns)
    fields = [field for field in part.logged.fields if field.diverges or not field.declared]
    infinite = {field.name for field in fields if over_seeds.mean == "median"}
    lines = []
    for values, setting in part.settings(names):
        cells = setting.frame
        text = labels.short_settings(part.schema, values)
        if (cells["status"] == "failed").all():
            text = f"{text} ({inputs.misses_in_words(cells)})".strip()
        diverged = set(cells["key"][np.isinf(_outcomes(cells, declared=declared))])
        of_setting = steps[steps["key"].isin(cells["key"])]
        last = of_setting[~of_setting["key"].isin(diverged)].groupby("key")["step"].max()
        seeds, tables = dict[str, pd.DataFrame](), dict[str, pd.DataFrame]()
        for name in columns:
            is_known = part.logged[name].declared or cells["seed"].nunique() == 1
            steps_shown = of_setting if is_known else of_setting.fillna({name: np.inf})
            seeds[name] = _by_step(steps_shown, name, diverged, beyond=name in infinite)
            table = summarised(seeds[name].dropna(), over_seeds, bounds[name])
            table["high"] = table["high"].clip(upper=of_setting[name].max())  # of misses
            tables[name] = table[table["middle"].notna()]
        lines.append(Line(text, values, cells, tables, seeds, ends_early=last.nunique() > 1))
    return lines


def _by_step(steps: pd.DataFrame, column: str, diverged: set[str], *, beyond: bool) -> pd.DataFrame:
    """A column's number at each step (the rows) of each cell, which may be logged at other steps.

    A number between two logged steps is interpolated; one that was logged as nan stays nan. Cells
    that diverged are `beyond` the others from their last number on, or they are left out.
    """
    single = steps["key"].nunique() == 1
    if not (beyond or single):
        steps = steps[~steps["key"].isin(diverged)]
    table = steps.pivot(index="step", columns="key", values=column).dropna(axis=1, how="all")
    logged = steps.pivot(index="step", columns="key", values="seed")[table.columns].notna()
    table = table.where(logged, table.interpolate(method="index", limit_area="inside"))
    for key in diverged if beyond and not single else ():
        last = table[key].last_valid_index() if key in table else -1
        table.loc[table.index > last, key] = np.inf  # one without a step from the first on
    return table
