"""Logged steps gathered into curves: one per cell, or a mean over the seeds of a setting."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from overfit_cli.errors import UserError
from overfit_cli.figure import FigureData
from overfit_cli.figures.geometric import logarithms
from overfit_cli.figures.style import brief
from overfit_cli.parameters import describe
from overfit_cli.words import plural

BAND = 3
"""Seeds from which on a setting is a mean with a band."""


@dataclass(frozen=True)
class Curve:
    """One setting of the parameters.

    Attributes:
        text: the values that tell it from the other curves; empty where it is the only one.
        mean: one row per step (the index), one column per logged column.
        low, high: of the same shape, one standard deviation below and above; nan for a single cell.
    """

    text: str
    mean: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame


def gather_curves(
    parts: Sequence[FigureData], columns: list[str], *, few: int, geometric: bool = False
) -> tuple[list[list[Curve]], str]:
    """Return each part's curves in the order of their parameters, and what holds for all of them.

    Args:
        parts: with logged steps; a part with no number to draw has no curve.
        columns: the logged columns to gather.
        few: where every part has up to so many cells, and no setting three seeds, each is a curve;
            else they are averaged over seeds, without those that failed, as far as all of a
            setting's cells go; between its logged steps a cell is taken as straight.
        geometric: whether means and deviations are those of the logarithm.

    Raises:
        UserError: if there is no number to draw in any part.
    """
    logged = [part.cells[part.cells["key"].isin(part.trajectories["key"])] for part in parts]
    everything = pd.concat(logged)
    names = [
        name
        for name in describe(parts[0].study.parameters)
        if any(cells[name].nunique() > 1 for cells in logged)
    ]
    seeds = everything.groupby(["study", *names])["seed"].nunique()
    averaged = seeds.max() >= BAND or any(len(cells) > few for cells in logged)
    if averaged:
        logged = [cells[cells["status"] == "done"] for cells in logged]
    elif everything["seed"].nunique() > 1:
        names = [*names, "seed"]
    found = [
        _curves(part, cells, names, columns, geometric)
        for part, cells in zip(parts, logged, strict=True)
    ]
    if not any(found):
        raise UserError(f"--value {columns[0]}: no cell that is done has a number logged there.")
    return found, _in_words(everything, averaged, geometric)


def _in_words(cells: pd.DataFrame, averaged: bool, geometric: bool) -> str:
    """What a curve is."""
    if not averaged:
        return "a single cell" if len(cells) == 1 else "single cells"
    done = cells["status"] == "done"
    kind = "geometric mean" if geometric else "mean"
    seeds = cells.loc[done, "seed"].nunique()
    failed = int((~done).sum())
    left_out = f"\n{plural(failed, 'failed cell')} left out" if failed else ""
    return f"{kind} of {seeds} seeds, band of one deviation{left_out}"


def _curves(
    part: FigureData, cells: pd.DataFrame, names: list[str], columns: list[str], geometric: bool
) -> list[Curve]:
    steps = part.trajectories.merge(cells[["key", "status", *names]], on="key")
    steps[columns] = steps[columns].astype(np.float64).replace([np.inf, -np.inf], np.nan)
    if not steps[columns].notna().any(axis=None):
        return []
    groups = steps.groupby(names, sort=True) if names else [((), steps)]
    return [_curve(names, at, group, columns, geometric) for at, group in groups]


def _curve(
    names: list[str], at: Hashable, steps: pd.DataFrame, columns: list[str], geometric: bool
) -> Curve:
    values = at if isinstance(at, tuple) else (at,)
    text = ", ".join(f"{name} = {brief(value)}" for name, value in zip(names, values, strict=True))
    if (steps["status"] == "failed").all():
        text = f"{text} (failed)".strip()
    if geometric:
        steps = steps.assign(**{name: logarithms(steps[name]) for name in columns})
    tables = {name: _by_cell(steps, name) for name in columns}
    mean = pd.DataFrame({name: table.mean(axis=1) for name, table in tables.items()})
    deviation = pd.DataFrame({name: table.std(axis=1) for name, table in tables.items()})
    ends = [mean, mean - deviation, mean + deviation]
    return Curve(text, *(end.map(np.exp) if geometric else end for end in ends))


def _by_cell(steps: pd.DataFrame, column: str) -> pd.DataFrame:
    """One row per step, one column per cell, as far as all cells that have numbers go.

    Cells needn't be logged at the same steps: what is missing between two is interpolated. What
    was logged and is no number stays none.
    """
    table = steps.pivot(index="step", columns="key", values=column).dropna(axis=1, how="all")
    logged = steps.pivot(index="step", columns="key", values="status")[table.columns].notna()
    between = table.interpolate(method="index", limit_area="inside")
    return table.where(logged, between).dropna()
