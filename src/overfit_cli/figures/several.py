"""Several run directories in one figure: side by side, or one less the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from overfit_cli.errors import UserError
from overfit_cli.figure import FigureData
from overfit_cli.figures.axis import parameter_values, varying_parameters
from overfit_cli.figures.labels import RUN
from overfit_cli.figures.style import brief
from overfit_cli.parameters import describe

DIGITS = 12
"""Real numbers that agree to so many digits are one value of a parameter."""


def side_by_side(names: Sequence[str], parts: Sequence[FigureData]) -> FigureData:
    """Return the data of several run directories, whose column `run directory` says whose a row is.

    Args:
        names: what the run directories are called, each another name.
        parts: their data, in the same order.

    Raises:
        UserError: if a parameter that varies in one of them is none of another.
    """
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    for name, part in zip(names, parts, strict=True):
        _check_alike(first, part, names[0], name)
    frames = [_marked(name, part) for name, part in zip(names, parts, strict=True)]
    cells, planned, trajectories = (
        pd.concat(list(column), ignore_index=True) for column in zip(*frames, strict=True)
    )
    return replace(
        first,
        cells=cells,
        planned=planned,
        trajectories=trajectories,
        refined=any(part.refined for part in parts),
        runs=tuple(names),
        refined_runs=frozenset(
            name for name, part in zip(names, parts, strict=True) if part.refined
        ),
        differs=_differences(names, parts),
    )


def _differences(names: Sequence[str], parts: Sequence[FigureData]) -> tuple[str, ...]:
    """How parameters that have one value in each run differ between runs: `labels coin (fig1)`."""
    found = []
    values = [parameter_values(part) for part in parts]
    for parameter in values[0]:
        of_each = [of_part.get(parameter, ()) for of_part in values]
        if all(len(taken) == 1 for taken in of_each) and len(set(of_each)) > 1:
            told = [
                f"{brief(taken[0])} ({name})" for name, taken in zip(names, of_each, strict=True)
            ]
            found.append(f"{parameter} {', '.join(told)}")
    return tuple(found)


def _check_alike(first: FigureData, other: FigureData, called: str, name: str) -> None:
    """Refuse runs of which one varies what the other doesn't know."""
    for one, its, theirs in ((first, called, other), (other, name, first)):
        unknown = set(varying_parameters(one)) - set(describe(theirs.study.parameters))
        if unknown:
            raise UserError(
                f"--from {name}: {theirs.study.name} has no parameter {sorted(unknown)[0]!r}, "
                f"which varies in {its}; name runs of the same parameters."
            )


def _marked(name: str, data: FigureData) -> list[pd.DataFrame]:
    """Cells, plan and steps of a run, with its name; two runs may hold the same cell."""
    marked = []
    for frame in (data.cells, data.planned, data.trajectories):
        keys = {"key": f"{name}/" + frame["key"].astype(str)} if "key" in frame else {}
        marked.append(frame.assign(**{RUN: name}, **keys))
    return marked


def difference(data: FigureData, minus: FigureData, name: str, value: str | None) -> FigureData:
    """Return data whose measured column is that of `data` less that of `minus`, cell by cell.

    Cells are of one pair where they have the same seed and the same value of each parameter that
    varies; where the two have no seed in common, the means over seeds are subtracted.

    Args:
        data: from which is subtracted.
        minus: what is subtracted.
        name: what its run directory is called.
        value: the column; None for the study's headline.

    Raises:
        UserError: if no cell of one has its place in the other, or the column is missing.
    """
    column = value or data.study.headline
    varying = sorted({*varying_parameters(data), *varying_parameters(minus)})
    for part in (data, minus):
        for needed in (*varying, column):
            if needed not in part.cells:
                raise UserError(f"--minus {name}: its cells and the others don't share {needed}.")
    seeds = [part.cells["seed"].nunique() for part in (data, minus)]
    paired = bool(set(data.cells["seed"]) & set(minus.cells["seed"]))
    left, right = (_by_place(part.cells, varying, column, paired) for part in (data, minus))
    both = left.merge(right[["place", column, "status"]], on="place", suffixes=("", "_less"))
    if both.empty:
        raise UserError(
            f"--minus {name}: no cell of it has the seed and the values of "
            f"{', '.join(varying) or 'the parameters'} of a cell here."
        )
    failed = (both["status"] == "failed") | (both["status_less"] == "failed")
    cells = both.assign(
        **{column: both[column].astype(float) - both[f"{column}_less"].astype(float)},
        status=np.where(failed, "failed", "done"),
    )
    cells = cells.drop(columns=["place", f"{column}_less", "status_less"])
    return replace(
        data,
        cells=cells,
        planned=data.planned.iloc[:0],
        less=name,
        averaged="" if paired else f"mean of {seeds[0]} seeds less mean of {seeds[1]} seeds",
        unpaired=_unpaired(len(left), len(right), len(both), paired=paired),
        differs=_differences(["here", name], [data, minus]),
    )


def _unpaired(here: int, there: int, both: int, *, paired: bool) -> str:
    """Say how many cells, or places, of either side have no counterpart on the other."""
    if here == there == both:
        return ""
    what = "cells" if paired else "places"
    return f"{both} of {here} {what} here and of {there} there have a counterpart"


def _by_place(
    cells: pd.DataFrame, varying: Sequence[str], column: str, paired: bool
) -> pd.DataFrame:
    """Cells with a column `place`, which says the same of a cell and its counterpart."""
    names = [*varying, "seed"] if paired else list(varying)
    texts = [
        cells[name].map(lambda given: f"{given:.{DIGITS}g}" if isinstance(given, float) else given)
        for name in names
    ]
    place = pd.Series(list(zip(*texts, strict=True)) or [()] * len(cells), index=cells.index)
    cells = cells.assign(place=place)
    if paired:
        return cells
    numbers = cells[column].astype(float).where(cells["status"] == "done")
    means = numbers.groupby(cells["place"]).transform("mean")
    cells = cells.assign(status=np.where(means.isna(), "failed", "done"))
    cells[column] = means
    return cells.drop_duplicates("place").reset_index(drop=True)
