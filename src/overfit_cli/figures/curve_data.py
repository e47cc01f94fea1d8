"""Curves of logged columns: the statistic over seeds of each setting, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import Value
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import plural
from overfit_cli.figures.grid import mean_of_seeds
from overfit_cli.figures.inputs import BAND, MISSES, misses_in_words
from overfit_cli.figures.labels import (
    heading,
    parameter_values,
    short_settings,
    split_settings,
    varying_parameters,
)
from overfit_cli.stats.bands import MEAN, MEANS, Averaging, natural_bounds


@dataclass(frozen=True)
class Curve:
    """The curve of a setting of the parameters.

    Attributes:
        text: the values that differ from other curves; empty where it is the only one.
        mean: the statistic over seeds: one row per step (the index), one column per logged column.
        low, high: of the same shape: the ends of its band; nan for a single cell.
        settings: the values of the text by their parameters.
        ends_early: whether it ends with the first of several seeds that end apart.
    """

    text: str
    mean: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame
    settings: Mapping[str, Value] = field(default_factory=dict)
    ends_early: bool = False


@dataclass(frozen=True)
class CurveSet:
    """The curves of several parts, with their description.

    Attributes:
        kind: the statistic and its band, in words.
        label: the same for an axis; empty where nothing is averaged.
        heading: the heading of the legend: the parameters whose values are words in the texts.
    """

    curves: list[list[Curve]]
    kind: str
    label: str
    heading: str


def gather_curves(
    parts: Sequence[FigureData],
    columns: list[str],
    *,
    most_single: int,
    over_seeds: Averaging = MEAN,
    each_seed: bool = False,
) -> CurveSet:
    """Return each part's curves in the order of their parameters.

    Args:
        parts: with logged steps; a part with no number to draw has no curve.
        most_single: the largest number of cells of a part that are a curve each, if no setting has
            three seeds. Otherwise cells that are done are averaged over seeds, up to the last step
            that all cells of a setting have; a cell is linear between its logged steps.
        each_seed: whether each cell is a curve in any case, with the text of its setting.
    """
    count = sum(int((part.cells["status"] == "done").sum()) for part in parts)
    parts = [_logged_part(part) for part in parts]
    unlogged = count - sum(int((part.cells["status"] == "done").sum()) for part in parts)
    everything = pd.concat([part.cells for part in parts])
    varying = {name for part in parts for name in varying_parameters(part)}
    names = [name for name in parameter_values(parts[0]) if name in varying]
    seeds = everything.groupby(["study", *names])["seed"].nunique()
    averaged = not each_seed and (
        seeds.max() >= BAND or any(len(part.cells) > most_single for part in parts)
    )
    if averaged:
        parts = [replace(part, cells=part.cells[_is_averaged(part.cells)]) for part in parts]
    elif everything["seed"].nunique() > 1:
        names = [*names, "seed"]
    told = [name for name in names if not (each_seed and name == "seed")]
    curves = [_curves(part, names, told, columns, over_seeds) for part in parts]
    if not any(curves):
        raise BadValue("value", columns[0], "no cell that is done has a number logged there.")
    seed_lines = each_seed and seeds.max() > 1
    fewest = min(
        int(seeds.min()), *(part.cells["seed"].nunique() for part in parts if len(part.cells))
    )
    kind = _kind_of_curves(everything, fewest, averaged, over_seeds)
    kind = "a line for each seed" if seed_lines else kind
    if averaged and any(curve.ends_early for part_curves in curves for curve in part_curves):
        kind += "; each curve up to the last step that all its seeds have"
    kind += f"; {plural(unlogged, 'cell')} without logged steps left out" if unlogged else ""
    most_seeds = int(everything["seed"].nunique())
    label = over_seeds.label(most_seeds) if averaged and most_seeds > 1 else ""
    return CurveSet(curves, kind, label, heading(parts[0].study, told))


def _logged_part(part: FigureData) -> FigureData:
    cells = part.cells[part.cells["key"].isin(part.trajectories["key"])]
    return replace(part, cells=cells, planned=part.planned.iloc[:0])


def _reasons(cells: pd.DataFrame) -> pd.Series[str]:
    reasons = cells["reason"] if "reason" in cells else pd.Series("diverged", cells.index)
    return reasons.where(cells["status"] == "failed", "")


def _is_averaged(cells: pd.DataFrame) -> pd.Series[bool]:
    return _reasons(cells).isin(["", *MISSES])


def _kind_of_curves(cells: pd.DataFrame, fewest: int, averaged: bool, over_seeds: Averaging) -> str:
    if not averaged:
        return "a single cell" if len(cells) == 1 else "single cells"
    seeds = cells.loc[_is_averaged(cells), "seed"].nunique()
    diverged = int((_reasons(cells) == "diverged").sum())
    broken = int((~_is_averaged(cells)).sum())
    treatment = "taken as beyond the others" if over_seeds.mean == "median" else "left out"
    left_out = f"; {plural(diverged, 'diverged cell')} {treatment}" if diverged else ""
    left_out += f"; {plural(broken, 'failed cell')} left out" if broken else ""
    if seeds == 1:
        return f"one seed{left_out}"
    band = over_seeds.band_in_words(seeds)
    middle = mean_of_seeds(min(fewest, seeds), seeds, MEANS[over_seeds.mean])
    return f"{middle}, band: {band}{left_out}"


def _curves(
    part: FigureData,
    names: list[str],
    told: list[str],
    columns: list[str],
    over_seeds: Averaging,
) -> list[Curve]:
    reasons = part.cells.assign(reason=_reasons(part.cells))[["key", "reason"]]
    steps = part.trajectories.merge(reasons, on="key")
    steps[columns] = steps[columns].astype(np.float64).replace([np.inf, -np.inf], np.nan)
    if not steps[columns].notna().any(axis=None):
        return []
    bounds = {name: natural_bounds(steps[name].to_numpy(np.float64)) for name in columns}
    curves = []
    for values, cells in split_settings(part, names):
        setting = {name: values[name] for name in told}
        text = short_settings(part.study, setting)
        if (cells["status"] == "failed").all():
            text = f"{text} ({misses_in_words(cells)})".strip()
        setting_steps = steps[steps["key"].isin(cells["key"])]
        curves.append(replace(_curve(text, setting_steps, bounds, over_seeds), settings=setting))
    return curves


def _curve(
    text: str,
    steps: pd.DataFrame,
    bounds: Mapping[str, tuple[float, float]],
    over_seeds: Averaging,
) -> Curve:
    summaries: dict[str, list[pd.Series[float]]] = {}
    single = steps["key"].nunique() == 1
    for name, ends in bounds.items():
        beyond = over_seeds.mean == "median" and name.endswith("loss") and not single
        kept = steps if beyond or single else steps[steps["reason"] != "diverged"]
        table = _cell_table(kept, name, beyond=beyond)
        middle, low, high = over_seeds.summarise(table.to_numpy(), ends)
        high = np.minimum(high, steps[name].max())  # a band without an end reaches to the largest
        summaries[name] = [
            pd.Series(np.where(np.isfinite(middle), numbers, np.nan), table.index)
            for numbers in (middle, low, high)
        ]
    mean, below, above = (
        pd.DataFrame({name: series[end] for name, series in summaries.items()}) for end in range(3)
    )
    ends_apart = steps[steps["reason"] != "diverged"].groupby("key")["step"].max().nunique() > 1
    return Curve(text, mean, below, above, ends_early=ends_apart)


def _cell_table(steps: pd.DataFrame, column: str, *, beyond: bool) -> pd.DataFrame:
    """A table with one row per step and one column per cell, up to the last common step.

    Cells may be logged at different steps: missing values between two steps are interpolated. A
    value that was logged as nan stays nan. With `beyond`, cells that diverged are infinite from
    their last number on.
    """
    table = steps.pivot(index="step", columns="key", values=column).dropna(axis=1, how="all")
    logged = steps.pivot(index="step", columns="key", values="reason")[table.columns].notna()
    interpolated = table.interpolate(method="index", limit_area="inside")
    table = table.where(logged, interpolated)
    diverged = set(steps.loc[steps["reason"] == "diverged", "key"]) if beyond else set()
    for key in diverged.intersection(table.columns):
        table.loc[table.index > table[key].last_valid_index(), key] = np.inf
    return table.dropna()
