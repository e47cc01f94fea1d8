"""Several run directories in one figure: side by side, or one less the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from overfit_cli.analysis.pairs import Pairs, pair_up
from overfit_cli.errors import UserError
from overfit_cli.figure import FigureData
from overfit_cli.figures.axis import parameter_values, varying_parameters
from overfit_cli.figures.labels import RUN
from overfit_cli.figures.style import brief
from overfit_cli.parameters import describe


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
    pairs = pair_up(data.cells, minus.cells, varying, [column])
    if not pairs.both:
        raise UserError(
            f"--minus {name}: no cell of it has the seed and the values of "
            f"{', '.join(varying) or 'the parameters'} of a cell here."
        )
    means = pairs.by == "means"
    return replace(
        data,
        cells=subtracted(pairs.left, pairs.right, column),
        planned=data.planned.iloc[:0],
        less=name,
        averaged=f"mean of {seeds[0]} seeds less mean of {seeds[1]} seeds" if means else "",
        unpaired=_unpaired(pairs, "places" if means else "cells"),
        differs=_differences(["here", name], [data, minus]),
    )


def subtracted(cells: pd.DataFrame, less: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return cells whose column is its own less that of their counterparts.

    Args:
        cells: one row per cell; it is the pair's where it isn't the column's.
        less: the counterparts, row by row.
        column: the measured column; a pair of which one has failed has failed.
    """
    failed = (cells["status"] == "failed") | (less["status"] == "failed")
    numbers = cells[column].astype(float) - less[column].astype(float)
    return cells.assign(**{column: numbers}, status=np.where(failed, "failed", "done"))


def _unpaired(pairs: Pairs, what: str) -> str:
    """Say how many cells, or places, of either side have no counterpart on the other."""
    if pairs.here == pairs.there == pairs.both:
        return ""
    return f"{pairs.both} of {pairs.here} {what} here and of {pairs.there} there have a counterpart"
