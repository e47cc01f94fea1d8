"""Logged steps gathered into curves: one per cell, or a mean over the seeds of a setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from overfit_cli.errors import UserError
from overfit_cli.figure import FigureData
from overfit_cli.figures.axis import parameter_values, split_by, varying_parameters
from overfit_cli.figures.geometric import logarithms
from overfit_cli.figures.labels import heading, short_settings
from overfit_cli.words import plural

BAND = 3
"""Seeds from which on a setting is a mean with a band."""

Middle = Literal["mean", "geometric mean", "median"]
"""What stands for all seeds of a setting."""


@dataclass(frozen=True)
class Curve:
    """One setting of the parameters.

    Attributes:
        text: the values that tell it from the other curves; empty where it is the only one.
        mean: the middle over seeds: one row per step (the index), one column per logged column.
        low, high: of the same shape: a standard deviation below and above a mean, or the quartiles
            beside a median; for a single cell they say nothing.
    """

    text: str
    mean: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame


@dataclass(frozen=True)
class Gathered:
    """Curves, and what holds for all of them.

    Attributes:
        curves: of each part.
        kind: what a curve and its band are.
        heading: of a legend: the parameters whose values are words in the curves' texts.
    """

    curves: list[list[Curve]]
    kind: str
    heading: str


def gather_curves(
    parts: Sequence[FigureData],
    columns: list[str],
    *,
    few: int,
    middle: Middle = "mean",
    each_seed: bool = False,
) -> Gathered:
    """Return each part's curves in the order of their parameters.

    Args:
        parts: with logged steps; a part with no number to draw has no curve.
        columns: the logged columns to gather.
        few: where every part has up to so many cells, and no setting three seeds, each is a curve;
            else they are averaged over seeds, without those that failed, as far as all of a
            setting's cells go; between its logged steps a cell is taken as straight.
        middle: how: for a geometric mean the deviation is that of the logarithm, too.
        each_seed: whether each cell is a curve in any case, called as the others of its setting.

    Raises:
        UserError: if there is no number to draw in any part.
    """
    parts = [_logged_only(part) for part in parts]
    everything = pd.concat([part.cells for part in parts])
    varying = {name for part in parts for name in varying_parameters(part)}
    names = [name for name in parameter_values(parts[0]) if name in varying]
    seeds = everything.groupby(["study", *names])["seed"].nunique()
    averaged = not each_seed and (
        seeds.max() >= BAND or any(len(part.cells) > few for part in parts)
    )
    if averaged:
        parts = [replace(part, cells=part.cells[part.cells["status"] == "done"]) for part in parts]
    elif everything["seed"].nunique() > 1:
        names = [*names, "seed"]
    shown = [name for name in names if not (each_seed and name == "seed")]
    found = [_curves(part, names, shown, columns, middle) for part in parts]
    if not any(found):
        raise UserError(f"--value {columns[0]}: no cell that is done has a number logged there.")
    several = each_seed and seeds.max() > 1
    kind = "a line for each seed" if several else _in_words(everything, averaged, middle)
    return Gathered(found, kind, heading(parts[0].study, shown))


def _logged_only(part: FigureData) -> FigureData:
    """The cells with logged steps; what they don't vary, a plan doesn't either."""
    cells = part.cells[part.cells["key"].isin(part.trajectories["key"])]
    return replace(part, cells=cells, planned=part.planned.iloc[:0])


def _in_words(cells: pd.DataFrame, averaged: bool, middle: Middle) -> str:
    """What a curve is."""
    if not averaged:
        return "a single cell" if len(cells) == 1 else "single cells"
    done = cells["status"] == "done"
    band = "the middle half" if middle == "median" else "one standard deviation"
    seeds = cells.loc[done, "seed"].nunique()
    failed = int((~done).sum())
    left_out = f"; {plural(failed, 'failed cell')} left out" if failed else ""
    if seeds == 1:
        return f"one seed{left_out}"
    return f"{middle} of {seeds} seeds, band of {band}{left_out}"


def _curves(
    part: FigureData, names: list[str], shown: list[str], columns: list[str], middle: Middle
) -> list[Curve]:
    """A curve for each setting of the parameters `names`, of which some are told."""
    steps = part.trajectories.merge(part.cells[["key", "status"]], on="key")
    steps[columns] = steps[columns].astype(np.float64).replace([np.inf, -np.inf], np.nan)
    if not steps[columns].notna().any(axis=None):
        return []
    found = []
    for values, cells in split_by(part, names):
        text = short_settings(part.study, {name: values[name] for name in shown})
        of_setting = steps[steps["key"].isin(cells["key"])]
        found.append(_curve(text, of_setting, columns, middle))
    return found


def _curve(text: str, steps: pd.DataFrame, columns: list[str], middle: Middle) -> Curve:
    if (steps["status"] == "failed").all():
        text = f"{text} (failed)".strip()
    logs = middle == "geometric mean"
    if logs:
        steps = steps.assign(**{name: logarithms(steps[name]) for name in columns})
    found = {name: _summary(_by_cell(steps, name), middle) for name in columns}
    ends = [pd.DataFrame({name: one[place] for name, one in found.items()}) for place in range(3)]
    return Curve(text, *(end.map(np.exp) if logs else end for end in ends))


def _summary(table: pd.DataFrame, middle: Middle) -> list[pd.Series[float]]:
    """The middle over the cells of each step, and both ends of its band."""
    if middle == "median":
        return [table.quantile(share, axis=1) for share in (0.5, 0.25, 0.75)]
    mean, deviation = table.mean(axis=1), table.std(axis=1)
    return [mean, mean - deviation, mean + deviation]


def _by_cell(steps: pd.DataFrame, column: str) -> pd.DataFrame:
    """One row per step, one column per cell, as far as all cells that have numbers go.

    Cells needn't be logged at the same steps: what is missing between two is interpolated. What
    was logged and is no number stays none.
    """
    table = steps.pivot(index="step", columns="key", values=column).dropna(axis=1, how="all")
    logged = steps.pivot(index="step", columns="key", values="status")[table.columns].notna()
    between = table.interpolate(method="index", limit_area="inside")
    return table.where(logged, between).dropna()
