"""Panels: one for each value of a parameter, or for each run; rows of sample images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from overfit_cli.core.figure import MOST_PANELS
from overfit_cli.core.parameters import Value, describe
from overfit_cli.core.study import FigureData
from overfit_cli.core.text import BadValue, nearest
from overfit_cli.figures.labels import (
    RUN,
    brief,
    is_word,
    parameter_values,
    setting,
    settings,
    split_by,
    varying_parameters,
)
from overfit_cli.figures.picture import Picture, styled
from overfit_cli.figures.style import COLUMN
from overfit_cli.stats.pairs import Pairs, pair_up


@dataclass(frozen=True)
class Panel:
    """A part of the data with a title of its own; empty where it is all of it."""

    title: str
    data: FigureData


def panels(data: FigureData, by: str | None) -> list[Panel]:
    """Split the data by the values of the parameter `by`; None leaves it whole.

    Raises:
        UserError: if `by` is no parameter, or has more values than fit on a page.
    """
    if by is None:
        return [Panel("", data)]
    values = parameter_values(data)
    if by not in values:
        known = nearest(by, values)
        raise BadValue("by", by, f"{data.study.name} has no parameter {by!r}; {known}")
    if len(values[by]) > MOST_PANELS:
        raise BadValue(
            "by",
            by,
            f"it has {len(values[by])} values here; at most {MOST_PANELS} fit side by side.",
        )
    return [Panel(setting(data.study, by, value), _at(data, by, value)) for value in values[by]]


def panels_of_runs(data: FigureData, by: str | None) -> list[Panel]:
    """Split the data as `panels` does, and by the run directories that it is from.

    Raises:
        UserError: as `panels` does.
    """
    if not data.runs or by == RUN:
        return panels(data, by)
    every = [
        Panel(", ".join(filter(None, [of_run.title, part.title])), part.data)
        for of_run in panels(data, RUN)
        for part in panels(_of_one_run(of_run), by)
    ]
    if len(every) > MOST_PANELS:
        raise BadValue(
            "by",
            by,
            f"{len(data.runs)} run directories make {len(every)} panels of it; at most "
            f"{MOST_PANELS} fit side by side.",
        )
    return every


def _of_one_run(panel: Panel) -> FigureData:
    """A run's data, as if it were drawn alone."""
    refined = panel.data.cells[RUN].isin(panel.data.refined_runs).any()
    return replace(panel.data, runs=(), refined=bool(refined))


def by_setting(data: FigureData) -> list[Panel]:
    """Split the data into the settings of all parameters that vary, in their order."""
    return [
        Panel(settings(data.study, values), replace(data, cells=cells))
        for values, cells in split_by(data, varying_parameters(data))
    ]


def panels_for_lines(data: FigureData, names: Sequence[str], most: int) -> str | None:
    """Return the parameter that makes panels where there would be more lines than colours.

    None where there are few enough, or where no one parameter's panels suffice, or where the lines
    differ by one number: shades of a colour tell those apart.

    Args:
        data: of the figure.
        names: parameters that vary, of whose settings each is a line.
        most: how many lines a panel shows.
    """
    few = not names or len(data.cells[list(names)].drop_duplicates()) <= most
    if few or is_one_number(data, names):
        return None
    return panels_that_help(data.cells, names, most)


def is_one_number(data: FigureData, names: Sequence[str]) -> bool:
    """Return whether lines differ by one parameter alone, which is a number."""
    described = describe(data.study.parameters)
    return len(names) == 1 and names[0] in described and not is_word(data.study, names[0])


def panels_that_help(cells: pd.DataFrame, names: Sequence[str], most: int) -> str | None:
    """Return the parameter whose panels leave few enough lines in each; None where none does.

    Args:
        cells: one row per cell.
        names: parameters that vary, of whose settings each is a line.
        most: how many lines a panel shows.
    """
    lines = cells[list(names)].drop_duplicates()
    for name in names:
        others = lines.drop(columns=name).drop_duplicates()
        if lines[name].nunique() <= MOST_PANELS and max(len(others), 1) <= most:
            return name
    return None


def _at(data: FigureData, by: str, value: Value) -> FigureData:
    planned = data.planned
    return replace(
        data,
        cells=data.cells[data.cells[by] == value],
        planned=planned[planned[by] == value] if by in planned else planned,
    )


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
            raise BadValue(
                "from",
                name,
                f"{theirs.study.name} has no parameter {sorted(unknown)[0]!r}, which varies in "
                f"{its}; name runs of the same parameters.",
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
                raise BadValue("minus", name, f"its cells and the others don't share {needed}.")
    seeds = [part.cells["seed"].nunique() for part in (data, minus)]
    pairs = pair_up(data.cells, minus.cells, varying, [column])
    if not pairs.both:
        raise BadValue(
            "minus",
            name,
            f"no cell of it has the seed and the values of "
            f"{', '.join(varying) or 'the parameters'} of a cell here.",
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


@dataclass(frozen=True)
class ImageRow:
    """Images beside each other, in grey.

    Attributes:
        name: what stands before them.
        images: each of shape (height, width); those beyond the row's places aren't shown.
        black, white: the levels that are shown so.
    """

    name: str
    images: Sequence[ArrayLike]
    black: float
    white: float


@styled
def draw_image_rows(rows: Sequence[ImageRow], across: int) -> Picture:
    """Draw rows of images, so many in each, as wide as a paper's column."""
    height = 0.15 + 0.95 * COLUMN / across * len(rows)
    figure = Picture(COLUMN, height)
    grid = figure.subplots(len(rows), across, squeeze=False)
    for axes_of_row, row in zip(grid, rows, strict=True):
        axes_of_row[0].set_ylabel(row.name, fontsize="small")
        for axes, image in zip(axes_of_row, row.images, strict=False):
            axes.imshow(image, cmap="gray", vmin=row.black, vmax=row.white)
        for axes in axes_of_row:
            axes.set(xticks=[], yticks=[])
    return figure
