"""Logged steps gathered into curves: a cell each, or a mean over the seeds of a setting."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from overfit_cli.errors import UserError
from overfit_cli.figure import FigureData
from overfit_cli.parameters import describe


@dataclass(frozen=True)
class Curve:
    """One setting of the parameters.

    Attributes:
        text: the values that tell it from the other curves; empty where it is the only one.
        mean: one row a step (the index), one column a logged column.
        low, high: of the same shape, one standard deviation below and above; nan for a single cell.
    """

    text: str
    mean: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame


def varying(data: FigureData) -> list[str]:
    """Return the parameters in which the cells that have logged steps differ."""
    cells = _logged(data)
    return [name for name in describe(data.study.parameters) if cells[name].nunique() > 1]


def gather_curves(
    data: FigureData,
    columns: list[str],
    *,
    few: int,
    geometric: bool = False,
    named: Collection[str] = (),
) -> tuple[list[Curve], str]:
    """Return the curves in the order of their parameters, and a title that says what they are.

    Args:
        data: with logged steps.
        columns: the logged columns to gather.
        few: up to so many cells, each is a curve; more are averaged over seeds, without those
            that failed, at the steps that all of a setting's cells have.
        geometric: whether means and deviations are those of the logarithm.
        named: parameters that tell curves apart even where they don't vary here: in other panels
            they do.

    Raises:
        UserError: if there is no number to draw.
    """
    cells, different = _logged(data), {*varying(data), *named}
    names = [name for name in describe(data.study.parameters) if name in different]
    if len(cells) > few:
        failed = int((cells["status"] == "failed").sum())
        cells = cells[cells["status"] == "done"]
        kind = "geometric mean" if geometric else "mean"
        title = f"{kind} of {cells['seed'].nunique()} seeds, band of one deviation"
        title += f"\n{failed} failed cells left out" if failed else ""
    elif cells["seed"].nunique() > 1:
        names, title = [*names, "seed"], "single cells"
    else:
        title = "a single cell" if len(cells) == 1 else "single cells"
    steps = data.trajectories.merge(cells[["key", "status", *names]], on="key")
    steps[columns] = steps[columns].astype(np.float64).replace([np.inf, -np.inf], np.nan)
    if not steps[columns].notna().any(axis=None):
        raise UserError(f"--value {columns[0]}: no cell that is done has a number logged there.")
    if geometric:
        steps[columns] = steps[columns].apply(_logarithm)
    groups = steps.groupby(names, sort=True) if names else [((), steps)]
    return [_curve(names, at, group, columns, geometric) for at, group in groups], title


def _logged(data: FigureData) -> pd.DataFrame:
    return data.cells[data.cells["key"].isin(data.trajectories["key"])]


def _logarithm(column: pd.Series[float]) -> pd.Series[float]:
    """Take the logarithm; zeros, where a loss is down to nothing, count as the smallest number."""
    positive = column[column > 0]
    if positive.empty:
        return column * np.nan
    return column.clip(lower=positive.min()).map(np.log)


def _curve(
    names: list[str], at: Hashable, steps: pd.DataFrame, columns: list[str], geometric: bool
) -> Curve:
    values = at if isinstance(at, tuple) else (at,)
    text = ", ".join(f"{name} = {_short(value)}" for name, value in zip(names, values, strict=True))
    if (steps["status"] == "failed").all():
        text = f"{text} (failed)".strip()
    tables = {
        name: steps.pivot(index="step", columns="key", values=name).dropna() for name in columns
    }
    mean = pd.DataFrame({name: table.mean(axis=1) for name, table in tables.items()})
    deviation = pd.DataFrame({name: table.std(axis=1) for name, table in tables.items()})
    ends = [mean, mean - deviation, mean + deviation]
    return Curve(text, *(end.map(np.exp) if geometric else end for end in ends))


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
